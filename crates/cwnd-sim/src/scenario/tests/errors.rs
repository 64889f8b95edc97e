//! Error messages of invalid scenarios.

use super::super::*;

/// Checks that each text between `before` and `after` has an error of one line that begins with
/// `place` and the words beside it.
pub(super) fn check_errors(
    [before, after]: [&str; 2],
    place: &str,
    cases: &[(impl AsRef<str>, &str)],
) {
    let mut wrong = String::new();
    for (text, expected) in cases {
        let text = format!("{before}{}{after}", text.as_ref());
        let expected = format!("{place}{expected}");
        let error = Scenario::from_toml(&text, "x").expect_err(&text).to_string();
        if !error.starts_with(&expected) || error.contains('\n') || error.len() > 700 {
            wrong += &format!("{text:?}\n  has      {error}\n  and not  {expected}\n");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// Each error with the beginning of its message.
#[test]
fn errors_have_one_line_with_file_line_and_key() {
    let flow = "[[flow]]\ncontroller = \"reno\"\n";
    let net = "duration = \"10s\"\n[dumbbell]\nrate = \"15mbit\"\ndelay = \"20ms\"\n";
    let link = "duration = \"10s\"\n[[link]]\nfrom = \"a\"\nto = \"b\"\n";
    let others = [
        (String::new(), "x: empty: a scenario needs"),
        ("\0\u{1}".into(), "x:1: not TOML: "),
        ("name = simd".into(), "x:1: not TOML: string values must be quoted"),
        (format!("a = {}", "[".repeat(9000)), "x:1: not TOML: cannot recurse further"),
        (format!("{}b = 1", "a.".repeat(9000)), "x: not TOML: recursion limit"),
        (flow.into(), "x: missing `duration`"),
        (net.into(), "x: no traffic: "),
        (format!("duration = 1\n{flow}"), "x: no network: "),
        (format!("duration = 0\n{flow}"), "x:1: duration: a duration must be above zero"),
        (format!("duration = \"3h\"\n{flow}"), "x:1: duration: a time is at most 2h"),
        (
            format!("duration = 1\nwarmup = 1\n{flow}"),
            "x:2: warmup: 1s is not less than the duration of 1s",
        ),
        (format!("duration = 9\nsample = \"1us\"\n{flow}"), "x:2: sample: 9000000 samples"),
        (format!("duration = 1\nseed = -1\n{flow}"), "x:2: seed: found the integer `-1`"),
        (format!("duration = 1\nname = \"a b\"\n{flow}"), "x:2: name: \"a b\" is not a name"),
        (
            format!("{net}[chain]\nrouters = 2\nrate = 9\ndelay = 1\n{flow}"),
            "x:5: chain: a network is",
        ),
        (
            format!(
                "duration = 1\n[chain]\nrouters = 10000\nrate = 9\ndelay = 1\n{flow}count = 9999\n"
            ),
            "x:6: flow[0]: the flows so far cross 199960002 links in all; at most",
        ),
        (
            format!("{net}{flow}name = \"a\"\n{flow}name = \"a\"\n"),
            "x:10: flow[1].name: there are two flows \"a\"",
        ),
        (format!("{link}{flow}"), "x:5: flow[0].from: missing `from`"),
        (
            format!("{link}duplex = false\n{flow}from = \"a\"\nto = \"b\"\n"),
            "x:6: flow[0]: there is no path from \"b\" to \"a\"",
        ),
        (
            format!("{link}queue = \"1bdp\"\n{flow}from = \"a\"\nto = \"b\"\n"),
            "x:5: link[0].queue: a link of infinite rate has no",
        ),
        (
            format!("{net}[access]\nqueue = \"1bdp\"\n{flow}"),
            "x:6: access.queue: an access queue's limit",
        ),
        (
            format!("{net}[access]\nqueue = {{ ecn = true }}\n{flow}"),
            "x:6: access.queue: a droptail queue has no keys",
        ),
    ];
    check_errors(["", ""], "", &others);
    let after_flow = [
        (
            "[expect]\njain = 0.9\n",
            "8: expect.jain: expected a bound such as \">= 4mbit\", a list of bounds or a table",
        ),
        (
            "protocol = \"udt\"\n[tcp]\nheader = 0\n",
            "9: tcp.header: 0 is less than the 44 bytes of IP's, UDP's and UDT's headers",
        ),
        (
            "[[flow]]\ncontroller = \"simdd\"\n",
            "8: flow[1].controller: unknown controller \"simdd\", did you mean simd?",
        ),
        (
            "[[flow]]\ncontroller = \"laws/own.LAW(kept=1/2)\"\n",
            "8: flow[1].controller: laws/own.LAW: the name of a file with a law ends in .law",
        ),
        ("start = 5\nstop = 5\n", "8: flow[0].stop: stops at 5s, but starts as late as 5s"),
        ("count = 9\nstagger = \"1h\"\n", "8: flow[0].stagger: the last of 9 flows"),
        (
            "[tcp]\nconventions = \"ns2\"\necn = true\naccecn = true\n",
            "10: tcp.accecn: ns-2 has none; use the conventions rfc, rfc5681 or linux",
        ),
        (
            "[tcp]\nslow_start = 1\n",
            "8: tcp.slow_start: found the integer `1`, expected text in quotes",
        ),
        ("[tcp]\npacket = 0\n", "8: tcp.packet: 0 is not from 1 to 65535 bytes"),
    ];
    check_errors([&format!("{net}{flow}"), ""], "x:", &after_flow);
    let after_network = [
        ("rate = 1\n", "5: not TOML: duplicate key: `rate`"),
        ("[[flow]]\n", "5: flow[0]: missing `controller`"),
        (
            "[[flow]]\ncontroller = \"kernel:cubic(beta=1/2)\"\n",
            "6: flow[0].controller: \"cubic(beta=1/2)\" is not a name",
        ),
        (
            "[[flow]]\ncontroller = \"kernel:cubic\"\nprotocol = \"udt\"\n",
            "6: flow[0].controller: kernel:cubic controls TCP only: remove `protocol`",
        ),
        (
            "[[flow]]\ncontroller = \"kernel:cubic\"\ntcp.conventions = \"rfc\"\n",
            "7: flow[0].tcp.conventions: kernel:cubic has those of Linux",
        ),
        (
            "[[flow]]\ncontroler = \"reno\"\n",
            "6: flow[0].controler: unknown key \"controler\"; did you mean \"controller\"? allowed: controller, protocol, stack, ",
        ),
        ("[[cbr]]\nrate = \"infinite\"\n", "6: cbr[0].rate: a source's rate is finite"),
        ("[[cbr]]\nrate = 9\non = 1\n", "7: cbr[0].on: needs `off` beside it"),
        ("[[cbr]]\nrate = 9\npacket = 0\n", "7: cbr[0].packet: a packet has from 1"),
        (
            "[[pareto]]\nrate = 9\non = 1\noff = 1\nshape = 1\n",
            "9: pareto[0].shape: 1 is not above 1",
        ),
    ];
    check_errors([net, ""], "x:", &after_network);
    let after_link = [
        ("delay = [1]\n", "5: link[0].delay: found a list, expected a time such as"),
        (
            "duplex = false\nback = {}\n",
            "6: link[0].back: a link with duplex = false has no reverse",
        ),
        ("[[link]]\nfrom = \"b\"\nto = \"a\"\n", "6: link[1].from: there are two links \"b-a\""),
        ("[[link]]\nfrom = \"b\"\nto = \"b\"\n", "7: link[1].to: a link from \"b\" to itself"),
    ];
    check_errors([link, ""], "x:", &after_link);
    let after_duration = [
        ("[parking_lot]\n", "2: parking_lot: unknown key \"parking_lot\"; did you mean \"chain\"?"),
        (
            "[chain]\nrouters = 1\nrate = 9\ndelay = 1\n",
            "3: chain.routers: found the integer `1`, expected a whole number from 2 to 10000",
        ),
    ];
    check_errors(["duration = 1\n", ""], "x:", &after_duration);
    let of_flow = [
        ("protocol = \"sctp\"", "protocol: "),
        ("cc = 1", "cc: unknown key \"cc\"; did you mean \"controller\"?"),
        ("count = -1", "count: found the integer `-1`, expected a whole number"),
        ("count = 1000000000", "count: 1000000000 flows so far; at most 1000000"),
        (
            "count = 99999999999999999999",
            "count: found the integer `99999999999999999999`, expected",
        ),
        (
            "to = \"rihgt\"",
            "to: unknown node \"rihgt\"; did you mean \"right\"? known: left, right",
        ),
        ("to = \"left\"", "to: starts and ends at the same node \"left\""),
        ("start = \"5s..1s\"", "start: the range 5s..1s ends"),
        ("rtt = \"5ms\"", "rtt: 5ms is less than the 40ms from"),
        ("rtt = 1\naccess = { delay = 1 }", "rtt: give either"),
        ("cross = true", "cross: cross traffic needs a [chain]"),
        ("bytes = 0", "bytes: a flow sends at least"),
        ("tcp = { window = 0 }", "tcp.window: a window is"),
        ("source = { kind = \"on_off\", on = {}, off = 1 }", "source: expected a time such as"),
        (
            "arrivals = { rate = 1, sizes = { kind = \"zipf\" } }",
            "arrivals.sizes: expected sizes such as",
        ),
        (
            "arrivals = { rate = \"1\", sizes = 1 }",
            "arrivals.rate: found the string \"1\", expected a number",
        ),
        (
            "packet_changes = [{ at = \"1s\", packet = 0 }]",
            "packet_changes: 0 is not from 1 to 65535 bytes",
        ),
        (
            "packet_changes = [{ at = \"1s\", packet = 9 }, { at = \"1s\", packet = 8 }]",
            "packet_changes: the times of the changes are not ascending",
        ),
        (
            "packet_changes = [{ at = \"1s\", packet = 9 }]\nsource = { kind = \"media\" }",
            "packet_changes: only flows of QUIC, and of TCP or of a rate law without `source`, change",
        ),
        ("tcp.packet = 65530", "tcp.packet: 65530 bytes and a header of 40"),
        (
            "tcp.recovery = \"sak\"",
            "tcp.recovery: unknown value \"sak\"; did you mean \"sack\"? allowed: sack, newreno, reno",
        ),
        ("tcp.max_rto = \"1ms\"", "tcp.max_rto: max_rto 1ms is less than min_rto 1s"),
        ("tcp.ack_delay = 1", "tcp.ack_delay: 1s is more than the 500ms"),
        ("tcp.granularity = 0", "tcp.granularity: a clock's"),
    ];
    check_errors([&format!("{net}{flow}"), "\n"], "x:7: flow[0].", &of_flow);
    let of_udt = [
        ("tcp = { ecn = true }", "tcp.ecn: not an option of UDT, which has packet, header, window"),
        ("tcp = { packet = 9 }", "tcp.packet: 9 is not from 56 to 65535 bytes"),
        ("tcp = { window = 1 }", "tcp.window: UDT's window is from 2 to 1048576 packets"),
        ("bytes = 0", "bytes: a flow sends at least one byte"),
    ];
    check_errors([&format!("{net}{flow}protocol = \"udt\"\n"), "\n"], "x:8: flow[0].", &of_udt);
    let of_quic = [
        ("quic = { mtu = 1199 }", "quic.mtu: 1199 is not from 1200 to 65507 bytes"),
        ("quic = { streams = 0 }", "quic.streams: a connection has from 1 to 100"),
        ("quic = { receive_window = 0 }", "quic.receive_window: a window is from 1 byte"),
        ("quic = { ack_frequency = 1001 }", "quic.ack_frequency: at most 1000 packets"),
        ("quic = { idle_timeout = 0 }", "quic.idle_timeout: a timeout is at least 1ms"),
        ("quic = { idle = 1 }", "quic.idle: unknown key \"idle\"; allowed: mtu, mtu_discovery, "),
        (
            "stack = \"quin\"",
            "stack: unknown value \"quin\"; did you mean \"quinn\"? allowed: noq, quinn",
        ),
        ("tcp = { packet = 900 }", "tcp: QUIC has none of these options"),
        (
            "source = { kind = \"media\" }\nquic = { streams = 2 }",
            "source: it writes to one stream",
        ),
        (
            "packet_changes = [{ at = 0, packet = 1199 }]",
            "packet_changes: 1199 is not from 1200 to 65507 bytes",
        ),
        ("bytes = 0", "bytes: a flow sends at least one byte"),
    ];
    check_errors([&format!("{net}{flow}protocol = \"quic\"\n"), "\n"], "x:8: flow[0].", &of_quic);
    let without_quic = [
        ("stack = \"noq\"", "stack: only QUIC flows have a stack"),
        ("quic = { streams = 2 }", "quic: only QUIC flows have these options"),
    ];
    check_errors([&format!("{net}{flow}"), "\n"], "x:7: flow[0].", &without_quic);
    let of_own = [
        (
            "\"own:cubic\"",
            "controller: own:cubic is a controller of a QUIC stack: add `protocol = \"quic\"`",
        ),
        (
            "\"own:bbr\"\nprotocol = \"quic\"",
            "controller: the stack has no controller \"bbr\": own:cubic, own:reno, own:bbr3",
        ),
    ];
    check_errors([&format!("{net}[[flow]]\ncontroller = "), "\n"], "x:6: flow[0].", &of_own);
    let of_dumbbell = [
        ("loss = 1.5", "loss: a probability is from 0 to 1"),
        ("loss = nan", "loss: found the number `nan`, expected a"),
        ("bdp_rtt = 0", "bdp_rtt: a round-trip time cannot"),
        ("queue = \"reed\"", "queue: unknown value \"reed\"; did you mean \"red\"?"),
        ("queue = \"1b\"", "queue: 1b is less than one packet of 1500"),
        (
            "queue = { kind = \"red\", min = 50, max = 5 }",
            "queue: red's min of 50 packets is not below its max of 5",
        ),
        ("queue = { min = 5 }", "queue: a droptail queue has no keys"),
        ("queue = { kind = \"red\", max_p = 0 }", "queue.max_p: cannot be zero"),
        ("back = { queue = \"0p\" }", "back.queue: a queue holds at least"),
    ];
    check_errors([net, &format!("\n{flow}")], "x:5: dumbbell.", &of_dumbbell);
    let of_values = [
        (
            "rate = \"15mbps\"",
            "rate: `15mbps` can mean bits or bytes per second (tc reads bytes): write 15mbit for bits or 120mbit for bytes",
        ),
        ("rate = 0", "rate: a rate cannot be zero"),
        ("rate = inf", "rate: found the number `inf`, expected a finite number"),
        ("delay = \"-1ms\"", "delay: a time cannot be negative"),
    ];
    check_errors(["duration = 1\n[dumbbell]\n", "\n"], "x:3: dumbbell.", &of_values);
}

#[test]
fn errors_in_json_name_the_key() {
    let of = |json: &str| Scenario::from_json(json).unwrap_err().to_string();
    assert!(of("{").starts_with("not JSON: "));
    assert!(of("[1]").starts_with("a scenario in JSON is an object"));
    assert!(of("{}").starts_with("empty: "));
    assert!(of(r#"{"duration": 1, "seed": 18446744073709551615}"#).contains("above 2^63"));
    let flow = |flow: &str| {
        of(&format!(
            r#"{{"duration": 1, "dumbbell": {{"rate": 1e6, "delay": 0}}, "flow": [{flow}]}}"#
        ))
    };
    for (wrong, expected) in [
        (r#"{"controler": "reno"}"#, "flow[0].controler: unknown key \"controler\"; did you mean"),
        ("{}", "flow[0]: missing `controller`"),
        ("7", "flow[0]: found the integer `7`, expected a table of TCP flows"),
        (
            r#"{"controller": "reno", "count": -1}"#,
            "flow[0].count: found the integer `-1`, expected a whole number of at least 0",
        ),
        (
            r#"{"controller": "reno", "tcp": {"window": -1}}"#,
            "flow[0].tcp.window: found the integer `-1`, expected a whole number of at least 0",
        ),
        (
            r#"{"controller": "reno", "tcp": {"window": 4294967296}}"#,
            "flow[0].tcp.window: found the integer `4294967296`, expected a whole number of at most \
             4294967295",
        ),
        (
            r#"{"controller": "reno", "count": 1.5}"#,
            "flow[0].count: found the number `1.5`, expected a whole number",
        ),
        (
            r#"{"controller": "reno", "tcp": {"recovery": "sak"}}"#,
            "flow[0].tcp.recovery: unknown value \"sak\"; did you mean \"sack\"?",
        ),
        (
            r#"{"controller": "reno", "access": {"queue": {"kind": "red", "limt": 5}}}"#,
            "flow[0].access.queue.limt: unknown key \"limt\"; did you mean \"limit\"?",
        ),
        (
            r#"{"controller": "reno", "start": [1]}"#,
            "flow[0].start: found a list, expected a time such as",
        ),
    ] {
        let said = flow(wrong);
        assert!(said.starts_with(expected), "{said}");
    }
    assert_eq!(of(r#"{"seed": 1}"#), "missing `duration`");
    assert!(of(r#"{"nme": "a"}"#).starts_with("nme: unknown key \"nme\"; did you mean \"name\"?"));
    let two = r#"{"duration": 1, "dumbbell": {"rate": 1e6, "delay": 0},
        "flow": [{"controller": "reno"}, {"controller": "simdd"}]}"#;
    assert!(of(two).starts_with("flow[1].controller: unknown controller \"simdd\""), "{}", of(two));
    let deep = format!("{{\"duration\": {}1{}}}", "[".repeat(120), "]".repeat(120));
    assert!(!of(&deep).is_empty());
    assert!(
        Scenario::from_bytes(b"a\n\xff", "x")
            .unwrap_err()
            .to_string()
            .starts_with("x:2: not a text")
    );
}
