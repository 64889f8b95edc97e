//! Networks with invalid fields are errors.

use crate::common::{self, link, ms, packets, tcp};
use cwnd::{Dur, Time};
use cwnd_sim::live::{Arrival, Ecn, LiveLink};
use cwnd_sim::network::{
    Conventions, Flow, Link, Network, NetworkError, Queue, QueueLimit, Recovery, Red, Tcp, Traffic,
    Udt,
};
use cwnd_sim::{Options, PcapWriter, Simulation, SimulationError};
use proptest::prelude::*;
use std::sync::Arc;

const RED: Red = Red { limit: 50, max: 25.0, ..common::RED };

/// One flow of each kind over three nodes in a row. Links 0 and 1 lead to the last node, links 2
/// and 3 back.
fn valid() -> Network {
    let udt = Udt { window: 1000, ..common::udt("udt") };
    let cbr = Traffic::Cbr { rate: 1e6, packet: 1000, schedule: Some((ms(4), ms(2))), jitter: 0.1 };
    let pareto = Traffic::Pareto { rate: 1e6, packet: 500, on: ms(3), off: ms(3), shape: 1.5 };
    let traffic = [
        Traffic::Tcp(tcp("reno")),
        Traffic::Tcp(Tcp { delayed_acks: true, syn: true, ..tcp("cubic") }),
        Traffic::Tcp(tcp("udt")),
        Traffic::Udt(udt),
        cbr,
        pareto,
    ];
    let flow = |(index, traffic)| Flow {
        name: format!("flow-{index}"),
        path: [0, 1].into(),
        back: [2, 3].into(),
        ..common::flow(traffic)
    };
    Network {
        name: "valid".into(),
        nodes: ["a", "b", "c"].map(String::from).to_vec(),
        links: vec![
            link(0, 1, 20e6, ms(1), packets(1000)),
            Link { loss: 0.01, loss_of_acks: true, ..link(1, 2, 10e6, ms(2), Queue::Red(RED)) },
            link(2, 1, 10e6, ms(2), Queue::DropTail { limit: QueueLimit::Bytes(20_000) }),
            Link { rate: None, ..link(1, 0, 20e6, ms(1), packets(50)) },
        ],
        flows: traffic.into_iter().enumerate().map(flow).collect(),
        duration: ms(60),
        warmup: ms(10),
        sample: ms(5),
    }
}

/// Returns the options of the TCP connection of flow `index`.
fn tcp_of(network: &mut Network, index: usize) -> &mut Tcp {
    match Arc::make_mut(&mut network.flows[index].traffic) {
        Traffic::Tcp(tcp) => tcp,
        other => panic!("not TCP: {other:?}"),
    }
}

fn udt_of(network: &mut Network) -> &mut Udt {
    match Arc::make_mut(&mut network.flows[3].traffic) {
        Traffic::Udt(udt) => udt,
        other => panic!("not UDT: {other:?}"),
    }
}

/// Returns the parameters of RED at link 1.
fn red_of(network: &mut Network) -> &mut Red {
    let queue = &mut network.links[1].queue;
    if let Queue::DropTail { .. } = queue {
        *queue = Queue::Red(RED);
    }
    match queue {
        Queue::Red(red) => red,
        _ => unreachable!(),
    }
}

fn set_cbr(
    network: &mut Network,
    rate: f64,
    packet: u32,
    schedule: Option<(Dur, Dur)>,
    jitter: f64,
) {
    network.flows[4].traffic = Arc::new(Traffic::Cbr { rate, packet, schedule, jitter });
}

fn set_pareto(network: &mut Network, [on, off]: [Dur; 2], shape: f64) {
    network.flows[5].traffic = Arc::new(Traffic::Pareto { rate: 1e6, packet: 500, on, off, shape });
}

/// Each invalid field with the beginning of its message.
#[test]
fn each_invalid_field_is_named() {
    type Case = (fn(&mut Network), &'static str);
    let cases: &[Case] = &[
        (|n| n.duration = Dur::ZERO, "duration: "),
        (|n| n.warmup = ms(60), "warmup: 60ms is not less than the duration of 60ms"),
        (|n| n.sample = Dur::ZERO, "sample: a sampling interval"),
        (|n| n.sample = Dur::from_nanos(1), "sample: 60000000 samples"),
        (|n| n.sample = ms(7_200_001), "sample: a time is at most 7200s"),
        (|n| n.links[1].from = 3, "link 1-2: from: there is no node 3: 3 nodes"),
        (|n| n.links[1].to = usize::MAX, "link 1-2: to: there is no node "),
        (|n| n.nodes.clear(), "link 0-1: from: there is no node 0: 0 nodes"),
        (|n| n.links[0].rate = Some(f64::NAN), "link 0-1: rate: NaN bit/s is not from"),
        (|n| n.links[0].rate = Some(0.0), "link 0-1: rate: 0 bit/s is not from"),
        (|n| n.links[0].rate = Some(-1.0), "link 0-1: rate: -1 bit/s is not from"),
        (|n| n.links[0].rate = Some(f64::INFINITY), "link 0-1: rate: inf bit/s is not from"),
        (|n| n.links[0].delay = ms(7_200_001), "link 0-1: delay: a time is at most 7200s"),
        (|n| n.links[0].loss = f64::NAN, "link 0-1: loss: a probability is from 0 to 1, not NaN"),
        (|n| n.links[0].loss = 1.01, "link 0-1: loss: a probability is from 0 to 1, not 1.01"),
        (|n| red_of(n).min = f64::NAN, "link 1-2: min: red's min of NaN"),
        (|n| red_of(n).min = -1.0, "link 1-2: min: red's min of -1"),
        (|n| red_of(n).min = 26.0, "link 1-2: min: red's min of 26 packets is not below"),
        (|n| red_of(n).max = f64::NAN, "link 1-2: min: red's min of 5 packets is not below"),
        (|n| (red_of(n).min, red_of(n).max) = (-0.0, -0.0), "link 1-2: min: red's min of -0"),
        (
            |n| {
                let red = red_of(n);
                (red.min, red.max, red.gentle) = (0.0, 0.0, false);
            },
            "link 1-2: max: red's max of 0 packets is not above 0",
        ),
        (|n| red_of(n).max_p = 0.0, "link 1-2: max_p: cannot be zero"),
        (|n| red_of(n).max_p = f64::NAN, "link 1-2: max_p: a probability is"),
        (|n| red_of(n).weight = 2.0, "link 1-2: weight: a probability is"),
        (|n| red_of(n).mark_p = -1.0, "link 1-2: mark_p: a probability is"),
        (|n| red_of(n).mean_packet = 0, "link 1-2: mean_packet: a packet has from 1"),
        (|n| n.flows[0].path = [].into(), "flow flow-0: path: at least one link"),
        (|n| n.flows[0].back = [].into(), "flow flow-0: back: at least one link"),
        (|n| n.flows[0].path = [0, 4].into(), "flow flow-0: path: there is no link 4: 4 links"),
        (|n| n.flows[0].back = [9, 3].into(), "flow flow-0: back: there is no link 9: 4 links"),
        (
            |n| n.flows[0].path = [1, 0].into(),
            "flow flow-0: path: link \"0-1\" does not begin at \"c\"",
        ),
        (
            |n| n.flows[0].back = n.flows[0].back[..1].into(),
            "flow flow-0: back: leads from \"c\" to \"b\", and the path from \"a\" to \"c\"",
        ),
        (
            |n| {
                let flow = &mut n.flows[0];
                (flow.start, flow.stop) = (Time::from_nanos(2), Time::from_nanos(1));
            },
            "flow flow-0: stop: stops at 1ns, before it starts at 2ns",
        ),
        (|n| tcp_of(n, 0).packet = 0, "flow flow-0: packet: 0 is not from 1 to 65535 bytes"),
        (|n| tcp_of(n, 0).packet = 65_500, "flow flow-0: packet: 65500 bytes and a header of 40"),
        (|n| tcp_of(n, 0).header = u32::MAX, "flow flow-0: header: 4294967295 is not from 0"),
        (|n| tcp_of(n, 0).ack = 0, "flow flow-0: ack: 0 is not from 1 to 65495 bytes"),
        (|n| tcp_of(n, 0).ack = 65_496, "flow flow-0: ack: 65496 is not from 1 to 65495 bytes"),
        (|n| tcp_of(n, 0).bytes = Some(0), "flow flow-0: bytes: a flow sends at least"),
        (|n| tcp_of(n, 0).initial_window = 0, "flow flow-0: initial_window: a window is"),
        (|n| tcp_of(n, 0).window = 0, "flow flow-0: window: a window is at least one"),
        (|n| tcp_of(n, 0).ack_delay = ms(501), "flow flow-0: ack_delay: 501ms is more than"),
        (|n| tcp_of(n, 0).granularity = Dur::ZERO, "flow flow-0: granularity: a clock's"),
        (|n| tcp_of(n, 0).granularity = ms(1 << 40), "flow flow-0: granularity: a time is"),
        (|n| tcp_of(n, 0).timestamps = Some(ms(1 << 40)), "flow flow-0: timestamps: a time is"),
        (|n| tcp_of(n, 0).overhead = Some(ms(1 << 40)), "flow flow-0: overhead: a time is at most"),
        (|n| tcp_of(n, 0).min_rto = ms(60_001), "flow flow-0: max_rto: max_rto 60s is less"),
        (|n| tcp_of(n, 0).max_rto = ms(1 << 40), "flow flow-0: max_rto: a time is at most"),
        (|n| tcp_of(n, 0).initial_rto = Dur::ZERO, "flow flow-0: initial_rto: initial_rto 0s"),
        (|n| udt_of(n).header = 43, "flow flow-3: header: 43 is less than the 44 bytes"),
        (|n| udt_of(n).packet = 55, "flow flow-3: packet: 55 is not from 56 to 65535 bytes"),
        (|n| udt_of(n).packet = 65_492, "flow flow-3: packet: 65492 bytes and a header of 44"),
        (|n| udt_of(n).bytes = Some(0), "flow flow-3: bytes: a flow sends at least"),
        (|n| udt_of(n).window = 1, "flow flow-3: window: UDT's window is from 2"),
        (|n| set_cbr(n, f64::NAN, 1000, None, 0.0), "flow flow-4: rate: a source's rate"),
        (|n| set_cbr(n, 1e6, 0, None, 0.0), "flow flow-4: packet: a packet has from 1"),
        (|n| set_cbr(n, 1e6, 65_536, None, 0.0), "flow flow-4: packet: a packet has from 1"),
        (|n| set_cbr(n, 1e6, 1000, Some((ms(1), Dur::ZERO)), 0.0), "flow flow-4: off: must be"),
        (|n| set_cbr(n, 1e6, 1000, None, f64::NAN), "flow flow-4: jitter: a probability is"),
        (|n| set_pareto(n, [Dur::ZERO, ms(1)], 1.5), "flow flow-5: on: must be above zero"),
        (|n| set_pareto(n, [ms(1), ms(1 << 40)], 1.5), "flow flow-5: off: a time is at most"),
        (|n| set_pareto(n, [ms(1); 2], 1.0), "flow flow-5: shape: 1 is not above 1"),
        (|n| set_pareto(n, [ms(1); 2], f64::NAN), "flow flow-5: shape: NaN is not above 1"),
    ];
    assert_eq!(valid().validate(), Ok(()));
    for (change, expected) in cases {
        let mut network = valid();
        change(&mut network);
        let error = network.validate().expect_err(expected);
        let message = error.to_string();
        assert!(message.starts_with(expected), "{message}\n  not {expected}");
        let refused = Simulation::new(&network, 1, &Options::default()).err();
        assert_eq!(refused, Some(SimulationError::Network(error.clone())));
        if let NetworkError::Link { link, .. } = &error
            && let Some(index) = network.links.iter().position(|other| other.name == *link)
            && !message.contains("there is no node")
        {
            assert_eq!(LiveLink::new(&network.links[index], index, 1).err(), Some(error));
        }
    }
}

/// Numbers at the limits of types and rules.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![
        proptest::sample::select(vec![
            0,
            1,
            2,
            40,
            44,
            56,
            1000,
            1460,
            65_455,
            65_495,
            65_535,
            65_536,
            1_000_000,
            60_000_000,
            7_200_000_000_000,
            u64::from(u32::MAX),
            1 << 62,
            u64::MAX,
        ]),
        any::<u64>(),
    ]
}

fn real() -> impl Strategy<Value = f64> {
    prop_oneof![
        proptest::sample::select(vec![
            f64::NAN,
            f64::NEG_INFINITY,
            f64::INFINITY,
            -1.0,
            -0.0,
            0.0,
            f64::MIN_POSITIVE,
            1e-9,
            0.5,
            1.0,
            1.000_000_1,
            8.0,
            25.0,
            1e6,
        ]),
        0.0..1.0,
        1.0..1e9,
    ]
}

/// One arbitrary value each for the fields of a network.
#[derive(Clone, Debug)]
struct Change {
    field: usize,
    item: usize,
    number: u64,
    real: f64,
}

const FIELDS: usize = 41;

/// Replaces valid rates below 100 kbit/s. The engine sums the waiting times of all packets in 64
/// bits, and a long queue at a slow link exceeds them.
fn without_slow_links(rate: f64) -> f64 {
    if (8.0..1e5).contains(&rate) { 1e5 } else { rate }
}

impl Change {
    fn apply(&self, network: &mut Network) {
        let &Change { field, item, number, real } = self;
        let span = Dur::from_nanos(number);
        let small = u32::try_from(number).unwrap_or(u32::MAX);
        let index = usize::try_from(number).unwrap_or(usize::MAX);
        let (links, flows) = (network.links.len(), network.flows.len());
        let tcp_flow = item % 3;
        match field {
            0 => network.duration = span.min(ms(100)),
            1 => network.warmup = span,
            2 => network.sample = span,
            3 => network.nodes.truncate(item % 4),
            4 => network.links[item % links].from = index,
            5 => network.links[item % links].to = item % 3,
            6 => network.links[item % links].rate = Some(without_slow_links(real)),
            7 => network.links[item % links].rate = None,
            8 => network.links[item % links].delay = span,
            9 => network.links[item % links].loss = real,
            10 => {
                let limit = if item % 2 == 0 {
                    QueueLimit::Bytes(number.min(100_000))
                } else {
                    QueueLimit::Packets(small.min(1000))
                };
                network.links[item % links].queue = Queue::DropTail { limit };
            }
            11 => red_of(network).min = real,
            12 => red_of(network).max = real,
            13 => red_of(network).max_p = real,
            14 => red_of(network).weight = real,
            15 => red_of(network).mark_p = real,
            16 => red_of(network).limit = small,
            17 => red_of(network).mean_packet = small,
            18 => red_of(network).gentle = false,
            19 => {
                let path = &mut network.flows[item % flows].path;
                *path = path[..path.len().min(item % 3)].into();
            }
            20 => {
                let back = &mut network.flows[item % flows].back;
                *back = [&**back, &[item % 5]].concat().into();
            }
            21 => network.flows[item % flows].path = [0, 3, 0, 1].into(),
            22 => network.flows[item % flows].start = Time::from_nanos(number),
            23 => network.flows[item % flows].stop = Time::from_nanos(number),
            24 => tcp_of(network, tcp_flow).packet = small,
            25 => tcp_of(network, tcp_flow).header = small,
            26 => tcp_of(network, tcp_flow).ack = small,
            27 => tcp_of(network, tcp_flow).window = small.min(1_000_000),
            28 => tcp_of(network, tcp_flow).initial_window = small,
            29 => tcp_of(network, tcp_flow).bytes = Some(number),
            30 => tcp_of(network, tcp_flow).ack_delay = span,
            31 => tcp_of(network, tcp_flow).granularity = span,
            32 => tcp_of(network, tcp_flow).timestamps = Some(span),
            33 => {
                // Shorter ones are valid, but each is recorded.
                let rto = if span.is_zero() { span } else { span.max(ms(1)) };
                let tcp = tcp_of(network, tcp_flow);
                (tcp.min_rto, tcp.max_rto, tcp.initial_rto) = (rto, rto, rto);
            }
            34 => tcp_of(network, tcp_flow).overhead = Some(span),
            35 => {
                let stacks = [Conventions::Rfc, Conventions::Ns2, Conventions::Ns2001];
                let recoveries = [Recovery::Sack, Recovery::NewReno, Recovery::Reno];
                let tcp = tcp_of(network, tcp_flow);
                tcp.conventions = stacks[item % 3];
                tcp.recovery = recoveries[item / 3 % 3];
                tcp.ecn = item % 2 == 0;
            }
            36 => udt_of(network).packet = small,
            37 => udt_of(network).header = small,
            38 => udt_of(network).window = small,
            39 => set_cbr(network, real, small, Some((span, ms(1))), real),
            _ => set_pareto(network, [span, ms(2)], real),
        }
    }
}

prop_compose! {
    fn change()(field in 0..FIELDS, item in 0usize..60, number in number(), real in real()) -> Change {
        Change { field, item, number, real }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// A network with arbitrary fields is an error or runs.
    #[test]
    fn arbitrary_networks_never_panic(changes in proptest::collection::vec(change(), 0..4)) {
        let mut network = valid();
        changes.iter().for_each(|change| change.apply(&mut network));
        for (index, link) in network.links.iter().enumerate() {
            if let Ok(mut live) = LiveLink::new(link, index, 1) {
                for at in 0..20 {
                    let packet = Arrival {
                        size: u16::MAX,
                        ecn: Ecn::Ect0,
                        dataless: at % 2 == 0,
                        flow: 1,
                    };
                    live.offer(Time::from_nanos(1_000_000 * at), 0, packet);
                }
                live.record(Time::from_nanos(20_000_000));
            }
        }
        let Ok(mut simulation) = Simulation::new(&network, 1, &Options::default()) else {
            return Ok(());
        };
        let mut pcap = PcapWriter::new(std::io::sink(), &network).unwrap();
        simulation.tap(0, move |seen| pcap.write(seen).unwrap());
        simulation.run();
        prop_assert_eq!(simulation.finish().flows.len(), network.flows.len());
    }
}
