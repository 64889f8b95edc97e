//! Every law in one type without heap, and a door for laws written elsewhere.

use super::{
    Aiad, Aimd, Aira, Bic, Binomial, Cubic, Daimd, HighSpeed, Scalable, Simd, Tfrc, Udt, Vegas,
};
use crate::event::{Acked, Lost, Report};
use crate::law::{Clock, Context, RateLaw, Round, Signal, WindowLaw};
use crate::units::{Dur, Packets, Rate};
use alloc::boxed::Box;
use core::fmt;

/// Calls the same method of whichever law it is.
macro_rules! forward {
    ($any:ident, [$($law:ident),+], $self:ident.$method:ident $arguments:tt) => {
        match $self { $($any::$law(law) => law.$method $arguments,)+ }
    };
}

/// The enum of all laws of one kind, its conversions, and one `match` for each method of the trait.
macro_rules! any_law {
    (window $(#[$doc:meta])* $any:ident { $($law:ident),+ $(,)? }) => {
        any_law!(@enum $(#[$doc])* $any { $($law),+ });
        impl WindowLaw for $any {
            // Copies: what a function that is not inlined sees by its address lives in memory.
            #[inline(always)]
            fn grow(&mut self, w: Packets, acked: Packets, cx: &Context) -> Packets {
                forward!($any, [$($law),+], self.grow(w, acked, &{ *cx }))
            }
            fn cut(&mut self, w: Packets, why: Signal, cx: &Context) -> Packets {
                forward!($any, [$($law),+], self.cut(w, why, cx))
            }
            fn own_threshold(&self) -> bool {
                forward!($any, [$($law),+], self.own_threshold())
            }
            fn enter(&mut self, w: Packets, cx: &Context) {
                forward!($any, [$($law),+], self.enter(w, cx))
            }
            fn round(&mut self, round: &Round, cx: &Context) {
                forward!($any, [$($law),+], self.round(round, cx))
            }
            fn timeout_ends_round(&self) -> bool {
                forward!($any, [$($law),+], self.timeout_ends_round())
            }
            #[inline(always)]
            fn observe(&mut self, acked: &Acked, cx: &Context) {
                forward!($any, [$($law),+], self.observe(&{ *acked }, &{ *cx }))
            }
            #[inline]
            fn leave_slow_start(&mut self, w: Packets, cx: &Context) -> bool {
                forward!($any, [$($law),+], self.leave_slow_start(w, cx))
            }
            fn gauges(&self, emit: &mut dyn FnMut(&'static str, f64)) {
                forward!($any, [$($law),+], self.gauges(emit))
            }
        }
    };
    (rate $(#[$doc:meta])* $any:ident { $($law:ident),+ $(,)? }) => {
        any_law!(@enum $(#[$doc])* $any { $($law),+ });
        impl RateLaw for $any {
            fn clock(&self) -> Clock {
                forward!($any, [$($law),+], self.clock())
            }
            fn interval(&self) -> Dur {
                forward!($any, [$($law),+], self.interval())
            }
            fn tick(&mut self, rate: Rate, cx: &Context) -> Rate {
                forward!($any, [$($law),+], self.tick(rate, cx))
            }
            fn cut(&mut self, rate: Rate, fresh: bool, why: Signal, cx: &Context) -> Rate {
                forward!($any, [$($law),+], self.cut(rate, fresh, why, cx))
            }
            fn observe(&mut self, report: &Report, cx: &Context) {
                forward!($any, [$($law),+], self.observe(report, cx))
            }
            fn losses(&mut self, lost: &Lost, rate: Rate, cx: &Context) {
                forward!($any, [$($law),+], self.losses(lost, rate, cx))
            }
            fn uses_capacity(&self) -> bool {
                forward!($any, [$($law),+], self.uses_capacity())
            }
            fn window(&self, cx: &Context) -> Option<Packets> {
                forward!($any, [$($law),+], self.window(cx))
            }
            fn starts_itself(&self) -> bool {
                forward!($any, [$($law),+], self.starts_itself())
            }
            fn start(&mut self, w: Packets, cx: &Context) -> Rate {
                forward!($any, [$($law),+], self.start(w, cx))
            }
            fn gauges(&self, emit: &mut dyn FnMut(&'static str, f64)) {
                forward!($any, [$($law),+], self.gauges(emit))
            }
        }
    };
    (@enum $(#[$doc:meta])* $any:ident { $($law:ident),+ }) => {
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub enum $any {
            $(#[doc = concat!("[`", stringify!($law), "`].")] $law($law),)+
        }
        $(impl From<$law> for $any {
            fn from(law: $law) -> Self {
                $any::$law(law)
            }
        })+
    };
}

any_law! {
    window
    /// Any window law.
    AnyLaw {
        Aimd,
        Binomial,
        Simd,
        Aira,
        Aiad,
        Scalable,
        HighSpeed,
        Bic,
        Cubic,
        Vegas,
        Custom,
    }
}

any_law! {
    rate
    /// Any rate law.
    #[allow(clippy::large_enum_variant, reason = "laws live in their machine, never in a list")]
    AnyRateLaw {
        Daimd,
        Udt,
        Tfrc,
    }
}

/// A window law written outside of this crate: [`WindowLaw`] as an object.
pub trait CustomLaw: Send {
    /// Its name, for messages.
    fn name(&self) -> &str {
        "custom"
    }

    /// A copy: the machine keeps one to undo a spurious cut.
    fn boxed_clone(&self) -> Box<dyn CustomLaw>;

    /// See [`WindowLaw::grow`].
    fn grow(&mut self, w: Packets, acked: Packets, cx: &Context) -> Packets;

    /// See [`WindowLaw::cut`].
    fn cut(&mut self, w: Packets, why: Signal, cx: &Context) -> Packets;

    /// See [`WindowLaw::own_threshold`].
    fn own_threshold(&self) -> bool {
        false
    }

    /// See [`WindowLaw::enter`].
    fn enter(&mut self, _w: Packets, _cx: &Context) {}

    /// See [`WindowLaw::round`].
    fn round(&mut self, _round: &Round, _cx: &Context) {}

    /// See [`WindowLaw::observe`].
    fn observe(&mut self, _acked: &Acked, _cx: &Context) {}

    /// See [`WindowLaw::leave_slow_start`].
    fn leave_slow_start(&mut self, _w: Packets, _cx: &Context) -> bool {
        false
    }

    /// See [`WindowLaw::gauges`].
    fn gauges(&self, _emit: &mut dyn FnMut(&'static str, f64)) {}
}

/// A [`CustomLaw`] as a [`WindowLaw`].
pub struct Custom(Box<dyn CustomLaw>);

impl Custom {
    /// Wraps `law`.
    pub fn new(law: Box<dyn CustomLaw>) -> Self {
        Custom(law)
    }
}

impl Clone for Custom {
    fn clone(&self) -> Self {
        Custom(self.0.boxed_clone())
    }
}

impl fmt::Debug for Custom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Custom").field(&self.0.name()).finish()
    }
}

impl WindowLaw for Custom {
    fn grow(&mut self, w: Packets, acked: Packets, cx: &Context) -> Packets {
        self.0.grow(w, acked, cx)
    }
    fn cut(&mut self, w: Packets, why: Signal, cx: &Context) -> Packets {
        self.0.cut(w, why, cx)
    }
    fn own_threshold(&self) -> bool {
        self.0.own_threshold()
    }
    fn enter(&mut self, w: Packets, cx: &Context) {
        self.0.enter(w, cx);
    }
    fn round(&mut self, round: &Round, cx: &Context) {
        self.0.round(round, cx);
    }
    fn observe(&mut self, acked: &Acked, cx: &Context) {
        self.0.observe(acked, cx);
    }
    fn leave_slow_start(&mut self, w: Packets, cx: &Context) -> bool {
        self.0.leave_slow_start(w, cx)
    }
    fn gauges(&self, emit: &mut dyn FnMut(&'static str, f64)) {
        self.0.gauges(emit);
    }
}
