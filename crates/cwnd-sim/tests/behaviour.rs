//! TCP as specified by the RFCs, in networks small enough to calculate times and numbers by hand.
//!
//! Packets have 1000 bytes on the wire and links a rate of 8 Mb/s, so a transmission takes 1 ms.
//! The propagation delay is 50 ms in each direction and acknowledgements have no transmission time:
//! the round-trip time is 101 ms.

use crate::common::wire::{Crossed, crossed};
use crate::common::{
    RED, at_ms, entries, flow, link, ms, packets, pair, run, run_recorded, share, tcp,
};
use cwnd::{Dur, Event, Signal, Time};
use cwnd_sim::network::{
    Blackout, Conventions, Flow, Impairments, Network, Queue, Recovery, Red, Tcp, TcpExtensions,
    Traffic,
};
use cwnd_sim::record::FlowRecord;
use std::sync::Arc;

/// Round-trip time without queueing, in milliseconds.
const RTT: f64 = 101.0;
/// The bandwidth-delay product is 101 packets: none is lost here before the queue is used.
const PLENTY: Queue = Queue::DropTail { limit: cwnd_sim::network::QueueLimit::Packets(100_000) };

fn alone(tcp: Tcp, queue: Queue, duration: u64) -> Network {
    pair(8e6, ms(50), queue, vec![Traffic::Tcp(tcp)], ms(duration))
}

/// Returns the number of packets that left the link in each round trip. The first packet of round r
/// leaves the transmitter at 101 r + 1 ms.
fn rounds(data: &[Crossed], count: usize) -> Vec<usize> {
    let mut rounds = vec![0; count];
    for packet in data {
        let round = ((packet.at - 1.0) / RTT) as usize;
        if round < count {
            rounds[round] += 1;
        }
    }
    rounds
}

fn events(flow: &FlowRecord) -> impl Iterator<Item = (f64, &Event)> {
    entries(flow).iter().map(|entry| (entry.at.as_nanos() as f64 / 1e6, &entry.event))
}

fn assert_near(value: f64, expected: f64, within: f64) {
    assert!((value - expected).abs() <= within, "{value} is not within {within} of {expected}");
}

// --- Slow start (RFC 5681 section 3.1, RFC 6928, RFC 3465)

#[test]
fn slow_start_doubles_from_the_initial_window() {
    for initial in [1, 3, 4] {
        let network = alone(Tcp { initial_window: initial, ..tcp("reno") }, PLENTY, 1000);
        let data = crossed(&network, 1, 0);
        let initial = initial as usize;
        assert_eq!(rounds(&data, 5), [1, 2, 4, 8, 16].map(|factor| factor * initial));
        // Each acknowledgement releases two packets back to back.
        let first = &data[initial];
        assert_eq!(first.at, RTT + 1.0);
        assert_eq!(data[initial + 1].at, RTT + 2.0);
    }
}

/// An acknowledgement of two packets increases the window by two with byte counting and by one
/// without: then a round of w packets is followed by one of 3 w / 2.
#[test]
fn byte_counting_restores_growth_with_delayed_acknowledgements() {
    let delayed = Tcp { delayed_acks: true, initial_window: 4, ..tcp("reno") };
    let network = alone(delayed.clone(), PLENTY, 1000);
    assert_eq!(rounds(&crossed(&network, 1, 0), 4), [4, 8, 16, 32]);
    let network = alone(Tcp { byte_counting: false, ..delayed }, PLENTY, 1000);
    assert_eq!(rounds(&crossed(&network, 1, 0), 3), [4, 6, 9]);
}

/// In congestion avoidance the window grows by one packet per round trip: after a loss it is halved
/// and reaches its old size after as many round trips as packets were removed.
#[test]
fn congestion_avoidance_adds_a_packet_a_round_trip() {
    let records = run(&alone(tcp("reno"), packets(30), 60_000), 1);
    let cuts = &records.flows[0].cuts;
    assert!(cuts.len() > 3);
    for pair in cuts[1..].windows(2) {
        let (first, second) = (pair[0].cut, pair[1].cut);
        assert_eq!(first.why, Signal::Loss);
        assert_eq!(first.after(), first.before() / 2.0);
        // 101 packets in flight and 30 queued; the next one is lost, and the loss is detected a
        // round trip later.
        assert_near(first.before(), 132.0, 2.0);
        // A round trip takes 101 ms while the window is below 101 packets, and above that one ms
        // per packet.
        let below = RTT - first.after();
        let above = second.before() - RTT;
        // The window does not grow during recovery, which takes one round trip with a full queue.
        let recovery = first.before();
        let expected = recovery + below * RTT + above * (RTT + above / 2.0);
        let took = (pair[1].at.as_nanos() - pair[0].at.as_nanos()) as f64 / 1e6;
        assert_near(took, expected, 2.0 * RTT);
    }
}

// --- Acknowledgements (RFC 5681 section 4.2, RFC 2018)

#[test]
fn acknowledgements_wait_for_a_second_packet_or_the_delay() {
    let three = Tcp {
        delayed_acks: true,
        ack_delay: ms(40),
        initial_window: 3,
        bytes: Some(3 * 960),
        ..tcp("reno")
    };
    let network = alone(three.clone(), PLENTY, 1000);
    let acks = crossed(&network, 1, 1);
    // Packets arrive after 51, 52 and 53 ms.
    let seen: Vec<_> = acks.iter().map(|ack| (ack.at, ack.number)).collect();
    assert_eq!(seen, [(52.0, 2), (93.0, 3)]);
    let network = alone(Tcp { delayed_acks: false, ..three }, PLENTY, 1000);
    let seen: Vec<_> = crossed(&network, 1, 1).iter().map(|ack| (ack.at, ack.number)).collect();
    assert_eq!(seen, [(51.0, 1), (52.0, 2), (53.0, 3)]);
}

/// Slow start into a queue of three packets: from the fifth acknowledgement of a round on, every
/// second packet is dropped.
fn many_losses(recovery: Recovery) -> Network {
    // NewReno restarts its timer only at the first partial acknowledgement, so the timeout must be
    // long.
    let min_rto = ms(1000);
    let bytes = Some(200 * 960);
    let options = Tcp { recovery, initial_window: 2, bytes, min_rto, ..tcp("reno") };
    alone(options, packets(3), 10_000)
}

/// Returns the packets that had not crossed the link when packet `below` first crossed it.
fn holes(data: &[Crossed]) -> Vec<u32> {
    let mut next = 0;
    let mut missing = Vec::new();
    for packet in data {
        if packet.number >= next {
            missing.extend(next..packet.number);
            next = packet.number + 1;
        }
    }
    missing
}

#[test]
fn out_of_order_packets_are_acknowledged_immediately() {
    let mut network = many_losses(Recovery::Sack);
    let Traffic::Tcp(tcp) = Arc::make_mut(&mut network.flows[0].traffic) else { unreachable!() };
    tcp.delayed_acks = true;
    let data = crossed(&network, 1, 0);
    let acks = crossed(&network, 1, 1);
    let missing = holes(&data);
    let highest = data.iter().map(|packet| packet.number).max().unwrap();
    let repaired = data.iter().rev().find(|packet| missing.contains(&packet.number)).unwrap();
    // From the first packet above a hole to the packet that fills the last hole.
    let first = data.iter().find(|packet| packet.number > missing[0]).unwrap();
    let during = data.iter().filter(|packet| packet.at >= first.at && packet.at <= repaired.at);
    for packet in during {
        let answer = acks.iter().find(|ack| ack.at == packet.at + 50.0);
        assert!(answer.is_some(), "packet {} of {highest} is not answered", packet.number);
    }
}

// --- Loss recovery (RFC 5681 section 3.2, RFC 6582, RFC 6675)

/// Returns the times of the first loss and of the end of recovery, in milliseconds.
fn first_recovery(flow: &FlowRecord) -> (f64, f64) {
    let lost = events(flow).find(|(_, event)| matches!(event, Event::Lost(_))).unwrap().0;
    let recovered = events(flow).find(|(_, event)| matches!(event, Event::Recovered)).unwrap().0;
    (lost, recovered)
}

#[test]
fn the_third_duplicate_starts_recovery() {
    for recovery in [Recovery::NewReno, Recovery::Reno] {
        let records = run_recorded(&many_losses(recovery), 1);
        let until_loss: Vec<_> = events(&records.flows[0])
            .map(|(_, event)| event)
            .take_while(|event| !matches!(event, Event::Lost(_)))
            .collect();
        let duplicates = until_loss
            .iter()
            .rev()
            .take_while(|event| matches!(event, Event::Acked(acked) if acked.packets == 0));
        assert_eq!(duplicates.count(), 3);
    }
}

/// NewReno retransmits one packet per round trip. SACK retransmits all known losses at once: here
/// those of two round trips, the last of which is detected when a packet sent after the reduction
/// arrives.
#[test]
fn newreno_needs_a_round_trip_per_loss_and_sack_does_not() {
    let missing = holes(&crossed(&many_losses(Recovery::NewReno), 1, 0));
    let newreno = &run_recorded(&many_losses(Recovery::NewReno), 1).flows[0];
    let (lost, recovered) = first_recovery(newreno);
    let repairs: Vec<_> = events(newreno)
        .filter(|(at, event)| (lost..recovered).contains(at) && matches!(event, Event::Lost(_)))
        .map(|(at, _)| at)
        .collect();
    assert!(repairs.len() >= 4 && repairs.len() <= missing.len());
    for pair in repairs.windows(2) {
        // At most three packets wait in front of a retransmission.
        assert!((RTT..=RTT + 3.0).contains(&(pair[1] - pair[0])), "{repairs:?}");
    }
    let trips = repairs.len() as f64;
    assert!((trips * RTT..=trips * (RTT + 3.0)).contains(&(recovered - lost)));

    let records = run_recorded(&many_losses(Recovery::Sack), 1);
    let sack = &records.flows[0];
    let (lost, recovered) = first_recovery(sack);
    assert!(recovered - lost < 3.1 * RTT, "{}", recovered - lost);
    assert!(sack.completed < newreno.completed);
    assert_eq!((sack.timeouts, newreno.timeouts), (0, 0));
    // Exactly the lost packets are retransmitted.
    assert_eq!(sack.retransmissions, records.links[0].drops);
}

/// Reno leaves recovery at the first partial acknowledgement and then needs a timeout.
#[test]
fn reno_times_out_after_many_losses() {
    let records = run(&many_losses(Recovery::Reno), 1);
    assert!(records.flows[0].timeouts > 0);
    assert_eq!(records.flows[0].packets_delivered, 200);
}

#[test]
fn losses_of_one_window_reduce_it_once() {
    for recovery in [Recovery::Sack, Recovery::NewReno] {
        let flow = &run_recorded(&many_losses(recovery), 1).flows[0];
        let (lost, recovered) = first_recovery(flow);
        let during = flow
            .cuts
            .iter()
            .filter(|cut| (lost..=recovered).contains(&(cut.at.as_nanos() as f64 / 1e6)));
        let cuts: Vec<_> = during.collect();
        assert_eq!(cuts.len(), 1);
        assert_eq!(cuts[0].cut.after(), cuts[0].cut.before() / 2.0);
        // The window does not grow before recovery is over (RFC 6675 section 5).
        let windows = entries(flow)
            .iter()
            .filter(|entry| (lost..recovered).contains(&(entry.at.as_nanos() as f64 / 1e6)));
        let after: Vec<_> = windows.map(|entry| entry.output.window).skip(1).collect();
        assert!(after.iter().all(|window| window.get() == cuts[0].cut.after()), "{after:?}");
    }
}

// --- The retransmission timer (RFC 6298)

/// Returns the departure times of the sender's packets. Link 0 is an idle link before the
/// bottleneck.
fn departures(data: &[Crossed]) -> Vec<(f64, u32)> {
    data.iter().map(|packet| (packet.at - 1.0, packet.number)).collect()
}

#[test]
fn the_timer_backs_off_to_one_minute() {
    let mut network = alone(Tcp { syn: true, ..tcp("reno") }, PLENTY, 200_000);
    network.links[0].loss = 1.0;
    let data = crossed(&network, 1, 0);
    assert!(data.iter().all(|packet| packet.tcp.syn));
    // RFC 6298 section 2.1: 1 s; 5.5: doubled; 2.5: at most 60 s. The SYN has 40 bytes.
    let times: Vec<_> = data.iter().map(|packet| packet.at - 0.04).collect();
    let seconds = [0, 1, 3, 7, 15, 31, 63, 123, 183];
    assert_eq!(times, seconds.map(|s| f64::from(s) * 1000.0));
    let records = run(&network, 1);
    assert_eq!((records.flows[0].timeouts, records.flows[0].packets_delivered), (8, 0));
}

/// Stop and wait with a round-trip time of 100 ms. From 450 ms to `until` a flood fills the queue:
/// five samples, then a timeout.
fn stop_and_wait(min_rto: Dur, until: u64) -> Network {
    let options = Tcp { window: 1, initial_window: 1, min_rto, ..tcp("reno") };
    let mut network = alone(options, PLENTY, 5000);
    network.nodes.push("router".into());
    network.links[0].delay = Dur::ZERO;
    network.links[0].to = 2;
    network.links[1].delay = ms(49);
    network.links.push(link(2, 1, 8e6, ms(49), packets(0)));
    network.links.push(link(1, 2, 8e6, ms(49), packets(0)));
    network.flows[0].path = [0, 2].into();
    // Packets with a transmission time of 65.5 ms, sent every 0.1 ms.
    let flood = Traffic::Cbr { rate: 5242.8e6, packet: 65_535, schedule: None, jitter: 0.0 };
    let mut flood = flow(flood);
    flood.path = [2].into();
    flood.back = [3].into();
    flood.start = at_ms(450);
    flood.stop = at_ms(until);
    network.flows.push(flood);
    network
}

#[test]
fn the_timeout_follows_the_rtt_samples() {
    let data = crossed(&stop_and_wait(ms(1), 10_000), 1, 0);
    let sent = departures(&data);
    let first: Vec<_> = (0..6).map(|n| (100.0 * f64::from(n), n)).collect();
    assert_eq!(sent[..6], first);
    // SRTT = 100 ms; RTTVAR = 50 ms after the first sample, then 3/4 of itself at each of four
    // more; RTO = SRTT + 4 RTTVAR, rounded up to a millisecond (sections 2.2 to 2.4).
    let rto = (100.0 + 4.0 * 50.0 * 0.75f64.powi(4)).ceil();
    assert_eq!(rto, 164.0);
    let mut at = 500.0;
    for (n, &(time, number)) in sent[6..].iter().enumerate() {
        at += rto * f64::from(1 << n);
        assert_eq!((time, number), (at, 5));
    }
    assert!(sent.len() >= 10);
    // Section 2.4: the minimum applies.
    let sent = departures(&crossed(&stop_and_wait(ms(1000), 10_000), 1, 0));
    assert_eq!(sent[6..8], [(1500.0, 5), (3500.0, 5)]);
}

/// Karn's algorithm: the acknowledgement of a retransmitted packet gives no sample, and the timer
/// stays backed off until the next sample.
#[test]
fn retransmitted_packets_give_no_rtt_sample() {
    // Retransmitted at 664 and 992 ms, then at 1648 ms into an empty queue.
    let network = stop_and_wait(ms(1), 1500);
    let records = run_recorded(&network, 1);
    let acks: Vec<_> = events(&records.flows[0])
        .filter_map(|(at, event)| match event {
            Event::Acked(acked) => Some((at, acked.rtt)),
            _ => None,
        })
        .collect();
    assert_eq!(acks[5], (1748.0, None));
    assert_eq!(acks[6], (1848.0, Some(ms(100))));
    assert_eq!((records.flows[0].mean_rtt, records.flows[0].min_rtt), (0.1, 0.1));
    assert_eq!(records.flows[0].timeouts, 3);
    // After a timeout the window is one packet and the threshold half of the packets in flight, at
    // least two.
    let cut = records.flows[0].cuts[0].cut;
    assert_eq!((cut.why, cut.after()), (Signal::Timeout, 1.0));

    // The flood starts again just after that acknowledgement: the next timeout is still eight times
    // the first.
    let mut network = stop_and_wait(ms(1), 1500);
    let mut again = network.flows[1].clone();
    (again.start, again.stop) = (at_ms(1700), at_ms(10_000));
    network.flows.push(again);
    let sent = departures(&crossed(&network, 1, 0));
    let after: Vec<_> = sent.iter().filter(|(at, _)| *at > 1648.0).collect();
    assert_eq!(*after[0], (1748.0, 6));
    assert_eq!(*after[1], (1748.0 + 8.0 * 164.0, 6));
}

// --- Explicit congestion notification (RFC 3168)

#[test]
fn marks_reduce_once_per_window_and_are_echoed() {
    let queue = Queue::Red(Red { max: 100.0, max_p: 0.5, weight: 0.02, ..RED });
    let network = alone(Tcp { ecn: true, ..tcp("reno") }, queue, 60_000);
    let records = run(&network, 1);
    let flow = &records.flows[0];
    assert!(flow.cuts.len() > 5 && records.links[0].marks > flow.cuts.len() as u64);
    assert_eq!((flow.packets_lost, flow.retransmissions, flow.timeouts), (0, 0, 0));
    assert_eq!(flow.ecn_cuts, flow.cuts.len() as u64);
    assert!(flow.packets_marked <= records.links[0].marks);
    assert!(flow.cuts.iter().all(|cut| cut.cut.why == Signal::Mark));
    for pair in flow.cuts.windows(2) {
        let gap = (pair[1].at.as_nanos() - pair[0].at.as_nanos()) as f64 / 1e6;
        assert!(gap >= RTT, "two cuts {gap} ms apart");
    }

    // Section 6.1.2: the first new packet after a reduction carries CWR. Section 6.1.3: the
    // receiver sends ECE from a mark until that packet arrives.
    let data = crossed(&network, 1, 0);
    let acks = crossed(&network, 1, 1);
    let reduced: Vec<_> = data.iter().filter(|packet| packet.tcp.cwr).collect();
    assert!(flow.cuts.len() - reduced.len() <= 1);
    for (packet, cut) in reduced.iter().zip(&flow.cuts) {
        let wait = packet.at - cut.at.as_nanos() as f64 / 1e6;
        // The packet is sent after half a window is acknowledged, and then waits in the queue.
        assert!((1.0..2.0 * RTT).contains(&wait), "CWR was set {wait} ms after the cut");
    }
    let mut echo = false;
    let mut arrivals = data.iter();
    for ack in &acks {
        let packet = arrivals.next().unwrap();
        assert_eq!(ack.at, packet.at + 50.0);
        echo = (echo && !packet.tcp.cwr) || packet.marked;
        assert_eq!(ack.tcp.ece, echo, "at {} ms", ack.at);
    }
}

// --- Limits of a sender

/// Returns the shares of time limited by the window, by pacing, by the receiver and by the
/// application.
fn shares(flow: &FlowRecord) -> [f64; 4] {
    let whole: f64 = flow.limited.seconds().iter().sum();
    flow.limited.seconds().map(|seconds| seconds / whole)
}

#[test]
fn a_small_receive_window_limits() {
    let network = alone(Tcp { window: 10, initial_window: 10, ..tcp("reno") }, PLENTY, 10_100);
    let records = run(&network, 1);
    assert_eq!(shares(&records.flows[0]), [0.0, 0.0, 1.0, 0.0]);
    // Ten packets per round trip; those of the hundredth round arrive 51 to 60 ms after its start.
    assert_eq!(records.flows[0].packets_delivered, 1000);
    assert_near(records.links[0].utilization, 10.0 / RTT, 0.001);
}

#[test]
fn the_congestion_window_limits_until_the_receive_window_does() {
    let network = alone(Tcp { window: 16, initial_window: 1, ..tcp("reno") }, PLENTY, 10_100);
    let records = run(&network, 1);
    // One, two, four and eight packets, then 16, the receiver's window.
    assert_near(records.flows[0].limited.window * 1000.0, 4.0 * RTT, 8.0);
    assert_eq!(records.flows[0].limited.pacing, 0.0);
    assert_eq!(records.flows[0].limited.application, 0.0);
}

#[test]
fn an_application_without_data_limits() {
    let short = Tcp { initial_window: 10, bytes: Some(2 * 960), ..tcp("reno") };
    let flow = &run(&alone(short, PLENTY, 1000), 1).flows[0];
    assert_eq!(flow.acknowledged, 0.102);
    assert_eq!(flow.limited.seconds(), [0.0, 0.0, 0.0, 0.102]);
    // Time before the start of the transfer does not count.
    let short = Tcp { initial_window: 1, bytes: Some(2 * 960), ..tcp("reno") };
    let mut network = alone(short, PLENTY, 1000);
    network.flows[0].start = at_ms(500);
    let flow = &run(&network, 1).flows[0];
    assert_near(flow.acknowledged, 0.5 + 2.0 * 0.101, 1e-9);
    assert_near(flow.limited.window, 0.101, 1e-9);
    assert_near(flow.limited.application, 0.101, 1e-9);
}

// --- Open-loop sources

#[test]
fn constant_bit_rate_is_exact() {
    // 1 Mb/s in packets of 125 bytes: one per millisecond, starting at 0.
    let cbr = |schedule| Traffic::Cbr { rate: 1e6, packet: 125, schedule, jitter: 0.0 };
    let sent = |schedule| {
        let network = pair(8e6, ms(1), PLENTY, vec![cbr(schedule)], ms(1000));
        let records = run(&network, 1);
        (records.flows[0].packets_sent, records.flows[0].series.sent.clone())
    };
    assert_eq!(sent(None).0, 1000);
    // On at 0, 400 and 800 ms for 100 ms each.
    let (count, series) = sent(Some((ms(100), ms(300))));
    assert_eq!(count, 300);
    for (time, expected) in [(0, 0.0), (50, 50.0), (100, 100.0), (399, 100.0), (450, 150.0)] {
        assert_eq!(series[time], expected, "at {time} ms");
    }
}

/// Eifel detection (RFC 3522 section 3.2): on a path that keeps the order of packets, only a
/// timeout can be spurious. A retransmission of the last recovery that is in flight when the next
/// one begins is older than those of the next one.
#[test]
fn losses_in_order_are_not_spurious() {
    // Its window hardly decreases, so that recoveries follow one another.
    let steady = || tcp("aimd(alpha=2, beta=1/64)");
    let stamps = |tcp: Tcp| Tcp { timestamps: Some(ms(1)), ..tcp };
    let rack = TcpExtensions { rack: true, prr: true, ..TcpExtensions::default() };
    let stacks = [
        stamps(steady()),
        stamps(Tcp { recovery: Recovery::NewReno, ..steady() }),
        stamps(Tcp { extensions: rack, ..steady() }),
        stamps(Tcp { conventions: Conventions::Linux, extensions: rack, ..steady() }),
    ];
    for tcp in stacks {
        let mut network = alone(Tcp { min_rto: ms(1000), ..tcp.clone() }, packets(200), 60_000);
        network.links[0].loss = 0.01;
        let flow = &run_recorded(&network, 1).flows[0];
        let count =
            |kind: fn(&Event) -> bool| events(flow).filter(|(_, event)| kind(event)).count();
        assert!(count(|event| matches!(event, Event::Lost(_))) > 20, "{tcp:?}");
        let undone = count(|event| matches!(event, Event::Undo));
        let timeouts = count(|event| matches!(event, Event::Timeout(_)));
        assert!(undone <= timeouts, "{undone} of {timeouts} timeouts: {tcp:?}");
    }
}

/// RFC 8985 section 7.2: there are no tail loss probes in recovery. Packet 10 and its
/// retransmission are lost: the next transmission is that of the timeout.
#[test]
fn recovery_cancels_a_tail_loss_probe() {
    let tlp = TcpExtensions { tlp: true, ..TcpExtensions::default() };
    let (window, bytes, min_rto) = (10, Some(20 * 960), ms(1000));
    let tcp = Tcp { extensions: tlp, initial_window: 10, window, bytes, min_rto, ..tcp("reno") };
    let mut network = alone(tcp, packets(20), 10_000);
    // Full queues at 101 ms, when packet 10 is sent, and while three acknowledgements with SACK
    // blocks arrive.
    for (start, stop) in [(100_500, 101_200), (222_500, 240_000)] {
        let flood = Traffic::Cbr { rate: 800e6, packet: 1000, schedule: None, jitter: 0.0 };
        let [start, stop] = [start, stop].map(|micros| Time::from_nanos(micros * 1000));
        network.flows.push(Flow { start, stop, ..flow(flood) });
    }
    let sent = crossed(&network, 1, 0);
    let numbers: Vec<_> = sent.iter().map(|packet| packet.number).collect();
    let expected: Vec<_> = (0..10).chain(11..20).chain([10]).collect();
    assert_eq!(numbers, expected);
    // The timeout runs from the retransmission, at 224 ms.
    assert_near(sent[19].at, 224.0 + 1000.0, 3.0);
}

#[test]
fn jitter_keeps_the_rate() {
    let cbr = Traffic::Cbr { rate: 1e6, packet: 125, schedule: None, jitter: 0.5 };
    let records = run(&pair(8e6, ms(1), PLENTY, vec![cbr], ms(20_000)), 1);
    // 20000 gaps, uniformly distributed with a width of half the mean: a standard deviation of 0.5
    // / sqrt(12).
    let deviation = 0.5 / 12f64.sqrt() * 20_000f64.sqrt();
    assert_near(records.flows[0].packets_sent as f64, 20_000.0, 4.0 * deviation);
    assert_ne!(records.flows[0].packets_sent, 20_000);
}

#[test]
fn pareto_sources_have_their_mean_rate() {
    let (on, off) = (200, 600);
    let pareto = Traffic::Pareto { rate: 1e6, packet: 125, on: ms(on), off: ms(off), shape: 1.9 };
    let network = pair(1e9, ms(1), PLENTY, vec![pareto; 400], ms(50_000));
    let records = run(&network, 1);
    let sent: u64 = records.flows.iter().map(|flow| flow.packets_sent).sum();
    let expected = 400.0 * 50_000.0 * on as f64 / (on + off) as f64;
    // 25000 periods each; with shape 1.9 the deviation of a sum of n periods grows as n^(1/1.9).
    assert_near(sent as f64 / expected, 1.0, 0.04);
}

/// A flow whose pacing interval exceeds its timeout has timeouts only for lost packets.
#[test]
fn a_slow_paced_flow_times_out_only_for_losses() {
    for law in ["daimd", "udt", "tfrc"] {
        let traffic = vec![Traffic::Tcp(tcp(law))];
        let mut network = pair(10e6, ms(10), packets(50), traffic, ms(60_000));
        network.links[0].loss = 0.3;
        let flow = &run(&network, 1).flows[0];
        assert!(flow.packets_lost > 0, "{law}");
        assert!(flow.timeouts <= flow.packets_lost, "{law}: {} timeouts", flow.timeouts);
    }
}

/// Returns the share of the first of two Reno flows, whose one-way delay is less than that of the
/// second by `difference`.
fn share_of_first(overhead: Option<Dur>, difference: Dur) -> f64 {
    let reno = Tcp { overhead, ..tcp("reno") };
    let access =
        |from, delay| [link(from, 2, 8e6, delay, PLENTY), link(2, from, 8e6, delay, PLENTY)];
    let [first, second] = [access(0, ms(5)), access(1, ms(5) + difference)];
    let shared = [link(2, 3, 8e5, ms(20), packets(8)), link(3, 2, 8e5, ms(20), PLENTY)];
    let connection = |path: [usize; 2], back: [usize; 2], start| Flow {
        path: path.into(),
        back: back.into(),
        start: at_ms(start),
        ..flow(Traffic::Tcp(reno.clone()))
    };
    let network = Network {
        name: "phase".into(),
        nodes: ["a", "b", "left", "right"].map(String::from).to_vec(),
        links: [first, second, shared].concat(),
        flows: vec![connection([0, 4], [5, 1], 0), connection([2, 4], [5, 3], 1000)],
        duration: ms(300_000),
        warmup: ms(30_000),
        sample: ms(1000),
    };
    share(&run(&network, 1))
}

/// Phase effects (Floyd and Jacobson 1992): without processing times of hosts, 2 ms of delay decide
/// which flow gets most of a link that takes 10 ms for a packet. The default removes the effect.
#[test]
fn processing_times_remove_phase_effects() {
    let largest_step = |overhead| {
        let shares: Vec<f64> = (0..15).map(|step| share_of_first(overhead, ms(2 * step))).collect();
        shares.windows(2).map(|pair| (pair[1] - pair[0]).abs()).fold(0.0, f64::max)
    };
    let [without, with] = [Some(Dur::ZERO), None].map(largest_step);
    assert!(without > 0.3 && with < 0.15, "{without} {with}");
}

/// On a dead path TFRC goes down to a packet in 64 s (RFC 5348 section 4.4), and the timer backs
/// off as UDT4's (EXP): the n-th expiry without feedback follows n times 300 ms after the one
/// before, so that 63 come in the first 600 s and 26 in the next.
#[test]
fn a_paced_flow_backs_off_on_a_dead_path() {
    for law in ["tfrc", "udt", "daimd"] {
        let traffic = vec![Traffic::Tcp(tcp(law))];
        let mut network = pair(10e6, ms(10), packets(50), traffic, ms(1_200_000));
        let blackouts = vec![Blackout { at: ms(5000), length: ms(1_195_000) }];
        network.links[0].impairments =
            Some(Arc::new(Impairments { blackouts, ..Impairments::default() }));
        (network.warmup, network.sample) = (ms(600_000), ms(1000));
        let flow = &run(&network, 1).flows[0];
        assert!((24..=28).contains(&flow.timeouts), "{law}: {} timeouts", flow.timeouts);
        if law == "tfrc" {
            assert!((8..=10).contains(&flow.packets_sent), "{} packets", flow.packets_sent);
        }
    }
}
