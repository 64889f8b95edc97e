//! The time by limiting cause: it is attributed correctly and adds up to the time since the
//! connection opened.

use crate::common::{PERFECT, Pair, Path, config};
use cwnd::{Dur, Limit, Time};
use cwnd_udt::{Config, Counters};

const LIMITS: [&str; 5] = ["window", "pacing", "receiver", "application", "processor"];

fn shares(counters: &Counters) -> [u64; 5] {
    [
        counters.us_limited_window,
        counters.us_limited_pacing,
        counters.us_limited_receiver,
        counters.us_limited_application,
        counters.us_limited_processor,
    ]
}

/// A connected pair, and the time at which its first end opened.
fn pair(config: &Config, path: Path) -> (Pair, Time) {
    let mut pair = Pair::connecting([config, config], 1, path, 1);
    while !pair.ends[0].is_open() {
        assert!(pair.step());
    }
    let opened = pair.now;
    (pair.connect(), opened)
}

/// The first end sends as much as possible for `span`; the second one reads if `reads`.
fn send(pair: &mut Pair, span: Dur, reads: bool) {
    let end = pair.now + span;
    let mut buffer = vec![0; 1 << 16];
    while pair.now < end {
        while pair.ends[0].write(&buffer).unwrap() > 0 {}
        while reads && pair.ends[1].read(pair.now, &mut buffer).unwrap() > 0 {}
        assert!(pair.step());
    }
}

/// The times since the last call. Asserts that the total adds up to the time since the first end
/// opened.
fn interval(pair: &mut Pair, opened: Time) -> [u64; 5] {
    let stats = pair.ends[0].stats(pair.now, true);
    let micros = pair.now.since(opened).as_nanos() / 1000;
    assert_eq!(shares(&stats.total).iter().sum::<u64>(), micros);
    shares(&stats.interval)
}

/// Asserts that `limit` has at least the share `least` of the time.
fn assert_mostly(shares: [u64; 5], limit: &str, least: f64) {
    let of = LIMITS.iter().position(|name| *name == limit).unwrap();
    let share = shares[of] as f64 / shares.iter().sum::<u64>() as f64;
    assert!(share >= least, "{limit}: {share} of {shares:?}");
}

#[test]
fn a_slow_link_limits_by_the_window() {
    // 10 Mb/s with a queue of 30 packets.
    let narrow = Path { nanos_per_byte: 800.0, queue: 45_000.0, ..PERFECT };
    let (mut pair, opened) = pair(&config("reno"), narrow);
    send(&mut pair, Dur::from_millis(2000), true);
    assert_mostly(interval(&mut pair, opened), "window", 0.9);
    pair.run_for(Dur::from_millis(10_000));
    assert_mostly(interval(&mut pair, opened), "application", 0.95);
}

#[test]
fn a_rate_limit_limits_by_pacing() {
    let config = Config { rate_limit: Some(2e6), ..config("reno") };
    let (mut pair, opened) = pair(&config, PERFECT);
    send(&mut pair, Dur::from_millis(2000), true);
    assert_mostly(interval(&mut pair, opened), "pacing", 0.97);
}

#[test]
fn a_peer_that_does_not_read_limits_by_its_window() {
    let (mut pair, opened) = pair(&config("reno"), PERFECT);
    send(&mut pair, Dur::from_millis(2000), false);
    assert_eq!(pair.ends[0].limit(), Limit::Receiver);
    assert_mostly(interval(&mut pair, opened), "receiver", 0.95);
}

#[test]
fn an_idle_sender_is_limited_by_the_application() {
    let (mut pair, opened) = pair(&config("udt"), PERFECT);
    pair.run_for(Dur::from_millis(3000));
    let idle = interval(&mut pair, opened);
    assert_eq!(idle[3], idle.iter().sum::<u64>());
    assert!(idle[3] >= 3_000_000);
}

/// Of a delay of 50 ms the pacer compensates 5 ms; the next packet is due after up to 6 ms.
#[test]
fn a_late_driver_limits_by_the_processor() {
    let config = Config { rate_limit: Some(2e6), ..config("reno") };
    let (mut pair, opened) = pair(&config, PERFECT);
    send(&mut pair, Dur::from_millis(500), true);
    interval(&mut pair, opened);
    for _ in 0..10 {
        pair.now += Dur::from_millis(50);
        send(&mut pair, Dur::from_millis(50), true);
    }
    let processor = interval(&mut pair, opened)[4];
    assert!((390_000..=450_000).contains(&processor), "{processor}");
}

/// The processor is the limit from the acknowledgement that opens the window to the next poll.
#[test]
fn an_open_window_is_not_the_limit() {
    let (mut pair, opened) = pair(&config("reno"), PERFECT);
    pair.ends[0].write(&vec![1; 100_000]).unwrap();
    pair.step();
    assert_eq!(pair.ends[0].limit(), Limit::Window);
    pair.stalled = Some(0);
    pair.run_for(Dur::from_millis(17));
    // The acknowledgement arrived after the path's round-trip time of 10 ms.
    let late = pair.now.since(opened).as_nanos() / 1000 - 10_000;
    pair.stalled = None;
    pair.step();
    let [window, pacing, receiver, application, processor] = interval(&mut pair, opened);
    assert_eq!((processor, pacing, receiver, application), (late, 0, 0, 0));
    assert!((10_000..20_000).contains(&window), "{window}");
}

/// A delay of 1 ms on a path with a round-trip time of 50 ms is not attributed to the processor.
#[test]
fn a_short_delay_is_not_attributed_to_the_processor() {
    let path = Path { delay: Dur::from_millis(25), ..PERFECT };
    let (mut pair, opened) = pair(&config("reno(start=standard)"), path);
    pair.ends[0].write(&vec![1; 300_000]).unwrap();
    for _ in 0..100 {
        pair.stalled = Some(0);
        pair.step();
        pair.now += Dur::from_millis(1);
        pair.stalled = None;
        pair.step();
    }
    assert_eq!(interval(&mut pair, opened)[4], 0);
}

/// The time in which the last packets of the data are sent is not attributed to the application.
#[test]
fn sending_time_is_attributed_to_the_processor() {
    let (mut pair, opened) = pair(&config("reno"), PERFECT);
    interval(&mut pair, opened);
    let polled = pair.now;
    pair.ends[0].write(&[1; 10_000]).unwrap();
    pair.step();
    pair.ends[0].transmit_finished(polled, polled + Dur::from_millis(3));
    let sent = pair.now;
    // Sending acknowledgements does not count.
    pair.now += Dur::from_millis(3);
    pair.ends[0].transmit_finished(sent, pair.now);
    let shares = interval(&mut pair, opened);
    assert_eq!(shares[4], 3_000, "{shares:?}");
    assert!(shares[3] >= 3_000 && shares[..3] == [0; 3], "{shares:?}");
}

#[test]
fn times_stop_when_the_connection_ends() {
    let (mut pair, opened) = pair(&config("udt"), PERFECT);
    pair.run_for(Dur::from_millis(10));
    pair.ends[0].abort(pair.now);
    let before = interval(&mut pair, opened);
    pair.run_for(Dur::from_millis(1000));
    assert_eq!(shares(&pair.ends[0].stats(pair.now, true).interval), [0; 5]);
    assert!(before[3] > 0);
}
