//! The entries of the window laws. The build makes those of texts.

use super::card::card;
use super::{Algorithm, Build, Parameter, Range};
use crate::laws::{Aiad, Cubic, RateClock, RateFilter};
use crate::units::Dur;

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

/// The time constant of Westwood's filter.
const TAU: Parameter = Parameter::number("tau", "τ", 0.5, Range::closed(0.001, 100.0))
    .unit("s")
    .means("1/τ is the cut-off frequency of the rate's filter");

const FILTER: Parameter = Parameter::choice("filter", &["interval", "fixed"], Some(0))
    .means("gains that follow the interval of the sample, or fixed ones");

/// The filter of a value of [`FILTER`].
fn filter(value: f64) -> RateFilter {
    if value == 0.0 { RateFilter::Interval } else { RateFilter::Fixed }
}

pub(super) const AIAD: Algorithm = Algorithm {
    name: "aiad",
    title: "AIAD, additive increase, adaptive decrease",
    summary: "Grows by a packet in each round-trip time; a loss reduces the window to the estimated rate.",
    source: "Xu and Ansari, IEEE Communications Letters 2005; filter: Casetti et al., MobiCom 2001",
    equations: card!("laws/aiad.rs", equations),
    deviations: card!("laws/aiad.rs", deviations),
    parameters: &[
        Parameter::choice("rate", &["ack", "receiver"], Some(0))
            .means("the clock of the rate: arrivals of ACKs (κ), or of packets by timestamps (φ)"),
        TAU,
        FILTER,
        START,
        PACING,
    ],
    build: Build::Window(|v| {
        let clock = if v[0] == 0.0 { RateClock::Ack } else { RateClock::Receiver };
        Aiad::new(clock, filter(v[2]), Dur::from_secs(v[1])).into()
    }),
};

pub(super) const WESTWOOD: Algorithm = Algorithm {
    name: "westwood",
    title: "TCP Westwood: aiad(rate=ack)",
    summary: "A loss reduces the window to the rate of the acknowledgements times the smallest RTT.",
    source: "Casetti, Gerla, Mascolo, Sanadidi and Wang, MobiCom 2001",
    equations: card!("laws/aiad.rs", equations),
    deviations: card!("laws/aiad.rs", deviations),
    parameters: &[TAU, FILTER, START, PACING],
    build: Build::Window(|v| Aiad::new(RateClock::Ack, filter(v[1]), Dur::from_secs(v[0])).into()),
};

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
