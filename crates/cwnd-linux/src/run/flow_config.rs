//! Configuration of the flows of a scenario for a backend, and notes on differences from the
//! scenario.

use std::fs;
use std::net::Ipv4Addr;
use std::sync::Arc;

use cwnd::registry::{Kind, algorithms};
use cwnd::{Controller, Dur, MakeController, Settings, Spec, Time};
use cwnd_law::Input;
use cwnd_sim::network::{self, Application, Conventions, Network, Recovery, Traffic};
use cwnd_udt::Config;
use cwnd_udt::handshake::MIN_PACKET_SIZE;
use cwnd_udt::packet::{HEADER, IP_UDP_HEADERS};

use super::notes::Notes;
use super::sys;
use crate::bpf::{Implementation, is_implemented};
use crate::emulate;

/// Backend of a scenario in real time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// The kernel's TCP for flows of TCP, UDT sockets for flows of UDT.
    Linux,
    /// UDT sockets for all flows of TCP and UDT.
    Udt,
    /// As `Linux`, with connections of the stacks noq and quinn for flows of QUIC.
    Quic,
}

impl Backend {
    /// Returns the backend of a name: `linux`, `udt` or `quic`.
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "linux" => Some(Backend::Linux),
            "udt" => Some(Backend::Udt),
            "quic" => Some(Backend::Quic),
            _ => None,
        }
    }
}

/// Bytes of the IP and TCP headers, and of the timestamp option.
const TCP_HEADERS: u32 = 40;
const TIMESTAMPS: u32 = 12;
/// Minimum of `TCP_MAXSEG`.
const MIN_SEGMENT: u32 = 88;
/// Bytes of the IP, UDP and UDT headers.
const UDT_HEADERS: u32 = (HEADER + IP_UDP_HEADERS) as u32;
/// Maximum packet size of the devices in bytes.
const MAX_PACKET: u32 = 1500;
/// The kernel's list of available controllers.
const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";
/// Initial window of QUIC in packets (RFC 9002 section 7.2).
#[cfg(feature = "quic")]
const QUIC_INITIAL_WINDOW: f64 = 10.0;
/// Timeout of a handshake: longer than any run, because a flow without a connection measures
/// nothing.
const CONNECT_TIMEOUT: Dur = Dur::from_millis(24 * 3_600_000);

/// A controller of the kernel's TCP.
pub(super) enum TcpController {
    /// A controller that the kernel has already, by name.
    BuiltIn(String),
    /// A law of this package, which the run loads.
    Law { spec: Spec, paced: bool },
}

impl TcpController {
    /// Whether both ends have to use it for ECN (`TCP_CONG_NEEDS_ECN`): a receiver without it
    /// refuses, because the first packet of the connection has an ECN codepoint.
    pub(super) fn needs_ecn(&self) -> bool {
        match self {
            TcpController::BuiltIn(_) => false,
            TcpController::Law { spec, .. } => spec.controller(&Settings::default()).needs().ecn,
        }
    }

    /// Whether its events tell marks from losses.
    fn reports_marks(&self) -> bool {
        matches!(self, TcpController::Law { spec, .. } if spec.algorithm().law().is_some())
    }
}

/// Options of a connection of the kernel's TCP.
pub(super) struct TcpOptions {
    pub controller: TcpController,
    /// `TCP_MAXSEG`.
    pub segment: u32,
    /// Bytes of data in a packet.
    pub payload: u32,
    pub sack: bool,
    pub ecn: bool,
    pub timestamps: bool,
    /// Initial and maximum window in packets.
    pub initial_window: u32,
    pub window: u32,
    pub quick_acks: bool,
    pub min_rto: Dur,
    /// Rate of the slowest link of the path in bit/s; `None` if no link has a rate.
    pub bottleneck_rate: Option<f64>,
}

/// Transport protocol of a flow.
pub(super) enum Protocol {
    Tcp(TcpOptions),
    Udt(Box<Config>),
    Udp(Traffic),
    /// The options, and the controller unless it is one of the stack's own.
    #[cfg(feature = "quic")]
    Quic(network::Quic, Option<Spec>),
}

/// Configuration of a flow.
pub(super) struct FlowConfig {
    pub name: String,
    pub index: u32,
    /// Addresses of the source and the sink.
    pub addresses: [Ipv4Addr; 2],
    pub start: Time,
    pub stop: Time,
    /// Packets to send; unlimited if `None`.
    pub packets: Option<u64>,
    /// The application; without one all data is available at the start.
    pub application: Option<Arc<Application>>,
    /// Packet size on the links in bytes.
    pub packet_size: u32,
    /// Window in packets that is recorded before the connection is open.
    pub initial_window: f64,
    pub protocol: Protocol,
}

/// Returns the configuration of the flows of `network`, and adds `notes` on differences from the
/// scenario.
///
/// # Errors
/// The backend does not support a part of the scenario that cannot be approximated.
pub(super) fn flow_configs(
    network: &Network,
    backend: Backend,
    notes: &mut Notes,
) -> Result<Vec<FlowConfig>, String> {
    let is_quic = |flow: &network::Flow| matches!(*flow.traffic, Traffic::Quic(_));
    if backend == Backend::Quic && !network.flows.iter().any(is_quic) {
        return Err("--on quic needs a flow with `protocol = \"quic\"`".into());
    }
    let available = fs::read_to_string(AVAILABLE).unwrap_or_default();
    let flow = |(index, spec): (usize, &network::Flow)| {
        let protocol = protocol_config(network, spec, backend, &available, notes);
        let (packet_size, packets, initial_window, protocol) =
            protocol.map_err(|why| format!("flow {}: {why}", spec.name))?;
        Ok(FlowConfig {
            name: spec.name.clone(),
            index: index as u32,
            addresses: emulate::flow_addresses(index as u32),
            start: spec.start,
            stop: spec.stop,
            packets,
            application: spec.application.clone(),
            packet_size,
            initial_window,
            protocol,
        })
    };
    let flows = network.flows.iter().enumerate().map(flow).collect::<Result<_, String>>()?;
    let is_connection = |flow: &&network::Flow| {
        !matches!(*flow.traffic, Traffic::Cbr { .. } | Traffic::Pareto { .. })
    };
    notes.set_flows(network.flows.iter().filter(is_connection).count());
    Ok(flows)
}

impl FlowConfig {
    /// Bytes of data in a packet. The headers of datagrams are not distinguished, as in the
    /// simulator.
    pub(super) fn payload(&self) -> u32 {
        match &self.protocol {
            Protocol::Tcp(options) => options.payload,
            Protocol::Udt(_) => self.packet_size - UDT_HEADERS,
            Protocol::Udp(_) => self.packet_size,
            #[cfg(feature = "quic")]
            Protocol::Quic(quic, _) => Traffic::Quic(quic.clone()).packet_bytes().0,
        }
    }
}

/// Packet size on the links in bytes, packets to send, initial window in packets, protocol.
type ProtocolConfig = (u32, Option<u64>, f64, Protocol);

fn protocol_config(
    network: &Network,
    flow: &network::Flow,
    backend: Backend,
    available: &str,
    notes: &mut Notes,
) -> Result<ProtocolConfig, String> {
    check_application(flow, backend)?;
    if flow.application.is_some() {
        notes.add(
            &flow.name,
            "Applications act up to 20 ms late, and data in the socket is sent after the end of an on period.",
        );
    }
    if matches!(&*flow.traffic, Traffic::Tcp(tcp) if !tcp.packet_changes.is_empty()) {
        notes.add(&flow.name, "The packet size does not change.");
    }
    let packets = |packet: u32| flow.bytes().map(|all| all.div_ceil(packet.into()));
    match &*flow.traffic {
        Traffic::Tcp(tcp) if backend != Backend::Udt => {
            let links = flow.path.iter().chain(&*flow.back);
            let rates = links.filter_map(|&link| network.links[link].rate);
            let bottleneck_rate = rates.min_by(f64::total_cmp);
            let packet_size =
                check_packet_size(tcp.packet + tcp.header, TCP_HEADERS + MIN_SEGMENT)?;
            let options = tcp_options(tcp, packet_size, bottleneck_rate, available)?;
            note_tcp_differences(&flow.name, tcp, &options, notes);
            let window = f64::from(options.initial_window);
            Ok((packet_size, packets(tcp.packet), window, Protocol::Tcp(options)))
        }
        Traffic::Tcp(network::Tcp { controller, packet, header, window, .. })
        | Traffic::Udt(network::Udt { controller, packet, header, window, .. }) => {
            let packet_size = check_packet_size(packet + header, MIN_PACKET_SIZE)?;
            let config = udt_config(controller, packet_size, *window)?;
            note_udt_differences(network, flow, packet_size - UDT_HEADERS, *packet, notes);
            let initial = config.settings(packet_size, *window).initial_window.get();
            Ok((packet_size, packets(*packet), initial, Protocol::Udt(Box::new(config))))
        }
        #[cfg(feature = "quic")]
        Traffic::Quic(quic) if backend == Backend::Quic => {
            let (payload, headers) = flow.traffic.packet_bytes();
            let packet_size = check_packet_size(payload + headers, headers)?;
            let own = network::own_name(&quic.controller).is_some();
            let spec = if own { None } else { Some(parse(&quic.controller)?) };
            note_quic_differences(flow, quic, notes);
            Ok((packet_size, None, QUIC_INITIAL_WINDOW, Protocol::Quic(quic.clone(), spec)))
        }
        Traffic::Quic(_) if backend == Backend::Quic => {
            Err("this build has no QUIC stacks: `make build` includes them".into())
        }
        Traffic::Quic(_) => Err("QUIC runs on sim and quic only".into()),
        Traffic::Cbr { packet, .. } | Traffic::Pareto { packet, .. } => {
            let packet_size = check_packet_size(*packet, IP_UDP_HEADERS as u32)?;
            Ok((packet_size, None, f64::NAN, Protocol::Udp(flow.traffic.as_ref().clone())))
        }
    }
}

/// Checks that the backend has the application of a flow.
fn check_application(flow: &network::Flow, backend: Backend) -> Result<(), String> {
    let tcp = backend != Backend::Udt && matches!(*flow.traffic, Traffic::Tcp(_));
    match flow.application.as_deref() {
        None => Ok(()),
        Some(Application::Media(_)) => {
            Err("`source` of kind media runs on sim only: the kernel does not tell a rate".into())
        }
        Some(_) if tcp => Ok(()),
        Some(_) => {
            Err("`source` runs on sim, and over TCP on linux and quic; `bytes` and `arrivals` \
                        run here too"
                .into())
        }
    }
}

/// Checks a packet size on the links.
fn check_packet_size(packet_size: u32, min: u32) -> Result<u32, String> {
    if (min..=MAX_PACKET).contains(&packet_size) {
        return Ok(packet_size);
    }
    Err(format!(
        "packets of {packet_size} bytes with headers: {min} to {MAX_PACKET} bytes are supported"
    ))
}

fn parse(controller: &str) -> Result<Spec, String> {
    if network::kernel_name(controller).is_some() {
        return Err(format!("{controller}: controllers of the kernel run on sim and linux only"));
    }
    if network::custom_name(controller).is_some() {
        return Err(format!("{controller}: controllers written in Python run on sim only"));
    }
    Spec::parse(controller).map_err(|error| error.to_string())
}

/// Returns the controller of the kernel with a name, whether built in, a module or loaded by `cwnd
/// kernel`.
fn kernel_controller(name: &str, available: &str) -> Result<TcpController, String> {
    // Setting the option loads a module that is not in the list.
    let known = available.split_ascii_whitespace().any(|known| known == name);
    if known || sys::has_controller(name) {
        return Ok(TcpController::BuiltIn(name.to_owned()));
    }
    let names: Vec<_> = available.split_ascii_whitespace().collect();
    Err(format!("kernel:{name}: this kernel has {}", names.join(", ")))
}

/// Returns the kernel implementation of a controller, or the kernel's built-in controller of that
/// name.
fn tcp_controller(spec: &Spec, available: &str) -> Result<TcpController, String> {
    let unsupported = match Implementation::of(spec) {
        Ok(_) => {
            let paced = spec.algorithm().kind() == Kind::Rate;
            return Ok(TcpController::Law { spec: *spec, paced });
        }
        Err(error) => error.to_string(),
    };
    let built_in = |name: &&str| *name == spec.name() && *spec == Spec::new(spec.algorithm());
    if let Some(name) = available.split_ascii_whitespace().find(built_in) {
        return Ok(TcpController::BuiltIn(name.to_owned()));
    }
    if is_implemented(spec.algorithm()) {
        return Err(unsupported);
    }
    let without = |name: &&str| {
        let algorithm = algorithms().iter().find(|algorithm| algorithm.name == *name);
        algorithm.is_some_and(|algorithm| !is_implemented(algorithm))
    };
    let built_in: Vec<_> = available.split_ascii_whitespace().filter(without).collect();
    let built_in = if built_in.is_empty() { "none".into() } else { built_in.join(", ") };
    Err(format!("{unsupported}; built into this kernel, without parameters: {built_in}"))
}

fn tcp_options(
    tcp: &network::Tcp,
    packet_size: u32,
    bottleneck_rate: Option<f64>,
    available: &str,
) -> Result<TcpOptions, String> {
    let (controller, uses_receiver_clock) = match network::kernel_name(&tcp.controller) {
        Some(name) => (kernel_controller(name, available)?, false),
        None => {
            let spec = parse(&tcp.controller)?;
            // The receiver's clock is read from its timestamps.
            let of_receiver = spec.name() == "aiad" && spec.get("rate") == Some(1.0);
            let law = spec.algorithm().law();
            let of_receiver = of_receiver || law.is_some_and(|it| it.uses(Input::AckedReceivedAt));
            (tcp_controller(&spec, available)?, of_receiver)
        }
    };
    let timestamps = tcp.timestamps.is_some() || uses_receiver_clock;
    let segment = packet_size - TCP_HEADERS;
    Ok(TcpOptions {
        controller,
        segment,
        payload: segment - if timestamps { TIMESTAMPS } else { 0 },
        sack: tcp.recovery == Recovery::Sack,
        ecn: tcp.ecn,
        timestamps,
        initial_window: tcp.initial_window,
        window: tcp.window,
        quick_acks: !tcp.delayed_acks,
        min_rto: tcp.min_rto,
        bottleneck_rate,
    })
}

/// Adds notes on differences of the kernel's TCP from the scenario.
fn note_tcp_differences(flow: &str, tcp: &network::Tcp, options: &TcpOptions, notes: &mut Notes) {
    if let TcpController::BuiltIn(name) = &options.controller {
        notes.add(flow, format!("{name} is the kernel's own, which does not report its cuts."));
    }
    note_payload(flow, options.payload, tcp.packet, notes);
    if tcp.overhead.is_some_and(|max| !max.is_zero()) {
        notes.add(flow, "The host adds no random processing times (`overhead`).");
    }
    if tcp.recovery == Recovery::Reno {
        notes.add(flow, "Without SACK the kernel uses NewReno's recovery (RFC 6582).");
    }
    if !matches!(tcp.conventions, Conventions::Rfc | Conventions::Linux) {
        notes.add(flow, "The conventions of ns-2 are not supported: the kernel follows the RFCs.");
    }
    if tcp.delayed_acks && tcp.ack_delay != Dur::from_millis(40) {
        notes.add(flow, "The kernel chooses the delay of acknowledgements, 40 ms or more.");
    }
    if tcp.ack != TCP_HEADERS {
        notes.add(flow, "Acknowledgements have the kernel's sizes: 40 bytes plus options.");
    }
    if !tcp.syn {
        notes.add(flow, "Connections begin with a handshake.");
    }
    if !tcp.limited_transmit {
        notes.add(flow, "The kernel always uses limited transmit (RFC 3042).");
    }
    if !tcp.byte_counting {
        notes.add(
            flow,
            "The window grows for each acknowledged packet, not for each acknowledgement.",
        );
    }
    if tcp.ecn && !options.controller.reports_marks() {
        notes.add(flow, "Cuts for marks are recorded as cuts for losses.");
    }
}

fn note_payload(flow: &str, payload: u32, packet: u32, notes: &mut Notes) {
    if payload != packet {
        notes.add(
            flow,
            format!(
                "A packet carries {payload} bytes of data instead of {packet}, and counts as one packet."
            ),
        );
    }
}

/// Returns the configuration of a UDT connection.
fn udt_config(controller: &str, packet_size: u32, window: u32) -> Result<Config, String> {
    Ok(Config {
        packet_size,
        flow_window: window,
        send_buffer: window,
        receive_buffer: window,
        connect_timeout: CONNECT_TIMEOUT,
        linger: Dur::ZERO,
        ..Config::new(parse(controller)?)
    })
}

/// Adds notes on differences of UDT sockets from the scenario.
fn note_udt_differences(
    network: &Network,
    flow: &network::Flow,
    payload: u32,
    packet: u32,
    notes: &mut Notes,
) {
    note_payload(&flow.name, payload, packet, notes);
    if matches!(*flow.traffic, Traffic::Tcp(_)) {
        notes
            .add(&flow.name, "Of the options of TCP, UDT has only the packet size and the window.");
    }
    if flow.stop != Time::NEVER {
        notes.add(&flow.name, "After a flow stops, UDT still sends the data in its send buffer.");
    }
    let exempts_acks =
        |&link: &usize| network.links[link].loss > 0.0 && !network.links[link].loss_of_acks;
    if flow.path.iter().chain(&*flow.back).any(exempts_acks) {
        notes.add(&flow.name, "Random loss applies to UDT's control packets too.");
    }
}

/// Adds notes on differences of the QUIC stacks over sockets from the scenario.
#[cfg(feature = "quic")]
fn note_quic_differences(flow: &network::Flow, quic: &network::Quic, notes: &mut Notes) {
    notes.add(
        &flow.name,
        "Retransmissions are the packets that the stack declared lost; data counts once it is read in order.",
    );
    if flow.stop != Time::NEVER {
        notes.add(&flow.name, "After a flow stops, lost data is not retransmitted.");
    }
    if quic.streams > 1 {
        notes.add(&flow.name, "A packet with data of several streams is counted as several.");
    }
}
