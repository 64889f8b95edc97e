//! The same network and seed give bit-identical results: repeatedly, in slices, and beside runs in
//! other threads.
//!
//! Snapshots hold a digest of each scenario file and of each controller, to detect unintended
//! changes of results.

use crate::common::results::digest;
use crate::common::{self, run};
use cwnd_sim::network::{Model, Network, Traffic};
use cwnd_sim::record::{FlowRecord, Records};
use cwnd_sim::scenario::Scenario;
use cwnd_sim::{Options, Simulation};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

/// The maximum duration of a run in seconds; longer scenarios are shortened.
const MAX_SECONDS: f64 = 8.0;
/// The maximum duration in seconds of scenarios with a link of 1 Gb/s or more.
const MAX_SECONDS_FAST: f64 = 2.0;

/// Returns the shortened scenario files by name.
fn scenarios() -> BTreeMap<String, Network> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/cwnd/scenarios");
    let files = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let shortened = files.map(|file| {
        let name = file.file_stem().unwrap().to_str().unwrap().to_owned();
        let scenario = Scenario::from_toml(&fs::read_to_string(&file).unwrap(), &name).unwrap();
        let mut network = scenario.network(scenario.seed).unwrap();
        let rate = network.links.iter().filter_map(|link| link.rate).fold(0.0, f64::max);
        let longest = if rate >= 1e9 { MAX_SECONDS_FAST } else { MAX_SECONDS };
        let factor = (longest / network.duration.as_secs()).min(1.0);
        // Start and stop times keep their order.
        let shorter = |nanos: u64| (nanos as f64 * factor) as u64;
        network.duration = cwnd::Dur::from_nanos(shorter(network.duration.as_nanos()));
        network.warmup = cwnd::Dur::from_nanos(shorter(network.warmup.as_nanos()));
        for flow in &mut network.flows {
            flow.start = cwnd::Time::from_nanos(shorter(flow.start.as_nanos()));
            if flow.stop != cwnd::Time::NEVER {
                flow.stop = cwnd::Time::from_nanos(shorter(flow.stop.as_nanos()));
            }
        }
        // So do the changes of links.
        let shorten =
            |span: &mut cwnd::Dur| *span = cwnd::Dur::from_nanos(shorter(span.as_nanos()));
        for impairments in network.links.iter_mut().filter_map(|link| link.impairments.as_mut()) {
            let own = Arc::make_mut(impairments);
            own.changes.iter_mut().flat_map(|one| [&mut one.at, &mut one.over]).for_each(shorten);
            own.blackouts
                .iter_mut()
                .flat_map(|one| [&mut one.at, &mut one.length])
                .for_each(shorten);
            if let Some(Model::Leo(leo)) = &mut own.model {
                shorten(&mut leo.interval);
            }
        }
        (name, network)
    });
    // QUIC needs a stack, of another crate.
    let has_quic = |network: &Network| {
        network.flows.iter().any(|flow| matches!(*flow.traffic, Traffic::Quic(_)))
    };
    shortened.filter(|(_, network)| !has_quic(network)).collect()
}

#[test]
fn digests_of_the_scenarios() {
    let digests: BTreeMap<_, _> = scenarios()
        .into_iter()
        .map(|(name, network)| {
            let records = run(&network, 1);
            let delivered: u64 = records.flows.iter().map(|flow| flow.packets_delivered).sum();
            // Key figures beside the digest help to interpret a change.
            let line = format!("{:016x}", digest(&records));
            (name, format!("{line} {delivered} delivered"))
        })
        .collect();
    insta::assert_json_snapshot!(digests);
}

/// Two flows of `controller` and one of Reno through a bottleneck that marks, drops and loses
/// packets, with a flow in the reverse direction. The link fails for seconds, so that timers
/// expire.
fn contention(controller: &str, stack: &str, rate: &str, loss: f64) -> Network {
    let (protocol, tcp) = match stack {
        "udt" => ("protocol = \"udt\"", String::new()),
        conventions => {
            ("", format!("[tcp]\nconventions = \"{conventions}\"\necn = true\nwindow = 3000\n"))
        }
    };
    let ecn = rate == "8mbit";
    let scenario = format!(
        r#"
        duration = "20s"
        warmup = "2s"
        [dumbbell]
        rate = "{rate}"
        delay = "15ms"
        queue = {{ kind = "red", limit = "60p", min = "10p", max = "40p", max_p = 0.1, weight = 0.002, ecn = {ecn} }}
        loss = {loss}
        loss_of_acks = true
        [access]
        delay = "1ms..5ms"
        {tcp}
        [[flow]]
        name = "main"
        controller = "{controller}"
        count = 2
        start = "0s..1s"
        {protocol}
        [[flow]]
        name = "transfer"
        controller = "{controller}"
        bytes = "300kb"
        start = "6s"
        {protocol}
        [[flow]]
        name = "reno"
        controller = "reno"
        start = "3s"
        [[flow]]
        name = "back"
        controller = "reno"
        start = "4s"
        reverse = true
        [[cbr]]
        name = "outage"
        rate = "400mbit"
        start = "12s"
        stop = "14s"
        "#
    );
    let scenario = Scenario::from_toml(&scenario, controller).unwrap();
    scenario.network(scenario.seed).unwrap()
}

/// Every controller of the registry over TCP with the conventions `rfc`, `rfc5681` and those of
/// ns-2, and over UDT.
#[test]
fn digests_of_the_controllers() {
    // At 300 Mb/s without marks the windows reach hundreds of packets, where laws for fast paths
    // differ from Reno.
    let slow = ["rfc", "rfc5681", "ns2", "ns2-2001", "udt"].map(|stack| (stack, "8mbit", 2e-3));
    let cases = slow.into_iter().chain([("rfc5681", "300mbit", 1e-5)]);
    let names = cwnd::registry::algorithms().iter().map(|algorithm| algorithm.name);
    let digests: BTreeMap<_, _> = names
        .flat_map(|name| cases.clone().map(move |case| (name, case)))
        .map(|(name, (stack, rate, loss))| {
            let records = run(&contention(name, stack, rate, loss), 1);
            let ours = &records.flows[..3];
            let total = |count: fn(&FlowRecord) -> u64| ours.iter().map(count).sum::<u64>();
            let delivered = total(|flow| flow.packets_delivered);
            let cuts = total(|flow| flow.cuts.len() as u64);
            let marks = total(|flow| flow.ecn_cuts);
            let timeouts = total(|flow| flow.timeouts);
            let digest = digest(&records);
            let line = format!(
                "{digest:016x} {delivered} delivered, {cuts} cuts, {marks} by marks, {timeouts} timeouts"
            );
            (format!("{name} {stack} {rate}"), line)
        })
        .collect();
    insta::assert_json_snapshot!(digests);
}

/// Returns the smaller scenarios, for tests that run each several times.
fn small() -> BTreeMap<String, Network> {
    let mut all = scenarios();
    all.retain(|name, _| name != "transatlantic");
    for network in all.values_mut() {
        network.duration = cwnd::Dur::from_nanos(network.duration.as_nanos() / 4);
        network.warmup = cwnd::Dur::from_nanos(network.warmup.as_nanos() / 4);
    }
    all
}

fn in_slices(network: &Network, seed: u64, slices: impl Iterator<Item = u64>) -> Records {
    let mut simulation = Simulation::new(network, seed, &Options::default()).unwrap();
    let mut last = 0.0;
    for slice in slices {
        let done = simulation.run_for(slice);
        assert!(simulation.progress() >= last && simulation.progress() <= 1.0);
        last = simulation.progress();
        if done {
            break;
        }
    }
    assert_eq!(last, 1.0);
    simulation.finish()
}

#[test]
fn slices_do_not_change_results() {
    for (name, network) in small() {
        let at_once = digest(&run(&network, 7));
        assert_eq!(digest(&run(&network, 7)), at_once, "{name}");
        assert_eq!(digest(&in_slices(&network, 7, std::iter::repeat(1))), at_once, "{name}");
        let odd = [1, 2, 1000, 3, 7, 31].into_iter().cycle();
        assert_eq!(digest(&in_slices(&network, 7, odd)), at_once, "{name}");
    }
}

#[test]
fn other_threads_do_not_change_results() {
    let networks = small();
    let alone: Vec<_> = networks.values().map(|network| digest(&run(network, 3))).collect();
    let beside: Vec<_> = std::thread::scope(|scope| {
        let running: Vec<_> =
            networks.values().map(|network| scope.spawn(|| digest(&run(network, 3)))).collect();
        running.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(alone, beside);
}

/// Taps and the recording of events do not change results.
#[test]
fn taps_and_recording_do_not_change_results() {
    for (name, network) in small() {
        let unseen = digest(&run(&network, 5));
        let options = Options { record_events: true, ..Options::default() };
        let mut simulation = Simulation::new(&network, 5, &options).unwrap();
        let mut last = 0;
        simulation.tap(0, move |seen| {
            assert!(seen.at >= last);
            last = seen.at;
        });
        simulation.run();
        assert_eq!(digest(&simulation.finish()), unseen, "{name}");
    }
}

#[test]
fn another_seed_changes_the_results() {
    let networks = small();
    for name in ["random-loss", "wireless", "gaimd", "simd", "dumbbell"] {
        let network = &networks[name];
        assert_ne!(digest(&run(network, 1)), digest(&run(network, 2)), "{name}");
    }
}

/// The seed has no effect on a network without randomness.
#[test]
fn the_seed_has_no_effect_without_randomness() {
    let traffic =
        ["reno", "cubic", "aira"].map(|law| cwnd_sim::network::Traffic::Tcp(common::tcp(law)));
    let queue = common::packets(20);
    let network = common::pair(5e6, common::ms(10), queue, traffic.into(), common::ms(5000));
    assert_eq!(digest(&run(&network, 1)), digest(&run(&network, 2)));
}

/// Lookahead resumes after an event that interrupts it, such as an expired timer or the end of the
/// warm-up.
#[test]
fn lookahead_resumes_after_an_event() {
    let network = |flows: &str| {
        let text = format!(
            r#"{{"name": "dumbbell", "duration": "20s", "warmup": "5s",
            "dumbbell": {{"rate": "20mbit", "delay": "20ms"}},
            "access": {{"rate": "100mbit", "delay": "1ms..2ms"}}, {flows}}}"#
        );
        Scenario::from_json(&text).unwrap().network(1).unwrap()
    };
    // One event per packet at the first queue and one per acknowledgement of two packets at the
    // other.
    let tcp = run(&network(r#""flow": [{"controller": "reno", "count": 4}]"#), 1);
    assert!((tcp.events as f64) < 1.7 * tcp.packets as f64, "{} of {}", tcp.events, tcp.packets);
    let source = run(&network(r#""cbr": [{"rate": "5mbit", "count": 3}]"#), 1);
    assert!(
        (source.events as f64) < 1.1 * source.packets as f64,
        "{} of {}",
        source.events,
        source.packets
    );
}
