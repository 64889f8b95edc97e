//! Scenarios in real time. The tests are skipped, with a message, where namespaces, TUN devices or
//! BPF controllers are not available.
#![cfg(target_os = "linux")]

mod bbr_draft;

use std::fs;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use cwnd_linux::emulate::{Options, Testbed};
use cwnd_linux::run::{Backend, Error, RunOutcome, check, run};
use cwnd_sim::network::Network;
use cwnd_sim::record::FlowRecord;
use cwnd_sim::scenario::Scenario;

/// Runs one test at a time: each needs the processors, and checks what it leaves. Returns `None` if
/// links cannot be emulated here, or, if `laws`, laws cannot be loaded.
fn run_lock(laws: bool) -> Option<MutexGuard<'static, ()>> {
    static ONE: Mutex<()> = Mutex::new(());
    let lock = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let testbed = Testbed::new(&network("reno", ""), &Options::default());
    let why = match testbed.and_then(Testbed::stop) {
        Err(error) => error.to_string(),
        Ok(_) if laws && !fs::exists("/sys/kernel/btf/vmlinux").unwrap_or(false) => {
            "this kernel has no BTF".into()
        }
        Ok(_) => return Some(lock),
    };
    eprintln!("skipped: scenarios cannot run in real time here: {why}");
    None
}

/// A link of 10 Mb/s with a round-trip time of 40 ms.
fn network(controller: &str, more: &str) -> Network {
    let text = format!(
        r#"
        duration = "4s"
        warmup = "1s"
        sample = "50ms"
        [dumbbell]
        rate = "10mbit"
        delay = "20ms"
        queue = "20p"
        [tcp]
        delayed_acks = false
        [[flow]]
        controller = "{controller}"
        {more}
        "#
    );
    Scenario::from_toml(&text, "test.toml").unwrap().network(1).unwrap()
}

fn completed_run(network: &Network, on: Backend) -> RunOutcome {
    run(network, 1, on, |_| true).unwrap().unwrap()
}

/// Asserts that no controllers, devices or threads of a run exist. UDT's threads stay for three
/// seconds to answer the peer.
fn assert_nothing_left() {
    let until = Instant::now() + Duration::from_secs(5);
    let prefix = format!("run_{:x}_", std::process::id());
    let offered = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    loop {
        let loaded = fs::read_to_string(offered).unwrap().contains(&prefix);
        let device = fs::read_to_string("/proc/net/dev").unwrap().contains("uplink");
        let tuns = fs::read_dir("/proc/self/fd").unwrap().flatten();
        let tuns = tuns.filter_map(|entry| fs::read_link(entry.path()).ok());
        let open = tuns.filter(|path| path.ends_with("net/tun")).count();
        let names = fs::read_dir("/proc/self/task").unwrap().flatten();
        let names = names.filter_map(|task| fs::read_to_string(task.path().join("comm")).ok());
        let threads = names.filter(|name| name.starts_with("cwnd-")).count();
        if !loaded && !device && open == 0 && threads == 0 {
            return;
        }
        assert!(Instant::now() < until, "remaining: {loaded} {device} {open} {threads}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Asserts the results of a flow that fills the link.
fn assert_full(outcome: &RunOutcome, min_utilization: f64) -> &FlowRecord {
    let (flow, link) = (&outcome.records.flows[0], &outcome.records.links[0]);
    assert_eq!(outcome.records.time.len(), 80);
    assert!(link.utilization > min_utilization && link.utilization < 1.01, "{}", link.utilization);
    // 3 s at 10 Mb/s are 2500 packets of 1500 bytes.
    let delivered = flow.packets_delivered as f64;
    assert!(delivered > 2500.0 * min_utilization && delivered < 2600.0, "{delivered}");
    assert!(flow.packets_sent >= flow.packets_delivered - 100, "{}", flow.packets_sent);
    let payload = [
        flow.bytes_delivered as f64 / delivered,
        flow.bytes_sent as f64 / flow.packets_sent as f64,
    ];
    assert!(payload.iter().all(|payload| (1440.0..1462.0).contains(payload)), "{payload:?}");
    assert!(flow.packets_received > 2000, "{}", flow.packets_received);
    assert!(flow.min_rtt > 0.04 && flow.min_rtt < 0.06, "{}", flow.min_rtt);
    assert!(flow.mean_rtt > 0.04 && flow.mean_rtt < 0.1, "{}", flow.mean_rtt);
    for series in [&flow.series.sent, &flow.series.delivered, &flow.series.window] {
        assert_eq!(series.len(), 80);
    }
    assert!(flow.series.delivered.windows(2).all(|pair| pair[0] <= pair[1]));
    assert!(flow.series.window.iter().all(|&window| window > 0.5));
    assert_eq!((link.queue.len(), link.drops_series.len()), (80, 80));
    let limited: f64 = flow.limited.seconds().iter().sum();
    assert!((limited - 3.0).abs() < 0.1, "{:?}", flow.limited);
    flow
}

#[test]
fn a_law_in_the_kernel_fills_the_link() {
    let Some(_lock) = run_lock(true) else { return };
    let text = "law half \"Reno\"\non grow:\n    return w + acked / w\non cut:\n    return w / 2\n";
    cwnd::registry::declare("half.law", text).unwrap();
    for controller in ["reno", "half.law"] {
        let outcome = completed_run(&network(controller, ""), Backend::Linux);
        let flow = assert_full(&outcome, 0.8);
        assert!(!flow.cuts.is_empty() && flow.packets_lost > 0, "{:?}", flow.cuts);
        for cut in &flow.cuts {
            assert!((cut.cut.after() - cut.cut.before() / 2.0).abs() < 1.0, "{cut:?}");
        }
        assert_eq!(outcome.records.notes, [""; 0]);
        assert_nothing_left();
    }
}

/// Slow start overshoots by hundreds of packets. If each lost packet were a loss report, the rate
/// would fall from 8333 packets per second to one.
#[test]
fn daimd_survives_its_slow_start() {
    let Some(_lock) = run_lock(true) else { return };
    let text = r#"
        duration = "1500ms"
        [dumbbell]
        rate = "100mbit"
        delay = "20ms"
        queue = "1bdp"
        [[flow]]
        controller = "daimd(delay=off)"
        "#;
    let network = Scenario::from_toml(text, "test.toml").unwrap().network(1).unwrap();
    let outcome = completed_run(&network, Backend::Linux);
    let cuts: Vec<_> = outcome.records.flows[0].cuts.iter().map(|cut| cut.cut).collect();
    let lowest = cuts.iter().map(|cut| cut.after()).fold(f64::INFINITY, f64::min);
    assert!(!cuts.is_empty() && cuts.len() < 50, "{} cuts", cuts.len());
    assert!(lowest > 0.005 * 8333.0, "{lowest}");
    assert_nothing_left();
}

#[test]
fn udt_sockets_fill_the_link() {
    let Some(_lock) = run_lock(false) else { return };
    let outcome = completed_run(&network("reno", ""), Backend::Udt);
    assert_full(&outcome, 0.8);
    assert!(
        outcome
            .records
            .notes
            .iter()
            .any(|note| note.contains("1456 bytes of data instead of 1460"))
    );
    assert_nothing_left();
}

#[test]
fn a_transfer_completes_next_to_datagrams() {
    let Some(_lock) = run_lock(false) else { return };
    let more = r#"
        bytes = 292000
        start = "200ms"
        [[cbr]]
        rate = "1mbit"
        packet = 1250
        "#;
    let mut network = network("bbr", more);
    network.duration = cwnd::Dur::from_millis(2000);
    let outcome = completed_run(&network, Backend::Linux);
    let [flow, cbr] = &outcome.records.flows[..] else { panic!("two flows") };
    assert_eq!(flow.series.delivered.last(), Some(&200.0));
    assert!(flow.completed > 0.4 && flow.completed < 1.5, "{}", flow.completed);
    // An acknowledgement takes half a round-trip time.
    assert!(flow.acknowledged > flow.completed + 0.01, "{}", flow.acknowledged);
    assert!(cbr.packets_sent.abs_diff(100) <= 2, "{}", cbr.packets_sent);
    assert!(cbr.packets_delivered.abs_diff(100) <= 3, "{}", cbr.packets_delivered);
    assert!(outcome.records.notes.iter().any(|note| note.starts_with("bbr is the kernel's own")));
    assert_nothing_left();
}

/// The kernel's own Reno and CUBIC, not this package's law of the same name: nothing is loaded, and
/// no cuts are recorded. The data, their times and the transfers are those of the application.
#[test]
fn applications_write_over_the_kernels_tcp() {
    let Some(_lock) = run_lock(false) else { return };
    let flow = |source: &str| {
        let mut network = network("kernel:reno", &format!("source = {{ {source} }}"));
        (network.duration, network.warmup) = (cwnd::Dur::from_millis(2500), cwnd::Dur::ZERO);
        completed_run(&network, Backend::Linux).records.flows.swap_remove(0)
    };
    let limited = flow("kind = \"limited\", rate = \"2mbit\"");
    let rate = limited.packets_delivered as f64 * 1460.0 * 8.0 / 2.5;
    assert!((1.8e6..2.05e6).contains(&rate), "{rate}");
    let requests = flow("kind = \"request\", sizes = 100000, think = \"200ms\"").transfers;
    let complete: Vec<_> = requests.iter().filter(|one| one.end.is_finite()).collect();
    // A response takes at least its transmission time of 83 ms and a round trip.
    assert!((4..=8).contains(&complete.len()), "{requests:?}");
    for (one, next) in complete.iter().zip(&complete[1..]) {
        assert_eq!(one.bytes, 100_000);
        assert!(one.end - one.begin > 0.1 && next.begin - one.end >= 0.2, "{requests:?}");
    }
    assert_nothing_left();
}

#[test]
fn the_kernels_own_controllers_fill_the_link() {
    let Some(_lock) = run_lock(false) else { return };
    for name in ["reno", "cubic"] {
        let outcome = completed_run(&network(&format!("kernel:{name}"), ""), Backend::Linux);
        let flow = assert_full(&outcome, 0.8);
        assert!(flow.cuts.is_empty() && flow.packets_lost > 0, "{name}: {}", flow.packets_lost);
        assert_eq!(
            outcome.records.notes,
            [format!("{name} is the kernel's own, which does not report its cuts.")]
        );
        assert_nothing_left();
    }
}

#[test]
fn unsupported_scenarios_are_refused_in_one_line() {
    let refused = |controller: &str, on| {
        let network = network(controller, "");
        let line = check(&network, on).unwrap_err().to_string();
        match run(&network, 1, on, |_| true) {
            Err(Error::Scenario(text)) => assert_eq!(text, line),
            other => panic!("{other:?}"),
        }
        line
    };
    let line = refused("copa", Backend::Linux);
    assert!(line.starts_with("flow copa: copa: has no kernel implementation"), "{line}");
    assert!(line.contains("aimd, reno") && line.contains("built into this kernel"), "{line}");
    assert!(refused("cubic(c=0.005)", Backend::Linux).contains("at least 0.01"));
    assert!(refused("python:mine", Backend::Udt).contains("run on sim only"));
    let line = refused("kernel:vegaz", Backend::Linux);
    assert!(line.starts_with("flow vegaz: kernel:vegaz: this kernel has "), "{line}");
    assert!(line.contains("reno"), "{line}");
    assert!(refused("kernel:reno", Backend::Udt).contains("run on sim and linux only"));
    let large = network("reno", "tcp.packet = 4000");
    let line = run(&large, 1, Backend::Linux, |_| true).unwrap_err().to_string();
    assert!(line.contains("128 to 1500"), "{line}");
}

#[test]
fn a_stopped_run_leaves_nothing() {
    let Some(_lock) = run_lock(true) else { return };
    let mut calls = 0;
    let outcome = run(&network("simd", ""), 1, Backend::Linux, |done| {
        calls += 1;
        done < 0.1
    });
    assert!(outcome.unwrap().is_none() && calls > 0);
    assert_nothing_left();
    let panicked = std::panic::catch_unwind(|| {
        run(&network("simd", ""), 1, Backend::Linux, |done| {
            assert!(done < 0.1, "on purpose");
            true
        })
    });
    assert!(panicked.is_err());
    assert_nothing_left();
}
