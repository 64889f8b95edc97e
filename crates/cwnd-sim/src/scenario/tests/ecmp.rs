//! Equal-cost multipath.

use std::collections::BTreeMap;

use super::errors::check_errors;
use super::{compile, names};

/// A network with `middle` nodes between a and d, a longer path through v and w, and this traffic.
fn parallel(middle: u32, traffic: &str) -> String {
    let link = |from: &str, to: &str| {
        format!("[[link]]\nfrom = \"{from}\"\nto = \"{to}\"\nrate = \"1gbit\"\ndelay = \"1ms\"\n")
    };
    let mut links = link("a", "v") + &link("v", "w") + &link("w", "d");
    for number in 1..=middle {
        let name = format!("m{number}");
        links += &(link("a", &name) + &link(&name, "d"));
    }
    format!("duration = 9\necmp = true\n{links}{traffic}from = \"a\"\nto = \"d\"\n")
}

const MANY: &str = "[[flow]]\ncontroller = \"reno\"\ncount = 6400\n";

/// Checks that counts are those of a uniform choice: each is within five standard deviations of
/// the mean, those of the binomial distribution.
fn check_uniform<T: std::fmt::Debug>(counts: &BTreeMap<T, u64>, choices: u64) {
    let total: u64 = counts.values().sum();
    assert_eq!(counts.len() as u64, choices, "{counts:?}");
    let share = 1.0 / choices as f64;
    let deviation = (total as f64 * share * (1.0 - share)).sqrt();
    for count in counts.values() {
        assert!((*count as f64 - total as f64 * share).abs() < 5.0 * deviation, "{counts:?}");
    }
}

#[test]
fn many_flows_have_equal_shares_of_the_shortest_paths_in_both_directions() {
    let network = compile(&parallel(4, MANY));
    let (mut there, mut both) = (BTreeMap::new(), BTreeMap::new());
    for flow in &network.flows {
        let [path, back] = [&flow.path, &flow.back].map(|route| names(&network, route));
        assert_eq!((path.len(), back.len()), (2, 2));
        *there.entry(path.clone()).or_insert(0) += 1;
        *both.entry((path, back)).or_insert(0) += 1;
    }
    check_uniform(&there, 4);
    // The directions of a connection are hashed apart.
    check_uniform(&both, 16);
}

#[test]
fn nodes_in_a_row_have_independent_hashes() {
    let link = |from: &str, to: &str, name: &str| {
        format!("[[link]]\nfrom = \"{from}\"\nto = \"{to}\"\nname = \"{name}\"\n")
    };
    let links = [("a", "b", "ab1"), ("a", "b", "ab2"), ("b", "c", "bc1"), ("b", "c", "bc2")];
    let links: String = links.iter().map(|(from, to, name)| link(from, to, name)).collect();
    let text = format!("duration = 9\necmp = true\n{links}{MANY}from = \"a\"\nto = \"c\"\n");
    let network = compile(&text);
    let mut paths = BTreeMap::new();
    for flow in &network.flows {
        *paths.entry(names(&network, &flow.path)).or_insert(0) += 1;
    }
    check_uniform(&paths, 4);
}

#[test]
fn the_path_of_a_flow_depends_on_the_seed_and_its_position_only() {
    let text = parallel(4, MANY);
    let routes = |text: &str, seed| -> Vec<_> {
        let scenario = super::Scenario::from_toml(text, "x").unwrap();
        let flows = scenario.network(seed).unwrap().flows;
        flows.into_iter().map(|flow| (flow.path, flow.back)).collect()
    };
    let first = routes(&text, 1);
    assert_eq!(first, routes(&text.replace("reno", "cubic"), 1));
    let fewer = routes(&text.replace("count = 6400", "count = 64"), 1);
    assert_eq!(fewer, first[..64]);
    assert_ne!(first, routes(&text, 2));
    // Without the key all flows take the first path.
    let single = routes(&text.replace("ecmp = true", ""), 1);
    assert!(single.iter().all(|routes| *routes == single[0]));
}

#[test]
fn cross_traffic_and_arrivals_are_distributed_too() {
    let chain = "duration = 9\necmp = true\n[chain]\nrouters = 3\nrate = 1e9\ndelay = 0\n";
    let traffic = "[[flow]]\ncontroller = \"reno\"\ncross = true\ncount = 2\n";
    let network = compile(&format!("{chain}{traffic}"));
    let found: Vec<_> = network.flows.iter().map(|flow| names(&network, &flow.path)).collect();
    assert_eq!(found, [["r1-r2"], ["r1-r2"], ["r2-r3"], ["r2-r3"]]);
    // The link of a load may be on any of the paths.
    let arrivals = "[[flow]]\ncontroller = \"reno\"\n\
                    arrivals = { load = 0.5, link = \"m4-d\", sizes = \"100kb\" }\n";
    let network = compile(&parallel(4, arrivals));
    let used = network.flows.iter().map(|flow| (names(&network, &flow.path), ()));
    assert_eq!(used.collect::<BTreeMap<_, _>>().len(), 4);
}

#[test]
fn errors_name_the_group() {
    let one = "[[link]]\nfrom = \"a\"\nto = \"b\"\nduplex = false\n";
    check_errors(
        [&format!("duration = 9\necmp = true\n{one}[[flow]]\ncontroller = \"reno\"\n"), ""],
        "x:7: flow[0]",
        &[
            ("from = \"a\"\nto = \"b\"", ": there is no path from \"b\" to \"a\""),
            ("from = \"b\"\nto = \"a\"", ": there is no path from \"b\" to \"a\""),
        ],
    );
}
