//! Runs of scenarios with QUIC flows.

use cwnd_sim::record::{FlowRecord, Records};
use cwnd_sim::scenario::Scenario;
use cwnd_sim::{Options, Simulation};

pub(crate) const STACKS: [&str; 2] = ["noq", "quinn"];

/// Runs a scenario file.
pub(crate) fn run(text: &str, seed: u64) -> Records {
    run_with(text, seed, true)
}

pub(crate) fn run_with(text: &str, seed: u64, lookahead: bool) -> Records {
    let network = Scenario::from_toml(text, "quic.toml").unwrap().network(seed).unwrap();
    let options = Options { quic: Some(&cwnd_quic_sim::connect), lookahead, ..Options::default() };
    let mut simulation = Simulation::new(network, seed, &options).unwrap();
    simulation.run();
    simulation.finish()
}

/// Runs one flow, with these keys, over a link of 10 Mb/s with a round-trip time of 40 ms.
pub(crate) fn run_one(stack: &str, controller: &str, keys: &str) -> FlowRecord {
    run_over(stack, controller, keys, "queue = \"40p\"").flows.swap_remove(0)
}

/// The same, with these keys of the link.
pub(crate) fn run_over(stack: &str, controller: &str, keys: &str, link: &str) -> Records {
    run(
        &format!(
            r#"
            duration = "10s"
            [dumbbell]
            rate = "10mbit"
            delay = "20ms"
            {link}
            [[flow]]
            protocol = "quic"
            stack = "{stack}"
            controller = "{controller}"
            {keys}
            "#
        ),
        1,
    )
}
