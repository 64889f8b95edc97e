//! The figures of a measured window: what happened in it, no more and no less.
//!
//! A run is measured from its start to the end of the window, and from its start to the beginning
//! of the window. The figures of the window are their difference.

use crate::common::random::{Case, FAST, SLOW, case, config, is_bounded};
use crate::common::{self, results, scenario};
use cwnd::Dur;
use cwnd_sim::network::Network;
use cwnd_sim::record::{FlowRecord, LinkRecord, Records};
use proptest::prelude::*;

/// Runs from the start to `end`, measured from `from` on.
fn run(network: &Network, seed: u64, from: Dur, end: Dur) -> Records {
    let network = Network { warmup: from, duration: end, ..network.clone() };
    common::run(&network, seed)
}

/// Counters of a flow, which add up.
fn flow_counters(flow: &FlowRecord) -> [u64; 10] {
    results::flow_counters(flow).map(|(_, count)| count)
}

fn link_counters(link: &LinkRecord) -> [u64; 5] {
    [link.arrivals, link.departures, link.drops, link.marks, link.losses]
}

/// Requires that `whole` is the sum of two parts.
fn check_sum<const N: usize>(
    parts: [[u64; N]; 2],
    whole: [u64; N],
    what: &str,
) -> Result<(), String> {
    let sum: [u64; N] = std::array::from_fn(|at| parts[0][at] + parts[1][at]);
    if sum == whole { Ok(()) } else { Err(format!("{what}: {parts:?} of {whole:?}")) }
}

/// Requires that the figures from the start of a run to its end are possible.
fn check_totals(network: &Network, records: &Records) -> Result<(), String> {
    for (index, flow) in records.flows.iter().enumerate() {
        let series = &flow.series;
        let ordered = |one: &[f64], other: &[f64]| one.iter().zip(other).all(|(a, b)| a <= b);
        let ordered = ordered(&series.delivered, &series.sent)
            && ordered(&series.delivered_bytes, &series.sent_bytes);
        let lost = flow.packets_lost;
        if !ordered
            || flow.packets_received + lost > flow.packets_sent
            || flow.packets_delivered > flow.packets_received
            || flow.bytes_delivered > flow.bytes_sent
            || flow.retransmissions > flow.packets_sent
            || flow.completed > flow.acknowledged
        {
            return Err(format!("flow {index}: {flow:?}"));
        }
    }
    for (index, link) in records.links.iter().enumerate() {
        let over = network.flows.iter().zip(&records.flows);
        let over = over.filter(|(flow, _)| flow.path.contains(&index));
        let carried: f64 = over
            .map(|(flow, record)| {
                let (_, headers) = flow.traffic.packet_bytes();
                let headers = record.packets_delivered * u64::from(headers);
                (record.bytes_delivered + headers) as f64
            })
            .sum();
        if carried > link.bytes_departed + 1e-6 {
            return Err(format!("link {index}: {carried} of {link:?}"));
        }
    }
    Ok(())
}

fn check(network: &Network, seed: u64, from: Dur, end: Dur) -> Result<(), String> {
    let whole = run(network, seed, Dur::ZERO, end);
    let before = run(network, seed, Dur::ZERO, from);
    let window = run(network, seed, from, end);
    check_totals(network, &before)?;
    check_totals(network, &whole)?;
    for (index, flow) in window.flows.iter().enumerate() {
        if flow.packets_marked > flow.packets_received || flow.retransmissions > flow.packets_sent {
            return Err(format!("flow {index}: {flow:?}"));
        }
    }
    for (index, flow) in whole.flows.iter().enumerate() {
        let parts = [&before.flows[index], &window.flows[index]].map(flow_counters);
        check_sum(parts, flow_counters(flow), &format!("flow {index}"))?;
    }
    for (index, link) in whole.links.iter().enumerate() {
        let parts = [&before.links[index], &window.links[index]];
        let place = format!("link {index}");
        check_sum(parts.map(link_counters), link_counters(link), &place)?;
        let bytes: f64 = parts.iter().map(|part| part.bytes_departed).sum();
        if (bytes - link.bytes_departed).abs() > 1e-6 * link.bytes_departed.max(1.0) {
            return Err(format!("{place}: {parts:?} of {link:?}"));
        }
        for part in [parts[0], parts[1], link] {
            if part.drops + part.losses > part.offered || part.marks > part.offered {
                return Err(format!("{place}: {part:?}"));
            }
            let used = part.utilization;
            if !used.is_nan() && !(0.0..=1.0).contains(&used) {
                return Err(format!("{place}: utilization {used}"));
            }
        }
    }
    Ok(())
}

/// A packet counts for the part of its transmission in the window, on both paths of a link and at a
/// rate that varies.
#[test]
fn a_packet_counts_for_its_part_in_the_window() {
    for keys in [
        "rate = \"10kbit\", queue = \"10p\"",
        "rate = \"10kbit\", queue = { kind = \"codel\", limit = \"10p\" }",
        "rate = \"20kbit\", queue = \"10p\", changes = [{ at = \"0.5s\", rate = \"10kbit\" }]",
        "rate = \"20kbit\", queue = { kind = \"codel\", limit = \"10p\" }, changes = [{ at = \"0.5s\", rate = \"10kbit\" }]",
        "rate = \"1mbit\", queue = \"10p\", shaper = { rate = \"10kbit\", burst = 1000 }",
    ] {
        let text = format!(
            r#"
            duration = "100s"
            warmup = "10.3s"
            dumbbell = {{ delay = "1ms", {keys} }}
            cbr = [{{ rate = "30kbit", packet = 1000, measured = true }}]
            "#
        );
        let network = scenario(&text, 1);
        // Of a window that begins and ends in a transmission of 0.8 s.
        let end = Dur::from_secs(20.7);
        let link = &run(&network, 1, network.warmup, end).links[0];
        let bytes = 10_000.0 / 8.0 * (end - network.warmup).as_secs();
        let shaped = keys.contains("shaper");
        let error = (link.bytes_departed - bytes).abs();
        assert!(if shaped { error <= 1000.0 } else { error < 1e-6 }, "{keys}: {link:?}");
        assert!(
            (link.utilization - 1.0).abs() < if shaped { 0.1 } else { 1e-12 },
            "{keys}: {link:?}"
        );
        assert_eq!(check(&network, 1, network.warmup, end), Ok(()), "{keys}");
    }
}

#[test]
fn a_link_slower_than_its_run_is_used_at_most_wholly() {
    let text = r#"
        duration = "7200s"
        dumbbell = { rate = "8bit", delay = "1us" }
        cbr = [{ rate = "16bit", packet = 1000, measured = true }]
        "#;
    let network = scenario(text, 1);
    for end in [7200.0, 600.0, 1.0] {
        let records = run(&network, 1, Dur::ZERO, Dur::from_secs(end));
        assert_eq!(records.links[0].utilization, 1.0, "{end} s");
    }
}

/// A SYN is no data, a packet counts when it arrives, and the last packet of a transfer may be
/// smaller.
#[test]
fn a_transfer_counts_its_data() {
    let text = r#"
        duration = "10s"
        dumbbell = { rate = "100mbit", delay = "10ms" }
        tcp = { delayed_acks = false, initial_window = 2, conventions = "rfc5681" }
        flow = [{ controller = "cubic", bytes = 1960 }, { controller = "udt", bytes = 1960 },
                { controller = "udt", protocol = "udt", bytes = 1960, tcp = { packet = 1460, header = 44 } }]
        "#;
    let network = scenario(text, 1);
    let records = run(&network, 1, Dur::ZERO, network.duration);
    for flow in &records.flows {
        assert_eq!([flow.packets_sent, flow.packets_delivered], [2, 2]);
        assert_eq!([flow.bytes_sent, flow.bytes_delivered], [1960, 1960]);
        assert_eq!([flow.retransmissions, flow.packets_lost], [0, 0]);
    }
    // The data takes one and a half round-trip times and its acknowledgement a half.
    let flow = &records.flows[0];
    assert!((flow.completed - 0.03).abs() < 0.001 && (flow.acknowledged - 0.04).abs() < 0.001);
    // The data has arrived even if its acknowledgement has not.
    let early = &run(&network, 1, Dur::ZERO, Dur::from_millis(35)).flows[0];
    assert_eq!((early.completed, early.acknowledged.is_nan()), (flow.completed, true));
    // A path without anything but SYNs carries no data.
    let lost = text.replace("delay =", "blackout = [{ at = 0, for = \"20s\" }], delay =");
    for conventions in ["\"rfc5681\"", "\"rfc\"", "\"linux\"", "\"ns2\", syn = true"] {
        let lost = lost.replace("\"rfc5681\"", conventions);
        let network = scenario(&lost, 1);
        let records = run(&network, 1, Dur::ZERO, network.duration);
        let FlowRecord {
            packets_sent, packets_lost, bytes_sent, retransmissions, timeouts, ..
        } = records.flows[0];
        let counters = [packets_sent, packets_lost, bytes_sent, retransmissions];
        assert_eq!(counters, [0; 4], "{conventions}");
        assert!(timeouts > 1, "{conventions}");
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn figures_of_a_window_are_differences(
        case in prop_oneof![case(&SLOW), case(&FAST)], begin in 0.0..1.0f64, end in 0.1..1.0f64,
    ) {
        let Case { seed, .. } = case;
        let network = case.network();
        prop_assume!(is_bounded(&network));
        let end = Dur::from_secs(network.duration.as_secs() * end);
        let from = Dur::from_secs(end.as_secs() * begin);
        prop_assume!(from > Dur::ZERO && from < end);
        check(&network, seed, from, end).map_err(TestCaseError::fail)?;
    }
}
