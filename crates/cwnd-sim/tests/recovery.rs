//! F-RTO (RFC 5682) and PRR (RFC 9937) in a connection, with losses of chosen packets.
//!
//! Packets of 1000 bytes leave the first link each millisecond and cross the second one in 0.1 ms
//! and 50 ms; acknowledgements take 50 ms.

use crate::common::wire::{Crossed, crossed};
use crate::common::{RED, entries, flow, link, ms, packets, run_recorded, scenario, simulate, tcp};
use cwnd::{Dur, Event, Reduction, Signal};
use cwnd_sim::network::{
    Blackout, Change, Conventions, Impairments, Network, Queue, Red, Tcp, TcpExtensions, Traffic,
};
use cwnd_sim::record::{FlowRecord, Records};

fn network(tcp: Tcp, queue: Queue, duration: u64) -> Network {
    let mut back = link(2, 0, 8e6, ms(50), packets(1000));
    back.rate = None;
    let mut flow = flow(Traffic::Tcp(tcp));
    (flow.path, flow.back) = ([0, 1].into(), [2].into());
    Network {
        name: "recovery".into(),
        nodes: vec!["source".into(), "middle".into(), "sink".into()],
        links: vec![
            link(0, 1, 8e6, Dur::ZERO, queue),
            link(1, 2, 80e6, ms(50), packets(1000)),
            back,
        ],
        flows: vec![flow],
        duration: ms(duration),
        warmup: Dur::ZERO,
        sample: ms(1),
    }
}

/// Loses what reaches link number `link` in these periods, given in microseconds.
fn black_out(network: &mut Network, link: usize, periods: &[(u64, u64)]) {
    let micros = |count| Dur::from_nanos(count * 1000);
    let blackout = |&(from, to)| Blackout { at: micros(from), length: micros(to - from) };
    let blackouts = periods.iter().map(blackout).collect();
    let impairments = Impairments { blackouts, ..Impairments::default() };
    network.links[link].impairments = Some(impairments.into());
}

fn count(records: &Records, kind: fn(&Event) -> bool) -> usize {
    entries(&records.flows[0]).iter().filter(|entry| kind(&entry.event)).count()
}

fn undone(records: &Records) -> usize {
    count(records, |event| matches!(event, Event::Undo))
}

/// The numbers of the packets that leave in a period of milliseconds.
fn numbers(sent: &[Crossed], from: f64, to: f64) -> Vec<u32> {
    sent.iter().filter(|one| (from..to).contains(&one.at)).map(|one| one.number).collect()
}

fn frto(conventions: Conventions) -> Tcp {
    let extensions = TcpExtensions { frto: true, ..TcpExtensions::default() };
    Tcp { conventions, extensions, initial_window: 10, ..tcp("reno") }
}

/// RFC 5682 section 3.1, step 2a: the acknowledgement of the retransmission covers all packets. It
/// proves nothing: the first packet was lost, and the acknowledgements of the others. The window is
/// two packets. Linux takes the others for a proof.
#[test]
fn rfc_5682_section_3_1_step_2a() {
    for (conventions, spurious) in [(Conventions::Rfc, 0), (Conventions::Linux, 1)] {
        let mut network = network(frto(conventions), packets(1000), 1150);
        black_out(&mut network, 1, &[(500, 1500)]);
        black_out(&mut network, 2, &[(40_000, 80_000)]);
        let records = run_recorded(&network, 1);
        assert_eq!(records.flows[0].timeouts, 1);
        assert_eq!(undone(&records), spurious, "{conventions:?}");
        if conventions == Conventions::Rfc {
            let sent = crossed(&network, 1, 0);
            assert_eq!(numbers(&sent, 500.0, 1200.0), [0, 10, 11]);
        }
    }
}

/// Steps 2b and 3a: the acknowledgement of the retransmission is followed by two new packets. Their
/// acknowledgement shows that packet 5 was lost too; it is retransmitted.
#[test]
fn rfc_5682_section_3_1_step_3a() {
    let mut network = network(frto(Conventions::Rfc), packets(1000), 1220);
    black_out(&mut network, 1, &[(500, 1500), (5500, 6500)]);
    black_out(&mut network, 2, &[(40_000, 80_000)]);
    let records = run_recorded(&network, 1);
    assert_eq!((records.flows[0].timeouts, undone(&records)), (1, 0));
    let sent = crossed(&network, 1, 0);
    let expected = [0, 10, 11, 5];
    assert_eq!(numbers(&sent, 500.0, 1250.0)[..4], expected);
    // The window is three packets at most.
    let mut windows = entries(&records.flows[0]).iter();
    let last = windows.rfind(|entry| matches!(entry.event, Event::Reduced { .. })).unwrap();
    assert!(last.output.window.get() <= 3.0);
}

/// Steps 2b and 3b: the path becomes 250 ms longer, and the timeout is spurious. Only the first
/// packet is retransmitted, and the two new packets of step 2b are the first ones after it.
#[test]
fn rfc_5682_section_3_1_step_3b() {
    let mut network = network(frto(Conventions::Rfc), packets(1000), 1000);
    let change = Change { at: ms(250), delay: Some(ms(300)), ..Change::default() };
    let impairments = Impairments { changes: vec![change], ..Impairments::default() };
    network.links[1].impairments = Some(impairments.into());
    let records = run_recorded(&network, 1);
    let flow: &FlowRecord = &records.flows[0];
    assert_eq!((flow.timeouts, undone(&records)), (1, 1));
    assert_eq!(flow.retransmissions, 1);
    let numbers = numbers(&crossed(&network, 1, 0), 0.0, 1000.0);
    let again = (1..numbers.len()).find(|&at| numbers[at] < numbers[at - 1]).unwrap();
    let high = numbers[again - 1] + 1;
    assert_eq!(numbers[again + 1..again + 3], [high, high + 1]);
}

/// Marks every packet that finds 50 others.
const STEEP: Red = Red { min: 40.0, max: 50.0, max_p: 1.0, weight: 1.0, wait: false, ..RED };

/// Runs a connection whose window is reduced by a mark, and which loses the first packet sent after
/// that.
fn loss_after_a_mark(conventions: Conventions) -> (Network, Records) {
    let extensions = TcpExtensions { rack: true, prr: true, ..TcpExtensions::default() };
    let tcp = Tcp { conventions, extensions, ecn: true, initial_window: 60, ..tcp("reno") };
    let mut network = network(tcp, Queue::Red(STEEP), 450);
    let records = run_recorded(&network, 1);
    let cut = &records.flows[0].cuts[0];
    let marked = entries(&records.flows[0]).iter().find_map(|entry| match entry.event {
        Event::Marked(marked) if entry.at == cut.at => Some(marked.sent),
        _ => None,
    });
    let sent = crossed(&network, 1, 0);
    let next = sent.iter().find(|one| u64::from(one.number) == marked.unwrap()).unwrap();
    let micros = (next.at * 1000.0) as u64;
    black_out(&mut network, 1, &[(micros - 500, micros + 500)]);
    let records = run_recorded(&network, 1);
    (network, records)
}

/// RFC 9937 section 6.1: PRR begins anew with each reduction by the controller. Where the packet
/// sent after a mark's reduction is lost, the window is reduced again, and the packets sent in the
/// next round-trip time are as many as that window.
#[test]
fn rfc_9937_section_6_1_a_loss_after_a_mark() {
    let (network, records) = loss_after_a_mark(Conventions::Rfc);
    let cuts = &records.flows[0].cuts;
    let whys: Vec<_> = cuts.iter().map(|cut| cut.cut.why).collect();
    assert_eq!(whys, [Signal::Mark, Signal::Loss]);
    let Reduction::Window { before, after } = cuts[1].cut.reduction else { panic!() };
    assert_eq!(after.get(), before.get() / 2.0);
    let at = cuts[1].at.as_nanos() as f64 / 1e6;
    let sent = numbers(&crossed(&network, 1, 0), at, at + 101.0);
    assert!((sent.len() as f64 - after.get()).abs() <= 2.0, "{} of {}", sent.len(), after.get());
}

/// `tcp_enter_recovery` of Linux 6.18: a loss in the reduction of a mark begins a recovery that
/// continues this reduction and ends with its packets. The lost packet was sent after them and is
/// still outstanding: it begins a recovery of its own, which reduces the window.
#[test]
fn a_loss_after_a_mark_in_linux() {
    let (_, records) = loss_after_a_mark(Conventions::Linux);
    let flow = &records.flows[0];
    let events = entries(flow).iter();
    let losses: Vec<_> = events.filter(|entry| matches!(entry.event, Event::Lost(_))).collect();
    let whys: Vec<_> = flow.cuts.iter().map(|cut| cut.cut.why).collect();
    assert_eq!(whys, [Signal::Mark, Signal::Loss]);
    assert_eq!(losses.len(), 2);
    assert_eq!(losses[1].at, flow.cuts[1].at);
    assert!(losses[0].at < losses[1].at);
}

/// RFC 5681 section 3.1: the threshold stays if a packet that a timeout has retransmitted times out
/// again.
#[test]
fn a_repeated_timeout_keeps_the_threshold() {
    for conventions in [Conventions::Rfc, Conventions::Linux] {
        let mut network = network(Tcp { conventions, ..tcp("reno") }, packets(1000), 8000);
        black_out(&mut network, 1, &[(500_000, 4_500_000)]);
        let records = run_recorded(&network, 1);
        assert!(records.flows[0].timeouts > 1, "{}", records.flows[0].timeouts);
        let reported = count(&records, |event| matches!(event, Event::Timeout(_)));
        let reduced = count(&records, |event| matches!(event, Event::Reduced { .. }));
        assert_eq!(reported, 1, "{conventions:?}");
        assert!(reduced > 0, "{conventions:?}");
    }
}

/// Each loss is reported once, before its retransmission, also after an undo and if the packet was
/// sent in the recovery before.
#[test]
fn losses_are_reported_once() {
    for (conventions, impairments) in [
        ("rfc", "loss = 0.005\nreorder = { probability = 0.005, delay = \"8ms\" }"),
        ("linux", "loss = 0.01"),
        ("linux", "loss = 0.02"),
    ] {
        let text = format!(
            "duration = \"30s\"\nwarmup = \"0s\"\n\
             tcp = {{ conventions = \"{conventions}\", timestamps = true }}\n\
             [dumbbell]\nrate = \"20mbit\"\ndelay = \"20ms\"\nqueue = \"infinite\"\n{impairments}\n\
             back = {{ loss = 0 }}\n[[flow]]\ncontroller = \"scalable\"\n"
        );
        let network = scenario(&text, 2);
        let flow = &run_recorded(&network, 2).flows[0];
        let reported = entries(flow).iter().map(|entry| match entry.event {
            Event::Lost(lost) => u64::from(lost.packets),
            _ => 0,
        });
        let (reported, repaired) = (reported.sum::<u64>(), flow.retransmissions);
        println!("{conventions}: {reported} reported, {repaired} repaired, {}", flow.timeouts);
        assert_eq!(flow.timeouts, 0);
        assert!(reported.abs_diff(repaired) <= 3, "{conventions}: {reported}, {repaired}");
    }
}

/// `tcp_ack_update_rtt`: with timestamps the controller gets a round-trip time from retransmissions
/// too. After an outage of a second Copa has no others for some time.
#[test]
fn retransmissions_give_round_trip_times_in_linux() {
    for timestamps in [false, true] {
        let text = format!(
            "duration = \"4s\"\ntcp = {{ conventions = \"linux\", timestamps = {timestamps} }}\n\
             [dumbbell]\nrate = \"10mbit\"\ndelay = \"50ms\"\n\
             blackout = [{{ at = \"1s\", for = \"1s\" }}]\n[[flow]]\ncontroller = \"copa\"\n"
        );
        let records = run_recorded(&scenario(&text, 1), 1);
        let without = count(
            &records,
            |event| matches!(event, Event::Acked(acked) if acked.packets > 0 && acked.rtt.is_none()),
        );
        assert_eq!(without == 0, timestamps, "{without}");
    }
}

/// `tcp_clean_rtx_queue`: the timeout begins again while packets are SACKed that were sent before
/// the oldest one was retransmitted. The queue has become so long that the acknowledgement of the
/// retransmission needs more than the timeout.
#[test]
fn sacks_restart_the_timeout_in_linux() {
    let records = simulate(
        "duration = \"4s\"\ntcp.conventions = \"linux\"\n[dumbbell]\nrate = \"20mbit\"\n\
         delay = \"100ms\"\nqueue = { kind = \"red\", limit = \"1334p\" }\n\
         [[flow]]\ncontroller = \"reno\"\n",
        1,
    );
    let flow = &records.flows[0];
    assert!(flow.retransmissions > 200, "{}", flow.retransmissions);
    assert_eq!(flow.timeouts, 0);
}
