//! C4: its states, and the tests of draft-huitema-ccwg-c4-test that a scenario can express, with
//! the deadlines of `sim_specs` in `private-octopus/c4` at commit e3377b6.
//!
//! The tests of the code run over QUIC. Its loss detection by time and its probes (RFC 9002) are
//! here RACK and tail loss probes; its round-trip times exclude the delay of acknowledgements, and
//! here each packet is acknowledged. CUBIC leaves slow start at a delay, as in the authors' stack.
//! The criterion of the draft is the slowest of 100 runs. Here it is the slowest of 20 runs whose
//! access delays differ by up to 0.5 ms, except for the tests of `MISSED`, where it is the median.
//!
//! Not expressible: the satellite link (careful resume), fading Wi-Fi (the mean of the jitter
//! varies), media (streams of several priorities in a connection).

use crate::common;
use cwnd_sim::record::Records;
use std::fmt::Write;

/// A test of the code: its queue holds 80 ms, or as many milliseconds as `buffer` says, at the
/// first rate. In the code the number of packets changes with the rate.
struct Test {
    name: &'static str,
    /// Rate in Mb/s, one-way delay and buffer in ms.
    rate: f64,
    delay: u32,
    buffer: f64,
    /// Further keys of the link.
    keys: &'static str,
    /// Size of the transfer in bytes, and its start.
    bytes: u32,
    start: &'static str,
    /// Controller, size and start of the transfer in the background.
    background: Option<(&'static str, u32, &'static str)>,
    /// Deadline in seconds after the start of the run.
    deadline: f64,
}

const ALONE: Test = Test {
    name: "c4_alone",
    rate: 20.0,
    delay: 40,
    buffer: 80.0,
    keys: "",
    bytes: 10_000_000,
    start: "0s",
    background: None,
    deadline: 5.0,
};

const CUBIC: &str = "cubic(start=hystart-linux)";

/// Suspensions of 200 ms in every 2 s.
const SUSPENSIONS: &str = r#"changes = [
    { at = 1.8, rate = 0 }, { at = 2, rate = "20mbit" }, { at = 3.8, rate = 0 }, { at = 4, rate = "20mbit" },
    { at = 5.8, rate = 0 }, { at = 6, rate = "20mbit" }, { at = 7.8, rate = 0 }, { at = 8, rate = "20mbit" },
]"#;

const BAD_WIFI: &str = r#"model = { kind = "wifi", jitter = "7ms" }"#;

/// The tests of a flow alone.
const NETWORK_EVENTS: [Test; 7] = [
    ALONE,
    Test {
        name: "c4_alone_200",
        rate: 200.0,
        delay: 20,
        bytes: 20_000_000,
        deadline: 1.3,
        ..ALONE
    },
    Test {
        name: "c4_low_and_up",
        rate: 5.0,
        delay: 50,
        keys: r#"changes = [{ at = 2.5, rate = "10mbit" }]"#,
        bytes: 7_000_000,
        deadline: 7.9,
        ..ALONE
    },
    Test {
        name: "c4_drop_and_back",
        rate: 10.0,
        delay: 50,
        keys: r#"changes = [{ at = 1.5, rate = "5mbit" }, { at = 3.5, rate = "10mbit" }]"#,
        bytes: 7_000_000,
        deadline: 8.15,
        ..ALONE
    },
    Test {
        name: "c4_blackhole",
        rate: 25.0,
        delay: 35,
        keys: r#"changes = [{ at = 2, rate = 0 }, { at = 4, rate = "25mbit" }]"#,
        deadline: 6.1,
        ..ALONE
    },
    Test {
        name: "c4_short_long",
        rate: 10.0,
        delay: 15,
        buffer: 100.0,
        keys: r#"changes = [{ at = 1, delay = "100ms" }]"#,
        bytes: 20_000_000,
        deadline: 22.0,
        ..ALONE
    },
    Test {
        name: "c4_wifi_suspension",
        delay: 5,
        buffer: 20.0,
        keys: SUSPENSIONS,
        deadline: 5.4,
        ..ALONE
    },
];

/// The tests beside another flow of C4.
const BESIDE_C4: [Test; 5] = [
    Test {
        name: "c4_vs_c4",
        bytes: 5_000_000,
        background: Some(("c4", 10_000_000, "0s")),
        deadline: 6.7,
        ..ALONE
    },
    Test {
        name: "c4_after_c4",
        bytes: 5_000_000,
        start: "500ms",
        background: Some(("c4", 10_000_000, "0s")),
        deadline: 8.15,
        ..ALONE
    },
    Test {
        name: "c4_before_c4",
        rate: 50.0,
        delay: 15,
        background: Some(("c4", 20_000_000, "500ms")),
        deadline: 4.1,
        ..ALONE
    },
    Test {
        name: "c4_vs_c4_lg",
        bytes: 30_000_000,
        background: Some(("c4", 20_000_000, "0s")),
        deadline: 22.8,
        ..ALONE
    },
    Test {
        name: "c4_vs_c4_lg2",
        rate: 10.0,
        delay: 35,
        bytes: 15_000_000,
        background: Some(("c4", 10_000_000, "1s")),
        deadline: 22.1,
        ..ALONE
    },
];

/// The tests beside a flow of CUBIC.
const BESIDE_CUBIC: [Test; 3] = [
    Test {
        name: "c4_vs_cubic",
        bytes: 5_000_000,
        background: Some((CUBIC, 10_000_000, "0s")),
        deadline: 6.8,
        ..ALONE
    },
    Test {
        name: "c4_vs_cubic_lg",
        bytes: 30_000_000,
        background: Some((CUBIC, 20_000_000, "0s")),
        deadline: 21.9,
        ..ALONE
    },
    Test {
        name: "c4_vs_cubic_lg2",
        rate: 10.0,
        delay: 35,
        bytes: 15_000_000,
        background: Some((CUBIC, 10_000_000, "1s")),
        deadline: 22.0,
        ..ALONE
    },
];

const WIFI: Test = Test {
    name: "c4_wifi_bad",
    rate: 10.0,
    delay: 1,
    buffer: 250.0,
    keys: BAD_WIFI,
    bytes: 4_000_000,
    deadline: 4.3,
    ..ALONE
};

/// The tests over bad Wi-Fi, which are random.
const BAD_WIFI_TESTS: [Test; 3] = [
    WIFI,
    Test {
        name: "c4_wifi_bad_c4",
        start: "1s",
        background: Some(("c4", 10_000_000, "0s")),
        deadline: 13.5,
        ..WIFI
    },
    Test {
        name: "c4_wifi_bad_cubic",
        start: "1s",
        background: Some((CUBIC, 10_000_000, "0s")),
        deadline: 12.1,
        ..WIFI
    },
];

fn simulate(test: &Test, seed: u64) -> Records {
    let Test { rate, delay, buffer, keys, bytes, start, background, .. } = test;
    let queue = (rate * buffer * 1000.0 / 8.0 / 1500.0) as u32;
    let mut text = format!(
        "duration = \"60s\"\nsample = \"5ms\"\n\
         tcp = {{ conventions = \"rfc5681\", delayed_acks = false, rack = true, tlp = true, overhead = \"0s\" }}\n\
         [dumbbell]\nrate = \"{rate}mbit\"\ndelay = \"{delay}ms\"\nqueue = \"{queue}p\"\n{keys}\n\
         [access]\ndelay = \"0ms..0.5ms\"\n\
         [[flow]]\nname = \"main\"\ncontroller = \"c4\"\nbytes = {bytes}\nstart = \"{start}\"\n"
    );
    if let Some((controller, bytes, start)) = background {
        writeln!(
            text,
            "[[flow]]\ncontroller = \"{controller}\"\nbytes = {bytes}\nstart = \"{start}\""
        )
        .unwrap();
    }
    common::simulate(&text, seed)
}

/// The tests whose slowest run misses the deadline. After a timeout of this TCP the window is one
/// packet, which QUIC's probe timeout does not bring: the slowest run of c4_wifi_bad_c4 takes 14.1
/// instead of at most 13.5 s.
const MISSED: [&str; 3] = ["c4_wifi_bad", "c4_wifi_bad_c4", "c4_wifi_bad_cubic"];

fn meets_deadlines(tests: &[Test]) {
    let mut failures = Vec::new();
    for test in tests {
        let mut completed: Vec<f64> =
            (1..=20).map(|seed| simulate(test, seed).flows[0].completed).collect();
        completed.sort_by(f64::total_cmp);
        let (median, slowest) = (completed[10], completed[19]);
        println!("{} {}: {median:.3} {slowest:.3}", test.name, test.deadline);
        let misses = slowest > test.deadline;
        if median > test.deadline || misses != MISSED.contains(&test.name) {
            failures.push((test.name, test.deadline, median, slowest));
        }
    }
    assert!(failures.is_empty(), "{failures:?}");
}

#[test]
fn reaction_to_network_events() {
    meets_deadlines(&NETWORK_EVENTS);
}

#[test]
fn competition_with_itself() {
    meets_deadlines(&BESIDE_C4);
}

#[test]
fn competition_with_cubic() {
    meets_deadlines(&BESIDE_CUBIC);
}

#[test]
fn bad_wifi() {
    meets_deadlines(&BAD_WIFI_TESTS);
}

/// The states follow each other as in the draft's diagram.
#[test]
fn states_follow_the_diagram() {
    let allowed = [(0, 1), (1, 0), (1, 2), (2, 1), (2, 3), (3, 1)];
    let mut seen = [false; 4];
    for test in NETWORK_EVENTS.iter().chain(&BESIDE_C4).chain(&BESIDE_CUBIC) {
        let records = simulate(test, 1);
        let states = common::gauge(&records.flows[0], "state");
        let states: Vec<usize> = states.iter().map(|state| *state as usize).collect();
        for pair in states.windows(2).filter(|pair| pair[0] != pair[1]) {
            let step = (pair[0], pair[1]);
            assert!(allowed.contains(&step), "{}: {step:?}", test.name);
            seen[pair[1]] = true;
        }
    }
    assert_eq!(seen, [true; 4]);
}

/// After Initial the round-trip time of a flow alone stays near that of the path, except during
/// pushes (the draft's first test).
#[test]
fn the_queue_is_short_after_initial() {
    let records = simulate(&ALONE, 1);
    let flow = &records.flows[0];
    let late =
        records.time.iter().zip(&flow.series.rtt).filter(|(time, _)| (2.0..4.5).contains(*time));
    let mut rtts: Vec<f64> = late.map(|(_, rtt)| *rtt).collect();
    rtts.sort_by(f64::total_cmp);
    let median = rtts[rtts.len() / 2];
    assert!(median < 1.05 * 0.08, "{median} s");
}
