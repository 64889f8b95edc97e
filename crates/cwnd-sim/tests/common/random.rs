//! Random scenarios: all topologies, queues, impairments, protocols, controllers and applications.

use cwnd_sim::network::{Conventions, Network, Traffic};
use cwnd_sim::scenario::Scenario;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use std::fmt;
use std::sync::Arc;

/// A random scenario and how it is run.
#[derive(Clone)]
pub(crate) struct Case {
    pub toml: String,
    pub seed: u64,
    pub watched: Index,
    pub slice: u64,
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Case { toml, seed, watched, slice } = self;
        write!(f, "seed {seed}, watched link {watched:?}, slices of {slice} events:\n{toml}")
    }
}

impl Case {
    pub(crate) fn network(&self) -> Network {
        let scenario = Scenario::from_toml(&self.toml, "random").expect(&self.toml);
        let mut network = scenario.network(self.seed).unwrap();
        // Half of the flows with ECN that can have AccECN do.
        for (number, flow) in (self.seed..).zip(&mut network.flows) {
            if let Traffic::Tcp(tcp) = Arc::make_mut(&mut flow.traffic) {
                let recent = matches!(tcp.conventions, Conventions::Rfc | Conventions::Linux);
                tcp.extensions.accecn = tcp.ecn && recent && number % 2 == 0;
            }
        }
        network
    }
}

/// PROPTEST_CASES changes the number of cases, 256.
pub(crate) fn config() -> ProptestConfig {
    ProptestConfig {
        failure_persistence: None,
        max_global_rejects: u32::MAX,
        ..ProptestConfig::default()
    }
}

/// Whether a link limits every flow that would otherwise send without limit.
pub(crate) fn is_bounded(network: &Network) -> bool {
    let limits = |&link: &usize| network.links[link].rate.is_some_and(|rate| rate <= MAX_RATE);
    network.flows.iter().all(|flow| match *flow.traffic {
        Traffic::Cbr { .. } | Traffic::Pareto { .. } => true,
        Traffic::Tcp(_) | Traffic::Udt(_) | Traffic::Quic(_) => flow.path.iter().any(limits),
    })
}

/// The rate in bits per second of the fastest link that limits flows.
const MAX_RATE: f64 = 1e9;

/// Values that are likely to coincide: a packet of 1000 bytes takes a multiple of 0.4 ms at most of
/// the rates.
pub(crate) struct Values {
    durations: &'static [&'static str],
    rates: &'static [&'static str],
    delays: &'static [&'static str],
    /// Rates of open-loop sources.
    sources: &'static [&'static str],
    windows: &'static [&'static str],
}

pub(crate) const SLOW: Values = Values {
    durations: &["0.5s", "1.5s", "3s"],
    rates: &["10mbit", "1mbit", "2mbit", "5mbit", "8mbit", "20mbit", "100kbit"],
    delays: &["0s", "1ms", "0.8ms", "5ms", "10ms", "1ns", "20ms", "33.3us"],
    sources: &["1mbit", "500kbit", "2mbit", "5mbit", "777kbit"],
    windows: &["1", "2", "3", "10", "64", "1000"],
};

/// At these rates and delays many packets are in flight.
pub(crate) const FAST: Values = Values {
    durations: &["0.3s", "0.5s"],
    rates: &["100mbit", "80mbit", "200mbit"],
    delays: &["10ms", "20ms", "8ms", "12.08ms", "1ms"],
    sources: &["10mbit", "5mbit", "40mbit"],
    windows: &["10", "64", "1000"],
};

/// A key with one of these values.
fn key(name: &'static str, values: &'static [&'static str]) -> BoxedStrategy<String> {
    let is_text =
        |value: &str| value.parse::<f64>().is_err() && !["true", "false"].contains(&value);
    let written = move |value| {
        if is_text(value) { format!("{name} = \"{value}\"") } else { format!("{name} = {value}") }
    };
    select(values).prop_map(written).boxed()
}

/// A key in one of `per` cases.
fn rarely(per: u32, key: BoxedStrategy<String>) -> BoxedStrategy<String> {
    prop_oneof![per - 1 => Just(String::new()), 1 => key].boxed()
}

/// An inline table.
fn table(name: &'static str, keys: Vec<BoxedStrategy<String>>) -> BoxedStrategy<String> {
    keys_of(keys).prop_map(move |keys| format!("{name} = {{ {keys} }}")).boxed()
}

fn keys_of(keys: Vec<BoxedStrategy<String>>) -> BoxedStrategy<String> {
    keys.prop_map(joined).boxed()
}

fn joined(keys: Vec<String>) -> String {
    let given: Vec<_> = keys.into_iter().filter(|key| !key.is_empty()).collect();
    given.join(",")
}

fn kind(name: &str) -> BoxedStrategy<String> {
    Just(format!("kind = \"{name}\"")).boxed()
}

/// One of these keys with their values.
fn texts(texts: &'static [&'static str]) -> BoxedStrategy<String> {
    select(texts).prop_map(str::to_owned).boxed()
}

const BOTH: &[&str] = &["true", "false"];

fn queue() -> BoxedStrategy<String> {
    let droptail = key("queue", &["20p", "1p", "3p", "5p", "2kb", "10kb", "infinite"]);
    let red = table(
        "queue",
        vec![
            kind("red"),
            key("limit", &["30p", "10p"]),
            key("min", &["1p", "0.5p", "4p"]),
            key("max", &["8p", "5p", "10p"]),
            key("max_p", &["0.1", "0.02", "1.0"]),
            key("weight", &["0.002", "0.1", "1.0"]),
            rarely(2, key("gentle", BOTH)),
            rarely(2, key("wait", BOTH)),
            rarely(2, key("ecn", BOTH)),
            rarely(4, key("mark_p", &["0.5", "0.1"])),
            rarely(4, key("mean_packet", &["500"])),
        ],
    );
    prop_oneof![4 => droptail, 2 => red, 3 => managed_queue()].boxed()
}

/// A queue of a discipline that decides at departure.
fn managed_queue() -> BoxedStrategy<String> {
    let limit = || rarely(2, key("limit", &["5p", "30p", "1p", "10kb"]));
    let ecn = || rarely(2, key("ecn", BOTH));
    let target = || rarely(2, key("target", &["1ms", "5ms", "0.8ms"]));
    let interval = || rarely(2, key("interval", &["10ms", "40ms"]));
    let codel = vec![kind("codel"), limit(), target(), interval(), ecn()];
    let fq_codel = vec![
        kind("fq_codel"),
        limit(),
        target(),
        interval(),
        ecn(),
        rarely(2, key("flows", &["1", "2", "4"])),
        rarely(2, key("quantum", &["300", "1000", "64"])),
        rarely(4, key("ce_threshold", &["1ms"])),
    ];
    let fq = vec![
        kind("fq"),
        limit(),
        rarely(2, key("flows", &["1", "2", "4"])),
        rarely(2, key("flow_limit", &["1", "10"])),
        rarely(2, key("quantum", &["300", "1000"])),
        rarely(2, key("initial_quantum", &["300"])),
    ];
    let pie = vec![
        kind("pie"),
        limit(),
        ecn(),
        rarely(2, key("qdelay_ref", &["1ms", "5ms"])),
        rarely(2, key("t_update", &["1ms", "0.8ms"])),
        rarely(2, key("max_burst", &["0s", "10ms"])),
        rarely(4, key("alpha", &["10"])),
    ];
    let dualpi2 = vec![
        kind("dualpi2"),
        limit(),
        target(),
        rarely(2, key("rtt_max", &["10ms", "30ms"])),
        rarely(2, key("tupdate", &["1ms", "0.8ms"])),
        rarely(4, key("k", &["1", "4"])),
        rarely(4, key("min_th", &["0s", "0.4ms"])),
        rarely(4, key("range", &["0s"])),
        rarely(4, key("classic_protection", &["0.5"])),
    ];
    let queues = [codel, fq_codel, fq, pie, dualpi2].map(|keys| table("queue", keys));
    proptest::strategy::Union::new(queues).boxed()
}

/// The values of `at` of changes and blackouts coincide with samples and arrivals.
const CHANGES: &[&str] = &[
    "changes = [{ at = 0.1, rate = \"2mbit\" }, { at = 0.25, rate = \"40mbit\" }]",
    "changes = [{ at = 0.1, rate = \"0bit\" }, { at = 0.2, rate = \"8mbit\", over = 0.3 }]",
    "changes = [{ at = 0, rate = \"1mbit\", over = 1 }, { at = 0.5, rate = \"100mbit\" }]",
    "changes = [{ at = 0.2, delay = 0 }, { at = 0.3, delay = \"15ms\", over = 0.1 }]",
    "changes = [{ at = 0.1, delay = \"30ms\", loss = 0.2 }, { at = 0.4, delay = \"1ms\", loss = 0 }]",
];

/// Models and traces, which replace the rate. A trace is given for each direction.
const MODELS: &[&str] = &[
    "model = { kind = \"cellular\" }",
    "model = { kind = \"cellular\", max = \"50mbit\", sigma = \"100mbit\", outage = \"50ms\", step = \"10ms\" }",
    "trace = { rate = [0, 0, 3, 4, 4, 4, 4, 9, 10, 20] }, back = { trace = { rate = [0, 0, 3, 4, 4, 4, 4, 9, 10, 20] } }",
    "trace = { rate = [1] }, back = { trace = { rate = [1] } }",
];

/// Models and traces, which replace the rate and the delay.
const MODELS_WITH_DELAY: &[&str] = &[
    "model = { kind = \"leo\", interval = \"100ms\", outage = \"10ms\", rate = \"1mbit..50mbit\", delay = \"0s..5ms\" }",
    "trace = { rate = [1, 1, 1, 2, 3, 3], delay = [20, 5, 0, 1, 30], interval = \"20ms\" }, back = { trace = { rate = [1, 1, 1, 2, 3, 3], delay = [20, 5, 0, 1, 30], interval = \"20ms\" } }",
];

/// Keys that apply to each packet.
fn packet_keys() -> Vec<BoxedStrategy<String>> {
    let bucket = |name| {
        let keys = texts(&["rate = \"2mbit\", burst = \"10kb\"", "rate = \"8mbit\", burst = 1500"]);
        rarely(8, table(name, vec![keys]))
    };
    vec![
        rarely(8, key("jitter", &["0.8ms", "10ms", "1ns"])),
        rarely(
            8,
            texts(&[
                "reorder = { probability = 0.01, delay = \"10ms\" }",
                "reorder = { probability = 0.5, delay = \"0.8ms\" }",
                "reorder = { probability = 1, delay = 0 }",
            ]),
        ),
        rarely(8, texts(&["blackout = [{ at = 0.1, for = 0.05 }, { at = 0.2, for = \"1ms\" }]"])),
        rarely(8, key("ack_aggregation", &["5ms", "0.8ms", "40ms"])),
        rarely(8, key("ack_thinning", &["0.8ms", "10ms"])),
        bucket("policer"),
        bucket("shaper"),
    ]
}

/// The keys of a link: its rate or what sets it, its delay and others.
fn all_link_keys(rate: BoxedStrategy<String>, values: &Values) -> Vec<BoxedStrategy<String>> {
    let delay = || key("delay", values.delays);
    let constant = keys_of(vec![rate, delay()]);
    let changing = keys_of(vec![key("rate", values.rates), delay(), texts(CHANGES)]);
    let model = keys_of(vec![delay(), texts(MODELS)]);
    let wifi =
        keys_of(vec![key("rate", values.rates), delay(), texts(&["model = { kind = \"wifi\" }"])]);
    let capacity = prop_oneof![
        12 => constant,
        2 => changing,
        1 => model,
        1 => texts(MODELS_WITH_DELAY),
    ];
    let jittery = wifi.prop_map(|keys| vec![keys]).boxed();
    let mut others = packet_keys();
    others.extend(link_keys(values));
    let all = (capacity, keys_of(others)).prop_map(|(one, other)| vec![one, other]).boxed();
    let keys = prop_oneof![15 => all, 1 => jittery];
    // The loss of `changes` excludes loss in bursts, and a direction without a model needs a rate
    // and a delay.
    let valid = |keys: &String| {
        let process = ["leo", "cellular", "trace"].iter().any(|word| keys.contains(word));
        let bursts = keys.contains("loss = 0.2") && keys.contains("gilbert");
        let backs = keys.matches("back").count() - keys.matches("back = { trace").count();
        !(bursts || process && backs > 0)
    };
    vec![keys.prop_map(joined).prop_filter("valid keys", valid).boxed()]
}

/// The keys of a link besides its rate and delay.
fn link_keys(values: &Values) -> Vec<BoxedStrategy<String>> {
    let bursts = texts(&[
        "loss = { kind = \"gilbert_elliott\", p = 0.01, r = 0.3 }",
        "loss = { kind = \"gilbert_elliott\", p = 0.1, r = 0.5, h = 0.5, k = 0.99 }",
    ]);
    let losses = || {
        let independent = key("loss", &["0.001", "0.01", "0.1"]);
        prop_oneof![3 => independent, 1 => bursts.clone()].boxed()
    };
    let back = table(
        "back",
        vec![
            rarely(2, key("rate", values.rates)),
            rarely(2, key("delay", values.delays)),
            rarely(2, queue()),
            rarely(4, losses()),
            rarely(4, key("loss_of_acks", BOTH)),
        ],
    );
    vec![
        rarely(2, queue()),
        rarely(4, losses()),
        rarely(4, key("loss_of_acks", BOTH)),
        rarely(4, back),
    ]
}

fn access(values: &Values) -> BoxedStrategy<String> {
    const DELAYS: &[&str] = &["0s", "1ms", "0.8ms", "10ms", "0s..2ms", "1ms..5ms"];
    const RATES: &[&str] = &["100mbit", "10mbit", "infinite", "10tbit", "20mbit", "1gbit"];
    let same_rate = key("rate", values.rates);
    table(
        "access",
        vec![
            prop_oneof![2 => Just(String::new()), 3 => key("rate", RATES), 1 => same_rate].boxed(),
            rarely(2, key("delay", DELAYS)),
            rarely(4, key("queue", &["1p", "5p", "50p", "5kb"])),
        ],
    )
}

/// A network without traffic.
#[derive(Clone, Debug)]
struct Topology {
    toml: String,
    nodes: Vec<String>,
    /// Whether flows need `from` and `to`.
    free: bool,
    chain: bool,
}

fn topology(values: &'static Values) -> BoxedStrategy<Topology> {
    let keys = all_link_keys(key("rate", values.rates), values);
    let ends = || vec!["left".to_owned(), "right".to_owned()];
    let dumbbell = table("dumbbell", keys).prop_map(move |toml| Topology {
        toml,
        nodes: ends(),
        free: false,
        chain: false,
    });
    let chain = (2usize..6).prop_flat_map(|routers| {
        let mut keys = vec![Just(format!("routers = {routers}")).boxed()];
        keys.extend(all_link_keys(key("rate", values.rates), values));
        table("chain", keys).prop_map(move |toml| {
            let nodes = (1..=routers).map(|number| format!("r{number}")).collect();
            Topology { toml, nodes, free: false, chain: true }
        })
    });
    prop_oneof![4 => dumbbell, 3 => chain, 3 => graph(values), 1 => leaf_spine(values)].boxed()
}

/// Two or three racks of two hosts, with up to three spines.
fn leaf_spine(values: &'static Values) -> impl Strategy<Value = Topology> {
    (2usize..4, 1usize..4).prop_flat_map(|(leaves, spines)| {
        let keys = vec![
            Just(format!("leaves = {leaves},spines = {spines},hosts = 2")).boxed(),
            key("rate", values.rates),
            key("delay", values.delays),
            rarely(2, queue()),
            rarely(2, table("fabric", vec![key("rate", values.rates), queue()])),
        ];
        table("leaf_spine", keys).prop_map(move |toml| {
            let nodes = (1..=2 * leaves).map(|number| format!("h{number}")).collect();
            Topology { toml: lines(&toml), nodes, free: true, chain: false }
        })
    })
}

/// A tree of links, and further links.
fn graph(values: &'static Values) -> impl Strategy<Value = Topology> {
    let link = || {
        let rate = prop_oneof![
            18 => key("rate", values.rates),
            2 => key("rate", &["infinite", "1gbit"]),
            // With the round-trip time of a long route the default queue of 1bdp has more packets
            // than a queue may have.
            1 => Just("rate = \"10tbit\",bdp_rtt = \"10ms\"".to_owned()),
        ];
        (keys_of(all_link_keys(rate.boxed(), values)), any::<Index>(), any::<Index>())
    };
    let tree = prop::collection::vec(link(), 1..6);
    let further = prop::collection::vec((link(), any::<bool>()), 0..3);
    (tree, further).prop_map(|(tree, further)| {
        let name = |node: usize| format!("n{node}");
        let nodes: Vec<_> = (0..=tree.len()).map(name).collect();
        let mut toml = String::new();
        for (node, (keys, parent, _)) in tree.iter().enumerate() {
            let parent = parent.index(node + 1);
            toml += &format!("[[link]]\nfrom = \"n{parent}\"\nto = \"n{}\"\n", node + 1);
            toml += &lines(keys);
        }
        for (number, ((keys, from, to), duplex)) in further.iter().enumerate() {
            let [from, to] = two_of(&nodes, *from, *to);
            toml += &format!("[[link]]\nname = \"x{number}\"\nfrom = \"{from}\"\nto = \"{to}\"\n");
            let keys = lines(keys);
            let one_way = !duplex && !keys.contains("back");
            toml += if one_way { "duplex = false\n" } else { "" };
            toml += &keys;
        }
        Topology { toml, nodes, free: true, chain: false }
    })
}

/// Two different nodes.
fn two_of(nodes: &[String], from: Index, to: Index) -> [&str; 2] {
    let from = from.index(nodes.len());
    let to = (from + 1 + to.index(nodes.len() - 1)) % nodes.len();
    [&nodes[from], &nodes[to]]
}

/// Keys on lines of their own. Commas within inline tables stay.
fn lines(keys: &str) -> String {
    let mut depth = 0;
    let separated = keys.chars().map(|letter| {
        depth += i32::from("{[".contains(letter)) - i32::from("}]".contains(letter));
        if letter == ',' && depth == 0 { '\n' } else { letter }
    });
    separated.chain(['\n']).collect()
}

/// A `[[flow]]`, `[[cbr]]` or `[[pareto]]`.
#[derive(Clone, Debug)]
struct Group {
    kind: &'static str,
    keys: String,
    ends: (Index, Index),
    /// Whether the ends are given where there are others by default.
    explicit: bool,
    cross: bool,
}

/// The conventions with the parts that depend on them, so that a flow's own options replace all of
/// the scenario's.
fn stack() -> BoxedStrategy<String> {
    let older = |conventions, recovery| {
        let off = PARTS.map(|part| format!("{part} = false")).join(", ");
        format!("conventions = \"{conventions}\", recovery = \"{recovery}\", {off}")
    };
    let recent = |conventions, on: [bool; PARTS.len()]| {
        let parts: Vec<_> =
            PARTS.iter().zip(on).map(|(part, on)| format!("{part} = {on}")).collect();
        format!("conventions = \"{conventions}\", recovery = \"sack\", {}", parts.join(", "))
    };
    prop_oneof![
        4 => (select(&["rfc5681", "ns2", "ns2-2001"]), select(&["sack", "newreno", "reno"]))
            .prop_map(move |(conventions, recovery)| older(conventions, recovery)),
        1 => any::<[bool; PARTS.len()]>().prop_map(move |on| recent("rfc", on)),
        1 => any::<[bool; PARTS.len()]>().prop_map(move |on| recent("linux", on)),
        2 => Just(recent("linux", [true; PARTS.len()])),
    ]
    .boxed()
}

/// Keys of `[tcp]` that only some stacks have.
const PARTS: [&str; 5] = ["rack", "tlp", "prr", "dsack", "frto"];

fn tcp_options(values: &Values) -> Vec<BoxedStrategy<String>> {
    vec![
        rarely(2, stack()),
        rarely(4, key("pacing", BOTH)),
        rarely(3, key("slow_start", &["standard", "hystart", "hystart-linux"])),
        rarely(3, key("packet", &["960", "1000", "200", "460"])),
        rarely(3, key("header", &["40", "0"])),
        rarely(8, key("ack", &["40", "1", "1000"])),
        rarely(4, key("initial_window", &["1", "2", "10", "30"])),
        rarely(4, key("window", values.windows)),
        rarely(3, key("delayed_acks", BOTH)),
        rarely(8, key("ack_delay", &["40ms", "0s", "1ms", "200ms"])),
        rarely(3, key("ecn", &["true", "false", "l4s"])),
        rarely(4, key("timestamps", &["true", "false", "10ms", "1us"])),
        rarely(6, key("limited_transmit", BOTH)),
        rarely(4, key("syn", BOTH)),
        rarely(6, key("byte_counting", BOTH)),
        rarely(6, key("granularity", &["1ms", "10ms", "1ns"])),
        rarely(4, key("min_rto", &["0s", "10ms", "200ms"])),
        rarely(4, key("initial_rto", &["100ms", "1ms", "300ms"])),
        rarely(8, key("overhead", &["1ms", "10us", "1ns"])),
    ]
}

/// The data of a flow: endless, an amount, that of an application, or transfers that arrive.
fn data() -> BoxedStrategy<String> {
    let source = |name: &str, keys: Vec<BoxedStrategy<String>>| {
        table("source", [vec![kind(name)], keys].concat())
    };
    let times = |name: &'static str| {
        let constant = key(name, &["10ms", "4ms", "50ms"]);
        let of_kind =
            |kind: &str| Just(format!("{name} = {{ kind = \"{kind}\", mean = \"30ms\" }}"));
        prop_oneof![2 => constant, 1 => of_kind("exponential"), 1 => of_kind("pareto")].boxed()
    };
    let rate = || key("rate", &["1mbit", "2mbit", "777kbit", "40mbit"]);
    let pareto = || {
        Just(
            "sizes = { kind = \"pareto\", mean = \"10kb\", shape = 1.2, max = \"1mb\" }".to_owned(),
        )
    };
    let sizes = prop_oneof![
        2 => key("sizes", &["1000", "20kb", "100kb"]),
        1 => pareto(),
        1 => Just("sizes = { kind = \"lognormal\", median = \"5kb\", sigma = 1 }".to_owned()),
    ];
    // Transfers of a packet end at their first acknowledgement.
    let arriving = prop_oneof![key("sizes", &["1000", "20kb"]), pareto()];
    prop_oneof![
        4 => Just(String::new()),
        2 => key("bytes", &["20kb", "1000", "100kb", "1mb"]),
        1 => source("limited", vec![rate()]),
        2 => source("on_off", vec![times("on"), times("off"), rarely(2, rate())]),
        2 => source("request", vec![sizes.boxed(), rarely(3, times("think"))]),
        1 => source("media", vec![rarely(2, key("fps", &["100", "30"]))]),
        1 => table("arrivals", vec![key("rate", &["5", "40"]), arriving.boxed()]),
        1 => Just("source = { kind = \"video\", chunk = \"40ms\", buffer = \"0.2s\", rates = [\"1mbit\", \"3mbit\", \"9mbit\"] }".to_owned()),
    ]
    .boxed()
}

/// Keys of all traffic.
fn common_keys(values: &Values) -> Vec<BoxedStrategy<String>> {
    vec![
        prop_oneof![1 => Just(String::new()), 2 => key("count", &["2", "3", "4"])].boxed(),
        rarely(2, key("start", &["50ms", "0s..0.1s", "100ms", "0.8ms"])),
        rarely(6, key("stagger", &["4ms", "0.8ms"])),
        rarely(5, key("stop", &["0.2s", "0.25s"])),
        rarely(4, key("reverse", &["true"])),
        rarely(6, access(values)),
    ]
}

/// Removes the keys that `arrivals` and `source` exclude: those of the number of flows and of their
/// starts, and changes of the packet size.
fn without_conflicts(keys: String) -> String {
    let excluded: &[&str] = if keys.contains("arrivals = ") {
        &["count = ", "stagger = ", "start = \"0s.."]
    } else if keys.contains("source = ") {
        &["packet_changes = "]
    } else {
        return keys;
    };
    let kept = |line: &&str| !excluded.iter().any(|key| line.starts_with(key));
    lines(&keys).lines().filter(kept).collect::<Vec<_>>().join(",")
}

fn group(values: &'static Values) -> BoxedStrategy<Group> {
    let flow = |controller: BoxedStrategy<String>, mut keys: Vec<BoxedStrategy<String>>| {
        keys.insert(0, controller);
        keys.push(data());
        keys.extend(common_keys(values));
        keys_of(keys).prop_map(|keys| ("flow", without_conflicts(keys))).boxed()
    };
    let names: Vec<_> = cwnd::registry::algorithms().iter().map(|found| found.name).collect();
    let others = [
        "reno(pacing=1.25)",
        "cubic(pacing=2)",
        "cubic(start=hystart)",
        "daimd(capacity=10mbit)",
        "aiad(rate=receiver)",
    ];
    let named = |name: &'static str| format!("controller = \"{name}\"");
    let any_controller = select([names, others.to_vec()].concat()).prop_map(named);
    let controller = || prop_oneof![Just(named("reno")), any_controller.clone()].boxed();
    let changes = texts(&[
        "packet_changes = [{ at = \"40ms\", packet = 1200 }]",
        "packet_changes = [{ at = \"0s\", packet = 300 }, { at = \"80ms\", packet = 900 }]",
    ]);
    let resized = || rarely(8, changes.clone());
    let tcp = flow(controller(), vec![rarely(2, table("tcp", tcp_options(values))), resized()]);
    let paced = flow(
        key("controller", &["udt", "daimd", "daimd(lambda=1)", "tfrc", "daimd(capacity=10mbit)"]),
        vec![
            rarely(
                2,
                table("tcp", vec![key("packet", &["960", "1460"]), key("window", values.windows)]),
            ),
            resized(),
        ],
    );
    let udt = flow(
        prop_oneof![2 => Just(named("udt")), 1 => any_controller.clone()].boxed(),
        vec![
            Just("protocol = \"udt\"".to_owned()).boxed(),
            table(
                "tcp",
                vec![
                    key("packet", &["956", "1456", "100"]),
                    Just("header = 44".to_owned()).boxed(),
                    key("window", &["1000", "2", "25", "25600"]),
                ],
            ),
        ],
    );
    let mut keys = vec![
        key("rate", values.sources),
        rarely(2, key("packet", &["1000", "200", "500", "1500"])),
        rarely(4, key("jitter", &["0.1", "1"])),
        prop_oneof![
            2 => Just(String::new()),
            1 => Just("on = \"10ms\", off = \"20ms\"".to_owned()),
            1 => Just("on = \"0.1s\", off = \"50ms\"".to_owned()),
        ]
        .boxed(),
    ];
    keys.extend(common_keys(values));
    let cbr = keys_of(keys).prop_map(|keys| ("cbr", keys));
    let mut keys = vec![
        key("rate", values.sources),
        key("on", &["10ms", "50ms"]),
        key("off", &["10ms", "100ms"]),
        rarely(2, key("packet", &["1000", "200"])),
        rarely(2, key("shape", &["1.1", "2"])),
    ];
    keys.extend(common_keys(values));
    let pareto = keys_of(keys).prop_map(|keys| ("pareto", keys));
    let kind = prop_oneof![6 => tcp, 3 => paced, 2 => udt, 3 => cbr, 1 => pareto];
    let rare = || prop::bool::weighted(0.3);
    (kind, any::<(Index, Index)>(), rare(), rare())
        .prop_map(|((kind, keys), ends, explicit, cross)| Group {
            kind,
            keys,
            ends,
            explicit,
            cross,
        })
        .boxed()
}

pub(crate) fn case(values: &'static Values) -> BoxedStrategy<Case> {
    let header = keys_of(vec![
        key("duration", values.durations),
        rarely(2, key("warmup", &["100ms", "37ms", "0.1001s", "150ms"])),
        key("sample", &["100ms", "10ms", "1ms", "7ms", "0.4ms"]),
        rarely(2, key("ecmp", BOTH)),
        rarely(2, access(values)),
        rarely(2, table("tcp", tcp_options(values))),
    ]);
    let groups = prop::collection::vec(group(values), 1..6);
    let run = (1u64..1000, any::<Index>(), select(&[1u64, 2, 7, 1000]));
    (header, topology(values), groups, run)
        .prop_map(|(header, topology, groups, (seed, watched, slice))| {
            let mut toml = lines(&header);
            toml += &if topology.free { topology.toml } else { lines(&topology.toml) };
            for Group { kind, keys, ends: (from, to), explicit, cross } in groups {
                toml += &format!("[[{kind}]]\n");
                if topology.chain && cross && !keys.contains("arrivals = ") {
                    toml += "cross = true\n";
                } else if topology.free || explicit {
                    let [from, to] = two_of(&topology.nodes, from, to);
                    toml += &format!("from = \"{from}\"\nto = \"{to}\"\n");
                }
                toml += &lines(&keys);
            }
            Case { toml, seed, watched, slice }
        })
        .boxed()
}
