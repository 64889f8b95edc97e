//! The whole controllers, in the order of [`algorithms`](super::algorithms).

use super::{Algorithm, Build, Parameter, Range};
use crate::controllers::Copa;
use alloc::boxed::Box;

pub(super) const COPA: Algorithm = Algorithm {
    name: "copa",
    title: "Copa, practical delay-based congestion control",
    summary: "Steers the window to a rate of 1/(delta d_q) by the queueing delay d_q, and competes \
              with flows that fill the buffer.",
    source: "Arun and Balakrishnan, NSDI 2018",
    equations: &[],
    deviations: &[],
    parameters: &[
        Parameter::number(
            "delta",
            "δ",
            "1/packets",
            0.5,
            Range::closed(0.001, 10.0),
            "weight of the delay against the throughput, in the default mode",
        ),
        Parameter::switch(
            "competitive",
            true,
            "whether the controller changes to the competitive mode",
        ),
    ],
    build: Build::Whole(|v, settings| Box::new(Copa::new(v[0], v[1] != 0.0, settings))),
};

pub(super) const C4: Algorithm = Algorithm {
    name: "c4",
    title: "C4, Christian's Congestion Control Code",
    summary: "Paces at the largest delivery rate, pushes above it periodically, and reduces it at \
              excessive delays and losses, the more sensitively the higher the rate.",
    source: "Huitema, Nandakumar and Jennings, draft-huitema-ccwg-c4-spec, private-octopus/c4 e3377b6",
    equations: &[],
    deviations: &[],
    parameters: &[],
    build: Build::Whole(|_, settings| Box::new(crate::controllers::C4::new(settings))),
};
