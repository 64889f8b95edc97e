//! **TFRC**, TCP-friendly rate control.
//!
//! Floyd, Handley, Padhye and Widmer, *TCP Friendly Rate Control (TFRC): Protocol Specification*,
//! RFC 5348 (2008).
//!
//! ```text
//! loss event rate p > 0: X <- max(min(X_eq, recv_limit), s/t_mbi)                     (section 4.3)
//! X_eq = 1 / (R (sqrt(2p/3) + 12 sqrt(3p/8) p (1 + 32p^2))), b = 1, t_RTO = 4R        (section 3.1)
//! recv_limit = 2 max(X_recv_set), X_recv of the last 2R                               (section 4.3)
//! no loss yet: X <- max(min(2X, recv_limit), W_init/R), once each R                   (section 4.3)
//! without feedback for RTO = max(4R, 2/X): X <- X/2 before a loss, else X <- min(X_eq/2, X_recv)  (4.4)
//! p = 1 / max(weighted mean of I_1..I_8, weighted mean of I_0..I_7)                   (section 5.4)
//! weights: 1, 1, 1, 1, 0.8, 0.6, 0.4, 0.2                                             (section 5.4)
//! loss event: the losses within R of its first one                                    (section 5.2)
//! all but I_0 count DF = max(2 mean/I_0, 1/4) where I_0 > 2 mean                      (section 5.5)
//! the interval before the first loss event: 1/p of X_eq = max X_recv                (section 6.3.1)
//! R <- 0.9 R + 0.1 sample, once each R                                                (section 4.3)
//! ```
//!
//! | symbol | meaning | unit | range | default |
//! |---|---|---|---|---|
//! | `X`, `X_eq` | allowed sending rate, and that of the throughput equation | packets/s | >= 1/64 | |
//! | `X_recv` | rate of arrivals at the receiver | packets/s | | |
//! | `p` | loss event rate | 1/packet | 0 < p <= 1 | |
//! | `I_0`, `I_i` | packets since the last loss event, and in the i-th interval before it | packets | | |
//! | `R` | smoothed round-trip time | s | | |
//! | `W_init` | initial window: 4380 bytes, at least 2 packets and at most 4 | packets | 2..4 | |
//!
//! TCP-friendly by construction: `X_eq` is the rate of TCP with a loss event rate of `p`.
//!
//! Slow start has no threshold: the rate doubles until the first loss event.
//!
//! Known deviations:
//!
//! * The sender keeps the loss history, from the losses that its driver reports, and answers every
//!   new loss event at once, as it would the receiver's expedited feedback (section 6.2).
//! * The length of a loss interval is the number of packets sent between the reports of its losses.
//! * A gap is a loss at once, without three packets after it: packets are not reordered.
//! * X_recv is the receiver's estimate over 16 arrivals, not over a round trip. Before the first
//!   one it does not limit the rate, and half of X replaces it in section 6.3.1.
//! * Lost packets are retransmitted within X.
//! * The nofeedback timer is the sender's retransmission timer, which expires after at least 300
//!   ms; the packets that it declares lost are losses, which the RFC's receiver finds when the path
//!   works again.
//! * Data-limited intervals and idle periods have no rules of their own.
//! * The optional reduction of oscillations (section 4.5) is not implemented.

mod history;

use self::history::History;
use crate::event::{Lost, Report};
use crate::law::{Clock, Context, RateLaw, Signal};
use crate::units::{Dur, Rate, Time};
use libm::sqrt;

/// The weight of the old round-trip time in its filter: the RFC's q.
const KEPT: f64 = 0.9;
/// The rate before the first round-trip time is known, and its timer (section 4.2).
const FIRST_RATE: Rate = Rate::per_sec(1.0);
const FIRST_TIMEOUT: Dur = Dur::from_millis(2000);
/// s/t_mbi: a packet in 64 s (section 4.3).
const MIN_RATE: Rate = Rate::per_sec(1.0 / 64.0);
/// Bytes in the largest initial window of more than two packets.
const INITIAL_WINDOW: f64 = 4380.0;
/// Packets in a round-trip time if the first packet is lost (section 6.3.1).
const FIRST_LOST: f64 = 0.5;
/// The smallest loss event rate for which the equation is solved.
const MIN_LOSS: f64 = 1e-8;

/// TFRC: see the [module](self).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tfrc {
    rtt: Option<Dur>,
    history: History,
    /// The receiver's estimate of its rate, and the largest of them.
    arrival: Option<Rate>,
    fastest: Option<Rate>,
    /// X_recv_set, the newest first.
    received: [Option<(Time, f64)>; 3],
    /// The last feedback, or the last expiry of the nofeedback timer.
    heard: Time,
}

impl Tfrc {
    /// TFRC before the first packet.
    pub const fn new() -> Self {
        Tfrc {
            rtt: None,
            history: History::new(),
            arrival: None,
            fastest: None,
            received: [None; 3],
            heard: Time::ZERO,
        }
    }

    /// The throughput equation (3.1): packets in a round-trip time at a loss event rate of `p`.
    pub fn window(p: f64) -> f64 {
        1.0 / (sqrt(2.0 * p / 3.0) + 12.0 * sqrt(3.0 * p / 8.0) * p * (1.0 + 32.0 * p * p))
    }

    /// The loss event rate at which the equation gives `window` packets in a round-trip time.
    pub fn loss_rate(window: f64) -> f64 {
        let (mut low, mut high) = (MIN_LOSS, 1.0);
        // The ratio of the bounds, 10^8, is below 1 + 10^-15 after 55 halvings of its logarithm.
        for _ in 0..55 {
            let middle = sqrt(low * high);
            if Tfrc::window(middle) > window {
                low = middle;
            } else {
                high = middle;
            }
        }
        high
    }

    /// The rate of the equation; `None` before the first loss or round-trip time.
    fn equation(&self) -> Option<f64> {
        let window = Tfrc::window(self.history.rate()?);
        Some(Rate::over(window, self.rtt?).as_per_sec())
    }

    /// The largest X_recv of X_recv_set.
    fn received(&self) -> Option<f64> {
        self.received.iter().flatten().map(|item| item.1).reduce(f64::max)
    }

    fn limit(&self) -> f64 {
        self.received().map_or(f64::INFINITY, |received| 2.0 * received)
    }

    /// The rate after a timeout: reduced if the nofeedback timer (section 4.4) has expired.
    fn starved(&mut self, rate: Rate, now: Time) -> Rate {
        let patience = self.rtt.map_or(FIRST_TIMEOUT, |rtt| {
            Dur::from_secs((4.0 * rtt.as_secs()).max(2.0 * rate.period().as_secs()))
        });
        if now.since(self.heard) < patience {
            return rate;
        }
        self.heard = now;
        let Some(equation) = self.equation() else {
            return Rate::per_sec(rate.as_per_sec() / 2.0);
        };
        // Halves whichever limited the rate: the equation, or twice the arrival rate.
        let limit = self.received().map_or(equation / 2.0, |received| received.min(equation / 2.0));
        self.received = [Some((now, limit / 2.0)), None, None];
        Rate::per_sec(equation.min(self.limit()))
    }
}

impl Default for Tfrc {
    fn default() -> Self {
        Tfrc::new()
    }
}

impl RateLaw for Tfrc {
    fn clock(&self) -> Clock {
        Clock::Reports
    }

    fn interval(&self) -> Dur {
        self.rtt.unwrap_or(Dur::ZERO)
    }

    fn starts_itself(&self) -> bool {
        true
    }

    fn tick(&mut self, rate: Rate, cx: &Context) -> Rate {
        let Some(sample) = cx.rtt.map(|rtt| rtt.latest) else { return rate };
        let first = self.rtt.is_none();
        let rtt = self.rtt.map_or(sample, |rtt| {
            Dur::from_secs(KEPT * rtt.as_secs() + (1.0 - KEPT) * sample.as_secs())
        });
        self.rtt = Some(rtt);
        for item in &mut self.received {
            *item = item.filter(|(at, _)| cx.now.since(*at) <= rtt + rtt);
        }
        if let Some(arrival) = self.arrival {
            self.received.rotate_right(1);
            self.received[0] = Some((cx.now, arrival.as_per_sec()));
        }
        Rate::per_sec(match self.equation() {
            Some(equation) => equation.min(self.limit()),
            None => {
                let window = (INITIAL_WINDOW / f64::from(cx.packet)).clamp(2.0, 4.0);
                let initial = Rate::over(window, rtt).as_per_sec();
                let doubled = 2.0 * rate.as_per_sec();
                if first { initial } else { doubled.min(self.limit()).max(initial) }
            }
        })
    }

    fn cut(&mut self, rate: Rate, _fresh: bool, why: Signal, cx: &Context) -> Rate {
        if why.restarts() {
            return self.starved(rate, cx.now);
        }
        self.heard = cx.now;
        self.equation().map_or(rate, |equation| Rate::per_sec(equation.min(self.limit())))
    }

    fn observe(&mut self, report: &Report, cx: &Context) {
        self.heard = cx.now;
        self.history.advance(report.sent);
        self.arrival = report.arrival.or(self.arrival);
        if self.fastest < self.arrival {
            self.fastest = self.arrival;
        }
    }

    fn losses(&mut self, lost: &Lost, rate: Rate, _cx: &Context) {
        let (rtt, fastest) = (self.rtt, self.fastest);
        self.history.lost(lost.sent_at, lost.sent, rtt.unwrap_or(Dur::ZERO), || {
            let target = fastest.unwrap_or(Rate::per_sec(rate.as_per_sec() / 2.0));
            let window = rtt.map_or(FIRST_LOST, |rtt| target.packets(rtt));
            1.0 / Tfrc::loss_rate(window)
        });
    }

    fn start(&mut self, _w: f64, _cx: &Context) -> Rate {
        FIRST_RATE
    }

    fn least(&self) -> Rate {
        MIN_RATE
    }

    /// The loss intervals stay: the loss event rate is one of packets of any size.
    fn rescale(&mut self, factor: f64) {
        let scale = |rate: Rate| Rate::per_sec(rate.as_per_sec() * factor);
        self.arrival = self.arrival.map(scale);
        self.fastest = self.fastest.map(scale);
        for (_, received) in self.received.iter_mut().flatten() {
            *received *= factor;
        }
    }

    fn gauges(&self, emit: &mut dyn FnMut(&'static str, f64)) {
        emit("p", self.history.rate().unwrap_or(0.0));
        emit("arrival", self.arrival.map_or(f64::NAN, Rate::as_per_sec));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::laws::testing;

    const SECOND: u64 = 1_000_000_000;

    fn at(seconds: f64) -> Context {
        testing::at(Time::from_nanos((seconds * SECOND as f64) as u64))
    }

    fn arrive(law: &mut Tfrc, arrival: Option<f64>, sent: u64, cx: &Context) {
        let arrival = arrival.map(Rate::per_sec);
        law.observe(
            &Report { packets: 1, sent, arrival, capacity: None, rtt: Dur::from_millis(100) },
            cx,
        );
    }

    /// A report of `arrival` and the control interval that it ends, at a round-trip time of 100 ms.
    fn feedback(law: &mut Tfrc, rate: f64, arrival: Option<f64>, sent: u64, seconds: f64) -> f64 {
        let cx = at(seconds);
        arrive(law, arrival, sent, &cx);
        law.tick(Rate::per_sec(rate), &cx).as_per_sec()
    }

    fn lose(law: &mut Tfrc, rate: f64, sent: u64, seconds: f64) -> f64 {
        let (cx, rate) = (at(seconds), Rate::per_sec(rate));
        law.losses(&Lost::new(1, cx.now, sent), rate, &cx);
        law.cut(rate, true, Signal::Loss, &cx).as_per_sec()
    }

    fn near(value: f64, expected: f64) {
        assert!((value / expected - 1.0).abs() < 1e-6, "{value} is not {expected}");
    }

    /// 1 / (sqrt(0.02/3) + 12 sqrt(0.03/8) 0.01 * 1.0032) = 1 / (0.08164966 + 0.00737199).
    #[test]
    fn the_equation() {
        near(Tfrc::window(0.01), 1.0 / 0.089_021_646);
        // Without timeouts, sqrt(3/2 / p).
        assert!((Tfrc::window(1e-8) / 1.5e8_f64.sqrt() - 1.0).abs() < 1e-6);
        // 0.8164966 + 12 * 0.6123724 * 33.
        near(Tfrc::window(1.0), 1.0 / 243.315_974);
        for p in [1e-7, 1e-4, 0.01, 0.2, 1.0] {
            near(Tfrc::loss_rate(Tfrc::window(p)), p);
        }
        assert_eq!(Tfrc::loss_rate(0.0), 1.0);
        near(Tfrc::loss_rate(1e9), MIN_LOSS);
    }

    /// W_init = min(4 s, max(2 s, 4380 bytes)) in a round trip of 100 ms.
    #[test]
    fn begins_with_the_initial_window() {
        for (packet, window) in [(500, 4.0), (1000, 4.0), (1460, 3.0), (1500, 2.92), (9000, 2.0)] {
            let cx = Context { packet, ..at(1.0) };
            near(Tfrc::new().tick(FIRST_RATE, &cx).as_per_sec(), 10.0 * window);
        }
    }

    #[test]
    fn slow_start_doubles_up_to_twice_the_arrival_rate() {
        let mut law = Tfrc::new();
        near(feedback(&mut law, 1.0, None, 1, 0.1), 29.2);
        near(feedback(&mut law, 29.2, None, 4, 0.21), 58.4);
        near(feedback(&mut law, 58.4, Some(50.0), 10, 0.32), 100.0);
        near(feedback(&mut law, 100.0, Some(90.0), 20, 0.43), 180.0);
        // The largest X_recv counts for two round trips.
        near(feedback(&mut law, 180.0, Some(40.0), 38, 0.54), 180.0);
        near(feedback(&mut law, 180.0, Some(40.0), 56, 0.65), 80.0);
        // Never below the initial rate.
        near(feedback(&mut law, 180.0, Some(1.0), 56, 2.0), 29.2);
    }

    #[test]
    fn the_round_trip_time_is_filtered() {
        let mut law = Tfrc::new();
        law.tick(FIRST_RATE, &at(1.0));
        let mut cx = at(2.0);
        cx.rtt.as_mut().unwrap().latest = Dur::from_millis(200);
        law.tick(FIRST_RATE, &cx);
        assert_eq!(law.interval(), Dur::from_millis(110));
    }

    /// A flow whose packets arrive at 500/s, 50 in a round trip, loses its first packet at 900/s.
    fn after_a_loss() -> Tfrc {
        let mut law = Tfrc::new();
        feedback(&mut law, 1.0, Some(500.0), 1, 0.1);
        near(lose(&mut law, 900.0, 1000, 1.0), 500.0);
        law
    }

    #[test]
    fn the_first_loss_reduces_the_rate_to_the_arrival_rate() {
        let mut law = after_a_loss();
        let first = 1.0 / Tfrc::loss_rate(50.0);
        near(law.history.rate().unwrap(), 1.0 / first);
        // Another loss in the same round trip belongs to the event.
        near(lose(&mut law, 500.0, 1050, 1.1), 500.0);
        // The next interval is the packets sent between both events: I_1 = 200 and the first.
        let p = 2.0 / (200.0 + first);
        near(lose(&mut law, 500.0, 1200, 1.4), 10.0 * Tfrc::window(p));
        // A long interval increases the rate again, up to twice the arrival rate.
        near(feedback(&mut law, 300.0, Some(400.0), 1_000_000, 90.0), 800.0);
    }

    /// Packets of half the size: rates in packets/s are doubled, and the loss event rate is the
    /// same.
    #[test]
    fn rescaling_doubles_the_rates_and_keeps_the_losses() {
        let mut law = Tfrc::new();
        feedback(&mut law, 1.0, Some(50.0), 1, 0.1);
        law.rescale(2.0);
        // X_recv_set and the newest X_recv are 100/s, and so is the fastest, on which the first
        // interval depends.
        let mut grown = law;
        near(grown.tick(Rate::per_sec(150.0), &at(0.2)).as_per_sec(), 200.0);
        lose(&mut law, 150.0, 1000, 0.3);
        let p = law.history.rate();
        near(p.unwrap_or(1.0), Tfrc::loss_rate(10.0));
        law.rescale(2.0);
        assert_eq!(law.history.rate(), p);
    }

    /// Without an estimate of the path: half a packet in a round-trip time.
    #[test]
    fn a_lost_first_packet_halves_the_initial_packet() {
        let mut law = Tfrc::new();
        lose(&mut law, 1.0, 1, 0.5);
        near(feedback(&mut law, 1.0, None, 1, 0.6), 5.0);
        // With a round-trip time but no arrival rate, half of the rate.
        let mut law = Tfrc::new();
        feedback(&mut law, 1.0, None, 1, 0.1);
        near(lose(&mut law, 80.0, 9, 0.3), 40.0);
    }

    #[test]
    fn without_feedback_the_rate_is_halved() {
        let timeout = |law: &mut Tfrc, rate: f64, seconds: f64| {
            law.cut(Rate::per_sec(rate), true, Signal::Timeout, &at(seconds)).as_per_sec()
        };
        // Before the first loss, and only after four round-trip times or two packets.
        let mut law = Tfrc::new();
        feedback(&mut law, 1.0, Some(300.0), 1, 1.0);
        near(timeout(&mut law, 600.0, 1.39), 600.0);
        near(timeout(&mut law, 600.0, 1.4), 300.0);
        near(timeout(&mut law, 300.0, 1.79), 300.0);
        near(timeout(&mut law, 300.0, 1.8), 150.0);
        near(timeout(&mut law, 4.0, 2.29), 4.0);
        near(timeout(&mut law, 4.0, 2.3), 2.0);
        // After one, half of the equation's rate of 500/s, since more than half of that rate
        // arrived.
        let mut law = after_a_loss();
        feedback(&mut law, 500.0, Some(400.0), 1000, 2.0);
        near(timeout(&mut law, 500.0, 3.0), 250.0);
        // X_recv_set is then 125/s: it limits the next halving, and the growth after feedback
        // resumes.
        near(timeout(&mut law, 250.0, 4.0), 125.0);
        near(feedback(&mut law, 125.0, Some(60.0), 1000, 4.1), 125.0);
        near(feedback(&mut law, 125.0, Some(120.0), 1000, 4.2), 240.0);
    }
}
