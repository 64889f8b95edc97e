//! Any controller in one type: the laws of this crate in their machines without a heap allocation,
//! and controllers and laws written elsewhere.

use crate::controller::{Controller, Cut, Needs, Settings};
use crate::event::{Event, Output};
use crate::laws::{AnyLaw, AnyRateLaw};
use crate::machine::{Paced, Windowed};
use crate::units::Time;
use alloc::boxed::Box;
use alloc::sync::Arc;
use core::fmt;

/// Any controller: the type for a driver that learns its controller at run time, by name for
/// instance.
///
/// ```
/// use cwnd::laws::{Aimd, Reno};
/// use cwnd::{AnyController, Controller, Settings, WindowLaw};
///
/// let settings = Settings::default();
/// // A law of this crate, and one from elsewhere, which is boxed.
/// let reno = AnyController::window(Reno::new(), &settings);
/// let law: Box<dyn WindowLaw> = Box::new(Aimd::new(1.0, 0.25));
/// let other = AnyController::window(law, &settings);
/// assert_eq!(reno.output(), other.output());
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum AnyController {
    /// A window law in its machine.
    Window(Windowed<AnyLaw>),
    /// A rate law in its machine: twice the size of the other, and not on the path of every packet.
    Rate(Box<Paced<AnyRateLaw>>),
    /// A whole controller.
    Whole(Box<dyn Controller>),
}

impl AnyController {
    /// `law` in its machine, from the start of a connection.
    pub fn window(law: impl Into<AnyLaw>, settings: &Settings) -> Self {
        AnyController::Window(Windowed::new(law.into(), settings))
    }

    /// `law` in its machine, from the start of a connection.
    pub fn rate(law: impl Into<AnyRateLaw>, settings: &Settings) -> Self {
        AnyController::Rate(Box::new(Paced::new(law.into(), settings)))
    }

    /// A whole controller.
    pub fn whole(controller: impl Controller + 'static) -> Self {
        AnyController::Whole(Box::new(controller))
    }

    /// Replaces the law during a connection, at `now`, by that of another controller. Returns
    /// whether both are laws of the same kind in machines that need the same of their driver.
    pub fn replace_law(&mut self, now: Time, other: AnyController) -> bool {
        if self.needs() != other.needs() {
            return false;
        }
        match (self, other) {
            (AnyController::Window(machine), AnyController::Window(other))
                if machine.is_paced() == other.is_paced() =>
            {
                machine.replace_law(other.into_law());
                true
            }
            (AnyController::Rate(machine), AnyController::Rate(other)) => {
                machine.replace_law(now, other.into_law());
                true
            }
            _ => false,
        }
    }

    /// The law without its machine; `None` for a whole controller.
    pub fn into_law(self) -> Option<Law> {
        match self {
            AnyController::Window(machine) => Some(Law::Window(machine.into_law())),
            AnyController::Rate(machine) => Some(Law::Rate(machine.into_law())),
            AnyController::Whole(_) => None,
        }
    }
}

/// Calls the same method of whichever controller it is.
macro_rules! forward {
    ($self:ident.$method:ident $arguments:tt) => {
        match $self {
            AnyController::Window(machine) => machine.$method $arguments,
            AnyController::Rate(machine) => machine.$method $arguments,
            AnyController::Whole(controller) => controller.$method $arguments,
        }
    };
}

impl Controller for AnyController {
    #[inline(always)]
    fn on(&mut self, now: Time, event: &Event) {
        forward!(self.on(now, event));
    }

    #[inline(always)]
    fn output(&self) -> Output {
        forward!(self.output())
    }

    fn needs(&self) -> Needs {
        forward!(self.needs())
    }

    fn take_cut(&mut self) -> Option<Cut> {
        forward!(self.take_cut())
    }

    fn gauges(&self, emit: &mut dyn FnMut(&'static str, f64)) {
        forward!(self.gauges(emit));
    }
}

/// Any law, of either kind.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "laws live in their machine, never in a list")]
pub enum Law {
    /// A window law.
    Window(AnyLaw),
    /// A rate law.
    Rate(AnyRateLaw),
}

/// Makes the controller of each connection: a [`Spec`](crate::Spec), or a program's own. Its
/// `Display` is the controller's name.
pub trait MakeController: fmt::Debug + fmt::Display + Send + Sync {
    /// A controller at the start of a connection.
    fn controller(&self, settings: &Settings) -> AnyController;

    /// The law of that controller, without its machine; `None` for a whole controller.
    fn law(&self, settings: &Settings) -> Option<Law> {
        self.controller(settings).into_law()
    }
}

impl<M: MakeController + ?Sized> MakeController for Arc<M> {
    fn controller(&self, settings: &Settings) -> AnyController {
        (**self).controller(settings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A simulation holds one for each flow, a million of them at times.
    #[test]
    fn a_controller_is_small() {
        assert!(size_of::<AnyController>() <= 192, "{}", size_of::<AnyController>());
    }

    /// What a stack holds for a connection moves between threads.
    #[test]
    fn controllers_and_settings_are_send_and_sync() {
        fn check<T: Send + Sync + 'static>() {}
        check::<AnyController>();
        check::<Box<dyn Controller>>();
        check::<Settings>();
        check::<Arc<dyn MakeController>>();
    }
}
