//! The entries of the rate laws. The build makes those of texts.

use super::card::card;
use super::{Algorithm, Build, Parameter, Range};
use crate::laws::{Tfrc, Udt};
use crate::units::Dur;

include!(concat!(env!("OUT_DIR"), "/rate.rs"));

/// The control interval: UDT's SYN.
const SYN: Parameter = Parameter::number("syn", "SYN", 0.01, Range::closed(1e-4, 10.0))
    .unit("s")
    .means("the control interval");

pub(super) const UDT: Algorithm = Algorithm {
    name: "udt",
    title: "UDT version 4",
    summary: "The rate control of UDT: DAIMD with a least increase and randomised repeated decreases.",
    source: "Gu, draft-gg-udt-03 section 6, and UDT 4.11",
    equations: card!("laws/udt.rs", equations),
    deviations: card!("laws/udt.rs", deviations),
    parameters: &[
        SYN,
        Parameter::number("least", "1/S", 0.01, Range::above(0.0, 100.0))
            .unit("packets")
            .means("least increase in each control interval"),
    ],
    build: Build::Rate(|v, seed| Udt::new(Dur::from_secs(v[0]), v[1], seed).into()),
};

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
