//! The entries of the window laws.

use super::card::card;
use super::{Algorithm, Build, Parameter, Range};
use crate::laws::{
    Aiad, Aimd, Aira, AiraParameters, AiraPeak, Cubic, HighSpeed, Prague, RateClock, RateFilter,
};
use crate::units::Dur;

/// The parameters of the machine, which every window law has.
pub(super) const START: Parameter =
    Parameter::choice("start", &["standard", "hystart", "hystart-train", "hystart-linux"], None)
        .means(
            "slow start: RFC 5681, HyStart++ (RFC 9406), HyStart++ with acknowledgement trains, or \
             HyStart of Linux's CUBIC",
        );
pub(super) const PACING: Parameter = pacing(0.0);

/// The pacing rate, 0 for that of the driver.
const fn pacing(default: f64) -> Parameter {
    Parameter::number("pacing", "pacing", default, Range::closed(0.0, 100.0))
        .means("pacing rate over window / smoothed round-trip time; 0: the driver's")
}

/// The reduction at a loss as a fraction of the window.
const fn beta(default: f64) -> Parameter {
    Parameter::fraction("beta", "β", default)
        .means("reduction at a loss as a fraction of the window")
}

/// What remains at a loss.
const fn kept(default: f64) -> Parameter {
    Parameter::fraction("kept", "β", default).means("window after a loss over that before it")
}

/// The growth of the window.
const fn alpha(default: f64, meaning: &'static str) -> Parameter {
    Parameter::number("alpha", "α", default, Range::above(0.0, 1000.0))
        .unit("packets")
        .means(meaning)
}

/// A number of packets.
const fn packets(
    name: &'static str,
    symbol: &'static str,
    default: f64,
    range: Range,
) -> Parameter {
    Parameter::number(name, symbol, default, range).unit("packets")
}

const EACH_ROUND: &str = "growth in each round-trip time";

const AIMD_EQUATIONS: &[&str] = &["each ACK: w <- w + alpha / w", "at a loss: w <- w - beta w"];

const HALVES: &str = "The source has no rule for the slow-start threshold: in slow start and after a timeout it is \
     at most half of the window (RFC 5681 equation 4).";
const BYTES: &str = "With byte counting (RFC 3465) an ACK of n packets counts as n ACKs.";

pub(super) const AIMD: Algorithm = Algorithm {
    name: "aimd",
    title: "AIMD(α, β)",
    summary: "Grows by α packets in each round-trip time and shrinks by the fraction β at a loss.",
    source: "Chiu and Jain, Computer Networks and ISDN Systems 17, 1989",
    equations: AIMD_EQUATIONS,
    deviations: &[HALVES, BYTES],
    parameters: &[alpha(1.0, EACH_ROUND), beta(0.5), START, PACING],
    build: Build::Window(|v| Aimd::new(v[0], v[1]).into()),
};

pub(super) const RENO: Algorithm = Algorithm {
    name: "reno",
    title: "TCP Reno's AIMD(1, 1/2)",
    summary: "Grows by a packet in each round-trip time and halves the window at a loss.",
    source: "RFC 5681",
    equations: AIMD_EQUATIONS,
    deviations: &["Under Linux's conventions AIMD(1, 1/2) counts whole packets (tcp_cong.c)."],
    parameters: &[START, PACING],
    build: Build::Window(|_| Aimd::reno().into()),
};

pub(super) const GAIMD: Algorithm = Algorithm {
    name: "gaimd",
    title: "GAIMD(α, β): a loss multiplies the window by β",
    summary: "AIMD in the notation of the GAIMD paper.",
    source: "Yang and Lam, General AIMD congestion control, TR-2000-09",
    equations: &["each ACK: w <- w + alpha / w", "at a loss: w <- kept w"],
    deviations: &[
        "Yang and Lam halve the window at the congestion indication that ends slow start, as RFC \
         5681 equation 4 allows; they have no rule for the threshold after a timeout (see \
         `threshold`).",
        BYTES,
        "The paper's beta is `kept`: the `beta` of `aimd` is a reduction.",
    ],
    parameters: &[
        alpha(0.31, EACH_ROUND),
        kept(0.875),
        Parameter::choice("threshold", &["half", "kept"], Some(0))
            .means("threshold after a timeout: half of the window, or `kept` times it"),
        START,
        PACING,
    ],
    build: Build::Window(|v| {
        let law = Aimd::gaimd(v[0], v[1]);
        if v[2] == 0.0 { law.into() } else { law.keeping_threshold().into() }
    }),
};

pub(super) const FRIENDLY: Algorithm = Algorithm {
    name: "friendly",
    title: "AIMD with the TCP-friendly α",
    summary: "AIMD whose α follows from β by a model without or with TCP's timeouts.",
    source: "Floyd, Handley and Padhye 2000 (without timeouts); Yang and Lam, TR-2000-09 (with)",
    equations: &[
        "each ACK: w <- w + alpha / w",
        "at a loss: w <- w - beta w",
        "without timeouts: alpha = 3 beta / (2 - beta)",
        "with timeouts: alpha = 4 (1 - (1 - beta)^2) / 3",
    ],
    deviations: &[HALVES, BYTES],
    parameters: &[
        beta(0.125),
        Parameter::switch("timeouts", false).means("whether α accounts for TCP's timeouts"),
        START,
        PACING,
    ],
    build: Build::Window(|v| {
        let timeouts = v[1] != 0.0;
        let friendly = if timeouts { Aimd::friendly_with_timeouts } else { Aimd::friendly };
        Aimd::new(friendly(v[0]), v[0]).into()
    }),
};

pub(super) const AIRA: Algorithm = Algorithm {
    name: "aira",
    title: "AIRA, the additive increase rate accelerator",
    summary: "AIMD whose additive increase follows the change of the loss rate between rounds.",
    source: "Psaras and Tsaoussidis, On the properties of an additive increase rate accelerator",
    equations: card!("laws/aira.rs", equations),
    deviations: card!("laws/aira.rs", deviations),
    parameters: &[
        beta(0.5),
        packets("bound", "a_min", 0.1, Range::closed(0.0, 1.0)).means("lower bound of a; 0 is off"),
        Parameter::switch("mail", true).means("the minimum additive increase limit (Eq. 23)"),
        Parameter::switch("reset", true).means("the reset condition (section 6.3)"),
        Parameter::switch("increase", true).means("the increase rule (Eq. 14)"),
        Parameter::switch("decrease", true).means("the decrease rule (Eq. 5)"),
        Parameter::number("rounds", "R", 100.0, Range::closed(1.0, 10_000.0))
            .means("rounds in which MAIL falls to the bound"),
        Parameter::number("ratio", "W/W_max", 1.5, Range::above(1.0, 10.0))
            .means("window over W at which a is reset"),
        Parameter::choice("timeout", &["continues", "ends"], Some(0))
            .means("effect of a timeout on the current round"),
        Parameter::choice("peak", &["last", "mean", "largest"], Some(0)).means(
            "W of the reset condition: the window at the last loss, or the mean or the largest of \
             those at the last 30",
        ),
        START,
        PACING,
    ],
    build: Build::Window(|v| {
        Aira::new(AiraParameters {
            beta: v[0],
            bound: v[1],
            mail: v[2] != 0.0,
            reset: v[3] != 0.0,
            increase: v[4] != 0.0,
            decrease: v[5] != 0.0,
            rounds: v[6],
            ratio: v[7],
            peak: [AiraPeak::Last, AiraPeak::Mean, AiraPeak::Largest][v[9] as usize],
            timeout_ends_round: v[8] != 0.0,
        })
        .into()
    }),
};

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

pub(super) const HIGHSPEED: Algorithm = Algorithm {
    name: "highspeed",
    title: "HighSpeed TCP",
    summary: "Reno whose increase and decrease depend on the window beyond 38 packets.",
    source: "Floyd, RFC 3649",
    equations: card!("laws/highspeed.rs", equations),
    deviations: card!("laws/highspeed.rs", deviations),
    parameters: &[
        packets("low", "W", 38.0, Range::closed(1.0, 1000.0))
            .means("window up to which the law is Reno"),
        packets("high", "W1", 83_000.0, Range::closed(1001.0, 1e9))
            .means("window of the highest speed"),
        Parameter::number("plow", "P", 1e-3, Range::closed(1e-5, 0.1))
            .means("loss rate at which the window is W"),
        Parameter::number("phigh", "P1", 1e-7, Range::closed(1e-12, 1e-6))
            .means("loss rate at which the window is W1"),
        Parameter::number("bhigh", "B1", 0.1, Range::above(0.0, 0.5))
            .means("reduction at W1 as a fraction of the window"),
        START,
        PACING,
    ],
    build: Build::Window(|v| HighSpeed::new((v[0], v[2]), (v[1], v[3]), v[4]).into()),
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

pub(super) const PRAGUE: Algorithm = Algorithm {
    name: "prague",
    title: "Prague, DCTCP for L4S",
    summary: "Reduces the window by the fraction of marked packets, independently of short round-trip times.",
    source: "draft-briscoe-iccrg-prague-congestion-control, L4STeam/linux 02573a2",
    equations: card!("laws/prague.rs", equations),
    deviations: card!("laws/prague.rs", deviations),
    parameters: &[
        Parameter::fraction("g", "g", 1.0 / 16.0)
            .means("gain of the estimate of the marked fraction"),
        Parameter::number("rtt_virt", "rtt_virt", 0.025, Range::closed(0.0, 1.0))
            .unit("s")
            .means("least round-trip time that the flow behaves as if it had; 0 for none"),
        Parameter::number("transition", "transition", 500.0, Range::closed(0.0, 1e6))
            .means("rounds of congestion avoidance before rtt_virt applies"),
        START,
        pacing(1.0),
    ],
    build: Build::Window(|v| Prague::new(v[0], Dur::from_secs(v[1]), v[2] as u32).into()),
};
