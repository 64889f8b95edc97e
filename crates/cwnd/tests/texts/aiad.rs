use super::gauge;
use crate::common::at;
use cwnd::laws::{Aiad, AiadFilter, AiadRate, Westwood, WestwoodFilter};
use cwnd::{Acked, Context, Dur, Rtt, Signal, Time, WindowLaw};

fn aiad(rate: AiadRate) -> Aiad {
    Aiad::new(rate, 0.5, AiadFilter::Interval)
}

/// An acknowledgement of packets that the receiver got at `received_at` ms.
fn ack(law: &mut impl WindowLaw, now: u64, packets: u32, received_at: Option<u64>) {
    let mut acked = Acked::new(packets, Time::ZERO);
    acked.received_at = received_at.map(at);
    law.observe(&acked, &context(now));
}

fn context(now: u64) -> Context {
    Context::new(at(now), Some(Rtt::first(Dur::from_millis(100))))
}

fn rate(law: &impl WindowLaw) -> f64 {
    gauge(law, "rate")
}

/// 2 tau / D = 2 * 0.5 s / 0.1 s = 10: r = (9 r + b_k + b_(k-1)) / 11, at 20 packets/s.
#[test]
fn the_filter_follows_its_equation() {
    let mut law = aiad(AiadRate::Ack);
    ack(&mut law, 0, 2, None);
    ack(&mut law, 100, 2, None);
    assert!((rate(&law) - 20.0 / 11.0).abs() < 1e-9);
    ack(&mut law, 200, 2, None);
    assert!((rate(&law) - (9.0 * 20.0 / 11.0 + 40.0) / 11.0).abs() < 1e-9);
}

#[test]
fn a_loss_reduces_the_window_to_a_steady_rate() {
    let mut law = aiad(AiadRate::Ack);
    for millis in (0..10_000).step_by(5) {
        ack(&mut law, millis, 1, None);
    }
    assert!((rate(&law) - 200.0).abs() < 1e-6);
    // 200 packets/s in 100 ms.
    assert!((law.cut(50.0, Signal::Loss, &context(0)) - 20.0).abs() < 1e-6);
    // The machine does not increase a smaller window; the threshold is 20.
    assert!((law.cut(15.0, Signal::Timeout, &context(0)) - 20.0).abs() < 1e-6);
    assert_eq!(law.threshold(20.0, Signal::Timeout), Some(20.0));
}

/// Between two samples of 20 packets/s, 600 ms pass: two samples of 0 at 250 ms, each
/// r = (3 r + b_(k-1)) / 5, and one of 2 packets in 100 ms.
#[test]
fn samples_of_zero_lower_the_estimate() {
    let after = |gap: u64| {
        let mut law = aiad(AiadRate::Ack);
        ack(&mut law, 0, 2, None);
        ack(&mut law, 100, 2, None);
        ack(&mut law, 100 + gap, 2, None);
        rate(&law)
    };
    let zeros = |n: i32| (3.0 * 20.0 / 11.0 + 20.0) / 5.0 * 0.6_f64.powi(n - 1);
    assert!((after(600) - (9.0 * zeros(2) + 20.0) / 11.0).abs() < 1e-9);
    // A remainder of 5 ms is added to the second sample.
    assert!((after(505) - (3.0 * zeros(1) + 8.0) / 5.0).abs() < 1e-9);
    assert!((after(255) - (3.0 * 20.0 / 11.0 + 20.0 + 8.0) / 5.0).abs() < 1e-9);
    // Nothing is left of the estimate after 40 s but 4e-7 of it.
    assert!((after(40_100) - (9.0 * zeros(29) + 20.0) / 11.0).abs() < 1e-12);
}

/// Compression of acknowledgements on the reverse path does not affect AIAD_phi.
#[test]
fn the_receivers_clock_is_independent_of_the_reverse_path() {
    let (mut kappa, mut phi) = (aiad(AiadRate::Ack), aiad(AiadRate::Receiver));
    let mut westwood = Westwood::new(0.5, WestwoodFilter::Interval);
    for n in 0..2000_u64 {
        // One packet in 10 ms, but pairs of acknowledgements 1 ms apart.
        let now = 20 * (n / 2) + n % 2 + 40;
        ack(&mut kappa, now, 1, Some(10 * n));
        ack(&mut phi, now, 1, Some(10 * n));
        ack(&mut westwood, now, 1, Some(10 * n));
    }
    assert!((rate(&phi) - 100.0).abs() < 1e-6, "{}", rate(&phi));
    assert!(rate(&kappa) > 200.0, "{}", rate(&kappa));
    assert_eq!(rate(&westwood), rate(&kappa));
}

/// With a clock of 10 ms, the packets of one tick are one sample.
#[test]
fn packets_of_one_tick_are_one_sample() {
    let mut law = aiad(AiadRate::Receiver);
    for n in 0..20_000_u64 {
        ack(&mut law, 2 * n + 50, 1, Some(2 * n / 10 * 10));
    }
    assert!((rate(&law) - 500.0).abs() < 1e-6, "{}", rate(&law));
}

/// Packets of half the size: twice the rate from the same bytes.
#[test]
fn rescaling_doubles_the_estimate() {
    let run = |early: u32, factor: f64| {
        let mut law = aiad(AiadRate::Receiver);
        for millis in (0..1000).step_by(10) {
            ack(&mut law, millis, early, Some(millis));
        }
        // Waits for the next tick of the receiver's clock.
        ack(&mut law, 995, early, Some(990));
        law.rescale(factor);
        for millis in (1000..1200).step_by(10) {
            ack(&mut law, millis, 6, Some(millis));
        }
        rate(&law)
    };
    assert!((run(3, 2.0) - run(6, 1.0)).abs() < 1e-9);
}

#[test]
fn without_an_estimate_it_halves() {
    let mut law = aiad(AiadRate::Receiver);
    assert_eq!(law.cut(30.0, Signal::Loss, &context(0)), 15.0);
}

/// 19/21 of the estimate and 1/21 of two samples, of at most 2 packets each, whatever the interval.
#[test]
fn the_fixed_filter_has_the_gains_of_the_published_code() {
    let mut law = Aiad::new(AiadRate::Ack, 0.5, AiadFilter::Fixed);
    let (mut expected, mut last, mut now) = (0.0, 0.0, 0);
    ack(&mut law, 0, 1, None);
    for (gap, packets) in [(10, 1), (900, 2), (20, 5)] {
        now += gap;
        ack(&mut law, now, packets, None);
        let sample = f64::from(packets.min(2)) / (gap as f64 / 1000.0);
        expected = (19.0 * expected + sample + last) / 21.0;
        last = sample;
        assert!((rate(&law) - expected).abs() < 1e-9, "{} {expected}", rate(&law));
    }
}
