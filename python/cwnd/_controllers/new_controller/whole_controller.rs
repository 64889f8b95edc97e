//! **$Type**: to fill in, what it does in one sentence.
//!
//! Source: to fill in, authors, title, where and when published. Until then it is AIMD(α, β),
//! paced.
//!
//! ```text
//! slow start: w <- w + 1 for each packet acknowledged, while w < ssthresh
//! each ACK: w <- w + alpha / w
//! at a loss or a mark: w <- w - beta w, once for each window of data; ssthresh <- w
//! at a timeout: ssthresh <- w - beta w; w <- 2
//! pacing rate: 1.25 w / srtt
//! ```
//!
//! | symbol | meaning | unit | range | default |
//! |---|---|---|---|---|
//! | `alpha` | packets gained each round-trip time | packets | 0 < alpha <= 1000 | 1 |
//! | `beta` | fraction of the window given up at a loss | | 0 < beta < 1 | 1/2 |
//!
//! TCP-friendly without timeouts: `alpha = 3 beta / (2 - beta)`.
//!
//! Slow-start threshold: the window after a reduction, at least two packets.
//!
//! Known deviations: to fill in, or none.

use crate::controller::{Controller, Cut, Settings};
use crate::event::{Acked, Event, Limit, Output};
use crate::law::Signal;
use crate::rtt::Rtt;
use crate::units::{Packets, Rate, Time};

/// The smallest window in packets, and the window after a timeout or persistent congestion (RFC
/// 9002 section 7.2).
const MIN_WINDOW: f64 = 2.0;
/// The largest window in packets: drivers count packets in 32 bits.
const MAX_WINDOW: f64 = u32::MAX as f64;
/// The smallest slow-start threshold in packets (RFC 5681 equation 4).
const MIN_THRESHOLD: f64 = 2.0;
/// The pacing rate as a multiple of one window in each smoothed round-trip time (RFC 9002 section
/// 7.7).
const PACING: f64 = 1.25;

/// $Type: see the [module](self).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct $Type {
    alpha: f64,
    beta: f64,
    packet: u32,
    max_window: f64,
    window: f64,
    threshold: f64,
    rtt: Option<Rtt>,
    last_cut: Option<Time>,
    /// Window and threshold before the last reduction, for the case that it was spurious.
    saved: Option<(f64, f64)>,
    cut: Option<Cut>,
}

impl $Type {
    /// $Type that gains `alpha` packets each round-trip time and gives up `beta` of its window,
    /// from the start of a connection.
    pub fn new(alpha: f64, beta: f64, settings: &Settings) -> Self {
        let max_window = settings.max_window.get().clamp(MIN_WINDOW, MAX_WINDOW);
        $Type {
            alpha,
            beta,
            packet: settings.packet,
            max_window,
            window: settings.initial_window.get().clamp(MIN_WINDOW, max_window),
            threshold: f64::INFINITY,
            rtt: None,
            last_cut: None,
            saved: None,
            cut: None,
        }
    }

    fn acked(&mut self, acked: &Acked) {
        if let Some(sample) = acked.rtt {
            self.rtt = Some(self.rtt.map_or(Rtt::first(sample), |rtt| rtt.after(sample)));
        }
        // Packets sent before the last reduction say nothing about the window after it, and an
        // unused window is not validated (RFC 7661).
        let old = self.last_cut.is_some_and(|cut| acked.sent_at <= cut);
        let used = matches!(acked.limit, Limit::Window | Limit::Pacing);
        if old || acked.echo || !used {
            return;
        }
        let credit = f64::from(acked.credit);
        let grown = if self.window < self.threshold {
            (self.window + credit).min(self.threshold)
        } else {
            self.window + self.alpha * credit / self.window
        };
        self.window = grown.min(self.max_window);
    }

    /// Reduces the window, once for each window of data.
    fn congested(&mut self, now: Time, why: Signal, sent_at: Time) {
        if self.last_cut.is_none_or(|cut| sent_at > cut) {
            self.shrink(now, why);
        }
    }

    fn shrink(&mut self, now: Time, why: Signal) {
        let before = self.window;
        self.saved = Some((before, self.threshold));
        self.threshold = (before - self.beta * before).max(MIN_THRESHOLD);
        self.window = if why.restarts() { MIN_WINDOW } else { self.threshold.min(before) };
        self.last_cut = Some(now);
        self.cut = Some(Cut::window(why, Packets::new(before), Packets::new(self.window)));
    }

    /// The last reduction was spurious.
    fn undo(&mut self) {
        if let Some((window, threshold)) = self.saved.take() {
            self.window = self.window.max(window);
            self.threshold = threshold;
        }
    }

    /// The packet size changed: the window stays the same number of bytes.
    fn rescale(&mut self, packet: u32) {
        let packet = packet.max(1);
        let factor = f64::from(self.packet) / f64::from(packet);
        self.packet = packet;
        self.max_window = (self.max_window * factor).clamp(MIN_WINDOW, MAX_WINDOW);
        self.window = (self.window * factor).clamp(MIN_WINDOW, self.max_window);
        self.threshold *= factor;
        self.saved = self.saved.map(|(window, threshold)| {
            ((window * factor).clamp(MIN_WINDOW, self.max_window), threshold * factor)
        });
    }
}

impl Controller for $Type {
    fn on(&mut self, now: Time, event: &Event) {
        match event {
            Event::Acked(acked) => self.acked(acked),
            Event::Lost(lost) => self.congested(now, Signal::Loss, lost.sent_at),
            Event::Marked(marked) => self.congested(now, Signal::Mark, marked.sent_at),
            Event::Timeout(_) => self.shrink(now, Signal::Timeout),
            Event::PersistentCongestion => self.shrink(now, Signal::PersistentCongestion),
            Event::Undo => self.undo(),
            Event::Reduced { window, .. } => {
                self.window = self.window.min(window.get()).max(MIN_WINDOW);
            }
            Event::Mtu { packet } => self.rescale(*packet),
            Event::Handshake { .. } | Event::Report(_) | Event::Recovered | Event::Tick => {}
        }
    }

    fn output(&self) -> Output {
        let mut output = Output::window(Packets::new(self.window));
        let pace = self.rtt.map(|rtt| Rate::over(PACING * self.window, rtt.smoothed));
        output.pace = pace.filter(|pace| pace.as_per_sec().is_finite());
        output
    }

    fn take_cut(&mut self) -> Option<Cut> {
        self.cut.take()
    }

    fn gauges(&self, emit: &mut dyn FnMut(&'static str, f64)) {
        emit("ssthresh", self.threshold);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Lost;
    use crate::units::Dur;

    fn at(millis: u64) -> Time {
        Time::ZERO + Dur::from_millis(millis)
    }

    fn controller() -> $Type {
        $Type::new(1.0, 0.5, &Settings::default())
    }

    #[test]
    fn slow_start_gains_a_packet_for_each_acknowledged_one() {
        let mut controller = controller();
        controller.on(at(50), &Event::Acked(Acked::new(2, at(0))));
        assert_eq!(controller.output().window, Packets::new(12.0));
    }

    #[test]
    fn one_reduction_for_each_window_of_data() {
        let mut controller = controller();
        controller.on(at(50), &Event::Lost(Lost::new(1, at(10), 20)));
        controller.on(at(51), &Event::Lost(Lost::new(1, at(11), 20)));
        let cut = controller.take_cut().unwrap();
        assert_eq!((cut.before(), cut.after()), (10.0, 5.0));
        assert_eq!((controller.window, controller.take_cut()), (5.0, None));
        // Congestion avoidance: one packet for each window.
        controller.on(at(120), &Event::Acked(Acked::new(5, at(60))));
        assert_eq!(controller.window, 6.0);
    }

    #[test]
    fn a_spurious_timeout_is_reverted() {
        let mut controller = controller();
        controller.on(at(50), &Event::Timeout(Lost::new(0, Time::ZERO, 10)));
        assert_eq!((controller.window, controller.threshold), (2.0, 5.0));
        controller.on(at(60), &Event::Undo);
        assert_eq!((controller.window, controller.threshold), (10.0, f64::INFINITY));
    }

    #[test]
    fn it_paces_by_the_window_and_the_round_trip_time() {
        let mut controller = controller();
        assert_eq!(controller.output().pace, None);
        let mut acked = Acked::new(1, at(0));
        (acked.rtt, acked.limit) = (Some(Dur::from_millis(100)), Limit::Application);
        controller.on(at(100), &Event::Acked(acked));
        assert_eq!(controller.output().pace, Some(Rate::per_sec(125.0)));
    }
}
