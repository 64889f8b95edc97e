//! How long an event of the simulator takes, and an acknowledgement in each law.
//!
//! `cargo bench -p cwnd-bench` for all, `cargo bench -p cwnd-bench -- laws/cubic` for one.

#![allow(missing_docs, reason = "criterion's macros make a public function without any")]

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use cwnd::record::Record;
use cwnd::registry::{Kind, algorithms};
use cwnd::{AnyController, Controller, MakeController, Settings, Spec};
use cwnd_sim::network::Network;
use cwnd_sim::scenario::Scenario;
use cwnd_sim::{Options, Simulation};
use std::hint::black_box;

/// The dumbbell of `bench/run.py`, for three seconds of simulated time.
fn dumbbell(conventions: &str) -> Network {
    let text = format!(
        r#"
        duration = "3s"
        [dumbbell]
        rate = "100mbit"
        delay = "40ms"
        queue = {{ kind = "red", limit = "3125p", mean_packet = 1000 }}
        [access]
        rate = "1gbit"
        delay = "1ms..2ms"
        [tcp]
        conventions = "{conventions}"
        packet = 1000
        delayed_acks = false
        [[flow]]
        controller = "reno"
        count = 8
        start = "0s..1s"
        "#
    );
    let scenario = Scenario::from_toml(&text, "dumbbell.toml").expect("a scenario");
    scenario.network(1).expect("a network")
}

fn run(network: &Network) -> u64 {
    let mut simulation = Simulation::new(network, 1, &Options::default()).expect("a network");
    simulation.run();
    simulation.finish().events
}

fn events(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("dumbbell");
    group.sample_size(20);
    for conventions in ["rfc5681", "rfc", "ns2"] {
        let network = dumbbell(conventions);
        group.throughput(Throughput::Elements(run(&network)));
        group.bench_function(conventions, |bencher| bencher.iter(|| run(black_box(&network))));
    }
    group.finish();
}

/// Events of a single flow in 30 s at 10 Mb/s, including losses and recoveries.
fn recorded(law: &str) -> (Record, Settings) {
    let text = format!(
        r#"
        duration = "30s"
        [dumbbell]
        rate = "10mbit"
        delay = "20ms"
        queue = "0.5bdp"
        [tcp]
        timestamps = "1ms"
        [[flow]]
        controller = "{law}"
        "#
    );
    let scenario = Scenario::from_toml(&text, "one.toml").expect("a scenario");
    let network = scenario.network(1).expect("a network");
    let options = Options { record_events: true, ..Options::default() };
    let mut simulation = Simulation::new(&network, 1, &options).expect("a network");
    let settings = simulation.settings(0).expect("a controlled flow");
    simulation.run();
    let record = simulation.finish().flows.swap_remove(0).events.expect("a record");
    (record, settings)
}

fn replay(mut controller: AnyController, record: &Record) -> f64 {
    let mut sum = 0.0;
    for entry in &record.entries {
        controller.on(entry.at, &entry.event);
        sum += controller.output().window.get();
    }
    sum
}

/// One element is an event: for a windowed law all but a few are acknowledgements, for a paced one
/// reports and ticks.
fn laws(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("laws");
    for law in algorithms() {
        let (record, settings) = recorded(law.name);
        let spec = Spec::new(law);
        group.throughput(Throughput::Elements(record.entries.len() as u64));
        let kind = if law.kind() == Kind::Window { "windowed" } else { "paced" };
        group.bench_with_input(BenchmarkId::new(law.name, kind), &record, |bencher, record| {
            let make = || spec.controller(&settings);
            bencher.iter_batched(make, |fresh| replay(fresh, record), BatchSize::SmallInput);
        });
    }
    group.finish();
}

criterion_group!(benches, events, laws);
criterion_main!(benches);
