//! Checks of a recorded connection against the rules of RFC 5681, RFC 9002 and RFC 9438.
//!
//! [`conform`] follows the events of a [`Record`] with what the RFCs permit after each of them, and
//! compares the windows on record. It knows the events and the windows alone, no controller: the
//! record may be of any implementation. Where an RFC permits a range, so does a rule: a larger
//! slow-start threshold, a later start of congestion avoidance and windows of whole packets are no
//! violations.
//!
//! ```
//! use cwnd::conform::{Expected, Law, Outcome, conform};
//! use cwnd::record::Record;
//!
//! let record: Record = "
//! 50000000 acked 2 2 8 10 0 50000000 - 0 0 window | 12 - -
//! 61000000 lost 1 50000000 14 | 7.14 - -
//! ".parse()?;
//! let findings = conform(&record, &Expected::quic(Law::Cubic));
//! let violated = findings.iter().find(|finding| finding.rule.name == "reduction");
//! let Some(Outcome::Violated(violation)) = violated.map(|finding| &finding.outcome) else { panic!() };
//! assert_eq!([violation.least, violation.most], [0.7 * 12.0 - 1.0, 0.7 * 12.0]);
//! # Ok::<(), cwnd::record::ParseError>(())
//! ```

mod follow;

use crate::record::Record;
use crate::units::Time;
use alloc::string::String;
use alloc::vec::Vec;
use follow::Follower;

/// A rule of an RFC.
#[derive(Debug, PartialEq, Eq)]
pub struct Rule {
    /// Its name.
    pub name: &'static str,
    /// The sections that it is from.
    pub source: &'static str,
    /// What it requires.
    pub statement: &'static str,
}

macro_rules! rules {
    ($($name:ident: $text:literal, $source:literal, $statement:literal;)*) => {
        #[derive(Clone, Copy)]
        pub(super) enum Place { $($name),* }

        /// All rules.
        pub const RULES: &[Rule] =
            &[$(Rule { name: $text, source: $source, statement: $statement }),*];
    };
}

rules! {
    OneReduction: "one-reduction", "RFC 9002 section 7.3.2, RFC 6675 section 5",
        "losses and marks of packets sent before the last reduction do not reduce the window again";
    Reduction: "reduction", "RFC 5681 section 3.1, RFC 9002 section 7.3.2, RFC 9438 section 4.6",
        "a congestion signal reduces the window to half of it, CUBIC's to 0.7";
    Recovery: "recovery", "RFC 9002 section 7.3.2, RFC 6675 section 5",
        "the window does not grow until a packet sent after the reduction is acknowledged";
    SlowStart: "slow-start", "RFC 5681 section 3.1, RFC 9002 section 7.3.1",
        "below the slow-start threshold the window grows at most by the packets acknowledged";
    Avoidance: "avoidance", "RFC 5681 section 3.1, RFC 9002 section 7.3.3, RFC 9438 sections 4.2-4.5",
        "in congestion avoidance the window grows by one packet for each window acknowledged at most, \
         CUBIC's to the cubic function of the time or the estimate of Reno's window";
    Progress: "progress", "RFC 5681 section 3.1, RFC 9002 section 7.3.3, RFC 9438 section 4.3",
        "a window that limits the sender grows outside of recovery, as fast as Reno's at least";
    Idle: "idle", "RFC 9438 sections 4.2 and 5.8",
        "time in which the application or an empty link limited the sender does not count for growth";
    ApplicationLimited: "application-limited", "RFC 9002 section 7.8, RFC 9438 section 5.8, RFC 7661",
        "the window does not grow while the application or the receiver limits the sender";
    Timeout: "timeout", "RFC 5681 section 3.1",
        "a retransmission timeout reduces the window to one packet";
    PersistentCongestion: "persistent-congestion", "RFC 9002 section 7.6.2",
        "persistent congestion reduces the window to two packets";
    MinimumWindow: "minimum-window", "RFC 5681 section 3.1, RFC 9002 section 7.2",
        "the window is at least one packet, and two in QUIC";
}

/// The law whose rules count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Law {
    /// Reno (RFC 5681, RFC 9002): a half remains at a congestion signal.
    Reno,
    /// CUBIC (RFC 9438): 0.7 remains, and C is 0.4 packets/s^3.
    Cubic,
    /// Another one. The rules for every controller count: those of the least window and of
    /// persistent congestion.
    Other,
}

impl Law {
    /// Returns the law of a specification: Reno or CUBIC with the values of the RFC, or another
    /// one.
    #[cfg(feature = "registry")]
    pub fn of(spec: &crate::Spec) -> Self {
        match spec.name() {
            "reno" => Law::Reno,
            "cubic" if (spec.get("c"), spec.get("kept")) == (Some(0.4), Some(0.7)) => Law::Cubic,
            _ => Law::Other,
        }
    }
}

/// What the record of a connection is checked against.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Expected {
    /// The law.
    pub law: Law,
    /// Whether the transport is QUIC, with RFC 9002's least window and recovery period.
    pub quic: bool,
    /// The largest window in packets, at which a window need not grow.
    pub max_window: f64,
}

impl Expected {
    /// A law over TCP, without a largest window.
    pub const fn tcp(law: Law) -> Self {
        Expected { law, quic: false, max_window: f64::INFINITY }
    }

    /// A law over QUIC, without a largest window.
    pub const fn quic(law: Law) -> Self {
        Expected { law, quic: true, max_window: f64::INFINITY }
    }
}

/// The first event after which a window violates a rule.
#[derive(Clone, Debug, PartialEq)]
pub struct Violation {
    /// Time of the event.
    pub at: Time,
    /// Position of the entry in the record.
    pub position: usize,
    /// The window before it in packets.
    pub before: f64,
    /// The window after it in packets.
    pub after: f64,
    /// The smallest window that the rule permits after it in packets.
    pub least: f64,
    /// The largest window that the rule permits after it in packets.
    pub most: f64,
    /// A likely cause.
    pub cause: String,
}

/// Whether a record keeps a rule.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The rule holds for this number of events.
    Held(u64),
    /// The rule does not hold.
    Violated(Violation),
    /// No event could violate it.
    NotExercised,
}

/// A rule and its outcome.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The rule.
    pub rule: &'static Rule,
    /// Whether it holds.
    pub outcome: Outcome,
}

/// Checks `record` against all rules, in the order of [`RULES`].
pub fn conform(record: &Record, expected: &Expected) -> Vec<Finding> {
    let mut follower = Follower::new(record, expected);
    for (position, entry) in record.entries.iter().enumerate() {
        follower.follow(position, entry);
    }
    let outcomes = follower.outcomes();
    RULES.iter().zip(outcomes).map(|(rule, outcome)| Finding { rule, outcome }).collect()
}
