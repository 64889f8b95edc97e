//! The defaults of queue disciplines are those of their RFCs.

use super::{NetQueue, compile};
use crate::discipline::KINDS;
use crate::network::{self, QueueLimit};
use cwnd::Dur;

/// Compiles a queue on a link of 20 Mb/s whose largest packet has 1000 bytes.
fn queue(text: &str) -> NetQueue {
    let network = compile(&format!(
        "duration = 9\n[dumbbell]\nrate = \"20mbit\"\ndelay = \"20ms\"\nqueue = {text}\n\
         [tcp]\npacket = 960\n[[flow]]\ncontroller = \"reno\"\n"
    ));
    network.links[0].queue
}

#[test]
fn codel() {
    // RFC 8289 section 5.3.
    let expected = network::Codel {
        limit: QueueLimit::Packets(1000),
        target: Dur::from_millis(5),
        interval: Dur::from_millis(100),
        ecn: false,
        maxpacket: 1000,
    };
    assert_eq!(queue("\"codel\""), NetQueue::Codel(expected));
    // RFC 8290 section 5.2.
    let codel = network::Codel { limit: QueueLimit::Packets(10_240), ecn: true, ..expected };
    let expected = network::FqCodel { codel, flows: 1024, quantum: 1514, ce_threshold: None };
    assert_eq!(queue("\"fq_codel\""), NetQueue::FqCodel(expected));
}

#[test]
fn pie() {
    // RFC 8033 appendices A and B.
    let expected = network::Pie {
        limit: QueueLimit::Packets(1000),
        qdelay_ref: Dur::from_millis(15),
        t_update: Dur::from_millis(15),
        alpha: 1.0 / 8.0,
        beta: 1.0 + 1.0 / 4.0,
        max_burst: Dur::from_millis(150),
        ecn: false,
        mark_ecnth: 0.1,
        mean_pktsize: 1000,
        derandomize: true,
    };
    assert_eq!(queue("\"pie\""), NetQueue::Pie(expected));
    let random = network::Pie { derandomize: false, ..expected };
    assert_eq!(queue("{ kind = \"pie\", derandomize = false }"), NetQueue::Pie(random));
}

#[test]
fn dualpi2() {
    let of = |keys: &str| {
        let NetQueue::DualPi2(queue) = queue(&format!("{{ kind = \"dualpi2\"{keys} }}")) else {
            panic!("not DualPI2")
        };
        queue
    };
    let near = |one: f64, other: f64| (one - other).abs() < 1e-12;
    // RFC 9332 figure 2.
    let queue = of("");
    // 250 ms of 20 Mb/s.
    assert_eq!(queue.limit, QueueLimit::Bytes(625_000));
    assert_eq!((queue.target, queue.tupdate), (Dur::from_millis(15), Dur::from_millis(15)));
    assert!(near(queue.alpha, 0.15) && near(queue.beta, 3.0));
    assert_eq!((queue.k, queue.th_len, queue.mtu), (2.0, 1, 1000));
    assert_eq!((queue.min_th, queue.range), (Dur::from_micros(800), Dur::from_micros(400)));
    // Appendix A.1: with an update every 16 ms, alpha is 0.16.
    assert!(near(of(", tupdate = \"16ms\"").alpha, 0.16));
    // At least three updates in the worst-case round-trip time.
    let queue = of(", rtt_max = \"30ms\"");
    assert_eq!(queue.tupdate, Dur::from_millis(10));
    assert!(near(queue.alpha, 0.1 * 0.01 / (0.03 * 0.03)) && near(queue.beta, 10.0));
}

/// Returns the keys of a queue in the schema.
fn properties() -> serde_json::Map<String, serde_json::Value> {
    crate::scenario::schema()["$defs"]["QueueTable"]["properties"].as_object().unwrap().clone()
}

#[test]
fn each_key_has_a_kind() {
    let mut keys: Vec<_> = KINDS.iter().flat_map(|(_, keys)| *keys).copied().collect();
    keys.extend(["kind", "limit"]);
    keys.sort_unstable();
    keys.dedup();
    assert!(properties().keys().eq(keys));
}

/// Each default that `docs/scenario.md` writes as a value is in the description of the key, and
/// given as a key it changes nothing.
#[test]
fn the_documents_have_the_defaults() {
    let document = include_str!("../../../../../docs/scenario.md");
    let properties = properties();
    let mut checked = 0;
    for (kind, keys) in KINDS {
        let kind = serde_json::to_value(kind).unwrap();
        let kind = kind.as_str().unwrap();
        let start = format!("| `{kind}` |");
        let row = document.lines().find(|line| line.starts_with(&start)).unwrap();
        let columns: Vec<_> = row.split(" | ").collect();
        let limit = columns[2].replace('`', "");
        let default_of = |key: &str| {
            let (_, rest) = columns[3].split_once(&format!("`{key}` ("))?;
            rest.split([';', ',', ')']).next()
        };
        let keys = keys.iter().filter_map(|key| Some((*key, default_of(key)?)));
        for (key, default) in keys.chain([("limit", limit.as_str())]) {
            let value = default.trim_end_matches(" packets");
            if value.contains(' ') || value == "none" {
                continue; // A sentence or an expression.
            }
            let description = properties[key]["description"].as_str().unwrap();
            let mut words = description.split([' ', '\n', ',', ';', '`']);
            let is_named = words.any(|word| word.trim_end_matches('.') == value);
            assert!(is_named, "{kind}: {key} = {value}: {description}");
            let is_bare = value.parse::<f64>().is_ok() || value.parse::<bool>().is_ok();
            let value = if is_bare { value.into() } else { format!("\"{value}\"") };
            let given = queue(&format!("{{ kind = \"{kind}\", {key} = {value} }}"));
            assert_eq!(given, queue(&format!("\"{kind}\"")), "{kind}: {key} = {value}");
            checked += 1;
        }
    }
    assert_eq!(checked, 38);
}
