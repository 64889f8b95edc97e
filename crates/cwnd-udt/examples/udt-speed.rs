//! Measures the rate and the CPU time of a stream between two processes:
//!
//! ```text
//! udt-speed recv 127.0.0.1:9000
//! udt-speed send 127.0.0.1:9000 1000 udt
//! ```
//!
//! The sender writes the given number of megabytes (10^6 bytes) with the given controller. Each end
//! prints its rate and its CPU time per gigabyte (10^9 bytes), user and system time of all threads.
//! With `--key FILE` as the first arguments at both ends, datagrams are encrypted.

use cwnd::Spec;
use cwnd_udt::secure::{Credentials, Key};
use cwnd_udt::{Config, UdtListener, UdtStream};
use std::error::Error;
use std::io::{Read, Write};
use std::time::{Duration, Instant};

const CHUNK: usize = 1 << 20;

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
        ["recv", at] => recv(at, &config("udt")?),
        ["send", to, megabytes] => send(to, megabytes.parse()?, &config("udt")?),
        ["send", to, megabytes, law] => send(to, megabytes.parse()?, &config(law)?),
        _ => Err("[--key FILE] recv HOST:PORT, or send HOST:PORT MEGABYTES [CONTROLLER]".into()),
    }
}

fn recv(at: &str, config: &Config) -> Result<(), Box<dyn Error>> {
    let listener = UdtListener::bind(at, config)?;
    let (mut stream, _) = listener.accept()?;
    let mut buffer = vec![0; CHUNK];
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
    let chunk = vec![0x5a; CHUNK];
    let bytes = megabytes * 1_000_000;
    let start = Instant::now();
    let mut left = bytes;
    while left > 0 {
        let count = left.min(CHUNK);
        stream.write_all(&chunk[..count])?;
        left -= count;
    }
    let handle = stream.clone();
    stream.close()?;
    report("send", bytes, start.elapsed(), &handle);
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

/// User and system time of this process in seconds, as reported by Linux (100 ticks per second).
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
}
