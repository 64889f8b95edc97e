//! The bridge from Rust results to Python and NumPy, and nothing else: `cwnd._native`.

// It has no unit tests: pytest tests it. `cargo test --lib`, which takes no notice of `test = false`, compiles an empty crate.
#![cfg(not(test))]

mod custom;
#[cfg(target_os = "linux")]
mod emulate;
#[cfg(target_os = "linux")]
mod linux;
mod model;
mod parallel;
#[cfg(target_os = "linux")]
mod real;
mod records;
mod registry;
mod scenario;
mod simulate;
mod transfer;
mod udt;

use pyo3::prelude::*;

/// The version of the native module.
#[pyfunction]
fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// A hash of the sources of the crates in this module, and of the versions of their dependencies.
#[pyfunction]
fn sources() -> &'static str {
    env!("CWND_SOURCES")
}

/// The laws, the simulator and the scenario format, as Rust has them.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("ScenarioError", py.get_type::<scenario::ScenarioError>())?;
    module.add("SpecError", py.get_type::<registry::SpecError>())?;
    module.add_function(wrap_pyfunction!(version, module)?)?;
    module.add_function(wrap_pyfunction!(sources, module)?)?;
    module.add_function(wrap_pyfunction!(scenario::schema, module)?)?;
    module.add_function(wrap_pyfunction!(scenario::load, module)?)?;
    module.add_function(wrap_pyfunction!(scenario::resolve, module)?)?;
    module.add_function(wrap_pyfunction!(scenario::validate, module)?)?;
    module.add_function(wrap_pyfunction!(records::catalogue, module)?)?;
    module.add_function(wrap_pyfunction!(records::record_schema, module)?)?;
    module.add_function(wrap_pyfunction!(registry::algorithms, module)?)?;
    module.add_function(wrap_pyfunction!(registry::canonical, module)?)?;
    module.add_function(wrap_pyfunction!(simulate::simulate, module)?)?;
    custom::add(module)?;
    model::add(module)?;
    udt::add(module)?;
    transfer::add(module)?;
    #[cfg(target_os = "linux")]
    emulate::add(module)?;
    #[cfg(target_os = "linux")]
    linux::add(module)?;
    #[cfg(target_os = "linux")]
    real::add(module)?;
    Ok(())
}
