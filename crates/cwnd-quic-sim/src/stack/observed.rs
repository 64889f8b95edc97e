//! The source's controller, which its endpoint observes. Compiled for each stack.

use super::{Adapter, Factory, ours, own, proto};
use crate::meter::Meter;
use cwnd::{Controller as _, Signal};
use cwnd_quic::Controllers;
use proto::congestion::{Controller, ControllerFactory};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// A controller of the stack, or one of cwnd's.
enum Inner {
    Own(Box<dyn Controller>),
    Ours(Box<Adapter>),
}

impl Clone for Inner {
    fn clone(&self) -> Self {
        match self {
            Inner::Own(controller) => Inner::Own(controller.clone_box()),
            Inner::Ours(adapter) => Inner::Ours(adapter.clone()),
        }
    }
}

/// A controller with its measurements.
#[derive(Clone)]
pub struct Observed {
    inner: Inner,
    /// What the stack told the controller.
    pub meter: Meter,
}

impl Observed {
    /// Returns the controller as the stack sees it.
    pub fn controller(&self) -> &dyn Controller {
        match &self.inner {
            Inner::Own(controller) => controller.as_ref(),
            Inner::Ours(adapter) => adapter.as_ref(),
        }
    }

    /// Returns the controller as the stack sees it.
    pub fn controller_mut(&mut self) -> &mut dyn Controller {
        match &mut self.inner {
            Inner::Own(controller) => controller.as_mut(),
            Inner::Ours(adapter) => adapter.as_mut(),
        }
    }

    /// The window in bytes.
    pub fn window(&self) -> u64 {
        self.controller().window()
    }

    /// Whether the window has no room for a full packet.
    pub fn is_full(&self) -> bool {
        self.meter.in_flight + u64::from(self.meter.packet) > self.window()
    }

    /// Passes a congestion signal to the controller, and notes what it does to the window.
    pub fn congestion(&mut self, why: Signal, signal: impl FnOnce(&mut dyn Controller)) {
        let before = self.window();
        signal(self.controller_mut());
        let after = self.window();
        self.meter.congestion(why, before, after);
    }

    /// Emits the variables of a controller of cwnd's, or the slow start threshold of another.
    pub fn gauges(&self, emit: &mut dyn FnMut(&'static str, f64)) {
        match &self.inner {
            Inner::Ours(adapter) => adapter.controller().gauges(emit),
            Inner::Own(controller) => {
                let threshold = controller.metrics().ssthresh.filter(|&bytes| bytes < u64::MAX);
                let packets = threshold.map(|bytes| self.meter.packets(bytes).get());
                emit("ssthresh", packets.unwrap_or(f64::INFINITY));
            }
        }
    }
}

/// A controller that the stack and the endpoint use.
#[derive(Clone)]
pub struct Shared(Arc<Mutex<Observed>>);

impl Shared {
    /// Locks the state.
    pub fn lock(&self) -> MutexGuard<'_, Observed> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the same controller with a state of its own.
    pub fn separate(&self) -> Self {
        Shared(Arc::new(Mutex::new(self.lock().clone())))
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Shared").field(&self.lock().meter).finish()
    }
}

/// Makes the controller of a source.
pub enum Source {
    /// A controller of the stack's own.
    Own(Arc<dyn ControllerFactory + Send + Sync>),
    /// A controller of cwnd's.
    Ours(Arc<Factory>),
    /// A copy of this controller, in its initial state.
    Made(Box<dyn Controller>),
}

impl Source {
    /// A controller of cwnd's.
    pub fn ours(controllers: Controllers) -> Result<Self, String> {
        let factory = ours(controllers).map_err(|error| error.to_string())?;
        Ok(Source::Ours(factory))
    }

    /// A controller of the stack's own by its name.
    pub fn own(name: &str) -> Result<Self, String> {
        own(name).map(Source::Own).ok_or_else(|| format!("the stack has no controller {name}"))
    }
}

/// Makes the controller of a source, and keeps it.
pub struct Observing {
    source: Source,
    made: Mutex<Option<Shared>>,
}

impl Observing {
    /// Returns a factory of controllers of `source`.
    pub fn new(source: Source) -> Self {
        Observing { source, made: Mutex::new(None) }
    }

    /// Returns the last controller that was made.
    pub fn made(&self) -> Option<Shared> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl ControllerFactory for Observing {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        let inner = match &self.source {
            Source::Own(factory) => Inner::Own(factory.clone().build(now, current_mtu)),
            Source::Made(controller) => Inner::Own(controller.clone_box()),
            Source::Ours(factory) => {
                let made = factory.clone().build(now, current_mtu).into_any();
                Inner::Ours(made.downcast().expect("an adapter of cwnd-quic"))
            }
        };
        let shared =
            Shared(Arc::new(Mutex::new(Observed { inner, meter: Meter::new(current_mtu) })));
        *self.made.lock().unwrap_or_else(PoisonError::into_inner) = Some(shared.clone());
        Box::new(shared)
    }
}
