//! Discovery of the path MTU by padded requests (RFC 8899).

use crate::common::{KEY, PERFECT, Pair, client, config, server};
use cwnd::{Dur, Time};
use cwnd_udt::handshake::MAX_PACKET_SIZE;
use cwnd_udt::{Answer, Config, Connection, Listener, Seq, SocketType};

const HANDSHAKE: usize = 64;

/// Connects over a path with these MTUs in both directions, and returns the size of a full datagram
/// with its headers. A listener of UDT4 ignores padded requests.
fn full_datagram(there: usize, back: usize, udt4: bool, probes: &[u32]) -> usize {
    let largest = probes.first().copied().unwrap_or(1500);
    let config = Config { packet_size: largest, probes: probes.to_vec(), ..config("udt") };
    let now = Time::ZERO;
    let mut end = Connection::connect(&config, now, 11, Seq::new(0), server().ip());
    let listener = Listener::new(KEY, SocketType::Stream);
    let answering = Config { packet_size: MAX_PACKET_SIZE, ..config.clone() };
    for round in 0.. {
        let now = now + cwnd::Dur::from_millis(250 * round);
        end.handle_timeout(now);
        assert!(end.close_reason().is_none(), "no connection");
        while let Some(request) = end.poll_transmit(now, 1).map(|t| t.datagrams.to_vec()) {
            if request.len() + 28 > there || (udt4 && request.len() != HANDSHAKE) {
                continue;
            }
            match listener.handle(now, client(), &request) {
                Answer::Ignore => {}
                Answer::Reply(reply) => {
                    let mut reply = reply.to_vec();
                    reply.resize(request.len(), 0);
                    if udt4 {
                        reply[8..12].fill(0);
                    }
                    if reply.len() + 28 <= back {
                        end.handle_datagram(now, &reply);
                    }
                }
                Answer::Accept(incoming) => {
                    let mut accepted = Connection::accept(&answering, now, 22, &incoming);
                    end.handle_datagram(now, accepted.poll_transmit(now, 1).unwrap().datagrams);
                    end.write(&[0; 20_000]).unwrap();
                    return end.poll_transmit(now, 1).unwrap().segment + 28;
                }
            }
        }
    }
    unreachable!()
}

#[test]
fn the_largest_size_that_the_path_carries_both_ways_is_used() {
    let probes = [9000, 1500, 1492, 1400, 1280, 576];
    for (there, back, size) in [
        (9000, 9000, 9000),
        (1500, 9000, 1500),
        (9000, 1499, 1492),
        (1400, 1400, 1400),
        (1300, 1500, 1280),
        (576, 576, 576),
    ] {
        assert_eq!(full_datagram(there, back, false, &probes), size);
    }
    assert_eq!(full_datagram(1500, 1500, false, &[]), 1500);
}

#[test]
fn a_listener_without_probes_gets_the_configured_size() {
    assert_eq!(full_datagram(1400, 1400, true, &[1500, 1400, 1280]), 1500);
}

#[test]
fn lost_probes_are_repeated_and_then_the_smallest_size_is_used() {
    assert_eq!(full_datagram(500, 500, false, &[1500, 1280, 576]), 576);
}

/// The path loses full packets from the middle of a transfer on, but neither small packets nor
/// control packets.
#[test]
fn a_black_hole_is_suspected_though_small_packets_arrive() {
    for law in ["cubic", "reno", "udt", "bbr"] {
        for seed in 1..=20 {
            let mut pair = Pair::open(&config(law), 1, PERFECT, seed);
            pair.exchange([&[1; 300_000], &[]], Dur::from_secs(5.0));
            assert!(!pair.ends[0].suspects_black_hole());
            pair.path.largest = 1000;
            let limit = pair.now + Dur::from_secs(5.0);
            while !pair.ends[0].suspects_black_hole() {
                let size = 1 + pair.random.below(9000) as usize;
                pair.ends[0].write(&vec![2; size]).unwrap();
                assert!(pair.step());
                assert!(pair.now < limit, "{law}, seed {seed}: {:?}", pair.ends[0].counters());
            }
        }
    }
}
