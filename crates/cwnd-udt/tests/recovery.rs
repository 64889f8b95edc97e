//! Retransmissions after losses and timeouts.

use crate::common::{PERFECT, Pair, Path, config};
use cwnd::{Dur, Event, Spec};
use cwnd_udt::{Config, Counters};

/// 100 Mb/s, 100 ms, a queue of one bandwidth-delay product.
const LINK: Path =
    Path { delay: Dur::from_millis(50), nanos_per_byte: 80.0, queue: 1_250_000.0, ..PERFECT };

/// Runs a bulk transfer of 20 s over [`LINK`], with random `loss` after the first 5 s. Returns the
/// sender's counters, and the goodput of the last 15 s in megabits per second.
fn transfer(config: &Config, loss: f64) -> (Counters, f64) {
    let mut pair = Pair::open(config, 1, LINK, 3);
    pair.most = 64;
    let half = pair.now + Dur::from_secs(5.0);
    let end = half + Dur::from_secs(15.0);
    let (data, mut buffer) = (vec![9; 1 << 16], vec![0; 1 << 20]);
    let mut arrived = 0;
    while pair.now < end {
        if pair.ends[0].room() > 0 {
            pair.ends[0].write(&data).unwrap();
        }
        let count = pair.ends[1].read(pair.now, &mut buffer).unwrap();
        if pair.now > half {
            pair.path.loss = loss;
            arrived += count;
        }
        assert!(pair.step());
    }
    let stats = pair.ends[0].stats(pair.now, false);
    let mbps = arrived as f64 * 8e-6 / 15.0;
    println!(
        "{}: {mbps:.1} Mb/s, {} again, {} lost, {} timeouts, {} duplicates",
        config.controller,
        stats.total.pkt_retrans,
        stats.total.pkt_snd_loss,
        stats.total.timeouts,
        pair.ends[1].counters().pkt_duplicate,
    );
    let total = stats.total;
    println!(
        "limits in ms: window {}, pacing {}, receiver {}, application {}, processor {}",
        total.us_limited_window / 1000,
        total.us_limited_pacing / 1000,
        total.us_limited_receiver / 1000,
        total.us_limited_application / 1000,
        total.us_limited_processor / 1000,
    );
    (stats.total, mbps)
}

/// HyStart++ ends slow start before many packets are lost. Linux's CUBIC retransmits 500 to 560
/// packets on this path.
#[test]
fn window_laws_use_hystart() {
    for law in ["cubic", "reno"] {
        let (counters, mbps) = transfer(&Config::new(Spec::parse(law).unwrap()), 0.0);
        assert!(counters.pkt_retrans <= 560, "{law}: {}", counters.pkt_retrans);
        assert!(counters.timeouts == 0 && mbps > 85.0, "{law}: {mbps}");
    }
}

/// After an overshoot of a whole window, retransmissions respect the window: nearly all arrive, and
/// none is spurious. CUBIC also keeps 0.7 of the window in slow start (RFC 9438 section 4.6), which
/// overflows the queue once more.
#[test]
fn an_overshoot_is_repaired_within_the_window() {
    for (law, most) in [("reno(start=standard)", 2000), ("cubic(start=standard)", 5000)] {
        let (counters, mbps) = transfer(&Config::new(Spec::parse(law).unwrap()), 0.0);
        assert!(counters.pkt_retrans > 800, "{law}: {counters:?}");
        assert!(counters.pkt_retrans < most, "{law}: {counters:?}");
        assert!(counters.pkt_retrans <= counters.pkt_snd_loss, "{law}: {counters:?}");
        assert!(counters.timeouts == 0 && mbps > 85.0, "{law}: {counters:?}");
    }
}

/// One packet is always lost. A timeout retransmits it, but not the later packets that the receiver
/// has reported.
#[test]
fn a_timeout_retransmits_only_missing_packets() {
    for law in ["reno", "udt"] {
        let mut pair = Pair::open(&config(law), 1, PERFECT, 1);
        pair.exchange([&[1; 100_000], &[]], Dur::from_millis(1000));
        let first = 1 + pair.ends[0].counters().pkt_sent as u32;
        pair.hole = Some(first + 3);
        pair.ends[0].write(&[2; 200_000]).unwrap();
        pair.run_for(Dur::from_millis(1000));
        // All other packets have arrived and were reported. From now on, loss reports and
        // retransmissions are lost.
        pair.path.outage = (pair.now, pair.now + Dur::from_millis(1500));
        pair.run_for(Dur::from_millis(1600));
        let counters = *pair.ends[0].counters();
        assert!(counters.timeouts >= 1, "{law}: {counters:?}");
        assert_eq!(pair.ends[1].counters().pkt_duplicate, 0, "{law}");
        pair.hole = None;
        pair.run_for(Dur::from_millis(2000));
        assert_eq!(pair.ends[0].unacknowledged(), 0, "{law}");
        assert_eq!(pair.ends[1].counters().pkt_duplicate, 0, "{law}");
    }
}

/// The packet of a timeout is the declared lost one that was sent last: here a retransmission, not
/// the last packet.
#[test]
fn a_timeout_reports_the_packets_that_it_declares_lost() {
    let config = Config { record: true, ..config("reno") };
    let mut pair = Pair::open(&config, 1, PERFECT, 1);
    pair.exchange([&[1; 100_000], &[]], Dur::from_millis(1000));
    let written = pair.now;
    pair.hole = Some(1 + pair.ends[0].counters().pkt_sent as u32 + 3);
    pair.ends[0].write(&[2; 10_000]).unwrap();
    pair.run_for(Dur::from_millis(1000));
    pair.path.outage = (pair.now, pair.now + Dur::from_millis(1500));
    while pair.ends[0].counters().timeouts < 1 {
        assert!(pair.step());
    }
    let entries = &pair.ends[0].record().unwrap().entries;
    let lost = entries.iter().find_map(|entry| match entry.event {
        Event::Timeout(lost) => Some(lost),
        _ => None,
    });
    let lost = lost.unwrap();
    // The missing packet, and the three that no report says to have arrived.
    assert_eq!(lost.packets, 4);
    assert!(lost.sent_at > written + Dur::from_millis(500), "{lost:?}");
}

/// After an outage, a window law starts with one packet per round trip and doubles.
#[test]
fn retransmissions_after_a_timeout_respect_the_window() {
    let mut pair = Pair::open(&config("reno"), 1, PERFECT, 1);
    pair.exchange([&[1; 300_000], &[]], Dur::from_millis(2000));
    let began = pair.now;
    pair.path.outage = (began, began + Dur::from_millis(1500));
    pair.ends[0].write(&[2; 200_000]).unwrap();
    while pair.ends[0].counters().timeouts < 2 {
        assert!(pair.step());
    }
    let window = |pair: &mut Pair| pair.ends[0].stats(pair.now, false).pkt_congestion_window;
    assert_eq!(window(&mut pair), 1.0);
    let mut before = pair.ends[0].counters().pkt_sent;
    for round in 0..4 {
        pair.run_for(Dur::from_millis(10));
        let sent = pair.ends[0].counters().pkt_sent - before;
        assert!(sent <= 2 << round, "{sent} packets in round {round}");
        before += sent;
    }
    pair.run_for(Dur::from_millis(2000));
    assert_eq!(pair.ends[0].unacknowledged(), 0);
    // No retransmission is spurious.
    assert_eq!(pair.ends[1].counters().pkt_duplicate, 0);
}

/// Loss recovery does not reduce the rate at 1 % random loss: a law with a negligible decrease
/// keeps the path full.
#[test]
fn a_law_that_ignores_loss_fills_a_lossy_path() {
    let config = Config {
        // 1.5 bandwidth-delay products: more would overflow the queue.
        flow_window: 1250,
        ..Config::new(Spec::parse("aimd(100, 0.000001)").unwrap())
    };
    let (counters, mbps) = transfer(&config, 0.01);
    println!("{counters:?}");
    assert_eq!(counters.timeouts, 0);
    assert!(mbps > 90.0, "{mbps}");
    assert!(counters.pkt_retrans < counters.pkt_sent / 50, "{counters:?}");
}
