//! Test cases of appendix A of draft-ietf-ccwg-bbr-06 (`validation/bbr`) over QUIC. The checks of
//! simulated TCP read each event and the model of cwnd's `bbr3` in noq: `cargo test -p cwnd-quic-sim
//! --test all bbr_draft -- --ignored` runs them and writes a table of `docs/bbr.md`. Coarser checks
//! read the state, the window, the pacing rate and the packets in flight, also of noq's own BBRv3.

#[path = "../../cwnd-sim/tests/bbr_draft/cases.rs"]
mod cases;
#[path = "../../cwnd-sim/tests/bbr_draft/double.rs"]
mod double;

use cases::Wrong;
use cwnd::controllers::bbr3::State;
use cwnd::{AnyController, MakeController, Settings};
use cwnd_quic_sim::noq::Scenario;
use cwnd_sim::{Options, Simulation};
use double::{Double, FAULTS, Fault};
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
        let metrics = self.inner.metrics();
        let step = Step {
            at: 0.0,
            state: state_of_noq(self.inner.as_ref()),
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

struct Recording {
    steps: Steps,
    start: Arc<OnceLock<Instant>>,
}

impl ControllerFactory for Recording {
    fn build(self: Arc<Self>, now: Instant, mtu: u16) -> Box<dyn Controller> {
        self.start.get_or_init(|| now);
        let inner = Arc::new(Bbr3Config::default()).build(now, mtu);
        Box::new(Recorded { inner, last: None, steps: self.steps.clone() })
    }
}

/// Returns a case with its flow over noq, until `end`.
fn over_quic(text: &str, controller: &str, end: Option<&str>) -> String {
    let quic = "[[flow]]\nprotocol = \"quic\"\nstack = \"noq\"\n\
                quic = { receive_window = \"8mb\", mtu_discovery = false }";
    let text = text.replace("[[flow]]", quic).replace("\"bbr3\"", &format!("\"{controller}\""));
    let lines = text.lines().map(|line| match end.filter(|_| line.starts_with("duration")) {
        Some(end) => format!("duration = \"{end}\"\n"),
        None => format!("{line}\n"),
    });
    lines.collect()
}

/// Runs a case with noq's own BBRv3.
fn run_own(text: &str, end: &str) -> Vec<Step> {
    let (steps, start) = (Steps::default(), Arc::new(OnceLock::new()));
    let (seen, began) = (steps.clone(), start.clone());
    let config = move |side: Side| {
        let mut config = TransportConfig::default();
        config.send_window(64_000_000).stream_receive_window(8_000_000_u32.into());
        if side == Side::Client {
            let (steps, start) = (seen.clone(), began.clone());
            config.congestion_controller_factory(Arc::new(Recording { steps, start }));
        }
        config
    };
    let text = over_quic(text, "own:reno", Some(end));
    Scenario::from_toml(&text).unwrap().transport(config).run().unwrap();
    let start = *start.get().expect("a controller");
    let steps = steps.lock().unwrap();
    let step = |&(at, step): &(Instant, Step)| Step { at: (at - start).as_secs_f64(), ..step };
    steps.iter().map(step).collect()
}

/// Makes doubles of cwnd's `bbr3`.
#[derive(Debug)]
struct Make {
    fault: Fault,
    steps: Arc<Mutex<Vec<cases::Step>>>,
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

/// Bytes of a UDP payload, and of a packet on the wire.
const PAYLOAD: f64 = 1200.0;
const PACKET: f64 = 1228.0;

/// Runs a case with a double of cwnd's `bbr3` in noq.
fn run(text: &str, end: Option<&str>, fault: Fault) -> cases::Run {
    // A controller of this name is not in the registry.
    let text = over_quic(text, "test:bbr3", end);
    let scenario = cwnd_sim::scenario::Scenario::from_toml(&text, "case").unwrap();
    let network = scenario.network(1).unwrap();
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
    cases::Run::new(&network, PACKET, records, steps)
}

/// Runs a case until `end`, and keeps of the steps what the coarser checks read.
fn run_coarse(text: &str, end: &str, fault: Fault) -> Vec<Step> {
    let steps = run(text, Some(end), fault).steps.into_iter();
    let acked = steps.filter_map(|step| Some((*step.acked()?, step)));
    let step = |(acked, step): (cwnd::Acked, cases::Step)| Step {
        at: step.at,
        state: step.state,
        window: (PAYLOAD * step.window) as u64,
        pace: PAYLOAD * step.pace,
        in_flight: (PAYLOAD * f64::from(acked.in_flight)) as u64,
    };
    acked.map(step).collect()
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
    let Some((_, next)) = ended(stays, State::Startup).first().copied() else { return false };
    // The rate doubles for 0.25 s, and the three rounds take 0.07 s and more each.
    let found = (0.95..1.01).contains(&(next.pace / 0.495 / (20.0 * MBIT)));
    next.state == State::Drain && found && (0.45..0.65).contains(&next.at)
}

fn startup_loss(stays: &Stays) -> bool {
    let Some((_, next)) = ended(stays, State::Startup).first().copied() else { return false };
    next.state == State::Drain && (2.0..2.5).contains(&next.at)
}

fn drain_inflight(stays: &Stays) -> bool {
    let Some((drain, next)) = ended(stays, State::Drain).first().copied() else { return false };
    let above = drain.iter().filter(|step| step.in_flight > BDP).count();
    next.in_flight <= BDP + BDP / 20 && above + 2 >= drain.len()
}

fn drain_time(stays: &Stays) -> bool {
    let Some((_, next)) = ended(stays, State::Drain).first().copied() else { return false };
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
    let Some((startup, next)) = ended(stays, State::Startup).first().copied() else { return false };
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
    ended(stays, State::ProbeRtt).first().is_some_and(|(_, next)| next.state == State::Cruise)
}

/// The path does not bound the window.
fn no_bound(stays: &Stays) -> bool {
    stays.concat().iter().any(|step| step.window > 10 * BDP)
}

/// Losses end Up, although the application limits the sender.
fn up_loss(stays: &Stays) -> bool {
    let mut ups = ended(stays, State::Up);
    ups.retain(|(_, next)| next.at > 24.5);
    let ends = |&(up, next): &(&[Step], Step)| next.at - up[0].at.max(24.5) < 0.3;
    !ups.is_empty() && ups.iter().all(ends)
}

fn cruise_aggregation(stays: &Stays) -> bool {
    let mut cruises = stays.concat();
    cruises.retain(|step| step.state == State::Cruise && step.at > 5.0);
    // Two bandwidth-delay products of 50 Mb/s and 40 ms, and half an aggregate of 20 ms.
    let wide = cruises.iter().filter(|step| step.window > 560_000).count();
    let filled = cruises.iter().all(|step| step.pace > 0.95 * 50.0 * MBIT);
    !cruises.is_empty() && 2 * wide > cruises.len() && filled
}

fn slower(stays: &Stays) -> bool {
    let steps = stays.concat();
    let short = steps.iter().find(|step| step.at > 20.0 && step.pace < 50.0 * MBIT);
    let mut last = steps.iter().filter(|step| step.at > 33.0 && step.state == State::Cruise);
    short.is_some_and(|step| step.at < 24.0)
        && last.all(|step| (0.7..1.05).contains(&(step.pace / (10.0 * MBIT))))
}

/// inflight_longterm bounds the window in Cruise.
fn up_loss_longterm(stays: &Stays) -> bool {
    let mut cruises = stays.concat();
    cruises.retain(|step| step.at > 33.0 && step.state == State::Cruise);
    !cruises.is_empty() && cruises.iter().all(|step| step.window < BDP / 2)
}

/// The pacing rate falls below the bandwidth in Cruise.
fn cruise_slows(stays: &Stays) -> bool {
    let mut steps = stays.iter().filter(|stay| stay[0].state == State::Cruise).flat_map(|s| *s);
    steps.any(|step| step.at > 5.0 && step.pace < 0.9 * 50.0 * MBIT)
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

/// Cases with many packets, for `make test-quic`. A.15 is left out: noq finds the rate in some runs
/// only.
const LONG_CASES: &[Case] = &[
    ("A.6", file!("A06-up-loss"), "32s", up_loss, None),
    ("A.13", file!("A13-cruise-aggregation"), "10s", cruise_aggregation, Some(cruise_slows)),
    ("A.16", file!("A16-slower"), "36s", slower, None),
    ("A.21", file!("A21-up-loss-longterm"), "35s", up_loss_longterm, None),
];

fn stays(steps: &[Step]) -> Stays<'_> {
    steps.chunk_by(|a, b| a.state == b.state).collect()
}

/// Asserts that the checks of cases hold, or that noq differs as expected.
fn verify(cases: &[Case]) {
    let mut wrong = Vec::new();
    for &(number, text, end, check, differs) in cases {
        if !check(&stays(&run_coarse(text, end, Fault::None))) {
            wrong.push(number.to_owned());
        }
        let steps = run_own(text, end);
        let stays = stays(&steps);
        let expected = match differs {
            Some(differs) => !check(&stays) && differs(&stays),
            None => check(&stays),
        };
        if !expected {
            wrong.push(format!("{number} of noq"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}

#[test]
fn the_cases_of_the_draft_over_quic() {
    verify(CASES);
}

#[test]
#[ignore = "make test-quic: takes eight seconds"]
fn the_long_cases_of_the_draft_over_quic() {
    verify(LONG_CASES);
}

/// The ratio of the last pacing rate of the first Cruise to its first one.
fn kept(steps: &[Step]) -> f64 {
    let cruise = stays(steps).into_iter().find(|stay| stay[0].state == State::Cruise);
    let cruise = cruise.expect("Cruise");
    cruise[cruise.len() - 1].pace / cruise[0].pace
}

#[test]
fn noq_forgets_the_bandwidth_in_cruise() {
    let case = file!("A01-startup-plateau");
    let (cwnd, noq) = (kept(&run_coarse(case, "5s", Fault::None)), kept(&run_own(case, "5s")));
    assert!(cwnd > 0.999, "{cwnd}");
    assert!(noq < 0.93, "{noq}");
}

/// Writes the table of the document, after each case was run with its fault too.
#[test]
#[ignore = "make test-quic: takes 30 seconds, and writes docs/bbr.md"]
fn report() {
    let mut table = String::from("| case | measured |\n|---|---|\n");
    for (case, fault) in cases::CASES.iter().zip(FAULTS) {
        // A pause of the application in Refill.
        let text = case.text.replace("on = \"3.2s\"", "on = \"3.5s\"");
        let measured = match (case.check)(&run(&text, None, Fault::None)) {
            Ok(measured) => {
                let faulty = (case.check)(&run(&text, None, fault));
                assert!(matches!(faulty, Err(Wrong::Violated(_))), "{}: {faulty:?}", case.name);
                measured
            }
            Err(wrong) => wrong.to_string(),
        };
        writeln!(table, "| {} | {measured} |", case.title().0).unwrap();
    }
    cases::write_table("noq", &table);
}

/// The coarser checks fail for a double with the fault of the case.
#[test]
fn faults_over_quic() {
    let short = CASES.iter().filter(|case| ["1s", "2s", "3s", "60s"].contains(&case.2));
    for &(number, text, end, check, _) in short {
        let index = number[2..].parse::<usize>().unwrap() - 1;
        assert!(!check(&stays(&run_coarse(text, end, FAULTS[index]))), "{number}");
    }
}
