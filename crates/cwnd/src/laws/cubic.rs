//! **CUBIC**: the window as a cubic function of the time since the last congestion event.
//!
//! Xu, Ha, Rhee, Goel and Eggert, *CUBIC for fast and long-distance networks*, RFC 9438.
//!
//! ```text
//! W(t) = C (t - K)^3 + w_max, K = cbrt((w_max - w0) / C), t in seconds since w was w0   (Eq. 1, 2)
//! W_est <- W_est + alpha n / w for n acknowledged packets                                   (Eq. 4)
//! alpha = 3 (1 - kept) / (1 + kept), 1 from W_est = w_prior on                       (section 4.3)
//! each ACK: w <- W_est, if W(t) < W_est; else w <- w + n (target - w) / w          (sections 4.3-5)
//! target = W(t + RTT), at least w, at most 3/2 w                                     (section 4.2)
//! at a loss: w_prior <- w; w_max <- w, or (1 + kept) w / 2 if w < w_max; w <- kept w    (4.6, 4.7)
//! threshold: ssthresh <- kept w, at a loss, in slow start and after a timeout           (4.6, 4.8)
//! avoidance begins: w0 <- w, W_est <- w                                              (section 4.3)
//! avoidance begins after a timeout or without a loss: w_max <- w                       (4.8, 4.10)
//! avoidance begins before the first loss: w_prior <- w                              (section 4.10)
//! ```
//!
//! | symbol | meaning | unit | range | default |
//! |---|---|---|---|---|
//! | `C` (`c`) | aggressiveness of the growth | packets/s^3 | 0.001 <= c <= 100 | 0.4 |
//! | `kept` | the RFC's beta: the window after a loss over that before it | | 0 < kept < 1 | 0.7 |
//! | `fast` | fast convergence (section 4.7) | | on or off | on |
//! | `w0` | cwnd_epoch, the window at the start of congestion avoidance | packets | | |
//! | `w_prior` | cwnd_prior, the window when the threshold was last set | packets | | |
//!
//! TCP-friendly where W_est is the larger: short round-trip times or small windows.
//!
//! Known deviations:
//!
//! * `kept` is a factor of the window, not of flight_size (section 4.6 allows it where an unused
//!   window does not grow).
//! * Under conventions whose unused window grows (ns-2's), the condition of section 4.6 does not
//!   hold, and t does not advance although the window grows (section 4.2).
//! * The window grows by (target - w) / w for each acknowledged packet, at most to the target,
//!   where sections 4.4 and 4.5 count ACKs: an event may stand for several ACKs, and the growth
//!   does not depend on the receiver's ACK ratio.
//! * The packets of Eq. 4 are those that the driver credits: one for each ACK without byte counting
//!   (RFC 3465).
//! * W_est does not reduce the window (section 4.3: the window SHOULD be W_est where W(t) is less).
//! * A loss does not raise a window of less than two packets to two (section 4.6).
//! * Marks at a window of one packet do not reduce the rate further (section 4.6 requires it, for
//!   instance by the retransmission timer of RFC 3168 section 6.1.2).
//! * Congestion avoidance begins at w = ssthresh, as RFC 5681 allows; section 4.10 begins it above.
//! * HyStart++, which section 4.10 recommends, is `start=hystart`; the default is the driver's.
//! * A spurious loss restores the threshold also where the window has grown past its old value
//!   (section 4.9.2 restores nothing then).
//! * Fast convergence counts a timeout as a congestion event.
//! * Under Linux's conventions the law is that of tcp_cubic.c, in whole packets and jiffies of 4
//!   ms, with an exact cube root. An undo does not restore its state.
//! * Persistent congestion (RFC 9002), which the RFC does not mention, is like a timeout but leaves
//!   the threshold and w_prior.

mod linux;

use crate::conventions::Conventions;
use crate::event::{Acked, Limit};
use crate::law::{Context, Signal, WindowLaw};
use crate::units::Time;
use alloc::boxed::Box;
use libm::cbrt;
use linux::Linux;

/// CUBIC: see the [module](self).
#[derive(Clone, Debug, PartialEq)]
pub struct Cubic {
    c: f64,
    kept: f64,
    fast: bool,
    w_max: f64,
    /// In seconds.
    k: f64,
    epoch: Time,
    w_est: f64,
    /// Infinite before the first reduction or the end of slow start.
    w_prior: f64,
    /// Whether the last reduction answered a loss or a mark: `k` follows from it.
    after_loss: bool,
    /// The last acknowledgement.
    observed: Time,
    /// Whether it left no packet in flight.
    idle: bool,
    /// Linux's CUBIC, which replaces the equations.
    linux: Option<Box<Linux>>,
}

impl Cubic {
    /// CUBIC with the growth constant `c`, which reduces its window to `kept` of it at a loss, with
    /// fast convergence or without.
    pub const fn new(c: f64, kept: f64, fast: bool) -> Self {
        Cubic {
            c,
            kept,
            fast,
            w_max: 0.0,
            k: 0.0,
            epoch: Time::ZERO,
            w_est: 0.0,
            w_prior: f64::INFINITY,
            after_loss: false,
            observed: Time::ZERO,
            idle: false,
            linux: None,
        }
    }

    /// The additive increase of the Reno-friendly region below `w_prior`.
    #[inline]
    fn alpha(&self) -> f64 {
        3.0 * (1.0 - self.kept) / (1.0 + self.kept)
    }

    /// W(t), t in seconds.
    #[inline]
    fn window(&self, t: f64) -> f64 {
        let x = t - self.k;
        self.c * x * x * x + self.w_max
    }
}

impl Default for Cubic {
    /// The RFC's parameters.
    fn default() -> Self {
        Cubic::new(0.4, 0.7, true)
    }
}

impl WindowLaw for Cubic {
    fn adopt(&mut self, conventions: &'static Conventions) {
        self.linux =
            conventions.whole_packets.then(|| Box::new(Linux::new(self.c, self.kept, self.fast)));
    }

    #[inline]
    fn grow(&mut self, w: f64, acked: f64, cx: &Context) -> f64 {
        if let Some(linux) = &mut self.linux {
            return linux.grow(w, acked, cx.now);
        }
        let t = cx.now.since(self.epoch).as_secs();
        let rtt = cx.rtt.map_or(0.0, |rtt| rtt.smoothed.as_secs());
        let alpha = if self.w_est < self.w_prior { self.alpha() } else { 1.0 };
        self.w_est += alpha * acked / w;
        if self.window(t) < self.w_est {
            self.w_est.max(w)
        } else {
            let target = self.window(t + rtt).max(w).min(1.5 * w);
            w + (target - w) * (acked / w).min(1.0)
        }
    }

    fn cut(&mut self, w: f64, why: Signal, _cx: &Context) -> f64 {
        if let Some(linux) = &mut self.linux {
            return linux.cut(w, why);
        }
        self.after_loss = !why.restarts();
        // Persistent congestion sets no threshold: cwnd_prior stays that of the losses reported
        // before it.
        if why != Signal::PersistentCongestion {
            self.w_prior = w;
            self.w_max = if self.fast && w < self.w_max { (1.0 + self.kept) * w / 2.0 } else { w };
        }
        self.kept * w
    }

    fn threshold(&self, cut: f64, _why: Signal) -> Option<f64> {
        Some(cut)
    }

    fn enter(&mut self, w: f64, cx: &Context) {
        self.epoch = cx.now;
        self.w_est = w;
        if !self.after_loss {
            self.w_max = w;
        }
        if self.w_prior.is_infinite() {
            self.w_prior = w;
        }
        self.k = cbrt((self.w_max - w) / self.c);
    }

    #[inline(always)]
    fn observe(&mut self, acked: &Acked, cx: &Context) {
        if let Some(linux) = &mut self.linux {
            return linux.observe(cx.now, acked.rtt, acked.in_flight, acked.sent_at);
        }
        // A sender limited by pacing uses its window, which grows. An idle sender may end its
        // period with a full window, which is then the limit of its acknowledgement.
        if matches!(acked.limit, Limit::Application | Limit::Receiver) {
            self.epoch += cx.now.since(self.observed);
        } else if self.idle {
            self.epoch += acked.sent_at.since(self.observed);
        }
        self.observed = cx.now;
        self.idle = acked.in_flight == 0;
    }

    fn reduced(&mut self, w: f64) {
        // In Linux, a timeout that leaves the threshold.
        if let Some(linux) = &mut self.linux
            && w <= 1.0
        {
            linux.restart();
        }
    }

    /// K follows from the scaled windows by Eq. 2: C does not depend on the packet size.
    fn rescale(&mut self, factor: f64) {
        self.w_max *= factor;
        self.w_est *= factor;
        self.w_prior *= factor;
        self.k *= cbrt(factor);
        if let Some(linux) = &mut self.linux {
            linux.rescale(factor);
        }
    }

    fn gauges(&self, emit: &mut dyn FnMut(&'static str, f64)) {
        let (w_max, w_est) = match &self.linux {
            Some(linux) => linux.windows(),
            None => (self.w_max, self.w_est),
        };
        emit("w_max", w_max);
        emit("w_est", w_est);
    }
}

/// One test for each section of RFC 9438, with values from its equations.
#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::{Controller, Settings};
    use crate::event::{Event, Lost, Marked};
    use crate::laws::testing::at;
    use crate::machine::{SlowStart, Windowed};
    use crate::units::{Dur, Packets};

    /// The smoothed round-trip time of `at`, in seconds.
    const RTT: f64 = 0.1;

    fn time(seconds: f64) -> Time {
        Time::ZERO + Dur::from_secs(seconds)
    }

    fn seconds(seconds: f64) -> Context {
        at(time(seconds))
    }

    fn near(value: f64, expected: f64) {
        assert!((value - expected).abs() < 1e-9, "{value} is not {expected}");
    }

    /// A law at the start of congestion avoidance at t = 0, after a loss at `w` packets. At 1000
    /// packets, K is cbrt(300 / 0.4) = cbrt(750) = 9.09 s: 91 round-trip times for 300 packets, so
    /// the law is not in the Reno-friendly region.
    fn after_a_loss_at(w: f64) -> Cubic {
        let mut law = Cubic::default();
        let cut = law.cut(w, Signal::Loss, &seconds(0.0));
        law.enter(cut, &seconds(0.0));
        law
    }

    fn acked(packets: u32, sent_at: f64) -> Acked {
        let rtt = Some(Dur::from_secs(RTT));
        Acked { rtt, in_flight: 100, ..Acked::new(packets, time(sent_at)) }
    }

    /// The machine with a window of `w` packets in slow start.
    fn machine(w: f64, slow_start: SlowStart) -> Windowed<Cubic> {
        let initial_window = Packets::new(w);
        let settings = Settings { initial_window, slow_start, ..Settings::default() };
        Windowed::new(Cubic::default(), &settings)
    }

    fn acknowledge(machine: &mut Windowed<Cubic>, now: f64, packets: u32) {
        machine.on(time(now), &Event::Acked(acked(packets, now - RTT)));
    }

    /// A loss of the packets sent at `now`, and the end of its recovery a round-trip time later.
    fn lose(machine: &mut Windowed<Cubic>, now: f64) {
        machine.on(time(now), &Event::Lost(Lost::new(1, time(now), 1000)));
        machine.on(time(now + RTT), &Event::Recovered);
    }

    fn mark(machine: &mut Windowed<Cubic>, now: f64) {
        machine.on(time(now), &Event::Marked(Marked::new(1, time(now), 1000)));
    }

    /// Section 4.1.2: RTT is the smoothed round-trip time (RFC 6298), not the latest sample.
    #[test]
    fn section_4_1_the_round_trip_time_is_smoothed() {
        let mut law = after_a_loss_at(1000.0);
        let mut cx = seconds(5.0);
        let expected = law.clone().grow(900.0, 1.0, &cx);
        if let Some(rtt) = &mut cx.rtt {
            rtt.latest = Dur::from_secs(2.0);
            rtt.min = Dur::from_secs(0.01);
        }
        assert_eq!(law.grow(900.0, 1.0, &cx), expected);
    }

    /// Section 4.2, Eq. 1 and 2: W(0) = C (-K)^3 + w_max = w0, and W(K) = w_max.
    #[test]
    fn section_4_2_the_cubic_passes_through_both_windows() {
        let law = after_a_loss_at(1000.0);
        near(law.k, 750_f64.cbrt());
        near(law.window(0.0), 700.0);
        near(law.window(law.k), 1000.0);
        near(law.window(law.k + 1.0), 1000.4);
        // Where the smallest threshold exceeds w_max, Eq. 2 has a negative K, and W(0) = w0 still:
        // the second loss at two packets sets w_max = 1.7 and w0 = 2.
        let mut law = Cubic::default();
        law.cut(3.0, Signal::Loss, &seconds(0.0));
        law.cut(2.0, Signal::Loss, &seconds(1.0));
        law.enter(2.0, &seconds(1.0));
        near(law.k, -(0.75_f64.cbrt()));
        near(law.window(0.0), 2.0);
    }

    /// Section 4.2: the target is W(t + RTT), at least w and at most 3/2 w.
    #[test]
    fn section_4_2_the_target_is_bounded() {
        let law = after_a_loss_at(1000.0);
        let target = |t: f64| 1000.0 + 0.4 * (t + RTT - 750_f64.cbrt()).powi(3);
        let grow = |w: f64, t: f64| law.clone().grow(w, 1.0, &seconds(t));
        near(grow(800.0, 3.0), 800.0 + (target(3.0) - 800.0) / 800.0);
        // W(3.1) = 914 packets.
        assert_eq!(grow(950.0, 3.0), 950.0);
        near(grow(600.0, 3.0), 600.0 + (900.0 - 600.0) / 600.0);
    }

    /// Section 4.2 and 5.8: t does not include periods in which the application or the receiver
    /// limits the sender, and includes those limited by the window or by pacing, in which the
    /// window grows.
    #[test]
    fn section_4_2_application_limited_time_does_not_count() {
        for (limit, t) in [
            (Limit::Window, 7.0),
            (Limit::Pacing, 7.0),
            (Limit::Application, 5.0),
            (Limit::Receiver, 5.0),
        ] {
            let mut law = after_a_loss_at(1000.0);
            law.observe(&acked(1, 3.9), &seconds(4.0));
            law.observe(&Acked { limit, ..acked(1, 5.9) }, &seconds(6.0));
            law.observe(&acked(1, 6.9), &seconds(7.0));
            let expected = after_a_loss_at(1000.0).grow(900.0, 1.0, &seconds(t));
            near(law.grow(900.0, 1.0, &seconds(7.0)), expected);
        }
    }

    /// Section 4.2: nor does t include the time in which no packet is in flight, although the sender
    /// ends it with a full window.
    #[test]
    fn section_4_2_idle_time_does_not_count() {
        let mut law = after_a_loss_at(1000.0);
        law.observe(&Acked { in_flight: 0, ..acked(1, 3.9) }, &seconds(4.0));
        law.observe(&acked(1, 6.0), &seconds(6.1));
        law.observe(&acked(1, 6.9), &seconds(7.0));
        let expected = after_a_loss_at(1000.0).grow(900.0, 1.0, &seconds(5.0));
        near(law.grow(900.0, 1.0, &seconds(7.0)), expected);
    }

    /// Section 4.3: W_est starts at cwnd_epoch and gains alpha = 3 * 0.3 / 1.7 = 9/17 for each
    /// window of packets (Eq. 4) until it reaches cwnd_prior, then 1. The window is W_est where
    /// W(t) is less.
    #[test]
    fn section_4_3_the_reno_friendly_region() {
        let mut law = after_a_loss_at(10.0);
        assert_eq!((law.w_est, law.w_prior), (7.0, 10.0));
        // W(0.01) = 10 + 0.4 (0.01 - cbrt(7.5))^3 = 7.05.
        near(law.grow(7.0, 3.0, &seconds(0.01)), 7.0 + 9.0 / 17.0 * 3.0 / 7.0);
        // W_est in an ACK of half a packet.
        let w_est = law.w_est;
        near(law.grow(w_est, 0.5, &seconds(0.01)), w_est + 9.0 / 17.0 * 0.5 / w_est);
        // Just below cwnd_prior, and from it on.
        law.w_est = 9.9;
        near(law.grow(9.9, 9.9, &seconds(0.02)), 9.9 + 9.0 / 17.0);
        law.w_est = 10.0;
        near(law.grow(10.0, 10.0, &seconds(0.02)), 11.0);
        // The comparison is with W(t), not with the target: W(0.2) < 7.55 < W(0.3).
        let mut law = after_a_loss_at(10.0);
        law.w_est = (law.window(0.2) + law.window(0.3)) / 2.0;
        let expected = law.w_est + 9.0 / 17.0 / 7.0;
        near(law.grow(7.0, 1.0, &seconds(0.2)), expected);
    }

    /// The average window of AIMD(alpha, beta) of Eq. 3, sqrt(alpha (1 + beta) / (2 (1 - beta) p)),
    /// is that of AIMD(1, 1/2) for the alpha of section 4.3.
    #[test]
    fn section_4_3_alpha_gives_renos_average_window() {
        let average = |alpha: f64, beta: f64| (alpha * (1.0 + beta) / (2.0 * (1.0 - beta))).sqrt();
        for kept in [0.5, 0.7, 0.875] {
            let law = Cubic::new(0.4, kept, true);
            near(average(law.alpha(), kept), average(1.0, 0.5));
        }
    }

    /// Section 4.4: below w_max the window gains (target - w) / w for each packet.
    #[test]
    fn section_4_4_the_concave_region() {
        let mut law = after_a_loss_at(1000.0);
        let target = 1000.0 + 0.4 * (2.0 + RTT - 750_f64.cbrt()).powi(3);
        assert!(target < 1000.0);
        near(law.grow(820.0, 1.0, &seconds(2.0)), 820.0 + (target - 820.0) / 820.0);
        // An ACK of two packets is two ACKs, and one of more than a window does not pass the
        // target.
        near(law.grow(820.0, 2.0, &seconds(2.0)), 820.0 + 2.0 * (target - 820.0) / 820.0);
        near(law.grow(820.0, 2000.0, &seconds(2.0)), target);
    }

    /// Section 4.5: the same from w_max on.
    #[test]
    fn section_4_5_the_convex_region() {
        let mut law = after_a_loss_at(1000.0);
        let target = 1000.0 + 0.4 * (15.0 + RTT - 750_f64.cbrt()).powi(3);
        assert!(target > 1050.0);
        near(law.grow(1050.0, 1.0, &seconds(15.0)), 1050.0 + (target - 1050.0) / 1050.0);
    }

    /// Section 4.6: ssthresh and the window are 0.7 of the window, at least two packets after a
    /// loss. After a mark the window is at least one packet, and the threshold two.
    #[test]
    fn section_4_6_multiplicative_decrease() {
        let after = |w: f64, event: fn(&mut Windowed<Cubic>, f64)| {
            let mut machine = machine(w, SlowStart::Standard);
            event(&mut machine, 1.0);
            (machine.window().get(), machine.ssthresh().get())
        };
        for event in [lose, mark] {
            let (window, ssthresh) = after(100.0, event);
            near(window, 70.0);
            near(ssthresh, 70.0);
        }
        assert_eq!(after(2.5, lose), (2.0, 2.0));
        assert_eq!(after(2.5, mark), (1.75, 2.0));
        assert_eq!(after(1.2, mark), (1.0, 2.0));
        // Marks reduce the window until it is one packet.
        let mut marked = machine(4.0, SlowStart::Standard);
        for n in 1..6 {
            mark(&mut marked, f64::from(n));
        }
        assert_eq!(marked.window().get(), 1.0);
        // cwnd_prior and w_max are the window before it.
        let law = marked_law();
        assert_eq!((law.w_prior, law.w_max), (100.0, 100.0));
    }

    fn marked_law() -> Cubic {
        let mut machine = machine(100.0, SlowStart::Standard);
        mark(&mut machine, 1.0);
        machine.into_law()
    }

    /// Section 4.7: below the last w_max, w_max is (1 + 0.7) / 2 of the window before the
    /// reduction.
    #[test]
    fn section_4_7_fast_convergence() {
        for (fast, w, w_max) in [
            (true, 90.0, 0.85 * 90.0),
            (true, 100.0, 100.0),
            (true, 110.0, 110.0),
            (false, 90.0, 90.0),
        ] {
            let mut law = Cubic::new(0.4, 0.7, fast);
            law.cut(100.0, Signal::Loss, &seconds(0.0));
            near(law.cut(w, Signal::Loss, &seconds(1.0)), 0.7 * w);
            near(law.w_max, w_max);
            assert_eq!(law.w_prior, w);
        }
    }

    /// Section 4.8: a timeout sets ssthresh to 0.7 of the window and the window to one packet.
    /// Congestion avoidance begins with K = 0, and w_max and W_est are the window.
    #[test]
    fn section_4_8_timeout() {
        let mut machine = machine(100.0, SlowStart::Standard);
        lose(&mut machine, 0.0);
        machine.on(time(1.0), &Event::Timeout(Lost::new(0, Time::ZERO, 1000)));
        assert_eq!(machine.window().get(), 1.0);
        near(machine.ssthresh().get(), 0.7 * 70.0);
        let mut now = 1.0;
        while machine.in_slow_start() {
            now += RTT;
            acknowledge(&mut machine, now, 2);
        }
        let law = machine.law();
        near(machine.window().get(), 49.0);
        assert_eq!((law.k, law.epoch), (0.0, time(now)));
        near(law.w_max, 49.0);
        near(law.w_est, 49.0);
        // W(t) = C t^3 + w_max: at 10 s, 400 packets more.
        near(law.window(10.0), 449.0);
        // The threshold was set at 70 packets.
        near(law.w_prior, 70.0);
    }

    /// Persistent congestion sets no threshold: cwnd_prior is the window before the loss.
    #[test]
    fn persistent_congestion_is_like_a_timeout() {
        let mut machine = machine(100.0, SlowStart::Standard);
        lose(&mut machine, 0.0);
        machine.on(time(1.0), &Event::PersistentCongestion);
        assert_eq!(machine.window().get(), 2.0);
        let mut now = 1.0;
        while machine.in_slow_start() {
            now += RTT;
            acknowledge(&mut machine, now, 2);
        }
        let law = machine.law();
        near(machine.window().get(), 70.0);
        assert_eq!((law.k, law.w_max, law.w_prior), (0.0, 70.0, 100.0));
    }

    /// A machine in congestion avoidance after a loss at 1000 packets, with its state at 4 s.
    fn in_avoidance() -> (Windowed<Cubic>, f64) {
        let mut machine = machine(1000.0, SlowStart::Standard);
        lose(&mut machine, 0.0);
        for n in 2..=40 {
            acknowledge(&mut machine, f64::from(n) * RTT, 100);
        }
        let window = machine.window().get();
        assert!(window > 705.0 && !machine.in_slow_start());
        (machine, window)
    }

    /// Section 4.9.1: the response to a spurious timeout restores the state of congestion control.
    #[test]
    fn section_4_9_1_spurious_timeout() {
        let (mut machine, window) = in_avoidance();
        let (law, ssthresh) = (machine.law().clone(), machine.ssthresh());
        machine.on(time(4.2), &Event::Timeout(Lost::new(0, Time::ZERO, 9000)));
        assert_eq!(machine.window().get(), 1.0);
        machine.on(time(4.3), &Event::Undo);
        assert_eq!(machine.window().get(), window);
        assert_eq!((machine.law(), machine.ssthresh()), (&law, ssthresh));
    }

    /// Section 4.9.2: a spurious loss restores cwnd, cwnd_prior, ssthresh, w_max, K, t_epoch and
    /// W_est if cwnd is below cwnd_prior. Otherwise the law keeps its current values.
    #[test]
    fn section_4_9_2_spurious_loss() {
        let (mut machine, window) = in_avoidance();
        let (law, ssthresh) = (machine.law().clone(), machine.ssthresh());
        lose(&mut machine, 4.2);
        acknowledge(&mut machine, 4.4, 100);
        assert_ne!(machine.law().w_prior, law.w_prior);
        machine.on(time(4.5), &Event::Undo);
        assert_eq!(machine.window().get(), window);
        assert_eq!((machine.law(), machine.ssthresh()), (&law, ssthresh));

        lose(&mut machine, 5.0);
        let mut now = 5.2;
        while machine.window().get() <= machine.law().w_prior {
            acknowledge(&mut machine, now, 500);
            now += RTT;
        }
        let (law, window) = (machine.law().clone(), machine.window());
        machine.on(time(now), &Event::Undo);
        assert_eq!((machine.law(), machine.window()), (&law, window));
    }

    /// Section 4.10: slow start up to ssthresh. Where HyStart++ ends it without a loss, cwnd_prior
    /// = w_max = cwnd and K = 0; since W_est has reached cwnd_prior, alpha is 1.
    #[test]
    fn section_4_10_slow_start() {
        let mut standard = machine(10.0, SlowStart::Standard);
        acknowledge(&mut standard, RTT, 2);
        assert_eq!(standard.window().get(), 12.0);

        // Round-trip times that rise by 20 ms each round.
        let mut machine = machine(10.0, SlowStart::HyStart);
        let rounds = (0..12).map(|n| f64::from(n) * 0.5);
        for (sent, ack) in rounds.flat_map(|sent| (0..10).map(move |ack| (sent, f64::from(ack)))) {
            if machine.in_slow_start() {
                let rtt = RTT + 0.04 * sent;
                let sample = Acked { rtt: Some(Dur::from_secs(rtt)), ..acked(1, sent) };
                machine.on(time(sent + rtt + 0.004 * ack), &Event::Acked(sample));
            }
        }
        assert!(!machine.in_slow_start());
        let (window, law) = (machine.window().get(), machine.into_law());
        assert_eq!((law.k, law.w_max, law.w_prior, law.w_est), (0.0, window, window, window));

        let mut law = Cubic::default();
        law.enter(50.0, &seconds(3.0));
        near(law.grow(50.0, 50.0, &seconds(3.0)), 51.0);
        near(law.window(10.0), 50.0 + 0.4 * 1000.0);
    }

    /// Section 5: the average window 1.054 RTT^(3/4) / p^(3/4) of Eq. 7, from Eq. 5 with a loss
    /// after each 1/p packets. By appendix B it follows from one epoch: 1/p packets in K =
    /// cbrt(w_max 0.3 / C) seconds, with the mean window (3 + 0.7) / 4 w_max.
    #[test]
    fn section_5_the_average_window() {
        for p in [1e-5_f64, 1e-6, 1e-7] {
            let expected = 1.054 * (RTT / p).powf(0.75);
            let w_max = expected / (3.7 / 4.0);
            let law = after_a_loss_at(w_max);
            let steps = 10_000;
            let mean = (0..steps)
                .map(|n| law.window(law.k * (f64::from(n) + 0.5) / f64::from(steps)))
                .sum::<f64>()
                / f64::from(steps);
            assert!((mean / expected - 1.0).abs() < 1e-6);
            assert!((mean * law.k / RTT * p - 1.0).abs() < 1e-3, "{}", mean * law.k / RTT * p);
        }
    }

    /// In packets of another size K follows from Eq. 2, and everything else is in packets.
    #[test]
    fn rescaling_is_the_same_law_at_scaled_windows() {
        let mut law = after_a_loss_at(1000.0);
        law.rescale(0.8);
        let mut expected = after_a_loss_at(800.0);
        near(law.k, expected.k);
        for (w, t) in [(560.0, 0.05), (600.0, 1.0), (790.0, 8.0), (900.0, 14.0)] {
            let grown = law.grow(w, 1.0, &seconds(t));
            near(grown, expected.grow(w, 1.0, &seconds(t)));
        }
    }
}
