//! Controllers that last as long as whoever loaded them: nothing of them is pinned, so the kernel
//! unloads them with the process, however that ends.

use super::instance::Control;
use super::loader::{Registered, kernel_types, register};
use super::{Error, Form, Trace, instance};
use cwnd::Spec;
use libbpf_rs::MapHandle;
use std::sync::atomic::{AtomicU32, Ordering};

/// A controller that is loaded until this is dropped.
pub struct Held {
    name: String,
    registered: Registered,
}

impl Held {
    /// Loads what `spec` names, under a name that nothing else has.
    ///
    /// # Errors
    /// One line: no form in the kernel, or what the system lacks.
    pub fn load(spec: &Spec) -> Result<Held, Error> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let form = Form::of(spec)?;
        let number = COUNT.fetch_add(1, Ordering::Relaxed) & 0xfff;
        let name = format!("run_{:x}_{number:x}", std::process::id());
        let control = Control { spec: spec.to_string(), ..Control::default() };
        kernel_types()?;
        let registered = register(&form, &name, &control.to_bytes());
        Ok(Held { name, registered: registered.map_err(instance::explain)? })
    }

    /// Its name for the kernel.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Listens to it.
    ///
    /// # Errors
    /// Where the kernel does not let this user.
    pub fn trace(&self) -> Result<Trace, Error> {
        let Registered { control, events, .. } = &self.registered;
        let control = MapHandle::try_from(control);
        let control = control.map_err(|error| Error::bpf(self.name.clone())(&error))?;
        Trace::of(&self.name, control, events)
    }
}
