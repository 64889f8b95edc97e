//! The entries of the window laws. The build makes those of texts.

use super::card::card;
use super::{Algorithm, Build, Parameter, Range};
use crate::laws::Cubic;

include!(concat!(env!("OUT_DIR"), "/window.rs"));

/// The parameters of the machine, which every window law has.
pub(super) const START: Parameter =
    Parameter::choice("start", &["standard", "hystart", "hystart-train", "hystart-linux"], None)
        .means(
            "slow start: RFC 5681, HyStart++ (RFC 9406), HyStart++ with acknowledgement trains, or \
             HyStart of Linux's CUBIC",
        );
const PACING: Parameter = pacing(0.0);

/// The pacing rate, 0 for that of the driver.
pub(super) const fn pacing(default: f64) -> Parameter {
    Parameter::number("pacing", "pacing", default, Range::closed(0.0, 100.0))
        .means("pacing rate over window / smoothed round-trip time; 0: the driver's")
}

/// What remains at a loss.
const fn kept(default: f64) -> Parameter {
    Parameter::fraction("kept", "β", default).means("window after a loss over that before it")
}

pub(super) const CUBIC: Algorithm = Algorithm {
    name: "cubic",
    title: "CUBIC",
    summary: "A cubic function of the time since the last loss, Reno where Reno is faster.",
    source: "RFC 9438",
    equations: card!("laws/cubic.rs", equations),
    deviations: card!("laws/cubic.rs", deviations),
    parameters: &[
        Parameter::number("c", "C", 0.4, Range::closed(0.001, 100.0))
            .unit("packets/s^3")
            .means("aggressiveness of the growth"),
        kept(0.7),
        Parameter::switch("fast", true).means("fast convergence"),
        START,
        PACING,
    ],
    build: Build::Window(|v| Cubic::new(v[0], v[1], v[2] != 0.0).into()),
};
