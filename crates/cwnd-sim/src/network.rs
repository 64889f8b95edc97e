//! A network with its traffic, ready to run: what a scenario file is compiled to. Names are gone
//! into indices, units into base units, defaults into values.

mod validate;

pub use validate::{InvalidField, NetworkError};
pub(crate) use validate::{LONGEST, RATES, check_times};

use cwnd::{Dur, Time};
use std::sync::Arc;

/// A network, its traffic and how to watch it.
#[derive(Clone, Debug, PartialEq)]
pub struct Network {
    /// The scenario's name.
    pub name: String,
    /// Names of the nodes.
    pub nodes: Vec<String>,
    /// One-way links.
    pub links: Vec<Link>,
    /// Traffic sources, in the order of the records.
    pub flows: Vec<Flow>,
    /// How long to run.
    pub duration: Dur,
    /// The start of the measurement: counters of the records begin here.
    pub warmup: Dur,
    /// The time between two samples of the series.
    pub sample: Dur,
}

impl From<&Network> for Arc<Network> {
    fn from(network: &Network) -> Self {
        Arc::new(network.clone())
    }
}

/// A one-way link: a queue, a transmitter and a pipe.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// Its name, by default `from-to`.
    pub name: String,
    /// The node it leaves.
    pub from: usize,
    /// The node it reaches.
    pub to: usize,
    /// Bits per second; infinite when `None`: no queue ever forms.
    pub rate: Option<f64>,
    /// Propagation delay.
    pub delay: Dur,
    /// The queue in front of the transmitter.
    pub queue: Queue,
    /// Probability that a data packet is lost after the queue and before the pipe (Bernoulli).
    pub loss: f64,
    /// Whether `loss` also takes acknowledgements (any packet that carries no data).
    pub loss_of_acks: bool,
}

/// A queue discipline. Lengths never include the packet being transmitted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Queue {
    /// First in, first out, up to a limit.
    DropTail {
        /// The largest queue.
        limit: QueueLimit,
    },
    /// Random early detection (Floyd and Jacobson 1993) as ns-2 defines it, in packets.
    Red(Red),
}

/// The largest queue of waiting packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum QueueLimit {
    /// In packets.
    Packets(u32),
    /// In bytes.
    Bytes(u64),
}

/// RED's parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Red {
    /// The hard limit in packets.
    pub limit: u32,
    /// No packet is dropped below this average queue, in packets.
    pub min: f64,
    /// The average queue in packets at which the probability is `max_p`.
    pub max: f64,
    /// The probability at `max`.
    pub max_p: f64,
    /// Weight of the newest queue length in the average.
    pub weight: f64,
    /// Above `max` the probability rises to 1 at twice `max`, instead of at once.
    pub gentle: bool,
    /// Waits between drops: spreads them more evenly (ns-2's `wait_`).
    pub wait: bool,
    /// Marks packets of ECN-capable flows instead of dropping them.
    pub ecn: bool,
    /// Drops instead of marking above this probability; 1 marks always (ns-2's `mark_p_`).
    pub mark_p: f64,
    /// Bytes of a typical packet: how many could have been sent in an idle period.
    pub mean_packet: u32,
}

/// A traffic source and its sink.
#[derive(Clone, Debug, PartialEq)]
pub struct Flow {
    /// Its name.
    pub name: String,
    /// Links from the source to the sink.
    pub path: Vec<usize>,
    /// Links from the sink to the source.
    pub back: Vec<usize>,
    /// When it starts.
    pub start: Time,
    /// When it stops sending new data; [`Time::NEVER`] to run to the end.
    pub stop: Time,
    /// What it sends.
    pub traffic: Traffic,
    /// Whether its records count in the metrics of the run; background traffic does not.
    pub measured: bool,
}

/// What a source sends.
#[derive(Clone, Debug, PartialEq)]
pub enum Traffic {
    /// TCP, driven by a congestion controller.
    Tcp(Tcp),
    /// UDT, driven by a congestion controller.
    Udt(Udt),
    /// Constant bit rate over UDP, on and off by a schedule.
    Cbr {
        /// Bits per second while on, headers included.
        rate: f64,
        /// Bytes of a packet on the wire.
        packet: u32,
        /// Time on, time off, repeated from the start; always on when `None`.
        schedule: Option<(Dur, Dur)>,
        /// Each gap between packets is spread uniformly by this fraction of itself.
        jitter: f64,
    },
    /// On and off periods drawn from Pareto distributions, constant bit rate while on.
    Pareto {
        /// Bits per second while on, headers included.
        rate: f64,
        /// Bytes of a packet on the wire.
        packet: u32,
        /// Mean time on.
        on: Dur,
        /// Mean time off.
        off: Dur,
        /// Shape of both distributions, above 1.
        shape: f64,
    },
}

/// A TCP connection. Windows are in packets, sizes in bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct Tcp {
    /// The congestion controller's specification, such as `simd(beta=1/16)`.
    pub controller: String,
    /// Data to send; without end when `None`.
    pub bytes: Option<u64>,
    /// Loss recovery.
    pub recovery: Recovery,
    /// Whose habits where stacks differ.
    pub conventions: Conventions,
    /// Payload bytes of a data packet.
    pub packet: u32,
    /// Header bytes of a data packet.
    pub header: u32,
    /// Bytes of an acknowledgement on the wire.
    pub ack: u32,
    /// Initial window in packets.
    pub initial_window: u32,
    /// Receiver's window in packets.
    pub window: u32,
    /// Acknowledge every second packet, or after `ack_delay`.
    pub delayed_acks: bool,
    /// The longest an acknowledgement is delayed.
    pub ack_delay: Dur,
    /// Explicit congestion notification (RFC 3168).
    pub ecn: bool,
    /// Timestamps with this granularity (RFC 7323); none when `None`.
    pub timestamps: Option<Dur>,
    /// Sends a new packet on each of the first two duplicate acknowledgements (RFC 3042).
    pub limited_transmit: bool,
    /// Opens with a handshake packet.
    pub syn: bool,
    /// Counts packets and not acknowledgements when the window grows (RFC 3465).
    pub byte_counting: bool,
    /// Granularity of the retransmission timer's clock.
    pub granularity: Dur,
    /// The smallest retransmission timeout.
    pub min_rto: Dur,
    /// The largest retransmission timeout.
    pub max_rto: Dur,
    /// The retransmission timeout before the first sample.
    pub initial_rto: Dur,
    /// The spread of a random delay before each packet is sent (ns-2's `overhead_`).
    pub overhead: Dur,
}

/// A UDT connection: the protocol itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Udt {
    /// The congestion controller's specification, such as `udt`.
    pub controller: String,
    /// Data to send; without end when `None`.
    pub bytes: Option<u64>,
    /// Payload bytes of a data packet.
    pub packet: u32,
    /// Header bytes of a data packet on the wire: IP's, UDP's and UDT's, which are 44, and what is
    /// below them.
    pub header: u32,
    /// Packets that may be outstanding, and that either end's buffer holds.
    pub window: u32,
}

/// Returns the name in a specification that the caller resolves ([`Options::custom`](crate::Options::custom)); `None`
/// for a specification of the registry.
///
/// The caller's specifications are `PREFIX:NAME` and `PREFIX:NAME(ARGUMENTS)`, where a name has letters, digits, `-` and
/// `_`. The simulator reads no meaning into the prefix and the arguments. Names of the registry have no colon.
///
/// ```
/// use cwnd_sim::network::custom_name;
///
/// assert_eq!(custom_name("mine:Law(beta=0.1)"), Some("Law"));
/// assert_eq!(custom_name("laws/c:d.so:Law"), Some("Law"));
/// assert_eq!(custom_name("simd(beta=1/16)"), None);
/// ```
#[must_use]
pub fn custom_name(spec: &str) -> Option<&str> {
    spec.match_indices(':').find_map(|(colon, _)| {
        let rest = &spec[colon + 1..];
        let name = rest.split_once('(').map_or(rest, |(name, _)| name);
        (!name.is_empty() && name.chars().all(is_in_names)).then_some(name)
    })
}

/// Whether names of controllers, flows, links and nodes may contain a character.
pub(crate) fn is_in_names(c: char) -> bool {
    c.is_alphanumeric() || c == '-' || c == '_'
}

/// How TCP repairs losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// Selective acknowledgements (RFC 6675).
    Sack,
    /// RFC 6582.
    NewReno,
    /// RFC 5681's fast retransmit and fast recovery alone.
    Reno,
}

/// Whose habits where stacks differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conventions {
    /// The RFCs.
    Rfc,
    /// ns-2.35's.
    Ns2,
    /// ns-2's of spring 2001: integer round-trip times in coarse ticks, and the minimum timeout
    /// applied after the back-off.
    Ns2001,
}
