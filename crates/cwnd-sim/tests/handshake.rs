//! The handshake: the SYN is no data, and a retransmission of it is no congestion.

use crate::common::wire::crossed;
use crate::common::{at_ms, ms, packets, pair, run, run_recorded, scenario, tcp};
use cwnd::Event;
use cwnd_sim::network::{Blackout, Conventions, Impairments, Tcp, Traffic};
use cwnd_sim::record::Records;

fn simulate(text: &str) -> Records {
    run_recorded(&scenario(text, 1), 1)
}

/// A packet takes ten times as long as the handshake: a SYN that counted as a packet would be a
/// sample of several times the capacity.
#[test]
fn the_syn_is_no_sample_of_the_delivery_rate() {
    let controllers = cwnd::registry::algorithms().iter().map(|algorithm| algorithm.name);
    let mut sampled = 0;
    for controller in controllers {
        for conventions in ["rfc", "rfc5681", "linux", "ns2"] {
            let records = simulate(&format!(
                "duration = \"5s\"\ntcp = {{ conventions = \"{conventions}\", syn = true }}\n\
                 [dumbbell]\nrate = \"100kbit\"\ndelay = \"5ms\"\nqueue = \"100p\"\n\
                 [[flow]]\ncontroller = \"{controller}\"\n"
            ));
            let Some(events) = &records.flows[0].events else { continue };
            let samples = events.entries.iter().filter_map(|entry| match &entry.event {
                Event::Acked(acked) => acked.delivery,
                _ => None,
            });
            for sample in samples {
                let interval = sample.send_elapsed.max(sample.ack_elapsed).as_secs();
                let rate = sample.delivered as f64 / interval;
                sampled += 1;
                // 1000 bytes of the smallest packet.
                assert!(rate < 1.1 * 100e3 / 8e3, "{controller}, {conventions}: {sample:?}");
            }
        }
    }
    assert!(sampled > 100, "{sampled} samples");
}

/// RFC 5681 section 3.1: the slow-start threshold is high at the start. The timeout of the SYN is
/// shorter than the round-trip time.
#[test]
fn a_spurious_timeout_of_the_syn_leaves_slow_start() {
    for conventions in ["rfc", "rfc5681", "linux"] {
        for timestamps in [false, true] {
            let transfer = |initial_rto: &str| {
                let records = simulate(&format!(
                    "duration = \"60s\"\ntcp = {{ conventions = \"{conventions}\", timestamps = {timestamps}, \
                     initial_rto = \"{initial_rto}\" }}\n\
                     [dumbbell]\nrate = \"10mbit\"\ndelay = \"600ms\"\nqueue = \"1bdp\"\n\
                     [[flow]]\ncontroller = \"reno\"\nbytes = \"10mb\"\n"
                ));
                (records.flows[0].timeouts, records.flows[0].completed)
            };
            let (timeouts, completed) = transfer("1s");
            let (_, without) = transfer("3s");
            assert_eq!(timeouts, 1, "{conventions}, {timestamps}");
            let late = completed - without;
            assert!(late.abs() < 1.0, "{conventions}, {timestamps}: {late} s later");
        }
    }
}

/// RFC 6928 section 2: one retransmission of the SYN keeps the initial window; RFC 5681 section
/// 3.1: after more it is one packet.
#[test]
fn lost_syns_reduce_the_initial_window() {
    for conventions in [Conventions::Rfc, Conventions::Linux] {
        for (outage, expected) in [(500, 10), (2_000, 1)] {
            let options = Tcp { conventions, syn: true, initial_window: 10, ..tcp("reno") };
            let mut network =
                pair(1e9, ms(50), packets(100), vec![Traffic::Tcp(options)], ms(6_000));
            let blackouts = vec![Blackout { at: ms(0), length: ms(outage) }];
            network.links[0].impairments =
                Some(Impairments { blackouts, ..Impairments::default() }.into());
            let records = run(&network, 1);
            assert_eq!(records.flows[0].timeouts, if outage > 1000 { 2 } else { 1 });
            let sent = crossed(&network, 1, 0);
            // The SYN has the number 0, as the first data packet.
            let first = sent.iter().position(|one| !one.tcp.syn).unwrap();
            let flight = sent[first..].iter().filter(|one| one.at < sent[first].at + 50.0);
            assert_eq!(flight.count(), expected, "{conventions:?}, {outage} ms");
        }
    }
}

/// A timeout of the SYN loses no data. In ns-2 it also sets the threshold to two packets.
#[test]
fn lost_syns_are_no_lost_packets() {
    let controllers = cwnd::registry::algorithms().iter().map(|algorithm| algorithm.name);
    let (mut checked, mut thresholds) = (0, 0);
    for controller in controllers {
        for conventions in ["rfc", "rfc5681", "linux", "ns2"] {
            let records = simulate(&format!(
                "duration = \"20s\"\ntcp = {{ conventions = \"{conventions}\", syn = true }}\n\
                 [dumbbell]\nrate = \"1mbit\"\ndelay = \"5ms\"\nqueue = \"100p\"\n\
                 blackout = [{{ at = 0, for = \"8s\" }}]\n[[flow]]\ncontroller = \"{controller}\"\n"
            ));
            let flow = &records.flows[0];
            let Some(events) = &flow.events else { continue };
            let at = records.time.partition_point(|&time| time < 7.9);
            if flow.series.sent[at] > 0.0 {
                // The controller's sender has no handshake.
                continue;
            }
            let mut before = events.entries.iter().take_while(|entry| entry.at < at_ms(8_000));
            let lost = before.find_map(|entry| match &entry.event {
                Event::Lost(lost) | Event::Timeout(lost) if lost.packets > 0 => Some(*lost),
                _ => None,
            });
            assert_eq!(lost, None, "{controller}, {conventions}");
            assert!(flow.timeouts > 0, "{controller}, {conventions}");
            checked += 1;
            let threshold = flow.series.gauges.iter().find(|gauge| gauge.0 == "ssthresh");
            if controller == "reno"
                && let Some((_, values)) = threshold
            {
                assert_eq!(
                    values[at] == 2.0,
                    conventions == "ns2",
                    "{conventions}: {}",
                    values[at]
                );
                thresholds += 1;
            }
        }
    }
    assert!(checked > 50 && thresholds == 4, "{checked} {thresholds}");
}
