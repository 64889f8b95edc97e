//! What flows of QUIC do: amounts of data, times, losses, marks, errors.

use crate::common::{STACKS, run, run_one, run_over};

#[test]
fn a_transfer_completes_and_its_data_is_counted() {
    for stack in STACKS {
        for streams in [1, 3] {
            let keys = format!("bytes = 1000001\nstart = \"1s\"\nquic = {{ streams = {streams} }}");
            let flow = run_one(stack, "own:cubic", &keys);
            assert_eq!(flow.bytes_delivered, 1_000_001, "{stack}");
            // The handshake takes one round-trip time, and the data 0.8 s at least.
            assert!(flow.completed > 1.84 && flow.completed < 2.3, "{stack}: {}", flow.completed);
            let back = flow.acknowledged - flow.completed;
            assert!(back > 0.02 && back < 0.08, "{stack}: {back}");
            assert!(flow.packets_sent >= flow.packets_delivered, "{stack}");
            assert!(flow.min_rtt > 0.04 && flow.min_rtt < 0.042, "{stack}: {}", flow.min_rtt);
            assert_eq!(flow.closed, None, "{stack}");
            let limited: f64 = flow.limited.seconds().iter().sum();
            assert!((limited - (flow.acknowledged - 1.0)).abs() < 1e-6, "{stack}: {limited}");
        }
    }
}

#[test]
fn losses_are_repaired_and_counted() {
    for stack in STACKS {
        let link = "queue = \"40p\"\nloss = 0.02\nloss_of_acks = true";
        let records = run_over(stack, "own:reno", "bytes = 1000000", link);
        let flow = &records.flows[0];
        assert!(flow.completed < 10.0 && flow.bytes_delivered == 1_000_000, "{stack}: {flow:?}");
        assert!(flow.packets_lost > 5 && flow.retransmissions >= flow.packets_lost, "{stack}");
        assert!(flow.bytes_sent > flow.bytes_delivered, "{stack}");
        assert!(!flow.cuts.is_empty() && flow.cuts[0].cut.after() < flow.cuts[0].cut.before());
    }
}

/// A late packet whose number or key phase is reconstructed wrongly is dropped, as an encrypted one.
#[test]
fn late_packets_do_not_close_a_connection() {
    for stack in STACKS {
        for probability in [0.01, 0.05] {
            let link = format!(
                "queue = \"100p\"\nloss = 0.02\nloss_of_acks = true\nreorder = {{ probability = {probability}, delay = \"200ms\" }}"
            );
            let records = run_over(stack, "own:cubic", "bytes = 1000000", &link);
            let flow = &records.flows[0];
            assert_eq!(flow.closed, None, "{stack}");
            assert_eq!(flow.bytes_delivered, 1_000_000, "{stack}");
        }
    }
}

#[test]
fn a_stopped_flow_sends_no_new_data() {
    for stack in STACKS {
        let flow = run_one(stack, "own:cubic", "stop = \"3s\"");
        assert!(flow.completed > 3.0 && flow.completed < 3.2, "{stack}: {}", flow.completed);
        assert!(flow.acknowledged > flow.completed, "{stack}");
        let sent = &flow.series.sent;
        assert_eq!(sent[35], sent[99], "{stack}");
        assert!(sent[29] > 0.9 * sent[99], "{stack}");
    }
}

#[test]
fn marks_reduce_the_window_without_losses() {
    for stack in STACKS {
        let link = r#"queue = { kind = "codel", limit = "200p", ecn = true }"#;
        let records = run_over(stack, "own:cubic", "", link);
        let flow = &records.flows[0];
        assert!(records.links[0].marks > 0 && records.links[0].drops == 0, "{stack}");
        assert!(flow.packets_marked > 0 && flow.ecn_cuts > 0, "{stack}");
        assert_eq!(flow.retransmissions, 0, "{stack}");
    }
}

/// An outage longer than the idle timeout is an outcome, not an error of the run.
#[test]
fn a_connection_that_times_out_is_recorded() {
    for stack in STACKS {
        let keys = "quic = { idle_timeout = \"1s\" }";
        let link = r#"blackout = [{ at = "2s", for = "7s" }]"#;
        let records = run_over(stack, "own:cubic", keys, &format!("queue = \"40p\"\n{link}"));
        let flow = &records.flows[0];
        let closed = flow.closed.as_ref().unwrap();
        assert!(closed.reason.ends_with(": timed out"), "{stack}: {}", closed.reason);
        assert!(closed.at > 3.0 && closed.at < 9.0, "{stack}: {}", closed.at);
        assert!(flow.acknowledged.is_nan() && flow.bytes_delivered > 1_000_000, "{stack}");
    }
}

/// A receiver of both stacks closes the connection if an episode of losses leaves more than 1024
/// gaps in a stream.
#[test]
fn a_receiver_that_gives_up_is_recorded() {
    let text = r#"
        duration = "4s"
        dumbbell = { rate = "500mbit", delay = "20ms", queue = "1bdp" }
        flow = [{ protocol = "quic", controller = "own:cubic", quic = { receive_window = "20mb" } }]
    "#;
    let flow = &run(text, 1).flows[0];
    let closed = flow.closed.as_ref().unwrap();
    assert!(
        closed.reason.starts_with("receiver: ") && closed.reason.contains("gaps"),
        "{closed:?}"
    );
}

/// Nothing but its window limits each of many streams.
#[test]
fn each_stream_has_a_receive_window() {
    for stack in STACKS {
        let keys = "stop = \"3s\"\nquic = { receive_window = 2000, streams = 16 }";
        let flow = run_one(stack, "own:cubic", keys);
        // 16 windows in a round-trip time are 6.4 Mb/s.
        let rate = flow.bytes_delivered as f64 * 8.0 / 3.0;
        assert!(rate > 5e6 && rate < 6.5e6, "{stack}: {rate}");
        assert!(flow.limited.receiver > 2.0, "{stack}: {:?}", flow.limited);
    }
}

#[test]
fn the_receive_window_limits_the_sender() {
    for stack in STACKS {
        let keys = "quic = { receive_window = 20000 }";
        let flow = run_one(stack, "own:cubic", keys);
        // A window in each round-trip time, and half of one until the next update arrives.
        let rate = flow.bytes_delivered as f64 * 8.0 / 10.0;
        assert!(rate > 2e6 && rate < 4.1e6, "{stack}: {rate}");
        assert!(flow.limited.receiver > 8.0, "{stack}: {:?}", flow.limited);
    }
}

#[test]
fn fewer_acknowledgements_can_be_requested() {
    for stack in STACKS {
        let acks = |keys: &str| {
            let records = run_over(stack, "own:cubic", keys, "queue = \"40p\"");
            records.links[1].departures as f64 / records.flows[0].packets_received as f64
        };
        let (half, few) = (acks(""), acks("quic = { ack_frequency = 9 }"));
        assert!((0.45..0.56).contains(&half), "{stack}: {half}");
        assert!((0.09..0.16).contains(&few), "{stack}: {few}");
    }
}

#[test]
fn packets_grow_with_the_path_unless_discovery_is_off() {
    for stack in STACKS {
        let bytes = |keys: &str| {
            let flow = run_one(stack, "own:cubic", keys);
            flow.bytes_sent as f64 / flow.packets_sent as f64
        };
        let found = bytes("");
        let fixed = bytes("quic = { mtu = 1300, mtu_discovery = false }");
        let largest = bytes("quic = { mtu = 1452, mtu_discovery = false }");
        assert!(found > 1390.0 && found < 1430.0, "{stack}: {found}");
        assert!(fixed > 1260.0 && fixed < 1280.0, "{stack}: {fixed}");
        assert!(largest > 1410.0 && largest < 1430.0, "{stack}: {largest}");
    }
}

/// An application's data is counted in bytes, and a transfer ends with the acknowledgement of its
/// last byte.
#[test]
fn an_application_writes_to_the_stream() {
    for stack in STACKS {
        let keys = r#"source = { kind = "request", sizes = 20001, think = "100ms" }"#;
        let flow =
            run_over(stack, "own:cubic", keys, "queue = \"40p\"\nloss = 0.01").flows.remove(0);
        let (ended, last) = flow.transfers.split_at(flow.transfers.len() - 1);
        assert!(ended.len() > 45 && ended.len() < 55, "{stack}: {}", ended.len());
        let before = 20_001 * ended.len() as u64;
        assert!((before..=before + 20_001).contains(&flow.bytes_delivered), "{stack}");
        for transfer in &ended[1..] {
            let time = transfer.end - transfer.begin;
            assert!(
                transfer.bytes == 20_001 && time > 0.055 && time < 0.5,
                "{stack}: {transfer:?}"
            );
        }
        let pauses = flow.transfers.windows(2).map(|pair| pair[1].begin - pair[0].end);
        assert!(pauses.into_iter().all(|pause| (pause - 0.1).abs() < 1e-6), "{stack}: {last:?}");
        assert!(flow.limited.application > 5.0, "{stack}: {:?}", flow.limited);
    }
}

#[test]
fn every_application_writes_until_it_is_stopped() {
    let sources = [
        r#"{ kind = "limited", rate = "2mbit" }"#,
        r#"{ kind = "on_off", on = "1s", off = "0.5s" }"#,
        r#"{ kind = "video", rates = ["1mbit", "4mbit"], chunk = "1s", buffer = "5s" }"#,
        r#"{ kind = "media", min = "1mbit" }"#,
    ];
    for stack in STACKS {
        for source in sources {
            let flow = run_one(stack, "cubic", &format!("source = {source}\nstop = \"6s\""));
            assert!(flow.completed < 6.2 && flow.acknowledged < 6.3, "{stack} {source}: {flow:?}");
            let rate = flow.bytes_delivered as f64 * 8.0 / 6.0;
            assert!(rate > 0.9e6 && rate < 7e6, "{stack} {source}: {rate}");
            assert!(flow.transfers.iter().all(|each| each.bytes > 0), "{stack} {source}");
        }
    }
}

/// Probes that the path does not carry are lost. When full packets no longer pass, the stacks fall
/// back to the smallest size.
#[test]
fn the_packet_size_follows_the_path() {
    for stack in STACKS {
        let sizes = |keys: &str| {
            let flow = run_one(stack, "cubic", keys);
            assert_eq!(flow.closed, None, "{stack}");
            let [packets, bytes] = [&flow.series.sent, &flow.series.sent_bytes];
            let size =
                |from: usize, to: usize| (bytes[to] - bytes[from]) / (packets[to] - packets[from]);
            (size(10, 29), size(80, 99), flow.bytes_delivered as f64 * 8.0 / 10.0)
        };
        let (early, late, _) = sizes("packet_changes = [{ at = 0, packet = 1300 }]");
        assert!(early > 1240.0 && late > early - 1.0 && late < 1270.0, "{stack}: {early} {late}");
        let (early, late, rate) = sizes("packet_changes = [{ at = \"4s\", packet = 1300 }]");
        assert!(early > 1390.0 && (1140.0..1171.0).contains(&late), "{stack}: {early} {late}");
        assert!(rate > 7e6, "{stack}: {rate}");
    }
}

#[test]
fn the_packaged_scenario_runs() {
    let records = run(include_str!("../../../python/cwnd/scenarios/quic.toml"), 1);
    assert!(records.links[0].utilization > 0.99);
    for flow in &records.flows {
        assert!(flow.closed.is_none() && flow.bytes_delivered > 4_000_000, "{flow:?}");
    }
}

#[test]
fn quic_tcp_and_udt_share_a_link() {
    let text = r#"
        duration = "40s"
        warmup = "10s"
        dumbbell = { rate = "12mbit", delay = "20ms", queue = "1bdp" }
        flow = [{ protocol = "quic", stack = "noq", controller = "own:cubic" },
                { protocol = "quic", stack = "quinn", controller = "own:cubic" },
                { controller = "cubic" },
                { protocol = "udt", controller = "cubic" }]
    "#;
    let records = run(text, 1);
    let rates: Vec<_> =
        records.flows.iter().map(|flow| flow.bytes_delivered as f64 * 8.0 / 30.0).collect();
    assert!(records.links[0].utilization > 0.97, "{rates:?}");
    assert!(rates.iter().all(|&rate| rate > 1e6 && rate < 6e6), "{rates:?}");
}
