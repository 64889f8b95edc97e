//! Copa (NSDI 2018): the queue in equilibrium, fairness, and the two modes.

use crate::common::{flow_table as flow, gauge, jain, mean, share, simulate};
use cwnd_sim::record::Records;

/// Runs flows on a dumbbell with a round-trip time of 40 ms; `flows` are tables of the scenario.
fn dumbbell(rate: &str, queue: &str, warmup: &str, flows: &str, seed: u64) -> Records {
    let text = format!(
        "duration = \"120s\"\nwarmup = \"{warmup}\"\nsample = \"50ms\"\n\
         [dumbbell]\nrate = \"{rate}\"\ndelay = \"20ms\"\nqueue = \"{queue}\"\n{flows}"
    );
    simulate(&text, seed)
}

/// Returns the fraction of the time from `from` to `to` seconds in the competitive mode.
fn competitive(records: &Records, from: f64, to: f64) -> f64 {
    mean(records, gauge(&records.flows[0], "competitive"), from..to)
}

/// Section 3: the queue oscillates between 0 and 2.5/delta packets for each flow, so that its mean
/// is 1.25/delta. The analysis assumes a queue that is short against the bandwidth-delay product,
/// and hosts without processing times.
#[test]
fn the_queue_is_that_of_the_paper() {
    for (controller, delta, count) in [
        ("copa", 0.5, 1),
        ("copa", 0.5, 4),
        ("copa(delta=0.1)", 0.1, 4),
        ("copa(competitive=off)", 0.5, 4),
    ] {
        for acks in ["", ", delayed_acks = false"] {
            let rate = format!("{}mbit", 6.0 * f64::from(count) / delta);
            let tcp = format!("tcp = {{ overhead = \"0s\"{acks} }}");
            let keys = format!("count = {count}\nstart = \"0s..5s\"\n{tcp}");
            let link = &dumbbell(&rate, "500p", "40s", &flow(controller, &keys), 1).links[0];
            let expected = 1.25 / delta * f64::from(count);
            let ratio = link.mean_queue / expected;
            let case = format!("{count} {controller} {acks}");
            assert!((0.8..1.2).contains(&ratio), "{case}: {} packets", link.mean_queue);
            assert!(link.utilization > 0.99 && link.drops == 0, "{case}: {}", link.utilization);
        }
    }
}

/// "Converging quickly to the correct fair rates": flows that start at different times share
/// evenly.
#[test]
fn flows_share_evenly() {
    for count in [2, 4, 8] {
        for seed in 1..=3 {
            let keys = format!("count = {count}\nstart = \"0s..5s\"");
            let records = dumbbell("48mbit", "500p", "20s", &flow("copa", &keys), seed);
            assert!(jain(&records) > 0.95, "{count} flows, seed {seed}: {}", jain(&records));
        }
    }
}

/// Section 2.2: beside a flow that fills the buffer, Copa is in the competitive mode and gets about
/// the share that NewReno would get, whose AIMD it emulates. All have the loss recovery of RFC
/// 6675.
#[test]
fn the_competitive_mode_keeps_its_share() {
    for queue in ["100p", "200p", "400p"] {
        for other in ["reno", "cubic"] {
            let beside = |controller| {
                let flows =
                    [controller, other].map(|own| flow(own, "tcp.conventions = \"rfc5681\""));
                let flows = flows.concat();
                dumbbell("24mbit", queue, "20s", &flows, 1)
            };
            let records = beside("copa");
            let (ours, reno) = (share(&records), share(&beside("reno")));
            assert!(ours > 0.8 * reno, "{queue} {other}: {ours}, Reno {reno}");
            let time = competitive(&records, 20.0, 120.0);
            assert!(time > 0.5, "{queue} {other}: {time}");
            if other == "reno" {
                assert!((0.4..0.6).contains(&ours), "{queue}: {ours}");
            }
        }
    }
}

/// Without the competitive mode it starves: the reason for the mode.
#[test]
fn the_default_mode_starves_beside_reno() {
    let flows = flow("copa(competitive=off)", "") + &flow("reno", "");
    let records = dumbbell("24mbit", "200p", "20s", &flows, 1);
    assert!(share(&records) < 0.1, "{}", share(&records));
}

/// The default mode returns with its queue when the competitor leaves. With random processing times
/// of hosts the queue stays at 25 to 60 packets in a third of the runs: the window of the minimum
/// RTT then holds no sample of an empty queue.
#[test]
fn the_default_mode_returns() {
    for rate in ["24mbit", "48mbit"] {
        let flows = "[tcp]\noverhead = \"0s\"\n".to_owned()
            + &flow("copa", "")
            + &flow("reno", "start = \"10s\"\nstop = \"60s\"");
        let records = dumbbell(rate, "200p", "0s", &flows, 1);
        let [before, during, after] = [(2.0, 10.0), (20.0, 60.0), (70.0, 120.0)]
            .map(|(from, to)| competitive(&records, from, to));
        assert!(before < 0.05 && during > 0.5 && after < 0.05, "{rate}: {before} {during} {after}");
        let queue = mean(&records, &records.links[0].queue, 70.0..120.0);
        assert!((1.0..4.0).contains(&queue), "{rate}: {queue} packets");
    }
}
