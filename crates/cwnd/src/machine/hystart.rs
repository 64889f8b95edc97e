//! HyStart++ (RFC 9406), and its extension by trains of acknowledgements.

use super::slow_start::{Growth, SlowStartLaw};
use crate::event::Acked;
use crate::law::Context;
use crate::rtt::Rtt;
use crate::units::{Dur, Time};

// The constants of RFC 9406 section 4.3. The machine applies L, of which a driver decides by
// `Settings::slow_start_limit`.

/// The packets by which one acknowledgement opens the window at most, without pacing.
pub(super) const L: f64 = 8.0;
/// The least rise of the round-trip time that ends slow start.
const MIN_RTT_THRESH: Dur = Dur::from_millis(4);
/// A rise of the round-trip time that ends slow start on any path.
const MAX_RTT_THRESH: Dur = Dur::from_millis(16);
/// Between the two, the rise that ends slow start is this part of the round-trip time.
const MIN_RTT_DIVISOR: u64 = 8;
/// The round-trip time samples of a round before its minimum counts.
const N_RTT_SAMPLE: u32 = 8;
/// Conservative slow start grows the window by this part of slow start's growth.
const CSS_GROWTH_DIVISOR: f64 = 4.0;
/// The rounds after which conservative slow start becomes congestion avoidance.
const CSS_ROUNDS: u32 = 5;

/// The longest gap between two acknowledgements of a train (HyStart).
const TRAIN_GAP: Dur = Dur::from_millis(2);

/// Conservative slow start.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Css {
    /// The smallest round-trip time of the round in which it began (cssBaselineMinRtt).
    baseline: Dur,
    /// The rounds that have ended since, with the partial round in which it began.
    rounds: u32,
}

/// HyStart++ (RFC 9406 section 4.2). [`Dur::MAX`] is its infinity.
///
/// A round ends when a packet sent since its beginning is acknowledged, as windowEnd, the RFC's
/// next sequence number, is the first byte of that packet. The first round thus ends with the first
/// acknowledgement. The samples of acknowledgements for which no window may grow, such as
/// duplicates with SACK blocks, do not count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct HyStart {
    round_began: Time,
    last_round_min: Dur,
    round_min: Dur,
    samples: u32,
    css: Option<Css>,
}

impl HyStart {
    pub(super) fn new() -> Self {
        HyStart {
            round_began: Time::ZERO,
            last_round_min: Dur::MAX,
            round_min: Dur::MAX,
            samples: 0,
            css: None,
        }
    }

    /// Adds a round-trip time sample; begins or ends conservative slow start by the minimum of the
    /// round.
    fn sample(&mut self, rtt: Option<Dur>) {
        if let Some(rtt) = rtt {
            self.round_min = self.round_min.min(rtt);
            self.samples += 1;
        }
        if self.samples < N_RTT_SAMPLE || self.round_min == Dur::MAX {
            return;
        }
        match self.css {
            None if self.last_round_min != Dur::MAX => {
                let part = Dur::from_nanos(self.last_round_min.as_nanos() / MIN_RTT_DIVISOR);
                let rise = part.clamp(MIN_RTT_THRESH, MAX_RTT_THRESH);
                if self.round_min >= self.last_round_min + rise {
                    self.begin_css(self.round_min);
                }
            }
            Some(css) if self.round_min < css.baseline => self.css = None,
            _ => {}
        }
    }

    fn begin_css(&mut self, baseline: Dur) {
        self.css = Some(Css { baseline, rounds: 0 });
    }

    /// Ends the round if a packet sent since its beginning is acknowledged; returns whether it
    /// ended.
    fn end_round(&mut self, now: Time, sent_at: Time) -> bool {
        let ended = sent_at >= self.round_began;
        if ended {
            self.round_began = now;
            self.last_round_min = self.round_min;
            self.round_min = Dur::MAX;
            self.samples = 0;
            if let Some(css) = &mut self.css {
                css.rounds += 1;
            }
        }
        ended
    }

    fn divisor(&self) -> f64 {
        if self.css.is_some() { CSS_GROWTH_DIVISOR } else { 1.0 }
    }

    /// Whether congestion avoidance begins.
    fn done(&self) -> bool {
        self.css.is_some_and(|css| css.rounds >= CSS_ROUNDS)
    }
}

impl SlowStartLaw for HyStart {
    fn grow(&mut self, w: f64, credit: f64, acked: &Acked, cx: &Context) -> Growth {
        // The phase in which the acknowledgement arrives decides on its growth.
        let window = w + credit / self.divisor();
        self.sample(acked.rtt);
        self.end_round(cx.now, acked.sent_at);
        Growth { window, done: self.done() }
    }
}

/// HyStart++ that also begins conservative slow start when an unbroken train of acknowledgements
/// has lasted for half of the smallest round-trip time (Ha and Rhee, Hybrid Slow Start for
/// High-Bandwidth and Long-Distance Networks, 2008).
///
/// It does not observe acknowledgements for which the window may not grow, and the acknowledgement
/// that begins conservative slow start already grows the window conservatively.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct HyStartTrain {
    hystart: HyStart,
    /// The last acknowledgement of the train that began with the round.
    end: Time,
}

impl HyStartTrain {
    pub(super) fn new() -> Self {
        HyStartTrain { hystart: HyStart::new(), end: Time::ZERO }
    }

    /// Whether the acknowledgements of this round have come without a gap for half of the smallest
    /// round-trip time: the packets in flight then fill half of the path. On paths shorter than
    /// twice [`MIN_RTT_THRESH`] a train has to last for that threshold.
    fn train(&mut self, now: Time, rtt: Option<Rtt>) -> bool {
        if now.since(self.end) > TRAIN_GAP {
            return false;
        }
        self.end = now;
        let half = |rtt: Rtt| Dur::from_nanos(rtt.min.as_nanos() / 2).max(MIN_RTT_THRESH);
        rtt.is_some_and(|rtt| now.since(self.hystart.round_began) >= half(rtt))
    }
}

impl SlowStartLaw for HyStartTrain {
    fn grow(&mut self, w: f64, credit: f64, acked: &Acked, cx: &Context) -> Growth {
        if credit == 0.0 {
            return Growth { window: w, done: false };
        }
        self.hystart.sample(acked.rtt);
        if self.train(cx.now, cx.rtt) && self.hystart.css.is_none() {
            // No round-trip time is below this baseline: conservative slow start lasts its rounds.
            self.hystart.begin_css(Dur::ZERO);
        }
        if self.hystart.end_round(cx.now, acked.sent_at) {
            self.end = cx.now;
        }
        Growth { window: w + credit / self.hystart.divisor(), done: self.hystart.done() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{at_ms, ms, sampled};
    use alloc::vec::Vec;

    const MS: Dur = ms(1);

    /// A slow start that processes one acknowledgement each millisecond.
    struct Bench<H> {
        law: H,
        now: Time,
    }

    impl Bench<HyStart> {
        /// After the first round, whose single sample is `rtt`.
        fn new(rtt: Dur) -> Self {
            let mut bench = Bench { law: HyStart::new(), now: at_ms(1000) };
            bench.ack(Some(rtt), Time::ZERO);
            bench
        }

        /// The growth by an acknowledgement of one packet.
        fn ack(&mut self, rtt: Option<Dur>, sent_at: Time) -> f64 {
            self.now += MS;
            let acked = Acked { rtt, ..Acked::new(1, sent_at) };
            let cx = Context::new(self.now, rtt.map(Rtt::first));
            self.law.grow(0.0, 1.0, &acked, &cx).window
        }

        /// `count` acknowledgements within the round; the growth of each.
        fn within(&mut self, count: u32, rtt: Dur) -> Vec<f64> {
            (0..count).map(|_| self.ack(Some(rtt), Time::ZERO)).collect()
        }

        /// A round of ten acknowledgements; whether slow start is over after it.
        fn round(&mut self, rtt: Dur) -> bool {
            self.within(9, rtt);
            self.ack(Some(rtt), self.law.round_began);
            self.law.done()
        }

        /// The first round, one of 100 ms, and the beginning of one of 120 ms that begins
        /// conservative slow start.
        fn in_css() -> Self {
            let mut bench = Bench::new(ms(100));
            bench.round(ms(100));
            bench.within(8, ms(120));
            assert_eq!(bench.law.css, Some(Css { baseline: ms(120), rounds: 0 }));
            bench
        }
    }

    /// Section 4.2: "When windowEnd is ACKed, the current round ends and windowEnd is set to
    /// SND.NXT"; each round starts with "lastRoundMinRTT = currentRoundMinRTT, currentRoundMinRTT =
    /// infinity, rttSampleCount = 0".
    #[test]
    fn a_round_ends_with_the_first_packet_sent_in_it() {
        let mut bench = Bench::new(ms(100));
        let began = bench.now;
        assert_eq!((bench.law.round_began, bench.law.last_round_min), (began, ms(100)));
        bench.within(3, ms(90));
        bench.ack(Some(ms(80)), began - Dur::from_nanos(1));
        assert_eq!((bench.law.round_began, bench.law.samples), (began, 4));
        bench.ack(Some(ms(85)), began);
        assert_eq!((bench.law.round_began, bench.law.samples), (bench.now, 0));
        assert_eq!((bench.law.last_round_min, bench.law.round_min), (ms(80), Dur::MAX));
    }

    /// Section 4.2: "currentRoundMinRTT = min(currentRoundMinRTT, currRTT), rttSampleCount += 1".
    #[test]
    fn a_round_has_the_minimum_of_its_samples() {
        let mut bench = Bench::new(ms(100));
        for rtt in [Some(ms(110)), None, Some(ms(95)), Some(ms(105)), None] {
            bench.ack(rtt, Time::ZERO);
        }
        assert_eq!((bench.law.round_min, bench.law.samples), (ms(95), 3));
    }

    /// Section 4.2: RttThresh = max(MIN_RTT_THRESH, min(lastRoundMinRTT / MIN_RTT_DIVISOR,
    /// MAX_RTT_THRESH)).
    #[test]
    fn a_rise_of_an_eighth_within_bounds_ends_slow_start() {
        for (last, rise) in [(10, 4), (32, 4), (80, 10), (128, 16), (500, 16)] {
            let [last, rise] = [last, rise].map(ms);
            let mut below = Bench::new(last);
            below.round(last);
            below.within(9, last + rise - Dur::from_nanos(1));
            assert_eq!(below.law.css, None, "{last:?}");
            let mut at = Bench::new(last);
            at.round(last);
            at.within(9, last + rise);
            assert_eq!(at.law.css, Some(Css { baseline: last + rise, rounds: 0 }), "{last:?}");
        }
    }

    /// Section 4.2: only "for rounds where at least N_RTT_SAMPLE RTT samples have been obtained";
    /// an acknowledgement without a sample does not count.
    #[test]
    fn slow_start_continues_for_eight_samples_of_a_round() {
        let mut bench = Bench::new(ms(100));
        bench.round(ms(100));
        bench.within(7, ms(150));
        bench.ack(None, Time::ZERO);
        assert_eq!(bench.law.css, None);
        bench.ack(Some(ms(150)), Time::ZERO);
        assert!(bench.law.css.is_some());
    }

    /// Section 4.2: only if "lastRoundMinRTT != infinity": a round without samples is no
    /// comparison.
    #[test]
    fn slow_start_continues_after_a_round_without_samples() {
        let mut bench = Bench::new(ms(100));
        bench.ack(None, bench.law.round_began);
        assert_eq!(bench.law.last_round_min, Dur::MAX);
        bench.within(20, ms(500));
        assert_eq!(bench.law.css, None);
    }

    /// Section 4.2: "cwnd = cwnd + min(N, L * SMSS)" for each acknowledgement that arrives in slow
    /// start, and a CSS_GROWTH_DIVISOR-th of it for each that arrives in conservative slow start.
    #[test]
    fn conservative_slow_start_grows_by_a_quarter() {
        let mut bench = Bench::new(ms(100));
        bench.round(ms(100));
        assert_eq!(bench.within(8, ms(120)), [1.0; 8]);
        assert_eq!(bench.within(2, ms(120)), [0.25; 2]);
    }

    /// Section 4.2: "if (currentRoundMinRTT < cssBaselineMinRtt) cssBaselineMinRtt = infinity,
    /// resume slow start including HyStart++", after N_RTT_SAMPLE samples.
    #[test]
    fn a_round_trip_time_below_the_baseline_resumes_slow_start() {
        let mut bench = Bench::in_css();
        // As large as the baseline: not below it.
        bench.round(ms(120));
        bench.round(ms(120));
        assert_eq!(bench.law.css, Some(Css { baseline: ms(120), rounds: 2 }));
        assert_eq!(bench.within(8, ms(119)), [0.25; 8]);
        assert_eq!(bench.law.css, None);
        assert_eq!(bench.within(1, ms(119)), [1.0]);
        // Slow start ends again by the same rule, and its rounds are counted anew.
        bench.round(ms(119));
        bench.within(8, ms(140));
        assert_eq!(bench.law.css, Some(Css { baseline: ms(140), rounds: 0 }));
    }

    /// The same in the round in which conservative slow start began.
    #[test]
    fn slow_start_may_resume_in_the_same_round() {
        let mut bench = Bench::in_css();
        bench.within(1, ms(119));
        assert_eq!(bench.law.css, None);
    }

    /// Section 4.2: "CSS lasts at most CSS_ROUNDS rounds. If the transition into CSS happens in the
    /// middle of a round, that partial round counts towards the limit."
    #[test]
    fn conservative_slow_start_lasts_five_rounds() {
        let mut bench = Bench::in_css();
        let over: Vec<bool> = (0..5).map(|_| bench.round(ms(120))).collect();
        assert_eq!(over, [false, false, false, false, true]);
    }

    /// A round of 80 ms of acknowledgements `apart`, 100 ms after the packets left: when
    /// conservative slow start has begun.
    fn css_after(apart: Dur, rtt: Dur) -> Option<Dur> {
        let mut law = HyStartTrain::new();
        let began = at_ms(1000);
        let mut now = began;
        while now.since(began) < ms(80) {
            let sent_at = if now == began { now } else { Time::ZERO };
            let acked = Acked { rtt: Some(rtt), ..Acked::new(1, sent_at) };
            let growth = law.grow(0.0, 1.0, &acked, &Context::new(now, Some(Rtt::first(rtt))));
            assert!(!growth.done);
            if law.hystart.css.is_some() {
                assert_eq!(growth.window, 0.25);
                return Some(now.since(began));
            }
            now += apart;
        }
        None
    }

    #[test]
    fn a_train_of_half_a_round_trip_begins_conservative_slow_start() {
        assert_eq!(css_after(MS, ms(100)), Some(ms(50)));
        // A gap ends the train.
        assert_eq!(css_after(ms(3), ms(100)), None);
        // On a short path the train has to last for four milliseconds.
        assert_eq!(css_after(MS, MS), Some(ms(4)));
    }

    /// HyStart++ itself has no rule for trains.
    #[test]
    fn only_the_extension_answers_a_train() {
        let mut bench = Bench::new(ms(100));
        assert_eq!(bench.within(80, ms(100)), [1.0; 80]);
    }

    /// No round-trip time ends the conservative slow start of a train.
    #[test]
    fn the_conservative_slow_start_of_a_train_lasts_its_rounds() {
        let mut law = HyStartTrain::new();
        law.hystart.begin_css(Dur::ZERO);
        for n in 1..=CSS_ROUNDS {
            let now = at_ms(100 * u64::from(n));
            let cx = Context::new(now, Some(Rtt::first(ms(1))));
            assert_eq!(law.grow(0.0, 1.0, &sampled(1, now, ms(1)), &cx).done, n == CSS_ROUNDS);
        }
    }

    /// A train in a later round of conservative slow start does not count its rounds anew.
    #[test]
    fn a_train_begins_conservative_slow_start_once() {
        let mut law = HyStartTrain::new();
        let css = Some(Css { baseline: Dur::ZERO, rounds: 3 });
        law.hystart.css = css;
        (law.hystart.round_began, law.end) = (at_ms(100), at_ms(149));
        let cx = Context::new(at_ms(150), Some(Rtt::first(ms(100))));
        law.grow(0.0, 1.0, &Acked::new(1, Time::ZERO), &cx);
        assert_eq!((law.hystart.css, law.end), (css, cx.now));
    }

    #[test]
    fn a_train_has_no_acknowledgements_of_an_unused_window() {
        let mut law = HyStartTrain::new();
        let cx = Context::new(at_ms(1), Some(Rtt::first(ms(1))));
        let growth = law.grow(10.0, 0.0, &Acked::new(1, Time::ZERO), &cx);
        assert_eq!((growth, law), (Growth { window: 10.0, done: false }, HyStartTrain::new()));
    }
}
