//! One law on a path that never changes.

use crate::any::Law;
use crate::event::{Acked, Lost, Report, TICK_GAP};
use crate::law::{Context, RateLaw, Round, Signal, WindowLaw};
use crate::parts::MAX_WINDOW;
use crate::rtt::Rtt;
use crate::units::{Dur, Rate, Time};
use libm::floor;

/// The smallest window, as in [`crate::Windowed`].
const MIN_WINDOW: f64 = 1.0;

/// The acknowledgements of a round are fewer than twice as many: from there on they are grouped.
const ACKS_OF_ROUND: f64 = 1e6;

/// The window for a law's answer: one that is not a number is the least, as in the machines.
#[inline]
fn bounded(window: f64) -> f64 {
    if window >= MIN_WINDOW { window.min(MAX_WINDOW) } else { MIN_WINDOW }
}

/// What a law can learn of its path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Path {
    /// The round-trip time; it never changes.
    pub rtt: Dur,
    /// What a rate law's receiver reports as the capacity of the link.
    pub capacity: Rate,
    /// Bytes in a packet.
    pub packet: u32,
}

/// How the acknowledgements of a round come. A rate law does not see the difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// One for each packet of the window and one for the fraction that is left, evenly spread. In
    /// windows of 2 million packets and more each acknowledges several packets.
    Each,
    /// One for the whole window: the rule for a round-trip time, as papers print it.
    Whole,
}

/// A law alone, in congestion avoidance.
///
/// A rate law's window is what it sends in a round-trip time; its flow window and slow start are
/// not modelled. It hears of its arrival rate (its own) and of the capacity every control interval.
///
/// ```
/// use cwnd::model::{Alone, Path, Pattern};
/// use cwnd::{Dur, MakeController, Rate, Settings, Spec};
///
/// let path = Path { rtt: Dur::from_millis(100), capacity: Rate::per_sec(1000.0), packet: 1500 };
/// let law = Spec::parse("reno")?.law(&Settings::default()).unwrap();
/// let mut reno = Alone::new(law, 10.0, path);
/// reno.round(Pattern::Whole);
/// assert_eq!(reno.window(), 11.0);
/// reno.cut();
/// assert_eq!(reno.window(), 5.5);
/// # Ok::<(), cwnd::SpecError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Alone {
    law: Law,
    path: Path,
    window: f64,
    /// In nanoseconds since the start: acknowledgements of large windows come less than one apart.
    now: f64,
    last_cut: Time,
    /// Window laws: whether the law knows the window at which congestion avoidance began.
    entered: bool,
    /// Of the round that [`Alone::acknowledge`] is in: acknowledgements to come, and the time
    /// between two of them in round-trip times.
    left: f64,
    spacing: f64,
    /// Packets acknowledged since the last cut, and the part of them not yet observed by the law.
    acked: f64,
    unseen: f64,
    sent: u64,
    /// Rate laws: the start of the running control interval, and whether a loss fell into it.
    interval: f64,
    lost: bool,
}

impl Alone {
    /// `law` at the beginning of congestion avoidance, with a window of `window` packets.
    pub fn new(law: Law, window: f64, path: Path) -> Self {
        Alone {
            law,
            path,
            window: bounded(window),
            now: 0.0,
            last_cut: Time::ZERO,
            entered: false,
            left: 0.0,
            spacing: 0.0,
            acked: 0.0,
            unseen: 0.0,
            sent: 0,
            interval: 0.0,
            lost: false,
        }
    }

    /// The window in packets.
    pub fn window(&self) -> f64 {
        self.window
    }

    /// Puts the window where something else than the law has brought it.
    pub(super) fn set_window(&mut self, window: f64) {
        self.window = bounded(window);
    }

    fn rtt(&self) -> f64 {
        self.path.rtt.as_nanos() as f64
    }

    #[inline]
    fn context(&self) -> Context {
        let rtt = self.path.rtt;
        Context {
            now: Time::from_nanos(self.now as u64),
            rtt: Some(Rtt::first(rtt)),
            last_cut: self.last_cut,
            packet: self.path.packet,
            slow_start: false,
        }
    }

    /// `count` acknowledgements of `credit` packets each, `gap` nanoseconds apart. A rate law has
    /// none.
    #[inline]
    fn ack(&mut self, count: u64, credit: f64, gap: f64) {
        let mut cx = self.context();
        let Law::Window(law) = &mut self.law else { return };
        let rtt = self.path.rtt;
        let way_back = Dur::from_nanos(rtt.as_nanos() / 2);
        let (mut now, mut window) = (self.now, self.window);
        let (mut unseen, mut sent) = (self.unseen, self.sent);
        for _ in 0..count {
            now += gap;
            unseen += credit;
            cx.now = Time::from_nanos(now as u64);
            if unseen >= 1.0 {
                let packets = unseen as u32;
                unseen -= f64::from(packets);
                sent += u64::from(packets);
                let mut acked = Acked::new(packets, cx.now - rtt);
                acked.in_flight = window as u32;
                acked.sent = sent + window as u64;
                acked.rtt = Some(rtt);
                acked.received_at = Some(cx.now - way_back);
                law.observe(&acked, &cx);
            }
            if !self.entered {
                self.entered = true;
                law.enter(window, &cx);
            }
            window = bounded(law.grow(window, credit, &cx));
        }
        (self.now, self.window) = (now, window);
        (self.unseen, self.sent) = (unseen, sent);
        self.acked += count as f64 * credit;
    }

    /// One packet of a window law is acknowledged; gives the round-trip times since the last. The
    /// acknowledgements of a round are spread by the window that was sent in the round before, as
    /// many as the window says or, if only `whole` packets are sent, without its fraction.
    #[inline]
    pub fn acknowledge(&mut self, whole: bool) -> f64 {
        if self.left < 1.0 {
            let sent = if whole { floor(self.window) } else { self.window };
            self.left += sent;
            self.spacing = 1.0 / sent;
        }
        self.left -= 1.0;
        self.ack(1, 1.0, self.rtt() * self.spacing);
        self.spacing
    }

    /// `packets` of a window law are acknowledged together, after their share of a round-trip time.
    pub(super) fn acknowledge_many(&mut self, packets: f64) {
        self.ack(1, packets, self.rtt() * packets / self.window);
    }

    /// A round-trip time passes in which a window law does nothing: its recovery.
    pub fn pause(&mut self) {
        self.now += self.rtt();
    }

    /// A round-trip time passes without a loss: all packets of the window are acknowledged.
    pub fn round(&mut self, pattern: Pattern) {
        let (rtt, w) = (self.rtt(), self.window);
        match (&self.law, pattern) {
            (Law::Rate(_), _) => self.rate_round(),
            (Law::Window(_), Pattern::Whole) => self.ack(1, w, rtt),
            (Law::Window(_), Pattern::Each) => {
                let each = floor(w / ACKS_OF_ROUND).max(1.0);
                let count = floor(w / each);
                self.ack(count as u64, each, rtt / w * each);
                let rest = w - count * each;
                if rest > 0.0 {
                    self.ack(1, rest, rtt / w * rest);
                }
            }
        }
    }

    fn rate_round(&mut self) {
        let end = self.now + self.rtt();
        let Path { rtt, capacity, .. } = self.path;
        loop {
            let Law::Rate(law) = &self.law else { return };
            // As in the drivers: an interval of 0 would never end the round.
            let interval = law.interval().max(TICK_GAP);
            let next = self.interval + interval.as_nanos() as f64;
            if next > end {
                break;
            }
            self.now = next;
            self.interval = next;
            let cx = self.context();
            let rate = Rate::over(self.window, rtt);
            let Law::Rate(law) = &mut self.law else { return };
            let packets = rate.packets(interval);
            self.acked += packets;
            self.sent += packets as u64;
            let (arrival, capacity) = (Some(rate), Some(capacity));
            let report =
                Report { packets: packets as u32, sent: self.sent, arrival, capacity, rtt };
            law.observe(&report, &cx);
            // An interval with a loss in it does not grow, as in the paced machine.
            if !core::mem::take(&mut self.lost) {
                let window = law.tick(rate, &cx).packets(rtt);
                // As in the paced machine, a rate that is not finite leaves the rate.
                if window.is_finite() {
                    self.window = bounded(window);
                }
            }
        }
        self.now = end;
    }

    /// A loss, answered at once; one packet of all those since the last cut.
    pub fn cut(&mut self) {
        let cx = self.context();
        let before = self.window;
        let after = match &mut self.law {
            Law::Window(law) => {
                let after = law.cut(before, Signal::Loss, &cx);
                let took = cx.now.since(self.last_cut);
                let sent = (self.acked as u64).max(1);
                law.round(&Round { sent, lost: 1, marked: 0, took }, &cx);
                after
            }
            Law::Rate(law) => {
                let rate = Rate::over(before, self.path.rtt);
                law.losses(&Lost::new(1, cx.now - self.path.rtt, self.sent), rate, &cx);
                law.cut(rate, true, Signal::Loss, &cx).packets(self.path.rtt)
            }
        };
        // f64::min keeps the window where a law's answer is not a number.
        self.window = bounded(after.min(before));
        self.entered = false;
        self.lost = true;
        self.last_cut = cx.now;
        self.acked = 0.0;
        self.left = 0.0;
    }
}
