//! Qlogs of UDT and QUIC: the rules of the RFCs have the same outcomes in a file and in the record of
//! its run.

use cwnd::conform::{Expected, Law, Outcome, conform};
use cwnd::record::{Entry, Record};
use cwnd::{Event, MakeController, Spec};
use cwnd_sim::rng::Rng;
use cwnd_sim::scenario::Scenario;
use cwnd_sim::{Options, Simulation, qlog};
use std::collections::BTreeSet;

/// A random scenario with one flow.
fn scenario(transport: &str, law: &str, rng: &mut Rng) -> String {
    let loss = if rng.chance(0.5) { rng.range(0.0, 0.03) } else { 0.0 };
    let (rate, delay) = (rng.range(2.0, 10.0), rng.range(5.0, 60.0));
    let queue = rng.range(8.0, 60.0).round();
    let start = rng.range(0.0, 1.0);
    format!(
        r#"
        duration = "6s"
        [dumbbell]
        rate = "{rate:.2}mbit"
        delay = "{delay:.1}ms"
        queue = "{queue}p"
        loss = {loss:.4}
        [[flow]]
        {transport}
        controller = "{law}"
        start = "{start:.3}s"
        "#
    )
}

/// Runs a flow. Returns its events, and its qlog.
fn log(text: &str, spec: &str, seed: u64) -> (Record, String) {
    let network = Scenario::from_toml(text, "qlog.toml").unwrap().network(seed).unwrap();
    let options = Options {
        quic: Some(&cwnd_quic_sim::connect),
        record_events: true,
        record_packets: true,
        ..Options::default()
    };
    let mut simulation = Simulation::new(&network, seed, &options).unwrap();
    let settings = simulation.settings(0).unwrap();
    simulation.run();
    let flow = simulation.finish().flows.swap_remove(0);
    let controller = Spec::parse(spec).unwrap().controller(&settings);
    let mut file = Vec::new();
    qlog::write(&mut file, &network, 0, &flow, Some(controller)).unwrap();
    (flow.events.unwrap(), String::from_utf8(file).unwrap())
}

/// Packets acknowledged and lost.
fn counts(record: &Record) -> [u64; 2] {
    let mut counts = [0; 2];
    for Entry { event, .. } in &record.entries {
        match event {
            Event::Acked(acked) => counts[0] += u64::from(acked.packets),
            Event::Lost(lost) | Event::Timeout(lost) => counts[1] += u64::from(lost.packets),
            _ => {}
        }
    }
    counts
}

#[test]
fn a_file_has_the_verdict_of_its_run() {
    let mut exercised = BTreeSet::new();
    for transport in [
        "protocol = \"udt\"",
        "protocol = \"quic\"\nstack = \"noq\"",
        "protocol = \"quic\"\nstack = \"quinn\"",
    ] {
        let mut rng = Rng::new(5, "qlog", 0);
        for seed in 1..=4 {
            for (name, law) in [("reno", Law::Reno), ("cubic", Law::Cubic)] {
                let text = scenario(transport, name, &mut rng);
                let (record, file) = log(&text, name, seed);
                let read = qlog::read(&file).unwrap().record;
                let quic = transport.contains("quic");
                let expected = if quic { Expected::quic(law) } else { Expected::tcp(law) };
                // quinn reports the bytes that are lost, not the packets.
                if !transport.contains("quinn") {
                    assert_eq!(counts(&record), counts(&read), "{text}");
                }
                let [run, of_file] = [&record, &read].map(|record| conform(record, &expected));
                for (one, other) in run.iter().zip(of_file) {
                    let (mine, its) = (&one.outcome, &other.outcome);
                    let rule = one.rule.name;
                    let same = std::mem::discriminant(mine) == std::mem::discriminant(its);
                    assert!(same, "{rule}: {mine:?}, in the file {its:?}\n{text}");
                    if matches!(mine, Outcome::Held(_)) {
                        exercised.insert((quic, rule));
                    }
                }
            }
        }
    }
    for quic in [false, true] {
        for rule in ["one-reduction", "reduction", "recovery", "slow-start", "avoidance"] {
            assert!(exercised.contains(&(quic, rule)), "{rule}: {exercised:?}");
        }
    }
}

/// Packets that the path does not carry are lost after they were sent.
#[test]
fn packets_larger_than_the_path_carries_are_sent_and_lost() {
    let mut rng = Rng::new(6, "qlog", 0);
    let transport = r#"
        protocol = "quic"
        quic = { mtu = 1400 }
        packet_changes = [{ at = "2s", packet = 1200 }]
    "#;
    let (record, file) = log(&scenario(transport, "reno", &mut rng), "reno", 1);
    let read = qlog::read(&file).unwrap().record;
    assert!(record.entries.iter().any(|entry| matches!(entry.event, Event::Mtu { .. })));
    assert_eq!(counts(&record), counts(&read));
}
