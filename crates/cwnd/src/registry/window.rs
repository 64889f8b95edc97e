//! The entries of the window laws.

use super::{Algorithm, Build, Parameter, Range};
use crate::laws::{
    Aiad, Aimd, Aira, AiraParameters, AiraPeak, Bic, BicParameters, Binomial, Cubic, Dctcp,
    HighSpeed, Prague, RateClock, RateFilter, Scalable, Simd, SimdReset, Vegas,
};
use crate::units::Dur;

/// The parameters of the machine, which every window law has.
const START: Parameter = Parameter::choice(
    "start",
    &["standard", "hystart", "hystart-train", "hystart-linux"],
    None,
    "slow start: RFC 5681, HyStart++ (RFC 9406), HyStart++ with acknowledgement trains, or HyStart of Linux's CUBIC",
);
const PACING: Parameter = pacing(0.0);

/// The pacing rate, 0 for that of the driver.
const fn pacing(default: f64) -> Parameter {
    Parameter::number(
        "pacing",
        "pacing",
        "",
        default,
        Range::closed(0.0, 100.0),
        "pacing rate over window / smoothed round-trip time; 0: the driver's",
    )
}

/// The reduction at a loss as a fraction of the window.
const fn beta(default: f64) -> Parameter {
    Parameter::fraction("beta", "β", default, "reduction at a loss as a fraction of the window")
}

/// What remains at a loss.
const fn kept(default: f64) -> Parameter {
    Parameter::fraction("kept", "β", default, "window after a loss over that before it")
}

/// The gain of DCTCP's estimate.
const GAIN: Parameter =
    Parameter::fraction("g", "g", 1.0 / 16.0, "gain of the estimate of the marked fraction");

/// The growth of the window.
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
        "The paper's beta is `kept`: in all other laws `beta` is a reduction.",
    ],
    parameters: &[
        alpha(0.31, EACH_ROUND),
        kept(0.875),
        Parameter::choice(
            "threshold",
            &["half", "kept"],
            Some(0),
            "threshold after a timeout: half of the window, or `kept` times it",
        ),
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
        Parameter::switch("timeouts", false, "whether α accounts for TCP's timeouts"),
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
    deviations: &[HALVES, BYTES],
    parameters: &[
        Parameter::number("k", "k", "", 1.0, Range::closed(0.0, 4.0), "power of the increase"),
        Parameter::number("l", "l", "", 0.0, Range::closed(0.0, 1.0), "power of the decrease"),
        alpha(1.0, "growth in each round-trip time at a window of 1"),
        Parameter::number(
            "beta",
            "β",
            "packets",
            2.0 / 3.0,
            Range::open(0.0, 1.0),
            "reduction at a loss at a window of 1",
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
    deviations: &[HALVES, BYTES],
    parameters: &[START, PACING],
    build: Build::Window(|_| Binomial::iiad().into()),
};

pub(super) const SQRT: Algorithm = Algorithm {
    name: "sqrt",
    title: "SQRT: binomial(1/2, 1/2, 1, 2/3)",
    summary: "Increases and decreases by the square root of the window.",
    source: BANSAL,
    equations: BINOMIAL_EQUATIONS,
    deviations: &[
        HALVES,
        BYTES,
        "alpha and beta of SQRT follow the TCP-friendly relation alpha = 3 beta / 2, as those of \
         IIAD do.",
    ],
    parameters: &[START, PACING],
    build: Build::Window(|_| Binomial::sqrt().into()),
};

pub(super) const SIMD: Algorithm = Algorithm {
    name: "simd",
    title: "SIMD(β), square increase, multiplicative decrease",
    summary: "Grows with the square of the time since the last loss, TCP-friendly.",
    source: "Jin, Guo, Matta and Bestavros, TCP-friendly SIMD congestion control, BU-CS-2001-006",
    equations: &[
        "each round-trip time: w <- w + alpha sqrt(w - w0)",
        "each ACK: w <- w + alpha sqrt(w - w0) / w",
        "the first ACK: w <- w0 + alpha^2 / (4 w0)",
        "alpha = 3 sqrt(beta) / ((1 - 2 beta / 3) sqrt(2 w_max))",
        "at a loss: w_max <- w, w <- w - beta w, w0 <- w",
        "at a timeout: w_max <- w, w0 <- 1",
        "so that w(t) = w0 + alpha^2 t^2 / 4, t in round-trip times",
    ],
    deviations: &[
        HALVES,
        "After a loss in slow start w0 is at most half of w_max. Eq. 3 has w0 = (1 - beta) w_max.",
        "Where slow start ends without a loss, w0 = w and w_max = w0 / (1 - beta).",
        BYTES,
    ],
    parameters: &[
        beta(0.0625),
        Parameter::choice(
            "reset",
            &["decrease", "avoidance"],
            Some(0),
            "what sets w0 after a timeout: the decrease to one packet (appendix B), or the window \
             at which congestion avoidance begins",
        ),
        START,
        PACING,
    ],
    build: Build::Window(|v| {
        let reset = if v[1] == 0.0 { SimdReset::Decrease } else { SimdReset::Avoidance };
        Simd::new(v[0], reset).into()
    }),
};

pub(super) const AIRA: Algorithm = Algorithm {
    name: "aira",
    title: "AIRA, the additive increase rate accelerator",
    summary: "AIMD whose additive increase follows the change of the loss rate between rounds.",
    source: "Psaras and Tsaoussidis, On the properties of an additive increase rate accelerator",
    equations: &[
        "each ACK: w <- w + a / w",
        "at a loss: w <- w - beta w",
        "after round i: p_i = lost / sent, p_0 = 0",
        "decrease, if p_i > p_(i-1): a <- a (1 - p_i)",
        "increase, if p_i < p_(i-1): a <- a (1 + p_(i-1) - p_i)",
        "bound: a >= 0.1",
        "MAIL: a >= 1 - 0.9 R_N / 100, R_N rounds completed",
        "reset: a <- 1 once w reaches 3/2 W, W its value at the last loss",
    ],
    deviations: &[
        HALVES,
        "a never exceeds 1, which section 6.3 calls the fastest.",
        "The 0.9 of Eq. 23 is 1 - bound.",
        "A timeout ends no round (see `timeout`).",
        "A timeout does not change W.",
        BYTES,
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
            "rounds in which MAIL falls to the bound",
        ),
        Parameter::number(
            "ratio",
            "W/W_max",
            "",
            1.5,
            Range::above(1.0, 10.0),
            "window over W at which a is reset",
        ),
        Parameter::choice(
            "timeout",
            &["continues", "ends"],
            Some(0),
            "effect of a timeout on the current round",
        ),
        Parameter::choice(
            "peak",
            &["last", "mean", "largest"],
            Some(0),
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
const TAU: Parameter = Parameter::number(
    "tau",
    "τ",
    "s",
    0.5,
    Range::closed(0.001, 100.0),
    "1/τ is the cut-off frequency of the rate's filter",
);

const FILTER: Parameter = Parameter::choice(
    "filter",
    &["interval", "fixed"],
    Some(0),
    "gains that follow the interval of the sample, or fixed ones",
);

/// The filter of a value of [`FILTER`].
fn filter(value: f64) -> RateFilter {
    if value == 0.0 { RateFilter::Interval } else { RateFilter::Fixed }
}

const AIAD_EQUATIONS: &[&str] = &[
    "each ACK: w <- w + 1 / w",
    "at a loss: w <- r d, at most w, at least 2",
    "threshold: ssthresh <- r d, at least 2, at a loss, in slow start and after a timeout",
    "sample k: b_k = packets acknowledged in D_k / D_k, D_k = t_k - t_(k-1)",
    "filter: r <- ((2 tau / D_k - 1) r + b_k + b_(k-1)) / (2 tau / D_k + 1)",
    "filter=fixed: r <- (19 r + b_k + b_(k-1)) / 21",
    "no sample for tau / 2: a sample of 0 with D = tau / 2",
];
const AIAD_DEVIATIONS: &[&str] = &[
    "Eq. 1 has no bounds: here a loss does not increase the window, and r d counts as at \
     least 2 packets.",
    "Samples at one instant of their clock are combined.",
    "The remainder of a gap shorter than tau / 50 after its samples of 0 is added to the last \
     of them, as in the ns-2 code of TCP Westwood (10 ms there).",
    "The estimate starts at 0, as in that code. Without an estimate or a round-trip time a \
     loss halves the window.",
    "That code divides the threshold of a timeout in slow start by a factor of 1 to 4, which \
     grows with each timeout; the letter does not, and neither does this law.",
    BYTES,
];

pub(super) const AIAD: Algorithm = Algorithm {
    name: "aiad",
    title: "AIAD, additive increase, adaptive decrease",
    summary: "Grows by a packet in each round-trip time; a loss reduces the window to the estimated rate.",
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
    equations: AIAD_EQUATIONS,
    deviations: AIAD_DEVIATIONS,
    parameters: &[TAU, FILTER, START, PACING],
    build: Build::Window(|v| Aiad::new(RateClock::Ack, filter(v[1]), Dur::from_secs(v[0])).into()),
};

pub(super) const SCALABLE: Algorithm = Algorithm {
    name: "scalable",
    title: "Scalable TCP",
    summary: "Grows by a constant at each ACK: recovery takes the same time at any window.",
    source: "Kelly, ACM SIGCOMM Computer Communication Review 33(2), 2003",
    equations: &[
        "each ACK: w <- w + a",
        "at a loss: w <- w - b w",
        "up to `low`: w <- w + 1 / w and w <- w / 2, as Reno",
    ],
    deviations: &[HALVES, BYTES],
    parameters: &[
        packets("a", "a", 0.01, Range::above(0.0, 1.0), "growth at each ACK"),
        Parameter::fraction("b", "b", 0.125, "reduction at a loss as a fraction of the window"),
        packets("low", "lwnd", 16.0, Range::closed(1.0, 1e6), "window up to which the law is Reno"),
        START,
        PACING,
    ],
    build: Build::Window(|v| Scalable::new(v[0], v[1], v[2]).into()),
};

pub(super) const HIGHSPEED: Algorithm = Algorithm {
    name: "highspeed",
    title: "HighSpeed TCP",
    summary: "Reno whose increase and decrease depend on the window beyond 38 packets.",
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
        HALVES,
        "a(w) is recomputed when the window has changed by a packet, not at each ACK.",
        "Beyond W1, where the RFC has no rule, b stays B1 and a follows its equation.",
        BYTES,
    ],
    parameters: &[
        packets("low", "W", 38.0, Range::closed(1.0, 1000.0), "window up to which the law is Reno"),
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
            "reduction at W1 as a fraction of the window",
        ),
        START,
        PACING,
    ],
    build: Build::Window(|v| HighSpeed::new((v[0], v[2]), (v[1], v[3]), v[4]).into()),
};

pub(super) const BIC: Algorithm = Algorithm {
    name: "bic",
    title: "BIC, binary increase",
    summary: "Binary search for the window of the last loss, then a probe beyond it.",
    source: "Xu, Harfoush and Rhee, INFOCOM 2004",
    equations: &[
        "each ACK, w < max: w <- w + s / w, s = (max + w) / 2 - w, at least smin, at most smax",
        "each ACK, w >= max: w <- w + s / w, s = 1, doubled each time w has grown by it, at most \
         smax",
        "at a loss: max <- w, or (2 - beta) w / 2 if w < max (fast convergence); w <- w - beta w",
        "below `low`: w <- w + 1 / w and w <- w / 2, as Reno",
    ],
    deviations: &[
        HALVES,
        "The least increment applies at each ACK; the paper ends its binary search when a step \
         falls below it.",
        "Before the first loss the maximum is infinite: the window grows by smax.",
        "Fast convergence compares with the last maximum in the probe beyond it too, as Linux \
         does; the paper's code resets it there.",
        BYTES,
    ],
    parameters: &[
        packets("smax", "Smax", 32.0, Range::closed(1.0, 1000.0), "largest growth in an RTT"),
        packets("smin", "Smin", 0.01, Range::above(0.0, 1.0), "smallest growth in an RTT"),
        beta(0.125),
        packets(
            "low",
            "low",
            14.0,
            Range::closed(1.0, 1000.0),
            "window below which the law is Reno",
        ),
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
    summary: "A cubic function of the time since the last loss, Reno where Reno is faster.",
    source: "RFC 9438",
    equations: &[
        "W(t) = C (t - K)^3 + w_max, K = cbrt((w_max - w0) / C), t in seconds since w was w0",
        "W_est <- W_est + alpha n / w for n acknowledged packets",
        "alpha = 3 (1 - kept) / (1 + kept), 1 from W_est = w_prior on",
        "each ACK: w <- W_est, if W(t) < W_est; else w <- w + n (target - w) / w",
        "target = W(t + RTT), at least w, at most 3/2 w",
        "at a loss: w_prior <- w; w_max <- w, or (1 + kept) w / 2 if w < w_max; w <- kept w",
        "threshold: ssthresh <- kept w, at a loss, in slow start and after a timeout",
        "avoidance begins: w0 <- w, W_est <- w",
        "avoidance begins after a timeout or without a loss: w_max <- w",
        "avoidance begins before the first loss: w_prior <- w",
    ],
    deviations: &[
        "`kept` is a factor of the window, not of flight_size (section 4.6 allows it where an \
         unused window does not grow).",
        "Under conventions whose unused window grows (ns-2's), the condition of section 4.6 does \
         not hold, and t does not advance although the window grows (section 4.2).",
        "t includes an idle period that the sender ends with a full window: the acknowledgement \
         after it reports the limit of that window (section 4.2: t MUST NOT include it).",
        "The window grows by (target - w) / w for each acknowledged packet, at most to the \
         target, where sections 4.4 and 4.5 count ACKs: an event may stand for several ACKs, and \
         the growth does not depend on the receiver's ACK ratio.",
        "The packets of Eq. 4 are those that the driver credits: one for each ACK without byte \
         counting (RFC 3465).",
        "W_est does not reduce the window (section 4.3: the window SHOULD be W_est where W(t) is \
         less).",
        "A loss does not raise a window of less than two packets to two (section 4.6).",
        "Marks at a window of one packet do not reduce the rate further (section 4.6 requires it, \
         for instance by the retransmission timer of RFC 3168 section 6.1.2).",
        "Congestion avoidance begins at w = ssthresh, as RFC 5681 allows; section 4.10 begins it \
         above.",
        "HyStart++, which section 4.10 recommends, is `start=hystart`; the default is the \
         driver's.",
        "A spurious loss restores the threshold also where the window has grown past its old \
         value (section 4.9.2 restores nothing then).",
        "Fast convergence counts a timeout as a congestion event.",
        "Under Linux's conventions the law is that of tcp_cubic.c, in whole packets and jiffies of \
         4 ms, with an exact cube root. An undo does not restore its state.",
        "Persistent congestion (RFC 9002), which the RFC does not mention, is like a timeout but \
         leaves the threshold and w_prior.",
    ],
    parameters: &[
        Parameter::number(
            "c",
            "C",
            "packets/s^3",
            0.4,
            Range::closed(0.001, 100.0),
            "aggressiveness of the growth",
        ),
        kept(0.7),
        Parameter::switch("fast", true, "fast convergence"),
        START,
        PACING,
    ],
    build: Build::Window(|v| Cubic::new(v[0], v[1], v[2] != 0.0).into()),
};

pub(super) const VEGAS: Algorithm = Algorithm {
    name: "vegas",
    title: "TCP Vegas",
    summary: "Holds a few packets in the queues, measured by the round-trip time.",
    source: "Brakmo and Peterson, IEEE JSAC 13(8), 1995",
    equations: &[
        "each round-trip time: diff = w (1 - base / rtt), packets in the queues",
        "w <- w + 1 if diff < alpha; w <- w - 1 if diff > beta",
        "slow start: ends when diff > gamma",
        "at a loss: w <- w / 2",
    ],
    deviations: &[
        "Slow start doubles the window every round-trip time, Vegas every other.",
        "Losses are detected and answered as in Reno, without the fine-grained timers of Vegas \
         and its reduction by 1/4; the slow-start threshold is half of the window.",
        "rtt is the smallest sample of its round, against delayed acknowledgements.",
        "The window does not decrease below two packets.",
        "The handshake gives no base: Linux begins it anew after the handshake (tcp_vegas_init), and also \
         where it sends with nothing in flight (CA_EVENT_TX_START), which is not done here.",
    ],
    parameters: &[
        packets("alpha", "α", 2.0, Range::above(0.0, 1000.0), "least packets in the queues"),
        packets("beta", "β", 4.0, Range::above(0.0, 1000.0), "most packets in the queues"),
        packets(
            "gamma",
            "γ",
            1.0,
            Range::above(0.0, 1000.0),
            "packets in the queues that end slow start",
        ),
        START,
        PACING,
    ],
    build: Build::Window(|v| Vegas::new(v[0], v[1], v[2]).into()),
};

pub(super) const DCTCP: Algorithm = Algorithm {
    name: "dctcp",
    title: "Data Center TCP",
    summary: "Reduces the window by the fraction of marked packets.",
    source: "RFC 8257",
    equations: &[
        "each ACK: w <- w + (acknowledged - marked) / w",
        "each window of data: M = marked / acknowledged",
        "alpha <- (1 - g) alpha + g M",
        "at a mark: w <- w (1 - alpha / 2)",
        "at a loss: w <- w / 2",
    ],
    deviations: &[
        "Packets count instead of bytes, and packets acknowledged selectively count too.",
        "Without accurate ECN feedback each packet of an acknowledgement with ECN-Echo counts as marked. Only the receiver of section 3.2 makes this exact; the echo of RFC 3168 lasts a round-trip time, and the window does not grow on it.",
        "A window of data ends when a packet sent afterwards is acknowledged, selectively too. The acknowledgement of the SYN ends one without marks, so that alpha is 15/16 at the first data.",
        "A mark in slow start ends it with the reduction by alpha / 2, not by a half.",
        "A mark may leave a window of one packet, which the next ones do not reduce; RFC 3168 section 6.1.2 has a timer for it, and Linux keeps two packets.",
        "A loss of a packet sent before the reduction at a mark does not reduce the window again.",
        "A spurious reduction restores alpha and its counters too, except with the conventions of Linux.",
    ],
    parameters: &[GAIN, START, PACING],
    build: Build::Window(|v| Dctcp::new(v[0]).into()),
};

pub(super) const PRAGUE: Algorithm = Algorithm {
    name: "prague",
    title: "Prague, DCTCP for L4S",
    summary: "Reduces the window by the fraction of marked packets, independently of short round-trip times.",
    source: "draft-briscoe-iccrg-prague-congestion-control, L4STeam/linux 02573a2",
    equations: &[
        "each ACK: w <- w + f (acknowledged - marked) / w",
        "f = min(1, rtt / rtt_virt)^2 after transition rounds, else 1",
        "each max(rtt, rtt_virt) from the first mark on: M = marked / acknowledged",
        "alpha <- (1 - g) alpha + g M",
        "at a mark: w <- w (1 - alpha / 2)",
        "at most one reduction in max(rtt, rtt_virt)",
        "at a loss: w <- w / 2",
    ],
    deviations: &[
        "A mark in less than rtt_virt after a reduction is ignored, as in the draft; in the implementation it begins another round without reductions.",
        "The window is real-valued; the implementation changes it by at most a packet at each acknowledgement.",
        "Below half of the slow-start threshold the implementation paces at twice the rate; here the driver's factor decides.",
        "Without accurate ECN feedback the implementation becomes Reno; here each packet of an acknowledgement with ECN-Echo counts as marked.",
        "A loss of a packet sent before the reduction at a mark does not reduce the window again.",
        "Slow start grows on marked packets too; the first mark ends it.",
        "The least window after a mark is two packets.",
        "A spurious reduction restores alpha and its counters too, except with the conventions of Linux.",
        "The detection of classic ECN queues, which is off by default, is not implemented.",
    ],
    parameters: &[
        GAIN,
        Parameter::number(
            "rtt_virt",
            "rtt_virt",
            "s",
            0.025,
            Range::closed(0.0, 1.0),
            "least round-trip time that the flow behaves as if it had; 0 for none",
        ),
        Parameter::number(
            "transition",
            "transition",
            "",
            500.0,
            Range::closed(0.0, 1e6),
            "rounds of congestion avoidance before rtt_virt applies",
        ),
        START,
        pacing(1.0),
    ],
    build: Build::Window(|v| Prague::new(v[0], Dur::from_secs(v[1]), v[2] as u32).into()),
};
