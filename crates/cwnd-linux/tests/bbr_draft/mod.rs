//! The test cases of appendix A of draft-ietf-ccwg-bbr-06 with `bbr3` in the kernel: `make
//! bench-bbr` runs them and writes a table of `docs/bbr.md`. The checks are those of the simulated
//! runs. The kernel gives the events, the window, the pacing rate and the state. The rest of the
//! model is that of the controller of crate `cwnd` with the same events, whose answers are compared
//! with the kernel's.

#[path = "../../../cwnd-sim/tests/bbr_draft/cases.rs"]
mod cases;

use cases::{CASES, Case, Received, Rounds, Run, Step, Wrong};
use cwnd::controllers::Bbr3;
use cwnd::controllers::bbr3::{Aging, State};
use cwnd::delivery::LossSample;
use cwnd::{Controller, Event, Packets, Rate, Settings, Spec, Time};
use cwnd_linux::bpf::event::{self, Kind};
use cwnd_linux::bpf::{self, Recording, Trace};
use cwnd_linux::run::{Backend, RunOutcome, run};
use cwnd_sim::scenario::Scenario;
use nix::time::{ClockId, clock_gettime};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Bytes of a packet on the wire.
const PACKET: f64 = 1500.0;
/// Largest relative difference of an answer of the kernel from that of the controller.
const BOUND: f64 = bpf::BOUND;
/// The largest number of runs of a case.
const RUNS: u32 = 10;
const STATES: [State; 7] = [
    State::Startup,
    State::Drain,
    State::Down,
    State::Cruise,
    State::Refill,
    State::Up,
    State::ProbeRtt,
];

fn monotonic() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("a clock");
    Duration::from(now).as_nanos() as u64
}

/// Runs a scenario with `bbr3` in the kernel. Returns the events, and the time on the kernel's clock
/// at which the run began.
fn events(case: &Case, run_number: u32) -> (RunOutcome, Vec<event::Event>, u64) {
    // A connection keeps a name for a while after the run.
    let name = format!("{}_{run_number}_{:x}", &case.name[..3], std::process::id());
    let instance = bpf::load(&Spec::parse("bbr3").unwrap(), Some(&name), false).unwrap();
    let text = case.text.replace("\"bbr3\"", &format!("\"kernel:{name}\""));
    let network = Scenario::from_toml(&text, case.name).unwrap().network(1).unwrap();
    let mut trace = Trace::new(&instance).unwrap();
    let (ended, mut begin) = (AtomicBool::new(false), u64::MAX);
    let (outcome, events) = thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut events = Vec::new();
            while !ended.load(Ordering::Relaxed) {
                trace.read(Duration::from_millis(4), &mut events).unwrap();
            }
            assert_eq!(trace.missed().unwrap(), 0, "{}: events were lost", case.name);
            events
        });
        let outcome = run(&network, 1, Backend::Linux, |done| {
            let elapsed = done * network.duration.as_nanos() as f64;
            begin = begin.min(monotonic() - elapsed as u64);
            true
        });
        ended.store(true, Ordering::Relaxed);
        (outcome, reader.join().unwrap())
    });
    bpf::unload(&name).unwrap();
    (outcome.unwrap().unwrap(), events, begin)
}

/// The steps of the kernel's controller.
struct Replay {
    bbr: Bbr3,
    rounds: Rounds,
    /// The state of the last rate sample.
    sent: LossSample,
    steps: Vec<Step>,
    /// When a close decision was taken otherwise than by the controller of crate `cwnd`, which ends
    /// the steps: the model is unknown from there on.
    parted: Option<f64>,
}

impl Replay {
    fn push(&mut self, at: Time, event: &Event, kernel: &event::Event) {
        let Some(whole) = kernel.whole.filter(|_| self.parted.is_none()) else { return };
        self.bbr.on(Time::from_nanos(kernel.time), event);
        let mut round_start = false;
        let received = match *event {
            Event::Acked(acked) => {
                round_start = self.rounds.begins(&acked);
                if let Some(sample) = acked.delivery {
                    self.sent.lost = sample.lost;
                    self.sent.in_flight = sample.in_flight;
                    self.sent.application_limited = sample.application_limited;
                }
                Received::Acked(acked)
            }
            Event::Lost(lost) => {
                let mut sample = self.sent;
                sample.lost += u64::from(lost.packets);
                Received::Lost(lost.packets, sample)
            }
            Event::Timeout(_) => Received::Timeout,
            Event::Undo => Received::Undo,
            _ => Received::Other,
        };
        let state = STATES.into_iter().find(|state| *state as u32 == whole.state).expect("a state");
        if let Some(last) = self.steps.last() {
            self.rounds.change(last.state, state);
        }
        let mut output = self.bbr.output();
        let (window, pace) = (event::packets(kernel.after), event::per_second(whole.pace));
        let expected = output.pace.map_or(0.0, Rate::as_per_sec);
        let differs = |found: f64, expected: f64| (found - expected).abs() > BOUND * expected;
        if state != self.bbr.state()
            || differs(window, output.window.get())
            || differs(pace, expected)
        {
            assert!(whole.close > 0, "the answers differ at {at:?}: {kernel:?}");
            self.parted = Some(at.as_secs());
            return;
        }
        (output.window, output.pace) = (Packets::new(window), Some(Rate::per_sec(pace)));
        self.steps.push(Step::new(at, received, round_start, (output, state), &self.bbr));
    }
}

/// Returns the steps of a connection.
fn replay(events: &[event::Event], begin: u64) -> Replay {
    let first = events.iter().find(|event| event.kind == Kind::Begin).expect("a connection");
    let mut settings = Settings::default();
    settings.packet = first.packet_bytes;
    settings.initial_window = Packets::new(f64::from(first.packets));
    settings.seed = first.whole.map_or(0, |whole| whole.seed);
    let mut replay = Replay {
        bbr: Bbr3::new(Aging::Quiche, &settings),
        rounds: Rounds::default(),
        sent: LossSample::new(),
        steps: Vec::new(),
        parted: None,
    };
    let mut recording = Recording::new(false);
    for event in events.iter().filter(|event| event.connection == first.connection) {
        let at = Time::from_nanos(event.time.saturating_sub(begin));
        recording.push(event, |entry| replay.push(at, &entry.event, event));
    }
    replay
}

/// Returns the row of a case in the document. The kernel draws the waits of `bbr3`: a case whose
/// network changes at the time of a state may need several runs. So does one that fails where the
/// emulator was late, or where the model is unknown.
fn row(case: &Case) -> String {
    let network = Scenario::from_toml(case.text, case.name).unwrap().network(1).unwrap();
    let mut run = 1;
    let (measured, parted) = loop {
        let (outcome, events, begin) = events(case, run);
        let replay = replay(&events, begin);
        let (limit, parted) = (outcome.limit, replay.parted);
        let result = (case.check)(&Run::new(&network, PACKET, outcome.records, replay.steps));
        let wrong = match result {
            Ok(measured) => break (measured, parted),
            Err(wrong) => wrong,
        };
        eprintln!("{}, run {run}: {wrong} {parted:?} {limit:?}", case.name);
        let again = matches!(wrong, Wrong::NotExercised(_)) || limit.is_some() || parted.is_some();
        if !again || run == RUNS {
            break (wrong.to_string(), parted);
        }
        run += 1;
    };
    let until = parted.map_or_else(|| "–".into(), |at| format!("{at:.1} s"));
    format!("| {} | {measured} | {run} | {until} |\n", case.title().0)
}

/// Writes the table of the document. `CASES` has the numbers of the cases to print instead, such as
/// `A.3 A.10`.
#[test]
#[ignore = "takes 13 minutes of real time or more, and writes docs/bbr.md"]
fn report() {
    let only = std::env::var("CASES").ok();
    let selected = |case: &&Case| {
        let mut numbers = only.iter().flat_map(|only| only.split(' '));
        only.is_none() || numbers.any(|number| number == case.title().0)
    };
    let rows = CASES.iter().filter(selected).map(|case| {
        let row = row(case);
        eprint!("{row}");
        row
    });
    let rows = rows.collect::<String>();
    if only.is_none() {
        let head = "| case | measured | runs | parted at |\n|---|---|--:|--:|\n";
        cases::write_table("kernel", &(head.to_owned() + &rows));
    }
}
