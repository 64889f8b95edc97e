//! The disciplines that decide at departure, with TCP and constant-bit-rate traffic.

use crate::common::{jain, simulate};
use cwnd_sim::record::{LinkRecord, Records};

/// Runs flows over a dumbbell of 20 Mb/s and 40 ms with this queue, and returns its records after
/// 10 s of warm-up.
fn dumbbell(queue: &str, flows: &str) -> Records {
    let text = format!(
        r#"
        duration = "60s"
        warmup = "10s"
        sample = "10ms"
        dumbbell = {{ rate = "20mbit", delay = "20ms", queue = {queue} }}
        access = {{ rate = "1gbit" }}
        {flows}
        "#
    );
    simulate(&text, 1)
}

fn bottleneck(records: &Records) -> &LinkRecord {
    records.links.iter().max_by(|a, b| a.delay.mean.total_cmp(&b.delay.mean)).unwrap()
}

/// The quantile of a sampled queue in packets.
fn quantile(link: &LinkRecord, fraction: f64) -> f64 {
    let mut samples = link.queue[1000..].to_vec();
    samples.sort_by(f64::total_cmp);
    samples[(fraction * samples.len() as f64) as usize]
}

const RENO: &str = "flow = [{ controller = \"reno\" }]";
const FOUR: &str = "flow = [{ controller = \"reno\", count = 4, start = \"0s..1s\" }]";

#[test]
fn codel_keeps_the_standing_queue_of_a_flow_below_its_target() {
    let records = dumbbell("\"codel\"", RENO);
    let link = bottleneck(&records);
    // The minimum of each sawtooth is below the target; the standing queue of DropTail is a
    // bandwidth-delay product of 40 ms.
    assert!(link.delay.p50 < 0.010 && link.delay.mean < 0.012, "{link:?}", link = link.delay);
    // A window that is halved when the queue is just not empty uses 75 % of the rate.
    assert!(link.utilization > 0.75, "{}", link.utilization);
    assert!(quantile(link, 0.05) <= 8.0);
    let droptail = dumbbell("\"1bdp\"", RENO);
    assert!(bottleneck(&droptail).delay.p50 > 2.0 * link.delay.p50);
}

/// The reference delay of PIE, and the target of DualPI2's Classic queue.
#[test]
fn pie_and_dualpi2_hold_their_delay() {
    for queue in ["\"pie\"", "\"dualpi2\""] {
        let records = dumbbell(queue, FOUR);
        let link = bottleneck(&records);
        assert!((link.delay.mean - 0.015).abs() < 0.004, "{queue}: {:?}", link.delay);
        assert!(link.utilization > 0.95, "{queue}: {}", link.utilization);
    }
}

#[test]
fn flow_queues_isolate_a_source_below_its_share() {
    let flows = r#"
        flow = [{ controller = "cubic", count = 4, start = "0s..1s" }]
        cbr = [{ rate = "1mbit", packet = 250, measured = true }]
    "#;
    let lost = |queue| {
        let records = dumbbell(queue, flows);
        let cbr = &records.flows[4];
        (cbr.packets_lost, cbr.packets_sent)
    };
    let (droptail, sent) = lost("\"1bdp\"");
    assert!(droptail > sent / 1000, "{droptail} of {sent}");
    for queue in ["\"fq_codel\"", "{ kind = \"fq\", limit = \"200p\", flow_limit = 40 }"] {
        assert_eq!(lost(queue).0, 0, "{queue}");
    }
}

#[test]
fn flow_queues_give_equal_shares_to_different_controllers() {
    let flows = r#"
        flow = [{ controller = "cubic", rtt = "50ms" }, { controller = "vegas", rtt = "50ms" },
                { controller = "reno", rtt = "150ms" }, { controller = "scalable", rtt = "50ms" }]
    "#;
    let [droptail, fq] = ["\"1bdp\"", "\"fq_codel\""].map(|queue| jain(&dumbbell(queue, flows)));
    assert!(droptail < 0.8 && fq > 0.95, "Jain's index: {droptail} and {fq}");
}

#[test]
fn marks_replace_drops() {
    for queue in ["codel", "fq_codel", "pie"] {
        let table = format!("{{ kind = \"{queue}\", ecn = true }}");
        let flows = "tcp = { ecn = true }\nflow = [{ controller = \"reno\", count = 4, start = \"0s..1s\" }]";
        let records = dumbbell(&table, flows);
        let link = bottleneck(&records);
        assert!(link.marks > 50 && link.drops == 0, "{queue}: {} {}", link.marks, link.drops);
        let marked: u64 = records.flows.iter().map(|flow| flow.packets_marked).sum();
        assert!(marked.abs_diff(link.marks) < 20, "{queue}: {marked} {}", link.marks);
    }
}

#[test]
fn dropped_packets_are_neither_departures_nor_in_the_delays() {
    // A source at twice the rate: every second packet is dropped, at the departure by CoDel, or at
    // the limit.
    for queue in ["codel", "fq_codel", "pie", "dualpi2", "fq"] {
        let table = format!("{{ kind = \"{queue}\", limit = \"200p\" }}");
        let records = dumbbell(&table, "cbr = [{ rate = \"40mbit\", measured = true }]");
        let link = bottleneck(&records);
        let left = (link.arrivals - link.departures).abs_diff(link.drops);
        assert!(
            left <= 201,
            "{queue}: {link:?}",
            link = (link.arrivals, link.departures, link.drops)
        );
        assert!(link.utilization > 0.9999, "{queue}: {}", link.utilization);
        // No packet can wait for longer than 201 packets of 1000 bytes, 0.4 ms each.
        assert!(link.delay.p99 <= 0.0805 * 33.0 / 32.0, "{queue}: {:?}", link.delay);
        let lost = records.flows[0].packets_lost;
        assert!(lost.abs_diff(link.drops) <= 201, "{queue}: {lost} {}", link.drops);
    }
}
