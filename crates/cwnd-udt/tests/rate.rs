//! The utilisation of paths, and the replay of a controller's recorded events.

use crate::common::{PERFECT, Pair, Path, config, pattern};
use cwnd::record::replay;
use cwnd::{Dur, Spec, Time};
use cwnd_udt::{Config, Event};

/// A path of `mbit` with a queue of one bandwidth-delay product.
fn link(mbit: f64, rtt_ms: u64, loss: f64) -> Path {
    Path {
        delay: Dur::from_millis(rtt_ms / 2),
        nanos_per_byte: 8000.0 / mbit,
        queue: mbit * 125.0 * rtt_ms as f64,
        loss,
        ..PERFECT
    }
}

/// Sends for `secs` and returns the rate in the second half in megabits per second, UDT and UDP
/// headers included.
fn goodput(law: &str, path: Path, secs: u64) -> f64 {
    goodput_of(&Config::new(Spec::parse(law).unwrap()), path, secs)
}

fn goodput_of(config: &Config, path: Path, secs: u64) -> f64 {
    let law = config.controller.to_string();
    let config = Config { record: true, ..config.clone() };
    let mut pair = Pair::open(&config, 1, path, 7);
    pair.most = 64;
    let data = vec![9; 1 << 16];
    let mut buffer = vec![0; 1 << 20];
    let (mut arrived, end) = (0, pair.now + Dur::from_secs(secs as f64));
    let half = pair.now + Dur::from_secs(secs as f64 / 2.0);
    let mut writable = true;
    while pair.now < end {
        while writable {
            writable = pair.ends[0].write(&data).unwrap() == data.len();
        }
        let count = pair.ends[1].read(pair.now, &mut buffer).unwrap();
        arrived += if pair.now > half { count } else { 0 };
        assert!(pair.step());
        writable |= pair.events[0].drain(..).any(|event| event == Event::Writable);
    }
    let stats = pair.ends[0].stats(pair.now, false);
    let record = pair.ends[0].record().unwrap();
    let settings = config.settings(1500, config.flow_window.min(config.receive_buffer));
    let controller = config.controller.controller(&settings);
    assert_eq!(replay(controller, record), Ok(()), "{law}");
    let mbps = arrived as f64 * 8e-6 / (secs as f64 / 2.0) * 1472.0 / 1456.0;
    println!(
        "{law}: {mbps:.1} Mb/s, rtt {:.1} ms, lost {}, again {}, timeouts {}, limit {:?}, {} events",
        stats.ms_rtt,
        stats.total.pkt_snd_loss,
        stats.total.pkt_retrans,
        stats.total.timeouts,
        pair.ends[0].limit(),
        record.entries.len()
    );
    assert!(stats.total.pkt_retrans < stats.total.pkt_sent / 4, "{law}: {stats:?}");
    mbps
}

#[test]
fn controllers_fill_a_path() {
    for law in ["udt", "daimd", "tfrc", "reno", "cubic"] {
        let mbps = goodput(law, link(50.0, 20, 0.0), 20);
        let least = if law == "tfrc" { 20.0 } else { 40.0 };
        assert!(mbps > least, "{law}: {mbps}");
    }
}

/// Random loss keeps UDT's law below the link's rate: near the capacity it increases by a tenth of
/// a packet per SYN, and decreases by a ninth at each loss.
#[test]
fn udt_fills_a_long_fat_path() {
    let mbps = goodput("udt", link(200.0, 100, 1e-5), 40);
    assert!(mbps > 170.0, "{mbps}");
}

/// With one acknowledgement per SYN, a receive buffer of 256 packets would limit the rate to 298
/// Mb/s.
#[test]
fn a_small_receive_buffer_does_not_limit_the_rate() {
    let config = Config { send_buffer: 4096, ..config("reno") };
    let mbps = goodput_of(&config, link(1000.0, 1, 0.0), 2);
    assert!(mbps > 900.0, "{mbps}");
}

/// Half of the packets are lost, and the receiver measures the pauses between retransmissions as
/// packet pairs, as UDT4 does: it estimates 1 Mb/s instead of 3 Gb/s. With this estimate, UDT's law
/// would increase by one packet per second with each acknowledgement.
#[test]
fn a_wrong_capacity_estimate_is_ignored() {
    let config = Config::new(Spec::parse("udt").unwrap());
    let path = Path { delay: Dur::from_millis(1), ..PERFECT };
    let mut pair = Pair::open(&config, 1, path, 7);
    let send = |pair: &mut Pair, bytes: usize| {
        let began = pair.now;
        pair.exchange([&vec![9; bytes], &[]], Dur::from_millis(600_000));
        pair.now.since(began).as_secs()
    };
    pair.capacity = Some(250_000);
    send(&mut pair, 3_000_000);
    (pair.path.loss, pair.capacity) = (0.5, Some(85));
    let lossy = send(&mut pair, 1_000_000);
    pair.path.loss = 0.0;
    let clean = send(&mut pair, 1_000_000);
    println!("{lossy:.1} s with half of all lost, {clean:.1} s without");
    assert!(lossy < 60.0 && clean < 2.0, "{lossy} {clean}");
}

/// A day with bursts, idle times and outages over a lossy path. The timestamps wrap many times.
#[test]
fn a_connection_lives_for_a_day() {
    let path = Path { loss: 0.01, duplicate: 0.01, jitter: Dur::from_millis(3), ..PERFECT };
    let mut pair = Pair::open(&config("udt"), u32::MAX >> 1, path, 4);
    let mut round = 0;
    while pair.now < Time::from_nanos(86_400_000_000_000) {
        let data = [pattern(30_000, round), pattern(9_000, !round)];
        let arrived = pair.exchange([&data[0], &data[1]], Dur::from_millis(120_000));
        assert!(arrived == data, "round {round}");
        if round % 7 == 0 {
            // An outage of 20 s does not end the connection.
            let start = pair.now;
            pair.path.outage = (start, start + Dur::from_millis(20_000));
        }
        pair.run_for(Dur::from_millis(30_000));
        pair.path.outage = (Time::NEVER, Time::NEVER);
        round += 1;
    }
    assert!(pair.ends.iter().all(|end| end.is_open()) && round > 1500, "{round}");
}
