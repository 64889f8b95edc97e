//! All laws of a kind in one enum without a heap allocation, and laws of other crates as trait
//! objects.

use super::{
    Aiad, Aimd, Aira, Bic, Binomial, Cubic, Daimd, Dctcp, HighSpeed, Prague, Scalable, Simd, Tfrc,
    Udt, Vegas,
};
use crate::conventions::Conventions;
use crate::event::{Acked, Lost, Report};
use crate::law::{Clock, Context, RateLaw, Round, Signal, WindowLaw};
use crate::units::{Dur, Rate};
use alloc::boxed::Box;

/// Calls the method of the variant's law.
macro_rules! forward {
    ($any:ident, [$($law:ident),+], $self:ident.$method:ident $arguments:tt) => {
        match $self {
            $($any::$law(law) => law.$method $arguments,)+
            $any::Custom(law) => law.$method $arguments,
        }
    };
}

/// The enum of all laws of one kind, its conversions, and one `match` for each method of the trait.
macro_rules! any_law {
    (window $(#[$doc:meta])* $any:ident { $($law:ident),+ $(,)? }) => {
        any_law!(@enum $(#[$doc])* $any(WindowLaw) { $($law),+ });
        impl WindowLaw for $any {
            fn adopt(&mut self, conventions: &'static Conventions) {
                forward!($any, [$($law),+], self.adopt(conventions))
            }
            // Copies: passing a reference to a non-inlined function forces the value out of
            // registers.
            #[inline(always)]
            fn grow(&mut self, w: f64, acked: f64, cx: &Context) -> f64 {
                forward!($any, [$($law),+], self.grow(w, acked, &{ *cx }))
            }
            fn cut(&mut self, w: f64, why: Signal, cx: &Context) -> f64 {
                forward!($any, [$($law),+], self.cut(w, why, cx))
            }
            fn answers_mark(&self, cx: &Context) -> bool {
                forward!($any, [$($law),+], self.answers_mark(cx))
            }
            fn grows_after_mark(&self) -> bool {
                forward!($any, [$($law),+], self.grows_after_mark())
            }
            fn threshold(&self, cut: f64, why: Signal) -> Option<f64> {
                forward!($any, [$($law),+], self.threshold(cut, why))
            }
            fn enter(&mut self, w: f64, cx: &Context) {
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
            fn leave_slow_start(&mut self, w: f64, cx: &Context) -> bool {
                forward!($any, [$($law),+], self.leave_slow_start(w, cx))
            }
            fn reduced(&mut self, w: f64) {
                forward!($any, [$($law),+], self.reduced(w))
            }
            fn rescale(&mut self, factor: f64) {
                forward!($any, [$($law),+], self.rescale(factor))
            }
            fn uses_delivery_rate(&self) -> bool {
                forward!($any, [$($law),+], self.uses_delivery_rate())
            }
            fn needs_ecn(&self) -> bool {
                forward!($any, [$($law),+], self.needs_ecn())
            }
            fn gauges(&self, emit: &mut dyn FnMut(&'static str, f64)) {
                forward!($any, [$($law),+], self.gauges(emit))
            }
        }
    };
    (rate $(#[$doc:meta])* $any:ident { $($law:ident),+ $(,)? }) => {
        any_law!(@enum $(#[$doc])* $any(RateLaw) { $($law),+ });
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
            fn delay_rises(&mut self, cx: &Context) -> bool {
                forward!($any, [$($law),+], self.delay_rises(cx))
            }
            fn losses(&mut self, lost: &Lost, rate: Rate, cx: &Context) {
                forward!($any, [$($law),+], self.losses(lost, rate, cx))
            }
            fn uses_capacity(&self) -> bool {
                forward!($any, [$($law),+], self.uses_capacity())
            }
            fn least(&self) -> Rate {
                forward!($any, [$($law),+], self.least())
            }
            fn rescale(&mut self, factor: f64) {
                forward!($any, [$($law),+], self.rescale(factor))
            }
            fn window(&self, cx: &Context) -> Option<f64> {
                forward!($any, [$($law),+], self.window(cx))
            }
            fn starts_itself(&self) -> bool {
                forward!($any, [$($law),+], self.starts_itself())
            }
            fn start(&mut self, w: f64, cx: &Context) -> Rate {
                forward!($any, [$($law),+], self.start(w, cx))
            }
            fn gauges(&self, emit: &mut dyn FnMut(&'static str, f64)) {
                forward!($any, [$($law),+], self.gauges(emit))
            }
        }
    };
    (@enum $(#[$doc:meta])* $any:ident($object:ident) { $($law:ident),+ }) => {
        $(#[$doc])*
        #[derive(Clone, Debug)]
        #[non_exhaustive]
        pub enum $any {
            $(#[doc = concat!("[`", stringify!($law), "`].")] $law($law),)+
            /// A law of another crate.
            Custom(Box<dyn $object>),
        }
        impl From<Box<dyn $object>> for $any {
            fn from(law: Box<dyn $object>) -> Self {
                $any::Custom(law)
            }
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
        Dctcp,
        Prague,
    }
}

any_law! {
    rate
    /// Any rate law.
    AnyRateLaw {
        Daimd,
        Udt,
        Tfrc,
    }
}
