//! Utilisation, queue lengths and fairness of each law on a single bottleneck, as stated in its
//! paper.

use crate::common::{self, entries, jain, ms, packets, pair, run, run_recorded, tcp};
use cwnd::registry::{Kind, algorithms};
use cwnd::{Controller, Event, MakeController, Rate, Settings, Signal, Spec, Time};
use cwnd_sim::network::{Network, Queue, Tcp, Traffic};
use cwnd_sim::record::{FlowRecord, Records};
use std::sync::Arc;

/// Packets of 1000 bytes on 10 Mb/s with 40 ms: a bandwidth-delay product of 50 packets.
const BDP: u32 = 50;

fn windowed(controller: &str, flows: usize, queue: u32) -> Network {
    let options = Tcp {
        timestamps: Some(cwnd::Dur::from_nanos(1000)),
        initial_window: 10,
        ..tcp(controller)
    };
    let traffic = vec![Traffic::Tcp(options); flows];
    let mut network = pair(10e6, ms(20), packets(queue), traffic, ms(60_000));
    network.warmup = ms(20_000);
    network.sample = ms(10);
    network
}

/// Packets of 1500 bytes on 100 Mb/s with 40 ms: 333 packets.
fn paced(controller: &str, flows: usize, queue: Queue) -> Network {
    let options = Tcp { packet: 1460, ..tcp(controller) };
    let traffic = vec![Traffic::Tcp(options); flows];
    let mut network = pair(100e6, ms(20), queue, traffic, ms(60_000));
    network.warmup = ms(20_000);
    network.sample = ms(100);
    network
}

/// Returns the mean of a controller's variable after the warm-up.
fn gauge(records: &Records, flow: &FlowRecord, name: &str) -> f64 {
    common::mean(records, common::gauge(flow, name), 20.0..f64::INFINITY)
}

fn kind(kind: Kind) -> impl Iterator<Item = &'static str> {
    algorithms().iter().filter(move |law| law.kind() == kind).map(|law| law.name)
}

fn uses_capacity(law: &str) -> bool {
    law.parse::<Spec>().unwrap().controller(&Settings::default()).needs().capacity
}

/// With a buffer of one bandwidth-delay product half of the window still fills the link. All laws
/// keep at least half of the window or reduce it to the bandwidth-delay product. Prague is unpaced
/// here: it paces at the window over the smoothed round-trip time, which lags behind after a
/// reduction, and uses 99.1 %.
#[test]
fn a_buffer_of_one_bandwidth_delay_product_suffices() {
    let laws = kind(Kind::Window).filter(|&law| law != "prague");
    for law in laws.chain(["prague(pacing=0)", "cubic(start=hystart)", "aiad(rate=receiver)"]) {
        for flows in [1, 2] {
            let records = run(&windowed(law, flows, BDP), 1);
            let used = records.links[0].utilization;
            assert!(used > 0.995, "{law}: {flows} flows use {used}");
            assert!(jain(&records) > 0.85, "{law}: Jain's index is {}", jain(&records));
            let timeouts: u64 = records.flows.iter().map(|flow| flow.timeouts).sum();
            assert_eq!(timeouts, 0, "{law}");
        }
    }
}

/// With a smaller buffer q the window varies between (B + q) / 2 and B + q, where B is the
/// bandwidth-delay product. The link is not fully used while the window is below B.
#[test]
fn utilisation_with_a_small_buffer_matches_the_formula() {
    let (b, q) = (f64::from(BDP), 12.0);
    let records = run(&windowed("reno", 1, 12), 1);
    // Packets per cycle: the sum of the windows of its round trips. Duration of a round trip: 1
    // below B and w/B above.
    let (low, high) = ((b + q) / 2.0, b + q);
    let sent = (high * high - low * low) / 2.0;
    let time = (b - low) + (high * high - b * b) / (2.0 * b);
    let expected = sent / (b * time);
    let used = records.links[0].utilization;
    assert!((used / expected - 1.0).abs() < 0.03, "{used} is not near {expected}");
}

#[test]
fn reductions_match_the_laws_factors() {
    // The remaining fraction of a window of about 100 packets.
    let simple = [
        ("reno", 0.5),
        ("gaimd(0.31, 7/8)", 7.0 / 8.0),
        ("aimd(0.2, 1/8)", 7.0 / 8.0),
        ("simd(beta=1/16)", 15.0 / 16.0),
        ("scalable", 7.0 / 8.0),
        ("cubic", 0.7),
        ("vegas", 0.5),
    ];
    for (law, kept) in simple {
        let records = run(&windowed(law, 1, BDP), 1);
        let cuts = &records.flows[0].cuts;
        assert!(!cuts.is_empty());
        // After slow start's overshoot 0.7 of the window still exceeds the path's capacity: CUBIC
        // reduces again, and a packet lost twice waits for a timeout.
        let start = if law == "cubic" { 3 } else { 1 };
        for cut in &cuts[start..] {
            assert_eq!(cut.cut.why, Signal::Loss, "{law}");
            let ratio = cut.cut.after() / cut.cut.before();
            assert!((ratio - kept).abs() < 1e-9, "{law} keeps {ratio}");
        }
    }
}

/// Vegas keeps between alpha = 2 and beta = 4 packets queued per flow, without losses.
#[test]
fn vegas_keeps_a_small_queue() {
    for queue in [12, BDP, 10 * BDP] {
        let link = &run(&windowed("vegas", 1, queue), 1).links[0];
        assert!((1.0..=5.0).contains(&link.mean_queue), "{} of {queue}", link.mean_queue);
        assert_eq!(link.drops, 0);
        assert!(link.utilization > 0.995);
    }
    // The receiver's window limits the sender before slow start ends; slow start must end
    // nevertheless.
    let mut capped = windowed("vegas", 1, 10 * BDP);
    let Traffic::Tcp(tcp) = Arc::make_mut(&mut capped.flows[0].traffic) else { unreachable!() };
    tcp.window = 70;
    let queue = run(&capped, 1).links[0].mean_queue;
    assert!((1.0..=5.0).contains(&queue), "{queue}");
    // A second flow mistakes the first one's queueing delay for propagation delay and queues a few
    // more packets.
    let records = run(&windowed("vegas", 2, 10 * BDP), 1);
    assert!(records.links[0].mean_queue < 20.0, "{}", records.links[0].mean_queue);
    assert_eq!(records.links[0].drops, 0);
}

/// A single flow measures the link's rate, by the sender's clock as well as by the receiver's.
#[test]
fn aiad_measures_the_rate_of_the_link() {
    for law in ["aiad(rate=ack)", "aiad(rate=receiver)", "westwood"] {
        let records = run(&windowed(law, 1, BDP), 1);
        let rate = gauge(&records, &records.flows[0], "rate");
        assert!((rate / 1250.0 - 1.0).abs() < 0.03, "{law}: {rate} packets/s");
        // The window is reduced to the rate times the minimum round-trip time, 51 packets.
        for cut in &records.flows[0].cuts[1..] {
            assert!((cut.cut.after() / 51.0 - 1.0).abs() < 0.05, "{law}: {:?}", cut.cut);
        }
    }
}

/// AIAD: losses without congestion reduce the utilisation only slightly.
#[test]
fn aiad_survives_random_loss() {
    let used = |law| {
        let mut network = windowed(law, 1, BDP);
        network.links[0].loss = 0.01;
        run(&network, 1).links[0].utilization
    };
    let (aiad, reno) = (used("aiad"), used("reno"));
    assert!(aiad > 1.5 * reno, "{aiad} against {reno}");
}

#[test]
fn a_single_paced_flow_fills_the_link() {
    for law in kind(Kind::Rate).chain(["daimd(capacity=100mbit)", "daimd(lambda=1)"]) {
        for queue in [20, 100, 400] {
            let records = run(&paced(law, 1, packets(queue)), 1);
            let used = records.links[0].utilization;
            assert!(used > 0.85, "{law} uses {used} with a queue of {queue}");
            if uses_capacity(law) {
                let capacity = gauge(&records, &records.flows[0], "capacity") * 1500.0 * 8.0;
                assert!((capacity / 100e6 - 1.0).abs() < 0.1, "{law} estimates {capacity} bit/s");
            }
            assert_eq!(records.flows[0].timeouts, 0);
        }
    }
}

#[test]
fn paced_flows_are_fair() {
    for law in kind(Kind::Rate) {
        for flows in [2, 4] {
            let records = run(&paced(law, flows, packets(100)), 1);
            assert!(jain(&records) > 0.9, "{law}: {flows} flows have {}", jain(&records));
            let used = records.links[0].utilization;
            assert!(used > 0.75, "{law}: {flows} flows use {used}");
        }
    }
}

/// A flow whose rate collapsed before its first capacity estimate recovers.
#[test]
fn paced_flows_recover_from_a_collapse() {
    for law in kind(Kind::Rate) {
        // Four simultaneous slow starts into a short queue, at four times the delay.
        let mut network = paced(law, 4, packets(100));
        network.links.iter_mut().for_each(|link| link.delay = ms(50));
        let records = run(&network, 1);
        let least = records.flows.iter().map(|flow| flow.packets_delivered).min().unwrap();
        let fair = 100e6 / 12_000.0 * 40.0 / 4.0;
        assert!(least as f64 > fair / 3.0, "{law}: one flow has {least} of {fair} packets");
    }
}

/// Rate control with a fixed interval does not depend on the round-trip time.
#[test]
fn udt_is_fair_across_round_trip_times() {
    let mut network = paced("udt", 2, packets(200));
    network.links.extend(network.links.clone());
    // Flow 1 has 90 ms more delay in each direction, on links from and to its own host.
    network.nodes.push("host".into());
    let [up, down] = [2, 3];
    for link in [up, down] {
        network.links[link].rate = None;
        network.links[link].delay = ms(90);
    }
    (network.links[up].from, network.links[up].to) = (2, 0);
    (network.links[down].from, network.links[down].to) = (0, 2);
    network.links[0].delay = ms(10);
    network.links[1].delay = ms(10);
    network.flows[1].path = [up, 0].into();
    network.flows[1].back = [1, down].into();
    let records = run(&network, 1);
    assert!(jain(&records) > 0.9, "{}", jain(&records));
}

/// Packet pairs are sent only for laws that use the capacity estimate; TFRC does not.
#[test]
fn packet_pairs_are_sent_only_if_the_capacity_is_used() {
    for law in kind(Kind::Rate) {
        let records = run_recorded(&paced(law, 1, packets(100)), 1);
        let measured = |event: &Event| matches!(event, Event::Report(it) if it.capacity.is_some());
        let estimates =
            entries(&records.flows[0]).iter().filter(|entry| measured(&entry.event)).count();
        assert_eq!(estimates > 0, uses_capacity(law), "{law}: {estimates} capacity estimates");
    }
}

/// Each interpretation of DAIMD's negative feedback reduces the rate at its loss reports by
/// (8/9)^n.
#[test]
fn daimd_reduces_at_negative_feedback() {
    const SYN: u64 = 10_000_000;
    for feedback in ["event", "packet", "syn", "report"] {
        let mut network = paced(&format!("daimd(feedback={feedback}, delay=off)"), 4, packets(100));
        network.warmup = ms(0);
        network.links.iter_mut().for_each(|link| link.delay = ms(50));
        let records = run_recorded(&network, 1);
        let (mut reports, mut cuts) = (0, 0);
        for flow in &records.flows {
            let mut last: Option<Time> = None;
            let mut made = flow.cuts.iter().peekable();
            for entry in entries(flow) {
                let (packets, fresh) = match entry.event {
                    Event::Lost(lost) => {
                        (lost.packets, last.is_none_or(|last| lost.sent_at >= last))
                    }
                    Event::Timeout(_) => (1, true),
                    _ => continue,
                };
                reports += 1;
                let expected = match feedback {
                    "event" => u32::from(fresh),
                    "packet" => packets,
                    "syn" => {
                        let within = |last| entry.at.since(last).as_nanos() < SYN;
                        u32::from(!last.is_some_and(within))
                    }
                    _ => 1,
                };
                if expected == 0 {
                    continue;
                }
                let Some(cut) = made.next_if(|cut| cut.at == entry.at) else {
                    assert_eq!(entry.output.pace, Some(Rate::per_sec(1.0)), "{feedback}: no cut");
                    continue;
                };
                let kept = (8.0_f64 / 9.0).powi(expected as i32) * cut.cut.before();
                assert!((cut.cut.after() - kept.max(1.0)).abs() < 1e-6, "{feedback}: {cut:?}");
                cuts += 1;
                last = Some(entry.at);
            }
            assert!(made.next().is_none(), "{feedback}: a cut without its feedback");
        }
        assert!(cuts > 4, "{feedback}: {cuts} cuts");
        let all = matches!(feedback, "packet" | "report");
        assert!(all || cuts < reports, "{feedback}: {cuts} cuts at {reports} loss reports");
    }
}
