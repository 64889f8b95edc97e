//! A network with its traffic: a compiled scenario. Nodes and links are indices, quantities are in
//! base units, and no field has a default. [`Network::validate`] checks that the simulator can run
//! it.

mod application;
mod change;
mod check_impairments;
mod impairments;
mod packet_change;
mod processing;
mod quic;
mod validate;

pub use crate::check::InvalidField;
pub use crate::discipline::{Codel, DualPi2, Fq, FqCodel, Pie, Queue, QueueLimit, Red};
pub(crate) use application::pareto_min;
pub use application::{Application, Media, Sizes, Times};
pub(crate) use check_impairments::WrongLine;
pub(crate) use impairments::OPPORTUNITY;
pub use impairments::{
    Blackout, Cellular, Change, GilbertElliott, Impairments, Jitter, Leo, Model, Reorder,
    TokenBucket, Trace,
};
pub use packet_change::PacketChange;
pub use quic::{Quic, QuicStack, own_name};
pub use validate::NetworkError;
pub(crate) use validate::check_times;

use crate::cast::low32;
use cwnd::registry::Spec;
use cwnd::{Dur, Time};
use cwnd_udt::packet::{HEADER, IP_UDP_HEADERS};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A network, its traffic, and the times of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Network {
    /// The scenario's name.
    pub name: String,
    /// Names of the nodes.
    pub nodes: Vec<String>,
    /// One-way links.
    pub links: Vec<Link>,
    /// Flows, in the order of the records.
    pub flows: Vec<Flow>,
    /// Duration of the run.
    pub duration: Dur,
    /// Duration of the warm-up, which the counters of the records exclude.
    pub warmup: Dur,
    /// Sampling interval of the series.
    pub sample: Dur,
}

impl Network {
    /// The least propagation time of a flow in seconds, both ways.
    #[must_use]
    pub fn base_rtt_s(&self, flow: &Flow) -> f64 {
        let links = flow.path.iter().chain(&*flow.back).filter_map(|link| self.links.get(*link));
        links.map(|link| link.least_delay().as_secs()).sum()
    }
}

impl From<&Network> for Arc<Network> {
    fn from(network: &Network) -> Self {
        Arc::new(network.clone())
    }
}

/// A one-way link: a queue, a transmitter and a propagation delay.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// Its name, by default `from-to`.
    pub name: String,
    /// Index of the node at its beginning.
    pub from: usize,
    /// Index of the node at its end.
    pub to: usize,
    /// Rate in bits per second. `None` is infinite: no packet ever queues.
    pub rate: Option<f64>,
    /// Propagation delay.
    pub delay: Dur,
    /// The queue in front of the transmitter.
    pub queue: Queue,
    /// Probability that a data packet is lost after its transmission, independently of other
    /// packets.
    pub loss: f64,
    /// Whether `loss` also applies to acknowledgements and other packets without data.
    pub loss_of_acks: bool,
    /// What varies, and what else happens to packets; `None` for nothing.
    pub impairments: Option<Arc<Impairments>>,
}

impl Link {
    /// A link between two nodes that loses no packets and does not vary.
    pub fn new(
        name: impl Into<String>,
        [from, to]: [usize; 2],
        rate: Option<f64>,
        delay: Dur,
        queue: Queue,
    ) -> Self {
        Link {
            name: name.into(),
            from,
            to,
            rate,
            delay,
            queue,
            loss: 0.0,
            loss_of_acks: false,
            impairments: None,
        }
    }

    /// The least propagation delay during a run.
    #[must_use]
    pub fn least_delay(&self) -> Dur {
        self.impairments.as_ref().map_or(self.delay, |own| own.least_delay(self.delay))
    }

    /// Whether packets may overtake others.
    pub(crate) fn reorders(&self) -> bool {
        self.impairments.as_ref().is_some_and(|own| own.reorders())
    }
}

/// A flow: a source and its sink.
#[derive(Clone, Debug, PartialEq)]
pub struct Flow {
    /// Its name.
    pub name: String,
    /// Indices of the links from the source to the sink.
    pub path: Arc<[usize]>,
    /// Indices of the links from the sink to the source.
    pub back: Arc<[usize]>,
    /// Start of the flow.
    pub start: Time,
    /// Time from which it sends no new data; [`Time::NEVER`] for no limit.
    pub stop: Time,
    /// The source. Flows of a group share it, as they share routes where they have no hosts of
    /// their own.
    pub traffic: Arc<Traffic>,
    /// Whether the metrics of the run include it; they exclude background traffic.
    pub measured: bool,
    /// Bytes to send, instead of those of `traffic`: for flows of a group that differ in their
    /// sizes.
    pub bytes: Option<u64>,
    /// The application of a TCP or UDT flow; without one all data is available at the start.
    pub application: Option<Arc<Application>>,
}

impl Flow {
    /// Bytes to send; `None` for no limit, for an application, and for a source without feedback.
    #[must_use]
    pub fn bytes(&self) -> Option<u64> {
        let of_traffic = match &*self.traffic {
            Traffic::Tcp(tcp) => tcp.bytes,
            Traffic::Udt(udt) => udt.bytes,
            Traffic::Quic(quic) => quic.bytes,
            Traffic::Cbr { .. } | Traffic::Pareto { .. } => None,
        };
        self.bytes.or(of_traffic)
    }
}

/// A source.
#[derive(Clone, Debug, PartialEq)]
pub enum Traffic {
    /// TCP with a congestion controller.
    Tcp(Tcp),
    /// UDT with a congestion controller.
    Udt(Udt),
    /// QUIC with a congestion controller.
    Quic(Quic),
    /// Constant bit rate over UDP, always or periodically.
    Cbr {
        /// Rate in bits per second while on, including headers.
        rate: f64,
        /// Packet size in bytes on the wire.
        packet: u32,
        /// On time and off time of each period, from the start of the flow; `None` for always on.
        schedule: Option<(Dur, Dur)>,
        /// Width of the uniform distribution of the time between packets, as a fraction of its
        /// mean.
        jitter: f64,
    },
    /// Constant bit rate over UDP, with on times and off times from Pareto distributions.
    Pareto {
        /// Rate in bits per second while on, including headers.
        rate: f64,
        /// Packet size in bytes on the wire.
        packet: u32,
        /// Mean on time.
        on: Dur,
        /// Mean off time.
        off: Dur,
        /// Shape parameter of both distributions, above 1.
        shape: f64,
    },
}

impl Traffic {
    /// Bytes of a data packet, and of its headers: 0 for a source whose packets are given on the
    /// wire.
    #[must_use]
    pub fn packet_bytes(&self) -> (u32, u32) {
        match self {
            Traffic::Tcp(tcp) => (tcp.packet, tcp.header),
            Traffic::Udt(udt) => (udt.packet, udt.header),
            Traffic::Quic(quic) => quic.packet_bytes(),
            Traffic::Cbr { packet, .. } | Traffic::Pareto { packet, .. } => (*packet, 0),
        }
    }
}

impl Traffic {
    /// Returns a copy that sends `bytes` bytes. Sources without feedback have no amount of data.
    pub(crate) fn with_bytes(&self, bytes: u64) -> Self {
        let mut traffic = self.clone();
        match &mut traffic {
            Traffic::Tcp(tcp) => tcp.bytes = Some(bytes),
            Traffic::Udt(udt) => udt.bytes = Some(bytes),
            Traffic::Quic(quic) => quic.bytes = Some(bytes),
            Traffic::Cbr { .. } | Traffic::Pareto { .. } => {}
        }
        traffic
    }
}

/// A TCP connection. Windows are in packets, sizes in bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct Tcp {
    /// Specification of the congestion controller: one of the registry, such as `simd(beta=1/16)`,
    /// one of the Linux kernel ([`kernel_name`]), or one that the caller resolves
    /// ([`custom_name`]).
    pub controller: String,
    /// Bytes to send; `None` for no limit.
    pub bytes: Option<u64>,
    /// Loss recovery.
    pub recovery: Recovery,
    /// Conventions where implementations differ.
    pub conventions: Conventions,
    /// Payload of a data packet in bytes.
    pub packet: u32,
    /// Changes of `packet`, in the order of time.
    pub packet_changes: Vec<PacketChange>,
    /// Headers of a data packet in bytes.
    pub header: u32,
    /// Size of an acknowledgement on the wire in bytes, without options.
    pub ack: u32,
    /// Initial window in packets.
    pub initial_window: u32,
    /// Receiver's window in packets.
    pub window: u32,
    /// Whether only every second packet is acknowledged at once (delayed acknowledgements).
    pub delayed_acks: bool,
    /// The maximum delay of an acknowledgement.
    pub ack_delay: Dur,
    /// Explicit congestion notification (RFC 3168).
    pub ecn: bool,
    /// Whether ECN-capable packets carry ECT(1), the identifier of L4S (RFC 9331), instead of
    /// ECT(0).
    pub l4s: bool,
    /// Granularity of timestamps (RFC 7323); `None` for no timestamps.
    pub timestamps: Option<Dur>,
    /// Whether each of the first two duplicate acknowledgements sends a new packet (limited
    /// transmit, RFC 3042).
    pub limited_transmit: bool,
    /// Whether the connection begins with a SYN.
    pub syn: bool,
    /// Whether the window grows by acknowledged packets instead of acknowledgements (RFC 3465).
    pub byte_counting: bool,
    /// Granularity of the retransmission timer's clock.
    pub granularity: Dur,
    /// The minimum retransmission timeout.
    pub min_rto: Dur,
    /// The maximum retransmission timeout.
    pub max_rto: Dur,
    /// The retransmission timeout before the first round-trip time sample.
    pub initial_rto: Dur,
    /// The maximum of the uniform random time in which the source's host processes a packet; under
    /// the conventions of ns-2 a burst (`overhead_`). `None` for the transmission time of a
    /// full-sized packet on the slowest link of the path.
    pub overhead: Option<Dur>,
    /// Parts of later RFCs and of Linux.
    pub extensions: TcpExtensions,
}

impl Tcp {
    /// The size of the largest data packet on the wire in bytes.
    pub(crate) fn largest_packet(&self) -> u32 {
        let changes = self.packet_changes.iter().map(|change| change.packet);
        self.header + changes.fold(self.packet, u32::max)
    }
}

/// Parts of TCP that can be switched on one by one. Those of loss recovery need [`Recovery::Sack`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TcpExtensions {
    /// Loss detection by time (RACK, RFC 8985).
    pub rack: bool,
    /// Tail loss probes (RFC 8985).
    pub tlp: bool,
    /// Proportional rate reduction (RFC 9937).
    pub prr: bool,
    /// Reports of duplicates (RFC 2883), and undoing a recovery in which all retransmissions were
    /// duplicates.
    pub dsack: bool,
    /// Detection of spurious timeouts (F-RTO, RFC 5682).
    pub frto: bool,
    /// Accurate ECN feedback (AccECN, RFC 9768) instead of that of RFC 3168. Needs [`Tcp::ecn`].
    pub accecn: bool,
    /// Whether a window law is paced as in Linux: at 200 % of window / smoothed round-trip time
    /// below half of the slow-start threshold, and at 120 % above. A factor in the controller's
    /// specification precedes.
    pub pacing: bool,
    /// The slow start of a window law whose specification has none.
    pub slow_start: SlowStart,
}

/// A slow start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SlowStart {
    /// RFC 5681.
    #[default]
    Standard,
    /// HyStart++ (RFC 9406).
    HyStart,
    /// HyStart of Linux's CUBIC.
    #[serde(rename = "hystart-linux")]
    HyStartLinux,
}

/// Bytes of the IP, UDP and UDT headers of a packet.
pub(crate) const UDT_HEADERS: u32 = low32((HEADER + IP_UDP_HEADERS) as u64);

/// A UDT connection, simulated with the protocol implementation `cwnd-udt`.
#[derive(Clone, Debug, PartialEq)]
pub struct Udt {
    /// Specification of the congestion controller, such as `udt`; see [`Tcp::controller`].
    pub controller: String,
    /// Bytes to send; `None` for no limit.
    pub bytes: Option<u64>,
    /// Payload of a data packet in bytes.
    pub packet: u32,
    /// Headers of a data packet in bytes: 44 of IP, UDP and UDT, and those of the link layer.
    pub header: u32,
    /// Flow window in packets, and size of the send buffer and the receive buffer.
    pub window: u32,
}

/// Returns the name in a specification that the caller resolves
/// ([`Options::custom`](crate::Options::custom)); `None` for a specification of the registry.
///
/// The caller's specifications are `PREFIX:NAME` and `PREFIX:NAME(ARGUMENTS)`, where a name has
/// letters, digits, `-` and `_`. The simulator reads no meaning into the prefix and the arguments.
/// Names of the registry have no colon, and the prefixes `kernel` and `own` are reserved
/// ([`kernel_name`], [`own_name`]).
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
    if kernel_name(spec).or_else(|| own_name(spec)).is_some() {
        return None;
    }
    spec.match_indices(':').find_map(|(colon, _)| {
        let rest = &spec[colon + 1..];
        let name = rest.split_once('(').map_or(rest, |(name, _)| name);
        (!name.is_empty() && name.chars().all(is_in_names)).then_some(name)
    })
}

/// Returns `NAME` of a specification `FOLDER/NAME.law` or `FOLDER/NAME.law(ARGUMENTS)`, a law in a
/// file; `None` for other specifications.
pub(crate) fn law_name(spec: &str) -> Option<&str> {
    let path = spec.split_once('(').map_or(spec, |(path, _)| path).trim();
    let path = path.strip_suffix(".law")?;
    Some(path.rsplit_once('/').map_or(path, |(_, name)| name))
}

/// Returns `NAME` of a specification `kernel:NAME`, a controller of the Linux kernel's TCP; `None`
/// for other specifications. The simulator runs the registry's controller of that name; the backend
/// `linux` selects the kernel's own.
///
/// ```
/// use cwnd_sim::network::kernel_name;
///
/// assert_eq!(kernel_name("kernel:cubic"), Some("cubic"));
/// assert_eq!(kernel_name("cubic"), None);
/// ```
#[must_use]
pub fn kernel_name(spec: &str) -> Option<&str> {
    spec.strip_prefix("kernel:")
}

/// Parses the specification of a TCP flow's controller that the caller does not resolve. A
/// controller of the Linux kernel is simulated by the registry's controller of the same name.
///
/// # Errors
/// The specification is invalid, or the registry has no controller of that name.
pub(crate) fn simulated(spec: &str) -> Result<Spec, String> {
    let Some(name) = kernel_name(spec) else {
        return Spec::parse(spec).map_err(|error| error.to_string());
    };
    let unknown = |_| format!("{spec}: the simulator has no controller {name}");
    Spec::parse(name).map_err(unknown)
}

/// Whether names of controllers, flows, links and nodes may contain a character.
pub(crate) fn is_in_names(c: char) -> bool {
    c.is_alphanumeric() || c == '-' || c == '_'
}

/// Loss recovery of TCP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Recovery {
    /// Selective acknowledgements (RFC 6675).
    #[default]
    Sack,
    /// NewReno (RFC 6582).
    NewReno,
    /// Fast retransmit and fast recovery (RFC 5681).
    Reno,
}

/// Conventions where implementations of TCP differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conventions {
    /// Those of the RFCs.
    Rfc,
    /// Those of ns-2.35.
    Ns2,
    /// Those of Linux 6.18.
    Linux,
    /// Those of ns-2 of spring 2001: round-trip times in whole steps of a coarse clock, and the
    /// minimum timeout applied after the back-off.
    Ns2001,
}
