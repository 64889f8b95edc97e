//! Scenarios for the tests of an application: their outcomes, bounds and errors.

use cwnd_quic_sim::{Error, Outcome, Run, noq, quinn};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// A link of 10 Mb/s with a round-trip time of 20 ms and losses, with these keys.
fn scenario(stack: &str, flow: &str, rest: &str) -> String {
    format!(
        r#"
        duration = "4s"
        [dumbbell]
        rate = "10mbit"
        delay = "10ms"
        queue = "40p"
        loss = 0.01
        [[flow]]
        protocol = "quic"
        stack = "{stack}"
        {flow}
        {rest}
        "#
    )
}

const OWN: &str = "controller = \"own:reno\"";

/// Calls a macro with the names of each stack.
macro_rules! for_each_stack {
    ($test:ident) => {
        $test!(noq, noq_proto, "noq");
        $test!(quinn, quinn_proto, "quinn");
    };
}

#[test]
fn a_transfer_ends_or_not() {
    macro_rules! check {
        ($stack:ident, $proto:ident, $name:literal) => {
            let file = scenario($name, OWN, "");
            let of = |bytes: u64| {
                let scenario = $stack::Scenario::from_toml(&file).unwrap();
                let scenario = scenario.client(|stream| {
                    stream.write_all(bytes);
                    stream.write_all(bytes);
                });
                let runs = scenario.run().unwrap();
                runs.iter().map(|run| (run.seed, run.outcome.clone(), run.at)).collect::<Vec<_>>()
            };
            let done = of(400_000);
            // 0.65 s of data, and the handshake.
            assert!(matches!(done[..], [(1, Outcome::Done, at)] if at > 0.67 && at < 2.0), "{done:?}");
            assert_eq!(of(10_000_000), [(1, Outcome::Deadline, 4.0)]);
        };
    }
    for_each_stack!(check);
}

#[test]
fn a_closed_connection_is_an_outcome() {
    macro_rules! check {
        ($stack:ident, $proto:ident, $name:literal) => {
            let keys = format!("{OWN}\nbytes = \"9mb\"\nquic = {{ idle_timeout = \"1s\" }}");
            let file = scenario($name, &keys, "[expect]\ncompleted = \">= 1\"")
                .replace("loss = 0.01", "blackout = [{ at = \"1s\", for = \"3s\" }]");
            let runs = $stack::Scenario::from_toml(&file).unwrap().seeds(5..7).run().unwrap();
            for run in runs.iter() {
                assert!(run.at > 1.9 && run.at < 3.0, "{run:?}");
                let Outcome::Closed(reason) = &run.outcome else { panic!("{run:?}") };
                assert!(reason.ends_with("timed out"), "{reason}");
            }
            let message = runs.expect().unwrap_err().to_string();
            let begin = "completed >= 1 fails with 2 of 2 seeds: 0 with seed 5 (closed, ";
            assert!(message.starts_with(begin), "{message}");
        };
    }
    for_each_stack!(check);
}

/// The same configuration from the file and from the application gives the same runs, although the
/// controllers reach the stack in different ways.
#[test]
fn the_configuration_of_the_application_is_used() {
    macro_rules! check {
        ($stack:ident, $proto:ident, $name:literal) => {
            let bounds = "[expect]\nfct = \"> 0\"\nretransmission_rate = \"<= 1\"\nrtt = \"> 0\"";
            let runs = |controller: &str, window: Option<u32>| {
                let keys = format!(
                    "controller = \"{controller}\"\nbytes = 500000\nquic = {{ mtu = 1300, \
                     mtu_discovery = false, receive_window = 200000, idle_timeout = \"3s\" }}"
                );
                let file = scenario($name, &keys, bounds);
                let scenario = $stack::Scenario::from_toml(&file).unwrap().seeds(1..4);
                let Some(window) = window else { return scenario.run().unwrap() };
                let config = move |_: $proto::Side| {
                    let mut config = $proto::TransportConfig::default();
                    config
                        .initial_mtu(1300)
                        .mtu_discovery_config(None)
                        .stream_receive_window(window.into())
                        .send_window(1_600_000)
                        .max_idle_timeout(Some($proto::VarInt::from_u32(3000).into()))
                        .congestion_controller_factory(cwnd_quic::$stack::factory("aimd").unwrap());
                    config
                };
                scenario.transport(config).run().unwrap()
            };
            let same = |a: &cwnd_quic_sim::Runs, b: &cwnd_quic_sim::Runs| a.iter().eq(b.iter());
            let ours = runs("own:cubic", Some(200_000));
            assert!(same(&ours, &runs("aimd", None)), "{ours:?}");
            assert!(!same(&ours, &runs("own:cubic", None)));
            assert!(!same(&ours, &runs("own:cubic", Some(20_000))));
            assert!(ours.iter().all(|run| run.outcome == Outcome::Done), "{ours:?}");
            ours.expect().unwrap();
        };
    }
    for_each_stack!(check);
}

#[test]
fn runs_do_not_depend_on_the_other_seeds() {
    let file = scenario("noq", OWN, "[expect]\ngoodput = \"< 0\"");
    let runs = |seeds| -> cwnd_quic_sim::Runs<'static> {
        noq::Scenario::from_toml(&file).unwrap().seeds(seeds).run().unwrap()
    };
    let all = runs(3..8);
    assert_eq!(all.iter().map(|run| run.seed).collect::<Vec<_>>(), [3, 4, 5, 6, 7]);
    for run in all.iter() {
        assert_eq!(runs(run.seed..run.seed + 1).iter().next(), Some(run));
    }
    let bounds = |run: &Run| runs(run.seed..run.seed + 1).expect().unwrap_err().to_string();
    let values: BTreeSet<_> = all.iter().map(bounds).collect();
    assert_eq!(values.len(), 5);
}

#[test]
fn the_message_names_each_bound_that_fails() {
    let bounds = "[expect]\ngoodput = [\"> 1mbit\", \"> 20mbit\"]\nfct = \"> 0\"";
    let file = scenario("noq", OWN, bounds);
    let runs = noq::Scenario::from_toml(&file).unwrap().seeds(0..3).run().unwrap();
    let message = runs.expect().unwrap_err().to_string();
    let [fct, goodput] = message.split("; ").collect::<Vec<_>>()[..] else { panic!("{message}") };
    assert!(goodput.starts_with("goodput > 20mbit fails with 3 of 3 seeds: "), "{goodput}");
    assert!(goodput.contains(" with seed 0 (deadline at 4 s), qlog: "), "{goodput}");
    // A flow without an end has no completion time.
    assert!(fct.starts_with("fct > 0 fails with 3 of 3 seeds: unknown with seed 0 "), "{fct}");
}

#[test]
fn errors_are_one_line() {
    let noq = |text: &str| noq::Scenario::from_toml(text);
    let of_quinn = scenario("quinn", OWN, "");
    let own = scenario("noq", OWN, "");
    let wrong = scenario("noq", OWN, "[expect]\njain = \"> 2mbit\"");
    let errors: [(Error, &str); 6] = [
        (noq("\nlink = 1").unwrap_err(), "scenario:2: link: "),
        (
            noq(&of_quinn).unwrap_err(),
            "the scenario has no flow with protocol = \"quic\" and stack",
        ),
        (noq(&own).unwrap().seeds(4..4).run().unwrap_err(), "no seeds: the range 4..4 is empty"),
        (noq(&wrong).unwrap().run().unwrap_err(), "expect.jain: '2mbit' is not a fraction"),
        (noq(&own).unwrap().run().unwrap().expect().unwrap_err(), "the scenario has no bounds"),
        (noq(&own).unwrap().client(|_| {}).run().unwrap_err(), "seed 1: "),
    ];
    for (error, begin) in errors {
        let message = error.to_string();
        assert!(message.starts_with(begin) && !message.contains('\n'), "{message}");
        assert_eq!(format!("{error:?}"), message);
    }
    let missing = quinn::Scenario::from_toml(&own).unwrap_err().to_string();
    assert!(missing.ends_with("stack = \"quinn\""), "{missing}");
}

#[test]
#[should_panic(expected = "a panic with seed 6")]
fn a_panic_names_its_seed() {
    let scenario = noq::Scenario::from_toml(&scenario("noq", OWN, "")).unwrap();
    let _ = scenario.transport(|_| panic!("a fault")).seeds(6..7).run();
}

/// The example's scenario passes with CUBIC, and fails with a window that hardly grows again.
#[test]
fn early_loss_finds_a_window_that_stays_small() {
    macro_rules! check {
        ($stack:ident, $proto:ident, $name:literal) => {
            let file = include_str!("../examples/early-loss/early-loss.toml")
                .replace("\"noq\"", &format!("\"{}\"", $name));
            let expect = |controller: &str| {
                let config = |_: $proto::Side| {
                    let mut config = $proto::TransportConfig::default();
                    let factory = cwnd_quic::$stack::factory(controller).unwrap();
                    config.congestion_controller_factory(factory);
                    config
                };
                let scenario = $stack::Scenario::from_toml(&file).unwrap().transport(config);
                let scenario = scenario.client(|stream| stream.write_all(10_000_000));
                scenario.seeds(0..5).run().unwrap().expect()
            };
            expect("cubic").unwrap();
            let message = expect("aimd(alpha=1/100)").unwrap_err().to_string();
            let all =
                "completed >= 1 fails with 5 of 5 seeds: 0 with seed 0 (deadline at 10 s), qlog: ";
            assert!(message.starts_with(all), "{message}");
        };
    }
    for_each_stack!(check);
}

/// The message of a bound names the qlog of its first seed, and the worst run is the one that is
/// farthest from the bounds.
#[test]
fn the_worst_run_has_a_qlog() {
    let file =
        scenario("quinn", "controller = \"cubic\"\nbytes = 3000000", "[expect]\nfct = \"<= 2.5s\"");
    let run = |file: &str| quinn::Scenario::from_toml(file).unwrap().seeds(0..6).run().unwrap();
    let runs = run(&file);
    let worst = runs.worst();
    let latest = runs.iter().max_by(|a, b| a.at.total_cmp(&b.at)).unwrap();
    assert!(*worst == *latest && worst.outcome == Outcome::Done, "{runs:?}");
    assert_eq!(format!("{worst:?}"), format!("{latest:?}"));
    let early = run(&file.replace("<= 2.5s", ">= 2.5s"));
    let earliest = early.iter().min_by(|a, b| a.at.total_cmp(&b.at)).unwrap();
    assert_eq!(*early.worst(), *earliest);

    let message = runs.expect().unwrap_err().to_string();
    let path = message.split_once("qlog: ").unwrap().1;
    assert!(path.ends_with("/cwnd/test-loop--the-worst-run-has-a-qlog-seed-0.sqlog"), "{path}");
    let of_message = std::fs::read(path).unwrap();
    let other = std::path::Path::new(path).with_extension("worst");
    worst.qlog(&other).unwrap();
    let of_worst = std::fs::read(&other).unwrap();
    std::fs::remove_file(&other).unwrap();
    assert!(of_message.starts_with(b"\x1e{\"qlog_version\":") && of_message != of_worst);
    let lines = String::from_utf8(of_worst).unwrap();
    let count = |name: &str| lines.matches(name).count();
    assert!(count("transport:packet_sent") > 2000 && count("recovery:metrics_updated") > 100);
    let folder = path.rsplit_once('/').unwrap().0;
    let error = worst.qlog(folder).unwrap_err().to_string();
    assert!(error.starts_with(folder) && error.contains("directory"), "{error}");
}

/// Requests one after the other with pauses, each in a stream of its own, and a server's answers.
macro_rules! requests {
    ($stack:ident, $proto:ident) => {{
        use $proto::{Connection, Dir, Event, Side, StreamEvent, StreamId, VarInt};
        struct Client {
            answered: u32,
            next: Option<Instant>,
        }
        struct Server;
        /// Reads what has arrived. Returns whether it ends the stream.
        fn read(connection: &mut Connection, id: StreamId) -> bool {
            let mut stream = connection.recv_stream(id);
            let mut chunks = stream.read(true).unwrap();
            let ended = loop {
                match chunks.next(usize::MAX) {
                    Ok(Some(_)) => {}
                    last => break last.is_ok(),
                }
            };
            let _ = chunks.finalize();
            ended
        }
        fn write(connection: &mut Connection, id: StreamId, bytes: usize) {
            assert_eq!(connection.send_stream(id).write(&vec![0; bytes]).unwrap(), bytes);
            connection.send_stream(id).finish().unwrap();
        }
        impl $stack::Application for Client {
            fn handle(&mut self, now: Instant, event: Option<Event>, connection: &mut Connection) {
                match event {
                    Some(Event::Connected) | None => {
                        self.next = None;
                        let id = connection.streams().open(Dir::Bi).unwrap();
                        write(connection, id, 30_000);
                    }
                    Some(Event::Stream(StreamEvent::Readable { id })) if read(connection, id) => {
                        self.answered += 1;
                        self.next = Some(now + Duration::from_millis(500));
                        if self.answered == 4 {
                            connection.close(now, VarInt::from_u32(0), Default::default());
                        }
                    }
                    _ => {}
                }
            }

            fn timeout(&self) -> Option<Instant> {
                self.next
            }
        }
        impl $stack::Application for Server {
            fn handle(&mut self, _: Instant, event: Option<Event>, connection: &mut Connection) {
                let id = match event {
                    Some(Event::Stream(StreamEvent::Opened { dir })) => {
                        connection.streams().accept(dir)
                    }
                    Some(Event::Stream(StreamEvent::Readable { id })) => Some(id),
                    _ => None,
                };
                if let Some(id) = id.filter(|&id| read(connection, id)) {
                    write(connection, id, 100);
                }
            }
        }
        |side: Side| -> Option<Box<dyn $stack::Application>> {
            Some(match side {
                Side::Client => Box::new(Client { answered: 0, next: None }),
                Side::Server => Box::new(Server),
            })
        }
    }};
}

#[test]
fn an_application_is_a_state_machine() {
    macro_rules! check {
        ($stack:ident, $proto:ident, $name:literal) => {
            let bounds = "[expect]\ncompleted = \">= 1\"\nfct = \"< 2.6s\"";
            let file = scenario($name, OWN, bounds);
            let of = |file: &str| {
                let scenario = $stack::Scenario::from_toml(file).unwrap();
                scenario.application(requests!($stack, $proto)).seeds(1..3).run().unwrap()
            };
            let runs = of(&file);
            runs.expect().unwrap();
            for run in runs.iter() {
                // The handshake, three pauses, and four times 24 ms of data and a round trip.
                assert!(run.outcome == Outcome::Done, "{run:?}");
                assert!(run.at > 1.7 && run.at < 2.6, "{run:?}");
            }
            let runs = of(&file.replace("\"4s\"", "\"1.5s\""));
            assert!(runs.expect().is_err());
            assert!(runs.iter().all(|run| run.outcome == Outcome::Deadline), "{runs:?}");
        };
    }
    for_each_stack!(check);
}

/// BBR raises its bound on the packets in flight only where the window limits the sender, which
/// quinn does not report.
#[test]
fn bbr3_recovers_from_early_losses_in_quinn() {
    let file = include_str!("../examples/early-loss/early-loss.toml")
        .replace("\"noq\"", "\"quinn\"")
        .replace("own:cubic", "bbr3");
    let scenario = quinn::Scenario::from_toml(&file).unwrap().seeds(0..3);
    scenario.client(|stream| stream.write_all(10_000_000)).run().unwrap().expect().unwrap();
}

/// The settings and the outcome are those of the flows of one stack.
#[test]
fn flows_of_the_other_stack_keep_their_keys() {
    let other = r#"
        [[flow]]
        name = "other"
        protocol = "quic"
        stack = "quinn"
        controller = "own:cubic"
        [expect]
        goodput.other = "> 2mbit"
    "#;
    let file = scenario("noq", OWN, other);
    let scenario = noq::Scenario::from_toml(&file).unwrap();
    let runs = scenario.client(|stream| stream.write_all(100_000)).run().unwrap();
    let run = runs.iter().next().unwrap();
    assert!(run.outcome == Outcome::Done && run.at < 4.0, "{run:?}");
    runs.expect().unwrap();
    let quinn = quinn::Scenario::from_toml(&file).unwrap().run().unwrap();
    assert_eq!(quinn.iter().next().unwrap().outcome, Outcome::Deadline);
}
