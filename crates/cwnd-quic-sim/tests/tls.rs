//! Connections with TLS beside those without encryption.

use crate::common::STACKS;
use cwnd_sim::record::Records;
use cwnd_sim::scenario::Scenario;
use cwnd_sim::{Options, Simulation, SimulationError};

/// Runs a transfer with losses, marks and reordering.
fn run(stack: &str, controller: &str, tls: bool, seed: u64) -> Result<Records, SimulationError> {
    let text = format!(
        r#"
        duration = "4s"
        [dumbbell]
        rate = "5mbit"
        delay = "10ms"
        queue = {{ kind = "codel", ecn = true }}
        loss = 0.01
        loss_of_acks = true
        reorder = {{ probability = 0.01, delay = "3ms" }}
        [[flow]]
        protocol = "quic"
        stack = "{stack}"
        controller = "{controller}"
        bytes = 500000
        quic = {{ streams = 2, tls = {tls} }}
        [[flow]]
        controller = "reno"
        "#
    );
    let network = Scenario::from_toml(&text, "tls.toml").unwrap().network(seed).unwrap();
    let quic = Some(&cwnd_quic_sim::connect as _);
    let options = Options { quic, record_packets: true, record_events: true, ..Options::default() };
    let mut simulation = Simulation::new(&network, seed, &options)?;
    simulation.run();
    Ok(simulation.finish())
}

/// The sizes of the packets without encryption are those of TLS: all records are equal, those of
/// each packet with its frames too. The keys and signatures of the two runs with TLS differ.
#[cfg(feature = "tls")]
#[test]
fn records_with_tls_are_those_without() {
    for stack in STACKS {
        for controller in ["own:cubic", "cubic"] {
            for seed in 1..4 {
                let [plain, tls, again] = [false, true, true]
                    .map(|tls| format!("{:?}", run(stack, controller, tls, seed).unwrap()));
                assert!(plain.contains("bytes_delivered: 500000"), "{stack} {controller}");
                assert!(plain == tls && tls == again, "{stack} {controller} {seed}");
            }
        }
    }
}

#[cfg(not(feature = "tls"))]
#[test]
fn a_build_without_tls_says_so() {
    for stack in STACKS {
        let message = run(stack, "cubic", true, 1).unwrap_err().to_string();
        let absent = "quic.tls: this build has no TLS (the feature `tls` of cwnd-quic-sim)";
        assert!(message.ends_with(absent), "{message}");
    }
}
