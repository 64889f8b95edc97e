//! **UDT**, the rate control of UDT version 4.
//!
//! Gu, *UDT: UDP-based data transfer protocol*, draft-gg-udt-03 section 6, with the constants and
//! the counts of UDT 4.11. [`Daimd`](super::Daimd) is the rule that the paper analyses.
//!
//! ```text
//! report, SYN after the last: x <- x + inc / SYN, unless a loss report came since
//! inc = max(10^ceil(log10(8 S B)) * 1.5e-6 / S, least), in packets; least where B <= 0
//! B = L - x; at most L / 9 while x is below its value before the last decrease
//! loss report of a new congestion period: x <- x / 1.125, d drawn from 1..average reports a period
//! its next four loss reports: x <- x / 1.125 at each d-th of the period
//! flow window: W = A (RTT + SYN) + 16
//! slow start: ends at x = A, or w / (RTT + SYN) without A
//! ```
//!
//! | symbol | meaning | unit | range | default |
//! |---|---|---|---|---|
//! | `x` | sending rate | packets/s | | |
//! | `A`, `L` | the receiver's arrival rate and link capacity, averaged with gain 1/8 | packets/s | | |
//! | `S` | packet size | bytes | | |
//! | `SYN` (`syn`) | control interval | s | 0.0001s <= syn <= 10s | 10ms |
//! | `least` | least increase in each SYN (draft: 1/S) | packets | 0 < least <= 100 | 0.01 |
//!
//! A congestion period lasts while the packets reported lost were sent before the last decrease.
//!
//! Slow start ends once: at the first loss report or timeout, or at the largest window.
//!
//! Known deviations:
//!
//! * Slow start without an arrival rate ends at the rate w / (RTT + SYN), to which UDT 4.11 sets
//!   the period.
//! * UDT 4.11 rounds periods up to microseconds and averages from 1 packet/s, not from the first
//!   report.
//! * UDT 4.11 draws d from the C library's generator, seeded with the sequence number.
//! * The draft allows five decreases after the first and counts decreases; as in UDT 4.11 the first
//!   five reports count.

use crate::event::Report;
use crate::law::{Clock, Context, RateLaw, Signal};
use crate::random::Random;
use crate::units::{Dur, Rate, Time};
use libm::{ceil, log10, pow};

/// The draft's Beta.
const INCREASE: f64 = 1.5e-6;
/// The factor by which a decrease multiplies the period.
const DECREASE: f64 = 1.125;
/// The draft's constant in the flow window.
const EXTRA_WINDOW: f64 = 16.0;
/// The loss reports of a congestion period that may decrease the rate.
const MAX_REPORTS: u32 = 5;
/// The gain of the running averages.
const GAIN: f64 = 0.125;

/// UDT's rate control: see the [module](self).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Udt {
    syn: Dur,
    least: f64,
    random: Random,
    arrival: Option<Rate>,
    capacity: Option<Rate>,
    /// The rate before the first decrease of the last congestion period.
    before: Rate,
    /// When slow start ended.
    began: Option<Time>,
    /// Loss reports in this congestion period, and their average number in a period.
    reports: u32,
    average: f64,
    /// d: every d-th loss report of the period decreases the rate.
    every: u32,
}

impl Udt {
    /// UDT's rate control with the control interval `syn`, an increase of at least `least` packets
    /// in each, and a `seed` for the spread of its decreases.
    pub const fn new(syn: Dur, least: f64, seed: u64) -> Self {
        Udt {
            syn,
            least,
            random: Random::new(seed),
            arrival: None,
            capacity: None,
            before: Rate::ZERO,
            began: None,
            reports: 0,
            average: 0.0,
            every: 1,
        }
    }

    /// The increase in packets for each SYN, at `rate` with packets of `bytes`.
    pub fn increase(&self, rate: Rate, bytes: u32) -> f64 {
        let capacity = self.capacity.unwrap_or(Rate::ZERO).as_per_sec();
        let x = rate.as_per_sec();
        let slowed = rate < self.before;
        let spare = if slowed { (capacity - x).min(capacity / 9.0) } else { capacity - x };
        if spare <= 0.0 || bytes == 0 {
            return self.least;
        }
        let bits = Rate::per_sec(spare).as_bits(bytes);
        (pow(10.0, ceil(log10(bits))) * INCREASE / f64::from(bytes)).max(self.least)
    }

    fn smoothed_rtt(cx: &Context) -> Dur {
        cx.rtt.map_or(Dur::ZERO, |rtt| rtt.smoothed)
    }
}

/// The running average of a rate, from its first sample on.
fn averaged(average: Option<Rate>, sample: Option<Rate>) -> Option<Rate> {
    match (average, sample) {
        (Some(average), Some(sample)) => {
            Some(Rate::per_sec((1.0 - GAIN) * average.as_per_sec() + GAIN * sample.as_per_sec()))
        }
        (average, sample) => sample.or(average),
    }
}

impl RateLaw for Udt {
    fn clock(&self) -> Clock {
        Clock::Reports
    }

    fn interval(&self) -> Dur {
        self.syn
    }

    fn tick(&mut self, rate: Rate, cx: &Context) -> Rate {
        let inc = Rate::over(self.increase(rate, cx.packet), self.syn);
        Rate::per_sec(rate.as_per_sec() + inc.as_per_sec())
    }

    fn cut(&mut self, rate: Rate, fresh: bool, why: Signal, cx: &Context) -> Rate {
        // A timeout does not change the rate, nor does the loss report that ended slow start at the
        // arrival rate.
        let ended_slow_start = self.began == Some(cx.now) && self.arrival.is_some();
        if why.restarts() || ended_slow_start {
            return rate;
        }
        if fresh {
            self.before = rate;
            self.average = ceil((1.0 - GAIN) * self.average + GAIN * f64::from(self.reports));
            self.every = (ceil(self.average * self.random.unit()) as u32).max(1);
            self.reports = 1;
        } else {
            if self.reports >= MAX_REPORTS {
                return rate;
            }
            self.reports += 1;
            if !self.reports.is_multiple_of(self.every) {
                return rate;
            }
        }
        Rate::per_sec(rate.as_per_sec() / DECREASE)
    }

    fn uses_capacity(&self) -> bool {
        true
    }

    fn observe(&mut self, report: &Report, _cx: &Context) {
        self.arrival = averaged(self.arrival, report.arrival);
        self.capacity = averaged(self.capacity, report.capacity);
    }

    fn window(&self, cx: &Context) -> Option<f64> {
        let arrival = self.arrival.unwrap_or(Rate::ZERO);
        Some(arrival.packets(Udt::smoothed_rtt(cx) + self.syn) + EXTRA_WINDOW)
    }

    fn start(&mut self, w: f64, cx: &Context) -> Rate {
        self.began = Some(cx.now);
        self.arrival.unwrap_or_else(|| Rate::over(w, Udt::smoothed_rtt(cx) + self.syn))
    }

    /// The least increase stays: packets of any size.
    fn rescale(&mut self, factor: f64) {
        let scale = |rate: Rate| Rate::per_sec(rate.as_per_sec() * factor);
        self.arrival = self.arrival.map(scale);
        self.capacity = self.capacity.map(scale);
        self.before = scale(self.before);
    }

    fn gauges(&self, emit: &mut dyn FnMut(&'static str, f64)) {
        emit("arrival", self.arrival.map_or(f64::NAN, Rate::as_per_sec));
        emit("capacity", self.capacity.map_or(f64::NAN, Rate::as_per_sec));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::laws::testing::{at, context};

    fn udt() -> Udt {
        Udt::new(Dur::from_millis(10), 0.01, 1)
    }

    fn report(arrival: f64, capacity: f64) -> Report {
        Report {
            packets: 10,
            sent: 100,
            arrival: Some(Rate::per_sec(arrival)),
            capacity: Some(Rate::per_sec(capacity)),
            rtt: Dur::from_millis(100),
        }
    }

    /// With 10 000 packets/s of 1500 bytes spare, 120 Mb/s: 10^9 * 1.5e-6 / 1500 = 1 packet each
    /// SYN.
    #[test]
    fn the_increase_follows_the_spare_capacity() {
        let mut law = udt();
        law.observe(&report(1000.0, 20_000.0), &context());
        assert!((law.increase(Rate::per_sec(10_000.0), 1500) - 1.0).abs() < 1e-12);
        // 1 Mb/s spare: 10^6 * 1.5e-6 / 1500 = 0.001, below the least.
        assert_eq!(law.increase(Rate::per_sec(19_950.0), 1500), 0.01);
        assert_eq!(law.increase(Rate::per_sec(20_001.0), 1500), 0.01);
        let grown = law.tick(Rate::per_sec(10_000.0), &context());
        assert!((grown.as_per_sec() - 10_100.0).abs() < 1e-9);
    }

    /// Below the rate before a decrease the spare capacity is at most a ninth of the capacity: 2222
    /// packets/s, 27 Mb/s.
    #[test]
    fn after_a_decrease_the_increase_is_smaller() {
        let mut law = udt();
        law.observe(&report(1000.0, 20_000.0), &context());
        law.cut(Rate::per_sec(10_000.0), true, Signal::Loss, &context());
        assert!((law.increase(Rate::per_sec(9000.0), 1500) - 0.1).abs() < 1e-12);
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

    #[test]
    fn the_spread_of_repeats_follows_the_reports_of_a_period() {
        let mut law = udt();
        for n in 0..4000 {
            law.cut(Rate::per_sec(1000.0), n % 40 == 0, Signal::Loss, &context());
        }
        // 7/8 of 5 and 1/8 of the five that count.
        assert_eq!(law.average, 5.0);
        assert!((1..=5).contains(&law.every));
    }

    #[test]
    fn slow_start_ends_at_the_arrival_rate_without_a_decrease() {
        let mut law = udt();
        law.observe(&report(1234.0, 20_000.0), &context());
        let now = at(Time::from_nanos(7));
        let rate = law.start(500.0, &now);
        assert_eq!(law.cut(rate, true, Signal::Loss, &now), Rate::per_sec(1234.0));
        // Without an arrival rate: 55 packets in 110 ms, and a decrease.
        let mut law = udt();
        let rate = law.start(55.0, &now);
        assert!((rate.as_per_sec() - 500.0).abs() < 1e-9);
        assert!(law.cut(rate, true, Signal::Loss, &now) < rate);
    }

    /// Packets of half the size: the same increase in bytes, below the rate before a decrease and
    /// above it.
    #[test]
    fn rescaling_keeps_the_bytes() {
        let mut law = udt();
        law.observe(&report(1000.0, 20_000.0), &context());
        law.cut(Rate::per_sec(10_000.0), true, Signal::Loss, &context());
        let below = law.increase(Rate::per_sec(9999.0), 1500);
        let above = law.increase(Rate::per_sec(10_001.0), 1500);
        assert!(below < above);
        law.rescale(2.0);
        assert!((law.increase(Rate::per_sec(19_998.0), 750) - 2.0 * below).abs() < 1e-12);
        assert!((law.increase(Rate::per_sec(20_002.0), 750) - 2.0 * above).abs() < 1e-12);
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
        assert_eq!(law.arrival, Some(Rate::per_sec(2000.0)));
    }
}
