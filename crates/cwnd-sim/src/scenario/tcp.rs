//! The options of TCP and UDT, and their defaults.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ecn::Ecn;
use super::error::{Problem, problem};
use crate::network::{
    self, InvalidField, Recovery, SlowStart, Tcp, TcpExtensions, UDT_HEADERS, Udt,
};
use crate::units::{Bytes, Span, Timestamps, table};

table! {
    /// Options of TCP. The defaults depend on `conventions`.
    #[derive(Default)]
    #[serde(default, deny_unknown_fields, expecting = "a table of TCP options")]
    pub struct TcpOptions {} optional {
        /// Conventions and defaults: of the RFCs (default), of the RFCs without RACK, tail loss
        /// probes and PRR, of Linux 6.18, of ns-2.35, or of ns-2 of spring 2001.
        conventions: Conventions,
        /// Defaults of an environment, in place of those of the conventions.
        preset: Preset,
        /// Loss recovery: `sack` by default.
        recovery: Recovery,
        /// Payload of a data packet in bytes.
        packet: Bytes,
        /// Headers of a data packet in bytes.
        header: Bytes,
        /// Size of an acknowledgement on the wire in bytes, without options.
        ack: Bytes,
        /// Initial window in packets.
        #[schemars(range(min = 1))]
        initial_window: u32,
        /// Receiver's window in packets.
        #[schemars(range(min = 1))]
        window: u32,
        /// Delayed acknowledgements: of every second packet, or after `ack_delay`.
        delayed_acks: bool,
        /// Maximum delay of an acknowledgement, at most 500ms.
        ack_delay: Span,
        /// Explicit congestion notification: true for ECT(0) (RFC 3168), `l4s` for ECT(1) (RFC
        /// 9331). Queues other than DualPI2 mark packets only with their own `ecn`.
        ecn: Ecn,
        /// Accurate ECN feedback (AccECN, RFC 9768): counts of marked packets and bytes instead of
        /// one mark in a round-trip time. Needs `ecn`.
        accecn: bool,
        /// Timestamps (RFC 7323).
        timestamps: Timestamps,
        /// Limited transmit (RFC 3042): a new packet on each of the first two duplicate
        /// acknowledgements.
        limited_transmit: bool,
        /// Begins the connection with a SYN.
        syn: bool,
        /// The window grows by acknowledged packets instead of acknowledgements (RFC 3465).
        byte_counting: bool,
        /// Granularity of the retransmission timer's clock.
        granularity: Span,
        /// Minimum retransmission timeout.
        min_rto: Span,
        /// Maximum retransmission timeout.
        max_rto: Span,
        /// Retransmission timeout before the first round-trip time sample.
        initial_rto: Span,
        /// Maximum of the uniform random time in which the sending host processes a packet, against
        /// phase effects: by default the transmission time of a packet on the slowest link of the
        /// path, by its `rate` (the first one if it changes; a shaper does not count). Under the
        /// conventions of ns-2 it delays a burst (`overhead_`), and is 0 by default.
        overhead: Span,
        /// Loss detection by time (RACK, RFC 8985).
        rack: bool,
        /// Tail loss probes (RFC 8985).
        tlp: bool,
        /// Proportional rate reduction (RFC 9937).
        prr: bool,
        /// Reports of duplicates (RFC 2883), and undoing a recovery in which all retransmissions
        /// were duplicates.
        dsack: bool,
        /// Detection of spurious timeouts (F-RTO, RFC 5682).
        frto: bool,
        /// Pacing of window laws with the factors of Linux.
        pacing: bool,
        /// Slow start of window laws whose specification has none: that of Linux's CUBIC for
        /// `cubic` in Linux's conventions, `standard` else.
        slow_start: SlowStart,
    }
}

/// Conventions of TCP implementations, with their defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Conventions {
    /// Those of the RFCs, with RACK, tail loss probes (RFC 8985) and PRR (RFC 9937) if recovery is
    /// `sack`.
    Rfc,
    /// Those of the RFCs without RACK, tail loss probes and PRR.
    Rfc5681,
    /// Those of Linux 6.18.
    Linux,
    /// Those of ns-2.35.
    Ns2,
    /// Those of ns-2 of spring 2001.
    #[serde(rename = "ns2-2001")]
    Ns2001,
}

/// Defaults of an environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Preset {
    /// A data centre: the conventions of Linux with short timers and accurate ECN.
    Datacenter,
}

/// The defaults of a set of conventions.
struct Defaults {
    packet: u32,
    header: u32,
    initial_window: u32,
    delayed_acks: bool,
    ack_delay: Span,
    limited_transmit: bool,
    syn: bool,
    byte_counting: bool,
    granularity: Span,
    min_rto: Span,
    max_rto: Span,
    initial_rto: Span,
    /// `None` for the transmission time of a packet.
    overhead: Option<Span>,
    timestamps: bool,
    /// Whether RACK, tail loss probes and PRR are used with SACK.
    recent: bool,
    /// Whether DSACK and F-RTO are used.
    undoes: bool,
    /// Whether ECN and its accurate feedback are used.
    ecn: bool,
}

/// The default window in packets, which is larger than any congestion window.
const WINDOW: u32 = 1_000_000;
/// RFC 6298 allows no smaller maximum; ns-2 has the same.
const MAX_RTO: Span = Span::millis(60_000);

impl Conventions {
    fn defaults(self) -> Defaults {
        match self {
            Conventions::Rfc => Defaults { recent: true, ..Conventions::Rfc5681.defaults() },
            // Packets fill an Ethernet frame; the window is that of RFC 6928, the timer that of RFC
            // 6298. RFC 5681 allows a delay of acknowledgements of 500 ms; implementations have 40
            // ms.
            Conventions::Rfc5681 => Defaults {
                packet: 1460,
                header: 40,
                initial_window: 10,
                delayed_acks: true,
                ack_delay: Span::millis(40),
                limited_transmit: true,
                syn: true,
                byte_counting: true,
                granularity: Span::millis(1),
                min_rto: Span::millis(1000),
                max_rto: MAX_RTO,
                initial_rto: Span::millis(1000),
                overhead: None,
                timestamps: false,
                recent: false,
                undoes: false,
                ecn: false,
            },
            // Timestamps take 12 bytes of each packet. `TCP_RTO_MIN` and `TCP_RTO_MAX` are in
            // include/net/tcp.h.
            Conventions::Linux => Defaults {
                packet: 1448,
                header: 52,
                min_rto: Span::millis(200),
                max_rto: Span::millis(120_000),
                timestamps: true,
                undoes: true,
                ..Conventions::Rfc.defaults()
            },
            Conventions::Ns2 => Defaults {
                packet: 1000,
                initial_window: 2,
                delayed_acks: false,
                ack_delay: Span::millis(100),
                byte_counting: false,
                granularity: Span::millis(10),
                min_rto: Span::millis(200),
                initial_rto: Span::millis(3000),
                overhead: Some(Span::ZERO),
                ..Conventions::Rfc5681.defaults()
            },
            // Packets had no headers.
            Conventions::Ns2001 => Defaults {
                header: 0,
                initial_window: 1,
                limited_transmit: false,
                syn: false,
                granularity: Span::millis(100),
                min_rto: Span::ZERO,
                initial_rto: Span::millis(6000),
                ..Conventions::Ns2.defaults()
            },
        }
    }
}

impl Preset {
    /// Changes the defaults of the conventions.
    fn apply(self, defaults: Defaults) -> Defaults {
        match self {
            // The shortest delay of acknowledgements in Linux is one jiffy, 1 ms with HZ=1000, if
            // the sysctl `tcp_rto_min_us` is at most two (`tcp_delack_max`). The initial RTO is
            // that of samples/bpf/tcp_synrto_kern.c for two hosts of a data centre. DCTCP needs ECN
            // (RFC 8257).
            Preset::Datacenter => Defaults {
                min_rto: Span::millis(2),
                ack_delay: Span::millis(1),
                initial_rto: Span::millis(10),
                ecn: true,
                ..defaults
            },
        }
    }
}

/// Whether a specification is that of CUBIC, the only controller of Linux with HyStart.
fn is_cubic(controller: &str) -> bool {
    let name = network::kernel_name(controller).unwrap_or(controller);
    name.split('(').next() == Some("cubic")
}

/// The options of a flow, which take precedence over those of the scenario.
pub(super) struct Layers<'a> {
    pub own: &'a TcpOptions,
    pub own_key: &'a str,
    pub common: &'a TcpOptions,
}

impl<'a> Layers<'a> {
    /// Returns an option of the flow, or else of the scenario.
    fn get<T: Copy>(&self, option: impl Fn(&TcpOptions) -> Option<T>) -> Option<T> {
        option(self.own).or_else(|| option(self.common))
    }

    /// Converts an invalid option into an error that names the key under which the option was
    /// given, the flow's own first.
    fn problem(&self, invalid: InvalidField) -> Problem {
        let InvalidField { field, message } = invalid;
        if field == "bytes" {
            return Problem::new(
                format!("{}.bytes", self.own_key.trim_end_matches(".tcp")),
                message,
            );
        }
        let given = |options| {
            serde_json::to_value(options).is_ok_and(|keys: Value| keys.get(field).is_some())
        };
        let common = !given(self.own) && given(self.common);
        let table = if common { "tcp" } else { self.own_key };
        Problem::new(format!("{table}.{field}"), message)
    }

    /// Returns a size in bytes. Sizes above 32 bits saturate: they are too large in any case.
    fn size(&self, option: impl Fn(&TcpOptions) -> Option<Bytes>, default: u32) -> u32 {
        let size = self.get(option).map(|bytes| u32::try_from(bytes.get()).unwrap_or(u32::MAX));
        size.unwrap_or(default)
    }
}

/// The options that apply to UDT.
const OF_UDT: [&str; 3] = ["packet", "header", "window"];
/// Payload in bytes of a UDT packet that fills an Ethernet frame.
const UDT_PACKET: u32 = 1456;

/// Compiles the options of a UDT flow, which has few of TCP's.
pub(super) fn compile_udt(
    controller: &str,
    bytes: Option<Bytes>,
    layers: &Layers,
) -> Result<Udt, Problem> {
    let given = serde_json::to_value(layers.own).unwrap_or_default();
    let mut keys = given.as_object().into_iter().flat_map(|keys| keys.keys());
    if let Some(key) = keys.find(|key| !OF_UDT.contains(&key.as_str())) {
        return problem(
            format!("{}.{key}", layers.own_key),
            format!("not an option of UDT, which has {}", OF_UDT.join(", ")),
        );
    }
    let udt = Udt {
        controller: controller.to_owned(),
        bytes: bytes.map(Bytes::get),
        packet: layers.size(|o| o.packet, UDT_PACKET),
        header: layers.size(|o| o.header, UDT_HEADERS),
        window: layers.get(|o| o.window).unwrap_or(WINDOW),
    };
    udt.check().map_err(|invalid| layers.problem(invalid))?;
    Ok(udt)
}

/// Returns the conventions of a TCP flow: those of Linux for a controller of the kernel, else its
/// own, then those of the scenario, then those of the preset, then those of the RFCs.
pub(super) fn conventions(controller: &str, own: &TcpOptions, common: &TcpOptions) -> Conventions {
    if network::kernel_name(controller).is_some() {
        return Conventions::Linux;
    }
    let default = match own.preset.or(common.preset) {
        Some(Preset::Datacenter) => Conventions::Linux,
        None => Conventions::Rfc,
    };
    own.conventions.or(common.conventions).unwrap_or(default)
}

/// Compiles the options of a TCP flow: its own, then those of the scenario, then the defaults of
/// the conventions.
pub(super) fn compile(
    controller: &str,
    bytes: Option<Bytes>,
    layers: &Layers,
) -> Result<Tcp, Problem> {
    let conventions = conventions(controller, layers.own, layers.common);
    if layers.own.conventions.is_some_and(|given| given != conventions) {
        let message = format!("{controller} has those of Linux");
        return problem(format!("{}.conventions", layers.own_key), message);
    }
    let mut defaults = conventions.defaults();
    if let Some(preset) = layers.get(|o| o.preset) {
        defaults = preset.apply(defaults);
    }
    let default_ecn = if defaults.ecn { Ecn::Classic } else { Ecn::Off };
    let ecn = layers.get(|o| o.ecn).unwrap_or(default_ecn);
    let accecn = layers.get(|o| o.accecn).unwrap_or(defaults.ecn && ecn != Ecn::Off);
    let recovery = layers.get(|o| o.recovery).unwrap_or_default();
    // AccECN with SACK needs DSACK (RFC 9768 section 3.1.1).
    let sack = recovery == Recovery::Sack;
    let recent = defaults.recent && sack;

    let default_slow_start = if conventions == Conventions::Linux && is_cubic(controller) {
        SlowStart::HyStartLinux
    } else {
        SlowStart::Standard
    };
    let max_rto = layers.get(|o| o.max_rto).unwrap_or(defaults.max_rto);
    let span = |option: fn(&TcpOptions) -> Option<Span>, default: Span| {
        layers.get(option).unwrap_or(default).dur()
    };
    let tcp = Tcp {
        controller: controller.to_owned(),
        bytes: bytes.map(Bytes::get),
        recovery,
        conventions: match conventions {
            Conventions::Rfc | Conventions::Rfc5681 => network::Conventions::Rfc,
            Conventions::Linux => network::Conventions::Linux,
            Conventions::Ns2 => network::Conventions::Ns2,
            Conventions::Ns2001 => network::Conventions::Ns2001,
        },
        packet: layers.size(|o| o.packet, defaults.packet),
        packet_changes: Vec::new(),
        header: layers.size(|o| o.header, defaults.header),
        ack: layers.size(|o| o.ack, 40),
        initial_window: layers.get(|o| o.initial_window).unwrap_or(defaults.initial_window),
        window: layers.get(|o| o.window).unwrap_or(WINDOW),
        delayed_acks: layers.get(|o| o.delayed_acks).unwrap_or(defaults.delayed_acks),
        ack_delay: span(|o| o.ack_delay, defaults.ack_delay),
        ecn: ecn != Ecn::Off,
        l4s: ecn == Ecn::L4s,
        timestamps: match layers.get(|o| o.timestamps) {
            Some(timestamps) => timestamps.granularity(),
            None => defaults.timestamps.then_some(cwnd::Dur::from_millis(1)),
        },
        limited_transmit: layers.get(|o| o.limited_transmit).unwrap_or(defaults.limited_transmit),
        syn: layers.get(|o| o.syn).unwrap_or(defaults.syn),
        byte_counting: layers.get(|o| o.byte_counting).unwrap_or(defaults.byte_counting),
        granularity: span(|o| o.granularity, defaults.granularity),
        min_rto: span(|o| o.min_rto, defaults.min_rto),
        max_rto: max_rto.dur(),
        initial_rto: span(|o| o.initial_rto, defaults.initial_rto.min(max_rto)),
        overhead: layers.get(|o| o.overhead).or(defaults.overhead).map(Span::dur),
        extensions: TcpExtensions {
            rack: layers.get(|o| o.rack).unwrap_or(recent),
            tlp: layers.get(|o| o.tlp).unwrap_or(recent),
            prr: layers.get(|o| o.prr).unwrap_or(recent),
            dsack: layers.get(|o| o.dsack).unwrap_or(defaults.undoes || accecn && sack),
            frto: layers.get(|o| o.frto).unwrap_or(defaults.undoes),
            accecn,
            pacing: layers.get(|o| o.pacing).unwrap_or(false),
            slow_start: layers.get(|o| o.slow_start).unwrap_or(default_slow_start),
        },
    };
    tcp.check().map_err(|invalid| layers.problem(invalid))?;
    Ok(tcp)
}
