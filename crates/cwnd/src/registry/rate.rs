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
    summary: "Increases its rate by less, the closer the rate is to the link capacity.",
    source: "Gu, Hong and Grossman, An analysis of AIMD algorithm with decreasing increases",
    equations: &[
        "each SYN with ACKs and no loss: x <- x + 10^(ceil(log10(L - C(x))) - tau) * 1500/S * \
         1/SYN",
        "at each negative feedback: x <- (1 - beta) x",
        "delay = on: a rising round-trip time is a negative feedback",
        "feedback = event: each congestion event",
        "feedback = packet: each lost packet: x <- (1 - beta)^n x for n of them",
        "feedback = syn: the first loss report in a SYN",
        "feedback = report: each loss report",
        "flow window, at each report: W <- lambda W + (1 - lambda) AS (SYN + RTT)",
    ],
    deviations: &[
        "Eq. 2, Eq. 3 and Eq. 4 define negative feedback differently: `feedback` selects the \
         definition.",
        "The paper's tables are UDT's, which also reduces the rate within a congestion event, at \
         growing intervals or at random.",
        "The paper does not print when the delay increases: the rule is Pathload's, as in UDT's \
         libraries of 2003. Eq. 3 and Eq. 4 count lost packets only: `delay=off`.",
        "A timeout is one negative feedback, of one packet. The marks (RFC 3168) of a congestion \
         event are one negative feedback, also with `packet` and `report`.",
        "Where L <= C(x), Eq. 8 has no logarithm: the increase is its limit 0, and 0 also before \
         the first estimate of L.",
        "The paper does not print lambda: 7/8 is that of UDT's library of February 2004.",
        "The paper does not describe slow start: it ends at the arrival rate, or at w / (RTT + \
         SYN) without one.",
        "The flow window is at least 16 packets, and the rate at least 1 packet/s.",
    ],
    parameters: &[
        Parameter::number(
            "tau",
            "τ",
            "",
            9.0,
            Range::closed(3.0, 15.0),
            "protocol parameter: powers of ten by which the increase is below L - C(x)",
        ),
        Parameter::fraction(
            "beta",
            "β",
            1.0 / 9.0,
            "reduction at a negative feedback as a fraction of the rate",
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
            "weight of the old window in the moving average; 1: no flow window",
        ),
        Parameter::choice(
            "feedback",
            &["event", "packet", "syn", "report"],
            Some(0),
            "one reduction for each congestion event, lost packet (Eq. 3), SYN with losses (Eq. 4) or loss report",
        ),
        Parameter::switch(
            "delay",
            true,
            "whether a rising round-trip time is a negative feedback too",
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
    equations: &[
        "report, SYN after the last: x <- x + inc / SYN, unless a loss report came since",
        "inc = max(10^ceil(log10(8 S B)) * 1.5e-6 / S, least), in packets; least where B <= 0",
        "B = L - x; at most L / 9 while x is below its value before the last decrease",
        "loss report of a new congestion period: x <- x / 1.125, d drawn from 1..average reports \
         a period",
        "its next four loss reports: x <- x / 1.125 at each d-th of the period",
        "flow window: W = A (RTT + SYN) + 16",
        "slow start: ends at x = A, or w / (RTT + SYN) without A",
    ],
    deviations: &[
        "Slow start without an arrival rate ends at the rate w / (RTT + SYN), to which UDT 4.11 \
         sets the period.",
        "UDT 4.11 rounds periods up to microseconds and averages from 1 packet/s, not from the \
         first report.",
        "UDT 4.11 draws d from the C library's generator, seeded with the sequence number.",
        "The draft allows five decreases after the first and counts decreases; as in UDT 4.11 the \
         first five reports count.",
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
    summary: "Sends at the rate of TCP's throughput equation for the measured loss event rate.",
    source: "Floyd, Handley, Padhye and Widmer, RFC 5348",
    equations: &[
        "loss event rate p > 0: X <- max(min(X_eq, recv_limit), s/t_mbi)",
        "X_eq = 1 / (R (sqrt(2p/3) + 12 sqrt(3p/8) p (1 + 32p^2))), b = 1, t_RTO = 4R",
        "recv_limit = 2 max(X_recv_set), X_recv of the last 2R",
        "no loss yet: X <- max(min(2X, recv_limit), W_init/R), once each R",
        "without feedback for RTO = max(4R, 2/X): X <- X/2 before a loss, else X <- min(X_eq/2, \
         X_recv)",
        "p = 1 / max(weighted mean of I_1..I_8, weighted mean of I_0..I_7)",
        "weights: 1, 1, 1, 1, 0.8, 0.6, 0.4, 0.2",
        "loss event: the losses within R of its first one",
        "all but I_0 count DF = max(2 mean/I_0, 1/4) where I_0 > 2 mean",
        "the interval before the first loss event: 1/p of X_eq = max X_recv",
        "R <- 0.9 R + 0.1 sample, once each R",
    ],
    deviations: &[
        "The sender keeps the loss history, from the losses that its driver reports, and answers \
         every new loss event at once, as it would the receiver's expedited feedback (section \
         6.2).",
        "The length of a loss interval is the number of packets sent between the reports of its \
         losses.",
        "A gap is a loss at once, without three packets after it: packets are not reordered.",
        "X_recv is the receiver's estimate over 16 arrivals, not over a round trip. Before the \
         first one it does not limit the rate, and half of X replaces it in section 6.3.1.",
        "Lost packets are retransmitted within X.",
        "The nofeedback timer is the sender's retransmission timer, which expires after at least \
         300 ms; the packets that it declares lost are losses, which the RFC's receiver finds when the \
         path works again.",
        "Data-limited intervals and idle periods have no rules of their own.",
        "The optional reduction of oscillations (section 4.5) is not implemented.",
    ],
    parameters: &[],
    build: Build::Rate(|_, _| Tfrc::new().into()),
};
