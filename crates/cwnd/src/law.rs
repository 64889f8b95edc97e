//! What a paper prints and nothing else: how the window or the rate grows, and how it is cut. The
//! machines in [`crate::machine`] own everything around it.

use crate::event::{Acked, Lost, Report};
use crate::units::{Dur, Packets, Rate, Time};

/// Why a window or a rate is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Signal {
    /// Packets were lost and the acknowledgements told of it.
    Loss,
    /// Packets were marked (RFC 3168).
    Mark,
    /// The retransmission timer expired.
    Timeout,
}

/// The round-trip time as the controller knows it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rtt {
    /// The newest sample.
    pub latest: Dur,
    /// The smoothed value (RFC 6298, gain 1/8).
    pub smoothed: Dur,
    /// The smallest sample of the connection.
    pub min: Dur,
}

/// What happened between two cuts: AIRA's Round. A timeout that ends no round is none of the two: see
/// [`WindowLaw::timeout_ends_round`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Round {
    /// Packets sent between the two cuts, retransmissions included.
    pub sent: u64,
    /// Packets of the round found lost, by the end of its recovery.
    pub lost: u64,
    /// Packets of the round reported as marked.
    pub marked: u64,
    /// The time between the two cuts.
    pub took: Dur,
}

/// What a law may look at besides the window or the rate.
#[derive(Clone, Copy, Debug)]
pub struct Context {
    /// The time of the event.
    pub now: Time,
    /// The round-trip time; `None` before the first sample.
    pub rtt: Option<Rtt>,
    /// When the last cut was, or the connection began.
    pub last_cut: Time,
    /// Bytes in a packet.
    pub packet: u32,
    /// Whether the machine is in slow start.
    pub slow_start: bool,
}

impl Context {
    /// Round-trip times since the last cut; zero before the first sample.
    pub fn rtts_since_cut(&self) -> f64 {
        match self.rtt {
            Some(rtt) if !rtt.smoothed.is_zero() => {
                self.now.since(self.last_cut).as_secs() / rtt.smoothed.as_secs()
            }
            _ => 0.0,
        }
    }
}

/// A law for the congestion window, clocked by acknowledgements.
///
/// Windows are in packets and real-valued. A law never sees slow start, recovery, clamps or clocks:
/// the [`crate::machine::Windowed`] machine calls it only where the paper's rule applies.
pub trait WindowLaw: Clone {
    /// The window after `acked` packets were acknowledged in congestion avoidance at window `w`.
    fn grow(&mut self, w: Packets, acked: Packets, cx: &Context) -> Packets;

    /// The window after a congestion signal at window `w`, at most once a window of data. For
    /// [`Signal::Timeout`] it is the slow-start threshold.
    fn cut(&mut self, w: Packets, why: Signal, cx: &Context) -> Packets;

    /// Whether [`WindowLaw::cut`] is the slow-start threshold after every signal, as the law's source
    /// says, also where it exceeds the window. Otherwise the threshold is at most half of the window
    /// in slow start and after a timeout (RFC 5681 equation 4).
    fn own_threshold(&self) -> bool {
        false
    }

    /// Congestion avoidance starts, or starts again, at window `w`: after slow start and after each
    /// cut.
    fn enter(&mut self, _w: Packets, _cx: &Context) {}

    /// A round is over and its losses are known: called after its recovery, before growth resumes.
    fn round(&mut self, _round: &Round, _cx: &Context) {}

    /// Whether a timeout ends the round, as a loss does, or the round continues. A timeout in recovery, or
    /// at a window of one packet, ends none.
    fn timeout_ends_round(&self) -> bool {
        true
    }

    /// Every acknowledgement, in every phase: for estimators.
    fn observe(&mut self, _acked: &Acked, _cx: &Context) {}

    /// Whether slow start should end at window `w` before a loss ends it (Vegas).
    fn leave_slow_start(&mut self, _w: Packets, _cx: &Context) -> bool {
        false
    }

    /// The law's own variables by name, the same each time, for plots: AIRA's `a`, the rate of
    /// Westwood.
    fn gauges(&self, _emit: &mut dyn FnMut(&'static str, f64)) {}
}

/// What a rate law's control interval runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// A timer of its own.
    Timer,
    /// The receiver's reports: the first one after an interval has passed.
    Reports,
}

/// A law for the sending rate, run every control interval.
///
/// Rates are in packets per second. The [`crate::machine::Paced`] machine owns the interval, slow
/// start and the clamps.
pub trait RateLaw: Clone {
    /// What the control interval runs on.
    fn clock(&self) -> Clock;

    /// The control interval (UDT: SYN, 10 ms).
    fn interval(&self) -> Dur;

    /// The rate after an interval with acknowledgements and without a loss.
    fn tick(&mut self, rate: Rate, cx: &Context) -> Rate;

    /// The rate after a loss report. `fresh` when the newest lost packet was sent after the last
    /// decrease: a new congestion period.
    fn cut(&mut self, rate: Rate, fresh: bool, why: Signal, cx: &Context) -> Rate;

    /// The receiver's report: for estimators.
    fn observe(&mut self, _report: &Report, _cx: &Context) {}

    /// Whether the law uses the receiver's estimate of the link capacity: the sender then sends the
    /// packet pairs that it is made from.
    fn uses_capacity(&self) -> bool {
        false
    }

    /// Packets were lost or marked at `rate`: told before any cut.
    fn losses(&mut self, _lost: &Lost, _rate: Rate, _cx: &Context) {}

    /// The flow window in packets; without one only the receiver limits what is in flight.
    fn window(&self, _cx: &Context) -> Option<Packets> {
        None
    }

    /// Whether the law has a slow start of its own. It then begins at the rate of `start`, and `tick`
    /// runs after every interval, whatever came in it.
    fn starts_itself(&self) -> bool {
        false
    }

    /// The rate at which to leave slow start, where the window was `w`.
    fn start(&mut self, w: Packets, cx: &Context) -> Rate;

    /// The law's own variables by name, the same each time, for plots.
    fn gauges(&self, _emit: &mut dyn FnMut(&'static str, f64)) {}
}
