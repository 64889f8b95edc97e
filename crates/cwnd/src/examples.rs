//! Complete programs: the directory `examples` of the package. This module is in the documentation
//! only.
//!
//! # A law
//!
#![doc = concat!("```ignore\n", include_str!("../examples/law.rs"), "```\n")]
//! # A driver
//!
#![doc = concat!("```ignore\n", include_str!("../examples/driver.rs"), "```\n")]
//! # A whole controller
//!
#![doc = concat!("```ignore\n", include_str!("../examples/whole.rs"), "```\n")]
//! # Records and replay
//!
#![doc = concat!("```ignore\n", include_str!("../examples/replay.rs"), "```\n")]
