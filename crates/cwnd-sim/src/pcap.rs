//! Pcap files of the packets of a link, for Wireshark and similar programs.
//!
//! Packets are IPv4 without a link layer, truncated after the headers. Times are nanoseconds from
//! the start of the run. The source of flow `n` has the address 10.0.0.0 plus `n + 1`, its sink
//! 10.128.0.0 plus `n + 1`. Sequence numbers of TCP are in bytes, so that an analyser detects
//! retransmissions, duplicate acknowledgements and SACK. Paced flows and open-loop sources are UDP.
//!
//! A scenario may have smaller headers than real packets (ns-2 has none). The packet in the file
//! then has the simulated payload, for continuous sequence numbers, and is longer than the
//! simulated packet.

use crate::cast::{low32, saturate16, saturate32, to_index};
use crate::engine::tap::Seen;
use crate::network::{Flow, Network, Recovery, Tcp, Traffic, simulated};
use crate::packet::flags;
use crate::tcp::accecn::ACE_OF_DATA;
use cwnd::Dur;
use cwnd::registry::Kind;
use etherparse::TcpOptionElement::{
    self, MaximumSegmentSize, Noop, SelectiveAcknowledgement, SelectiveAcknowledgementPermitted,
    Timestamp, WindowScale,
};
use etherparse::{IpEcn, IpNumber, Ipv4Header, TcpHeader, UdpHeader};
use pcap_file::pcap::{self, PcapHeader, PcapPacket};
use pcap_file::{DataLink, Endianness, PcapError, TsResolution};
use std::io::{self, Write};

/// The port of sinks: that of the discard service (RFC 863).
const SINK_PORT: u16 = 9;
/// The first port of sources: the first dynamic port (RFC 6335).
const SOURCE_PORT: u16 = 49152;
const TIME_TO_LIVE: u8 = 64;
/// The largest IPv4 packet.
const MAX_PACKET: usize = u16::MAX as usize;
/// RFC 7323's largest window scale.
const MAX_WINDOW_SCALE: u8 = 14;
/// Payloads are not simulated. Checksums are computed as if they were zeros.
static ZEROS: [u8; MAX_PACKET] = [0; MAX_PACKET];

/// Writes the packets of a link to a pcap file.
///
/// ```
/// use cwnd_sim::{Options, PcapWriter, Simulation, scenario::Scenario};
/// use std::sync::{Arc, Mutex};
///
/// let text = r#"
///     duration = "1s"
///     [dumbbell]
///     rate = "2mbit"
///     delay = "10ms"
///     [[flow]]
///     controller = "reno"
/// "#;
/// let network = Scenario::from_toml(text, "one.toml")?.network(1)?;
/// let mut simulation = Simulation::new(&network, 1, &Options::default())?;
/// let pcap = Arc::new(Mutex::new(PcapWriter::new(Vec::new(), &network)?));
/// let writer = pcap.clone();
/// simulation.tap(0, move |seen| writer.lock().unwrap().write(seen).unwrap());
/// simulation.run();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct PcapWriter<W: Write> {
    pcap: pcap::PcapWriter<W>,
    flows: Vec<FlowHeaders>,
    identification: u16,
    bytes: Vec<u8>,
}

/// The addresses and ports of a flow, and the state of its TCP headers.
struct FlowHeaders {
    source: ([u8; 4], u16),
    sink: ([u8; 4], u16),
    tcp: Option<Stream>,
}

/// The values in the headers of a TCP connection.
struct Stream {
    payload: u64,
    /// Bytes of the transfer.
    bytes: u64,
    syn: bool,
    /// Whether the acknowledgement of the SYN was written.
    accepted: bool,
    sack: bool,
    ecn: bool,
    accecn: bool,
    stamps: bool,
    /// The receiver's window in bytes, and the window scale.
    window: u64,
    scale: u8,
}

impl<W: Write> PcapWriter<W> {
    /// Creates a file for packets of `network`.
    ///
    /// # Errors
    /// When `out` cannot be written to.
    pub fn new(out: W, network: &Network) -> io::Result<Self> {
        let header = PcapHeader {
            snaplen: u32::from(u16::MAX),
            datalink: DataLink::RAW,
            ts_resolution: TsResolution::NanoSecond,
            // A run gives the same file on every machine.
            endianness: Endianness::Little,
            ..PcapHeader::default()
        };
        Ok(PcapWriter {
            pcap: pcap::PcapWriter::with_header(out, header).map_err(failure)?,
            flows: network
                .flows
                .iter()
                .enumerate()
                .map(|(n, flow)| FlowHeaders::new(n, flow))
                .collect(),
            identification: 0,
            bytes: Vec::with_capacity(Ipv4Header::MIN_LEN + TcpHeader::MAX_LEN),
        })
    }

    /// Writes the packets of flow number `flow` as UDP datagrams. Paced flows need this call if
    /// their controller is not in the registry.
    pub fn use_datagrams(&mut self, flow: usize) {
        if let Some(wire) = self.flows.get_mut(flow) {
            wire.tcp = None;
        }
    }

    /// Writes a packet.
    ///
    /// # Errors
    /// When the file cannot be written to, the packet is later than the format's 136 years, or its
    /// flow is not in the writer's network.
    pub fn write(&mut self, seen: &Seen) -> io::Result<()> {
        let Some(wire) = self.flows.get_mut(seen.flow as usize) else {
            return Err(io::Error::other(format!("flow {} is not in the network", seen.flow)));
        };
        let from_sink = seen.packet.flags() & flags::ACK != 0;
        let (from, to) =
            if from_sink { (wire.sink, wire.source) } else { (wire.source, wire.sink) };
        let ports = (from.1, to.1);
        let mut ip = Ipv4Header { source: from.0, destination: to.0, ..Ipv4Header::default() };
        ip.time_to_live = TIME_TO_LIVE;
        ip.identification = self.identification;
        self.identification = self.identification.wrapping_add(1);
        self.bytes.clear();
        let length = match &mut wire.tcp {
            Some(stream) => stream.write(&mut self.bytes, &mut ip, ports, seen)?,
            None => write_datagram(&mut self.bytes, &mut ip, ports, seen)?,
        };
        let length = saturate32(length.max(usize::from(seen.packet.size())));
        let at = std::time::Duration::from_nanos(seen.at);
        self.pcap.write_packet(&PcapPacket::new(at, length, &self.bytes)).map_err(failure)?;
        Ok(())
    }

    /// Flushes the file.
    ///
    /// # Errors
    /// When the file cannot be written to.
    pub fn finish(self) -> io::Result<()> {
        self.pcap.into_writer().flush()
    }
}

fn failure(error: PcapError) -> io::Error {
    match error {
        PcapError::IoError(error) => error,
        other => io::Error::other(other.to_string()),
    }
}

impl FlowHeaders {
    fn new(index: usize, flow: &Flow) -> Self {
        let number = low32(index as u64);
        let [_, y, z, w] = number.wrapping_add(1).to_be_bytes();
        let port = SOURCE_PORT | (number & 0x3fff) as u16;
        FlowHeaders {
            source: ([10, y & 127, z, w], port),
            sink: ([10, y | 128, z, w], SINK_PORT),
            tcp: match &*flow.traffic {
                Traffic::Tcp(tcp) if !paced(tcp) => Some(Stream::new(tcp, flow.bytes())),
                _ => None,
            },
        }
    }
}

fn paced(tcp: &Tcp) -> bool {
    simulated(&tcp.controller).is_ok_and(|spec| spec.algorithm().kind() == Kind::Rate)
}

impl Stream {
    fn new(tcp: &Tcp, bytes: Option<u64>) -> Self {
        let window = u64::from(tcp.window) * u64::from(tcp.packet);
        let fits = (0..MAX_WINDOW_SCALE).find(|scale| window >> scale <= u64::from(u16::MAX));
        Stream {
            payload: u64::from(tcp.packet),
            bytes: bytes.unwrap_or(u64::MAX),
            syn: tcp.syn,
            accepted: false,
            sack: tcp.recovery == Recovery::Sack,
            ecn: tcp.ecn,
            accecn: tcp.extensions.accecn,
            stamps: tcp.timestamps.is_some_and(|granularity| granularity > Dur::ZERO),
            window,
            scale: fits.unwrap_or(MAX_WINDOW_SCALE),
        }
    }

    /// Returns the sequence number in bytes of packet `number`. With a SYN, the SYN is packet 0.
    /// Data begin at byte 1.
    fn first_byte(&self, number: u32) -> u64 {
        if self.syn && number == 0 {
            return 0;
        }
        let packets = u64::from(number) - u64::from(self.syn);
        1 + (packets * self.payload).min(self.bytes)
    }

    /// Appends the headers to `bytes` and returns the length of the packet with its payload.
    fn write(
        &mut self,
        bytes: &mut Vec<u8>,
        ip: &mut Ipv4Header,
        ports: (u16, u16),
        seen: &Seen,
    ) -> io::Result<usize> {
        let has = |flag| seen.packet.flags() & flag != 0;
        let number = seen.packet.seq();
        let mut tcp = TcpHeader::new(ports.0, ports.1, 0, 0);
        let mut options = Vec::new();
        let mut payload = 0;
        if has(flags::ACK) {
            tcp.syn = self.syn && number == 1 && !std::mem::replace(&mut self.accepted, true);
            tcp.sequence_number = u32::from(!tcp.syn);
            tcp.ack = true;
            tcp.acknowledgment_number = low32(self.first_byte(number));
            if let Some(feedback) = seen.extra.accecn {
                set_ace(&mut tcp, feedback.ace);
            } else if self.accecn {
                // The SYN was not ECN-capable (RFC 9768 section 3.1.2).
                tcp.cwr = true;
            } else {
                tcp.ece = has(flags::ECE) || tcp.syn && self.ecn;
            }
            self.add_ack_options(&mut options, seen, tcp.syn);
        } else {
            tcp.syn = has(flags::SYN);
            tcp.sequence_number = low32(self.first_byte(number));
            tcp.ack = !tcp.syn;
            tcp.psh = has(flags::PSH);
            tcp.acknowledgment_number = u32::from(!tcp.syn);
            if self.accecn && !tcp.syn {
                set_ace(&mut tcp, ACE_OF_DATA);
            } else {
                tcp.ns = self.accecn;
                tcp.cwr = has(flags::CWR) || tcp.syn && self.ecn;
                tcp.ece = tcp.syn && self.ecn;
            }
            self.add_syn_options(&mut options, tcp.syn);
            self.add_timestamp(&mut options, seen.packet.aux(), 0);
            if !tcp.syn {
                payload = to_index(self.first_byte(number + 1) - self.first_byte(number));
            }
        }
        // The window of a SYN is not scaled (RFC 7323 section 2.2).
        let scale = if tcp.syn { 0 } else { self.scale };
        tcp.window_size = u16::try_from(self.window >> scale).unwrap_or(u16::MAX);
        tcp.set_options(&options).map_err(io::Error::other)?;
        if let Some(option) = seen.extra.accecn.and_then(|feedback| feedback.option) {
            let bytes = [tcp.options.as_slice(), &option.bytes()].concat();
            tcp.set_options_raw(&bytes).map_err(io::Error::other)?;
        }

        ip.protocol = IpNumber::TCP;
        if has(flags::CE) {
            ip.ecn = IpEcn::CongestionExperienced;
        } else if has(flags::ECT) {
            ip.ecn = if has(flags::ECT1) { IpEcn::Ect1 } else { IpEcn::Ect0 };
        }
        let headers = Ipv4Header::MIN_LEN + tcp.header_len();
        let payload = payload.min(MAX_PACKET - headers);
        let checksum = tcp.calc_checksum_ipv4(ip, &[]).map_err(io::Error::other)?;
        tcp.checksum = with_payload_of_zeros(checksum, payload);
        append_ip_header(bytes, ip, headers + payload)?;
        tcp.write(bytes)?;
        Ok(headers + payload)
    }

    /// Adds the options of a SYN.
    fn add_syn_options(&self, options: &mut Vec<TcpOptionElement>, syn: bool) {
        if !syn {
            return;
        }
        options.push(MaximumSegmentSize(u16::try_from(self.payload).unwrap_or(u16::MAX)));
        options.extend([Noop, WindowScale(self.scale)]);
        if self.sack {
            options.extend([Noop, Noop, SelectiveAcknowledgementPermitted]);
        }
    }

    /// Adds the options of an acknowledgement.
    fn add_ack_options(&self, options: &mut Vec<TcpOptionElement>, seen: &Seen, syn: bool) {
        self.add_syn_options(options, syn);
        self.add_timestamp(options, seen.extra.stamp, seen.extra.echo);
        let blocks = &seen.extra.blocks[..seen.extra.count as usize];
        let edge = |number| low32(self.first_byte(number));
        let mut ends = blocks.iter().map(|block| (edge(block.0), edge(block.1)));
        if let Some(first) = ends.next() {
            let more = [ends.next(), ends.next(), None];
            options.extend([Noop, Noop, SelectiveAcknowledgement(first, more)]);
        }
    }

    fn add_timestamp(&self, options: &mut Vec<TcpOptionElement>, stamp: u32, echo: u32) {
        if self.stamps {
            options.extend([Noop, Noop, Timestamp(stamp, echo)]);
        }
    }
}

/// Sets the ACE field (RFC 9768 section 3.2.2). AE was the nonce sum.
fn set_ace(tcp: &mut TcpHeader, ace: u8) {
    [tcp.ns, tcp.cwr, tcp.ece] = [4, 2, 1].map(|bit| ace & bit != 0);
}

/// Returns the Internet checksum (RFC 1071) of a packet from that without its payload. A payload of
/// zeros changes only the length in the pseudo-header.
fn with_payload_of_zeros(checksum: u16, payload: usize) -> u16 {
    let sum = u32::from(!checksum) + saturate32(payload);
    !saturate16((sum & 0xffff) as usize + (sum >> 16) as usize)
}

/// Appends the headers of a UDP datagram to `bytes` and returns the length of the packet.
fn write_datagram(
    bytes: &mut Vec<u8>,
    ip: &mut Ipv4Header,
    ports: (u16, u16),
    seen: &Seen,
) -> io::Result<usize> {
    let headers = Ipv4Header::MIN_LEN + UdpHeader::LEN;
    let length = usize::from(seen.packet.size()).max(headers);
    ip.protocol = IpNumber::UDP;
    let zeros = &ZEROS[..length - headers];
    let udp =
        UdpHeader::with_ipv4_checksum(ports.0, ports.1, ip, zeros).map_err(io::Error::other)?;
    append_ip_header(bytes, ip, length)?;
    udp.write(bytes)?;
    Ok(length)
}

fn append_ip_header(bytes: &mut Vec<u8>, ip: &mut Ipv4Header, length: usize) -> io::Result<()> {
    ip.total_len = u16::try_from(length).map_err(io::Error::other)?;
    ip.header_checksum = ip.calc_header_checksum();
    ip.write_raw(bytes)
}
