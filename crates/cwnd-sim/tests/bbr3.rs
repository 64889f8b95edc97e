//! BBR version 3 in the simulator beyond the test cases of the draft (`bbr_draft.rs`), with the
//! conventions of Linux.

use crate::common::{gauge, loss, simulate};
use cwnd_sim::record::Records;

/// Runs flows of BBR for 60 s, the first 10 s excluded; `link` has the keys of the dumbbell.
fn flows(count: u32, link: &str) -> Records {
    let text = format!(
        "duration = \"60s\"\nwarmup = \"10s\"\n[dumbbell]\n{link}\n[tcp]\nconventions = \"linux\"\n\
         [[flow]]\ncontroller = \"bbr3\"\ncount = {count}\nstart = \"0s..500ms\"\n"
    );
    simulate(&text, 1)
}

/// A flow whose flight ends between two paced packets is not idle, and probes.
#[test]
fn more_bandwidth_is_found_with_less_than_a_packet_in_flight() {
    let link = "rate = \"1mbit\"\ndelay = \"3ms\"\nqueue = \"20p\"\n\
                changes = [{ at = \"20s\", rate = \"10mbit\" }]";
    let records = flows(1, link);
    let max_bw = gauge(&records.flows[0], "max_bw");
    // Packets of 1500 bytes.
    let mbits = |at: f64| {
        let sample = records.time.iter().position(|time| *time >= at).unwrap();
        max_bw[sample] * 12e3 / 1e6
    };
    assert!(mbits(19.0) < 1.1, "{}", mbits(19.0));
    assert!(mbits(50.0) > 9.5, "{}", mbits(50.0));
}

/// Section 1: what version 1 does not do. Four flows in a short buffer.
#[test]
fn several_flows_in_a_short_buffer_lose_little() {
    let records = flows(4, "rate = \"20mbit\"\ndelay = \"20ms\"\nqueue = \"0.5bdp\"");
    assert!(loss(&records) < 0.02, "{}", loss(&records));
    assert!(records.links[0].utilization > 0.95, "{}", records.links[0].utilization);
}
