//! Transfers over links that vary.

use crate::common::{run, run_with, scenario, simulate};
use cwnd_sim::Options;
use cwnd_sim::record::Records;

/// Runs a transfer of 2 MB over a dumbbell of 10 Mb/s with these keys.
fn transfer(keys: &str, flow: &str) -> Records {
    let text = format!(
        "duration = \"120s\"\n[dumbbell]\nrate = \"10mbit\"\ndelay = \"10ms\"\n{keys}\n\
         [[flow]]\nbytes = 2000000\n{flow}\n"
    );
    simulate(&text, 1)
}

const SENDERS: [&str; 6] = [
    "controller = \"reno\"",
    "controller = \"cubic\"\ntcp = { timestamps = true }",
    "controller = \"reno\"\ntcp = { conventions = \"ns2\" }",
    "controller = \"reno\"\ntcp = { recovery = \"newreno\" }",
    "controller = \"daimd\"",
    "controller = \"udt\"\nprotocol = \"udt\"",
];

/// Every sender completes its transfer although data and acknowledgements are overtaken, and
/// nothing is lost but in the queue.
#[test]
fn transfers_complete_over_links_that_reorder() {
    for (probability, delay) in [("1%", "20ms"), ("30%", "2ms"), ("50%", "50ms")] {
        let reorder =
            format!("reorder = {{ probability = \"{probability}\", delay = \"{delay}\" }}");
        for sender in SENDERS {
            let records = transfer(&reorder, sender);
            let flow = &records.flows[0];
            let delivered = flow.packets_delivered;
            assert!(flow.completed > 0.0, "{sender} {reorder}: {delivered} packets delivered");
            assert!(flow.packets_sent >= flow.packets_delivered);
            let drops: u64 = records.links.iter().map(|link| link.drops).sum();
            assert_eq!(flow.packets_lost, drops, "{sender} {reorder}");
            assert!(records.links.iter().all(|link| link.losses == 0));
        }
    }
}

#[test]
fn transfers_survive_blackouts_and_stops() {
    for keys in [
        "blackout = [{ at = 0.5, for = 1 }]",
        "changes = [{ at = 0.5, rate = \"0bit\" }, { at = 1.5, rate = \"10mbit\" }]",
        "changes = [{ at = 0.5, delay = \"100ms\", loss = 0.01 }, { at = 1.5, delay = 0, over = 1 }]",
    ] {
        for sender in SENDERS {
            let flow = &transfer(keys, sender).flows[0];
            // 2 MB take 1.6 s.
            assert!(flow.completed > 1.6, "{sender} {keys}: {}", flow.completed);
        }
    }
}

/// The utilisation is relative to what the link offers, and to the token rate of a shaper.
#[test]
fn utilization_is_of_the_capacity() {
    for (keys, capacity) in [
        ("changes = [{ at = 1, rate = \"2mbit\" }]", 10),
        ("shaper = { rate = \"2mbit\", burst = \"10kb\" }", 0),
        ("model = { kind = \"wifi\" }", 0),
    ] {
        let text = format!(
            "duration = \"10s\"\nwarmup = \"2s\"\nsample = \"1s\"\n[dumbbell]\nrate = \"10mbit\"\n\
             delay = 0\n{keys}\nqueue = 20\n[[cbr]]\nrate = \"20mbit\"\nmeasured = true\n"
        );
        let link = &simulate(&text, 1).links[0];
        assert!((link.utilization - 1.0).abs() < 0.01, "{keys}: {}", link.utilization);
        assert_eq!(link.capacity.len(), capacity);
    }
}

/// Delays are those of transmitted packets: the packets that wait for a stopped link do not count,
/// on either path.
#[test]
fn packets_that_wait_at_the_end_have_no_delay() {
    for (queue, keys) in [
        ("20p", "changes = [{ at = 1, rate = \"0bit\" }, { at = 1000, rate = \"10mbit\" }]"),
        ("red", "changes = [{ at = 1, rate = \"0bit\" }, { at = 1000, rate = \"10mbit\" }]"),
        ("20p", "shaper = { rate = \"8bit\", burst = \"1mb\" }"),
    ] {
        let text = format!(
            "duration = \"4s\"\nwarmup = \"0.5s\"\n[dumbbell]\nrate = \"10mbit\"\ndelay = 0\n\
             queue = \"{queue}\"\n{keys}\n[[cbr]]\nrate = \"5mbit\"\n"
        );
        let network = scenario(&text, 1);
        for lookahead in [false, true] {
            let options = Options { lookahead, ..Options::default() };
            let link = &run_with(&network, 1, &options).links[0];
            assert!(link.drops > 0 && link.mean_queue > 5.0, "{queue} {keys}: {link:?}");
            assert!(link.delay.mean.max(link.delay.p99) < 0.01, "{queue} {keys}: {:?}", link.delay);
        }
    }
}

/// All packets of a flow take one of four equal routes, and its acknowledgements one of their own.
#[test]
fn a_flow_stays_on_one_of_the_equal_cost_routes() {
    let link = |from: &str, to: &str| {
        format!("[[link]]\nfrom = \"{from}\"\nto = \"{to}\"\nrate = \"10mbit\"\ndelay = \"5ms\"\n")
    };
    let links: String =
        (1..=4).map(|n| link("a", &format!("m{n}")) + &link(&format!("m{n}"), "d")).collect();
    let flow = "[[flow]]\ncontroller = \"reno\"\nbytes = 2000000\nfrom = \"a\"\nto = \"d\"\n";
    let mut routes = std::collections::BTreeSet::new();
    for seed in 1..=20 {
        let text = format!("duration = \"9s\"\necmp = true\n{links}{flow}");
        let network = scenario(&text, seed);
        let records = run(&network, seed);
        let used = |from: &str| -> Vec<_> {
            let of = network.links.iter().zip(&records.links);
            let of = of.filter(|(link, record)| link.name.starts_with(from) && record.arrivals > 0);
            of.map(|(link, _)| link.name.clone()).collect()
        };
        let [there, back] = [used("a-"), used("d-")];
        assert_eq!((there.len(), back.len()), (1, 1), "{there:?} {back:?}");
        assert!(records.flows[0].completed > 0.0);
        routes.insert((there, back));
    }
    assert!(routes.len() > 8, "{routes:?}");
}
