//! Replaying the recorded events of a flow through a new controller with the same specification and
//! settings gives bit-identical outputs, for every law, with losses, marks and timeouts.

use crate::common::{RED, ms, packets, pair, scenario, tcp};
use cwnd::record::{Record, replay};
use cwnd::registry::{Kind, algorithms};
use cwnd::{Event, MakeController, Spec, Time};
use cwnd_sim::network::{Conventions, Network, Queue, Recovery, Red, Tcp, Traffic};
use cwnd_sim::{Options, Simulation};

/// Number of events of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    handshake: u32,
    acked: u32,
    lost: u32,
    marked: u32,
    recovered: u32,
    timeout: u32,
    undo: u32,
    reduced: u32,
    report: u32,
    tick: u32,
}

impl Counts {
    fn add(&mut self, record: &Record) {
        for entry in &record.entries {
            let place = match entry.event {
                Event::Handshake { .. } => &mut self.handshake,
                Event::Acked(_) => &mut self.acked,
                Event::Lost(_) => &mut self.lost,
                Event::Marked(_) => &mut self.marked,
                Event::Recovered => &mut self.recovered,
                Event::Timeout(_) => &mut self.timeout,
                Event::Undo => &mut self.undo,
                Event::Reduced { .. } => &mut self.reduced,
                Event::Report(_) => &mut self.report,
                Event::Tick => &mut self.tick,
                event => panic!("{event:?} is counted nowhere"),
            };
            *place += 1;
        }
    }
}

/// Returns every controller with its defaults, and variants with parameters that select other
/// rules.
fn specs() -> Vec<String> {
    let defaults = algorithms().iter().map(|algorithm| algorithm.name.to_owned());
    let others = [
        "aimd(0.31, 1/8)",
        "binomial(k=1/2, l=1/4)",
        "aiad(rate=receiver)",
        "simd(beta=1/4)",
        "cubic(start=hystart)",
        "reno(pacing=1.25)",
        "cubic(pacing=2)",
        "daimd(lambda=1)",
        "daimd(capacity=4mbit)",
        "udt(syn=50ms)",
    ];
    defaults.chain(others.into_iter().map(String::from)).collect()
}

/// 4 Mb/s and 40 ms with a short queue, losses in both directions and a bursty source.
fn rough(mut tcp: Tcp, controller: &str, queue: Queue) -> Network {
    tcp.controller = controller.into();
    let burst = Traffic::Cbr {
        rate: 3.9e6,
        packet: 1000,
        schedule: Some((ms(700), ms(1800))),
        jitter: 0.0,
    };
    let mut network = pair(4e6, ms(20), queue, vec![Traffic::Tcp(tcp), burst], ms(20_000));
    network.links[0].loss = 0.004;
    network.links[1].loss = 0.02;
    network.links[1].loss_of_acks = true;
    network
}

/// Runs flow 0 and replays its record through a new controller, directly and after conversion to
/// text and back.
fn check(network: &Network, seed: u64) -> Record {
    let options = Options { record_events: true, ..Options::default() };
    let mut simulation = Simulation::new(network, seed, &options).unwrap();
    let settings = simulation.settings(0).unwrap();
    assert!(simulation.settings(1).is_none());
    simulation.run();
    let records = simulation.finish();
    let record = records.flows[0].events.clone().unwrap();
    let Traffic::Tcp(tcp) = &*network.flows[0].traffic else { panic!("not TCP") };
    let spec = Spec::parse(&tcp.controller).unwrap();

    let again = replay(spec.controller(&settings), &record);
    assert_eq!(again, Ok(()), "{spec}");
    let text = record.to_string();
    let read: Record = text.parse().unwrap();
    assert_eq!(read.to_string(), text, "{spec}");
    assert_eq!(replay(spec.controller(&settings), &read), Ok(()), "{spec}");
    record
}

fn red() -> Queue {
    Queue::Red(Red { limit: 40, min: 4.0, max: 12.0, weight: 0.05, ..RED })
}

/// Checks all laws with these options and returns the total number of events.
fn all_laws(options: &Tcp, queue: Queue) -> Counts {
    let mut counts = Counts::default();
    for (seed, spec) in specs().iter().enumerate() {
        let record = check(&rough(options.clone(), spec, queue), seed as u64);
        let mut here = Counts::default();
        here.add(&record);
        counts.add(&record);
        let paced = Spec::parse(spec).unwrap().algorithm().kind() == Kind::Rate;
        let answers = if paced { here.report } else { here.acked };
        assert!(answers > 100 && here.lost + here.timeout > 5, "{spec} stalls: {here:?}");
    }
    counts
}

#[test]
fn with_the_conventions_of_the_rfcs() {
    let stamps = Tcp { timestamps: Some(ms(1)), delayed_acks: true, ..tcp("") };
    let sack = all_laws(&stamps, packets(8));
    assert!(sack.timeout > 20 && sack.recovered > 100 && sack.tick > 100, "{sack:?}");
    let newreno = Tcp { recovery: Recovery::NewReno, syn: true, ..tcp("") };
    let newreno = all_laws(&newreno, packets(8));
    assert!(newreno.timeout > 20 && newreno.recovered > 100, "{newreno:?}");
    let reno = Tcp { recovery: Recovery::Reno, byte_counting: false, ..tcp("") };
    let reno = all_laws(&reno, packets(8));
    assert!(reno.timeout > 20 && reno.recovered > 100, "{reno:?}");
}

#[test]
fn with_marks() {
    let marks = all_laws(&Tcp { ecn: true, timestamps: Some(ms(1)), ..tcp("") }, red());
    assert!(marks.marked > 100 && marks.lost > 100, "{marks:?}");
}

#[test]
fn with_the_conventions_of_ns2() {
    for conventions in [Conventions::Ns2, Conventions::Ns2001] {
        for recovery in [Recovery::Sack, Recovery::NewReno, Recovery::Reno] {
            let options = Tcp { conventions, recovery, granularity: ms(10), ..tcp("") };
            let counts = all_laws(&options, packets(8));
            assert!(counts.timeout > 20 && counts.recovered > 100, "{counts:?}");
        }
    }
}

/// ns-2 deflates the window if a partial acknowledgement covers more packets than duplicates
/// arrived before it, that is after the loss of many duplicates.
#[test]
fn with_partial_window_deflation() {
    let options = Tcp { conventions: Conventions::Ns2, recovery: Recovery::NewReno, ..tcp("") };
    let mut counts = Counts::default();
    for algorithm in algorithms().iter().filter(|algorithm| algorithm.kind() == Kind::Window) {
        let mut network = rough(options.clone(), algorithm.name, packets(40));
        network.links[0].loss = 0.01;
        network.links[1].loss = 0.3;
        network.flows[1].start = Time::NEVER;
        counts.add(&check(&network, 1));
    }
    assert!(counts.reduced > 10, "{counts:?}");
}

/// Spurious timeouts on a path whose delay grows by a second, detected by timestamps.
#[test]
fn with_undone_reductions() {
    let mut counts = Counts::default();
    for algorithm in algorithms().iter().filter(|algorithm| algorithm.kind() == Kind::Window) {
        let text = format!(
            r#"
            duration = "20s"
            tcp = {{ timestamps = true, min_rto = "10ms", window = 20 }}
            [dumbbell]
            rate = "4mbit"
            delay = "20ms"
            queue = "500p"
            changes = [{{ at = "3s", delay = "1s" }}, {{ at = "9s", delay = "20ms" }}, {{ at = "13s", delay = "1s" }}]
            [[flow]]
            controller = "{}"
            [[cbr]]
            rate = "100kbit"
            "#,
            algorithm.name
        );
        let network = scenario(&text, 1);
        counts.add(&check(&network, 1));
    }
    assert!(counts.undo > 10, "{counts:?}");
}

/// The seed is part of the settings: another one changes UDT's random decreases.
#[test]
fn another_seed_changes_the_outputs() {
    let network = rough(tcp(""), "udt", packets(8));
    let record = check(&network, 1);
    let simulation = Simulation::new(&network, 1, &Options::default()).unwrap();
    let settings = simulation.settings(0).unwrap();
    let spec = Spec::parse("udt").unwrap();
    let mut other = settings;
    other.seed ^= 1;
    assert!(replay(spec.controller(&other), &record).is_err());
}
