//! Any law in its machine.

use crate::event::{Event, Output};
use crate::laws::{AnyLaw, AnyRateLaw};
use crate::machine::{Controller, Cut, Paced, Settings, Windowed};
use crate::units::Time;
use alloc::boxed::Box;
use alloc::sync::Arc;
use core::fmt;

/// Any law, of either kind.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant, reason = "laws live in their machine, never in a list")]
pub enum Law {
    /// A window law.
    Window(AnyLaw),
    /// A rate law.
    Rate(AnyRateLaw),
}

/// Makes the law of each connection: a [`crate::Spec`], or what a program defines. It is displayed as the
/// controller's name.
pub trait MakeLaw: fmt::Debug + fmt::Display + Send + Sync {
    /// The law at the start of a connection.
    fn law(&self, settings: &Settings) -> Law;

    /// The settings of its machine.
    fn settings(&self, settings: Settings) -> Settings {
        settings
    }

    /// The law in its machine, from the start of a connection.
    fn controller(&self, settings: Settings) -> AnyController {
        AnyController::new(self.law(&settings), self.settings(settings))
    }
}

impl<M: MakeLaw + ?Sized> MakeLaw for Arc<M> {
    fn law(&self, settings: &Settings) -> Law {
        (**self).law(settings)
    }

    fn settings(&self, settings: Settings) -> Settings {
        (**self).settings(settings)
    }
}

/// Any law in its machine: what [`MakeLaw::controller`] makes.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant, reason = "one for each flow, on the path of every packet")]
pub enum AnyController {
    /// A window law in the windowed machine.
    Window(Windowed<AnyLaw>),
    /// A rate law in the paced machine: twice the size of the other, and not for each packet.
    Rate(Box<Paced<AnyRateLaw>>),
}

impl AnyController {
    /// A controller that runs `law` from the start of a connection.
    pub fn new(law: Law, settings: Settings) -> Self {
        match law {
            Law::Window(law) => AnyController::Window(Windowed::new(law, settings)),
            Law::Rate(law) => AnyController::Rate(Box::new(Paced::new(law, settings))),
        }
    }
}

impl Controller for AnyController {
    #[inline(always)]
    fn on(&mut self, now: Time, event: &Event) {
        match self {
            AnyController::Window(machine) => machine.on(now, event),
            // A copy: what a function that is not inlined sees by its address lives in memory.
            AnyController::Rate(machine) => machine.on(now, &{ *event }),
        }
    }

    #[inline]
    fn output(&self) -> Output {
        match self {
            AnyController::Window(machine) => machine.output(),
            AnyController::Rate(machine) => machine.output(),
        }
    }

    fn uses_capacity(&self) -> bool {
        match self {
            AnyController::Window(machine) => machine.uses_capacity(),
            AnyController::Rate(machine) => machine.uses_capacity(),
        }
    }

    fn take_cut(&mut self) -> Option<Cut> {
        match self {
            AnyController::Window(machine) => machine.take_cut(),
            AnyController::Rate(machine) => machine.take_cut(),
        }
    }

    fn gauges(&self, emit: &mut dyn FnMut(&'static str, f64)) {
        match self {
            AnyController::Window(machine) => machine.gauges(emit),
            AnyController::Rate(machine) => machine.gauges(emit),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A simulation holds one for each flow, a million of them at times.
    #[test]
    fn a_controller_is_small() {
        assert!(size_of::<AnyController>() <= 176, "{}", size_of::<AnyController>());
    }
}
