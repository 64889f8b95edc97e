//! A flow whose packet size changes: every controller keeps its rate.

use crate::common::run;
use cwnd_sim::scenario::Scenario;

/// Returns the bytes that a flow of `controller` delivers in 20 s.
fn delivered(controller: &str, conventions: &str, flow: &str) -> f64 {
    let text = format!(
        "duration = \"20s\"\n[dumbbell]\nrate = \"50mbit\"\ndelay = \"20ms\"\nqueue = \"1bdp\"\n\
         [tcp]\nconventions = \"{conventions}\"\nheader = 48\n\
         [[flow]]\ncontroller = \"{controller}\"\n{flow}"
    );
    let scenario = Scenario::from_toml(&text, "sizes").unwrap_or_else(|error| panic!("{error}"));
    run(&scenario.network(1).unwrap(), 1).flows[0].bytes_delivered as f64
}

/// Path MTU discovery in steps, one in a round trip from the start: at least 97 % of the bytes with the last size throughout.
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
