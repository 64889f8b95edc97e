//! Tests of the controllers over their public interface, in one binary: each binary compiles the
//! generic code of the crate again.

#[cfg(feature = "registry")]
mod cards;
mod common;
mod contract;
mod delivery;
#[cfg(feature = "files")]
mod files;
mod laws;
mod machine;
mod machine_conventions;
mod machine_hystart;
mod machine_paced;
mod machine_windowed;
mod specs;
mod texts;
