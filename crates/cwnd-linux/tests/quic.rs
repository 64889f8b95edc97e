//! Scenarios in real time with the QUIC stacks. The tests are skipped, with a message, where
//! namespaces or TUN devices are not available.
#![cfg(all(target_os = "linux", feature = "quic"))]

use std::sync::{Mutex, MutexGuard, PoisonError};

use cwnd_linux::emulate::{Options, Testbed};
use cwnd_linux::run::{Backend, check, run};
use cwnd_sim::network::Network;
use cwnd_sim::record::Records;
use cwnd_sim::scenario::Scenario;

/// Runs one test at a time. Returns `None` if links cannot be emulated here.
fn run_lock() -> Option<MutexGuard<'static, ()>> {
    static ONE: Mutex<()> = Mutex::new(());
    let lock = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let testbed = Testbed::new(&network(&flow("noq", "cubic", "")), &Options::default());
    match testbed.and_then(Testbed::stop) {
        Ok(_) => Some(lock),
        Err(error) => {
            eprintln!("skipped: scenarios cannot run in real time here: {error}");
            None
        }
    }
}

fn flow(stack: &str, controller: &str, more: &str) -> String {
    format!(
        "[[flow]]\nprotocol = \"quic\"\nstack = \"{stack}\"\ncontroller = \"{controller}\"\n{more}\n"
    )
}

/// A link of 10 Mb/s with a round-trip time of 20 ms.
fn network(more: &str) -> Network {
    let text = format!(
        "duration = \"3s\"\nwarmup = \"1s\"\nsample = \"50ms\"\n\
         [dumbbell]\nrate = \"10mbit\"\ndelay = \"10ms\"\nqueue = \"20p\"\n{more}"
    );
    Scenario::from_toml(&text, "test.toml").unwrap().network(1).unwrap()
}

fn records(more: &str) -> Records {
    run(&network(more), 1, Backend::Quic, |_| true).unwrap().unwrap().records
}

#[test]
fn connections_of_both_stacks_fill_the_link_and_have_the_records_of_a_flow() {
    let Some(_lock) = run_lock() else { return };
    let text =
        "law mild \"AIMD\"\non grow:\n    return w + acked / w\non cut:\n    return 3 * w / 4\n";
    cwnd::registry::declare("mild.law", text).unwrap();
    for (stack, controller) in [("noq", "own:cubic"), ("noq", "mild.law"), ("quinn", "reno")] {
        let records = records(&flow(stack, controller, ""));
        let (flow, link) = (&records.flows[0], &records.links[0]);
        let what = format!("{stack} {controller}: {:?}", records.notes);
        assert!(link.utilization > 0.7 && link.utilization < 1.01, "{what} {}", link.utilization);
        assert!(flow.closed.is_none() && flow.acknowledged.is_nan(), "{what} {:?}", flow.closed);
        let delivered = flow.bytes_delivered as f64 * 8.0 / 2.0;
        assert!((6e6..9.8e6).contains(&delivered), "{what} {delivered}");
        // Packets of the stack's own, counted by itself and by the links.
        let [sent, received] = [flow.packets_sent, flow.packets_delivered].map(|it| it as f64);
        assert!((0.9..1.25).contains(&(sent / received)), "{what} {sent} {received}");
        assert!(flow.packets_lost > 0 && flow.retransmissions > 0, "{what}");
        assert!(!flow.cuts.is_empty(), "{what}");
        let cut = flow.cuts[0].cut;
        assert!(cut.after() < cut.before() && cut.before() > 10.0, "{what} {cut:?}");
        assert!(flow.min_rtt > 0.02 && flow.mean_rtt < 0.06, "{what} {}", flow.mean_rtt);
        let series = &flow.series;
        for values in [&series.sent, &series.delivered, &series.window, &series.rtt] {
            assert_eq!(values.len(), records.time.len(), "{what}");
        }
        assert!(
            series.gauges.iter().any(|(name, _)| *name == "ssthresh" || *name == "w"),
            "{what}"
        );
        let limited: f64 = flow.limited.seconds().iter().sum();
        assert!((limited - 2.0).abs() < 0.1, "{what} {:?}", flow.limited);
    }
}

#[test]
fn a_transfer_completes_beside_tcp_and_udt() {
    let Some(_lock) = run_lock() else { return };
    let flows = flow("quinn", "own:cubic", "bytes = \"300kb\"\nquic = { streams = 3 }")
        + "[[flow]]\ncontroller = \"kernel:reno\"\n"
        + "[[flow]]\nprotocol = \"udt\"\ncontroller = \"reno\"\n";
    let records = records(&flows);
    let [quic, tcp, udt] = &records.flows[..] else { panic!("three flows") };
    assert!(quic.completed <= quic.acknowledged && quic.closed.is_none(), "{:?}", quic.closed);
    assert!(tcp.bytes_delivered > 0 && udt.bytes_delivered > 0);
    assert!(records.notes.iter().any(|note| note.contains("several streams")));
}

#[test]
fn a_connection_that_times_out_is_closed() {
    let Some(_lock) = run_lock() else { return };
    let text = format!(
        "duration = \"3s\"\n[dumbbell]\nrate = \"10mbit\"\ndelay = \"10ms\"\nqueue = \"20p\"\n\
         blackout = [{{ at = \"1s\", for = \"2s\" }}]\n{}",
        flow("noq", "own:cubic", "quic = { idle_timeout = \"300ms\" }")
    );
    let network = Scenario::from_toml(&text, "test.toml").unwrap().network(1).unwrap();
    let outcome = run(&network, 1, Backend::Quic, |_| true).unwrap().unwrap();
    let closed = outcome.records.flows[0].closed.as_ref().expect("closed");
    assert!(closed.at > 1.2 && closed.reason.ends_with("timed out"), "{closed:?}");
}

#[test]
fn what_the_backend_does_not_have_is_an_error() {
    let error = |more: &str, on| check(&network(more), on).unwrap_err().to_string();
    assert_eq!(
        error("[[flow]]\ncontroller = \"reno\"\n", Backend::Quic),
        "--on quic needs a flow with `protocol = \"quic\"`"
    );
    let own = flow("noq", "own:cubic", "");
    assert!(error(&own, Backend::Linux).ends_with("QUIC runs on sim and quic only"));
    let python = flow("noq", "python:mine", "");
    assert!(error(&python, Backend::Quic).contains("run on sim only"));
    let jumbo = flow("noq", "cubic", "quic = { mtu = 9000 }");
    assert!(error(&jumbo, Backend::Quic).contains("packets of 9028 bytes"));
}
