//! The entries of the window laws.

use super::{Algorithm, Build, Parameter, Range};
use crate::laws::{
    Aiad, Aimd, Aira, AiraParameters, Bic, BicParameters, Binomial, Cubic, HighSpeed, RateClock,
    Scalable, Simd, Vegas,
};
use crate::units::Dur;

/// The parameters of the machine, which every window law takes.
const START: Parameter = Parameter::choice(
    "start",
    &["standard", "hystart", "hystart-train"],
    None,
    "slow start: RFC 5681, HyStart++ (RFC 9406), or HyStart++ with acknowledgement trains",
);
const PACING: Parameter = Parameter::number(
    "pacing",
    "pacing",
    "",
    0.0,
    Range::closed(0.0, 100.0),
    "pacing rate over window / smoothed round-trip time; 0 is off",
);

/// A fraction of the window given up at a loss.
const fn beta(default: f64) -> Parameter {
    let range = Range::open(0.0, 1.0);
    Parameter::number("beta", "β", "", default, range, "fraction of the window given up at a loss")
}

/// Packets gained.
const fn alpha(default: f64, meaning: &'static str) -> Parameter {
    Parameter::number("alpha", "α", "packets", default, Range::above(0.0, 1000.0), meaning)
}

/// A number of packets.
const fn packets(
    name: &'static str,
    symbol: &'static str,
    default: f64,
    range: Range,
    meaning: &'static str,
) -> Parameter {
    Parameter::number(name, symbol, "packets", default, range, meaning)
}

const EACH_ROUND: &str = "packets gained each round-trip time";

const AIMD_EQUATIONS: &[&str] = &["each ACK: w <- w + alpha / w", "at a loss: w <- w - beta w"];

pub(super) const AIMD: Algorithm = Algorithm {
    name: "aimd",
    title: "AIMD(α, β)",
    summary: "Gains α packets each round-trip time and gives up the fraction β at a loss.",
    source: "Chiu and Jain, Computer Networks and ISDN Systems 17, 1989",
    equations: AIMD_EQUATIONS,
    deviations: &[],
    parameters: &[alpha(1.0, EACH_ROUND), beta(0.5), START, PACING],
    build: Build::Window(|v| Aimd::new(v[0], v[1]).into()),
};

pub(super) const RENO: Algorithm = Algorithm {
    name: "reno",
    title: "TCP Reno's AIMD(1, 1/2)",
    summary: "Gains a packet each round-trip time and halves the window at a loss.",
    source: "RFC 5681",
    equations: AIMD_EQUATIONS,
    deviations: &[],
    parameters: &[START, PACING],
    build: Build::Window(|_| Aimd::reno().into()),
};

pub(super) const GAIMD: Algorithm = Algorithm {
    name: "gaimd",
    title: "GAIMD(α, β), its β the fraction kept",
    summary: "AIMD as the GAIMD paper writes it: the window times β is what a loss leaves.",
    source: "Yang and Lam, General AIMD congestion control, TR-2000-09",
    equations: AIMD_EQUATIONS,
    deviations: &["the paper's beta is called kept: everywhere else beta is what is given up"],
    parameters: &[
        alpha(0.31, EACH_ROUND),
        Parameter::number(
            "kept",
            "β",
            "",
            0.875,
            Range::open(0.0, 1.0),
            "fraction of the window kept at a loss",
        ),
        START,
        PACING,
    ],
    build: Build::Window(|v| Aimd::gaimd(v[0], v[1]).into()),
};

pub(super) const FRIENDLY: Algorithm = Algorithm {
    name: "friendly",
    title: "AIMD with the TCP-friendly α",
    summary: "AIMD whose α follows from β, without or with TCP's timeouts.",
    source: "Floyd, Handley and Padhye 2000 (without timeouts); Yang and Lam, TR-2000-09 (with)",
    equations: &[
        "each ACK: w <- w + alpha / w",
        "at a loss: w <- w - beta w",
        "without timeouts: alpha = 3 beta / (2 - beta)",
        "with timeouts: alpha = 4 (1 - kept^2) / 3",
    ],
    deviations: &[],
    parameters: &[
        beta(0.125),
        Parameter::switch("timeouts", false, "whether α allows for TCP's timeouts"),
        START,
        PACING,
    ],
    build: Build::Window(|v| {
        let timeouts = v[1] != 0.0;
        let friendly = if timeouts { Aimd::friendly_with_timeouts } else { Aimd::friendly };
        Aimd::new(friendly(v[0]), v[0]).into()
    }),
};

const BINOMIAL_EQUATIONS: &[&str] =
    &["each ACK: w <- w + alpha / w^(k+1)", "at a loss: w <- w - beta w^l"];
const BANSAL: &str =
    "Bansal and Balakrishnan, Binomial congestion control algorithms, INFOCOM 2001";

pub(super) const BINOMIAL: Algorithm = Algorithm {
    name: "binomial",
    title: "Binomial(k, l, α, β)",
    summary: "Increases by a power of the window and decreases by another.",
    source: BANSAL,
    equations: BINOMIAL_EQUATIONS,
    deviations: &[],
    parameters: &[
        Parameter::number("k", "k", "", 1.0, Range::closed(0.0, 4.0), "power of the increase"),
        Parameter::number("l", "l", "", 0.0, Range::closed(0.0, 1.0), "power of the decrease"),
        alpha(1.0, "packets gained each round-trip time at a window of 1"),
        Parameter::number(
            "beta",
            "β",
            "packets",
            2.0 / 3.0,
            Range::open(0.0, 1.0),
            "packets given up at a window of 1",
        ),
        START,
        PACING,
    ],
    build: Build::Window(|v| Binomial::new(v[0], v[1], v[2], v[3]).into()),
};

pub(super) const IIAD: Algorithm = Algorithm {
    name: "iiad",
    title: "IIAD: binomial(1, 0, 1, 2/3)",
    summary: "Inverse increase, additive decrease, as the SIMD paper runs it.",
    source: BANSAL,
    equations: BINOMIAL_EQUATIONS,
    deviations: &[],
    parameters: &[START, PACING],
    build: Build::Window(|_| Binomial::iiad().into()),
};

pub(super) const SQRT: Algorithm = Algorithm {
    name: "sqrt",
    title: "SQRT: binomial(1/2, 1/2, 1, 2/3)",
    summary: "Increases and decreases by the square root of the window.",
    source: BANSAL,
    equations: BINOMIAL_EQUATIONS,
    deviations: &["α and β by the TCP-friendly relation α = 3β/2 that IIAD has as well"],
    parameters: &[START, PACING],
    build: Build::Window(|_| Binomial::sqrt().into()),
};

pub(super) const SIMD: Algorithm = Algorithm {
    name: "simd",
    title: "SIMD(β), square increase, multiplicative decrease",
    summary: "Grows with the square of the time since the last loss, TCP-friendly.",
    source: "Jin, Guo, Matta and Bestavros, TCP-friendly SIMD congestion control, BU-CS-2001-006",
    equations: &[
        "each ACK: w <- w + alpha sqrt(w - w0) / w",
        "the first ACK: w <- w0 + alpha^2 / (4 w0)",
        "alpha = 3 sqrt(beta) / ((1 - 2 beta / 3) sqrt(2 w_max))",
        "at a loss: w_max <- w, w <- w - beta w, w0 <- w",
    ],
    deviations: &["where slow start ends without a loss, w0 = w and w_max = w0 / (1 - β)"],
    parameters: &[beta(0.0625), START, PACING],
    build: Build::Window(|v| Simd::new(v[0]).into()),
};

pub(super) const AIRA: Algorithm = Algorithm {
    name: "aira",
    title: "AIRA, the additive increase rate accelerator",
    summary: "AIMD whose additive increase follows the change of the loss rate between rounds.",
    source: "Psaras and Tsaoussidis, On the properties of an additive increase rate accelerator",
    equations: &[
        "each ACK: w <- w + a / w",
        "at a loss: w <- w - beta w",
        "decrease, if p_i > p_(i-1): a <- a (1 - p_i)",
        "increase, if p_i < p_(i-1): a <- a (1 + p_(i-1) - p_i)",
        "bound: a >= 0.1",
        "MAIL: a >= 1 - 0.9 R_N / 100, R_N rounds completed",
        "reset: a <- 1 once w reaches 3/2 of its value at the last loss",
    ],
    deviations: &[
        "a never exceeds 1, which section 6.3 calls the fastest",
        "the 0.9 of Eq. 23 is 1 - bound",
        "a timeout ends no round (see timeout), nor lowers the window that the reset compares with",
    ],
    parameters: &[
        beta(0.5),
        packets("bound", "a_min", 0.1, Range::closed(0.0, 1.0), "lower bound of a; 0 is off"),
        Parameter::switch("mail", true, "the minimum additive increase limit (Eq. 23)"),
        Parameter::switch("reset", true, "the reset condition (section 6.3)"),
        Parameter::switch("increase", true, "the increase rule (Eq. 14)"),
        Parameter::switch("decrease", true, "the decrease rule (Eq. 5)"),
        Parameter::number(
            "rounds",
            "R",
            "",
            100.0,
            Range::closed(1.0, 10_000.0),
            "rounds after which MAIL has come down to the bound",
        ),
        Parameter::number(
            "ratio",
            "W/W_max",
            "",
            1.5,
            Range::above(1.0, 10.0),
            "window over that at the last loss at which a is reset",
        ),
        Parameter::choice(
            "timeout",
            &["continues", "ends"],
            Some(0),
            "whether the round continues after a timeout or ends with it",
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
            timeout_ends_round: v[8] != 0.0,
        })
        .into()
    }),
};

/// The time constant of Westwood's filter.
const TAU: Parameter = Parameter::number(
    "tau",
    "τ",
    "s",
    0.5,
    Range::closed(0.001, 100.0),
    "1/τ is the cut-off frequency of the rate's filter",
);

const AIAD_EQUATIONS: &[&str] = &[
    "each ACK: w <- w + 1 / w",
    "at a loss: w <- r d, at most w, at least 2",
    "threshold: ssthresh <- r d, at least 2, at a loss, in slow start and after a timeout",
    "sample k: b_k = packets acknowledged in D_k / D_k, D_k = t_k - t_(k-1)",
    "filter: r <- ((2 tau / D_k - 1) r + b_k + b_(k-1)) / (2 tau / D_k + 1)",
    "no sample for tau / 2: a sample of 0 with D = tau / 2",
];
const AIAD_DEVIATIONS: &[&str] = &[
    "samples at one instant of their clock are taken together",
    "a rest of a gap shorter than τ/50 is joined to the sample of 0 before it",
    "the estimate starts at 0; without one a loss halves the window",
    "Westwood's ns-2 code divides the threshold of a timeout in slow start by 1 to 4: not done here",
];

pub(super) const AIAD: Algorithm = Algorithm {
    name: "aiad",
    title: "AIAD, additive increase, adaptive decrease",
    summary: "Gains a packet each round-trip time and falls to the estimated rate at a loss.",
    source: "Xu and Ansari, IEEE Communications Letters 2005; filter: Casetti et al., MobiCom 2001",
    equations: AIAD_EQUATIONS,
    deviations: AIAD_DEVIATIONS,
    parameters: &[
        Parameter::choice(
            "rate",
            &["ack", "receiver"],
            Some(0),
            "the clock of the rate: arrivals of ACKs (κ), or of packets by timestamps (φ)",
        ),
        TAU,
        START,
        PACING,
    ],
    build: Build::Window(|v| {
        let clock = if v[0] == 0.0 { RateClock::Ack } else { RateClock::Receiver };
        Aiad::new(clock, Dur::from_secs(v[1])).into()
    }),
};

pub(super) const WESTWOOD: Algorithm = Algorithm {
    name: "westwood",
    title: "TCP Westwood: aiad(rate=ack)",
    summary: "Falls to the rate of the acknowledgements times the smallest round-trip time.",
    source: "Casetti, Gerla, Mascolo, Sanadidi and Wang, MobiCom 2001",
    equations: AIAD_EQUATIONS,
    deviations: AIAD_DEVIATIONS,
    parameters: &[TAU, START, PACING],
    build: Build::Window(|v| Aiad::new(RateClock::Ack, Dur::from_secs(v[0])).into()),
};

pub(super) const SCALABLE: Algorithm = Algorithm {
    name: "scalable",
    title: "Scalable TCP",
    summary: "Gains a fixed part of a packet at each ACK: recovery takes as long at any window.",
    source: "Kelly, ACM SIGCOMM Computer Communication Review 33(2), 2003",
    equations: &[
        "each ACK: w <- w + a",
        "at a loss: w <- w - b w",
        "below `low`: w <- w + 1 / w and w <- w / 2, as Reno",
    ],
    deviations: &[],
    parameters: &[
        packets("a", "a", 0.01, Range::above(0.0, 1.0), "packets gained at each ACK"),
        Parameter::number(
            "b",
            "b",
            "",
            0.125,
            Range::open(0.0, 1.0),
            "fraction of the window given up at a loss",
        ),
        packets("low", "lwnd", 16.0, Range::closed(1.0, 1e6), "window up to which it is Reno"),
        START,
        PACING,
    ],
    build: Build::Window(|v| Scalable::new(v[0], v[1], v[2]).into()),
};

pub(super) const HIGHSPEED: Algorithm = Algorithm {
    name: "highspeed",
    title: "HighSpeed TCP",
    summary: "Reno whose increase and decrease follow the window beyond 38 packets.",
    source: "Floyd, RFC 3649",
    equations: &[
        "each ACK: w <- w + a(w) / w",
        "at a loss: w <- w - b(w) w",
        "w <= W: a(w) = 1, b(w) = 1/2",
        "w > W: p(w) = P (w / W)^(1/S), S = (ln W1 - ln W) / (ln P1 - ln P)",
        "b(w) = 1/2 - (1/2 - B1) (ln w - ln W) / (ln W1 - ln W)",
        "a(w) = 2 w^2 b(w) p(w) / (2 - b(w))",
    ],
    deviations: &[
        "a(w) is recomputed when the window has moved by a packet",
        "beyond W1 b stays B1 and a follows its formula",
    ],
    parameters: &[
        packets("low", "W", 38.0, Range::closed(1.0, 1000.0), "window up to which it is Reno"),
        packets("high", "W1", 83_000.0, Range::closed(1001.0, 1e9), "window of the highest speed"),
        Parameter::number(
            "plow",
            "P",
            "",
            1e-3,
            Range::closed(1e-5, 0.1),
            "loss rate at which the window is W",
        ),
        Parameter::number(
            "phigh",
            "P1",
            "",
            1e-7,
            Range::closed(1e-12, 1e-6),
            "loss rate at which the window is W1",
        ),
        Parameter::number(
            "bhigh",
            "B1",
            "",
            0.1,
            Range::above(0.0, 0.5),
            "fraction of the window given up at W1",
        ),
        START,
        PACING,
    ],
    build: Build::Window(|v| HighSpeed::new((v[0], v[2]), (v[1], v[3]), v[4]).into()),
};

pub(super) const BIC: Algorithm = Algorithm {
    name: "bic",
    title: "BIC, binary increase",
    summary: "Searches for the window of the last loss by halves, then probes beyond it.",
    source: "Xu, Harfoush and Rhee, INFOCOM 2004",
    equations: &[
        "each ACK, w < max: w <- w + s / w, s = (max + w) / 2 - w, at least smin, at most smax",
        "each ACK, w >= max: w <- w + s / w, s = 1, doubled each time w has grown by it, at most smax",
        "at a loss: max <- w, or (2 - beta) w / 2 if w < max (fast convergence); w <- w - beta w",
        "below `low`: w <- w + 1 / w and w <- w / 2, as Reno",
    ],
    deviations: &[
        "the least increment applies at each ACK, where the paper ends its search",
        "fast convergence compares with the last maximum in the probe beyond it too, as Linux does",
    ],
    parameters: &[
        packets("smax", "Smax", 32.0, Range::closed(1.0, 1000.0), "most packets gained each RTT"),
        packets("smin", "Smin", 0.01, Range::above(0.0, 1.0), "least packets gained each RTT"),
        beta(0.125),
        packets("low", "low", 14.0, Range::closed(1.0, 1000.0), "window below which it is Reno"),
        START,
        PACING,
    ],
    build: Build::Window(|v| {
        Bic::new(BicParameters { smax: v[0], smin: v[1], beta: v[2], low: v[3] }).into()
    }),
};

pub(super) const CUBIC: Algorithm = Algorithm {
    name: "cubic",
    title: "CUBIC",
    summary: "A cubic function of the time since the last loss, Reno where that is faster.",
    source: "RFC 9438",
    equations: &[
        "W(t) = C (t - K)^3 + w_max, K = cbrt((w_max - w0) / C), t in seconds since w was w0",
        "W_est <- W_est + alpha acked / w, alpha = 3 (1 - kept) / (1 + kept), 1 from w_prior",
        "each ACK: w <- W_est, if W(t) < W_est; else w <- w + (target - w) / w",
        "target = W(t + RTT), at least w, at most 3/2 w",
        "at a loss: w_prior <- w; w_max <- w, or (1 + kept) w / 2 if w < w_max; w <- kept w",
        "threshold: ssthresh <- kept w, at a loss, in slow start and after a timeout",
    ],
    deviations: &[
        "`kept` is of the window, not of what is in flight",
        "a mark leaves two packets at least, where the RFC allows one",
    ],
    parameters: &[
        Parameter::number("c", "C", "packets/s^3", 0.4, Range::closed(0.001, 100.0), "growth"),
        Parameter::number(
            "kept",
            "β",
            "",
            0.7,
            Range::open(0.0, 1.0),
            "fraction of the window kept at a loss",
        ),
        Parameter::switch("fast", true, "fast convergence"),
        START,
        PACING,
    ],
    build: Build::Window(|v| Cubic::new(v[0], v[1], v[2] != 0.0).into()),
};

pub(super) const VEGAS: Algorithm = Algorithm {
    name: "vegas",
    title: "TCP Vegas",
    summary: "Keeps a few packets in the queues, by the round-trip time.",
    source: "Brakmo and Peterson, IEEE JSAC 13(8), 1995",
    equations: &[
        "each round-trip time: diff = w (1 - base / rtt), packets in the queues",
        "w <- w + 1 if diff < alpha; w <- w - 1 if diff > beta",
        "slow start: ends when diff > gamma",
        "at a loss: w <- w / 2",
    ],
    deviations: &[
        "slow start doubles the window every round-trip time, Vegas every other",
        "losses are found and answered as Reno does, without the cut by 1/4",
        "rtt is the smallest of its round",
    ],
    parameters: &[
        packets("alpha", "α", 2.0, Range::above(0.0, 1000.0), "least packets to keep queued"),
        packets("beta", "β", 4.0, Range::above(0.0, 1000.0), "most packets to keep queued"),
        packets("gamma", "γ", 1.0, Range::above(0.0, 1000.0), "packets queued that end slow start"),
        START,
        PACING,
    ],
    build: Build::Window(|v| Vegas::new(v[0], v[1], v[2]).into()),
};
