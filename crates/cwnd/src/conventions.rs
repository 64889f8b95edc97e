//! The rules around a window law in which stacks differ, as one policy that the driver passes in.

use crate::law::Signal;

/// The smallest slow-start threshold in packets (RFC 5681 equation 4).
const MIN_THRESHOLD: f64 = 2.0;
/// The smallest window after a mark in packets (RFC 9438 section 4.6, RFC 3168 section 6.1.2).
const MIN_MARKED_WINDOW: f64 = 1.0;

/// A reduction to decide on. Windows are in packets.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Decision {
    /// The signal.
    pub why: Signal,
    /// The window before it.
    pub window: f64,
    /// The slow-start threshold before it.
    pub threshold: f64,
    /// The window after it by the law, at most `window`.
    pub cut: f64,
    /// The slow-start threshold after it by the law, if the law has a rule for it.
    pub law_threshold: Option<f64>,
    /// Whether the sender was in slow start.
    pub slow_start: bool,
    /// Whether this is the first reduction of the connection.
    pub first: bool,
    /// Whether the previous reduction answered a mark and no loss has been reported since.
    pub after_mark: bool,
}

/// The slow-start threshold and the window after a signal, in packets. The machine keeps the window
/// between [`Conventions::least_window`] and the window before the signal. After a
/// [`Signal::Timeout`] it is the least window (RFC 5681 section 3.1), whatever is decided; after
/// [`Signal::PersistentCongestion`] the threshold stays and the window is two packets (RFC 9002
/// section 7.6.2).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decided {
    /// The slow-start threshold.
    pub threshold: f64,
    /// The window.
    pub window: f64,
}

/// The rules of a stack: where stacks differ and the law says nothing.
///
/// [`Conventions::RFC`] follows the RFCs. A driver that differs starts from it:
///
/// ```
/// use cwnd::Conventions;
///
/// static QUIC: Conventions = {
///     let mut conventions = Conventions::RFC;
///     conventions.infers_recovery = true;
///     conventions
/// };
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct Conventions {
    /// Decides on a reduction.
    pub reduce: fn(&Decision) -> Decided,
    /// The smallest window in packets, of every controller, and the window after a timeout: the
    /// loss window of RFC 5681 section 3.1, or the minimum congestion window of RFC 9002 section
    /// 7.2.
    pub least_window: f64,
    /// Whether the driver never reports [`Event::Recovered`](crate::Event::Recovered): a loss or a
    /// mark begins a recovery, which ends when a packet sent after its beginning is acknowledged
    /// (RFC 9002 section 7.3.2).
    pub infers_recovery: bool,
    /// Whether a mark during recovery reduces the window again.
    pub marks_reduce_in_recovery: bool,
    /// Whether the slow-start threshold begins at the largest window, not arbitrarily high (RFC
    /// 5681 section 3.1).
    pub threshold_from_max_window: bool,
    /// Whether slow start may end above the threshold.
    pub overshoots_threshold: bool,
    /// Whether the window grows although it does not limit the sender (RFC 7661: it does not).
    pub grows_unused: bool,
    /// Whether the window grows past the largest window, which then limits only what is in flight.
    pub grows_past_max_window: bool,
    /// Whether Reno and CUBIC compute in whole packets, as net/ipv4/tcp_cong.c and
    /// net/ipv4/tcp_cubic.c of Linux 6.18 do. Other laws are real-valued.
    pub whole_packets: bool,
    /// Whether an undo restores the window and the threshold alone, and not the law's state
    /// (`tcp_reno_undo_cwnd` of Linux).
    pub undo_keeps_law: bool,
    /// Whether a restart after an idle period leaves a slow-start threshold of at least three
    /// quarters of the window (`tcp_cwnd_restart` and `tcp_current_ssthresh` of Linux, RFC 2861).
    pub restart_raises_threshold: bool,
}

impl Conventions {
    /// The rules of the RFCs, for a driver that reports the end of recovery.
    pub const RFC: Conventions = Conventions {
        reduce: rfc,
        least_window: 1.0,
        infers_recovery: false,
        marks_reduce_in_recovery: false,
        threshold_from_max_window: false,
        overshoots_threshold: false,
        grows_unused: false,
        grows_past_max_window: false,
        whole_packets: false,
        undo_keeps_law: false,
        restart_raises_threshold: false,
    };

    /// The rules of Linux 6.18.
    pub const LINUX: Conventions = Conventions {
        whole_packets: true,
        undo_keeps_law: true,
        restart_raises_threshold: true,
        ..Conventions::RFC
    };

    /// The rules of the RFCs, for a driver that does not report the end of recovery, such as a QUIC
    /// stack (RFC 9002). No window is below two packets (RFC 9002 section 7.2).
    pub const QUIC: Conventions =
        Conventions { least_window: 2.0, infers_recovery: true, ..Conventions::RFC };
}

/// The law's threshold, or its window: in slow start, which overshoots by up to a factor of two,
/// and after a timeout, when nothing is known of the path, at most half of the window (RFC 5681
/// equation 4). A law with a threshold of its own reduces the window after a mark to one packet at
/// least (RFC 9438 section 4.6).
fn rfc(decision: &Decision) -> Decided {
    let halves = decision.slow_start || decision.why == Signal::Timeout;
    let threshold = match decision.law_threshold {
        Some(threshold) => threshold,
        None if halves => decision.cut.min(decision.window / 2.0),
        None => decision.cut,
    };
    let threshold = threshold.max(MIN_THRESHOLD);
    let window = match (decision.why, decision.law_threshold) {
        (Signal::Mark, Some(own)) => own.max(MIN_MARKED_WINDOW),
        _ => threshold,
    };
    Decided { threshold, window: window.min(decision.window) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The threshold and the window after `why` at 40 packets, of which the law keeps `cut`.
    fn reduce(why: Signal, slow_start: bool, cut: f64, law_threshold: Option<f64>) -> (f64, f64) {
        let (window, threshold) = (40.0, f64::INFINITY);
        let (first, after_mark) = (true, false);
        let decision =
            Decision { why, window, threshold, cut, law_threshold, slow_start, first, after_mark };
        let Decided { threshold, window } = (Conventions::RFC.reduce)(&decision);
        (threshold, window)
    }

    /// RFC 5681 equation 4 in slow start and after a timeout; in congestion avoidance the law
    /// decides.
    #[test]
    fn at_most_half_of_the_window_remains_in_slow_start_and_after_a_timeout() {
        for why in [Signal::Loss, Signal::Mark] {
            assert_eq!(reduce(why, false, 35.0, None), (35.0, 35.0));
            assert_eq!(reduce(why, true, 35.0, None), (20.0, 20.0));
            assert_eq!(reduce(why, true, 10.0, None), (10.0, 10.0));
        }
        assert_eq!(reduce(Signal::Timeout, false, 35.0, None).0, 20.0);
        assert_eq!(reduce(Signal::Timeout, false, 10.0, None).0, 10.0);
    }

    /// A threshold above the window leaves the window.
    #[test]
    fn a_laws_own_threshold_counts_everywhere() {
        for why in [Signal::Loss, Signal::Timeout] {
            for slow_start in [false, true] {
                assert_eq!(reduce(why, slow_start, 20.0, Some(28.0)), (28.0, 28.0));
                assert_eq!(reduce(why, slow_start, 20.0, Some(60.0)), (60.0, 40.0));
            }
        }
    }

    /// RFC 5681 equation 4: the threshold is at least two packets.
    #[test]
    fn two_packets_remain() {
        assert_eq!(reduce(Signal::Loss, false, 0.5, None), (2.0, 2.0));
        assert_eq!(reduce(Signal::Loss, false, 0.5, Some(-3.0)), (2.0, 2.0));
    }
}
