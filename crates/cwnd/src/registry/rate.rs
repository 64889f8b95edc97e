//! The entries of the rate laws.

use super::{Algorithm, Build, Parameter, Range};
use crate::laws::{Daimd, DaimdParameters, Feedback, Tfrc, Udt};
use crate::units::Dur;

/// The control interval: UDT's SYN.
const SYN: Parameter =
    Parameter::number("syn", "SYN", "s", 0.01, Range::closed(1e-4, 10.0), "the control interval");

pub(super) const DAIMD: Algorithm = Algorithm {
    name: "daimd",
    title: "DAIMD, AIMD with decreasing increases",
    summary: "Raises its rate the less, the nearer it is to the link's capacity.",
    source: "Gu, Hong and Grossman, An analysis of AIMD algorithm with decreasing increases",
    equations: &[
        "each SYN with ACKs and no loss: x <- x + 10^(ceil(log10(L - C(x))) - tau) * 1500/S * 1/SYN",
        "at each negative feedback: x <- (1 - beta) x",
        "feedback = event: each congestion event",
        "feedback = packet: each lost packet: x <- (1 - beta)^n x for n of them",
        "feedback = syn: the first loss report in a SYN",
        "feedback = report: each loss report",
        "flow window, at each report: W <- lambda W + (1 - lambda) AS (SYN + RTT)",
    ],
    deviations: &[
        "no increase where L <= C(x), the limit of Eq. 8, and before the first estimate of L",
        "the paper does not print lambda: 7/8",
        "slow start ends at the arrival rate, or at w / (RTT + SYN) without one",
        "a timeout is one negative feedback, and so are the marks of a congestion event",
        "\"any negative feedback\" (Eq. 2), Eq. 3 and Eq. 4 differ: see feedback",
        "the paper's tables are UDT's, which also cuts in a congestion event at random spacing",
    ],
    parameters: &[
        Parameter::number(
            "tau",
            "τ",
            "",
            9.0,
            Range::closed(3.0, 15.0),
            "protocol parameter: how many powers of ten below L - C(x) the increase is",
        ),
        Parameter::number(
            "beta",
            "β",
            "",
            1.0 / 9.0,
            Range::open(0.0, 1.0),
            "fraction of the rate given up at a negative feedback",
        ),
        SYN,
        Parameter::number(
            "capacity",
            "L",
            "bit/s",
            0.0,
            Range::closed(0.0, 1e15),
            "the link capacity; 0 takes the receiver's estimate",
        ),
        Parameter::number(
            "lambda",
            "λ",
            "",
            0.875,
            Range::closed(0.0, 1.0),
            "gain of the flow window's moving average; 1 turns the flow window off",
        ),
        Parameter::choice(
            "feedback",
            &["event", "packet", "syn", "report"],
            Some(0),
            "one cut for each congestion event, lost packet (Eq. 3), SYN with losses (Eq. 4) or loss report",
        ),
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
        })
        .into()
    }),
};

pub(super) const UDT: Algorithm = Algorithm {
    name: "udt",
    title: "UDT version 4",
    summary: "UDT's own rate control: DAIMD with a least increase and randomised repeat decreases.",
    source: "Gu, draft-gg-udt-03 section 6, and UDT 4.11",
    equations: &[
        "report, SYN after the last: x <- x + inc / SYN, unless a loss report came since",
        "inc = max(10^ceil(log10(8 S B)) * 1.5e-6 / S, least)",
        "B = L - x; at most L / 9 while x is below its value before the last decrease",
        "loss report of a new congestion period: x <- x / 1.125, d drawn from 1..average reports a period",
        "its next four loss reports: x <- x / 1.125 at each d-th of the period",
        "flow window: W = A (RTT + SYN) + 16",
    ],
    deviations: &[
        "UDT 4.11 inverts the period where slow start ends without an arrival rate",
        "UDT 4.11 rounds periods up to microseconds and averages from 1 packet/s",
        "UDT 4.11 draws from the C library's generator, seeded with the sequence number",
        "the draft allows five decreases after the first and counts decreases, not reports",
    ],
    parameters: &[
        SYN,
        Parameter::number(
            "least",
            "1/S",
            "packets",
            0.01,
            Range::above(0.0, 100.0),
            "least increase in each control interval",
        ),
    ],
    build: Build::Rate(|v, seed| Udt::new(Dur::from_secs(v[0]), v[1], seed).into()),
};

pub(super) const TFRC: Algorithm = Algorithm {
    name: "tfrc",
    title: "TFRC, TCP-friendly rate control",
    summary: "Sends at the rate that TCP's throughput equation gives for the loss event rate it measures.",
    source: "Floyd, Handley, Padhye and Widmer, RFC 5348",
    equations: &[
        "loss event rate p > 0: X <- max(min(X_eq, recv_limit), s/t_mbi)",
        "X_eq = 1 / (R (sqrt(2p/3) + 12 sqrt(3p/8) p (1 + 32p^2)))",
        "recv_limit = 2 max(X_recv_set)",
        "no loss yet: X <- max(min(2X, recv_limit), W_init/R), once each R",
        "without feedback: X <- X/2 before a loss, else X <- min(X_eq/2, X_recv)",
        "loss events: p = 1 / max(weighted mean of I_1..I_8, weighted mean of I_0..I_7)",
        "all but I_0 count DF = max(2 mean/I_0, 1/4) where I_0 > 2 mean",
        "R <- 0.9 R + 0.1 sample, once each R",
    ],
    deviations: &[
        "the sender keeps the loss history: intervals are counted between the reports of their losses",
        "a gap is a loss at once, and every new loss event is acted on at once",
        "X_recv is the receiver's estimate over 16 arrivals, not over a round trip",
        "lost packets are sent again, inside the rate",
        "the nofeedback timer expires at the earliest after 300 ms; the least rate is 1 packet/s",
        "no rules for data-limited and idle senders, no steps against oscillations (4.5, optional)",
    ],
    parameters: &[],
    build: Build::Rate(|_, _| Tfrc::new().into()),
};
