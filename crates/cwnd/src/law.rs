//! The rules that a paper prints: how the window or the rate grows, and how it is reduced. The
//! machines in [`crate::machine`] contain everything around them.

use crate::conventions::Conventions;
use crate::event::{Acked, Lost, Report};
use crate::rtt::Rtt;
use crate::units::{Dur, Rate, Time};
use alloc::boxed::Box;
use core::fmt;
use dyn_clone::DynClone;

/// A congestion signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Signal {
    /// Packets were declared lost by acknowledgements.
    Loss,
    /// Packets were marked (RFC 3168).
    Mark,
    /// The retransmission timer expired.
    Timeout,
    /// Persistent congestion was established (RFC 9002 section 7.6).
    PersistentCongestion,
    /// The round-trip time rises ([`RateLaw::delay_rises`]).
    Delay,
}

impl Signal {
    /// All signals.
    pub const ALL: [Signal; 5] =
        [Signal::Loss, Signal::Mark, Signal::Timeout, Signal::PersistentCongestion, Signal::Delay];

    /// Its name in records: `loss`, `mark`, `timeout`, `persistent-congestion` or `delay`.
    pub const fn name(self) -> &'static str {
        match self {
            Signal::Loss => "loss",
            Signal::Mark => "mark",
            Signal::Timeout => "timeout",
            Signal::PersistentCongestion => "persistent-congestion",
            Signal::Delay => "delay",
        }
    }

    /// Whether the sender starts again from its smallest window: after a timeout or persistent
    /// congestion.
    pub const fn restarts(self) -> bool {
        matches!(self, Signal::Timeout | Signal::PersistentCongestion)
    }
}

/// The packets and the time between two reductions, as AIRA defines a round. A timeout that ends no
/// round is not one of the two: see [`WindowLaw::timeout_ends_round`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Round {
    /// Packets sent between the two reductions, with retransmissions.
    pub sent: u64,
    /// Packets of the round declared lost by the end of its recovery, at timeouts too.
    pub lost: u64,
    /// Packets of the round reported as marked.
    pub marked: u64,
    /// The time between the two reductions.
    pub took: Dur,
}

/// The state of a connection that a law may use besides the window or the rate.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Context {
    /// The time of the event.
    pub now: Time,
    /// The round-trip time; `None` before the first sample.
    pub rtt: Option<Rtt>,
    /// The time of the last reduction, or of the start of the connection.
    pub last_cut: Time,
    /// The maximum packet size in bytes.
    pub packet: u32,
    /// Whether the sender is in slow start.
    pub slow_start: bool,
}

impl Context {
    /// Congestion avoidance at `now` on a path with 1500-byte packets and the round-trip time
    /// `rtt`, for tests of a law.
    pub const fn new(now: Time, rtt: Option<Rtt>) -> Self {
        Context { now, rtt, last_cut: Time::ZERO, packet: 1500, slow_start: false }
    }

    /// Round-trip times since the last reduction; zero before the first sample.
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
/// Windows are in packets and real-valued, as in the papers. A law contains no slow start,
/// recovery, clamps or clocks: the [`Windowed`](crate::Windowed) machine calls it only where the
/// paper's rule applies. The calls and their conditions are in [Writing a
/// controller](crate#writing-a-controller).
///
/// ```
/// use cwnd::{Context, Settings, Signal, WindowLaw, Windowed};
///
/// /// AIMD(1, 1/4).
/// #[derive(Clone, Debug)]
/// struct Gentle;
///
/// impl WindowLaw for Gentle {
///     fn grow(&mut self, w: f64, acked: f64, _cx: &Context) -> f64 {
///         w + acked / w
///     }
///     fn cut(&mut self, w: f64, _why: Signal, _cx: &Context) -> f64 {
///         0.75 * w
///     }
/// }
///
/// let controller = Windowed::new(Gentle, &Settings::default());
/// assert_eq!(controller.window().get(), 10.0);
/// ```
pub trait WindowLaw: DynClone + fmt::Debug + Send + Sync {
    /// Adopts the rules of the driver's stack for this law, before the first event.
    fn adopt(&mut self, _conventions: &'static Conventions) {}

    /// The window after `acked` packets were acknowledged in congestion avoidance at window `w`.
    fn grow(&mut self, w: f64, acked: f64, cx: &Context) -> f64;

    /// The window after a congestion signal at window `w`: at most one signal for each window of
    /// data. After [`Signal::Timeout`] the machine starts from the least window, and the answer
    /// counts for the slow-start threshold alone; after [`Signal::PersistentCongestion`] it is not
    /// used.
    fn cut(&mut self, w: f64, why: Signal, cx: &Context) -> f64;

    /// Whether the law answers a mark now; a mark that it does not answer is no reduction. The
    /// machine has the rule of one reduction for each window of data: a law may space reductions
    /// further (Prague).
    fn answers_mark(&self, _cx: &Context) -> bool {
        true
    }

    /// Whether the window grows in the round after a mark too (Prague). For other laws the driver
    /// may smooth a reduction by PRR (RFC 9937), and where a mark begins a recovery period (RFC
    /// 9002 section 7.3.2) the window does not grow in it.
    fn grows_after_mark(&self) -> bool {
        false
    }

    /// The slow-start threshold after a signal whose [`cut`](Self::cut) was `cut` packets, where
    /// the law's source defines it; it may exceed the window before the signal. `None` leaves it to
    /// the [conventions](crate::Conventions) of the stack: by RFC 5681 equation 4 at most half of
    /// the window in slow start and after a timeout. By these conventions the window after a loss
    /// or mark is the threshold, at most the window before the signal: a law with a threshold of
    /// its own reduces the window to it, not to `cut`. The answer after
    /// [`Signal::PersistentCongestion`] is not used.
    fn threshold(&self, _cut: f64, _why: Signal) -> Option<f64> {
        None
    }

    /// Congestion avoidance begins at window `w`: after slow start and after each reduction.
    fn enter(&mut self, _w: f64, _cx: &Context) {}

    /// A round is over and its losses are known: called after its recovery, before growth resumes.
    fn round(&mut self, _round: &Round, _cx: &Context) {}

    /// Whether a timeout ends the round, as a loss does, or the round continues. A timeout in
    /// recovery, or at the least window, never ends a round.
    fn timeout_ends_round(&self) -> bool {
        true
    }

    /// Each acknowledgement, in every phase: for estimators.
    fn observe(&mut self, _acked: &Acked, _cx: &Context) {}

    /// Whether slow start ends at window `w` before a loss ends it (Vegas).
    fn leave_slow_start(&mut self, _w: f64, _cx: &Context) -> bool {
        false
    }

    /// The driver reduced the window to `w` packets by a rule of its own
    /// ([`Event::Reduced`](crate::Event::Reduced)).
    fn reduced(&mut self, _w: f64) {}

    /// The packet size changed: state in packets is multiplied by `factor`, as the window is.
    fn rescale(&mut self, _factor: f64) {}

    /// Whether the law uses [`Acked::delivery`].
    fn uses_delivery_rate(&self) -> bool {
        false
    }

    /// Whether the law [needs](crate::Needs::ecn) ECN.
    fn needs_ecn(&self) -> bool {
        false
    }

    /// Emits the law's variables by name, the same names each time, for plots: AIRA's `a`,
    /// Westwood's rate.
    fn gauges(&self, _emit: &mut dyn FnMut(&'static str, f64)) {}
}

dyn_clone::clone_trait_object!(WindowLaw);

/// The methods of [`WindowLaw`], each answered by `$forward!($to; self.method(arguments))`.
macro_rules! forward_window_law {
    ($forward:ident!($($to:tt)*)) => {
        fn adopt(&mut self, conventions: &'static Conventions) {
            $forward!($($to)*; self.adopt(conventions))
        }
        // Copies: passing a reference to a non-inlined function forces the value out of registers.
        #[inline(always)]
        fn grow(&mut self, w: f64, acked: f64, cx: &Context) -> f64 {
            $forward!($($to)*; self.grow(w, acked, &{ *cx }))
        }
        fn cut(&mut self, w: f64, why: Signal, cx: &Context) -> f64 {
            $forward!($($to)*; self.cut(w, why, cx))
        }
        fn answers_mark(&self, cx: &Context) -> bool {
            $forward!($($to)*; self.answers_mark(cx))
        }
        fn grows_after_mark(&self) -> bool {
            $forward!($($to)*; self.grows_after_mark())
        }
        fn threshold(&self, cut: f64, why: Signal) -> Option<f64> {
            $forward!($($to)*; self.threshold(cut, why))
        }
        fn enter(&mut self, w: f64, cx: &Context) {
            $forward!($($to)*; self.enter(w, cx))
        }
        fn round(&mut self, round: &Round, cx: &Context) {
            $forward!($($to)*; self.round(round, cx))
        }
        fn timeout_ends_round(&self) -> bool {
            $forward!($($to)*; self.timeout_ends_round())
        }
        #[inline(always)]
        fn observe(&mut self, acked: &Acked, cx: &Context) {
            $forward!($($to)*; self.observe(&{ *acked }, &{ *cx }))
        }
        #[inline]
        fn leave_slow_start(&mut self, w: f64, cx: &Context) -> bool {
            $forward!($($to)*; self.leave_slow_start(w, cx))
        }
        fn reduced(&mut self, w: f64) {
            $forward!($($to)*; self.reduced(w))
        }
        fn rescale(&mut self, factor: f64) {
            $forward!($($to)*; self.rescale(factor))
        }
        fn uses_delivery_rate(&self) -> bool {
            $forward!($($to)*; self.uses_delivery_rate())
        }
        fn needs_ecn(&self) -> bool {
            $forward!($($to)*; self.needs_ecn())
        }
        fn gauges(&self, emit: &mut dyn FnMut(&'static str, f64)) {
            $forward!($($to)*; self.gauges(emit))
        }
    };
}
pub(crate) use forward_window_law;

/// Calls the method of the law in a box.
macro_rules! forward_to_box {
    (; $self:ident.$method:ident $arguments:tt) => {
        (**$self).$method $arguments
    };
}

impl WindowLaw for Box<dyn WindowLaw> {
    forward_window_law!(forward_to_box!());
}

/// The clock of a rate law's control interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// A timer.
    Timer,
    /// The receiver's reports: the first one after an interval has passed.
    Reports,
}

/// A law for the sending rate, run once in each control interval.
///
/// The [`Paced`](crate::Paced) machine contains the interval, slow start and the clamps. The calls
/// and their conditions are in [Writing a controller](crate#writing-a-controller). The machine
/// [needs](crate::Needs::reports) reports for every law.
///
/// ```
/// use cwnd::{Clock, Context, Dur, Paced, Rate, RateLaw, Settings, Signal};
///
/// /// Gains 1 packet/s in each interval of 10 ms and gives up an eighth in each congestion period.
/// #[derive(Clone, Debug)]
/// struct Additive;
///
/// impl RateLaw for Additive {
///     fn clock(&self) -> Clock {
///         Clock::Timer
///     }
///     fn interval(&self) -> Dur {
///         Dur::from_millis(10)
///     }
///     fn tick(&mut self, rate: Rate, _cx: &Context) -> Rate {
///         Rate::per_sec(rate.as_per_sec() + 1.0)
///     }
///     fn cut(&mut self, rate: Rate, fresh: bool, _why: Signal, _cx: &Context) -> Rate {
///         if fresh { Rate::per_sec(0.875 * rate.as_per_sec()) } else { rate }
///     }
///     fn start(&mut self, w: f64, cx: &Context) -> Rate {
///         Rate::over(w, cx.rtt.map_or(Dur::from_millis(100), |rtt| rtt.smoothed))
///     }
/// }
///
/// let controller = Paced::new(Additive, &Settings::default());
/// assert_eq!(controller.rate(), None, "slow start");
/// ```
pub trait RateLaw: DynClone + fmt::Debug + Send + Sync {
    /// The clock of the control interval.
    fn clock(&self) -> Clock;

    /// The control interval (UDT: SYN, 10 ms). It is at least 10 µs: drivers report Ticks no closer.
    fn interval(&self) -> Dur;

    /// The rate after an interval with acknowledgements and without a loss.
    fn tick(&mut self, rate: Rate, cx: &Context) -> Rate;

    /// The rate after a loss report, a mark that begins a congestion period, a timeout, persistent
    /// congestion, whose losses are reported before, or a rise of the round-trip time. A rate above
    /// `rate` leaves it as it is. `fresh` says whether the most recently sent lost packet was sent
    /// after the last decrease, which begins a new congestion period; it is true for all signals
    /// other than a loss.
    fn cut(&mut self, rate: Rate, fresh: bool, why: Signal, cx: &Context) -> Rate;

    /// The rate at the end of slow start, whose window was `w` packets.
    fn start(&mut self, w: f64, cx: &Context) -> Rate;

    /// The receiver's report: for estimators.
    fn observe(&mut self, _report: &Report, _cx: &Context) {}

    /// Whether the newest report shows that the round-trip time rises, which is a congestion
    /// signal: called after each [`observe`](Self::observe).
    fn delay_rises(&mut self, _cx: &Context) -> bool {
        false
    }

    /// Packets were lost or marked at `rate`: called before any reduction.
    fn losses(&mut self, _lost: &Lost, _rate: Rate, _cx: &Context) {}

    /// The flow window in packets; `None` leaves the limit to the receiver.
    fn window(&self, _cx: &Context) -> Option<f64> {
        None
    }

    /// Whether the law has a slow start of its own: it begins at the rate of
    /// [`start`](Self::start), and [`tick`](Self::tick) runs after every interval, with or without
    /// acknowledgements.
    fn starts_itself(&self) -> bool {
        false
    }

    /// Whether the law uses the receiver's estimate of the link capacity ([`Report::capacity`]).
    fn uses_capacity(&self) -> bool {
        false
    }

    /// The least rate.
    fn least(&self) -> Rate {
        Rate::per_sec(1.0)
    }

    /// The packet size changed: state in packets or packets per second is multiplied by `factor`,
    /// as the rate is.
    fn rescale(&mut self, _factor: f64) {}

    /// Emits the law's variables by name, the same names each time, for plots.
    fn gauges(&self, _emit: &mut dyn FnMut(&'static str, f64)) {}
}

dyn_clone::clone_trait_object!(RateLaw);

/// The methods of [`RateLaw`], each answered by `$forward!($to; self.method(arguments))`.
macro_rules! forward_rate_law {
    ($forward:ident!($($to:tt)*)) => {
        fn clock(&self) -> Clock {
            $forward!($($to)*; self.clock())
        }
        fn interval(&self) -> Dur {
            $forward!($($to)*; self.interval())
        }
        fn tick(&mut self, rate: Rate, cx: &Context) -> Rate {
            $forward!($($to)*; self.tick(rate, cx))
        }
        fn cut(&mut self, rate: Rate, fresh: bool, why: Signal, cx: &Context) -> Rate {
            $forward!($($to)*; self.cut(rate, fresh, why, cx))
        }
        fn start(&mut self, w: f64, cx: &Context) -> Rate {
            $forward!($($to)*; self.start(w, cx))
        }
        fn observe(&mut self, report: &Report, cx: &Context) {
            $forward!($($to)*; self.observe(report, cx))
        }
        fn delay_rises(&mut self, cx: &Context) -> bool {
            $forward!($($to)*; self.delay_rises(cx))
        }
        fn losses(&mut self, lost: &Lost, rate: Rate, cx: &Context) {
            $forward!($($to)*; self.losses(lost, rate, cx))
        }
        fn window(&self, cx: &Context) -> Option<f64> {
            $forward!($($to)*; self.window(cx))
        }
        fn starts_itself(&self) -> bool {
            $forward!($($to)*; self.starts_itself())
        }
        fn uses_capacity(&self) -> bool {
            $forward!($($to)*; self.uses_capacity())
        }
        fn least(&self) -> Rate {
            $forward!($($to)*; self.least())
        }
        fn rescale(&mut self, factor: f64) {
            $forward!($($to)*; self.rescale(factor))
        }
        fn gauges(&self, emit: &mut dyn FnMut(&'static str, f64)) {
            $forward!($($to)*; self.gauges(emit))
        }
    };
}
pub(crate) use forward_rate_law;

impl RateLaw for Box<dyn RateLaw> {
    forward_rate_law!(forward_to_box!());
}
