//! Accurate ECN feedback (AccECN, RFC 9768) in simulations: the sender counts the packets that the
//! receiver saw marked.

use crate::common::wire::crossed;
use crate::common::{RED, entries, link, ms, packets, pair, run, run_recorded, tcp};
use cwnd::{Dur, Event, Signal};
use cwnd_sim::network::{
    Conventions, Impairments, Network, Queue, Recovery, Red, Tcp, TcpExtensions, Traffic,
};
use cwnd_sim::record::FlowRecord;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Marks every packet that finds eight others: after slow start many in a row.
const STEEP: Red = Red { min: 3.0, max: 8.0, max_p: 1.0, weight: 1.0, wait: false, ..RED };

/// 3000 packets with AccECN.
fn with_accecn(options: Tcp) -> Tcp {
    let extensions = TcpExtensions { accecn: true, ..options.extensions };
    Tcp { ecn: true, bytes: Some(3000 * 960), extensions, ..options }
}

/// 4 Mb/s and 40 ms.
fn network(tcp: Tcp, red: Red) -> Network {
    pair(4e6, ms(20), Queue::Red(red), vec![Traffic::Tcp(tcp)], ms(600_000))
}

/// Stacks with different loss recovery and acknowledgements.
fn stacks() -> Vec<Tcp> {
    let linux = TcpExtensions {
        rack: true,
        tlp: true,
        prr: true,
        dsack: true,
        frto: true,
        ..TcpExtensions::default()
    };
    let base = tcp("reno");
    vec![
        base.clone(),
        Tcp { delayed_acks: true, syn: true, ..base.clone() },
        Tcp { recovery: Recovery::NewReno, delayed_acks: true, ..base.clone() },
        Tcp { l4s: true, timestamps: Some(ms(1)), syn: true, ..base.clone() },
        Tcp {
            conventions: Conventions::Linux,
            extensions: linux,
            delayed_acks: true,
            timestamps: Some(ms(1)),
            syn: true,
            ..base
        },
    ]
}

/// The marks that the controller was told of.
fn reported(flow: &FlowRecord) -> u64 {
    let marks = |event: &Event| match event {
        Event::Marked(marked) => u64::from(marked.packets),
        _ => 0,
    };
    entries(flow).iter().map(|entry| marks(&entry.event)).sum()
}

#[test]
fn every_mark_is_counted_without_loss() {
    for options in stacks() {
        let flow = &run_recorded(&network(with_accecn(options.clone()), STEEP), 1).flows[0];
        assert!(flow.completed.is_finite() && flow.packets_lost == 0, "{options:?}");
        assert!(flow.packets_marked > 30, "{} of {options:?}", flow.packets_marked);
        assert_eq!(reported(flow), flow.packets_marked, "{options:?}");
        let acked = entries(flow).iter().map(|entry| match &entry.event {
            Event::Acked(acked) => u64::from(acked.marked),
            _ => 0,
        });
        assert_eq!(acked.sum::<u64>(), flow.packets_marked, "{options:?}");
    }
}

/// A law of RFC 3168 reduces its window once in a round-trip time of 40 ms and the queueing delay.
#[test]
fn marks_reduce_the_window_once_in_a_round() {
    for options in stacks() {
        let flow = &run_recorded(&network(with_accecn(options.clone()), STEEP), 1).flows[0];
        assert!(flow.cuts.len() > 5 && flow.packets_marked > flow.ecn_cuts, "{options:?}");
        assert_eq!(flow.ecn_cuts, flow.cuts.len() as u64);
        assert!(flow.cuts.iter().all(|cut| cut.cut.why == Signal::Mark));
        for pair in flow.cuts.windows(2) {
            let gap = pair[1].at.as_nanos() - pair[0].at.as_nanos();
            assert!(gap >= 40_000_000, "two cuts {gap} ns apart: {options:?}");
        }
    }
}

/// RFC 3168 section 6.1.2: the marks of a window of data are answered once, also if the last of
/// them is acknowledged together with the first packet after the reduction. Each reduction answers
/// a mark of a packet that was sent after the one before.
#[test]
fn a_reduction_answers_a_mark_of_its_own_window() {
    let threshold = Red { min: 20.0, max: 20.0, gentle: false, limit: 200, ..STEEP };
    for options in stacks() {
        for accecn in [false, true] {
            let extensions = TcpExtensions { accecn, ..options.extensions };
            let controller = "highspeed".into();
            let options = Tcp { controller, ecn: true, extensions, ..options.clone() };
            let mut network = pair(
                20e6,
                ms(25),
                Queue::Red(threshold),
                vec![Traffic::Tcp(options.clone())],
                ms(30_000),
            );
            // Packets leave the source at the time when they are sent.
            network.nodes.push("router".into());
            network.links.push(link(0, 2, 100e9, Dur::ZERO, packets(100_000)));
            network.links[0].from = 2;
            network.flows[0].path = [2, 0].into();
            let flow = &run(&network, 1).flows[0];
            assert!(flow.cuts.len() > 5 && flow.packets_lost == 0, "{options:?}");
            let sent: BTreeMap<_, _> =
                crossed(&network, 1, 2).into_iter().map(|one| (one.number, one.at)).collect();
            let marked: Vec<_> = crossed(&network, 1, 0)
                .into_iter()
                .filter(|one| one.marked)
                .map(|one| sent[&one.number])
                .collect();
            for pair in flow.cuts.windows(2) {
                let [before, after] = [0, 1].map(|place| pair[place].at.as_nanos() as f64 / 1e6);
                let answered = marked.iter().any(|&at| at >= before && at < after);
                assert!(
                    answered,
                    "{options:?}: the reduction at {after} ms after one at {before} ms"
                );
            }
        }
    }
}

/// The sender never counts fewer marks than there were (RFC 9768 section 3.2.2.5.2), with packets
/// and acknowledgements lost.
#[test]
fn no_mark_is_missed_with_losses_and_thinned_acknowledgements() {
    for options in stacks() {
        for (loss, thinning) in [(0.1, 0), (0.3, 0), (0.0, 30)] {
            let mut network = network(with_accecn(options.clone()), STEEP);
            network.links[0].loss = 0.002;
            network.links[1].loss = loss;
            network.links[1].loss_of_acks = true;
            if thinning > 0 {
                let impairments =
                    Impairments { ack_thinning: ms(thinning), ..Impairments::default() };
                network.links[1].impairments = Some(Arc::new(impairments));
            }
            let flow = &run_recorded(&network, 2).flows[0];
            assert!(flow.completed.is_finite(), "{loss}, {thinning}: {options:?}");
            assert!(flow.packets_marked > 8, "{} of {options:?}", flow.packets_marked);
            let counted = reported(flow);
            assert!(
                counted >= flow.packets_marked,
                "{counted} of {} marks, {loss}, {thinning}: {options:?}",
                flow.packets_marked
            );
        }
    }
}

/// With the echo of RFC 3168 the same path reports other numbers: AccECN is what counts.
#[test]
fn an_echo_does_not_count() {
    let options = Tcp { ecn: true, bytes: Some(3000 * 960), ..tcp("reno") };
    let flow = &run_recorded(&network(options, STEEP), 1).flows[0];
    assert_ne!(reported(flow), flow.packets_marked);
}

#[test]
fn accecn_needs_ecn_and_recent_conventions() {
    let refusal = |tcp: Tcp| {
        let network = pair(4e6, ms(20), packets(50), vec![Traffic::Tcp(tcp)], ms(100));
        network.validate().unwrap_err().to_string()
    };
    let without = Tcp { ecn: false, ..with_accecn(tcp("reno")) };
    assert!(refusal(without).contains("needs ecn"));
    let old = Tcp { conventions: Conventions::Ns2, ..with_accecn(tcp("reno")) };
    assert!(refusal(old).contains("ns-2 has none"));
}
