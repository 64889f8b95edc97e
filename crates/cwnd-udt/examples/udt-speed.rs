//! How fast a stream is between two processes, and what it costs:
//!
//! ```text
//! udt-speed recv 9000
//! udt-speed send 127.0.0.1:9000 1000 udt
//! ```
//!
//! With `--key FILE` before these words at both ends, all is sealed. The sender writes so many megabytes (10^6 bytes) with the controller given. Each end prints its rate and the
//! CPU time that it took for a gigabyte (10^9 bytes), all threads and the system's part included.

use cwnd::Spec;
use cwnd_udt::secure::{Credentials, Key};
use cwnd_udt::{Config, UdtListener, UdtStream};
use std::error::Error;
use std::io::{Read, Write};
use std::time::{Duration, Instant};

const PIECE: usize = 1 << 20;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let words: Vec<_> = arguments.iter().map(String::as_str).collect();
    let (credentials, words) = match &words[..] {
        ["--key", file, words @ ..] => {
            let key = Key::from_file_contents(&std::fs::read(file)?)?;
            (Some(Credentials::Key(key)), words)
        }
        words => (None, words),
    };
    let config =
        |law| Ok::<_, Box<dyn Error>>(Config { credentials, ..Config::new(Spec::parse(law)?) });
    match *words {
        ["recv", port] => recv(port.parse()?, &config("udt")?),
        ["send", to, megabytes] => send(to, megabytes.parse()?, &config("udt")?),
        ["send", to, megabytes, law] => send(to, megabytes.parse()?, &config(law)?),
        _ => Err("[--key FILE] recv PORT, or send HOST:PORT MEGABYTES [CONTROLLER]".into()),
    }
}

fn recv(port: u16, config: &Config) -> Result<(), Box<dyn Error>> {
    let listener = UdtListener::bind(("127.0.0.1", port), config)?;
    let (mut stream, _) = listener.accept()?;
    let mut buffer = vec![0; PIECE];
    let mut bytes = stream.read(&mut buffer)?;
    let start = Instant::now();
    loop {
        match stream.read(&mut buffer)? {
            0 => break,
            count => bytes += count,
        }
    }
    report("recv", bytes, start.elapsed(), &stream);
    Ok(())
}

fn send(to: &str, megabytes: usize, config: &Config) -> Result<(), Box<dyn Error>> {
    let mut stream = UdtStream::connect(to, config)?;
    let piece = vec![0x5a; PIECE];
    let bytes = megabytes * 1_000_000;
    let start = Instant::now();
    let mut left = bytes;
    while left > 0 {
        let count = left.min(PIECE);
        stream.write_all(&piece[..count])?;
        left -= count;
    }
    let kept = stream.clone();
    stream.close()?;
    report("send", bytes, start.elapsed(), &kept);
    Ok(())
}

fn report(end: &str, bytes: usize, took: Duration, stream: &UdtStream) {
    let gigabytes = bytes as f64 / 1e9;
    let rate = 8.0 * gigabytes / took.as_secs_f64();
    let stats = stream.stats(false);
    let total = stats.total;
    let share = |micros: u64| micros as f64 / 1e4 / took.as_secs_f64();
    println!(
        "{end} {rate:.2} Gb/s, {:.3} CPU s/GB; {} packets sent, {} again, {} timeouts, {} missing, \
         {} light and {} full acknowledgements; {:.3} ms RTT, window {:.0}, {:.3} us between packets, \
         capacity {:.0} Mb/s; limits: window {:.0} %, pacing {:.0} %, receiver {:.0} %, \
         application {:.0} %, processor {:.0} %",
        cpu_seconds() / gigabytes,
        total.pkt_sent,
        total.pkt_retrans,
        total.timeouts,
        total.pkt_rcv_loss,
        total.pkt_sent_light_ack,
        total.pkt_sent_ack + total.pkt_recv_ack,
        stats.ms_rtt,
        stats.pkt_congestion_window,
        stats.us_pkt_snd_period,
        stats.mbps_bandwidth,
        share(total.us_limited_window),
        share(total.us_limited_pacing),
        share(total.us_limited_receiver),
        share(total.us_limited_application),
        share(total.us_limited_processor),
    );
}

/// User and system time of this process, as Linux counts it (100 ticks a second).
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
}
