//! The same scenario and seed give the same bits: again, in another thread, and without lookahead.

use crate::common::{STACKS, run_with};
use cwnd_sim::rng::Rng;

/// Returns a random scenario, with a flow of TCP.
fn scenario(stack: &str, rng: &mut Rng) -> String {
    let mut one_of = |choices: &[&str]| -> String {
        let place = rng.uniform() * choices.len() as f64;
        choices[place as usize].to_owned()
    };
    let rate = one_of(&["2mbit", "5mbit", "8mbit"]);
    let delay = one_of(&["1ms", "15ms", "60ms"]);
    let queue = one_of(&["\"10p\"", "\"60p\"", "{ kind = \"fq_codel\", ecn = true }", "\"codel\""]);
    let loss = one_of(&["0", "0.002", "0.03"]);
    let impairment = one_of(&["", "reorder = { probability = 0.02, delay = \"5ms\" }\n"]);
    let controller = one_of(&["own:cubic", "own:reno", "cubic", "reno", "bbr3", "simd", "copa"]);
    let options =
        one_of(&["mtu = 1452", "streams = 3", "ack_frequency = 5", "receive_window = 30000"]);
    let data = one_of(&[
        "",
        "bytes = 200000",
        "stop = \"1.5s\"",
        "count = 3",
        "packet_changes = [{ at = \"0.5s\", packet = 1300 }]",
        "source = { kind = \"request\", sizes = 30001, think = \"50ms\" }",
    ]);
    let options = if data.starts_with("source") { "mtu = 1300" } else { &options };
    format!(
        r#"
        duration = "2.5s"
        [dumbbell]
        rate = "{rate}"
        delay = "{delay}"
        queue = {queue}
        loss = {loss}
        loss_of_acks = true
        {impairment}
        [access]
        delay = "0ms..2ms"
        [[flow]]
        protocol = "quic"
        stack = "{stack}"
        controller = "{controller}"
        start = "0s..0.2s"
        quic = {{ {options} }}
        {data}
        [[flow]]
        controller = "reno"
        reverse = true
        "#
    )
}

fn outcome(text: &str, seed: u64, lookahead: bool) -> String {
    let mut records = run_with(text, seed, lookahead);
    records.events = 0;
    format!("{records:?}")
}

#[test]
fn runs_are_equal_in_other_threads_and_without_lookahead() {
    let mut rng = Rng::new(7, "scenarios", 0);
    for number in 0..20 {
        for stack in STACKS {
            let text = scenario(stack, &mut rng);
            let again = {
                let text = text.clone();
                std::thread::spawn(move || outcome(&text, number, true))
            };
            let reference = outcome(&text, number, false);
            assert!(again.join().unwrap() == reference, "{text}");
            assert!(reference.contains("packets_delivered"), "{text}");
        }
    }
}

#[test]
fn another_seed_gives_other_runs() {
    let text = r#"
        duration = "1s"
        dumbbell = { rate = "5mbit", delay = "10ms", queue = "20p", loss = 0.02 }
        flow = [{ protocol = "quic", controller = "own:cubic" }]
    "#;
    assert!(outcome(text, 1, true) != outcome(text, 2, true));
}
