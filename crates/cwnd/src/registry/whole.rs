//! The whole controllers, in the order of [`algorithms`](super::algorithms).

use super::{Algorithm, Build, Parameter, Range};
use alloc::boxed::Box;

pub(super) const LEDBAT: Algorithm = Algorithm {
    name: "ledbat",
    title: "LEDBAT and LEDBAT++, background transport",
    summary: "Yields to other flows: holds the queueing delay at a target, and decreases above it.",
    source: "RFC 6817, draft-irtf-iccrg-ledbat-plus-plus-01",
    equations: &[
        "queueing delay: q = min(current delays) - min(base delays)",
        "base delays: the least delay of each of the last 10 minutes",
        "current delays: the last 4 samples, of one RTT at most",
        "each ACK: w <- w + gain (1 - q / target) / w",
        "each ACK: w <- min(w, flight + 1)",
        "at a loss: w <- max(w / 2, 2)",
        "plus: G = gain / min(16, ceil(2 target / base))",
        "plus, slow start, each ACK: w <- w + G",
        "plus, first slow start: ends when q > 3/4 target",
        "plus, q <= target, each RTT: w <- w + G",
        "plus, q > target, each RTT: w <- w + max(G - w (q / target - 1), -w / 2)",
        "plus, slowdown: ssthresh <- w, w <- 2 for 2 RTT, then slow start to ssthresh",
        "plus: the first slowdown 2 RTT after slow start, the next one 9 durations after the last",
    ],
    deviations: &[
        "A delay is one-way where acknowledgements have the receiver's timestamps, and else the round-trip time, which includes queues on the way back and delayed acknowledgements.",
        "The window does not change during loss recovery, nor on an acknowledgement with ECN-Echo.",
        "One acknowledgement decreases the window by at most a half.",
        "A mark is answered as a loss; the sources have no rule.",
        "A timeout of LEDBAT++ restarts slow start, with half of the window as threshold.",
        "The ramp after a slowdown is the slow start of LEDBAT++ with the gain G, without the exit on delay.",
    ],
    parameters: &[
        Parameter::switch("plus", false, "whether it is LEDBAT++"),
        Parameter::number(
            "target",
            "target",
            "ms",
            0.0,
            Range::closed(0.0, 1000.0),
            "target queueing delay; 0: 100 ms, LEDBAT++ 60 ms",
        ),
        Parameter::number(
            "gain",
            "gain",
            "",
            1.0,
            Range::above(0.0, 1.0),
            "window growth over that of TCP at an empty queue",
        ),
    ],
    build: Build::Whole(|v, settings| {
        Box::new(crate::controllers::Ledbat::new(v[0] != 0.0, v[1], v[2], settings))
    }),
};
