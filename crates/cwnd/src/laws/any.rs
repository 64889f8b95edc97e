//! All laws of a kind in one enum without a heap allocation, and laws of other crates as trait
//! objects.

use super::{Cubic, Tfrc, texts::*};
use crate::conventions::Conventions;
use crate::event::{Acked, Lost, Report};
use crate::law::{
    Clock, Context, RateLaw, Round, Signal, WindowLaw, forward_rate_law, forward_window_law,
};
use crate::units::{Dur, Rate};
use alloc::boxed::Box;

/// Calls the method of the variant's law.
macro_rules! forward {
    ($any:ident, [$($law:ident),+]; $self:ident.$method:ident $arguments:tt) => {
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
            forward_window_law!(forward!($any, [$($law),+]));
        }
    };
    (rate $(#[$doc:meta])* $any:ident { $($law:ident),+ $(,)? }) => {
        any_law!(@enum $(#[$doc])* $any(RateLaw) { $($law),+ });
        impl RateLaw for $any {
            forward_rate_law!(forward!($any, [$($law),+]));
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

// The laws that are texts join these lists.
include!(concat!(env!("OUT_DIR"), "/lists.rs"));

any_window_law! {
    /// Any window law.
    AnyLaw {
        Cubic,
    }
}

any_rate_law! {
    /// Any rate law.
    #[expect(clippy::large_enum_variant, reason = "TFRC's history needs no allocation")]
    AnyRateLaw {
        Tfrc,
    }
}
