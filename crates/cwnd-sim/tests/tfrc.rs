//! TFRC: utilisation of a link, fairness to TCP, smoothness, and the rate of the throughput
//! equation.

use crate::common::{RED, at_ms, gauge, ms, packets, pair, run, tcp};
use cwnd::laws::Tfrc;
use cwnd_sim::metrics::formula::{coefficient_of_variation, mean};
use cwnd_sim::network::{Network, Queue, Red, Traffic};
use cwnd_sim::record::{FlowRecord, Records};

/// Warm-up and measurement time in seconds.
const WARMUP: f64 = 20.0;
const MEASURED: f64 = 100.0;
/// Samples per second.
const SAMPLES: usize = 10;

/// One flow per controller, started 100 ms apart, on a link of `rate` with a round-trip time of
/// `rtt` milliseconds.
fn network(flows: &[&str], rate: f64, rtt: u64, queue: Queue) -> Network {
    let traffic = flows.iter().map(|&flow| Traffic::Tcp(tcp(flow))).collect();
    let mut network = pair(rate, ms(rtt / 2), queue, traffic, ms(120_000));
    network.warmup = ms(20_000);
    network.sample = ms(1000 / SAMPLES as u64);
    for (i, flow) in network.flows.iter_mut().enumerate() {
        flow.start = at_ms(100 * i as u64);
    }
    network
}

/// RED with the parameters of SIMD's Table 2 on a buffer of 2.5 bandwidth-delay products.
fn red(rate: f64, rtt: u64) -> Queue {
    let buffer = 2.5 * rate / 8000.0 * rtt as f64 / 1000.0;
    let (min, max) = (0.15 * buffer, 0.5 * buffer);
    Queue::Red(Red { limit: buffer as u32, min, max, ecn: false, ..RED })
}

/// Runs four flows of TFRC and four of SACK TCP, alternating, on 15 Mb/s.
fn four_and_four(rtt: u64, seed: u64) -> Records {
    run(&network(&["tfrc", "reno"].repeat(4), 15e6, rtt, red(15e6, rtt)), seed)
}

/// Returns the samples of a variable after the warm-up.
fn late<'a>(records: &'a Records, values: &'a [f64]) -> impl Iterator<Item = f64> + 'a {
    let samples = records.time.iter().zip(values);
    samples.filter(|(time, _)| **time >= WARMUP).map(|(_, value)| *value)
}

/// Returns the coefficient of variation of the packets sent per second.
fn variation(records: &Records, flow: &FlowRecord) -> f64 {
    let sent: Vec<f64> = late(records, &flow.series.sent).step_by(SAMPLES).collect();
    let rates: Vec<f64> = sent.windows(2).map(|pair| pair[1] - pair[0]).collect();
    coefficient_of_variation(&rates)
}

#[test]
fn a_single_flow_fills_the_link() {
    for rtt in [40, 100] {
        let records = run(&network(&["tfrc"], 10e6, rtt, red(10e6, rtt)), 1);
        let used = records.links[0].utilization;
        assert!(used >= 0.9, "{rtt} ms: {used}");
        assert_eq!(records.flows[0].timeouts, 0);
    }
}

/// "Reasonably fair when competing for bandwidth with TCP flows" (RFC 5348, abstract): within a
/// factor of two of their rate on the same link.
#[test]
fn fairness_to_tcp_is_within_a_factor_of_two() {
    for rtt in [40, 100] {
        for seed in 1..=3 {
            let records = four_and_four(rtt, seed);
            let delivered = |from| {
                let flows = records.flows.iter().skip(from).step_by(2);
                flows.map(|flow| flow.packets_delivered).sum::<u64>() as f64
            };
            let ratio = delivered(0) / delivered(1);
            assert!((0.5..=2.0).contains(&ratio), "{rtt} ms, seed {seed}: {ratio}");
        }
    }
}

#[test]
fn the_rate_is_smoother_than_that_of_tcp() {
    for rtt in [40, 100] {
        for seed in 1..=3 {
            let records = four_and_four(rtt, seed);
            let all: Vec<_> = records.flows.iter().map(|flow| variation(&records, flow)).collect();
            let of = |from| mean(&all.iter().copied().skip(from).step_by(2).collect::<Vec<_>>());
            assert!(of(0) < of(1), "{rtt} ms, seed {seed}: {all:?}");
        }
    }
}

/// On a fast link with random loss the rate is that of the equation at the loss event rate. Losses
/// within a round trip of the first loss of an event do not count.
#[test]
fn random_loss_gives_the_rate_of_the_equation() {
    let loss = 0.01;
    let (mut rates, mut events, mut sent) = (Vec::new(), Vec::new(), Vec::new());
    for seed in 1..=8 {
        let mut network = network(&["tfrc"], 100e6, 100, packets(1000));
        network.links[0].loss = loss;
        let records = run(&network, seed);
        let flow = &records.flows[0];
        let p = mean(&late(&records, gauge(flow, "p")).collect::<Vec<_>>());
        rates.push(Tfrc::window(p) / flow.mean_rtt);
        events.push(p);
        sent.push(flow.packets_sent as f64 / MEASURED);
    }
    let (rate, p, sent) = (mean(&rates), mean(&events), mean(&sent));
    assert!((sent / rate - 1.0).abs() < 0.1, "{sent} packets/s, the equation gives {rate}");
    let expected = 1.0 / (1.0 / loss + sent * 0.1);
    assert!((p / expected - 1.0).abs() < 0.1, "{p} loss events a packet, not {expected}");
}
