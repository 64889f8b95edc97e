//! One file for each law, each reading like its source.

mod aimd;

pub use aimd::Aimd;
