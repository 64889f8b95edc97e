//! Any datagram parses or is refused, and what parses is written as it was read.

#![no_main]

use cwnd_udt::packet::{Body, Control, Packet};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|datagram: &[u8]| {
    let Ok(packet) = Packet::parse(datagram) else { return };
    match packet.body {
        Body::Data(data) => assert_eq!(data.payload, &datagram[16..]),
        Body::Control(Control::Nak(losses)) => {
            // Each range takes at least four bytes.
            assert!(losses.count() <= datagram.len() / 4);
            again(packet, datagram.len());
        }
        Body::Control(Control::Other { .. }) => {}
        Body::Control(_) => again(packet, datagram.len()),
    }
});

fn again(packet: Packet<'_>, length: usize) {
    let Body::Control(control) = packet.body else { return };
    let mut written = vec![0; length + 64];
    let count = control.encode(packet.timestamp, packet.destination, &mut written);
    assert_eq!(Packet::parse(&written[..count]), Ok(packet));
}
