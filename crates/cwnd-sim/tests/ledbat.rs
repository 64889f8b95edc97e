//! LEDBAT (RFC 6817) and LEDBAT++: alone, and beside TCP.

use crate::common::{flow_table as flow, share, simulate};
use cwnd_sim::record::Records;

const BOTH: [(&str, f64); 2] = [("ledbat", 0.1), ("ledbat(plus=on)", 0.06)];

/// 10 Mb/s, a round-trip time of 40 ms and a buffer of 300 ms.
fn dumbbell(flows: &str) -> Records {
    let text = format!(
        "duration = \"120s\"\nwarmup = \"40s\"\nsample = \"50ms\"\n\
         [dumbbell]\nrate = \"10mbit\"\ndelay = \"20ms\"\nqueue = \"375kb\"\n{flows}"
    );
    simulate(&text, 1)
}

/// RFC 6817 section 2.4: the queueing delay settles at the target, and the link is full. LEDBAT++
/// gives up at most a tenth of the link for its slowdowns (section 4.4).
#[test]
fn alone_the_queue_is_at_the_target() {
    for timestamps in ["", "tcp = { timestamps = \"1ms\" }"] {
        for (controller, target) in BOTH {
            let link = &dumbbell(&flow(controller, timestamps)).links[0];
            let case = format!("{controller} {timestamps}: {:?} {}", link.delay, link.utilization);
            println!("{case}");
            assert_eq!(link.drops, 0, "{case}");
            if controller == "ledbat" {
                assert!((link.delay.mean / target - 1.0).abs() < 0.1, "{case}");
                assert!(link.utilization > 0.99, "{case}");
            } else {
                assert!((0.5..1.1).contains(&(link.delay.mean / target)), "{case}");
                assert!(link.utilization > 0.9, "{case}");
            }
        }
    }
}

/// RFC 6817 section 1: LEDBAT yields to a flow of TCP in a buffer longer than its target.
#[test]
fn beside_reno_the_share_is_small() {
    for (controller, _) in BOTH {
        for start in [0, 5, 10] {
            let flows = flow(controller, "") + &flow("reno", &format!("start = \"{start}s\""));
            let share = share(&dumbbell(&flows));
            println!("{controller}, after {start} s: {share}");
            assert!(share < 0.1, "{controller}, after {start} s: {share}");
        }
    }
}

/// LEDBAT++ section 4.4: slowdowns let a second flow measure the path, and the shares converge. RFC
/// 6817 section 4.4 does not solve the advantage of the flow that starts later.
#[test]
fn slowdowns_remove_the_advantage_of_the_latecomer() {
    let late = |controller| {
        let flows = flow(controller, "") + &flow(controller, "start = \"20s\"");
        let records = dumbbell(&flows);
        let [first, second] = [0, 1].map(|i| records.flows[i].packets_delivered as f64);
        second / (first + second)
    };
    let (plain, plus) = (late("ledbat"), late("ledbat(plus=on)"));
    println!("{plain} {plus}");
    assert!(plain > 0.8, "{plain}");
    assert!((0.35..0.65).contains(&plus), "{plus}");
}
