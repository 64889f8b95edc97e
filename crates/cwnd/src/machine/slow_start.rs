//! Growth of the window before the first congestion signal, whatever the law.

use super::hystart::{HyStart, HyStartTrain, L};
use super::hystart_linux::HyStartLinux;
use crate::controller::Settings;
use crate::event::Acked;
use crate::law::Context;
use alloc::boxed::Box;
use core::fmt;
use dyn_clone::DynClone;

/// A slow start: grows the window until the first congestion signal, and may end before one.
///
/// Later slow starts, after a timeout or persistent congestion, are the standard one (RFC 9406
/// section 4.3). If the first congestion signal was spurious, the slow start continues.
///
/// ```
/// use cwnd::{Acked, Context, Growth, Settings, SlowStart, SlowStartLaw};
///
/// /// Limited slow start (RFC 3742) with a `max_ssthresh` of 100 packets.
/// #[derive(Clone, Debug)]
/// struct Limited;
///
/// impl SlowStartLaw for Limited {
///     fn grow(&mut self, w: f64, credit: f64, _acked: &Acked, _cx: &Context) -> Growth {
///         let slowdown = if w <= 100.0 { 1.0 } else { (w / 50.0).floor() };
///         Growth { window: w + credit / slowdown, done: false }
///     }
/// }
///
/// let mut settings = Settings::default();
/// settings.slow_start = SlowStart::Custom(|| Box::new(Limited));
/// ```
pub trait SlowStartLaw: DynClone + fmt::Debug + Send + Sync {
    /// The window in packets after an acknowledgement in slow start at window `w`. `credit` is the
    /// growth of the standard slow start in packets: those acknowledged, at most
    /// [`Settings::slow_start_limit`](crate::Settings::slow_start_limit), and 0 where the sender
    /// does not use its window.
    fn grow(&mut self, w: f64, credit: f64, acked: &Acked, cx: &Context) -> Growth;
}

dyn_clone::clone_trait_object!(SlowStartLaw);

/// The answer of a [`SlowStartLaw`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Growth {
    /// The window in packets.
    pub window: f64,
    /// Whether slow start is over: congestion avoidance begins at `window`.
    pub done: bool,
}

/// The slow start of a window law.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub enum SlowStart {
    /// One packet for each packet acknowledged (RFC 5681 section 3.1, RFC 3465).
    #[default]
    Standard,
    /// HyStart++ (RFC 9406): a conservative slow start begins when the smallest round-trip time of
    /// a round has risen, and congestion avoidance after five of its rounds.
    HyStart,
    /// [`HyStart`](SlowStart::HyStart) in which conservative slow start also begins when an
    /// unbroken train of acknowledgements has lasted for half of the smallest round-trip time, as
    /// in HyStart (Ha and Rhee, Hybrid Slow Start for High-Bandwidth and Long-Distance Networks,
    /// 2008). A round-trip time shows a queue one round later, when the window is already twice as
    /// large.
    HyStartTrain,
    /// HyStart as in net/ipv4/tcp_cubic.c of Linux 6.18: congestion avoidance begins when a train
    /// of acknowledgements has lasted for half of the smallest round-trip time, or when the
    /// round-trip time has risen. Later slow starts, after a timeout, are the same.
    HyStartLinux,
    /// A slow start of your own, made for each connection.
    Custom(fn() -> Box<dyn SlowStartLaw>),
}

impl SlowStart {
    /// The largest number of packets by which one acknowledgement opens the window in HyStart++: L
    /// of RFC 9406 section 4.3 is 8, and infinite for a paced sender. `None` for a slow start that
    /// RFC 9406 does not define.
    ///
    /// ```
    /// use cwnd::{Settings, SlowStart};
    ///
    /// let mut settings = Settings::default();
    /// settings.slow_start = SlowStart::HyStart;
    /// settings.slow_start_limit = settings.slow_start.limit(settings.pacing.is_some()).unwrap();
    /// assert_eq!(settings.slow_start_limit, 8.0);
    /// ```
    pub fn limit(self, paced: bool) -> Option<f64> {
        match self {
            SlowStart::HyStart | SlowStart::HyStartTrain if paced => Some(f64::INFINITY),
            SlowStart::HyStart | SlowStart::HyStartTrain => Some(L),
            SlowStart::Standard | SlowStart::HyStartLinux | SlowStart::Custom(_) => None,
        }
    }
}

/// A slow start other than the standard one.
#[derive(Clone, Debug)]
pub(super) enum AnySlowStart {
    HyStart(HyStart),
    HyStartTrain(HyStartTrain),
    HyStartLinux(HyStartLinux),
    Custom(Box<dyn SlowStartLaw>),
}

impl AnySlowStart {
    /// The state at the start of a connection; `None` for the standard slow start, which has none.
    pub(super) fn new(settings: &Settings) -> Option<Box<Self>> {
        Some(Box::new(match settings.slow_start {
            SlowStart::Standard => return None,
            SlowStart::HyStart => AnySlowStart::HyStart(HyStart::new()),
            SlowStart::HyStartTrain => AnySlowStart::HyStartTrain(HyStartTrain::new()),
            SlowStart::HyStartLinux => {
                AnySlowStart::HyStartLinux(HyStartLinux::new(settings.pacing.is_some()))
            }
            SlowStart::Custom(make) => AnySlowStart::Custom(make()),
        }))
    }

    /// The HyStart of Linux, the only one that later slow starts have too.
    pub(super) fn linux(&mut self) -> Option<&mut HyStartLinux> {
        match self {
            AnySlowStart::HyStartLinux(law) => Some(law),
            _ => None,
        }
    }

    pub(super) fn grow(&mut self, w: f64, credit: f64, acked: &Acked, cx: &Context) -> Growth {
        match self {
            AnySlowStart::HyStart(law) => law.grow(w, credit, acked, cx),
            AnySlowStart::HyStartTrain(law) => law.grow(w, credit, acked, cx),
            AnySlowStart::HyStartLinux(law) => law.grow(w, credit, acked, cx),
            AnySlowStart::Custom(law) => law.grow(w, credit, acked, cx),
        }
    }
}
