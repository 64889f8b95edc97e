//! Every datagram is parsed or refused, and a parsed control packet is encoded to equal contents.

#![no_main]

use cwnd_udt::packet::{Body, Control, Packet};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|datagram: &[u8]| {
    let Ok(packet) = Packet::parse(datagram) else { return };
    match packet.body {
        Body::Data(data) => assert_eq!(data.payload, &datagram[16..]),
        Body::Control(Control::Nak(losses)) => {
            // Each range has at least four bytes.
            assert!(losses.count() <= datagram.len() / 4);
            round_trip(packet, datagram.len());
        }
        Body::Control(Control::Other { .. }) => {}
        Body::Control(_) => round_trip(packet, datagram.len()),
    }
});

fn round_trip(packet: Packet<'_>, length: usize) {
    let Body::Control(control) = packet.body else { return };
    let mut encoded = vec![0; length + 64];
    let count = control.encode(packet.timestamp, packet.destination, &mut encoded);
    assert_eq!(Packet::parse(&encoded[..count]), Ok(packet));
}
