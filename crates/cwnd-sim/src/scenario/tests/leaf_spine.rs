//! The topology of a data centre, ranges of nodes, and the preset of its TCP.

use std::collections::{BTreeMap, BTreeSet};

use super::errors::check_errors;
use super::{compile, names, tcp};
use crate::network::{self, Network, QueueLimit};
use cwnd::Dur;

const NET: &str = "duration = 9\n[leaf_spine]\nleaves = 3\nspines = 2\nhosts = 4\n\
                   rate = \"10gbit\"\ndelay = \"2us\"\nqueue = \"100p\"\n";

fn link<'a>(network: &'a Network, name: &str) -> &'a network::Link {
    network.links.iter().find(|link| link.name == name).unwrap()
}

#[test]
fn it_has_a_link_of_each_leaf_to_each_host_and_each_spine() {
    let fabric = "fabric = { rate = \"40gbit\", delay = \"5us\", queue = \"7p\" }\n";
    let flow = "[[flow]]\ncontroller = \"reno\"\nfrom = \"h1\"\nto = \"h12\"\n";
    let network = compile(&format!("{NET}{fabric}{flow}"));
    assert_eq!((network.nodes.len(), network.links.len()), (3 + 2 + 12, 2 * (3 * 4 + 3 * 2)));
    let [up, down, middle] =
        ["h5-leaf2", "leaf2-h5", "spine1-leaf3"].map(|name| link(&network, name));
    let limit = |limit| network::Queue::DropTail { limit: QueueLimit::Packets(limit) };
    assert_eq!((up.rate, up.delay), (Some(10e9), Dur::from_micros(2)));
    assert_eq!((up.queue, down.queue), (limit(u32::MAX), limit(100)));
    assert_eq!((middle.rate, middle.delay), (Some(40e9), Dur::from_micros(5)));
    assert_eq!(middle.queue, limit(7));
    let [path, back] =
        [&network.flows[0].path, &network.flows[0].back].map(|route| names(&network, route));
    assert_eq!((path.len(), path[0], path[3]), (4, "h1-leaf1", "leaf3-h12"));
    assert_eq!((back[0], back[3]), ("h12-leaf3", "leaf1-h1"));
    // Without `fabric` all links are equal.
    let network = compile(&format!("{NET}{flow}"));
    assert_eq!(link(&network, "spine1-leaf3").queue, limit(100));
    assert!(network.links.iter().all(|link| link.rate == Some(10e9)));
}

#[test]
fn flows_are_distributed_over_the_spines_and_stay_in_their_rack() {
    let flows = |keys: &str, from: &str, to: &str| {
        let ends = format!("from = \"{from}\"\nto = \"{to}\"\n");
        let text = format!("{keys}{NET}[[flow]]\ncontroller = \"reno\"\ncount = 1000\n{ends}");
        let network = compile(&text);
        let mut spines = BTreeMap::new();
        for flow in &network.flows {
            *spines.entry(names(&network, &flow.path)[1].to_owned()).or_insert(0) += 1;
        }
        spines
    };
    let spines = flows("", "h1", "h5");
    // The binomial distribution has the deviation sqrt(1000 / 4) = 16.
    assert!(spines.len() == 2 && spines.values().all(|count| (420..=580).contains(count)));
    assert_eq!(flows("ecmp = false\n", "h1", "h5")["leaf1-spine1"], 1000);
    assert_eq!(flows("", "h1", "h2")["leaf1-h2"], 1000);
}

#[test]
fn ranges_of_nodes_are_taken_in_turn() {
    let ends = |keys: &str| -> Vec<(String, String)> {
        let network = compile(&format!("{NET}[[flow]]\ncontroller = \"reno\"\n{keys}"));
        let node = |link: usize, end: fn(&network::Link) -> usize| {
            network.nodes[end(&network.links[link])].clone()
        };
        let flows = network.flows.iter();
        flows
            .map(|flow| {
                let last = *flow.path.last().unwrap();
                (node(flow.path[0], |link| link.from), node(last, |link| link.to))
            })
            .collect()
    };
    let pair = |from: &str, to: &str| (from.to_owned(), to.to_owned());
    let incast = ends("count = 5\nfrom = \"h2..h4\"\nto = \"h1\"\n");
    assert_eq!(
        incast,
        [pair("h2", "h1"), pair("h3", "h1"), pair("h4", "h1"), pair("h2", "h1"), pair("h3", "h1")]
    );
    let shift = ends("count = 2\nfrom = \"h1..h2\"\nto = \"h5..h6\"\n");
    assert_eq!(shift, [pair("h1", "h5"), pair("h2", "h6")]);
    let reverse = ends("count = 2\nfrom = \"h1..h2\"\nto = \"h5\"\nreverse = true\n");
    assert_eq!(reverse, [pair("h5", "h1"), pair("h5", "h2")]);
    // Arrivals take them in turn too.
    let arrivals = "arrivals = { load = 0.2, sizes = \"1mb\", link = \"leaf1-h1\" }\n";
    let arrived = ends(&format!("from = \"h9..h12\"\nto = \"h1\"\n{arrivals}"));
    assert_eq!(arrived.iter().map(|(from, _)| from).collect::<BTreeSet<_>>().len(), 4);
    // Other networks have ranges too, with and without ECMP.
    for ecmp in ["", "ecmp = true\n"] {
        let chain = format!(
            "duration = 1\n{ecmp}[chain]\nrouters = 4\nrate = 1e9\ndelay = 0\n\
             [[cbr]]\nrate = 1e6\ncount = 3\nfrom = \"r1..r3\"\nto = \"r4\"\n"
        );
        let lengths: Vec<_> = compile(&chain).flows.iter().map(|flow| flow.path.len()).collect();
        assert_eq!(lengths, [3, 2, 1]);
    }
}

#[test]
fn the_preset_of_a_data_centre_has_short_timers_and_accurate_ecn() {
    let options = |tcp: &str| {
        let text = format!(
            "{NET}[tcp]\n{tcp}\n[[flow]]\ncontroller = \"dctcp\"\nfrom = \"h1\"\nto = \"h2\"\n"
        );
        tcp_of(&compile(&text))
    };
    let own = options("preset = \"datacenter\"");
    assert_eq!(own.conventions, network::Conventions::Linux);
    let times = [own.min_rto, own.ack_delay, own.initial_rto].map(Dur::as_nanos);
    assert_eq!(times, [2_000_000, 1_000_000, 10_000_000]);
    assert!(own.ecn && own.extensions.accecn && own.initial_window == 10 && !own.l4s);
    // It changes nothing else, and other keys take precedence.
    let explicit = "conventions = \"linux\"\necn = true\naccecn = true\nmin_rto = \"2ms\"\n\
                    ack_delay = \"1ms\"\ninitial_rto = \"10ms\"";
    assert_eq!(own, options(explicit));
    let changed = options("preset = \"datacenter\"\nconventions = \"rfc\"\nmin_rto = \"5ms\"");
    assert_eq!(changed.conventions, network::Conventions::Rfc);
    assert_eq!((changed.min_rto, changed.ack_delay), (Dur::from_millis(5), Dur::from_millis(1)));
    let off = options("preset = \"datacenter\"\necn = false");
    assert!(!off.ecn && !off.extensions.accecn);
}

fn tcp_of(network: &Network) -> network::Tcp {
    tcp(&network.flows[0]).clone()
}

#[test]
fn errors_name_the_key_and_what_is_allowed() {
    let flow = "[[flow]]\ncontroller = \"reno\"\n";
    let table = |keys: &str| {
        format!(
            "duration = 9\n[leaf_spine]\nrate = 1e9\ndelay = 0\n{keys}\n{flow}from = \"h1\"\nto = \"h2\"\n"
        )
    };
    check_errors(
        ["", ""],
        "x:",
        &[
            (
                table("leaves = 0\nspines = 1\nhosts = 2"),
                "5: leaf_spine.leaves: found the integer `0`, expected a whole number from 1 to 1000",
            ),
            (
                table("leaves = 1\nspines = 2000\nhosts = 2"),
                "6: leaf_spine.spines: found the integer `2000`, expected a whole number from 1 to 1000",
            ),
            (
                table("leaves = 1000\nspines = 1\nhosts = 50"),
                "7: leaf_spine.hosts: 102000 links in all; at most 100000",
            ),
            (
                table("leaves = 1\nspines = 1\nhosts = -1"),
                "7: leaf_spine.hosts: found the integer `-1`, expected a whole number from 1 to 1000",
            ),
            (
                table("leaves = 1\nspines = 1\nhosts = 1.5"),
                "7: leaf_spine.hosts: found the number `1.5`, expected a whole number from 1 to 1000",
            ),
            (table("leaves = 1\nspines = 1"), "2: leaf_spine: missing `hosts`"),
            (
                table("leaves = 1\nspines = 1\nhosts = 2\nfabric = { queue = \"red\", speed = 1 }"),
                "8: leaf_spine.fabric.speed: unknown key",
            ),
            (
                table(
                    "leaves = 1\nspines = 1\nhosts = 2\n[chain]\nrouters = 2\nrate = 1e6\ndelay = 1",
                ),
                "2: leaf_spine: a network is a [chain] or a [leaf_spine], not both",
            ),
        ],
    );
    check_errors(
        [&format!("{NET}{flow}"), "\n"],
        "x:",
        &[
            ("from = \"h1\"", "9: flow[0].to: missing `to`: this network has no default nodes"),
            ("from = \"h1\"\nto = \"h99\"", "12: flow[0].to: unknown node \"h99\""),
            ("from = \"h1..h99\"\nto = \"h1\"", "11: flow[0].from: unknown node \"h13\""),
            ("from = \"h3..h2\"\nto = \"h1\"", "11: flow[0].from: \"h3..h2\" is not a range of"),
            ("from = \"h1..\"\nto = \"h1\"", "11: flow[0].from: \"h1..\" is not a range of nodes"),
            ("from = \"h04..h06\"\nto = \"h1\"", "11: flow[0].from: \"h04..h06\" is not a range"),
            ("from = \"h4..h06\"\nto = \"h1\"", "11: flow[0].from: \"h4..h06\" is not a range of"),
            (
                "from = \"h1..h4\"\nto = \"h2\"",
                "12: flow[0].to: starts and ends at the same node \"h2\"",
            ),
            ("from = \"h1..h4\"\nto = \"h5..h7\"", "12: flow[0].to: 3 nodes, and `from` has 4"),
            ("tcp.preset = \"home\"", "11: flow[0].tcp.preset: unknown value \"home\""),
        ],
    );
}
