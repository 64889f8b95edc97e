//! Keys of links that vary.

use std::sync::Arc;

use super::super::*;
use super::compile;
use super::errors::check_errors;
use crate::network::{self, Cellular, Impairments, Jitter, Leo, Model};
use cwnd::Dur;

const FLOW: &str = "[[flow]]\ncontroller = \"reno\"\n";

/// The two links of a dumbbell with these keys.
fn dumbbell(keys: &str) -> [network::Link; 2] {
    let network = compile(&format!("duration = 9\n[dumbbell]\n{keys}\n{FLOW}"));
    network.links.try_into().unwrap()
}

fn impairments(link: &network::Link) -> Arc<Impairments> {
    link.impairments.clone().unwrap()
}

#[test]
fn a_link_without_them_has_no_impairments() {
    let links = dumbbell("rate = \"9mbit\"\ndelay = 1\nloss = 0.1\njitter = 0");
    assert!(links.iter().all(|link| link.impairments.is_none()));
}

#[test]
fn models_have_their_defaults_and_replace_rate_and_delay() {
    let [there, back] = dumbbell(
        "model = { kind = \"leo\", rate = \"50mbit..250mbit\" }\nback = { rate = 9e6, delay = 0.02 }",
    );
    assert!(matches!(
        impairments(&there).model,
        Some(Model::Leo(Leo { rate: [5e7, 25e7], outage, .. })) if outage == Dur::from_millis(50)
    ));
    assert_eq!((there.rate, there.delay.as_nanos()), (Some(150e6), 27_500_000));
    assert_eq!(there.least_delay(), Dur::from_millis(15));
    assert_eq!((back.rate, back.delay, back.impairments), (Some(9e6), Dur::from_millis(20), None));
    let [there, back] = dumbbell("delay = 0\nmodel = { kind = \"cellular\", max = \"20mbit\" }");
    assert_eq!(there.rate, Some(10e6));
    assert!(matches!(
        impairments(&back).model,
        Some(Model::Cellular(Cellular { max: 20e6, sigma: 2.4e6, .. }))
    ));
    let [there, _] = dumbbell("rate = 1e6\ndelay = 0\nmodel = { kind = \"wifi\" }");
    assert_eq!(impairments(&there).jitter, Some(Jitter::Wifi(Dur::from_millis(7))));
}

#[test]
fn the_reverse_direction_has_changes_unless_its_rate_is_given() {
    let keys = "rate = 1e7\ndelay = 0\nchanges = [{ at = 1, rate = \"5mbit\" }]\njitter = 0.01\n";
    let [there, back] = dumbbell(keys);
    assert_eq!(there.impairments, back.impairments);
    let [_, back] = dumbbell(&format!("{keys}back = {{ rate = \"1mbit\" }}"));
    let own = impairments(&back);
    assert!(own.changes.is_empty() && own.jitter.is_some() && back.rate == Some(1e6));
    let [_, back] = dumbbell(&format!("{keys}back = {{ jitter = 0, delay = 0.01 }}"));
    assert!(impairments(&back).jitter.is_none() && impairments(&back).changes.len() == 1);
}

#[test]
fn loss_in_bursts_has_the_parameters_of_the_literature() {
    let keys = "rate = 1e7\ndelay = 0\nloss = { kind = \"gilbert_elliott\", p = \"1%\", r = 0.25, h = 0.5 }";
    let [there, _] = dumbbell(keys);
    let chain = impairments(&there).burst_loss.unwrap();
    assert_eq!([chain.p, chain.r, chain.bad, chain.good], [0.01, 0.25, 0.5, 0.0]);
    assert_eq!(there.loss, 0.0);
}

fn read(name: &str) -> Result<(String, String), String> {
    let text = match name {
        "rate" => "1\n1\n4\n",
        "up" => "8\r\n16\r\n\r\n",
        "delay" => "20\n10\n",
        "long" => "7200001\n",
        "empty" => "",
        "bad" => "1\n2.5\n",
        "falls" => "3\n1\n",
        _ => return Err(format!("dir/{name}: there is no such file")),
    };
    Ok((format!("dir/{name}"), text.into()))
}

/// A dumbbell without a rate, with these keys from line 4 on.
fn traced(keys: &str) -> Result<Scenario, ScenarioError> {
    let text = format!("duration = 9\n[dumbbell]\ndelay = 0\n{keys}\n{FLOW}");
    Scenario::from_toml_with(&text, "x", &read)
}

#[test]
fn traces_are_read_from_files() {
    let scenario = traced("trace = \"rate\"\nback = { trace = \"up\" }").unwrap();
    let network = scenario.network(1).unwrap();
    assert_eq!(network.links[0].rate, Some(3.0 * 8.0 * 1504.0 / 0.004));
    assert_eq!(network.links[1].rate, Some(2.0 * 8.0 * 1504.0 / 0.016));
    // The contents are part of the scenario.
    assert_eq!(Scenario::from_json(&scenario.to_json()).unwrap(), scenario);
    let leo = "[[link]]\nfrom = \"a\"\nto = \"b\"\ntrace = { rate = \"rate\", delay = \"delay\" }\n\
               back = { rate = \"1mbit\", delay = 0 }\n";
    let leo = format!("duration = 9\n{leo}{FLOW}from = \"a\"\nto = \"b\"\n");
    let network = Scenario::from_toml_with(&leo, "x", &read).unwrap().network(1).unwrap();
    assert_eq!(network.links[0].delay, Dur::from_millis(15));
    assert_eq!(network.links[0].least_delay(), Dur::from_millis(10));
    for (trace, expected) in [
        ("trace = \"gone\"", "dumbbell.trace: dir/gone: there is no such file"),
        ("trace = \"bad\"", "dumbbell.trace: dir/bad:2: `2.5` is not a whole number of"),
        ("trace = \"falls\"", "dumbbell.trace: dir/falls:2: times do not decrease"),
        ("trace = \"empty\"", "dumbbell.trace: dir/empty: a trace has at least one time"),
        (
            "trace = { rate = \"rate\", delay = \"long\" }",
            "dumbbell.trace: dir/long:1: a delay is at most 2h",
        ),
        ("trace = 7", "dumbbell.trace: a trace is the name of a file"),
    ] {
        let error = traced(trace).unwrap_err().to_string();
        assert!(error.starts_with(&format!("x:4: {expected}")), "{error}");
    }
    for (numbers, expected) in [
        ("{ rate = [0] }", "dumbbell.trace: a trace has at least one time"),
        ("{ rate = [3, 1] }", "dumbbell.trace: line 2: times do not decrease"),
    ] {
        let error = traced(&format!("trace = {numbers}\nback = {{ rate = \"1mbit\" }}"));
        let error = error.unwrap_err().to_string();
        assert!(error.starts_with(&format!("x:4: {expected}")), "{error}");
    }
    let text = format!("duration = 9\n[dumbbell]\ndelay = 0\ntrace = \"rate\"\n{FLOW}");
    let error = Scenario::from_toml(&text, "x").unwrap_err().to_string();
    assert_eq!(error, "x:4: dumbbell.trace: the file \"rate\" cannot be read here");
}

#[test]
fn a_trace_is_of_one_direction() {
    for (keys, expected) in [
        (
            "trace = \"rate\"",
            "x:4: dumbbell.trace: a trace is of one direction: set `dumbbell.back.trace` too, \
             which may be the same file, or `dumbbell.back.rate`",
        ),
        (
            "trace = \"rate\"\nback = { loss = 0.1 }",
            "x:4: dumbbell.trace: a trace is of one direction: set `dumbbell.back.trace` too, \
             which may be the same file, or `dumbbell.back.rate`",
        ),
    ] {
        assert_eq!(traced(keys).unwrap_err().to_string(), expected);
    }
    let one = "duration = 9\n[[link]]\nfrom = \"a\"\nto = \"b\"\n";
    let traffic = format!("{FLOW}from = \"a\"\nto = \"b\"\n");
    let error = format!("{one}back = {{ trace = \"rate\" }}\n{traffic}");
    assert_eq!(
        Scenario::from_toml_with(&error, "x", &read).unwrap_err().to_string(),
        "x:5: link[0].back.trace: a trace is of one direction: set `link[0].trace` or \
         `link[0].rate` too"
    );
    for valid in [
        "trace = \"rate\"\nback = { trace = \"rate\" }",
        "trace = \"rate\"\nback = { rate = \"1mbit\" }",
        "rate = \"1mbit\"\nback = { trace = \"rate\" }",
        "trace = \"rate\"\nback = { model = { kind = \"cellular\" } }",
    ] {
        let links = traced(valid).unwrap().network(1).unwrap().links;
        assert!(links.iter().all(|link| link.rate.is_some()), "{valid}");
    }
    // A link of one direction has one trace.
    let single = format!(
        "{one}duplex = false\ntrace = \"rate\"\n[[link]]\nfrom = \"b\"\nto = \"a\"\nduplex = false\n{traffic}"
    );
    assert_eq!(Scenario::from_toml_with(&single, "x", &read).unwrap().link.len(), 2);
}

#[test]
fn errors_name_the_key_and_what_is_allowed() {
    let after = format!("\n{FLOW}");
    let keys = [
        ("model = { kind = \"leo\" }", "model: missing `rate`"),
        ("changes = [{ at = 1 }]", "changes: a change gives a rate"),
        (
            "changes = [{ at = 2, rate = 9 }, { at = 1, rate = 9 }]",
            "changes: changes are in the order of time",
        ),
        ("changes = [{ at = 2, rate = \"0bit\" }]", "changes: the last rate is above 0"),
        (
            "changes = [{ at = 2, rate = \"infinite\" }]",
            "changes[0].rate: a rate that changes is finite",
        ),
        (
            "back = { changes = [{ at = 2, loss = 2 }] }",
            "back.changes[0].loss: a probability is from 0 to 1",
        ),
        (
            "back = { jitter = 1, model = { kind = \"wifi\" } }",
            "back.jitter: `model` sets the jitter",
        ),
        (
            "model = { kind = \"wifi\", jitter = 1 }",
            "model: the mean jitter of a wifi link is from 1ms to 91ms",
        ),
        (
            "model = { kind = \"wifi\", jitter = \"999us\" }",
            "model: the mean jitter of a wifi link is from 1ms to 91ms",
        ),
        ("model = { kind = \"5g\" }", "model.kind: unknown value \"5g\""),
        (
            "blackout = [{ at = 1, for = 2 }, { at = 2, for = 1 }]",
            "blackout: blackouts are in the order of time and do not overlap",
        ),
        (
            "policer = { rate = 1e6, burst = 0 }",
            "policer: the burst of a token bucket is from 1 byte",
        ),
        ("shaper = { rate = 1e6 }", "shaper: missing `burst`"),
        ("loss = { kind = \"gilbert_elliott\", p = 1 }", "loss: missing `r`"),
    ];
    check_errors(
        ["duration = 9\n[dumbbell]\nrate = 1e7\ndelay = 0\n", &after],
        "x:5: dumbbell.",
        &keys,
    );
    let others = [
        ("delay = 0", "2: dumbbell: missing `rate`"),
        ("rate = 1e7", "2: dumbbell: missing `delay`"),
        (
            "rate = 1e7\ndelay = 0\nmodel = { kind = \"leo\", rate = \"9mbit\" }",
            "3: dumbbell.rate: `model` sets the rate",
        ),
        (
            "model = { kind = \"leo\", rate = \"9mbit\" }\nback = { rate = 1e6 }",
            "4: dumbbell.back: missing `delay`",
        ),
    ];
    check_errors(["duration = 9\n[dumbbell]\n", &after], "x:", &others);
}
