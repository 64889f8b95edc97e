//! Invariants of all networks: packets are conserved, queues respect their limits, transfers
//! complete.

use crate::common::{at_ms, flow, ms, packets, tcp};
use cwnd::Dur;
use cwnd_sim::network::{
    Codel, Conventions, DualPi2, Flow, Fq, FqCodel, Link, Network, Pie, Queue, QueueLimit,
    Recovery, Red, Tcp, TcpExtensions, Traffic,
};
use cwnd_sim::record::{FlowRecord, LinkRecord, Records};
use cwnd_sim::{Options, Simulation};
use proptest::prelude::*;
use proptest::sample::select;

/// More than any of these runs needs, so that a run without progress fails.
const MAX_EVENTS: u64 = 20_000_000;

const LAWS: &[&str] = &[
    "reno",
    "aimd(0.31, 1/8)",
    "aimd(alpha=4, beta=7/8)",
    "gaimd",
    "friendly",
    "binomial(k=1, l=0)",
    "iiad",
    "sqrt",
    "simd",
    "simd(beta=1/2)",
    "aira",
    "aiad",
    "aiad(rate=receiver)",
    "westwood",
    "scalable",
    "highspeed",
    "bic",
    "cubic",
    "vegas",
    "cubic(start=hystart)",
    "bbr",
    "bbr3",
    "copa",
    "copa(delta=0.1, competitive=off)",
    "c4",
    "dctcp",
    "prague",
    "prague(transition=0)",
    "ledbat",
    "ledbat(plus=on)",
];
const PACED: &[&str] = &["udt", "daimd", "daimd(lambda=1)", "tfrc"];

fn queues() -> impl Strategy<Value = Queue> {
    let red = (1u32..60, 0.5..10.0, 1.0..20.0, 0.01..1.0, 0.001..1.0, any::<[bool; 3]>());
    prop_oneof![
        (0u32..60).prop_map(packets),
        (0u64..60_000).prop_map(|bytes| Queue::DropTail { limit: QueueLimit::Bytes(bytes) }),
        red.prop_map(|(limit, min, more, max_p, weight, [gentle, wait, ecn])| Queue::Red(Red {
            limit,
            min,
            max: min + more,
            max_p,
            weight,
            gentle,
            wait,
            ecn,
            mark_p: if gentle { 1.0 } else { 0.5 },
            mean_packet: 1000,
        })),
        managed_queues(),
    ]
}

/// Queues of the disciplines that decide at departure.
fn managed_queues() -> impl Strategy<Value = Queue> {
    let limit = prop_oneof![
        (1u32..60).prop_map(QueueLimit::Packets),
        (2000u64..60_000).prop_map(QueueLimit::Bytes),
    ];
    (limit, 0..5, 1u64..20, 1u32..5, any::<bool>()).prop_map(|(limit, kind, target, flows, ecn)| {
        let [target, interval] = [target, 5 * target].map(ms);
        let codel = Codel { limit, target, interval, ecn, maxpacket: 1000 };
        match kind {
            0 => Queue::Codel(codel),
            1 => Queue::FqCodel(FqCodel {
                codel,
                flows,
                quantum: 500,
                ce_threshold: ecn.then_some(target),
            }),
            2 => Queue::Fq(Fq {
                limit,
                flow_limit: 10 * flows,
                flows,
                quantum: 500,
                initial_quantum: 3000,
            }),
            3 => Queue::Pie(Pie {
                limit,
                qdelay_ref: target,
                t_update: target,
                alpha: 0.125,
                beta: 1.25,
                max_burst: interval,
                ecn,
                mark_ecnth: 0.1,
                mean_pktsize: 1000,
                derandomize: true,
            }),
            _ => Queue::DualPi2(DualPi2 {
                limit,
                target,
                tupdate: target,
                alpha: 1.0,
                beta: 3.0,
                k: 2.0,
                min_th: Dur::from_micros(800),
                range: Dur::from_micros(400),
                th_len: 1,
                classic_protection: 0.1,
                mtu: 1500,
            }),
        }
    })
}

/// Links with rates from 100 kb/s to 30 Mb/s or infinite ones and loss probabilities of up to 9 %.
fn links() -> impl Strategy<Value = Link> {
    let rate = prop_oneof![1 => Just(None), 5 => (5.0..7.5f64).prop_map(|r| Some(10f64.powf(r)))];
    let loss = prop_oneof![2 => Just(0.0), 1 => 0.0..0.09];
    (rate, 0u64..60_000, queues(), loss, any::<bool>()).prop_map(
        |(rate, micros, queue, loss, loss_of_acks)| {
            let link = Link::new("", [0, 0], rate, Dur::from_micros(micros), queue);
            Link { loss, loss_of_acks, ..link }
        },
    )
}

/// Conventions and a loss recovery that they have.
fn stack() -> impl Strategy<Value = (Conventions, Recovery, TcpExtensions)> {
    let recoveries = vec![Recovery::Sack, Recovery::NewReno, Recovery::Reno];
    let older = vec![Conventions::Rfc, Conventions::Ns2, Conventions::Ns2001];
    let older = (select(older), select(recoveries))
        .prop_map(|(conventions, recovery)| (conventions, recovery, TcpExtensions::default()));
    let recent = (select(vec![Conventions::Rfc, Conventions::Linux]), any::<[bool; 5]>()).prop_map(
        |(conventions, [rack, tlp, prr, dsack, frto])| {
            (
                conventions,
                Recovery::Sack,
                TcpExtensions { rack, tlp, prr, dsack, frto, ..TcpExtensions::default() },
            )
        },
    );
    prop_oneof![3 => older, 2 => recent]
}

prop_compose! {
    fn transport()(
        (conventions, recovery, extensions) in stack(),
        (packet, header) in select(vec![(1460, 40), (1000, 0), (500, 40), (1, 0), (100, 200)]),
        (initial_window, window) in (1u32..12, prop_oneof![1u32..40, Just(1_000_000)]),
        [delayed_acks, ecn, accecn, limited_transmit, syn, byte_counting] in any::<[bool; 6]>(),
        stamps in prop_oneof![Just(None), (1u64..20_000).prop_map(|t| Some(Dur::from_nanos(1000 * t)))],
        (granularity, min_rto) in (1u64..200, 1u64..1000),
        overhead in prop_oneof![4 => Just(0), 1 => 1u64..3],
    ) -> Tcp {
        Tcp {
            recovery,
            conventions,
            packet,
            header,
            initial_window,
            window,
            delayed_acks,
            ack_delay: ms(min_rto / 2),
            ecn,
            timestamps: stamps,
            limited_transmit,
            syn,
            byte_counting,
            granularity: ms(granularity),
            min_rto: ms(min_rto),
            overhead: Some(ms(overhead)),
            extensions: TcpExtensions {
                accecn: accecn
                    && ecn
                    && matches!(conventions, Conventions::Rfc | Conventions::Linux),
                ..extensions
            },
            ..tcp("")
        }
    }
}

/// TCP and paced flows of up to 200 packets.
fn transfers() -> impl Strategy<Value = Tcp> {
    let law = prop_oneof![6 => select(LAWS.to_vec()), 1 => select(PACED.to_vec())];
    (transport(), law, 1u64..200, 0u32..1000).prop_map(|(tcp, law, count, part)| {
        // The last packet may be shorter.
        let bytes = (count - 1) * u64::from(tcp.packet) + u64::from(1 + part % tcp.packet);
        Tcp { controller: law.into(), bytes: Some(bytes), ..tcp }
    })
}

/// Creates a chain of links in each direction and flows from one end to the other.
fn network(there: Vec<Link>, back: Vec<Link>, flows: Vec<(Traffic, u64)>) -> Network {
    let path: Vec<_> = (0..there.len()).collect();
    let way_back: Vec<_> = (there.len()..there.len() + back.len()).collect();
    let flows = flows.into_iter().map(|(traffic, start)| Flow {
        path: path.clone().into(),
        back: way_back.clone().into(),
        start: at_ms(start),
        ..flow(traffic)
    });
    Network {
        name: String::new(),
        nodes: vec![String::new()],
        flows: flows.collect(),
        links: there.into_iter().chain(back).collect(),
        duration: ms(20_000),
        warmup: Dur::ZERO,
        sample: ms(100),
    }
}

fn run(network: &Network, seed: u64) -> Records {
    let mut simulation = Simulation::new(network, seed, &Options::default()).unwrap();
    assert!(simulation.run_for(MAX_EVENTS), "no end after {MAX_EVENTS} events");
    simulation.finish()
}

/// Returns the maximum queue length in packets. Packets have at least 40 bytes, except for one of a
/// single byte.
fn limit(queue: &Queue) -> f64 {
    match queue.limit() {
        QueueLimit::Packets(packets) => f64::from(packets),
        QueueLimit::Bytes(bytes) => bytes as f64,
    }
}

fn check_link(network: &Network, link: &Link, record: &LinkRecord) {
    let limit = limit(&link.queue);
    // Packets queued at the end of the warm-up are not counted as arrivals, and packets queued at
    // the end of the run are not counted as departures.
    let left = record.arrivals.abs_diff(record.drops + record.departures) as f64;
    assert!(left <= limit && (link.rate.is_some() || left == 0.0), "{left} left of {record:?}");
    assert!(record.losses as f64 <= record.departures as f64 + limit);
    assert!(link.loss > 0.0 || record.losses == 0);
    assert!(record.queue.iter().all(|&queue| queue <= limit));
    if let Some(rate) = link.rate {
        let largest = network.flows.iter().map(|flow| match &*flow.traffic {
            Traffic::Tcp(tcp) => f64::from(tcp.packet + tcp.header).max(tcp.ack.into()) + 40.0,
            other => {
                let (packet, header) = other.packet_bytes();
                f64::from(packet + header)
            }
        });
        let seconds = (network.duration.as_nanos() - network.warmup.as_nanos()) as f64 / 1e9;
        let packet = 8.0 * largest.fold(0.0, f64::max) / (rate * seconds);
        assert!(record.utilization <= 1.0 + packet, "{record:?}");
        assert!(record.mean_queue <= limit);
    }
    assert!(record.drops_series.is_sorted());
}

fn check_flow(network: &Network, flow: &Flow, record: &FlowRecord) {
    let series = &record.series;
    assert!(series.sent.is_sorted() && series.delivered.is_sorted());
    assert!(series.delivered.iter().zip(&series.sent).all(|(delivered, sent)| delivered <= sent));
    if let Traffic::Tcp(tcp) = &*flow.traffic {
        assert!(series.window.iter().all(|&w| (1.0..=4.3e9).contains(&w)));
        assert!(tcp.ecn || record.packets_marked == 0 && record.ecn_cuts == 0);
        let start = flow.start.as_secs().max(network.warmup.as_secs());
        let end = network.duration.as_secs();
        let end = if record.acknowledged.is_nan() { end } else { record.acknowledged };
        let active = (end - start).max(0.0);
        let limited: f64 = record.limited.seconds().iter().sum();
        assert!((limited - active).abs() < 1e-6, "{limited} of {active} s: {:?}", record.limited);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    /// Every transfer completes and delivers exactly its packets. Then the network is empty and
    /// every packet is accounted for.
    #[test]
    fn transfers_complete_and_packets_are_conserved(
        there in prop::collection::vec(links(), 1..4),
        back in prop::collection::vec(links(), 1..4),
        flows in prop::collection::vec((transfers(), 0u64..2000), 1..4),
        seed in any::<u64>(),
    ) {
        let hops = there.len();
        let flows = flows.into_iter().map(|(tcp, start)| (Traffic::Tcp(tcp), start)).collect();
        let mut network = network(there, back, flows);
        // The back-off reaches one minute, and a packet may need a dozen transmissions.
        network.duration = ms(20_000_000);
        network.sample = ms(1_000_000);
        let records = run(&network, seed);
        for (flow, record) in network.flows.iter().zip(&records.flows) {
            let Traffic::Tcp(tcp) = &*flow.traffic else { unreachable!() };
            let total = tcp.bytes.unwrap().div_ceil(u64::from(tcp.packet));
            prop_assert!(!record.completed.is_nan(), "{tcp:?} {record:?}");
            prop_assert_eq!(record.packets_delivered, total, "{:?}", tcp);
            prop_assert_eq!(record.bytes_delivered, tcp.bytes.unwrap());
            prop_assert_eq!(record.packets_sent - record.retransmissions, total);
            prop_assert!(record.completed <= record.acknowledged);
            // Lost packets were retransmitted; spurious retransmissions are duplicates.
            prop_assert!(record.retransmissions >= record.packets_lost, "{:?}", record);
            check_flow(&network, flow, record);
        }
        for (link, record) in network.links.iter().zip(&records.links) {
            check_link(&network, link, record);
            prop_assert_eq!(record.arrivals, record.departures + record.drops);
        }
        for end in [0, hops] {
            let way = &records.links[end..if end == 0 { hops } else { records.links.len() }];
            for pair in way.windows(2) {
                prop_assert_eq!(pair[0].departures - pair[0].losses, pair[1].arrivals);
            }
        }
        // The forward links carry only data and SYNs.
        let sent: u64 = records.flows.iter().map(|flow| flow.packets_sent).sum();
        let lost: u64 = records.flows.iter().map(|flow| flow.packets_lost).sum();
        prop_assert_eq!(sent, records.packets);
        let gone = records.links[..hops].iter().map(|link| link.drops + link.losses).sum::<u64>();
        let syns = records.links[0].arrivals - sent;
        let opened = |flow: &&Flow| match &*flow.traffic {
            Traffic::Tcp(tcp) => tcp.syn && !PACED.contains(&tcp.controller.as_str()),
            _ => false,
        };
        let opened = network.flows.iter().filter(opened).count() as u64;
        // A SYN is lost or arrives, and each connection needs one that arrives.
        prop_assert!(gone - lost + opened <= syns && (opened > 0 || syns == 0));
    }

    /// Endless flows beside open-loop sources in both directions, measured after a warm-up.
    #[test]
    fn packets_are_conserved_with_endless_flows(
        there in prop::collection::vec(links(), 1..3),
        back in prop::collection::vec(links(), 1..3),
        flows in prop::collection::vec((transfers(), any::<bool>(), 0u64..9000), 1..4),
        (rate, packet, on, off) in (1e4..2e6, 50u32..1500, 1u64..3000, 1u64..3000),
        (warmup, seed) in (0u64..10_000, any::<u64>()),
    ) {
        let hops = there.len();
        let schedule = Some((ms(on), ms(off)));
        let cbr = Traffic::Cbr { rate, packet, schedule, jitter: 0.5 };
        let pareto = Traffic::Pareto { rate, packet, on: ms(on), off: ms(off), shape: 1.4 };
        let mut traffic = vec![(cbr, 0), (pareto, 500)];
        traffic.extend(flows.iter().map(|(tcp, bulk, start)| {
            let bytes = if *bulk { None } else { tcp.bytes };
            // Time would not advance with an endless flow over links with infinite rate and no
            // delay.
            let window = tcp.window.min(1000);
            (Traffic::Tcp(Tcp { bytes, window, ..tcp.clone() }), *start)
        }));
        let mut network = network(there, back, traffic);
        network.links[0].rate = network.links[0].rate.or(Some(1e7));
        network.warmup = ms(warmup);
        for flow in network.flows.iter_mut().skip(1).step_by(2) {
            std::mem::swap(&mut flow.path, &mut flow.back);
        }
        let last = network.links.len() - 1;
        network.links[last].rate = network.links[last].rate.or(Some(1e7));
        let records = run(&network, seed);
        for (flow, record) in network.flows.iter().zip(&records.flows) {
            check_flow(&network, flow, record);
            // Counters start after the warm-up; the series cover the whole run.
            if warmup == 0 {
                let accounted = record.packets_delivered + record.packets_lost;
                prop_assert!(accounted <= record.packets_sent);
            }
            if !matches!(*flow.traffic, Traffic::Tcp(_)) {
                prop_assert_eq!(record.retransmissions, 0);
            }
        }
        for (link, record) in network.links.iter().zip(&records.links) {
            check_link(&network, link, record);
        }
        if warmup == 0 {
            let lost: u64 = records.flows.iter().map(|flow| flow.packets_lost).sum();
            let gone: u64 = records.links.iter().map(|link| link.drops + link.losses).sum();
            prop_assert!(lost <= gone);
        }
        prop_assert!(hops > 0);
    }
}
