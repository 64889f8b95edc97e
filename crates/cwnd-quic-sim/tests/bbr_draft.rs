//! Test cases of appendix A of draft-ietf-ccwg-bbr-06 (`validation/bbr`) over QUIC: cwnd's `bbr3`
//! in noq, and noq's own BBRv3.

#[path = "../../cwnd-sim/tests/bbr_draft/cases.rs"]
mod cases;
#[path = "../../cwnd-sim/tests/bbr_draft/double.rs"]
mod double;

use cases::Run;
use cwnd::controllers::bbr3::State;
use cwnd::{AnyController, Controller as _, MakeController, Settings};
use cwnd_quic::noq::Adapter;
use cwnd_quic_sim::noq::Scenario;
use cwnd_sim::{Options, Simulation};
use double::{Double, Fault};
use noq_proto::congestion::{Bbr3Config, Controller, ControllerFactory, ControllerMetrics};
use noq_proto::{RttEstimator, Side, TransportConfig};
use std::fmt::{self, Write as _};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

/// Time between two steps that are recorded.
const STEP: Duration = Duration::from_millis(4);

/// A controller after an acknowledgement. Rates are in bytes per second.
#[derive(Clone, Copy, Debug)]
struct Step {
    at: f64,
    state: State,
    window: u64,
    pace: f64,
    in_flight: u64,
}

/// A controller that records its steps.
#[derive(Debug)]
struct Recorded {
    inner: Box<dyn Controller>,
    last: Option<Instant>,
    steps: Steps,
}

type Steps = Arc<Mutex<Vec<(Instant, Step)>>>;

/// Keeps a text until a field, which ends the formatting.
struct Head {
    text: String,
    end: &'static str,
}

impl fmt::Write for Head {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        if part == self.end { Err(fmt::Error) } else { self.text.write_str(part) }
    }
}

/// Returns the state of noq's controller, which only its debug output has.
fn state_of_noq(controller: &dyn Controller) -> State {
    let mut head = Head { text: String::new(), end: "undo_state" };
    let _ = write!(head, "{controller:?}");
    let (_, state) = head.text.rsplit_once("state: ").expect("a state");
    match state.trim_end_matches(", ") {
        "Startup" => State::Startup,
        "Drain" => State::Drain,
        "ProbeBw(Down)" => State::Down,
        "ProbeBw(Cruise)" => State::Cruise,
        "ProbeBw(Refill)" => State::Refill,
        "ProbeBw(Up)" => State::Up,
        "ProbeRtt" => State::ProbeRtt,
        other => panic!("state {other}"),
    }
}

/// Returns the state of cwnd's controller.
fn state_of_cwnd(adapter: &Adapter) -> State {
    let mut state = f64::NAN;
    adapter.controller().gauges(&mut |name, value| {
        if name == "state" {
            state = value;
        }
    });
    let states = [
        State::Startup,
        State::Drain,
        State::Down,
        State::Cruise,
        State::Refill,
        State::Up,
        State::ProbeRtt,
    ];
    states.into_iter().find(|each| f64::from(*each as u8) == state).expect("a state")
}

impl Controller for Recorded {
    fn on_sent(&mut self, now: Instant, bytes: u64, largest_pn: u64) {
        self.inner.on_sent(now, bytes, largest_pn);
    }

    fn on_packet_sent(&mut self, now: Instant, bytes: u16, pn: u64) {
        self.inner.on_packet_sent(now, bytes, pn);
    }

    fn on_cwnd_limited(&mut self) {
        self.inner.on_cwnd_limited();
    }

    fn on_ack(
        &mut self,
        now: Instant,
        sent: Instant,
        bytes: u64,
        pn: u64,
        app_limited: bool,
        rtt: &RttEstimator,
    ) {
        self.inner.on_ack(now, sent, bytes, pn, app_limited, rtt);
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, limited: bool, largest: Option<u64>) {
        self.inner.on_end_acks(now, in_flight, limited, largest);
        if self.last.is_some_and(|last| now < last + STEP) {
            return;
        }
        self.last = Some(now);
        // Only a box gives its type.
        let copy = self.inner.clone_box().into_any();
        let state = match copy.downcast::<Adapter>() {
            Ok(adapter) => state_of_cwnd(&adapter),
            Err(_) => state_of_noq(self.inner.as_ref()),
        };
        let metrics = self.inner.metrics();
        let step = Step {
            at: 0.0,
            state,
            window: self.window(),
            pace: metrics.pacing_rate.map_or(f64::NAN, |rate| rate as f64),
            in_flight,
        };
        self.steps.lock().unwrap().push((now, step));
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        persistent: bool,
        ecn: bool,
        lost_bytes: u64,
        largest_lost: u64,
    ) {
        self.inner.on_congestion_event(now, sent, persistent, ecn, lost_bytes, largest_lost);
    }

    fn on_packet_lost(&mut self, lost_bytes: u16, pn: u64, now: Instant) {
        self.inner.on_packet_lost(lost_bytes, pn, now);
    }

    fn on_spurious_congestion_event(&mut self) {
        self.inner.on_spurious_congestion_event();
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.inner.on_mtu_update(new_mtu);
    }

    fn on_ack_frequency_update(&mut self, threshold: u64, delay: Duration) {
        self.inner.on_ack_frequency_update(threshold, delay);
    }

    fn window(&self) -> u64 {
        self.inner.window()
    }

    fn metrics(&self) -> ControllerMetrics {
        self.inner.metrics()
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        let inner = self.inner.clone_box();
        Box::new(Recorded { inner, last: self.last, steps: self.steps.clone() })
    }

    fn initial_window(&self) -> u64 {
        self.inner.initial_window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn std::any::Any> {
        self
    }
}

/// Whose BBRv3 runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whose {
    Cwnd,
    Noq,
}

struct Recording {
    whose: Whose,
    steps: Steps,
    start: Arc<OnceLock<Instant>>,
}

impl ControllerFactory for Recording {
    fn build(self: Arc<Self>, now: Instant, mtu: u16) -> Box<dyn Controller> {
        self.start.get_or_init(|| now);
        let inner = match self.whose {
            Whose::Cwnd => cwnd_quic::noq::factory("bbr3").unwrap().build(now, mtu),
            Whose::Noq => Arc::new(Bbr3Config::default()).build(now, mtu),
        };
        Box::new(Recorded { inner, last: None, steps: self.steps.clone() })
    }
}

/// Runs the flow of a scenario over QUIC.
fn run(text: &str, whose: Whose) -> Vec<Step> {
    let quic =
        "[[flow]]\nprotocol = \"quic\"\nstack = \"noq\"\nquic = { receive_window = \"8mb\" }";
    let text = text.replace("[[flow]]", quic).replace("\"bbr3\"", "\"own:reno\"");
    let (steps, start) = (Steps::default(), Arc::new(OnceLock::new()));
    let (seen, began) = (steps.clone(), start.clone());
    let config = move |side: Side| {
        let mut config = TransportConfig::default();
        config.send_window(64_000_000).stream_receive_window(8_000_000_u32.into());
        if side == Side::Client {
            let (steps, start) = (seen.clone(), began.clone());
            config.congestion_controller_factory(Arc::new(Recording { whose, steps, start }));
        }
        config
    };
    Scenario::from_toml(&text).unwrap().transport(config).run().unwrap();
    let start = *start.get().expect("a controller");
    let steps = steps.lock().unwrap();
    let step = |&(at, step): &(Instant, Step)| Step { at: (at - start).as_secs_f64(), ..step };
    steps.iter().map(step).collect()
}

/// Bytes per second of a rate in Mb/s.
const MBIT: f64 = 1e6 / 8.0;
/// The bandwidth-delay product of most cases in bytes.
const BDP: u64 = 100_000;

type Stays<'a> = Vec<&'a [Step]>;

/// Returns the stays of a state that ends, each with the first step of the next state.
fn ended<'a>(stays: &Stays<'a>, state: State) -> Vec<(&'a [Step], Step)> {
    let pairs = stays.windows(2).filter(|pair| pair[0][0].state == state);
    pairs.map(|pair| (pair[0], pair[1][0])).collect()
}

fn seconds(stay: &[Step], next: Step) -> f64 {
    next.at - stay[0].at
}

fn startup_plateau(stays: &Stays) -> bool {
    let (_, next) = ended(stays, State::Startup)[0];
    next.state == State::Drain && (0.95..1.01).contains(&(next.pace / 0.495 / (20.0 * MBIT)))
}

fn startup_loss(stays: &Stays) -> bool {
    let (_, next) = ended(stays, State::Startup)[0];
    next.state == State::Drain && (2.0..2.5).contains(&next.at)
}

fn drain_inflight(stays: &Stays) -> bool {
    let (drain, next) = ended(stays, State::Drain)[0];
    let above = drain.iter().filter(|step| step.in_flight > BDP).count();
    next.in_flight <= BDP + BDP / 20 && above + 2 >= drain.len()
}

fn drain_time(stays: &Stays) -> bool {
    let (_, next) = ended(stays, State::Drain)[0];
    next.state == State::Down && next.in_flight > BDP + BDP / 2
}

fn up_plateau(stays: &Stays) -> bool {
    let mut ups = ended(stays, State::Up);
    ups.retain(|(_, next)| next.state != State::ProbeRtt);
    let ends = |&(up, next): &(&[Step], Step)| {
        next.state == State::Down && (0.1..0.5).contains(&seconds(up, next))
    };
    ups.len() >= 2 && ups.iter().all(ends)
}

fn up_limited(stays: &Stays) -> bool {
    let mut ups = ended(stays, State::Up);
    ups.retain(|(up, _)| up[0].at > 8.0);
    !ups.is_empty() && ups.iter().all(|(_, next)| next.state == State::ProbeRtt)
}

fn down_inflight(stays: &Stays) -> bool {
    let mut downs = ended(stays, State::Down);
    downs.retain(|(_, next)| next.state == State::Cruise);
    downs.len() >= 2 && downs.iter().all(|(_, next)| next.in_flight <= BDP)
}

fn down_time(stays: &Stays) -> bool {
    let downs = ended(stays, State::Down);
    let Some((down, next)) = downs.iter().find(|(down, _)| down[0].at > 4.0) else { return false };
    next.state == State::Refill && (2.0..3.1).contains(&seconds(down, *next))
}

fn probe_rtt(stays: &Stays) -> bool {
    let probes = ended(stays, State::ProbeRtt);
    let held = |&(probe, next): &(&[Step], Step)| {
        let fits = probe.last().is_some_and(|step| step.window <= BDP / 2);
        fits && next.state == State::Cruise && (0.2..0.3).contains(&seconds(probe, next))
    };
    let mut waits = probes.windows(2).map(|pair| pair[1].0[0].at - pair[0].1.at);
    probes.len() >= 2 && probes.iter().all(held) && waits.all(|wait| (4.9..7.5).contains(&wait))
}

fn idle(stays: &Stays) -> bool {
    let pauses = stays.concat().windows(2).filter(|pair| pair[1].at - pair[0].at > 5.0).count();
    pauses >= 2 && stays.iter().all(|stay| stay[0].state != State::ProbeRtt)
}

fn startup_aggregation(stays: &Stays) -> bool {
    let (startup, next) = ended(stays, State::Startup)[0];
    let found = next.pace / 0.495 / (50.0 * MBIT);
    let wide = startup.last().is_some_and(|step| step.window > 500_000);
    (0.95..1.5).contains(&found) && wide && next.at < 1.1
}

fn sub_packet(stays: &Stays) -> bool {
    let steps = stays.concat();
    let mut late = steps.iter().filter(|step| step.at > 25.0);
    let rate = 0.064 * MBIT;
    late.all(|step| {
        let paced = (0.8..1.1).contains(&(step.pace / rate));
        step.window >= 4 * 1200 && (step.state != State::Cruise || paced)
    })
}

fn policer(stays: &Stays) -> bool {
    let steps = stays.concat();
    let cruises = steps.iter().filter(|step| step.state == State::Cruise && step.at > 2.0);
    let paces: Vec<_> = cruises.map(|step| step.pace / (10.0 * MBIT)).collect();
    (0.8..1.1).contains(&(paces.iter().sum::<f64>() / paces.len() as f64))
}

fn startup_probe_rtt(stays: &Stays) -> bool {
    let probes = ended(stays, State::ProbeRtt);
    !probes.is_empty() && probes.iter().all(|(_, next)| next.state == State::Startup)
}

fn refill_limited(stays: &Stays) -> bool {
    let refills = ended(stays, State::Refill);
    let up = !refills.is_empty() && refills.iter().all(|(_, next)| next.state == State::Up);
    up && stays.concat().iter().all(|step| step.window < 4 * BDP)
}

/// Down ends with Cruise, long before its wait.
fn down_drains(stays: &Stays) -> bool {
    let downs = ended(stays, State::Down);
    let down = downs.iter().find(|(down, _)| down[0].at > 4.0);
    down.is_some_and(|(down, next)| next.state == State::Cruise && seconds(down, *next) < 2.0)
}

/// ProbeRTT ends with Cruise, although the application has limited the sender since the start.
fn probe_rtt_cruise(stays: &Stays) -> bool {
    ended(stays, State::ProbeRtt)[0].1.state == State::Cruise
}

/// The path does not bound the window.
fn no_bound(stays: &Stays) -> bool {
    stays.concat().iter().any(|step| step.window > 10 * BDP)
}

type Check = fn(&Stays) -> bool;

/// The cases: the number, the file, the end of the run, the check, and what noq's own BBRv3 does
/// where it fails the check.
type Case = (&'static str, &'static str, &'static str, Check, Option<Check>);

macro_rules! file {
    ($name:literal) => {
        include_str!(concat!("../../../validation/bbr/", $name, ".toml"))
    };
}

const CASES: &[Case] = &[
    ("A.1", file!("A01-startup-plateau"), "1s", startup_plateau, None),
    ("A.2", file!("A02-startup-loss"), "3s", startup_loss, None),
    ("A.3", file!("A03-drain-inflight"), "1s", drain_inflight, None),
    ("A.4", file!("A04-drain-time"), "2s", drain_time, None),
    ("A.5", file!("A05-up-plateau"), "10s", up_plateau, None),
    ("A.7", file!("A07-up-limited"), "18s", up_limited, None),
    ("A.8", file!("A08-down-inflight"), "8s", down_inflight, None),
    ("A.9", file!("A09-down-time"), "9s", down_time, Some(down_drains)),
    ("A.10", file!("A10-probe-rtt"), "17s", probe_rtt, None),
    ("A.11", file!("A11-idle"), "25s", idle, None),
    ("A.12", file!("A12-startup-aggregation"), "2s", startup_aggregation, None),
    ("A.14", file!("A14-sub-packet"), "60s", sub_packet, None),
    ("A.17", file!("A17-policer"), "10s", policer, None),
    ("A.20", file!("A20-startup-probe-rtt"), "12s", startup_probe_rtt, Some(probe_rtt_cruise)),
    ("A.22", file!("A22-refill-limited"), "25s", refill_limited, Some(no_bound)),
];

/// Runs a case until `end`.
fn steps(text: &str, end: &str, whose: Whose) -> Vec<Step> {
    let lines = text.lines().map(|line| match line.starts_with("duration") {
        true => format!("duration = \"{end}\"\n"),
        false => format!("{line}\n"),
    });
    run(&lines.collect::<String>(), whose)
}

#[test]
fn the_cases_of_the_draft_over_quic() {
    let mut wrong = Vec::new();
    for &(number, text, end, check, differs) in CASES {
        for whose in [Whose::Cwnd, Whose::Noq] {
            let steps = steps(text, end, whose);
            let stays: Stays = steps.chunk_by(|a, b| a.state == b.state).collect();
            let expected = match differs.filter(|_| whose == Whose::Noq) {
                Some(differs) => !check(&stays) && differs(&stays),
                None => check(&stays),
            };
            if !expected {
                wrong.push(format!("{number} {whose:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}

/// The ratio of the last pacing rate of the first Cruise to its first one.
fn kept(whose: Whose) -> f64 {
    let steps = steps(file!("A01-startup-plateau"), "5s", whose);
    let mut stays = steps.chunk_by(|a, b| a.state == b.state);
    let cruise = stays.find(|stay| stay[0].state == State::Cruise).expect("Cruise");
    cruise[cruise.len() - 1].pace / cruise[0].pace
}

#[test]
fn noq_forgets_the_bandwidth_in_cruise() {
    let (cwnd, noq) = (kept(Whose::Cwnd), kept(Whose::Noq));
    assert!(cwnd > 0.999, "{cwnd}");
    assert!(noq < 0.93, "{noq}");
}

/// Bytes of a packet on the wire, without a search for larger ones.
const PACKET: f64 = 1228.0;

/// Makes a double.
struct Make {
    fault: Fault,
    steps: Arc<Mutex<Vec<cases::Step>>>,
}

impl fmt::Debug for Make {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a double")
    }
}

impl fmt::Display for Make {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("double")
    }
}

impl MakeController for Make {
    fn controller(&self, settings: &Settings) -> AnyController {
        AnyController::whole(Double::new(settings, self.fault, self.steps.clone()))
    }
}

/// Runs a case with a double in noq.
fn run_double(text: &str, fault: Fault) -> Run {
    let quic = "[[flow]]\nprotocol = \"quic\"\nstack = \"noq\"\n\
                quic = { receive_window = \"8mb\", mtu_discovery = false }";
    // A controller of this name is not in the registry.
    let text = text.replace("[[flow]]", quic).replace("\"bbr3\"", "\"test:bbr3\"");
    let network =
        cwnd_sim::scenario::Scenario::from_toml(&text, "case").unwrap().network(1).unwrap();
    let make = Arc::new(Make { fault, steps: Arc::default() });
    let options = Options {
        custom: Some(&|_| Some(make.clone())),
        quic: Some(&cwnd_quic_sim::connect),
        ..Options::default()
    };
    let mut simulation = Simulation::new(&network, 1, &options).unwrap();
    simulation.run();
    let records = simulation.finish();
    let steps = std::mem::take(&mut *make.steps.lock().unwrap());
    Run::new(&network, PACKET, records, steps)
}

#[test]
fn exact() {
    for case in cases::CASES {
        let began = Instant::now();
        let run = run_double(case.text, Fault::None);
        println!(
            "{} {:?} {:?} {}",
            case.name,
            (case.check)(&run),
            began.elapsed(),
            run.steps.len()
        );
    }
}
