//! The packets of a link, read from a pcap file.

use cwnd_sim::network::Network;
use cwnd_sim::{Options, PcapWriter, Simulation};
use etherparse::{IpEcn, Ipv4Header, TcpHeader};
use pcap_file::pcap::PcapReader;
use std::io::{self, Write};
use std::sync::{Arc, Mutex};

/// A file in memory, shared with its writer.
#[derive(Clone, Default)]
struct Memory(Arc<Mutex<Vec<u8>>>);

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A capture of the packets that cross a link.
pub(crate) struct Capture {
    file: Memory,
    writer: Arc<Mutex<PcapWriter<Memory>>>,
}

impl Capture {
    /// Captures what crosses link number `link`.
    pub(crate) fn of(simulation: &mut Simulation, network: &Network, link: usize) -> Self {
        let file = Memory::default();
        let writer = Arc::new(Mutex::new(PcapWriter::new(file.clone(), network).unwrap()));
        let tap = writer.clone();
        simulation.tap(link, move |seen| tap.lock().unwrap().write(seen).unwrap());
        Capture { file, writer }
    }

    /// Returns the pcap file. The simulation must have ended.
    pub(crate) fn finish(self) -> Vec<u8> {
        let writer = Arc::into_inner(self.writer).unwrap().into_inner().unwrap();
        writer.finish().unwrap();
        self.file.0.lock().unwrap().clone()
    }
}

/// Runs a network and returns the pcap file of link number `link`.
pub(crate) fn capture(network: &Network, seed: u64, link: usize) -> Vec<u8> {
    let mut simulation = Simulation::new(network, seed, &Options::default()).unwrap();
    let capture = Capture::of(&mut simulation, network, link);
    simulation.run();
    drop(simulation.finish());
    capture.finish()
}

/// A TCP packet of flow 0 at the end of its transmission on a link.
#[derive(Clone, Debug)]
pub(crate) struct Crossed {
    /// Milliseconds since the start.
    pub at: f64,
    /// The number of the data packet, or the next expected number of an acknowledgement.
    pub number: u32,
    pub tcp: TcpHeader,
    pub marked: bool,
}

/// Returns the packets of flow 0 on a link. Packets of the flow have 960 bytes of payload.
pub(crate) fn crossed(network: &Network, seed: u64, link: usize) -> Vec<Crossed> {
    let bytes = capture(network, seed, link);
    let mut reader = PcapReader::new(&bytes[..]).unwrap();
    let mut all = Vec::new();
    while let Some(packet) = reader.next_packet() {
        let packet = packet.unwrap();
        let (ip, rest) = Ipv4Header::from_slice(&packet.data).unwrap();
        let answer = ip.source == [10, 128, 0, 1];
        if ip.source != [10, 0, 0, 1] && !answer {
            continue;
        }
        let (tcp, _) = TcpHeader::from_slice(rest).unwrap();
        let byte = if answer { tcp.acknowledgment_number } else { tcp.sequence_number };
        all.push(Crossed {
            at: packet.timestamp.as_nanos() as f64 / 1e6,
            number: byte.saturating_sub(1) / 960,
            marked: ip.ecn == IpEcn::CongestionExperienced,
            tcp,
        });
    }
    all
}
