//! Output of the pcap writer, read by independent parsers.

use crate::common::{RED, ms, packets, pair, scenario, tcp, wire};
use cwnd_sim::network::{Network, Queue, Red, Tcp, TcpExtensions, Traffic};
use etherparse::{
    IpEcn, IpNumber, Ipv4Header, TcpHeaderSlice, TcpOptionElement, TcpOptionReadError,
    UdpHeaderSlice,
};
use pcap_file::DataLink;
use pcap_file::pcap::PcapReader;
use std::collections::HashSet;

/// A parsed packet.
struct Read {
    at: u64,
    length: u32,
    total: u16,
    source: [u8; 4],
    sink: [u8; 4],
    ecn: IpEcn,
    transport: Transport,
}

enum Transport {
    Tcp(etherparse::TcpHeader),
    Udp(etherparse::UdpHeader),
}

impl Read {
    fn tcp(&self) -> &etherparse::TcpHeader {
        match &self.transport {
            Transport::Tcp(header) => header,
            Transport::Udp(_) => panic!("UDP"),
        }
    }

    fn payload(&self) -> u32 {
        u32::from(self.total) - 20 - self.tcp().header_len() as u32
    }

    fn blocks(&self) -> Vec<(u32, u32)> {
        let blocks = self.tcp().options_iterator().find_map(|option| match option {
            Ok(TcpOptionElement::SelectiveAcknowledgement(first, more)) => {
                Some([Some(first)].into_iter().chain(more).flatten().collect())
            }
            // AccECN, which the parser does not know.
            Ok(_) | Err(TcpOptionReadError::UnknownId(174)) => None,
            Err(error) => panic!("{error}"),
        });
        blocks.unwrap_or_default()
    }
}

/// Runs the network and parses the packets that crossed a link, checking all checksums and lengths.
fn capture(network: &Network, link: usize) -> Vec<Read> {
    let bytes = wire::capture(network, 1, link);
    let mut reader = PcapReader::new(&bytes[..]).unwrap();
    assert_eq!(reader.header().datalink, DataLink::RAW);
    let mut all: Vec<Read> = Vec::new();
    while let Some(packet) = reader.next_packet() {
        let packet = packet.unwrap();
        let (ip, header) = Ipv4Header::from_slice(&packet.data).unwrap();
        assert_eq!(ip.header_checksum, ip.calc_header_checksum());
        let transport = match ip.protocol {
            IpNumber::TCP => {
                let tcp = TcpHeaderSlice::from_slice(header).unwrap().to_header();
                assert_eq!(packet.data.len(), 20 + tcp.header_len());
                let zeros = vec![0; usize::from(ip.total_len) - packet.data.len()];
                assert_eq!(tcp.checksum, tcp.calc_checksum_ipv4(&ip, &zeros).unwrap());
                Transport::Tcp(tcp)
            }
            IpNumber::UDP => {
                let udp = UdpHeaderSlice::from_slice(header).unwrap().to_header();
                assert_eq!(udp.length, ip.total_len - 20);
                let zeros = vec![0; usize::from(ip.total_len) - packet.data.len()];
                assert_eq!(udp.checksum, udp.calc_checksum_ipv4(&ip, &zeros).unwrap());
                Transport::Udp(udp)
            }
            _ => panic!("neither TCP nor UDP"),
        };
        assert!(packet.orig_len >= u32::from(ip.total_len));
        let at = packet.timestamp.as_nanos() as u64;
        assert!(all.last().is_none_or(|before| before.at <= at));
        let (source, sink) = (ip.source, ip.destination);
        let (length, total, ecn) = (packet.orig_len, ip.total_len, ip.ecn);
        all.push(Read { at, length, total, source, sink, ecn, transport });
    }
    assert!(all.len() > 10);
    all
}

/// 2 Mb/s, 20 ms in each direction and a queue of three packets: slow start loses many packets at
/// once.
fn lossy(traffic: Vec<Traffic>) -> Network {
    pair(2e6, ms(10), packets(3), traffic, ms(2000))
}

/// Marks a tenth of the packets that find more than a few others.
const SHORT: Red = Red { min: 3.0, max: 9.0, weight: 0.2, wait: false, ..RED };

/// 104 packets of 960 bytes and one of 660.
fn with_handshake() -> Tcp {
    Tcp { syn: true, timestamps: Some(ms(1)), bytes: Some(100_500), ..tcp("reno") }
}

#[test]
fn data_has_sequence_numbers_in_bytes_and_retransmissions() {
    let mut network = lossy(vec![Traffic::Tcp(with_handshake())]);
    network.links[0].loss = 0.05;
    let data = capture(&network, 0);
    assert_eq!((data[0].source, data[0].sink), ([10, 0, 0, 1], [10, 128, 0, 1]));
    let syn = data[0].tcp();
    assert!(syn.syn && !syn.ack && syn.sequence_number == 0);
    let options: Vec<_> = syn.options_iterator().map(Result::unwrap).collect();
    assert!(options.contains(&TcpOptionElement::MaximumSegmentSize(960)));
    assert!(options.contains(&TcpOptionElement::SelectiveAcknowledgementPermitted));
    // 960e6 bytes fit into 16 bits only after a shift by 14 bits.
    assert!(options.contains(&TcpOptionElement::WindowScale(14)));
    // The simulated 40 bytes take 160 us at 2 Mb/s. The written packet is longer by its options.
    assert_eq!(data[0].at, 160_000);
    assert_eq!(data[0].length, 20 + 20 + 24);

    let (mut seen, mut next, mut again) = (HashSet::new(), 1, 0);
    for packet in &data[1..] {
        let number = packet.tcp().sequence_number;
        assert!(packet.tcp().ack && !packet.tcp().syn);
        assert_eq!(packet.payload(), if number == 1 + 104 * 960 { 660 } else { 960 });
        assert_eq!((number - 1) % 960, 0);
        again += u32::from(!seen.insert(number));
        next = next.max(number + packet.payload());
    }
    assert_eq!(next, 1 + 100_500);
    assert!(again > 0);
    assert_eq!(seen.len(), 105);
}

/// Linux sets PSH on the last packet of a segment of several (`__tcp_transmit_skb`) and of the
/// data. The receiver acknowledges it at once, also if it is the first packet after an
/// acknowledgement (`tcp_measure_rcv_mss`).
#[test]
fn a_segment_ends_with_psh_and_is_acknowledged_at_once() {
    let text = "tcp.conventions = \"linux\"\nduration = 10\n[dumbbell]\nrate = \"10mbit\"\n\
                delay = \"10ms\"\nqueue = \"4000p\"\n[[flow]]\ncontroller = \"reno\"\nbytes = 2000001\n";
    let network = scenario(text, 1);
    let data = capture(&network, 0);
    let acks: HashSet<u32> =
        capture(&network, 1).iter().map(|ack| ack.tcp().acknowledgment_number).collect();
    let pushed: Vec<_> = data.iter().filter(|packet| packet.tcp().psh).collect();
    assert!((data.len() / 4..data.len() * 2 / 3).contains(&pushed.len()), "{}", pushed.len());
    assert!(acks.len() < data.len() * 2 / 3, "{}", acks.len());
    for packet in pushed {
        assert!(acks.contains(&(packet.tcp().sequence_number + packet.payload())));
    }
    assert!(data.last().is_some_and(|last| last.tcp().psh));
}

#[test]
fn acknowledgements_carry_sack_blocks_and_timestamps() {
    let network = lossy(vec![Traffic::Tcp(with_handshake())]);
    let acks = capture(&network, 1);
    assert_eq!((acks[0].source, acks[0].sink), ([10, 128, 0, 1], [10, 0, 0, 1]));
    assert!(acks[0].tcp().syn && acks[0].tcp().acknowledgment_number == 1);
    let (mut duplicates, mut with_blocks, mut last) = (0, 0, 1);
    for packet in &acks[1..] {
        let header = packet.tcp();
        assert!(!header.syn && header.ack && packet.payload() == 0);
        assert_eq!(header.sequence_number, 1);
        let number = header.acknowledgment_number;
        assert!(number >= last);
        let blocks = packet.blocks();
        for &(start, end) in &blocks {
            assert!(number < start && start < end && end <= 1 + 100_500);
            assert_eq!((start - 1) % 960, 0);
        }
        // The options have the padded size that the simulator counts.
        let options = 12 + if blocks.is_empty() { 0 } else { 4 + 8 * blocks.len() };
        assert_eq!(header.header_len(), 20 + options);
        assert_eq!(packet.length, 40 + options as u32);
        let stamp = header.options_iterator().find_map(|option| match option.unwrap() {
            TcpOptionElement::Timestamp(stamp, echo) => Some((stamp, echo)),
            _ => None,
        });
        let (stamp, echo) = stamp.unwrap();
        // The timestamp clock has a granularity of 1 ms. The echoed packet was sent at least 10 ms
        // ago. The return path has no transmission time.
        assert_eq!(u64::from(stamp), packet.at / 1_000_000);
        assert!(echo + 10 <= stamp);
        duplicates += u32::from(number == last);
        with_blocks += u32::from(!blocks.is_empty());
        last = number;
    }
    assert_eq!(last, 1 + 100_500);
    assert!(duplicates >= 3 && with_blocks >= duplicates);
}

#[test]
fn marks_are_written_and_echoed() {
    let tcp = Tcp { ecn: true, syn: true, ..tcp("reno") };
    let mut network = lossy(vec![Traffic::Tcp(tcp)]);
    network.links[0].queue = Queue::Red(Red { limit: 50, ..SHORT });
    let data = capture(&network, 0);
    assert!(data[0].tcp().ece && data[0].tcp().cwr && data[0].ecn == IpEcn::NotEct);
    let data = &data[1..];
    assert!(data.iter().all(|packet| packet.ecn != IpEcn::NotEct));
    let marked = data.iter().filter(|packet| packet.ecn == IpEcn::CongestionExperienced).count();
    let reduced = data.iter().filter(|packet| packet.tcp().cwr).count();
    assert!(reduced > 1 && marked >= reduced && marked < data.len() / 2);
    let acks = capture(&network, 1);
    assert!(acks[0].tcp().syn && acks[0].tcp().ece && !acks[0].tcp().cwr);
    let echoes = acks[1..].iter().filter(|packet| packet.tcp().ece).count();
    // ECE is set until CWR arrives, for about one round trip.
    assert!(echoes > marked);
}

/// RFC 9768 sections 3.1.1 and 3.2.
#[test]
fn accecn_is_negotiated_and_written() {
    let extensions = TcpExtensions { accecn: true, ..TcpExtensions::default() };
    let tcp = Tcp { ecn: true, l4s: true, extensions, ..with_handshake() };
    let mut network = lossy(vec![Traffic::Tcp(tcp)]);
    network.links[0].queue = Queue::Red(Red { limit: 20, ..SHORT });
    network.links[0].loss = 0.02;
    let flags = |packet: &Read| [packet.tcp().ns, packet.tcp().cwr, packet.tcp().ece];
    let data = capture(&network, 0);
    assert_eq!((flags(&data[0]), data[0].ecn), ([true; 3], IpEcn::NotEct));
    // Data packets carry the receiver's initial counter, 5.
    assert!(data[1..].iter().all(|packet| flags(packet) == [true, false, true]));
    let marked = data.iter().filter(|packet| packet.ecn == IpEcn::CongestionExperienced).count();
    assert!(marked > 8);

    let acks = capture(&network, 1);
    // The SYN was not ECN-capable.
    assert!(acks[0].tcp().syn);
    assert_eq!(flags(&acks[0]), [false, true, false]);
    let (mut cep, mut bytes) = (5, [1, 0]);
    let mut blocks = 0;
    for packet in &acks[1..] {
        let [ae, cwr, ece] = flags(packet).map(u32::from);
        let ace = 4 * ae + 2 * cwr + ece;
        cep += (ace + 8 - cep % 8) % 8;
        blocks = blocks.max(packet.blocks().len());
        // The option is the last one, behind up to three bytes of padding.
        let options = packet.tcp().options.as_slice();
        let option = [8, 5].into_iter().find_map(|length: usize| {
            let option = &options[options.len().checked_sub(length)?..];
            (option[..2] == [174, length as u8]).then_some(&option[2..])
        });
        for (count, field) in bytes.iter_mut().zip(option.unwrap_or_default().chunks(3)) {
            let now = u32::from_be_bytes([0, field[0], field[1], field[2]]);
            assert!(now >= *count);
            *count = now;
        }
        assert!(packet.tcp().header_len() <= 60);
        assert_eq!(packet.length as usize, 20 + packet.tcp().header_len());
    }
    assert_eq!(blocks, 2);
    // Lost packets are not counted.
    let [unmarked, ce] = bytes;
    assert!(cep - 5 <= marked as u32 && cep - 5 + 5 > marked as u32);
    assert_eq!(ce, 960 * (cep - 5));
    // All data arrived, and hardly any of it twice.
    assert!((100_500..105_000).contains(&(unmarked - 1 + ce)));
}

#[test]
fn packets_smaller_than_their_headers_are_written() {
    let tiny = Tcp { packet: 1, header: 0, ack: 1, timestamps: Some(ms(1)), ..tcp("reno") };
    let large = Tcp { packet: 65_535, header: 0, initial_window: 1, ..tcp("reno") };
    let paced = Tcp { packet: 1, header: 0, ack: 1, ..tcp("udt") };
    let cbr = Traffic::Cbr { rate: 1e3, packet: 1, schedule: None, jitter: 0.0 };
    let network = lossy(vec![Traffic::Tcp(tiny), Traffic::Tcp(large), Traffic::Tcp(paced), cbr]);
    let data = capture(&network, 0);
    let of_flow = |flow| data.iter().filter(move |packet| packet.source == [10, 0, 0, flow]);
    assert!(of_flow(1).all(|packet| packet.payload() == 1 && packet.length == 20 + 20 + 12 + 1));
    assert!(of_flow(2).all(|packet| packet.length == 65_535 && packet.payload() == 65_535 - 40));
    assert!(of_flow(3).chain(of_flow(4)).all(|packet| packet.length == 28));
    assert!((1..=4).all(|flow| of_flow(flow).count() > 0));
    capture(&network, 1);
}

#[test]
fn other_traffic_is_written_as_udp() {
    let pareto = Traffic::Pareto { rate: 1e6, packet: 500, on: ms(100), off: ms(100), shape: 1.5 };
    let network = lossy(vec![Traffic::Tcp(tcp("daimd")), pareto]);
    for packet in capture(&network, 0) {
        let Transport::Udp(header) = &packet.transport else { panic!("not UDP") };
        assert_eq!(packet.length, u32::from(packet.total));
        assert_eq!(packet.length, if packet.source[3] == 1 { 1000 } else { 500 });
        assert_eq!(header.destination_port, 9);
    }
    assert!(capture(&network, 1).iter().all(|packet| packet.length == 40));
}

#[test]
fn addresses_differ_for_a_million_flows() {
    // The address holds the flow's number in 23 bits; the test covers the byte boundaries.
    let cbr = Traffic::Cbr { rate: 1e6, packet: 100, schedule: None, jitter: 0.0 };
    let mut network = lossy(vec![cbr]);
    network.sample = network.duration;
    let mut idle = network.flows[0].clone();
    idle.start = cwnd::Time::NEVER;
    let busy = network.flows[0].clone();
    for count in [255, 256, 65_535] {
        network.flows = vec![idle.clone(); count];
        network.flows.push(busy.clone());
        let seen = capture(&network, 0);
        let number = (count as u32 + 1).to_be_bytes();
        assert_eq!(seen[0].source, [10, number[1], number[2], number[3]]);
        assert_eq!(seen[0].sink, [10, number[1] | 128, number[2], number[3]]);
    }
}
