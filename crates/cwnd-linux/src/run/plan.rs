//! What is to be done for each flow of a scenario, and what of the scenario cannot be.

use std::collections::BTreeMap;
use std::fs;
use std::net::Ipv4Addr;

use cwnd::registry::{Kind, algorithms};
use cwnd::{Dur, Spec, Time};
use cwnd_sim::network::{self, Conventions, Network, Recovery, Traffic};
use cwnd_udt::Config;
use cwnd_udt::handshake::MIN_PACKET_SIZE;
use cwnd_udt::packet::{HEADER, IP_UDP_HEADERS};

use super::{Error, On};
use crate::bpf::{IMPLEMENTED, Implementation};
use crate::emulate;

/// Bytes of IP's and TCP's headers, and of the option for timestamps.
const TCP_HEADERS: u32 = 40;
const TIMESTAMPS: u32 = 12;
/// The smallest `TCP_MAXSEG`.
const LEAST_SEGMENT: u32 = 88;
/// Bytes of IP, UDP and UDT.
const UDT_HEADERS: u32 = (HEADER + IP_UDP_HEADERS) as u32;
/// The largest packet that the devices carry.
const LARGEST: u32 = 1500;
/// Where the kernel tells what controllers it has.
const OFFERED: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";
/// How long a handshake may take: whoever gave up would measure nothing.
const CONNECT_TIMEOUT: Dur = Dur::from_millis(24 * 3_600_000);

/// Sentences, and the flows that they are about.
#[derive(Default)]
pub(super) struct Notes {
    about: BTreeMap<String, Vec<String>>,
    /// Flows of which there may be something to say.
    flows: usize,
    more: Vec<String>,
}

impl Notes {
    fn add(&mut self, flow: &str, sentence: impl Into<String>) {
        self.about.entry(sentence.into()).or_default().push(flow.to_owned());
    }

    /// Adds sentences that name their flows themselves.
    pub(super) fn extend(&mut self, sentences: impl IntoIterator<Item = String>) {
        self.more.extend(sentences);
    }

    /// All of them; flows are named where not all are meant.
    pub(super) fn sentences(self) -> Vec<String> {
        let said = |(sentence, flows): (String, Vec<String>)| match flows.as_slice() {
            all if all.len() == self.flows => sentence,
            [first, second, third, rest @ ..] if !rest.is_empty() => {
                format!("{first}, {second}, {third} and {} more: {sentence}", rest.len())
            }
            some => format!("{}: {sentence}", some.join(", ")),
        };
        self.about.into_iter().map(said).chain(self.more).collect()
    }
}

/// A controller as the kernel has it.
pub(super) enum Kernel {
    /// One of its own, by name.
    Own(String),
    /// A law of this package, to be loaded.
    Law { spec: Spec, paced: bool },
}

/// How a connection of the kernel's TCP begins and goes on.
pub(super) struct TcpOptions {
    pub controller: Kernel,
    /// `TCP_MAXSEG`.
    pub segment: u32,
    /// Bytes of data in a packet.
    pub payload: u32,
    pub sack: bool,
    pub ecn: bool,
    pub timestamps: bool,
    /// Packets.
    pub initial_window: u32,
    pub window: u32,
    pub quick_acks: bool,
    pub least_timeout: Dur,
    /// The rate of the slowest link on the way, in bits per second.
    pub slowest: Option<f64>,
}

pub(super) enum Protocol {
    Tcp(TcpOptions),
    Udt(Box<Config>),
    Datagrams(Traffic),
}

/// What is to be done for a flow.
pub(super) struct Flow {
    pub name: String,
    pub index: u32,
    /// The addresses of its source and its sink.
    pub ends: [Ipv4Addr; 2],
    pub start: Time,
    pub stop: Time,
    /// Packets to send; without end when `None`.
    pub packets: Option<u64>,
    /// Bytes of a packet on the links.
    pub wire: u32,
    /// The window in packets before there is one.
    pub initial_window: f64,
    pub protocol: Protocol,
}

pub(super) struct Plan {
    pub flows: Vec<Flow>,
}

impl Plan {
    /// What is to be done for `network`.
    ///
    /// # Errors
    /// What cannot be done and must not be left out.
    pub(super) fn new(network: &Network, on: On, notes: &mut Notes) -> Result<Self, Error> {
        let offered = fs::read_to_string(OFFERED).unwrap_or_default();
        let flow = |(index, spec): (usize, &network::Flow)| {
            let planned = plan(network, spec, on, &offered, notes);
            let (wire, packets, initial_window, protocol) =
                planned.map_err(|why| Error::Scenario(format!("flow {}: {why}", spec.name)))?;
            let (name, index) = (spec.name.clone(), index as u32);
            let (start, stop) = (spec.start, spec.stop);
            let ends = emulate::flow_addresses(index);
            Ok(Flow { name, index, ends, start, stop, packets, wire, initial_window, protocol })
        };
        let flows = network.flows.iter().enumerate().map(flow).collect::<Result<_, Error>>()?;
        let answered =
            |flow: &&network::Flow| matches!(flow.traffic, Traffic::Tcp(_) | Traffic::Udt(_));
        notes.flows = network.flows.iter().filter(answered).count();
        Ok(Plan { flows })
    }
}

type Planned = (u32, Option<u64>, f64, Protocol);

fn plan(
    network: &Network,
    flow: &network::Flow,
    on: On,
    offered: &str,
    notes: &mut Notes,
) -> Result<Planned, String> {
    let packets = |bytes: Option<u64>, packet: u32| bytes.map(|all| all.div_ceil(packet.into()));
    match &flow.traffic {
        Traffic::Tcp(tcp) if on == On::Linux => {
            let way = flow.path.iter().chain(&flow.back);
            let rates = way.filter_map(|&link| network.links[link].rate);
            let slowest = rates.min_by(f64::total_cmp);
            let wire = size(tcp.packet + tcp.header, TCP_HEADERS + LEAST_SEGMENT)?;
            let options = options(tcp, wire, slowest, offered)?;
            differences(&flow.name, tcp, &options, notes);
            let window = f64::from(options.initial_window);
            Ok((wire, packets(tcp.bytes, tcp.packet), window, Protocol::Tcp(options)))
        }
        Traffic::Tcp(network::Tcp { controller, bytes, packet, header, window, .. })
        | Traffic::Udt(network::Udt { controller, bytes, packet, header, window }) => {
            let wire = size(packet + header, MIN_PACKET_SIZE)?;
            let config = udt(controller, wire, *window)?;
            udt_differences(network, flow, wire - UDT_HEADERS, *packet, notes);
            let initial = config.settings(wire, *window).initial_window.get();
            Ok((wire, packets(*bytes, *packet), initial, Protocol::Udt(Box::new(config))))
        }
        Traffic::Cbr { packet, .. } | Traffic::Pareto { packet, .. } => {
            let wire = size(*packet, IP_UDP_HEADERS as u32)?;
            Ok((wire, None, f64::NAN, Protocol::Datagrams(flow.traffic.clone())))
        }
    }
}

/// A packet's size on the links, if it is one that can be sent.
fn size(wire: u32, least: u32) -> Result<u32, String> {
    if (least..=LARGEST).contains(&wire) {
        return Ok(wire);
    }
    Err(format!(
        "packets of {wire} bytes with their headers; {least} to {LARGEST} can be sent here"
    ))
}

fn parse(controller: &str) -> Result<Spec, String> {
    if cwnd_sim::scenario::custom_name(controller).is_some() {
        return Err(format!("{controller}: controllers written in Python run on sim only"));
    }
    Spec::parse(controller).map_err(|error| error.to_string())
}

/// The kernel's form of a controller, or its own controller of that name.
fn kernel(spec: &Spec, offered: &str) -> Result<Kernel, String> {
    let refused = match Implementation::of(spec) {
        Ok(_) => {
            let paced = spec.algorithm().kind() == Kind::Rate;
            return Ok(Kernel::Law { spec: *spec, paced });
        }
        Err(error) => error.to_string(),
    };
    let own = |name: &&str| *name == spec.name() && *spec == Spec::new(spec.algorithm());
    if let Some(name) = offered.split_ascii_whitespace().find(own) {
        return Ok(Kernel::Own(name.to_owned()));
    }
    if IMPLEMENTED.contains(&spec.name()) {
        return Err(refused);
    }
    let known = |name: &&str| algorithms().iter().any(|algorithm| algorithm.name == *name);
    let own: Vec<_> = offered
        .split_ascii_whitespace()
        .filter(|name| known(name) && !IMPLEMENTED.contains(name))
        .collect();
    let own = if own.is_empty() { "nothing else".into() } else { own.join(", ") };
    Err(format!("{refused}; of its own the kernel offers {own}, without parameters"))
}

fn options(
    tcp: &network::Tcp,
    wire: u32,
    slowest: Option<f64>,
    offered: &str,
) -> Result<TcpOptions, String> {
    let spec = parse(&tcp.controller)?;
    let controller = kernel(&spec, offered)?;
    // The receiver's clock is that of its timestamps.
    let needed = spec.name() == "aiad" && spec.get("rate") == Some(1.0);
    let timestamps = tcp.timestamps.is_some() || needed;
    let segment = wire - TCP_HEADERS;
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
        least_timeout: tcp.min_rto,
        slowest,
    })
}

/// Notes what the kernel's TCP does otherwise.
fn differences(flow: &str, tcp: &network::Tcp, options: &TcpOptions, notes: &mut Notes) {
    if let Kernel::Own(name) = &options.controller {
        notes.add(flow, format!("{name} is the kernel's own, whose cuts are not told."));
    }
    carried(flow, options.payload, tcp.packet, notes);
    if tcp.recovery == Recovery::Reno {
        notes.add(flow, "Without SACK the kernel recovers as NewReno does (RFC 6582).");
    }
    if tcp.conventions != Conventions::Rfc {
        notes.add(flow, "Conventions of ns-2 are not the kernel's: it does as RFCs say.");
    }
    if tcp.delayed_acks && tcp.ack_delay != Dur::from_millis(40) {
        notes.add(
            flow,
            "The kernel chooses by how much acknowledgements are delayed, 40 ms or more.",
        );
    }
    if tcp.ack != TCP_HEADERS + if options.timestamps { TIMESTAMPS } else { 0 } {
        notes.add(flow, "Acknowledgements have the kernel's sizes: 40 bytes and their options.");
    }
    if !tcp.syn {
        notes.add(flow, "Connections begin with a handshake.");
    }
    if !tcp.limited_transmit {
        notes.add(
            flow,
            "The kernel always transmits on first duplicate acknowledgements (RFC 3042).",
        );
    }
    if !tcp.byte_counting {
        notes.add(flow, "The kernel counts packets, not acknowledgements, when a window grows.");
    }
    if !tcp.overhead.is_zero() {
        notes.add(flow, "There is no random delay before packets are sent.");
    }
    if tcp.ecn {
        notes.add(flow, "Cuts that answer a mark are told as those that answer a loss.");
    }
}

fn carried(flow: &str, payload: u32, packet: u32, notes: &mut Notes) {
    if payload != packet {
        notes.add(
            flow,
            format!(
                "A packet carries {payload} bytes of data instead of {packet}, and counts as one."
            ),
        );
    }
}

/// What a UDT connection is made with.
fn udt(controller: &str, wire: u32, window: u32) -> Result<Config, String> {
    Ok(Config {
        packet_size: wire,
        flow_window: window,
        send_buffer: window,
        receive_buffer: window,
        connect_timeout: CONNECT_TIMEOUT,
        linger: Dur::ZERO,
        ..Config::new(parse(controller)?)
    })
}

/// Notes what UDT's sockets do otherwise.
fn udt_differences(
    network: &Network,
    flow: &network::Flow,
    payload: u32,
    packet: u32,
    notes: &mut Notes,
) {
    carried(&flow.name, payload, packet, notes);
    if matches!(flow.traffic, Traffic::Tcp(_)) {
        notes.add(
            &flow.name,
            "TCP's options are not UDT's: of them the packet and the window are kept.",
        );
    }
    if flow.stop != Time::NEVER {
        notes.add(&flow.name, "What UDT's buffer holds is still sent after a flow stops.");
    }
    let spares =
        |&link: &usize| network.links[link].loss > 0.0 && !network.links[link].loss_of_acks;
    if flow.path.iter().chain(&flow.back).any(spares) {
        notes.add(&flow.name, "Random loss takes UDT's control packets too.");
    }
}
