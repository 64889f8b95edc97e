//! Controllers without pins: a file descriptor of this process holds the link of the struct_ops
//! map, so the kernel unloads the controller when the process ends.

use super::control::Control;
use super::loader::{Registered, check_btf, register};
use super::{Error, Implementation, Trace, pinned};
use cwnd::Spec;
use libbpf_rs::MapHandle;
use std::sync::atomic::{AtomicU32, Ordering};

/// A controller that is unloaded when this value is dropped.
pub struct UnpinnedController {
    name: String,
    registered: Registered,
}

impl UnpinnedController {
    /// Loads the controller `spec` under a unique name.
    ///
    /// # Errors
    /// There is no kernel implementation, the kernel lacks a feature, or the user a capability.
    pub fn load(spec: &Spec) -> Result<UnpinnedController, Error> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let implementation = Implementation::of(spec)?;
        let number = COUNT.fetch_add(1, Ordering::Relaxed) & 0xfff;
        let name = format!("run_{:x}_{number:x}", std::process::id());
        let control = Control { spec: spec.to_string(), ..Control::default() };
        check_btf()?;
        let registered = register(&implementation, &name, &control.to_bytes());
        Ok(UnpinnedController { name, registered: registered.map_err(pinned::explain_permission)? })
    }

    /// The name of the controller in the kernel.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Starts a trace of the controller.
    ///
    /// # Errors
    /// The user lacks a capability.
    pub fn trace(&self) -> Result<Trace, Error> {
        let Registered { control, events, .. } = &self.registered;
        let control = MapHandle::try_from(control);
        let control = control.map_err(Error::bpf(self.name.clone()))?;
        Trace::from_maps(&self.name, control, events)
    }
}
