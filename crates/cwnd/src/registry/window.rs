//! The entries of the window laws.

use super::{Algorithm, Build, Parameter, Range};
use crate::laws::Aimd;

/// The machine's parameter, which every window law takes.
const START: Parameter = Parameter::choice(
    "start",
    &["classic", "hystart"],
    None,
    "how slow start grows the window: RFC 5681, or HyStart++ (RFC 9406)",
);

/// A fraction of the window given up at a loss.
const fn beta(default: f64) -> Parameter {
    let range = Range::open(0.0, 1.0);
    Parameter::number("beta", "β", "", default, range, "fraction of the window given up at a loss")
}

/// Packets gained each round-trip time.
const fn alpha(default: f64, meaning: &'static str) -> Parameter {
    Parameter::number("alpha", "α", "packets", default, Range::above(0.0, 1000.0), meaning)
}

const AIMD_EQUATIONS: &[&str] = &["each ACK: w <- w + alpha / w", "at a loss: w <- w - beta w"];

pub(super) const AIMD: Algorithm = Algorithm {
    name: "aimd",
    title: "AIMD(α, β)",
    summary: "Gains α packets each round-trip time and gives up the fraction β at a loss.",
    source: "Chiu and Jain, Analysis of the increase and decrease algorithms, 1989",
    equations: AIMD_EQUATIONS,
    deviations: &[],
    parameters: &[alpha(1.0, "packets gained each round-trip time"), beta(0.5), START],
    build: Build::Window(|v| Aimd::new(v[0], v[1]).into()),
};

pub(super) const RENO: Algorithm = Algorithm {
    name: "reno",
    title: "TCP Reno's AIMD(1, 1/2)",
    summary: "Gains a packet each round-trip time and halves the window at a loss.",
    source: "RFC 5681",
    equations: &["each ACK: w <- w + 1 / w", "at a loss: w <- w / 2"],
    deviations: &[],
    parameters: &[START],
    build: Build::Window(|_| Aimd::reno().into()),
};
