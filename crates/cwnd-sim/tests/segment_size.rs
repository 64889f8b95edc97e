//! A flow whose packet size changes: every controller keeps its rate.

use crate::common::simulate;

/// Returns the bytes that a flow of `controller` delivers in 20 s.
fn delivered(controller: &str, conventions: &str, flow: &str) -> f64 {
    let text = format!(
        "duration = \"20s\"\n[dumbbell]\nrate = \"50mbit\"\ndelay = \"20ms\"\nqueue = \"1bdp\"\n\
         [tcp]\nconventions = \"{conventions}\"\nheader = 48\n\
         [[flow]]\ncontroller = \"{controller}\"\n{flow}"
    );
    simulate(&text, 1).flows[0].bytes_delivered as f64
}

/// Path MTU discovery in steps, one in a round trip from the start: at least 97 % of the bytes with
/// the last size throughout.
#[test]
fn a_change_of_the_packet_size_costs_no_throughput() {
    let steps = "tcp.packet = 1326\npacket_changes = [{ at = \"40ms\", packet = 1389 }, \
        { at = \"80ms\", packet = 1420 }, { at = \"120ms\", packet = 1452 }]";
    for algorithm in cwnd::registry::algorithms() {
        for conventions in ["linux", "rfc"] {
            let [fixed, changed] = ["tcp.packet = 1452", steps]
                .map(|flow| delivered(algorithm.name, conventions, flow));
            let ratio = changed / fixed;
            assert!(ratio >= 0.97, "{} {conventions}: {ratio}", algorithm.name);
        }
    }
}

/// The sampled bytes are those of the packets, before and after a change of the size and of the
/// measured window.
#[test]
fn sampled_bytes_have_the_sizes_of_the_packets() {
    for (controller, conventions) in
        [("reno", "rfc"), ("reno", "ns2"), ("simd", "rfc"), ("udt", "rfc")]
    {
        let text = format!(
            "duration = \"20s\"\nwarmup = \"5s\"\n[dumbbell]\nrate = \"5mbit\"\ndelay = \"20ms\"\nqueue = \"1bdp\"\n\
             [tcp]\nconventions = \"{conventions}\"\n[[flow]]\ncontroller = \"{controller}\"\n\
             tcp.packet = 1000\npacket_changes = [{{ at = \"10s\", packet = 1452 }}]"
        );
        let records = simulate(&text, 1);
        let series = &records.flows[0].series;
        for (packets, bytes) in
            [(&series.sent, &series.sent_bytes), (&series.delivered, &series.delivered_bytes)]
        {
            let at = |time: f64| records.time.partition_point(|&one| one < time);
            let size = |from, to| (bytes[to] - bytes[from]) / (packets[to] - packets[from]);
            let last = packets.len() - 1;
            assert_eq!(size(at(1.0), at(9.9)), 1000.0, "{controller} {conventions}");
            assert_eq!(size(at(12.0), last), 1452.0, "{controller} {conventions}");
        }
    }
}
