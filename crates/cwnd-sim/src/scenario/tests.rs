//! Compilation of scenarios.

use std::path::PathBuf;

use cwnd::{Dur, Time};
use proptest::prelude::*;

use super::*;
use crate::network::{self, Queue as NetQueue, QueueLimit, Tcp, TcpExtensions, Traffic};

mod ecmp;
mod errors;
mod leaf_spine;
mod links;
mod queues;
mod sizes;

const HEAD: &str =
    "duration = \"10s\"\n[dumbbell]\nrate = \"15mbit\"\ndelay = \"20ms\"\nqueue = \"20p\"\n";

fn compile(text: &str) -> Network {
    let scenario = Scenario::from_toml(text, "test.toml").unwrap_or_else(|error| panic!("{error}"));
    scenario.network(scenario.seed).unwrap_or_else(|error| panic!("{error}"))
}

fn tcp(flow: &network::Flow) -> &Tcp {
    match &*flow.traffic {
        Traffic::Tcp(tcp) => tcp,
        other => panic!("not TCP: {other:?}"),
    }
}

fn droptail(link: &network::Link) -> QueueLimit {
    match link.queue {
        NetQueue::DropTail { limit } => limit,
        other => panic!("not droptail: {other:?}"),
    }
}

/// The names of the links of a route.
fn names<'a>(network: &'a Network, route: &[usize]) -> Vec<&'a str> {
    route.iter().map(|&link| network.links[link].name.as_str()).collect()
}

fn files() -> Vec<(PathBuf, String)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../python/cwnd/scenarios");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "toml"))
        .map(|path| (path.clone(), std::fs::read_to_string(&path).unwrap()))
        .collect();
    files.sort();
    files
}

fn file(name: &str) -> Network {
    let (_, text) =
        files().into_iter().find(|(path, _)| path.file_stem().unwrap() == name).unwrap();
    compile(&text)
}

#[test]
fn every_scenario_of_the_repository_compiles_and_has_the_name_of_its_file() {
    let files = files();
    assert!(files.len() >= 14);
    for (path, text) in files {
        let stem = path.file_stem().unwrap().to_str().unwrap();
        let scenario = Scenario::from_toml(&text, stem).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(scenario.name, stem);
        assert!(!scenario.title.is_empty(), "{stem} has no title");
        assert!(text.starts_with("# "), "{stem} does not begin with a comment");
        let network = scenario.network(7).unwrap();
        for flow in &network.flows {
            connected(&network, flow);
        }
        // JSON, which Python writes, gives the same scenario.
        let again =
            Scenario::from_json(&scenario.to_json()).unwrap_or_else(|e| panic!("{stem}: {e}"));
        assert_eq!(again, scenario);
        assert_eq!(again.network(7).unwrap(), network);
    }
}

#[test]
fn every_scenario_of_the_repository_runs() {
    for (path, text) in files() {
        let mut network = compile(&text);
        // The stacks of QUIC are in another crate, which runs the scenario.
        if network.flows.iter().any(|flow| matches!(*flow.traffic, network::Traffic::Quic(_))) {
            continue;
        }
        network.duration = network.duration.min(Dur::from_millis(6_000));
        network.warmup = Dur::ZERO;
        let options = crate::Options::default();
        let mut run = crate::Simulation::new(&network, 1, &options)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        run.run();
        let records = run.finish();
        assert_eq!(records.flows.len(), network.flows.len());
    }
}

/// Checks that the links of a flow's paths join.
fn connected(network: &Network, flow: &network::Flow) {
    for way in [&flow.path, &flow.back] {
        assert!(way.windows(2).all(|hop| network.links[hop[0]].to == network.links[hop[1]].from));
    }
    let (first, last) = (flow.path[0], *flow.path.last().unwrap());
    assert_eq!(network.links[first].from, network.links[*flow.back.last().unwrap()].to);
    assert_eq!(network.links[last].to, network.links[flow.back[0]].from);
}

#[test]
fn a_dumbbell_without_access_links_has_one_link_in_each_direction() {
    let network = compile(&format!("{HEAD}[[flow]]\ncontroller = \"reno\"\n"));
    assert_eq!(network.nodes, ["left", "right"]);
    assert_eq!(network.links.len(), 2);
    assert_eq!(network.links[0].name, "left-right");
    assert_eq!(network.links[1].name, "right-left");
    assert_eq!(network.links[0].rate, Some(15e6));
    assert_eq!(network.links[0].delay, Dur::from_millis(20));
    assert_eq!(droptail(&network.links[1]), QueueLimit::Packets(20));
    let flow = &network.flows[0];
    assert_eq!((flow.name.as_str(), &flow.path[..], &flow.back[..]), ("reno", &[0][..], &[1][..]));
    assert_eq!((flow.start, flow.stop, flow.measured), (Time::ZERO, Time::NEVER, true));
    assert_eq!((network.warmup, network.sample), (Dur::ZERO, Dur::from_millis(100)));
}

#[test]
fn access_links_give_each_flow_two_hosts() {
    let network = compile(&format!(
        "{HEAD}[access]\nrate = \"100mbit\"\ndelay = \"1ms\"\n[[flow]]\ncontroller = \"reno\"\n\
         count = 2\nreverse = true\n"
    ));
    assert_eq!(network.nodes[2..4], ["reno-1.source", "reno-1.sink"]);
    let flow = &network.flows[1];
    assert_eq!(
        names(&network, &flow.path),
        ["reno-2.source-right", "right-left", "left-reno-2.sink"]
    );
    assert_eq!(network.links[flow.path[0]].rate, Some(100e6));
    assert_eq!(droptail(&network.links[flow.path[0]]), QueueLimit::Packets(u32::MAX));
    connected(&network, flow);
}

#[test]
fn a_round_trip_time_determines_the_access_delays() {
    let network = compile(&format!("{HEAD}[[flow]]\ncontroller = \"reno\"\nrtt = \"60ms\"\n"));
    let flow = &network.flows[0];
    let crossed = flow.path.iter().chain(&*flow.back);
    let rtt: u64 = crossed.map(|link| network.links[*link].delay.as_nanos()).sum();
    assert_eq!(rtt, 60_000_000);
}

#[test]
fn flows_of_a_controller_are_numbered() {
    let network = compile(&format!(
        "{HEAD}[[flow]]\ncontroller = \"simd(beta=1/16)\"\ncount = 2\n\
         [[flow]]\ncontroller = \"reno\"\n\
         [[flow]]\ncontroller = \"simd\"\n\
         [[flow]]\ncontroller = \"reno\"\nname = \"back\"\ncount = 2\n\
         [[cbr]]\nrate = \"1mbit\"\n"
    ));
    let names: Vec<&str> = network.flows.iter().map(|flow| flow.name.as_str()).collect();
    assert_eq!(names, ["simd-1", "simd-2", "reno", "simd-3", "back-1", "back-2", "cbr"]);
    assert!(network.flows[0].measured && !network.flows[6].measured);
}

#[test]
fn starts_are_staggered_and_drawn() {
    let network = compile(&format!(
        "{HEAD}[[flow]]\ncontroller = \"reno\"\ncount = 3\nstart = \"0s..1s\"\nstagger = \"50s\"\n"
    ));
    for (at, flow) in network.flows.iter().enumerate() {
        let start = flow.start.as_secs() - 50.0 * at as f64;
        assert!((0.0..1.0).contains(&start), "{start}");
    }
}

/// The random draws of a flow depend only on the seed and the number of the flow.
#[test]
fn placements_are_independent() {
    let starts = |text: &str, seed| -> Vec<Time> {
        let scenario = Scenario::from_toml(text, "test.toml").unwrap();
        scenario.network(seed).unwrap().flows.iter().map(|flow| flow.start).collect()
    };
    let flows = "[[flow]]\ncontroller = \"reno\"\ncount = 3\nstart = \"0s..5s\"\n";
    let plain = starts(&format!("{HEAD}{flows}"), 1);
    assert_eq!(plain, starts(&format!("{HEAD}[access]\ndelay = \"0s..1ms\"\n{flows}"), 1));
    assert_eq!(
        plain[..],
        starts(&format!("{HEAD}{flows}[[pareto]]\nrate = \"1mbit\"\non = 1\noff = 2\n"), 1)[..3]
    );
    assert_ne!(plain, starts(&format!("{HEAD}{flows}"), 2));
    assert_eq!(plain[0].as_nanos(), 860_454_622, "the random stream of placements is fixed");
}

#[test]
fn conventions_set_the_defaults() {
    let of = |options: &str| {
        let text = format!("{HEAD}[[flow]]\ncontroller = \"reno\"\n[tcp]\n{options}\n");
        tcp(&compile(&text).flows[0]).clone()
    };
    let rfc = of("");
    assert_eq!((rfc.packet, rfc.header, rfc.ack, rfc.initial_window), (1460, 40, 40, 10));
    assert_eq!((rfc.delayed_acks, rfc.byte_counting, rfc.syn), (true, true, true));
    assert_eq!((rfc.min_rto, rfc.initial_rto), (Dur::from_millis(1000), Dur::from_millis(1000)));
    assert_eq!((rfc.window, rfc.ecn, rfc.timestamps), (1_000_000, false, None));
    assert_eq!(of("conventions = \"rfc\""), rfc);
    let recent = TcpExtensions { rack: true, tlp: true, prr: true, ..TcpExtensions::default() };
    assert_eq!(rfc.extensions, recent);
    // The recent parts of loss recovery need SACK.
    let newreno = of("recovery = \"newreno\"");
    assert_eq!(newreno.extensions, TcpExtensions::default());
    let old = of("conventions = \"rfc5681\"");
    assert_eq!(old, Tcp { extensions: TcpExtensions::default(), ..rfc });
    let linux = of("conventions = \"linux\"");
    assert_eq!(linux.extensions, TcpExtensions { dsack: true, frto: true, ..recent });
    let ns2 = of("conventions = \"ns2\"");
    assert_eq!(ns2.extensions, TcpExtensions::default());
    assert_eq!((ns2.packet, ns2.header, ns2.ack, ns2.initial_window), (1000, 40, 40, 2));
    assert_eq!((ns2.delayed_acks, ns2.byte_counting, ns2.limited_transmit), (false, false, true));
    assert_eq!((ns2.min_rto, ns2.initial_rto), (Dur::from_millis(200), Dur::from_millis(3000)));
    assert_eq!(ns2.granularity, Dur::from_millis(10));
    let old = of("conventions = \"ns2-2001\"\ntimestamps = true\ninitial_window = 3");
    assert_eq!((old.header, old.syn, old.limited_transmit), (0, false, false));
    assert_eq!((old.min_rto, old.initial_rto), (Dur::ZERO, Dur::from_millis(6000)));
    assert_eq!((old.timestamps, old.initial_window), (Some(Dur::from_millis(1)), 3));
}

#[test]
fn a_scenario_names_the_conventions_of_its_tcp_flows() {
    let of = |tables: &str| {
        let scenario = Scenario::from_toml(&format!("{HEAD}{tables}"), "x").unwrap();
        scenario.conventions()
    };
    let flow = |rest: &str| format!("[[flow]]\ncontroller = \"reno\"\n{rest}");
    let kernel = "[[flow]]\ncontroller = \"kernel:cubic\"\n";
    let own = "tcp.conventions = \"ns2\"\n";
    assert_eq!(of(&flow("count = 2\n")), [Conventions::Rfc]);
    assert_eq!(of(&(flow("") + kernel)), [Conventions::Rfc, Conventions::Linux]);
    assert_eq!(
        of(&(kernel.to_owned() + &flow(own) + "[tcp]\nconventions = \"ns2\"\n")),
        [Conventions::Linux, Conventions::Ns2]
    );
    assert_eq!(of(&flow("protocol = \"udt\"\n")), []);
}

#[test]
fn options_of_a_flow_take_precedence() {
    let network = compile(&format!(
        "{HEAD}[tcp]\nrecovery = \"reno\"\npacket = 500\n[[flow]]\ncontroller = \"reno\"\n\
         tcp = {{ packet = 1000, timestamps = \"10ms\" }}\nbytes = \"1mb\"\n"
    ));
    let tcp = tcp(&network.flows[0]);
    assert_eq!((tcp.packet, tcp.recovery), (1000, network::Recovery::Reno));
    assert_eq!((tcp.timestamps, tcp.bytes), (Some(Dur::from_millis(10)), Some(1 << 20)));
}

/// Queues have the sizes that the papers' ns-2 scripts compute.
#[test]
fn queues_of_the_papers_have_their_sizes() {
    let simd = file("simd");
    let NetQueue::Red(red) = simd.links[0].queue else { panic!("not RED") };
    // round(2.5 x 15e6 x 0.06 / 8 / 1000)
    assert_eq!(red.limit, 281);
    assert_eq!((red.min, red.max), (0.15 * 281.0, 0.5 * 281.0));
    assert_eq!((red.max_p, red.weight, red.gentle, red.wait), (0.1, 0.002, true, true));
    assert_eq!((red.ecn, red.mark_p, red.mean_packet), (false, 1.0, 1000));
    assert_eq!(simd.flows.iter().filter(|flow| flow.measured).count(), 8);

    let chain = file("simd-convergence");
    let NetQueue::Red(red) = chain.links[0].queue else { panic!("not RED") };
    assert_eq!((red.limit, red.mean_packet), (188, 500));
    assert_eq!(droptail(&chain.links[1]), QueueLimit::Packets(188));
    assert_eq!(chain.flows.len(), 17);
    assert_eq!(chain.flows[0].path.len(), 4);

    let parking = file("parking-lot-tcp");
    assert_eq!(parking.flows.len(), 4);
    assert_eq!(parking.flows[2].name, "short-2");
    assert_eq!(parking.links[parking.flows[2].path[1]].name, "r2-r3");
}

#[test]
fn bdp_has_the_longest_rtt_of_the_flows_by_default() {
    let limit = |more: &str, flow: &str| {
        let text = format!(
            "duration = 1\n[dumbbell]\nrate = \"12mbit\"\ndelay = \"20ms\"\n\
             queue = \"2bdp\"\n{more}\n\
             [[flow]]\ncontroller = \"reno\"\n{flow}\n"
        );
        droptail(&compile(&text).links[0])
    };
    // 12 Mb/s are 1000 packets of 1500 bytes per second.
    assert_eq!(limit("", ""), QueueLimit::Packets(80));
    assert_eq!(limit("", "rtt = \"100ms\""), QueueLimit::Packets(200));
    assert_eq!(limit("bdp_rtt = \"50ms\"", "rtt = \"100ms\""), QueueLimit::Packets(100));
    assert_eq!(limit("", "tcp = { packet = 710 }"), QueueLimit::Packets(160));
}

#[test]
fn the_reverse_direction_can_differ() {
    let network = compile(
        "duration = 1\n[[link]]\nfrom = \"a\"\nto = \"b\"\nrate = \"10mbit\"\ndelay = \"5ms\"\n\
         queue = { kind = \"red\", limit = \"50p\", min = \"5p\", max = \"15p\", ecn = true }\n\
         loss = \"1%\"\nback = { rate = \"1mbit\", queue = \"64kb\", loss = 0 }\n\
         [[flow]]\ncontroller = \"reno\"\nfrom = \"a\"\nto = \"b\"\n",
    );
    let (there, back) = (&network.links[0], &network.links[1]);
    assert!(matches!(there.queue, NetQueue::Red(red) if red.ecn && red.min == 5.0));
    assert_eq!((there.loss, back.loss), (0.01, 0.0));
    assert_eq!((back.rate, back.delay), (Some(1e6), Dur::from_millis(5)));
    assert_eq!(droptail(back), QueueLimit::Bytes(65_536));
}

#[test]
fn routes_are_the_first_of_the_shortest_paths() {
    let link = |from, to| format!("[[link]]\nfrom = \"{from}\"\nto = \"{to}\"\ndelay = \"1ms\"\n");
    let text = format!(
        "duration = 1\n{}{}{}{}{}[[flow]]\ncontroller = \"reno\"\nfrom = \"a\"\nto = \"d\"\n",
        link("a", "x"),
        link("x", "d"),
        link("a", "y"),
        link("y", "d"),
        link("x", "y")
    );
    let network = compile(&text);
    assert_eq!(names(&network, &network.flows[0].path), ["a-x", "x-d"]);
    assert_eq!(names(&network, &network.flows[0].back), ["d-x", "x-a"]);
}

#[test]
fn json_builds_the_same_network() {
    let json = r#"{"duration": 10, "warmup": null,
        "dumbbell": {"rate": 15e6, "delay": 0.02, "queue": 20},
        "flow": [{"controller": "simd(beta=1/16)", "count": 2, "start": "0s..5s"}]}"#;
    let toml = format!(
        "{HEAD}[[flow]]\ncontroller = \"simd(beta=1/16)\"\ncount = 2\nstart = \"0s..5s\"\n"
    );
    let mut other = Scenario::from_json(json).unwrap();
    other.name = "test".into();
    assert_eq!(other.network(1).unwrap(), compile(&toml));
}

/// The first example of docs/scenario.md compiles, and its error message is the one shown there.
#[test]
fn the_example_of_the_documentation_compiles() {
    let page = include_str!("../../../../docs/scenario.md");
    let example = page.split("```").nth(1).and_then(|code| code.strip_prefix("toml\n")).unwrap();
    let network = compile(example);
    assert_eq!(network.flows.len(), 8);
    assert!(network.flows.iter().all(|flow| tcp(flow).ecn));
    let wrong = example.replace("\"reno\"", "\"renno\"");
    let error = Scenario::from_toml(&wrong, "four.toml").unwrap_err().to_string();
    let said = error.split("? ").next().unwrap();
    assert!(page.contains(said), "{error}");
}

#[test]
fn the_caller_may_resolve_controllers() {
    let flow = "[[flow]]\ncontroller = \"mine:Mine\"\ncount = 2\n";
    let scenario = Scenario::from_toml(&format!("{HEAD}{flow}"), "runs/try-1.toml").unwrap();
    assert_eq!(scenario.name, "try-1");
    let network = scenario.network(1).unwrap();
    assert_eq!(network.flows[0].name, "Mine-1");
    assert_eq!(tcp(&network.flows[0]).controller, "mine:Mine");
    let flow = "[[flow]]\ncontroller = \"laws/mine.py:Law(beta=1/8)\"\n";
    let scenario = Scenario::from_toml(&format!("{HEAD}{flow}"), "runs/try-1.toml").unwrap();
    let network = scenario.network(1).unwrap();
    assert_eq!(network.flows[0].name, "Law");
    assert_eq!(tcp(&network.flows[0]).controller, "laws/mine.py:Law(beta=1/8)");
}

#[test]
fn a_flow_may_name_a_controller_of_the_linux_kernel() {
    let flow = "[[flow]]\ncontroller = \"kernel:cubic\"\ncount = 2\n";
    let network = compile(&format!("{HEAD}{flow}"));
    assert_eq!(network.flows[1].name, "cubic-2");
    assert_eq!(tcp(&network.flows[1]).controller, "kernel:cubic");
    let linux = "[[flow]]\ncontroller = \"cubic\"\ntcp.conventions = \"linux\"\n";
    let linux = compile(&format!("{HEAD}{linux}"));
    let expected = Tcp { controller: "kernel:cubic".into(), ..tcp(&linux.flows[0]).clone() };
    assert_eq!(*tcp(&network.flows[1]), expected);
}

#[test]
fn a_hundred_thousand_flows_compile() {
    let network = compile(&format!(
        "{HEAD}[access]\ndelay = \"0s..1ms\"\n[[flow]]\ncontroller = \"reno\"\ncount = 100000\n"
    ));
    assert_eq!((network.flows.len(), network.nodes.len()), (100_000, 200_002));
}

#[test]
fn expectations_are_passed_through() {
    let table = r#"{"goodput":{"reno":">= 4mbit"},"jain":[">= 0.9","<= 1"]}"#;
    let bounds = "goodput.reno = '>= 4mbit'\njain = ['>= 0.9', '<= 1']\n";
    let text = format!(
        "duration = 1\nname = 'test'\n[dumbbell]\nrate = 9000\ndelay = 0\n[[flow]]\ncontroller = 'reno'\n[expect]\n{bounds}"
    );
    let scenario = Scenario::from_toml(&text, "x").unwrap();
    assert_eq!(serde_json::to_string(&scenario.expect).unwrap(), table);
    assert_eq!(Scenario::from_json(&scenario.to_json()).unwrap(), scenario);
    assert_eq!(scenario.network(1).unwrap(), compile(text.split("[expect]").next().unwrap()));
}

#[test]
fn the_schema_names_every_key() {
    let schema = schema().to_string();
    for key in [
        "dumbbell",
        "ack_aggregation",
        "gilbert_elliott",
        "cellular",
        "controller",
        "loss_of_acks",
        "initial_window",
        "mark_p",
        "15mbit",
    ] {
        assert!(schema.contains(key), "{key}");
    }
    assert!(schema.contains("\"additionalProperties\":false"));
}

proptest! {
    /// The check of names by groups agrees with the names of all flows.
    #[test]
    fn equal_names_are_found(
        tables in proptest::collection::vec((0usize..6, 0u64..4), 1..6),
    ) {
        let mut text = String::from("duration = 1\n");
        for (name, count) in &tables {
            let name = ["", "name = 'a'", "name = 'reno'", "name = 'a-2'", "name = 'reno-3'", "name = 'a-02'"][*name];
            text += &format!("[[flow]]\ncontroller = 'reno'\ncount = {count}\n{name}\n");
        }
        let scenario: Scenario = toml::from_str(&text).unwrap();
        let groups = groups::groups(&scenario).unwrap();
        let sizes: Vec<u64> = groups.iter().map(|group| group.count).collect();
        let mut names = groups::Names::new(groups.iter().zip(sizes.iter().copied()));
        let mut all = Vec::new();
        for (group, &size) in groups.iter().zip(&sizes) {
            all.extend(names.next_group(group, size));
        }
        let total = all.len();
        prop_assert_eq!(total as u64, sizes.iter().sum::<u64>());
        all.sort();
        all.dedup();
        prop_assert_eq!(groups::check_names(&groups, &sizes).is_ok(), all.len() == total, "{}", text);
    }

    #[test]
    fn no_text_panics(
        text in "\\PC{0,200}",
        bytes in proptest::collection::vec(any::<u8>(), 0..200),
    ) {
        let _ = Scenario::from_toml(&text, "x");
        let _ = Scenario::from_json(&text);
        let _ = Scenario::from_bytes(&bytes, "x");
    }

    /// A file with a replaced piece is valid, or its error has one line.
    #[test]
    fn no_damaged_file_panics(
        which in 0usize..1000,
        at in 0usize..10_000,
        length in 0usize..40,
        piece in "[a-z0-9\"=\\[\\]{}.,% -]{0,12}",
    ) {
        let files = files();
        let (_, text) = &files[which % files.len()];
        let chars: Vec<char> = text.chars().collect();
        let start = at % chars.len();
        let end = (start + length).min(chars.len());
        let before = chars[..start].iter().copied();
        let after = chars[end..].iter().copied();
        let damaged: String = before.chain(piece.chars()).chain(after).collect();
        if let Err(error) = Scenario::from_toml(&damaged, "x") {
            prop_assert!(!error.to_string().contains('\n'));
        }
    }
}
