//! What a driver sees of a congestion controller: the [`Controller`] trait, its settings and its
//! reductions.

use crate::conventions::Conventions;
use crate::event::{Event, Output};
use crate::law::Signal;
use crate::machine::SlowStart;
use crate::units::{Packets, Rate, Time};
use alloc::boxed::Box;
use core::fmt;
use dyn_clone::DynClone;

/// A congestion controller, as a driver uses it.
///
/// A driver reports each [`Event`] with its time and then reads the [`Output`]. Window laws and
/// rate laws have this interface through their machines, [`Windowed`](crate::Windowed) and
/// [`Paced`](crate::Paced). A controller that owns all of its state, such as BBR, implements it
/// directly and uses [`crate::parts`]. What each side may rely on is in [Writing a
/// driver](crate#writing-a-driver) and [Writing a controller](crate#writing-a-controller).
///
/// ```
/// use cwnd::{Controller, Cut, Dur, Event, Needs, Output, Packets, Rate, Time};
///
/// /// Sends ten packets in each smallest round-trip time.
/// #[derive(Clone, Debug, Default)]
/// struct Constant {
///     min_rtt: Option<Dur>,
/// }
///
/// impl Controller for Constant {
///     fn on(&mut self, _now: Time, event: &Event) {
///         if let Event::Acked(acked) = event
///             && let Some(rtt) = acked.rtt
///         {
///             self.min_rtt = Some(self.min_rtt.map_or(rtt, |min| min.min(rtt)));
///         }
///     }
///
///     fn output(&self) -> Output {
///         let mut output = Output::window(Packets::new(20.0));
///         output.pace = self.min_rtt.map(|rtt| Rate::over(10.0, rtt));
///         output
///     }
/// }
/// ```
pub trait Controller: DynClone + fmt::Debug + Send + Sync {
    /// Processes an event at `now`. Times never decrease. Any event is accepted in any order;
    /// events that a controller does not know are ignored.
    fn on(&mut self, now: Time, event: &Event);

    /// The answer as of the last event. Cheap: a driver reads it after each event and before each
    /// packet.
    fn output(&self) -> Output;

    /// What the controller needs from its driver beyond acknowledgements and losses. It never
    /// changes.
    fn needs(&self) -> Needs {
        Needs::default()
    }

    /// Takes the last reduction, if there was one since the last call: for records, and for CWR
    /// (RFC 3168 section 6.1.2).
    fn take_cut(&mut self) -> Option<Cut> {
        None
    }

    /// Emits the controller's variables by name, the same names each time: `ssthresh` and the law's
    /// own.
    fn gauges(&self, _emit: &mut dyn FnMut(&'static str, f64)) {}
}

dyn_clone::clone_trait_object!(Controller);

impl<C: Controller + ?Sized> Controller for Box<C>
where
    Box<C>: Clone,
{
    fn on(&mut self, now: Time, event: &Event) {
        (**self).on(now, event);
    }
    fn output(&self) -> Output {
        (**self).output()
    }
    fn needs(&self) -> Needs {
        (**self).needs()
    }
    fn take_cut(&mut self) -> Option<Cut> {
        (**self).take_cut()
    }
    fn gauges(&self, emit: &mut dyn FnMut(&'static str, f64)) {
        (**self).gauges(emit);
    }
}

/// What a controller needs from its driver. A driver may omit the rest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Needs {
    /// A delivery-rate sample with each acknowledgement:
    /// [`Acked::delivery`](crate::Acked::delivery).
    pub delivery_rate: bool,
    /// Marks: all packets of the sender are ECN-capable, the SYN too (RFC 8257 section 3.6).
    pub ecn: bool,
    /// The receiver's periodic reports ([`Event::Report`]) instead of acknowledgements.
    pub reports: bool,
    /// The receiver's estimate of the link capacity in its reports: the sender sends the packet
    /// pairs from which the receiver computes it.
    pub capacity: bool,
}

/// A reduction of the window or the rate, for records.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Cut {
    /// The signal that caused it.
    pub why: Signal,
    /// The values before and after.
    pub reduction: Reduction,
}

/// The value that a [`Cut`] reduced.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reduction {
    /// The congestion window.
    Window {
        /// Before the signal.
        before: Packets,
        /// After the signal.
        after: Packets,
    },
    /// The sending rate.
    Rate {
        /// Before the signal.
        before: Rate,
        /// After the signal.
        after: Rate,
    },
}

impl Cut {
    /// A reduction of the window.
    pub const fn window(why: Signal, before: Packets, after: Packets) -> Self {
        Cut { why, reduction: Reduction::Window { before, after } }
    }

    /// A reduction of the rate.
    pub const fn rate(why: Signal, before: Rate, after: Rate) -> Self {
        Cut { why, reduction: Reduction::Rate { before, after } }
    }

    /// The value before, in packets or packets per second.
    pub const fn before(&self) -> f64 {
        match self.reduction {
            Reduction::Window { before, .. } => before.get(),
            Reduction::Rate { before, .. } => before.as_per_sec(),
        }
    }

    /// The value after, in packets or packets per second.
    pub const fn after(&self) -> f64 {
        match self.reduction {
            Reduction::Window { after, .. } => after.get(),
            Reduction::Rate { after, .. } => after.as_per_sec(),
        }
    }
}

/// What a driver sets for a controller at the start of a connection.
///
/// ```
/// use cwnd::{Packets, Settings};
///
/// let mut settings = Settings::default();
/// settings.initial_window = Packets::from_bytes(12_000, 1200);
/// settings.packet = 1200;
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Settings {
    /// The maximum packet size in bytes.
    pub packet: u32,
    /// The initial window.
    pub initial_window: Packets,
    /// The largest window: the receiver's, or a cap of the sender.
    pub max_window: Packets,
    /// How slow start grows the window.
    pub slow_start: SlowStart,
    /// Packets by which one acknowledgement opens the window in slow start at most: L of RFC 3465
    /// section 2.2. An acknowledgement of a QUIC stack may cover many packets; RFC 9406 section 4.3
    /// recommends 8, and no limit for paced senders.
    pub slow_start_limit: f64,
    /// The pacing rate of a window law as a multiple of window / smoothed round-trip time, such as
    /// 1.25 (RFC 9002 section 7.7); `None` does not pace.
    pub pacing: Option<f64>,
    /// The pacing rate below half of the slow-start threshold as a multiple of that above: 1, in
    /// Linux 200 % / 120 % (`tcp_update_pacing_rate` in net/ipv4/tcp_input.c).
    pub startup_pacing: f64,
    /// The rules of the driver's stack.
    pub conventions: &'static Conventions,
    /// Seed of a controller's own randomness.
    pub seed: u64,
}

impl Default for Settings {
    /// Ten packets of 1500 bytes (RFC 6928), no largest window, standard slow start with L = 2, no
    /// pacing, the conventions of the RFCs.
    fn default() -> Self {
        Settings {
            packet: 1500,
            initial_window: Packets::new(10.0),
            max_window: Packets::INFINITY,
            slow_start: SlowStart::Standard,
            slow_start_limit: 2.0,
            pacing: None,
            startup_pacing: 1.0,
            conventions: &Conventions::RFC,
            seed: 0,
        }
    }
}
