//! BBR version 3: the test cases of the appendix of draft-ietf-ccwg-bbr (commit 4ce5e87) on
//! simulated paths, with the conventions of Linux. Each test names its cases. The cases that need a
//! certain sequence of acknowledgements are unit tests of the controller
//! (`crates/cwnd/src/controllers/bbr3/tests.rs`).

use crate::common::{loss, run_with, scenario, simulate, with_custom};
use cwnd::controllers::Bbr3;
use cwnd::controllers::bbr3::{Aging, State};
use cwnd::{AnyController, Controller, Cut, Event, Needs, Output, Settings, Time};
use cwnd_sim::record::Records;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// Bits of a packet on the wire.
const PACKET: f64 = 8.0 * 1500.0;

/// The controller after an acknowledgement.
#[derive(Clone, Debug)]
struct Step {
    at: f64,
    state: State,
    in_flight: f64,
    window: f64,
    /// Pacing rate in packets per second.
    pace: f64,
    gauges: BTreeMap<&'static str, f64>,
}

impl Step {
    fn max_bw(&self) -> f64 {
        self.gauges["max_bw"] * PACKET
    }

    fn bdp(&self) -> f64 {
        self.gauges["bandwidth"] * self.gauges["min_rtt"]
    }
}

#[derive(Clone, Debug)]
struct Observed {
    bbr: Bbr3,
    steps: Arc<Mutex<Vec<Step>>>,
}

impl Controller for Observed {
    fn on(&mut self, now: Time, event: &Event) {
        self.bbr.on(now, event);
        if let Event::Acked(acked) = event {
            let output = self.bbr.output();
            let mut gauges = BTreeMap::new();
            self.bbr.gauges(&mut |name, value| {
                gauges.insert(name, value);
            });
            self.steps.lock().unwrap().push(Step {
                at: now.as_secs(),
                state: self.bbr.state(),
                in_flight: f64::from(acked.in_flight),
                window: output.window.get(),
                pace: output.pace.map_or(0.0, |pace| pace.as_per_sec()),
                gauges,
            });
        }
    }

    fn output(&self) -> Output {
        self.bbr.output()
    }

    fn needs(&self) -> Needs {
        self.bbr.needs()
    }

    fn take_cut(&mut self) -> Option<Cut> {
        self.bbr.take_cut()
    }
}

/// Runs one flow; `link` has the keys of the dumbbell, and `flow` further keys of the flow. Hosts
/// have no processing time, which would give a smallest round-trip time at a random time.
fn observe(seconds: u32, link: &str, flow: &str) -> (Records, Vec<Step>) {
    let text = format!(
        "duration = \"{seconds}s\"\nwarmup = \"5s\"\n[dumbbell]\n{link}\n\
         [tcp]\nconventions = \"linux\"\noverhead = \"0s\"\n\
         [[flow]]\ncontroller = \"test:Bbr3\"\n{flow}\n"
    );
    let seen: Arc<Mutex<Vec<Step>>> = Arc::default();
    let steps = seen.clone();
    let observed = move |settings: &Settings| {
        AnyController::whole(Observed {
            bbr: Bbr3::new(Aging::Quiche, settings),
            steps: steps.clone(),
        })
    };
    let records = with_custom(observed, |options| run_with(&scenario(&text, 1), 1, options));
    let steps = std::mem::take(&mut *seen.lock().unwrap());
    (records, steps)
}

/// Several flows of the registry's controller.
fn flows(count: u32, link: &str) -> Records {
    let text = format!(
        "duration = \"60s\"\nwarmup = \"10s\"\n[dumbbell]\n{link}\n[tcp]\nconventions = \"linux\"\n\
         [[flow]]\ncontroller = \"bbr3\"\ncount = {count}\nstart = \"0s..500ms\"\n"
    );
    simulate(&text, 1)
}

/// The stays in states: the steps from the first in a state to the first in the next.
fn stays(steps: &[Step]) -> Vec<&[Step]> {
    steps.chunk_by(|a, b| a.state == b.state).collect()
}

fn states(steps: &[Step]) -> Vec<State> {
    stays(steps).iter().map(|stay| stay[0].state).collect()
}

/// The stays in `state` that end, each with the first step of the next one.
fn ended(steps: &[Step], state: State) -> Vec<(&[Step], &Step)> {
    let stays = stays(steps);
    let pairs = stays.windows(2).filter(|pair| pair[0][0].state == state);
    pairs.map(|pair| (pair[0], &pair[1][0])).collect()
}

fn length(stay: &[Step], next: &Step) -> f64 {
    next.at - stay[0].at
}

fn after(steps: &[Step], at: f64) -> &[Step] {
    &steps[steps.partition_point(|step| step.at < at)..]
}

const PLAIN: &str = "rate = \"20mbit\"\ndelay = \"20ms\"\nqueue = \"2bdp\"";
const LIMITED: &str = "source = { kind = \"limited\", rate = \"5mbit\" }";

/// Exiting STARTUP on Bandwidth Plateau; Exiting DRAIN Based on Inflight.
#[test]
fn startup_finds_the_bandwidth_and_drain_the_product() {
    // On the shortest path BBRInflight(1.0) is 25 packets, three times the product: after losses no
    // more are in flight.
    for (rate, delay, queue) in
        [(0.5, 100.0, 4), (20.0, 20.0, 4), (100.0, 0.5, 12), (1000.0, 5.0, 4)]
    {
        let link = format!("rate = \"{rate}mbit\"\ndelay = \"{delay}ms\"\nqueue = \"{queue}bdp\"");
        let (_, steps) = observe(6, &link, "");
        let (startup, first) = ended(&steps, State::Startup)[0];
        let found = first.max_bw() / 1e6 / rate;
        assert!((0.98..1.02).contains(&found), "{link}: {found}");
        assert!(
            length(startup, first) < 20.0 * (2.0 * delay / 1e3 + PACKET / rate / 1e6),
            "{link}"
        );
        // Where three quanta are more than two BDP, Drain may end with the acknowledgement that
        // begins it.
        let (quanta, bdp) = (3.0 * rate * 1e3, rate * 1e6 * 2.0 * delay / 1e3);
        if quanta > 2.0 * bdp {
            continue;
        }
        assert_eq!(states(&steps)[..2], [State::Startup, State::Drain], "{link}");
        let (drain, next) = ended(&steps, State::Drain)[0];
        let gain = drain[0].pace / drain[0].gauges["bandwidth"];
        assert!((gain - 0.99 * 0.5).abs() < 1e-9, "{link}: {gain}");
        // BBRInflight(1.0) is at least three quanta of 1 ms or two packets.
        let quantum = (drain.last().unwrap().pace * 1e-3).max(2.0);
        assert!(next.in_flight <= (next.bdp() + 0.5).max(3.0 * quantum), "{link}: {next:?}");
    }
}

/// Never Exiting PROBE_UP (or STARTUP) When Application-Limited With No Loss; Entering and Exiting
/// PROBE_RTT During STARTUP.
#[test]
fn startup_goes_on_while_the_application_limits_the_sender() {
    let (_, steps) = observe(45, PLAIN, LIMITED);
    let states = states(&steps);
    assert!(states.len() >= 9, "{states:?}");
    for pair in states.chunks(2) {
        let expected = [State::Startup, State::ProbeRtt];
        assert_eq!(pair, &expected[..pair.len()]);
    }
}

/// Exiting STARTUP on Loss When Application-Limited.
#[test]
fn losses_end_startup_even_if_the_application_limits_the_sender() {
    let link = format!("{PLAIN}\nloss = 0.15");
    let (_, steps) = observe(6, &link, "source = { kind = \"limited\", rate = \"10mbit\" }");
    assert_eq!(states(&steps)[..2], [State::Startup, State::Drain]);
    let (startup, next) = ended(&steps, State::Startup)[0];
    assert!(startup.iter().all(|step| step.gauges["inflight_longterm"].is_nan()));
    assert!(next.gauges["inflight_longterm"].is_finite());
}

/// Exiting PROBE_UP on Bandwidth Plateau; Exiting PROBE_DOWN on Inflight.
#[test]
fn the_cycle_probes_and_drains() {
    let (records, steps) = observe(60, PLAIN, "");
    assert_eq!(records.links[0].drops, 0);
    let ups = ended(&steps, State::Up);
    assert!(ups.len() >= 15, "{}", ups.len());
    for (up, next) in ups {
        if next.state == State::ProbeRtt {
            continue;
        }
        assert_eq!(next.state, State::Down);
        let rounds = length(up, next) / next.gauges["min_rtt"];
        assert!((3.0..7.0).contains(&rounds), "{rounds}");
        let gain = up[0].pace / up[0].gauges["bandwidth"];
        assert!((gain - 0.99 * 1.25).abs() < 1e-9, "{gain}");
    }
    for (down, next) in ended(&steps, State::Down) {
        if next.state == State::ProbeRtt {
            continue;
        }
        assert_eq!(next.state, State::Cruise);
        assert!(next.in_flight <= next.bdp() + 0.5, "{next:?}");
        let gain = down[0].pace / down[0].gauges["bandwidth"];
        assert!((gain - 0.99 * 0.9).abs() < 1e-9, "{gain}");
    }
    assert!(records.links[0].utilization > 0.93, "{}", records.links[0].utilization);
}

/// Entering and Exiting PROBE_RTT.
#[test]
fn probe_rtt_comes_every_five_seconds() {
    // A lower sample would postpone the next one.
    let (_, steps) = observe(60, PLAIN, "tcp.overhead = \"0s\"");
    let probes = ended(&steps, State::ProbeRtt);
    assert!((9..=12).contains(&probes.len()), "{}", probes.len());
    for (probe, next) in &probes {
        assert_eq!(next.state, State::Cruise);
        let seconds = length(probe, next);
        assert!((0.2..0.4).contains(&seconds), "{seconds}");
        let last = probe.last().unwrap();
        assert!(last.window <= 0.5 * last.bdp() + 1e-6, "{last:?}");
        assert!(next.window >= 1.9 * next.bdp(), "{next:?}");
    }
    for pair in probes.windows(2) {
        let seconds = pair[1].0[0].at - pair[0].1.at;
        assert!((5.0..5.2).contains(&seconds), "{seconds}");
    }
}

/// Skipping PROBE_RTT Due to Application-Limited Sending.
#[test]
fn an_idle_sender_needs_no_probe_rtt() {
    let source = "source = { kind = \"on_off\", on = \"4s\", off = \"6s\" }";
    let (_, steps) = observe(60, PLAIN, source);
    let states = states(&steps);
    assert!(states.iter().filter(|state| **state == State::Up).count() >= 5, "{states:?}");
    assert!(!states.contains(&State::ProbeRtt), "{states:?}");
}

/// Achieving Expected STARTUP Bandwidth, and Expected Cruise Bandwidth, on a Link With Aggregation.
#[test]
fn aggregated_acknowledgements_enlarge_the_window() {
    let link = "rate = \"50mbit\"\ndelay = \"20ms\"\nqueue = \"4bdp\"\nback = { ack_aggregation = \"20ms\" }";
    let (records, steps) = observe(60, link, "");
    let (startup, drain) = ended(&steps, State::Startup)[0];
    // The rate of k + 1 aggregates in k intervals between them, k of which are in a round-trip
    // time.
    let found = drain.max_bw() / 50e6;
    assert!((0.98..1.5).contains(&found), "{found}");
    let bdp = 50e6 * 0.04 / PACKET;
    assert!(startup.last().unwrap().window > 2.0 * bdp);
    // An aggregate has the packets of 20 ms.
    let aggregate = 50e6 * 0.02 / PACKET;
    for step in after(&steps, 5.0).iter().filter(|step| step.state == State::Cruise) {
        let extra = step.gauges["extra_acked"];
        assert!((0.5..3.0).contains(&(extra / aggregate)), "{extra}");
    }
    let full = after(&steps, 5.0).iter().filter(|step| step.state == State::Cruise);
    assert!(full.filter(|step| step.window > 2.0 * bdp + 0.5 * aggregate).count() > 100);
    assert!(records.links[0].utilization > 0.92, "{}", records.links[0].utilization);
}

/// Correctly Managing Sub-Packet BDPs.
#[test]
fn less_than_a_packet_in_flight_fills_the_link() {
    let link = "rate = \"64kbit\"\ndelay = \"20ms\"\nqueue = \"20p\"";
    let (records, steps) = observe(60, link, "");
    let steps = after(&steps, 10.0);
    assert!(steps.iter().any(|step| step.state == State::Cruise));
    assert!(
        steps.iter().filter(|step| step.state != State::ProbeRtt).all(|step| step.window >= 4.0)
    );
    for step in steps.iter().filter(|step| step.state == State::Cruise) {
        let paced = step.pace * PACKET / 64e3;
        assert!((0.9..1.1).contains(&paced), "{paced}");
    }
    assert!(records.links[0].utilization > 0.95, "{}", records.links[0].utilization);
}

/// Returns when max_bw exceeds `after_it` on a link whose rate increases at 20 s; it is less than
/// `before` until then.
fn increase_found_at(link: &str, before: f64, after_it: f64) -> f64 {
    let (_, steps) = observe(60, link, "");
    assert!(after(&steps, 19.0)[0].max_bw() < before);
    after(&steps, 20.0).iter().find(|step| step.max_bw() > after_it).unwrap().at
}

/// A flow whose flight ends between two paced packets is not idle, and probes.
#[test]
fn more_bandwidth_is_found_with_less_than_a_packet_in_flight() {
    let link = "rate = \"1mbit\"\ndelay = \"3ms\"\nqueue = \"20p\"\nchanges = [{ at = \"20s\", rate = \"10mbit\" }]";
    let found = increase_found_at(link, 1.1e6, 9.5e6);
    assert!(found < 50.0, "{found}");
}

/// Increasing Bandwidth 10x and Ensuring Full Bandwidth is Reached.
#[test]
fn ten_times_the_bandwidth_is_found() {
    let link = "rate = \"10mbit\"\ndelay = \"20ms\"\nqueue = \"300p\"\nchanges = [{ at = \"20s\", rate = \"100mbit\" }]";
    let found = increase_found_at(link, 10.2e6, 98e6);
    assert!(found < 40.0, "{found}");
}

/// Decreasing Bandwidth 10x and Ensuring Max Bandwidth Adapts Down.
#[test]
fn a_tenth_of_the_bandwidth_is_found() {
    let link = "rate = \"100mbit\"\ndelay = \"20ms\"\nqueue = \"300p\"\nchanges = [{ at = \"20s\", rate = \"10mbit\" }]";
    let (_, steps) = observe(60, link, "");
    let before = after(&steps, 19.0)[0].max_bw();
    assert!((98e6..102e6).contains(&before), "{before}");
    // Each round with losses keeps 0.7 of it (BBR.Beta). A probe, whose time is random, may discard
    // it after the second one.
    let short = |step: &Step| step.gauges["bw_shortterm"] * PACKET < 0.7_f64.powi(2) * 101e6;
    let quick = after(&steps, 20.0).iter().find(|step| short(step)).unwrap().at;
    assert!(quick < 24.0, "{quick}");
    let found = after(&steps, 20.0).iter().find(|step| step.max_bw() < 10.5e6).unwrap();
    assert!(found.at < 40.0, "{}", found.at);
    // At least one cycle ends in between.
    let downs = ended(after(&steps, 20.0), State::Up);
    assert!(downs.iter().filter(|(_, next)| next.at <= found.at).count() >= 1);
}

/// Handling Token Bucket Policers.
#[test]
fn a_policer_leads_to_few_losses() {
    let link = "rate = \"100mbit\"\ndelay = \"20ms\"\nqueue = \"1000p\"\npolicer = { rate = \"10mbit\", burst = \"100kb\" }";
    let (records, steps) = observe(60, link, "");
    assert!(steps.iter().any(|step| step.gauges["bw_shortterm"].is_finite()));
    assert!(steps.iter().any(|step| step.gauges["inflight_shortterm"].is_finite()));
    let rate = records.links[0].utilization * 10.0;
    assert!((0.8..1.02).contains(&rate), "{rate}");
    assert!(loss(&records) < 0.05, "{}", loss(&records));
}

/// Handling Spurious Fast Recovery: packets late by 20 ms of 40.
#[test]
fn reordering_does_not_reduce_the_rate() {
    let link = format!("{PLAIN}\nreorder = {{ probability = \"1%\", delay = \"20ms\" }}");
    let (records, steps) = observe(60, &link, "");
    assert!(records.links[0].utilization > 0.9, "{}", records.links[0].utilization);
    let last = after(&steps, 59.0)[0].max_bw();
    // Late packets count with those that arrived in order.
    assert!((19.6e6..21.2e6).contains(&last), "{last}");
}

/// Handling Loss During PROBE_UP After inflight_longterm is Set.
#[test]
fn losses_bound_the_packets_in_flight() {
    let link = "rate = \"20mbit\"\ndelay = \"20ms\"\nqueue = \"0.1bdp\"";
    let (records, steps) = observe(60, link, "");
    let bdp = 20e6 * 0.04 / PACKET;
    for step in after(&steps, 5.0) {
        let longterm = step.gauges["inflight_longterm"];
        assert!((0.7 * bdp..1.5 * bdp).contains(&longterm), "{step:?}");
    }
    assert!(loss(&records) < 0.02, "{}", loss(&records));
    assert!(records.links[0].utilization > 0.85, "{}", records.links[0].utilization);
}

/// Section 1: what version 1 does not do. Four flows in a short buffer.
#[test]
fn several_flows_in_a_short_buffer_lose_little() {
    let records = flows(4, "rate = \"20mbit\"\ndelay = \"20ms\"\nqueue = \"0.5bdp\"");
    assert!(loss(&records) < 0.02, "{}", loss(&records));
    assert!(records.links[0].utilization > 0.95, "{}", records.links[0].utilization);
}
