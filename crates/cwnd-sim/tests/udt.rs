//! The UDT protocol implementation as an endpoint: utilisation, fairness, sizes of datagrams on the
//! wire, and replay of recorded events.

use crate::common::{self, at_ms, ms, packets, pair, run, run_recorded, tcp};
use cwnd::record::replay;
use cwnd::{Event, MakeController, Spec};
use cwnd_sim::network::{Network, Tcp, Traffic, Udt};
use cwnd_sim::record::Records;
use cwnd_sim::{Options, Simulation};

/// Bytes on the wire of a full packet, of a handshake, and of an ACK2, keep-alive or shutdown.
const FULL: u64 = 1500;
const HANDSHAKE: u64 = 28 + 16 + 48;
const CONTROL: u64 = 28 + 16 + 4;

fn udt(controller: &str) -> Udt {
    Udt { packet: 1456, window: 1_000_000, ..common::udt(controller) }
}

/// 100 Mb/s, 40 ms, and a queue of one bandwidth-delay product.
fn link(controllers: &[&str], seconds: u64) -> Network {
    let traffic = controllers.iter().map(|law| Traffic::Udt(udt(law))).collect();
    let mut network = pair(100e6, ms(20), packets(333), traffic, ms(1000 * seconds));
    network.warmup = ms(500 * seconds);
    network.sample = ms(100);
    network
}

fn delivered(records: &Records) -> Vec<f64> {
    records.flows.iter().map(|flow| flow.packets_delivered as f64).collect()
}

#[test]
fn a_flow_fills_the_link() {
    for law in ["udt", "daimd", "reno", "cubic", "simd"] {
        let records = run(&link(&[law], 60), 1);
        let (flow, used) = (&records.flows[0], records.links[0].utilization);
        assert!(used > 0.9, "{law} uses {used}");
        assert!(flow.timeouts == 0 && flow.min_rtt >= 0.04 && flow.mean_rtt < 0.09, "{law}");
        // Packets sent and delivered differ by the packets in flight at the end of the warm-up and
        // of the run.
        assert!(flow.packets_sent.abs_diff(flow.packets_delivered) < 2000, "{law}");
        // The limits add up to the measured time.
        assert!(
            (flow.limited.seconds().iter().sum::<f64>() - 30.0).abs() < 0.01,
            "{:?}",
            flow.limited
        );
        assert!(
            flow.limited.application < 0.01,
            "{law} has nothing to send for {:?}",
            flow.limited
        );
    }
}

#[test]
fn two_flows_are_fair() {
    for law in ["udt", "reno"] {
        let records = run(&link(&[law; 2], 60), 1);
        let (used, shares) = (records.links[0].utilization, delivered(&records));
        assert!(used > 0.9, "{law} uses {used}");
        assert!((0.5..=2.0).contains(&(shares[0] / shares[1])), "{law}: {shares:?}");
    }
}

/// Simulated packets have the sizes of real datagrams, including IP and UDP headers.
#[test]
fn packets_have_the_sizes_of_datagrams() {
    let mut network = link(&[], 10);
    network.warmup = ms(0);
    network.links[0].queue = packets(100_000);
    for below in [0, 38] {
        let transfer = Udt { header: 44 + below, bytes: Some(20_000 * 1456), ..udt("udt") };
        network.flows = pair(1.0, ms(0), packets(1), vec![Traffic::Udt(transfer)], ms(1)).flows;
        let below = u64::from(below);
        let records = run(&network, 1);
        let (flow, link) = (&records.flows[0], &records.links[0]);
        assert!(flow.completed < 9.0 && link.drops == 0, "{}", flow.completed);
        let control = link.departures - flow.packets_sent - 2;
        let bytes = flow.packets_sent * (FULL + below)
            + 2 * (HANDSHAKE + below)
            + control * (CONTROL + below);
        assert_eq!(link.bytes_departed, bytes as f64);
        // An ACK2 for each full acknowledgement, one per 10 ms, and a shutdown.
        let acknowledgements = flow.completed / 0.01;
        assert!((control as f64 / acknowledgements - 1.0).abs() < 0.1, "{control}");
    }
}

#[test]
fn a_transfer_completes_despite_losses() {
    for (seed, law) in ["udt", "cubic"].into_iter().enumerate() {
        let mut network = link(&[law], 60);
        network.warmup = ms(0);
        for link in &mut network.links {
            (link.loss, link.loss_of_acks) = (0.05, true);
        }
        // The last packet is shorter.
        network.flows[0].traffic =
            Traffic::Udt(Udt { bytes: Some(1000 * 1456 + 1), ..udt(law) }).into();
        let flow = &run(&network, seed as u64).flows[0];
        assert_eq!(flow.packets_delivered, 1001, "{law}");
        assert!(flow.completed < 50.0, "{law}: {}", flow.completed);
        assert!(flow.packets_lost > 20 && flow.retransmissions >= flow.packets_lost, "{law}");
        assert_eq!(flow.packets_sent, 1001 + flow.retransmissions, "{law}");
        let limited: f64 = flow.limited.seconds().iter().sum();
        assert!((limited - flow.acknowledged).abs() < 0.01, "{law}: {limited}");
    }
}

#[test]
fn a_stopped_flow_writes_no_more_data() {
    let mut network = link(&["udt"], 20);
    network.warmup = ms(0);
    network.flows[0].start = at_ms(1000);
    network.flows[0].stop = at_ms(5000);
    let records = run(&network, 1);
    let flow = &records.flows[0];
    assert!(flow.completed > 5.0 && flow.completed < 5.3, "{}", flow.completed);
    assert_eq!(flow.packets_delivered, flow.packets_sent - flow.retransmissions);
    let at = |seconds: f64| records.time.iter().position(|&time| time >= seconds).unwrap();
    assert_eq!(flow.series.sent[at(0.9)], 0.0);
    assert!(flow.series.sent[at(5.5)] == *flow.series.sent.last().unwrap());
    assert!(flow.series.window.iter().all(|window| *window >= 1.0));
}

#[test]
fn recorded_events_can_be_replayed() {
    for law in ["udt", "daimd", "tfrc", "reno", "simd", "aiad(rate=receiver)"] {
        let mut network = link(&[law], 20);
        network.links[0].loss = 0.002;
        network.links[1].loss = 0.01;
        network.links[1].loss_of_acks = true;
        let simulation = Simulation::new(&network, 9, &Options::default()).unwrap();
        let settings = simulation.settings(0).unwrap();
        let unseen = run(&network, 9);
        let records = run_recorded(&network, 9);
        assert_eq!(delivered(&records), delivered(&unseen), "{law}");
        let flow = &records.flows[0];
        let recorded = flow.events.as_ref().unwrap();
        let controller = Spec::parse(law).unwrap().controller(&settings);
        assert_eq!(replay(controller, recorded), Ok(()), "{law}");
        let lost = recorded.entries.iter().filter(|entry| matches!(entry.event, Event::Lost(_)));
        assert!(lost.count() > 10 && flow.cuts.len() > 5, "{law}: {:?}", flow.cuts);
    }
}

/// A path with a large bandwidth-delay product and rare losses: the UDT protocol and the paced
/// endpoint both reach the rate that UDT's law permits. Between losses, 1.3 s apart, the rate grows
/// by 10 000 packets/s per second up to 90 % of the link and by 1000 above, and a loss reduces it
/// by a ninth: the law alone reaches 86 % of the link. A loss also stops the flow for a round-trip
/// time, because the window counts the packets received above a gap.
#[test]
fn a_long_fat_path_is_used_as_the_law_permits() {
    let used = |traffic: Traffic, seconds: u64| {
        let mut network = pair(1e9, ms(50), packets(8333), vec![traffic], ms(1000 * seconds));
        network.warmup = ms(250 * seconds);
        network.sample = ms(100);
        network.links[0].loss = 1e-5;
        run(&network, 1).links[0].utilization
    };
    let protocol = used(Traffic::Udt(udt("udt")), 40);
    let stand_in = used(Traffic::Tcp(Tcp { packet: 1456, header: 44, ..tcp("udt") }), 40);
    let reno = used(Traffic::Tcp(Tcp { packet: 1456, header: 44, ..tcp("reno") }), 200);
    assert!(protocol > 0.74 && protocol < 0.87, "{protocol}");
    assert!((protocol / stand_in - 1.0).abs() < 0.05, "{protocol}, {stand_in}");
    assert!(protocol > 10.0 * reno, "{protocol}, {reno}");
}
