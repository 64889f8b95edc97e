//! The entries of the laws that are texts, which the build makes.

use super::window::{PACING, START};
use super::{Algorithm, Build, Domain, Parameter, Range};
use crate::laws::texts::*;
#[cfg(feature = "files")]
use cwnd_law::Law;
#[cfg(feature = "files")]
use std::sync::LazyLock;

include!(concat!(env!("OUT_DIR"), "/entries.rs"));

#[cfg(feature = "files")]
include!(concat!(env!("OUT_DIR"), "/texts.rs"));

#[cfg(feature = "files")]
fn read(text: &str) -> Law {
    Law::parse(text).expect("the build has read it")
}

/// The law that the text of this name describes.
#[cfg(feature = "files")]
pub(super) fn law(name: &str) -> Option<&'static Law> {
    LAWS.iter().find(|(known, _)| *known == name).map(|(_, law)| &**law)
}
