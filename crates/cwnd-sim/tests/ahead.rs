//! Lookahead saves events: endpoints run ahead of the clock, and receivers of paced flows process buffered packets later.
//! Results do not depend on it. Frequent samples prevent transmissions ahead of the clock, and a tap forces an event for
//! each packet; both change only the series.

use cwnd_sim::record::{FlowSeries, LinkRecord, Records};
use cwnd_sim::scenario::Scenario;
use cwnd_sim::{Options, Simulation};

/// Networks with many simultaneous events.
const NETWORKS: [&str; 7] = [
    // After one flow ends, the other one sends at the rate of its access link.
    r#"
    dumbbell = { rate = "10mbit", delay = "50ms", queue = "5p" }
    access = { rate = "10mbit" }
    flow = [{ controller = "daimd(capacity=10000000)", start = "50ms", count = 2, bytes = 1000000,
              tcp = { packet = 200, header = 0, window = 50 } }]
    "#,
    // Links that are idle at each arrival.
    r#"
    dumbbell = { rate = "10mbit", delay = "1ms", queue = "20p", loss = 0.001 }
    access = { rate = "100mbit" }
    flow = [{ controller = "udt", count = 3, start = "0s..0.1s" },
            { controller = "daimd", reverse = true }, { controller = "reno" }]
    "#,
    // Packets that arrive at the time of their transmission.
    r#"
    dumbbell = { rate = "50mbit", delay = "1ms", queue = { kind = "red", limit = "200p" } }
    access = { rate = "infinite" }
    flow = [{ controller = "daimd", count = 4, tcp = { packet = 1500, window = 10 } },
            { controller = "daimd(capacity=5000000)", start = "50ms" }]
    "#,
    // No delay and a queue of one packet.
    r#"
    dumbbell = { rate = "5mbit", delay = 0, queue = "1p", loss = 0.001, loss_of_acks = true }
    flow = [{ controller = "udt", count = 6, start = "0s..0.1s" }]
    cbr = [{ rate = "1mbit", packet = 200, on = "0.3s", off = "0.2s" }]
    "#,
    // Consecutive links of equal rate: a packet arrives at the time of the previous packet's departure.
    r#"
    chain = { routers = 4, rate = "10mbit", delay = "1ms", queue = "20p" }
    flow = [{ controller = "daimd", tcp = { packet = 1000 } }]
    cbr = [{ rate = "2mbit", packet = 1000, stop = "0.3s" }]
    "#,
    // A path so long that many packets are in flight before the first one arrives.
    r#"
    dumbbell = { rate = "10mbit", delay = "200ms", queue = "50p" }
    access = { rate = "100mbit" }
    flow = [{ controller = "udt", count = 2 }]
    "#,
    // A link so slow that the acknowledgement delay is shorter than a packet's transmission time.
    r#"
    dumbbell = { rate = "100kbit", delay = "20ms" }
    flow = [{ controller = "reno", start = "300ms" }]
    "#,
];

/// Returns all results of a run except for the series.
fn figures(text: &str, sample: &str, tap: Option<usize>) -> String {
    let text = format!("duration = \"1.5s\"\nwarmup = \"0.2s\"\nsample = \"{sample}\"\n{text}");
    let network = Scenario::from_toml(&text, "ahead").unwrap().network(1).unwrap();
    let mut simulation = Simulation::new(&network, 1, &Options::default()).unwrap();
    if let Some(link) = tap {
        simulation.tap(link, |_| {});
    }
    simulation.run();
    let Records { mut flows, mut links, packets, .. } = simulation.finish();
    for flow in &mut flows {
        flow.series = FlowSeries::default();
    }
    for LinkRecord { queue, drops_series, .. } in &mut links {
        queue.clear();
        drops_series.clear();
    }
    format!("{packets} {flows:?} {links:?}")
}

#[test]
fn lookahead_does_not_change_results() {
    for text in NETWORKS {
        let plain = figures(text, "1s", None);
        assert_eq!(figures(text, "40us", None), plain, "{text}");
        let links = plain.matches("arrivals").count();
        for link in 0..links {
            assert_eq!(figures(text, "1s", Some(link)), plain, "{text} link {link}");
        }
    }
}
