use super::*;
use crate::testing::request;
use proptest::prelude::*;

/// Encodes words in network order.
fn wire(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

fn encoded(control: &Control) -> Vec<u8> {
    let mut buffer = [0xee; 1500];
    let length = control.encode(7, 9, &mut buffer);
    buffer[..length].to_vec()
}

#[test]
fn a_data_packet_has_the_layout_of_the_draft() {
    let mut bytes = wire(&[0x7fff_ffff, 0xe000_0005, 1234, 42]);
    bytes.extend_from_slice(b"hello");
    let packet = Packet::parse(&bytes).unwrap();
    assert_eq!((packet.timestamp, packet.destination), (1234, 42));
    let Body::Data(data) = packet.body else { panic!("control") };
    assert_eq!((data.seq, data.payload), (Seq::MAX, b"hello".as_slice()));
    let message = data.message;
    assert!(message.is_first() && message.is_last() && message.in_order());
    assert_eq!(message.number().value(), 5);
    let mut header = [0; HEADER];
    write_data_header(data.seq, message, 1234, 42, &mut header);
    assert_eq!(header, bytes[..HEADER]);
}

/// The draft's example of a loss report.
#[test]
fn loss_lists_are_compressed() {
    let mut buffer = [0; 64];
    let mut writer = NakWriter::new(&mut buffer);
    for (first, last) in [(2, 2), (6, 11), (14, 14)] {
        assert!(writer.push(Range { first: Seq::new(first), last: Seq::new(last) }));
    }
    let losses = writer.finish().unwrap();
    assert_eq!(losses.as_bytes(), wire(&[2, 0x8000_0006, 11, 14]));
    let all: Vec<_> = losses.map(|range| (range.first.value(), range.last.value())).collect();
    assert_eq!(all, [(2, 2), (6, 11), (14, 14)]);
}

#[test]
fn empty_control_packets_are_padded_to_twenty_bytes() {
    let ack2 = encoded(&Control::Ack2(AckNo::new(3)));
    assert_eq!(ack2, wire(&[0x8006_0000, 3, 7, 9, 0]));
    assert_eq!(encoded(&Control::KeepAlive), wire(&[0x8001_0000, 0, 7, 9, 0]));
    assert_eq!(encoded(&Control::Shutdown), wire(&[0x8005_0000, 0, 7, 9, 0]));
}

#[test]
fn invalid_lengths_are_rejected() {
    assert_eq!(Packet::parse(&[0; 15]), Err(Malformed::Short(15)));
    for (kind, lengths) in
        [(0, vec![0, 44]), (2, vec![0, 8, 20, 28]), (6, vec![8]), (7, vec![4, 12]), (3, vec![0])]
    {
        for length in lengths {
            let mut bytes = wire(&[CONTROL | kind << 16, 0, 0, 1]);
            bytes.resize(HEADER + length, 0);
            assert!(Packet::parse(&bytes).is_err(), "type {kind} with {length} bytes");
        }
    }
    for losses in [&[0x8000_0001][..], &[0x8000_0005, 0x8000_0006], &[0x8000_0005, 4]] {
        assert_eq!(Losses::parse(&wire(losses)), None);
    }
}

#[test]
fn a_packet_that_does_not_fit_is_not_written() {
    let handshake = Control::Handshake(request());
    assert_eq!(handshake.encode(0, 0, &mut [0; 63]), 0);
    assert_eq!(handshake.encode(0, 0, &mut [0; 64]), 64);
}

fn control() -> impl Strategy<Value = Control<'static>> {
    let seq = || any::<u32>().prop_map(Seq::new);
    let number = || any::<u32>().prop_map(AckNo::new);
    prop_oneof![
        Just(Control::KeepAlive),
        Just(Control::Shutdown),
        seq().prop_map(Control::LightAck),
        number().prop_map(Control::Ack2),
        (number(), seq(), any::<[u32; 3]>(), any::<Option<(u32, u32)>>()).prop_map(
            |(number, next, [rtt_us, rtt_var_us, available], rates)| {
                Control::Ack(Ack { number, next, rtt_us, rtt_var_us, available, rates })
            }
        ),
        (any::<u32>(), seq(), seq()).prop_map(|(message, first, last)| {
            Control::Drop(DropRequest { message: MessageNo::new(message), first, last })
        }),
        (seq(), seq(), any::<u32>()).prop_map(|(next, highest, missing)| {
            Control::Progress(Progress { next, highest, missing })
        }),
        any::<[u8; Handshake::LENGTH]>()
            .prop_map(|info| Control::Handshake(Handshake::parse(&info))),
    ]
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(packet) = Packet::parse(&bytes)
            && let Body::Control(control) = packet.body
        {
            if let Control::Nak(losses) = control {
                prop_assert!(losses.count() > 0);
            }
            let mut buffer = [0; 300];
            let length = control.encode(packet.timestamp, packet.destination, &mut buffer);
            prop_assert_eq!(Packet::parse(&buffer[..length]), Ok(packet));
        }
        let _ = destination(&bytes);
    }

    #[test]
    fn control_packets_round_trip(control in control(), timestamp: u32, destination: u32) {
        let mut buffer = [0; 100];
        let length = control.encode(timestamp, destination, &mut buffer);
        let body = Body::Control(control);
        prop_assert_eq!(
            Packet::parse(&buffer[..length]),
            Ok(Packet { timestamp, destination, body })
        );
    }

    #[test]
    fn ranges_round_trip(ranges in prop::collection::vec((any::<u32>(), 0u32..1 << 20), 1..20)) {
        let ranges: Vec<_> = ranges
            .into_iter()
            .map(|(first, more)| Range {
                first: Seq::new(first),
                last: Seq::new(first).plus(u64::from(more)),
            })
            .collect();
        let mut buffer = [0; 200];
        let mut writer = NakWriter::new(&mut buffer);
        prop_assert!(ranges.iter().all(|&range| writer.push(range)));
        let back: Vec<_> = writer.finish().unwrap().collect();
        prop_assert_eq!(back, ranges);
    }
}
