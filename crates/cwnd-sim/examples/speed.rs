//! The speed of the simulator on a dumbbell: `speed RATE_MBIT FLOWS SECONDS`.

use cwnd::{Dur, Time};
use cwnd_sim::network::{Conventions, Flow, Link, Network, Queue, QueueLimit, Recovery, Red, Tcp, Traffic};
use cwnd_sim::{Options, Simulation};

fn main() {
    let arguments: Vec<f64> = std::env::args().skip(1).filter_map(|a| a.parse().ok()).collect();
    let [mbit, flows, seconds] = arguments[..] else { panic!("speed RATE_MBIT FLOWS SECONDS") };
    let n = flows as usize;
    let bdp = (mbit * 1e6 * 0.1 / 8.0 / 1000.0).floor();
    let limit = 2.5 * bdp;
    let red = Red { limit: limit as u32, min: 0.15 * limit, max: 0.5 * limit, max_p: 0.1, weight: 0.002, gentle: true, wait: true, ecn: false, mark_p: 1.0, mean_packet: 1000 };
    let access = if mbit > 900.0 { 10.0 * mbit } else { 1000.0 } * 1e6;
    let big = Queue::DropTail { limit: QueueLimit::Packets(100_000) };
    let mut links = Vec::new();
    let mut link = |from, to, rate: f64, delay: f64, queue| {
        links.push(Link { name: format!("{from}-{to}"), from, to, rate: Some(rate), delay: Dur::from_secs(delay), queue, loss: 0.0, loss_of_acks: false });
        links.len() - 1
    };
    let forth = link(0, 1, mbit * 1e6, 0.04, Queue::Red(red));
    let back = link(1, 0, mbit * 1e6, 0.04, Queue::Red(red));
    let tcp = Tcp {
        controller: "reno".into(), bytes: None, recovery: Recovery::Sack, conventions: if std::env::var("NS2").is_ok() { Conventions::Ns2 } else { Conventions::Rfc }, packet: 1000, header: 40, ack: 40,
        initial_window: 2, window: 100_000, delayed_acks: false, ack_delay: Dur::from_millis(100), ecn: false, timestamps: None,
        limited_transmit: true, syn: true, byte_counting: true, granularity: Dur::from_millis(10), min_rto: Dur::from_millis(200),
        max_rto: Dur::from_secs(60.0), initial_rto: Dur::from_secs(3.0), overhead: Dur::ZERO,
    };
    let flows = (0..n).map(|i| {
        let delay = (1.0 + 0.1 * i as f64) / 1e3;
        let (s, d) = (2 + 2 * i, 3 + 2 * i);
        let up = [link(s, 0, access, delay, big), link(1, d, access, delay, big)];
        let down = [link(d, 1, access, delay, big), link(0, s, access, delay, big)];
        let start = Time::ZERO + Dur::from_secs(0.1 * i as f64 * if n > 20 { 0.1 } else { 1.0 });
        Flow { name: format!("{i}"), path: vec![up[0], forth, up[1]], back: vec![down[0], back, down[1]], start, stop: Time::NEVER, traffic: Traffic::Tcp(tcp.clone()), measured: true }
    }).collect();
    let network = Network { name: "speed".into(), nodes: Vec::new(), links, flows, duration: Dur::from_secs(seconds), warmup: Dur::ZERO, sample: Dur::from_secs(seconds / 1000.0) };
    let begin = std::time::Instant::now();
    let mut simulation = Simulation::new(&network, 1, &Options::default()).expect("a valid network");
    simulation.run();
    let records = simulation.finish();
    if std::env::var("FLOWS").is_ok() {
        for (i, f) in records.flows.iter().enumerate() {
            println!("{i} sent {} rtx {} timeouts {} lost {} cuts {} first {:?} limited {:?}", f.packets_sent, f.retransmissions, f.timeouts, f.packets_lost, f.cuts.len(), f.cuts.first(), f.limited);
        }
    }
    let took = begin.elapsed().as_secs_f64();
    let sum = |f: fn(&cwnd_sim::record::FlowRecord) -> u64| records.flows.iter().map(f).sum::<u64>();
    println!("packets {} delivered {} retransmissions {} timeouts {} drops {} events {}", records.packets, sum(|f| f.packets_delivered), sum(|f| f.retransmissions), sum(|f| f.timeouts), records.links[0].drops, records.events);
    println!("{took:.3} s  {:.2} Mpkt/s  {:.1} ns/packet  {:.1} ns/event", records.packets as f64 / took / 1e6, took * 1e9 / records.packets as f64, took * 1e9 / records.events as f64);
}
