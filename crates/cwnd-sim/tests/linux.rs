//! TCP with the conventions of Linux, and the parts of later RFCs: pinned results, and what each
//! part is for.

use crate::common::results::digest;
use crate::common::wire::crossed;
use crate::common::{run, scenario, simulate};
use cwnd_sim::record::Records;
use std::collections::BTreeMap;

/// The keys of which each can be switched alone.
const PARTS: [&str; 5] = ["rack", "tlp", "prr", "dsack", "frto"];

/// Two flows of `controller` and one of Reno through a bottleneck that marks, drops and loses
/// packets.
fn contention(controller: &str, tcp: &str) -> String {
    format!(
        r#"
        duration = "12s"
        warmup = "1s"
        tcp = {{ ecn = true, {tcp} }}
        [dumbbell]
        rate = "10mbit"
        delay = "15ms"
        queue = {{ kind = "red", limit = "60p", min = "10p", max = "40p", max_p = 0.1, weight = 0.002, ecn = true }}
        loss = 0.002
        loss_of_acks = true
        [access]
        delay = "1ms..5ms"
        [[flow]]
        controller = "{controller}"
        count = 2
        start = "0s..1s"
        [[flow]]
        name = "transfer"
        controller = "{controller}"
        bytes = "300kb"
        start = "4s"
        [[flow]]
        name = "reno"
        controller = "reno"
        [[cbr]]
        name = "outage"
        rate = "400mbit"
        start = "8s"
        stop = "9s"
        "#
    )
}

fn line(records: &Records) -> String {
    let ours = &records.flows[..3];
    let delivered: u64 = ours.iter().map(|flow| flow.packets_delivered).sum();
    let timeouts: u64 = ours.iter().map(|flow| flow.timeouts).sum();
    format!("{:016x} {delivered} delivered, {timeouts} timeouts", digest(records))
}

/// Every controller in Linux's conventions, and every part alone in those of RFC 5681 and off in
/// those of Linux.
#[test]
fn digests() {
    let mut digests = BTreeMap::new();
    let linux = "conventions = \"linux\"";
    for algorithm in cwnd::registry::algorithms() {
        let records = simulate(&contention(algorithm.name, linux), 1);
        digests.insert(format!("{} linux", algorithm.name), line(&records));
    }
    for part in PARTS {
        for tcp in [
            format!("conventions = \"rfc5681\", {part} = true"),
            format!("{linux}, {part} = false"),
        ] {
            digests.insert(format!("cubic {tcp}"), line(&simulate(&contention("cubic", &tcp), 1)));
        }
    }
    for tcp in ["pacing = true", "slow_start = \"hystart\"", "slow_start = \"standard\""] {
        let tcp = format!("{linux}, {tcp}");
        digests.insert(format!("cubic {tcp}"), line(&simulate(&contention("cubic", &tcp), 1)));
    }
    insta::assert_json_snapshot!(digests);
}

/// 200 transfers of 20 packets over a path that loses 3 % of them. Returns the timeouts and the
/// mean time of completion in seconds. The starts are those of the seed.
fn short_transfers(tcp: &str) -> (u64, f64) {
    let records = simulate(
        &format!(
            r#"
            duration = "120s"
            tcp = {{ {tcp} }}
            [dumbbell]
            rate = "100mbit"
            delay = "20ms"
            loss = 0.03
            [[flow]]
            controller = "reno"
            count = 200
            bytes = 29200
            start = "0s..60s"
            "#
        ),
        1,
    );
    assert!(records.flows.iter().all(|flow| flow.completed.is_finite()));
    let timeouts = records.flows.iter().map(|flow| flow.timeouts).sum();
    let times = records.flows.iter().map(|flow| flow.completed);
    (timeouts, times.sum::<f64>() / 200.0)
}

/// Tail loss probes replace most timeouts of short transfers, which makes these faster.
#[test]
fn probes_replace_timeouts() {
    // The loss of a SYN is answered by a timeout with any recovery.
    let recovery =
        "conventions = \"rfc5681\", syn = false, rack = true, prr = true, timestamps = true";
    let (without, slow) = short_transfers(recovery);
    let (with, fast) = short_transfers(&format!("{recovery}, tlp = true"));
    assert!(2 * with < without, "{with} timeouts of {without}");
    assert!(fast < slow, "{fast} s, {slow} s");
}

/// A reduction by PRR sends throughout the round, where RFC 6675 is silent until half of the window
/// has left: the queue of the bottleneck runs empty less often. Each part does so alone.
#[test]
fn each_part_fills_a_bottleneck() {
    let alone =
        ["rack", "prr", "tlp"].map(|part| format!("conventions = \"rfc5681\", {part} = true"));
    for tcp in
        alone.into_iter().chain(["rfc", "linux"].map(|all| format!("conventions = \"{all}\"")))
    {
        let records = simulate(
            &format!(
                r#"
                duration = "30s"
                warmup = "5s"
                tcp = {{ {tcp} }}
                [dumbbell]
                rate = "10mbit"
                delay = "20ms"
                queue = "1bdp"
                [[flow]]
                controller = "cubic"
                count = 2
                "#
            ),
            1,
        );
        let utilization = records.links[0].utilization;
        assert!(utilization > 0.97, "{tcp}: {utilization}");
        assert_eq!(records.flows.iter().map(|flow| flow.timeouts).sum::<u64>(), 0, "{tcp}");
        let lost: u64 = records.flows.iter().map(|flow| flow.packets_lost).sum();
        let again: u64 = records.flows.iter().map(|flow| flow.retransmissions).sum();
        // Packets that are lost at the end of the run are not retransmitted, and those lost just
        // before the measurement are in it.
        assert!(again <= lost + 5 && lost - lost.min(again) < 100, "{tcp}: {again} of {lost}");
    }
}

/// RACK learns of reordering from a hole that its delayed original fills, as the timestamp shows
/// (`tcp_try_undo_partial`), and from duplicates that are reported afterwards: few retransmissions
/// are spurious, where 2 % of the packets are late. The kernel's TCP has 13 to 26 retransmissions.
#[test]
fn reordering_is_learnt_from_timestamps() {
    for delay in ["5ms", "12ms", "30ms"] {
        let records = simulate(
            &format!(
                r#"
                duration = "20s"
                tcp.conventions = "linux"
                [dumbbell]
                rate = "20mbit"
                delay = "20ms"
                queue = "200p"
                reorder = {{ probability = 0.02, delay = "{delay}" }}
                [[flow]]
                controller = "cubic"
                "#
            ),
            1,
        );
        let flow = &records.flows[0];
        let in_vain = flow.retransmissions - flow.packets_lost;
        assert!(in_vain < 15, "{delay}: {in_vain} of {}", flow.retransmissions);
    }
}

/// The receiver compresses SACKs (`__tcp_ack_snd_check`): with losses it acknowledges nearly as few
/// times as without. The kernel's TCP 6.18 has 1.87 packets an acknowledgement on this path.
#[test]
fn sacks_are_compressed() {
    let text = r#"
        duration = "8s"
        tcp.conventions = "linux"
        [dumbbell]
        rate = "20mbit"
        delay = "20ms"
        loss = 0.02
        back = { loss = 0 }
        [[flow]]
        controller = "bbr"
    "#;
    let network = scenario(text, 1);
    let back = network.flows[0].back[0];
    let received = run(&network, 1).flows[0].packets_delivered as f64;
    let ratio = received / crossed(&network, 1, back).len() as f64;
    assert!((1.75..2.0).contains(&ratio), "{ratio} packets an acknowledgement");
}
