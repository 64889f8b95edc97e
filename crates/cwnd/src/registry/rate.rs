//! The entries of the rate laws. The build makes those of texts.

use super::card::card;
use super::{Algorithm, Build, Parameter, Range};
use crate::laws::Tfrc;

include!(concat!(env!("OUT_DIR"), "/rate.rs"));

pub(super) const TFRC: Algorithm = Algorithm {
    name: "tfrc",
    title: "TFRC, TCP-friendly rate control",
    summary: "Sends at the rate of TCP's throughput equation for the measured loss event rate.",
    source: "Floyd, Handley, Padhye and Widmer, RFC 5348",
    equations: card!("laws/tfrc.rs", equations),
    deviations: card!("laws/tfrc.rs", deviations),
    parameters: &[],
    build: Build::Rate(|_, _| Tfrc::new().into()),
};
