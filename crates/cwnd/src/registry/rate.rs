//! The entries of the rate laws. The build makes those of texts.

use super::card::card;
use super::{Algorithm, Build, Parameter, Range};
use crate::laws::{Daimd, DaimdParameters, Feedback, Tfrc, Udt};
use crate::units::Dur;

include!(concat!(env!("OUT_DIR"), "/rate.rs"));

/// The control interval: UDT's SYN.
const SYN: Parameter = Parameter::number("syn", "SYN", 0.01, Range::closed(1e-4, 10.0))
    .unit("s")
    .means("the control interval");

pub(super) const DAIMD: Algorithm = Algorithm {
    name: "daimd",
    title: "DAIMD, AIMD with decreasing increases",
    summary: "Increases its rate by less, the closer the rate is to the link capacity.",
    source: "Gu, Hong and Grossman, An analysis of AIMD algorithm with decreasing increases",
    equations: card!("laws/daimd.rs", equations),
    deviations: card!("laws/daimd.rs", deviations),
    parameters: &[
        Parameter::number("tau", "τ", 9.0, Range::closed(3.0, 15.0))
            .means("protocol parameter: powers of ten by which the increase is below L - C(x)"),
        Parameter::fraction("beta", "β", 1.0 / 9.0)
            .means("reduction at a negative feedback as a fraction of the rate"),
        SYN,
        Parameter::number("capacity", "L", 0.0, Range::closed(0.0, 1e15))
            .unit("bit/s")
            .means("the link capacity; 0 takes the receiver's estimate"),
        Parameter::number("lambda", "λ", 0.875, Range::closed(0.0, 1.0))
            .means("weight of the old window in the moving average; 1: no flow window"),
        Parameter::choice("feedback", &["event", "packet", "syn", "report"], Some(0)).means(
            "one reduction for each congestion event, lost packet (Eq. 3), SYN with losses \
             (Eq. 4) or loss report",
        ),
        Parameter::switch("delay", true)
            .means("whether a rising round-trip time is a negative feedback too"),
    ],
    build: Build::Rate(|v, _| {
        let capacity = (v[3] > 0.0).then_some(v[3]);
        Daimd::new(DaimdParameters {
            tau: v[0],
            beta: v[1],
            feedback: match v[5] as u32 {
                0 => Feedback::Event,
                1 => Feedback::Packet,
                2 => Feedback::Syn,
                _ => Feedback::Report,
            },
            syn: Dur::from_secs(v[2]),
            capacity,
            lambda: v[4],
            delay: v[6] != 0.0,
        })
        .into()
    }),
};

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
