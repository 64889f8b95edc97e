//! **DAIMD**, additive increase that decreases with the rate, multiplicative decrease.
//!
//! Gu, Hong and Grossman, *An analysis of AIMD algorithm with decreasing increases*: the rate
//! control of UDT as that paper analyses it.
//!
//! ```text
//! each SYN with ACKs and no loss: x <- x + 10^(ceil(log10(L - C(x))) - tau) * 1500/S * 1/SYN    (8)
//! at each negative feedback: x <- (1 - beta) x                                                  (2)
//! delay = on: a rising round-trip time is a negative feedback                            (section II)
//! feedback = event: each congestion event
//! feedback = packet: each lost packet: x <- (1 - beta)^n x for n of them                        (3)
//! feedback = syn: the first loss report in a SYN                                                (4)
//! feedback = report: each loss report                                                           (2)
//! flow window, at each report: W <- lambda W + (1 - lambda) AS (SYN + RTT)                     (21)
//! ```
//!
//! | symbol | meaning | unit | range | default |
//! |---|---|---|---|---|
//! | `x` | sending rate | packets/s | | |
//! | `C(x)` | the same rate, 8 S x | bit/s | | |
//! | `tau` | protocol parameter: powers of ten by which the increase is below L - C(x) | | 3 <= tau <= 15 | 9 |
//! | `beta` | reduction at a negative feedback as a fraction of the rate: the period grows by 1/8 | | 0 < beta < 1 | 1/9 |
//! | `SYN` (`syn`) | control interval | s | 0.0001s <= syn <= 10s | 10ms |
//! | `L` (`capacity`) | link capacity; 0 takes the receiver's estimate | bit/s | 0bit <= capacity <= 1000000gbit | 0 |
//! | `lambda` | weight of the old window in the moving average; 1: no flow window | | 0 <= lambda <= 1 | 7/8 |
//! | `feedback` | events that are one negative feedback | | event, packet, syn, report | event |
//! | `delay` | whether a rising round-trip time is a negative feedback too | | on or off | on |
//! | `S` | packet size | bytes | | |
//! | `AS` | packet arrival rate at the receiver | packets/s | | |
//!
//! Friendly to TCP if RTT^2 L <= SYN^2 10^8 / 6 (20).
//!
//! Slow start ends once: at the first loss report or timeout, or at the largest window.
//!
//! Negative feedback. Section II reduces the rate "for any negative feedback" (2) and counts the
//! feedbacks of an interval in (1 - beta)^n; (3) takes n as the packets lost in the interval, (4)
//! assumes that n is at most 1. These are three different laws if losses come in bursts. The
//! paper's tables are UDT's, which reduces the rate once in each congestion event and then at
//! growing intervals (UDT's library of February 2004: at the 16th, 32nd, ... loss report) or at
//! random ([`Udt`](super::Udt)); `event` has the first of these reductions. A congestion event
//! begins with a loss report whose newest lost packet was sent after the last reduction. (UDT 4.11
//! compares sequence numbers: that of the first lost packet in the report with the newest one sent
//! by the last reduction. A report of both older and newer packets, and a lost retransmission,
//! begin an event here and not there.) `syn` reduces the rate unless the last reduction was less
//! than a SYN ago. The kernel's implementation (`kernel/daimd.h`) has `event` and `report`.
//!
//! Increasing delay. Section II names it as a negative feedback and has no rule for it. This law
//! has that of UDT's libraries of 2003 and of its agent for ns-2, which is Pathload's (Jain and
//! Dovrolis): of the last 16 round-trip times, PCT is the fraction of the 15 differences that are
//! rises, and PDT the last less the first one over the sum of the absolute differences. The time
//! rises if PCT > 0.66 and PDT > 0.45, or PCT > 0.54 and PDT > 0.55; at most once in two round-trip
//! times. These libraries have a sample for each ACK2, and this law one for each report.
//!
//! Known deviations:
//!
//! * Eq. 2, Eq. 3 and Eq. 4 define negative feedback differently: `feedback` selects the
//!   definition.
//! * The paper's tables are UDT's, which also reduces the rate within a congestion event, at
//!   growing intervals or at random.
//! * The paper does not print when the delay increases: the rule is Pathload's, as in UDT's
//!   libraries of 2003. Eq. 3 and Eq. 4 count lost packets only: `delay=off`.
//! * A timeout is one negative feedback, of one packet. The marks (RFC 3168) of a congestion event
//!   are one negative feedback, also with `packet` and `report`.
//! * Where L <= C(x), Eq. 8 has no logarithm: the increase is its limit 0, and 0 also before the
//!   first estimate of L.
//! * The paper does not print lambda: 7/8 is that of UDT's library of February 2004.
//! * The paper does not describe slow start: it ends at the arrival rate, or at w / (RTT + SYN)
//!   without one.
//! * The flow window is at least 16 packets, and the rate at least 1 packet/s.

use crate::event::{Lost, Report};
use crate::law::{Clock, Context, RateLaw, Signal};
use crate::units::{Dur, Rate, Time};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use libm::{ceil, log10, pow};

/// The packet size for which `tau` is chosen, in bytes.
const STANDARD_PACKET: f64 = 1500.0;

/// The events that are one negative feedback: see the [module](self).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Feedback {
    /// A congestion event: a loss report of packets sent after the last reduction.
    #[default]
    Event,
    /// A lost packet (Eq. 3).
    Packet,
    /// The first loss report in a control interval (Eq. 4).
    Syn,
    /// A loss report (Eq. 2).
    Report,
}

/// DAIMD's parameters, in the paper's symbols.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DaimdParameters {
    /// The protocol parameter τ.
    pub tau: f64,
    /// The reduction at a negative feedback as a fraction of the rate.
    pub beta: f64,
    /// The events that are one negative feedback.
    pub feedback: Feedback,
    /// The control interval SYN.
    pub syn: Dur,
    /// The link capacity L in bits per second; `None` takes the receiver's estimate.
    pub capacity: Option<f64>,
    /// The weight λ of the old window in the flow window's moving average; 1 disables the flow
    /// window.
    pub lambda: f64,
    /// Whether a rising round-trip time is a negative feedback too (section II).
    pub delay: bool,
}

impl Default for DaimdParameters {
    fn default() -> Self {
        DaimdParameters {
            tau: 9.0,
            beta: 1.0 / 9.0,
            feedback: Feedback::Event,
            syn: Dur::from_millis(10),
            capacity: None,
            lambda: 7.0 / 8.0,
            delay: true,
        }
    }
}

/// DAIMD: see the [module](self).
#[derive(Clone, Debug, PartialEq)]
pub struct Daimd {
    parameters: DaimdParameters,
    /// The receiver's estimates.
    estimated: Option<Rate>,
    arrival: Option<Rate>,
    window: Option<f64>,
    /// Packets in the newest loss report.
    lost: u32,
    last_cut: Option<Time>,
    /// Unless `delay=off`.
    trend: Option<Box<Trend>>,
}

/// Round-trip times that a trend is found in.
const SAMPLES: usize = 16;

/// The trend of the round-trip times, as Pathload finds it.
#[derive(Clone, Debug, Default, PartialEq)]
struct Trend {
    /// The last round-trip times in seconds, the newest last; fewer at the start.
    rtts: VecDeque<f64>,
    /// The time of the last rise.
    risen: Option<Time>,
}

impl Trend {
    fn observe(&mut self, rtt: Dur) {
        if self.rtts.len() == SAMPLES {
            self.rtts.pop_front();
        }
        self.rtts.push_back(rtt.as_secs());
    }

    /// Whether the round-trip times rise; at most once in two of `rtt`.
    fn rises(&mut self, now: Time, rtt: Dur) -> bool {
        let recent = self.risen.is_some_and(|risen| now.since(risen) <= rtt + rtt);
        let rises = self.rtts.len() == SAMPLES && !recent && self.is_rising();
        if rises {
            self.risen = Some(now);
        }
        rises
    }

    fn is_rising(&self) -> bool {
        let steps = self.rtts.iter().zip(self.rtts.iter().skip(1)).map(|(from, to)| to - from);
        let (mut rises, mut net, mut sum) = (0.0, 0.0, 0.0);
        for step in steps {
            rises += f64::from(u8::from(step > 0.0));
            net += step;
            sum += step.abs();
        }
        let pct = rises / (SAMPLES - 1) as f64;
        let pdt = if sum > 0.0 { net / sum } else { 0.0 };
        pct > 0.66 && pdt > 0.45 || pct > 0.54 && pdt > 0.55
    }
}

impl Default for Daimd {
    fn default() -> Self {
        Daimd::new(DaimdParameters::default())
    }
}

impl Daimd {
    /// DAIMD with these parameters.
    pub fn new(parameters: DaimdParameters) -> Self {
        Daimd {
            parameters,
            estimated: None,
            arrival: None,
            window: None,
            lost: 0,
            last_cut: None,
            trend: parameters.delay.then(Box::default),
        }
    }

    /// The events that are one negative feedback.
    pub fn feedback(&self) -> Feedback {
        self.parameters.feedback
    }

    /// The increase α(x) of Eq. 8 in packets per second, at `rate` on a link of `capacity` bits per
    /// second, with packets of `bytes`.
    pub fn alpha(&self, rate: Rate, capacity: f64, bytes: u32) -> Rate {
        let spare = capacity - rate.as_bits(bytes);
        if spare <= 0.0 || bytes == 0 {
            return Rate::ZERO;
        }
        let packets_per_syn = pow(10.0, ceil(log10(spare)) - self.parameters.tau)
            * (STANDARD_PACKET / f64::from(bytes));
        Rate::over(packets_per_syn, self.parameters.syn)
    }
}

impl RateLaw for Daimd {
    fn clock(&self) -> Clock {
        Clock::Timer
    }

    fn interval(&self) -> Dur {
        self.parameters.syn
    }

    fn tick(&mut self, rate: Rate, cx: &Context) -> Rate {
        let estimate = self.estimated.map(|capacity| capacity.as_bits(cx.packet));
        let capacity = self.parameters.capacity.or(estimate).unwrap_or(0.0);
        let alpha = self.alpha(rate, capacity, cx.packet);
        Rate::per_sec(rate.as_per_sec() + alpha.as_per_sec())
    }

    fn cut(&mut self, rate: Rate, fresh: bool, why: Signal, cx: &Context) -> Rate {
        let DaimdParameters { beta, feedback, syn, .. } = self.parameters;
        let feedbacks = match feedback {
            _ if why == Signal::Delay => 1,
            Feedback::Event => u32::from(fresh),
            Feedback::Packet if why == Signal::Loss => self.lost.max(1),
            Feedback::Syn => u32::from(self.last_cut.is_none_or(|cut| cx.now.since(cut) >= syn)),
            Feedback::Packet | Feedback::Report => 1,
        };
        if feedbacks > 0 {
            self.last_cut = Some(cx.now);
        }
        let kept = match feedbacks {
            0 => 1.0,
            1 => 1.0 - beta,
            n => pow(1.0 - beta, f64::from(n)),
        };
        Rate::per_sec(kept * rate.as_per_sec())
    }

    fn losses(&mut self, lost: &Lost, _rate: Rate, _cx: &Context) {
        self.lost = lost.packets;
    }

    fn uses_capacity(&self) -> bool {
        true
    }

    fn delay_rises(&mut self, cx: &Context) -> bool {
        match (&mut self.trend, cx.rtt) {
            (Some(trend), Some(rtt)) => trend.rises(cx.now, rtt.smoothed),
            _ => false,
        }
    }

    fn observe(&mut self, report: &Report, _cx: &Context) {
        if let Some(trend) = &mut self.trend {
            trend.observe(report.rtt);
        }
        self.estimated = report.capacity.or(self.estimated);
        let DaimdParameters { lambda, syn, .. } = self.parameters;
        if let Some(arrival) = report.arrival {
            self.arrival = Some(arrival);
            let arrived = arrival.packets(syn + report.rtt);
            self.window = Some(match self.window {
                None => arrived,
                Some(w) => lambda * w + (1.0 - lambda) * arrived,
            });
        }
    }

    fn window(&self, _cx: &Context) -> Option<f64> {
        if self.parameters.lambda < 1.0 { self.window } else { None }
    }

    fn start(&mut self, w: f64, cx: &Context) -> Rate {
        let rtt = cx.rtt.map_or(Dur::ZERO, |rtt| rtt.smoothed);
        self.arrival.unwrap_or_else(|| Rate::over(w, rtt + self.parameters.syn))
    }

    /// The increase (8) follows from the packet size, the estimates and the rate.
    fn rescale(&mut self, factor: f64) {
        let scale = |rate: Rate| Rate::per_sec(rate.as_per_sec() * factor);
        self.estimated = self.estimated.map(scale);
        self.arrival = self.arrival.map(scale);
        self.window = self.window.map(|w| w * factor);
    }

    fn gauges(&self, emit: &mut dyn FnMut(&'static str, f64)) {
        emit("arrival", self.arrival.map_or(f64::NAN, Rate::as_per_sec));
        emit("capacity", self.estimated.map_or(f64::NAN, Rate::as_per_sec));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::laws::testing::{at, context};
    use crate::rtt::Rtt;
    use alloc::vec::Vec;

    /// On 1 Gb/s, log10 L = 9: (8) starts at 10^(9-9) packet in each 10 ms, which is 100 packets/s.
    #[test]
    fn stages_of_the_increase() {
        let law = Daimd::default();
        let at = |mbits: f64| law.alpha(Rate::from_bits(mbits * 1e6, 1500), 1e9, 1500).as_per_sec();
        assert_eq!(at(0.0), 100.0);
        assert_eq!(at(899.0), 100.0);
        // 1000 - 950 = 50 Mb/s left: 10^(8-9) packet in each 10 ms.
        assert!((at(950.0) - 10.0).abs() < 1e-12);
        assert_eq!(at(1000.0), 0.0);
        assert_eq!(at(1200.0), 0.0);
        // Half the packet size, twice the packets.
        assert_eq!(law.alpha(Rate::ZERO, 1e9, 750).as_per_sec(), 200.0);
    }

    /// Section III: 9 (L - R0) / alpha0 = 750 intervals to 90 % of an L that is a power of ten.
    #[test]
    fn reaches_ninety_percent_in_seven_and_a_half_seconds() {
        let parameters = DaimdParameters { capacity: Some(1e9), ..DaimdParameters::default() };
        let mut law = Daimd::new(parameters);
        let (mut rate, mut intervals) = (Rate::ZERO, 0);
        while rate.as_bits(1500) < 0.9e9 {
            rate = law.tick(rate, &context());
            intervals += 1;
        }
        assert_eq!(intervals, 750);
    }

    /// The rates after loss reports of 1, 3 and 2 packets at 0, 4 and 12 ms, from 729 packets/s on.
    /// The last two are of packets sent before the first reduction.
    fn after_reports(feedback: Feedback) -> [f64; 3] {
        let mut law = Daimd::new(DaimdParameters { feedback, ..DaimdParameters::default() });
        let mut rate = Rate::per_sec(729.0);
        [(0, 1, true), (4, 3, false), (12, 2, false)].map(|(millis, packets, fresh)| {
            let cx = at(Time::from_nanos(millis * 1_000_000));
            law.losses(&Lost::new(packets, Time::ZERO, 100), rate, &cx);
            rate = law.cut(rate, fresh, Signal::Loss, &cx);
            rate.as_per_sec()
        })
    }

    fn assert_near(rates: [f64; 3], expected: [f64; 3]) {
        for (rate, expected) in rates.into_iter().zip(expected) {
            assert!((rate - expected).abs() < 1e-9, "{rates:?}");
        }
    }

    /// Pathload's thresholds for 16 round-trip times: of 15 differences, more than 0.66 are 10
    /// rises, and more than 0.54 are 9.
    #[test]
    fn a_trend_of_the_round_trip_time_is_found() {
        let rising = |steps: &[i64]| {
            let mut trend = Trend::default();
            let mut rtt = 100;
            trend.observe(Dur::from_millis(rtt));
            for step in steps {
                rtt = rtt.wrapping_add_signed(*step);
                trend.observe(Dur::from_millis(rtt));
            }
            trend.rises(Time::ZERO, Dur::from_millis(100))
        };
        assert!(rising(&[1; 15]));
        assert!(!rising(&[1; 14]), "fewer than 16 samples");
        assert!(!rising(&[-1; 15]));
        let of = |ups: usize, up: i64, down: i64| {
            let mut steps = [down; 15];
            steps[..ups].fill(up);
            rising(&steps)
        };
        // 10 rises: PDT is (30 - 10) / 40 = 0.5, or (30 - 15) / 45 = 0.33.
        assert!(of(10, 3, -2));
        assert!(!of(10, 3, -3));
        // 9 rises: PDT is (27 - 6) / 33 = 0.64, or (27 - 12) / 39 = 0.38; 8 are too few.
        assert!(of(9, 3, -1));
        assert!(!of(9, 3, -2));
        assert!(!of(8, 9, -1));
    }

    #[test]
    fn a_rise_reduces_the_rate_once_in_two_round_trip_times() {
        let mut law = Daimd::default();
        let mut without =
            Daimd::new(DaimdParameters { delay: false, ..DaimdParameters::default() });
        let mut risen = Vec::new();
        for n in 0..60 {
            let rtt = Dur::from_millis(100 + n);
            let now = Time::from_nanos(n * 10_000_000);
            let cx = Context { rtt: Some(Rtt::update(None, Dur::from_millis(100))), ..at(now) };
            for law in [&mut law, &mut without] {
                law.observe(&Report::new(1, 1, rtt), &cx);
            }
            if law.delay_rises(&cx) {
                risen.push(n);
                assert_eq!(
                    law.cut(Rate::per_sec(729.0), true, Signal::Delay, &cx).as_per_sec(),
                    648.0
                );
            }
            assert!(!without.delay_rises(&cx));
        }
        assert_eq!(risen, [15, 36, 57]);
    }

    #[test]
    fn a_congestion_event_reduces_the_rate_once() {
        assert_near(after_reports(Feedback::Event), [648.0, 648.0, 648.0]);
        assert_eq!(DaimdParameters::default().feedback, Feedback::Event);
    }

    /// (8/9)^n of the rate for n lost packets (3): 8/9, then (8/9)^3, then (8/9)^2.
    #[test]
    fn each_lost_packet_reduces_the_rate() {
        let after_four = 648.0 * (512.0 / 729.0);
        let expected = [648.0, after_four, after_four * 64.0 / 81.0];
        assert_near(after_reports(Feedback::Packet), expected);
    }

    #[test]
    fn at_most_one_reduction_in_a_syn() {
        assert_near(after_reports(Feedback::Syn), [648.0, 648.0, 576.0]);
    }

    #[test]
    fn each_loss_report_reduces_the_rate() {
        assert_near(after_reports(Feedback::Report), [648.0, 576.0, 512.0]);
    }

    /// A timeout is one feedback, independent of the number of packets in the report before it.
    #[test]
    fn a_timeout_is_one_feedback() {
        for feedback in [Feedback::Event, Feedback::Packet, Feedback::Syn, Feedback::Report] {
            let mut law = Daimd::new(DaimdParameters { feedback, ..DaimdParameters::default() });
            let (cx, rate) = (context(), Rate::per_sec(900.0));
            law.losses(&Lost::new(5, Time::ZERO, 100), rate, &cx);
            let rate = law.cut(rate, true, Signal::Timeout, &cx);
            assert!((rate.as_per_sec() - 800.0).abs() < 1e-9, "{feedback:?}");
        }
    }

    /// Packets of half the size: the same capacity, arrival rate, window and increase in bytes.
    #[test]
    fn rescaling_keeps_the_bytes() {
        let mut law = Daimd::default();
        let mut report = Report::new(1, 1, Dur::from_millis(90));
        report.arrival = Some(Rate::per_sec(1000.0));
        report.capacity = Some(Rate::per_sec(90_000.0));
        law.observe(&report, &context());
        let grown = law.tick(Rate::per_sec(500.0), &context());
        law.rescale(2.0);
        let cx = Context { packet: 750, ..context() };
        assert_eq!(law.tick(Rate::per_sec(1000.0), &cx).as_bits(750), grown.as_bits(1500));
        assert_eq!(law.window(&cx), Some(200.0));
        assert_eq!(law.start(10.0, &cx), Rate::per_sec(2000.0));
    }

    #[test]
    fn flow_window_follows_the_arrival_rate() {
        let mut law = Daimd::default();
        let mut report = Report {
            packets: 1,
            sent: 1,
            arrival: Some(Rate::per_sec(1000.0)),
            capacity: None,
            rtt: Dur::from_millis(90),
        };
        law.observe(&report, &context());
        assert_eq!(law.window(&context()), Some(100.0));
        report.arrival = Some(Rate::per_sec(2000.0));
        law.observe(&report, &context());
        // 7/8 of 100 and 1/8 of 200.
        assert_eq!(law.window(&context()), Some(112.5));
    }
}
