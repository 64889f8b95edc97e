use super::{context, context_at};
use cwnd::laws::Udt;
use cwnd::{Dur, Rate, RateLaw, Report, Signal};

fn udt() -> Udt {
    Udt::new(0.01, 0.01, 1)
}

fn report(arrival: f64, capacity: f64) -> Report {
    let mut report = Report::new(10, 100, Dur::from_millis(100));
    report.arrival = Some(Rate::per_sec(arrival));
    report.capacity = Some(Rate::per_sec(capacity));
    report
}

/// The increase in packets for each SYN.
fn increase(law: &mut Udt, rate: f64, packet: u32) -> f64 {
    let mut cx = context();
    cx.packet = packet;
    (law.tick(Rate::per_sec(rate), &cx).as_per_sec() - rate) * 0.01
}

/// With 10 000 packets/s of 1500 bytes spare, 120 Mb/s: 10^9 * 1.5e-6 / 1500 = 1 packet each SYN.
#[test]
fn the_increase_follows_the_spare_capacity() {
    let mut law = udt();
    law.observe(&report(1000.0, 20_000.0), &context());
    assert!((increase(&mut law, 10_000.0, 1500) - 1.0).abs() < 1e-9);
    // 1 Mb/s spare: 10^6 * 1.5e-6 / 1500 = 0.001, below the least.
    assert!((increase(&mut law, 19_950.0, 1500) - 0.01).abs() < 1e-9);
    assert!((increase(&mut law, 20_001.0, 1500) - 0.01).abs() < 1e-9);
}

/// Below the rate before a decrease the spare capacity is at most a ninth of the capacity: 2222
/// packets/s, 27 Mb/s.
#[test]
fn after_a_decrease_the_increase_is_smaller() {
    let mut law = udt();
    law.observe(&report(1000.0, 20_000.0), &context());
    law.cut(Rate::per_sec(10_000.0), true, Signal::Loss, &context());
    assert!((increase(&mut law, 9000.0, 1500) - 0.1).abs() < 1e-9);
}

#[test]
fn a_period_has_at_most_five_decreases() {
    let mut law = udt();
    let mut rate = Rate::per_sec(1000.0);
    for n in 0..20 {
        rate = law.cut(rate, n == 0, Signal::Loss, &context());
    }
    // The first period has no average: every report decreases the rate.
    assert!((rate.as_per_sec() - 1000.0 / 1.125_f64.powi(5)).abs() < 1e-9);
}

/// After many periods their average is 5, 7/8 of 5 and 1/8 of the five that count: of the reports of
/// a period every d-th decreases the rate, for d from 1 to 5.
#[test]
fn the_spread_of_repeats_follows_the_reports_of_a_period() {
    let mut law = udt();
    let mut found = [0; 6];
    for _ in 0..1000 {
        let cuts = (0..40).filter(|n| {
            law.cut(Rate::per_sec(900.0), *n == 0, Signal::Loss, &context()).as_per_sec() < 900.0
        });
        found[cuts.count()] += 1;
    }
    // The first of a period, and of the next four those that d divides: 4 of them for 1, 2 for 2
    // (the second and the fourth), 1 for 3, 4 and 5.
    assert_eq!(found.iter().sum::<u32>(), 1000);
    assert_eq!((found[0], found[1], found[4]), (0, 0, 0));
    assert!(found[2] > 500 && found[3] > 150 && found[5] > 150, "{found:?}");
}

#[test]
fn slow_start_ends_at_the_arrival_rate_without_a_decrease() {
    let mut law = udt();
    law.observe(&report(1234.0, 20_000.0), &context());
    let now = context_at(7);
    let rate = law.start(500.0, &now);
    assert_eq!(law.cut(rate, true, Signal::Loss, &now), Rate::per_sec(1234.0));
    // Without an arrival rate: 55 packets in 110 ms, and a decrease.
    let mut law = udt();
    let rate = law.start(55.0, &now);
    assert!((rate.as_per_sec() - 500.0).abs() < 1e-9);
    assert!(law.cut(rate, true, Signal::Loss, &now) < rate);
}

/// Packets of half the size: the same increase in bytes, below the rate before a decrease and above
/// it.
#[test]
fn rescaling_keeps_the_bytes() {
    let mut law = udt();
    law.observe(&report(1000.0, 20_000.0), &context());
    law.cut(Rate::per_sec(10_000.0), true, Signal::Loss, &context());
    let below = increase(&mut law, 9999.0, 1500);
    let above = increase(&mut law, 10_001.0, 1500);
    assert!(below < above);
    law.rescale(2.0);
    assert!((increase(&mut law, 19_998.0, 750) - 2.0 * below).abs() < 1e-9);
    assert!((increase(&mut law, 20_002.0, 750) - 2.0 * above).abs() < 1e-9);
    assert_eq!(law.window(&context()), Some(2.0 * 1000.0 * 0.11 + 16.0));
}

#[test]
fn the_flow_window_covers_a_round_trip_and_an_interval() {
    let mut law = udt();
    assert_eq!(law.window(&context()), Some(16.0));
    law.observe(&report(1000.0, 20_000.0), &context());
    assert_eq!(law.window(&context()), Some(126.0));
    // Averages: 7/8 of 1000 and 1/8 of 9000.
    law.observe(&report(9000.0, 20_000.0), &context());
    let mut arrival = f64::NAN;
    RateLaw::gauges(&law, &mut |name, value| {
        if name == "arrival" {
            arrival = value;
        }
    });
    assert_eq!(arrival, 2000.0);
}

/// A seed is that of the connection.
#[test]
fn another_seed_draws_other_decreases() {
    let cuts = |seed| {
        let mut law = Udt::new(0.01, 0.01, seed);
        let cut = |n| law.cut(Rate::per_sec(900.0), n % 8 == 0, Signal::Loss, &context());
        (0..400).map(cut).map(|rate| rate.as_per_sec() < 900.0).collect::<Vec<_>>()
    };
    assert_eq!(cuts(1), cuts(1));
    assert_ne!(cuts(1), cuts(2));
}
