//! The test cases of appendix A of draft-ietf-ccwg-bbr-06 as scenarios (`validation/bbr`), run with
//! `bbr3`. Each check holds, and fails for a test double with a fault. Its result is a row of
//! `docs/bbr.md`, which
//! `cargo test -p cwnd-sim --test all bbr_draft::report -- --ignored` writes.

use crate::common::{gauge, loss, run_with, scenario, simulate, with_custom};
use cwnd::controllers::Bbr3;
use cwnd::controllers::bbr3::{Aging, State};
use cwnd::delivery::LossSample;
use cwnd::{
    Acked, AnyController, Controller, Cut, Dur, Event, Limit, Needs, Output, Packets, Rate,
    Settings, Time,
};
use cwnd_sim::record::Records;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// Bits of a packet on the wire.
const PACKET: f64 = 8.0 * 1500.0;
const MBIT: f64 = 1e6 / PACKET;
const LOSS_THRESH: f64 = 0.02;
const BETA: f64 = 0.7;
/// A pacing rate over the gain and the bandwidth.
const PACING_MARGIN: f64 = 0.99;
/// What encloses the table in the document.
const BEGIN: &str = "<!-- cases -->\n";
const END: &str = "<!-- end of cases -->\n";

/// What is wrong with a test double.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    ShortPlateau,
    NoLosses,
    NoUndo,
    NoProbeRtt,
    NoApplication,
    NoWindowLimit,
    LittleInFlight,
    NoGain,
    NoExtraAcked,
    SmallWindow,
    NoIdleTime,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Fault::None => "none",
            Fault::ShortPlateau => "counts a round of a plateau twice",
            Fault::NoLosses => "ignores losses",
            Fault::NoUndo => "restores nothing after a spurious loss",
            Fault::NoProbeRtt => "never enters ProbeRTT",
            Fault::NoApplication => "ignores that the application limits it",
            Fault::NoWindowLimit => "ignores that the window limits it",
            Fault::LittleInFlight => "halves the packets in flight",
            Fault::NoGain => "paces at the bandwidth in all states after Startup",
            Fault::NoExtraAcked => "bounds the window at two BDP",
            Fault::SmallWindow => "has a window of two packets",
            Fault::NoIdleTime => "leaves idle times out of its rate samples",
        })
    }
}

/// What the controller received.
#[derive(Clone, Copy, Debug)]
enum Received {
    Acked(Acked),
    /// Packets declared lost, with the state of the one sent last.
    Lost(u32, LossSample),
    Timeout,
    Undo,
    Other,
}

/// The controller after an event. Rates are in packets per second.
#[derive(Clone, Copy, Debug)]
struct Step {
    at: f64,
    received: Received,
    state: State,
    /// Whether the acknowledgement begins a packet-timed round.
    round_start: bool,
    window: f64,
    pace: f64,
    bandwidth: f64,
    max_bw: f64,
    min_rtt: f64,
    extra_acked: f64,
    /// Infinite where unset.
    bw_shortterm: f64,
    inflight_shortterm: f64,
    inflight_longterm: f64,
}

impl Step {
    fn acked(&self) -> Option<&Acked> {
        if let Received::Acked(acked) = &self.received { Some(acked) } else { None }
    }

    /// Packets in flight after an acknowledgement.
    fn in_flight(&self) -> f64 {
        self.acked().map_or(f64::NAN, |acked| acked.in_flight.into())
    }

    /// The delivery rate of a reliable sample.
    fn rate(&self) -> Option<f64> {
        self.acked()?.delivery?.rate().map(Rate::as_per_sec)
    }

    fn application_limited(&self) -> bool {
        self.acked().and_then(|acked| acked.delivery).is_some_and(|rs| rs.application_limited)
    }

    fn bdp(&self) -> f64 {
        self.bandwidth * self.min_rtt
    }

    /// BBRInflight(1.0): three quanta of 1 ms are at least six packets.
    fn inflight(&self) -> f64 {
        self.bdp().max(3.0 * (self.pace * 1e-3).max(2.0))
    }

    fn headroom(&self) -> f64 {
        (0.85 * self.inflight_longterm).max(4.0)
    }

    /// The pacing gain that the rates show.
    fn gain(&self) -> f64 {
        self.pace / self.bandwidth / PACING_MARGIN
    }

    /// BBR.bw_shortterm, BBR.inflight_shortterm and BBR.inflight_longterm.
    fn model(&self) -> [f64; 3] {
        [self.bw_shortterm, self.inflight_shortterm, self.inflight_longterm]
    }
}

/// `bbr3` with a fault, which records its steps.
#[derive(Clone, Debug)]
struct Double {
    bbr: Bbr3,
    fault: Fault,
    /// BBR.next_round_delivered.
    next_round: u64,
    steps: Arc<Mutex<Vec<Step>>>,
}

impl Double {
    /// The event that a controller with the fault sees.
    fn seen(&self, now: Time, event: &Event) -> Option<Event> {
        let mut event = *event;
        match (&mut event, self.fault) {
            (Event::Lost(_) | Event::Timeout(_), Fault::NoLosses) => return None,
            (Event::Undo, Fault::NoUndo) => return None,
            (Event::Acked(acked), fault) => match fault {
                Fault::NoLosses => {
                    acked.delivery.iter_mut().for_each(|sample| sample.lost = 0);
                }
                // Each sample is the smallest one.
                Fault::NoProbeRtt => {
                    acked.rtt = Some(Dur::from_secs(0.04 - 1e-6 * now.as_secs()));
                }
                Fault::NoApplication => {
                    acked.limit = Limit::Pacing;
                    acked.delivery.iter_mut().for_each(|sample| sample.application_limited = false);
                }
                Fault::NoIdleTime => {
                    let limited = acked.delivery.as_mut().filter(|rs| rs.application_limited);
                    if let Some(sample) = limited {
                        let busy = Dur::from_secs(0.01 * sample.interval().as_secs());
                        (sample.send_elapsed, sample.ack_elapsed) = (busy, busy);
                    }
                }
                Fault::NoWindowLimit => acked.limit = Limit::Pacing,
                Fault::LittleInFlight => acked.in_flight /= 2,
                _ => {}
            },
            _ => {}
        }
        Some(event)
    }

    /// Whether an acknowledgement begins a round: UpdateRound.
    fn begins_round(&mut self, acked: &Acked) -> bool {
        let Some(sample) = acked.delivery else { return false };
        let begins = sample.prior_delivered >= self.next_round;
        if begins {
            self.next_round = sample.prior_delivered + sample.delivered;
        }
        begins
    }

    /// A second round with the delivery rate of `acked`.
    fn repeat_round(&mut self, now: Time, acked: &Acked) {
        let mut again = *acked;
        (again.packets, again.credit) = (0, 0);
        if let Some(sample) = again.delivery.as_mut() {
            let packet = Dur::from_secs(sample.interval().as_secs() / sample.delivered as f64);
            (sample.send_elapsed, sample.ack_elapsed) = (packet, packet);
            sample.prior_delivered += sample.delivered;
            sample.delivered = 1;
        }
        self.next_round += 1;
        self.bbr.on(now, &Event::Acked(again));
    }

    fn step(&self, now: Time, received: Received, round_start: bool) -> Step {
        let output = self.output();
        let mut step = Step {
            at: now.as_secs(),
            received,
            state: self.bbr.state(),
            round_start,
            window: output.window.get(),
            pace: output.pace.map_or(f64::NAN, Rate::as_per_sec),
            bandwidth: f64::NAN,
            max_bw: f64::NAN,
            min_rtt: f64::NAN,
            extra_acked: f64::NAN,
            bw_shortterm: f64::INFINITY,
            inflight_shortterm: f64::INFINITY,
            inflight_longterm: f64::INFINITY,
        };
        self.bbr.gauges(&mut |name, value| {
            let bound = if value.is_nan() { f64::INFINITY } else { value };
            match name {
                "bandwidth" => step.bandwidth = value,
                "max_bw" => step.max_bw = value,
                "min_rtt" => step.min_rtt = value,
                "extra_acked" => step.extra_acked = value,
                "bw_shortterm" => step.bw_shortterm = bound,
                "inflight_shortterm" => step.inflight_shortterm = bound,
                "inflight_longterm" => step.inflight_longterm = bound,
                _ => {}
            }
        });
        step
    }
}

impl Controller for Double {
    fn on(&mut self, now: Time, event: &Event) {
        let before = self.bbr.state();
        if let Some(seen) = self.seen(now, event) {
            self.bbr.on(now, &seen);
        }
        let mut round_start = false;
        let received = match *event {
            Event::Acked(acked) => {
                round_start = self.begins_round(&acked);
                if round_start && self.fault == Fault::ShortPlateau {
                    self.repeat_round(now, &acked);
                }
                Received::Acked(acked)
            }
            Event::Lost(lost) => Received::Lost(lost.packets, lost.delivery.unwrap_or_default()),
            Event::Timeout(_) => Received::Timeout,
            Event::Undo => Received::Undo,
            _ => Received::Other,
        };
        let state = self.bbr.state();
        let starts = matches!(state, State::Down | State::Refill | State::Up | State::ProbeRtt);
        if let Received::Acked(Acked { delivery: Some(sample), .. }) = received
            && starts
            && state != before
        {
            self.next_round = sample.prior_delivered + sample.delivered;
        }
        let step = self.step(now, received, round_start);
        self.steps.lock().unwrap().push(step);
    }

    fn output(&self) -> Output {
        let mut output = self.bbr.output();
        let (mut bandwidth, mut min_rtt) = (0.0, 0.0);
        self.bbr.gauges(&mut |name, value| match name {
            "bandwidth" => bandwidth = value,
            "min_rtt" => min_rtt = value,
            _ => {}
        });
        let bound = match self.fault {
            Fault::NoExtraAcked if bandwidth > 0.0 => 2.0 * bandwidth * min_rtt,
            Fault::SmallWindow => 2.0,
            _ => f64::INFINITY,
        };
        output.window = Packets::new(output.window.get().min(bound));
        if self.fault == Fault::NoGain && self.bbr.state() != State::Startup {
            output.pace = Some(Rate::per_sec(bandwidth));
        }
        output
    }

    fn needs(&self) -> Needs {
        self.bbr.needs()
    }

    fn take_cut(&mut self) -> Option<Cut> {
        self.bbr.take_cut()
    }
}

/// A run of one flow.
struct Run {
    records: Records,
    /// Packets per second of the link.
    rate: f64,
    steps: Vec<Step>,
}

impl Run {
    fn new(text: &str, fault: Fault) -> Self {
        let seen: Arc<Mutex<Vec<Step>>> = Arc::default();
        let steps = seen.clone();
        let make = move |settings: &Settings| {
            let bbr = Bbr3::new(Aging::Quiche, settings);
            let steps = steps.clone();
            AnyController::whole(Double { bbr, fault, next_round: 0, steps })
        };
        // A controller of this name is not in the registry.
        let network = scenario(&text.replace("\"bbr3\"", "\"test:bbr3\""), 1);
        let records = with_custom(make, |options| run_with(&network, 1, options));
        let steps = std::mem::take(&mut *seen.lock().unwrap());
        let rate = network.links[0].rate.unwrap_or(f64::INFINITY) / PACKET;
        Run { records, rate, steps }
    }

    fn after(&self, at: f64) -> &[Step] {
        &self.steps[self.steps.partition_point(|step| step.at < at)..]
    }

    fn utilization(&self) -> f64 {
        self.records.links[0].utilization
    }
}

/// A stay in a state that ends, with the first step of the next state.
#[derive(Clone, Copy, Debug)]
struct Stay<'a> {
    steps: &'a [Step],
    next: &'a Step,
}

impl Stay<'_> {
    fn first(&self) -> &Step {
        &self.steps[0]
    }

    fn seconds(&self) -> f64 {
        self.next.at - self.first().at
    }

    /// Rounds that begin after the first step, with that of the next state.
    fn rounds(&self) -> usize {
        let later = self.steps[1..].iter().chain([self.next]);
        later.filter(|step| step.round_start).count()
    }

    /// Rounds at the end whose rates were less than 25 % above the last one that was not, as
    /// CheckFullBWReached counts them from the rate `full_bw` on; one that the application limits
    /// does not count.
    fn plateau(&self, mut full_bw: f64) -> usize {
        let mut count = 0;
        for step in self.steps[1..].iter().chain([self.next]) {
            let Some(rate) = step.rate().filter(|_| step.round_start) else { continue };
            if step.application_limited() {
                continue;
            }
            if rate >= 1.25 * full_bw {
                (full_bw, count) = (rate, 0);
            } else {
                count += 1;
            }
        }
        count
    }
}

/// The stays that end.
fn stays(steps: &[Step]) -> Vec<Stay<'_>> {
    let chunks: Vec<_> = steps.chunk_by(|a, b| a.state == b.state).collect();
    chunks.windows(2).map(|pair| Stay { steps: pair[0], next: &pair[1][0] }).collect()
}

fn ended(steps: &[Step], state: State) -> Vec<Stay<'_>> {
    stays(steps).into_iter().filter(|stay| stay.first().state == state).collect()
}

/// The measured values, or what is wrong.
type Checked = Result<String, String>;

macro_rules! ensure {
    ($condition:expr, $($message:tt)+) => {
        let holds = $condition;
        if !holds {
            return Err(format!($($message)+));
        }
    };
}

/// The first of several, of which there must be one.
fn first<T: Copy>(values: &[T], what: &str) -> Result<T, String> {
    values.first().copied().ok_or_else(|| format!("no {what}"))
}

fn range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((f64::INFINITY, 0.0), |(low, high), value| (low.min(value), high.max(value)))
}

fn near(value: f64, expected: f64) -> bool {
    (value - expected).abs() < 1e-6 * expected
}

fn startup_plateau(run: &Run) -> Checked {
    let startup = first(&ended(&run.steps, State::Startup), "end of Startup")?;
    let (rounds, next) = (startup.plateau(0.0), startup.next);
    ensure!(rounds == 3, "{rounds} rounds without growth");
    ensure!(next.state == State::Drain, "{:?} follows", next.state);
    let found = next.max_bw / run.rate;
    ensure!((0.98..1.02).contains(&found), "max_bw is {found} of the rate");
    Ok(format!(
        "3 rounds without growth, then Drain at {:.3} s; max_bw {found:.3} of the rate",
        next.at
    ))
}

fn startup_loss(run: &Run) -> Checked {
    let startup = first(&ended(&run.steps, State::Startup), "end of Startup")?;
    let next = startup.next;
    ensure!(next.state == State::Drain, "{:?} follows", next.state);
    ensure!(next.application_limited(), "the application does not limit it");
    let plateau = startup.plateau(0.0);
    ensure!(plateau == 0, "{plateau} rounds that the application does not limit");
    let sample = next.acked().and_then(|acked| acked.delivery).ok_or("no sample")?;
    let rate = sample.lost as f64 / f64::from(sample.in_flight);
    ensure!(rate > LOSS_THRESH, "a loss rate of {rate}");
    let set = |step: &Step| step.inflight_longterm.is_finite();
    ensure!(!startup.steps.iter().any(set) && set(next), "inflight_longterm");
    Ok(format!(
        "Drain at {:.3} s with a loss rate of {:.0} %, and no other round that counts",
        next.at,
        100.0 * rate
    ))
}

fn drain_inflight(run: &Run) -> Checked {
    let drain = first(&ended(&run.steps, State::Drain), "end of Drain")?;
    for step in drain.steps {
        ensure!(near(step.gain(), 0.5), "a pacing gain of {}", step.gain());
        ensure!(
            step.acked().is_none() || step.in_flight() > step.inflight(),
            "{} in flight in Drain, BBRInflight(1.0) is {}",
            step.in_flight(),
            step.inflight()
        );
    }
    let next = drain.next;
    ensure!(next.in_flight() <= next.inflight(), "{} in flight", next.in_flight());
    ensure!(matches!(next.state, State::Down | State::Cruise), "{:?} follows", next.state);
    Ok(format!(
        "gain 0.5; {:?} with {} in flight, BBRInflight(1.0) {:.1}",
        next.state,
        next.in_flight(),
        next.inflight()
    ))
}

fn drain_time(run: &Run) -> Checked {
    let drain = first(&ended(&run.steps, State::Drain), "end of Drain")?;
    let next = drain.next;
    let (rounds, left) = (drain.rounds(), next.in_flight() / next.inflight());
    ensure!(left > 1.0, "{left} of BBRInflight(1.0) in flight");
    ensure!(rounds == 4, "{rounds} rounds");
    ensure!(next.state == State::Down, "{:?} follows", next.state);
    Ok(format!("Down with the 4th round, {left:.2} of BBRInflight(1.0) in flight"))
}

fn up_plateau(run: &Run) -> Checked {
    ensure!(run.records.links[0].drops == 0, "losses");
    let mut ups = ended(&run.steps, State::Up);
    ups.retain(|up| up.next.state != State::ProbeRtt);
    ensure!(ups.len() >= 5, "{} probes", ups.len());
    for up in &ups {
        let rounds = up.plateau(up.first().rate().unwrap_or(0.0));
        ensure!(rounds == 3, "{rounds} rounds without growth");
        ensure!(up.next.state == State::Down, "{:?} follows", up.next.state);
        ensure!(near(up.first().gain(), 1.25), "a pacing gain of {}", up.first().gain());
    }
    Ok(format!("gain 1.25, 3 rounds without growth, then Down, in each of {} probes", ups.len()))
}

/// The stays in Up that end with a loss, and the step before.
fn up_losses(run: &Run) -> Vec<(&Step, &Step)> {
    let ups = ended(&run.steps, State::Up).into_iter();
    let lost = ups.filter(|up| matches!(up.next.received, Received::Lost(..)));
    lost.filter_map(|up| Some((up.steps.last()?, up.next))).collect()
}

fn up_loss(run: &Run) -> Checked {
    let (before, after) = first(&up_losses(run), "loss that ends Up")?;
    let Received::Lost(_, sample) = after.received else { unreachable!() };
    ensure!(sample.application_limited, "the application does not limit it");
    let rate = sample.lost as f64 / f64::from(sample.in_flight);
    ensure!(rate > LOSS_THRESH, "a loss rate of {rate}");
    ensure!(after.state == State::Down, "{:?} follows", after.state);
    // HandleInflightTooHigh reduces it only if the application does not limit the flight.
    ensure!(
        after.inflight_longterm.to_bits() == before.inflight_longterm.to_bits(),
        "inflight_longterm changes to {}",
        after.inflight_longterm
    );
    Ok(format!(
        "Down at {:.3} s with a loss rate of {:.1} %; inflight_longterm stays",
        after.at,
        100.0 * rate
    ))
}

fn up_limited(run: &Run) -> Checked {
    let startups = ended(&run.steps, State::Startup);
    ensure!(startups.len() == 1, "{} ends of Startup", startups.len());
    let mut ups = ended(run.after(12.0), State::Up);
    ups.retain(|up| {
        up.steps.iter().all(|step| step.application_limited() || step.rate().is_none())
    });
    ensure!(ups.len() >= 5, "{} probes that the application limits", ups.len());
    for up in &ups {
        ensure!(up.next.state == State::ProbeRtt, "{:?} follows", up.next.state);
    }
    let (shortest, longest) = range(ups.iter().map(Stay::seconds));
    Ok(format!("{} probes of {shortest:.1} to {longest:.1} s, until ProbeRTT", ups.len()))
}

fn down_inflight(run: &Run) -> Checked {
    let mut downs = ended(&run.steps, State::Down);
    downs.retain(|down| down.next.state == State::Cruise);
    ensure!(downs.len() >= 3, "{} ends with Cruise", downs.len());
    let mut headrooms = 0;
    for down in &downs {
        let next = down.next;
        let bdp = (next.max_bw * next.min_rtt).max(next.inflight());
        let most = bdp.min(next.headroom());
        headrooms += usize::from(next.headroom() < bdp);
        ensure!(next.in_flight() <= most + 0.5, "{} in flight, not {most}", next.in_flight());
        for step in down.steps.iter().filter(|step| step.acked().is_some()) {
            ensure!(near(step.gain(), 0.9), "a pacing gain of {}", step.gain());
            let bdp = (step.max_bw * step.min_rtt).max(step.inflight());
            ensure!(
                step.in_flight() > bdp.min(step.headroom()) - 0.5,
                "{} in flight in Down at {:.3} s",
                step.in_flight(),
                step.at
            );
        }
    }
    ensure!(headrooms > 0, "the headroom never bounds it");
    Ok(format!(
        "gain 0.9; Cruise with at most BBRInflight(1.0) in flight, in {headrooms} of {} cases less \
         for the headroom",
        downs.len()
    ))
}

fn down_time(run: &Run) -> Checked {
    let downs = ended(run.after(4.0), State::Down);
    let down = first(&downs, "end of Down")?;
    let next = down.next;
    ensure!(next.state == State::Refill, "{:?} follows", next.state);
    ensure!((2.0..3.1).contains(&down.seconds()), "after {} s", down.seconds());
    let left = range(
        down.steps
            .iter()
            .filter(|s| s.acked().is_some())
            .map(|s| s.in_flight() / (s.max_bw * s.min_rtt)),
    );
    ensure!(left.0 > 1.0, "{} BDP in flight", left.0);
    Ok(format!("Refill after {:.2} s, at least {:.2} BDP in flight", down.seconds(), left.0))
}

fn probe_rtt(run: &Run) -> Checked {
    let probes = ended(&run.steps, State::ProbeRtt);
    ensure!(probes.len() >= 9, "{} probes", probes.len());
    for probe in &probes {
        let (last, next) = (probe.steps.last().unwrap_or(probe.next), probe.next);
        ensure!(last.window <= 0.5 * last.bdp() + 1e-6, "a window of {}", last.window);
        ensure!(probe.rounds() >= 1, "less than a round");
        // The wait begins when the packets in flight fit.
        let drained = probe.steps.iter().find(|step| step.in_flight() <= 0.5 * step.bdp());
        let held = next.at - drained.map_or(f64::NAN, |step| step.at);
        ensure!((0.2..0.3).contains(&held), "{held} s with half a BDP in flight");
        ensure!(next.state == State::Cruise, "{:?} follows", next.state);
        ensure!(next.window >= 1.9 * next.bdp(), "a window of {} after it", next.window);
    }
    let waits = || probes.windows(2).map(|pair| pair[1].first().at - pair[0].next.at);
    let (shortest, longest) = range(waits());
    ensure!((5.0..5.2).contains(&shortest) && longest < 5.2, "after {shortest} to {longest} s");
    let (low, high) = range(probes.iter().map(Stay::seconds));
    Ok(format!(
        "{} times, {shortest:.2} to {longest:.2} s after the last one, for {low:.2} to {high:.2} s \
         with half a BDP; then Cruise with the window before",
        probes.len()
    ))
}

fn idle(run: &Run) -> Checked {
    let probed = run.steps.iter().filter(|step| step.state == State::ProbeRtt).count();
    ensure!(probed == 0, "ProbeRTT");
    let pauses = run.steps.windows(2).filter(|pair| pair[1].at - pair[0].at > 5.0);
    let pauses = pauses.count();
    ensure!(pauses >= 4, "{pauses} idle periods of more than 5 s");
    let ups = ended(&run.steps, State::Up).len();
    ensure!(ups >= pauses, "{ups} probes for bandwidth");
    Ok(format!("no ProbeRTT after {pauses} idle periods of more than 5 s"))
}

/// Packets of an aggregate of acknowledgements.
const AGGREGATE: f64 = 50.0 * MBIT * 0.02;

fn startup_aggregation(run: &Run) -> Checked {
    let startup = first(&ended(&run.steps, State::Startup), "end of Startup")?;
    let found = startup.next.max_bw / run.rate;
    // The rate of k + 1 aggregates in k intervals between them, k of which are in a round-trip
    // time, is 1.5 of that of the link.
    ensure!((0.98..1.5).contains(&found), "max_bw is {found} of the rate");
    let last = startup.steps.last().ok_or("empty")?;
    let bdps = last.window / last.bdp();
    ensure!(bdps > 2.0 + 1e-6, "a window of {bdps} BDP");
    let extra = last.extra_acked / AGGREGATE;
    ensure!((0.5..1.5).contains(&extra), "extra_acked is {extra} aggregates");
    // Of a window of ten packets four doublings are the product, and a plateau has three rounds.
    let rounds = startup.rounds();
    ensure!(rounds <= 12, "{rounds} rounds");
    Ok(format!(
        "max_bw {found:.2} of the rate after {rounds} rounds, window {bdps:.2} BDP, extra_acked {extra:.2} \
         aggregates"
    ))
}

/// The number of the round of each acknowledgement, with its sample of UpdateACKAggregation and
/// BBR.extra_acked.
fn extra_acked(run: &Run) -> Vec<(usize, f64, &Step)> {
    let (mut round, mut start, mut delivered, mut samples) = (0, 0.0, 0.0, Vec::new());
    for pair in run.steps.windows(2) {
        let [before, step] = pair else { unreachable!() };
        let Some(acked) = step.acked() else { continue };
        round += usize::from(step.round_start);
        let mut expected = before.bandwidth * (step.at - start);
        if delivered <= expected {
            (delivered, start, expected) = (0.0, step.at, 0.0);
        }
        delivered += f64::from(acked.packets);
        samples.push((round, (delivered - expected).min(before.window), step));
    }
    samples
}

fn cruise_aggregation(run: &Run) -> Checked {
    let samples = extra_acked(run);
    let from = samples.partition_point(|(_, _, step)| step.at < 5.0);
    for (index, (round, sample, step)) in samples.iter().enumerate().skip(from) {
        ensure!(step.extra_acked >= sample - 1e-6, "a sample of {sample} above {step:?}");
        let recent = samples[..=index].iter().rev();
        // The filter keeps a sample for a round more than the draft's. ProbeRTT begins rounds of its
        // own.
        let recent: Vec<_> = recent.take_while(|(at, ..)| at + 11 > *round).collect();
        if recent.iter().any(|(_, _, step)| step.state == State::ProbeRtt) {
            continue;
        }
        let (_, largest) = range(recent.iter().map(|(_, sample, _)| *sample));
        ensure!(step.extra_acked <= largest + 1e-6, "no sample of {largest} in {step:?}");
    }
    let cruises: Vec<_> = run.after(5.0).iter().filter(|s| s.state == State::Cruise).collect();
    let (low, high) = range(cruises.iter().map(|step| step.extra_acked / AGGREGATE));
    ensure!(low > 0.5 && high < 1.5, "extra_acked is {low} to {high} aggregates");
    let wide = cruises.iter().filter(|step| step.window > 2.0 * step.bdp() + 0.5 * AGGREGATE);
    let wide = wide.count() as f64 / cruises.len() as f64;
    ensure!(wide > 0.5, "{wide} of the windows exceed 2 BDP and half an aggregate");
    let utilization = run.utilization();
    ensure!(utilization > 0.92, "a utilisation of {utilization}");
    Ok(format!(
        "extra_acked {low:.2} to {high:.2} aggregates, of the last ten rounds; in {:.0} % \
         of the steps the window exceeds 2 BDP by half an aggregate; utilisation {utilization:.3}",
        100.0 * wide
    ))
}

fn sub_packet(run: &Run) -> Checked {
    let steps = run.after(10.0);
    let (least, _) = range(steps.iter().map(|step| step.window));
    ensure!(near(least, 4.0), "the least window is {least}");
    let cruises = || steps.iter().filter(|step| step.state == State::Cruise);
    ensure!(cruises().count() > 0, "no Cruise");
    let (low, high) = range(cruises().map(|step| step.pace / (0.064 * MBIT)));
    ensure!(low > 0.9 && high < 1.1, "{low} to {high} of the rate in Cruise");
    let utilization = run.utilization();
    ensure!(utilization > 0.95, "a utilisation of {utilization}");
    Ok(format!(
        "least window {least:.0} packets, pacing rate {low:.2} to {high:.2} of the rate in \
         Cruise; utilisation {utilization:.3}"
    ))
}

fn faster(run: &Run) -> Checked {
    let ups = ended(run.after(20.0), State::Up);
    let full = |step: &Step| step.max_bw > 98.0 * MBIT;
    let up = ups.iter().find(|up| up.steps.iter().chain([up.next]).any(full));
    let up = up.ok_or("98 Mbit/s are not found")?;
    let bounds: Vec<_> = up.steps.iter().filter(|step| step.round_start).collect();
    let growth: Vec<_> = bounds
        .windows(2)
        .map(|pair| pair[1].inflight_longterm - pair[0].inflight_longterm)
        .collect();
    let doubles = |pair: &[f64]| pair[0] > 0.0 && (1.5..3.0).contains(&(pair[1] / pair[0]));
    let runs = growth.windows(2).map(doubles).collect::<Vec<_>>();
    let doublings = runs.split(|doubled| !doubled).map(<[bool]>::len).max().unwrap_or(0);
    ensure!(doublings >= 3, "{doublings} doublings in a row of {growth:.0?}");
    let found = run.after(20.0).iter().find(|step| full(step)).map_or(f64::NAN, |step| step.at);
    let since = run.after(20.0).iter().filter(|step| step.round_start && step.at < found);
    let rounds = since.filter(|step| step.at >= up.first().at).count();
    ensure!(rounds <= 20, "{rounds} rounds of Up");
    Ok(format!(
        "98 Mbit/s after {:.2} s, in {rounds} rounds of one Up; the growth of inflight_longterm \
         doubles {doublings} times in a row",
        found - 20.0
    ))
}

fn slower(run: &Run) -> Checked {
    let steps = run.after(20.0);
    let short = steps.iter().find(|step| step.bw_shortterm < 0.5 * 100.0 * MBIT);
    let short = short.ok_or("bw_shortterm stays")?;
    ensure!(short.at < 24.0, "bw_shortterm is reduced at {} s", short.at);
    // LossLowerBounds: to BBR.Beta, or to a rate of the round.
    let mut reductions = 0;
    for (index, pair) in steps.windows(2).enumerate() {
        let (before, after) = (pair[0].bw_shortterm.min(pair[0].max_bw), pair[1].bw_shortterm);
        if after >= before {
            continue;
        }
        let mut rates = steps[..index + 2].iter().rev().take(2000).filter_map(Step::rate);
        let is_latest = rates.any(|rate| near(rate, after));
        ensure!(near(after, BETA * before) || is_latest, "bw_shortterm from {before} to {after}");
        reductions += usize::from(!is_latest);
    }
    ensure!(reductions > 0, "bw_shortterm is never 0.7 of that before");
    let found = steps.iter().find(|step| step.max_bw < 10.5 * MBIT).ok_or("max_bw stays")?;
    let cycles = ended(steps, State::Up);
    let cycles = cycles.iter().filter(|up| up.next.at <= found.at).count();
    ensure!((1..=2).contains(&cycles), "after {cycles} cycles");
    let last = run.steps.last().ok_or("empty")?.max_bw / (10.0 * MBIT);
    ensure!((0.98..1.05).contains(&last), "max_bw is {last} of the rate at the end");
    Ok(format!(
        "bw_shortterm below half after {:.2} s, {reductions} times 0.7 of that before; max_bw \
         {last:.2} of the new rate after {:.1} s, probes until then: {cycles}",
        short.at - 20.0,
        found.at - 20.0
    ))
}

fn policer(run: &Run) -> Checked {
    let short = |step: &&Step| step.bw_shortterm.is_finite() && step.inflight_shortterm.is_finite();
    let adapted = run.steps.iter().find(short).ok_or("the short-term model stays unset")?;
    let share = 10.0 * run.utilization();
    ensure!((0.8..1.02).contains(&share), "{share} of the token rate");
    let loss = loss(&run.records);
    ensure!(loss < 0.05, "a loss rate of {loss}");
    Ok(format!(
        "short-term model set at {:.2} s; {share:.2} of the token rate, {:.1} % lost",
        adapted.at,
        100.0 * loss
    ))
}

/// The undone recoveries of one loss: the steps before and after the loss and the undo.
fn undone(run: &Run) -> Vec<[&Step; 4]> {
    let (mut losses, mut undone) = (Vec::new(), Vec::new());
    for pair in run.steps.windows(2) {
        let [before, step] = pair else { unreachable!() };
        match step.received {
            Received::Acked(_) => {}
            Received::Lost(..) | Received::Timeout => losses.push([before, step]),
            Received::Undo => {
                if let [[saved, lost]] = losses[..] {
                    undone.push([saved, lost, before, step]);
                }
                losses.clear();
            }
            Received::Other => losses.clear(),
        }
    }
    undone
}

fn spurious(run: &Run) -> Checked {
    let undone = undone(run);
    let mut ups = 0;
    for [saved, lost, before, after] in &undone {
        let restored = saved.model().into_iter().zip(before.model()).zip(after.model());
        for ((saved, before), after) in restored {
            ensure!(after >= saved.max(before), "{after} restored at a saved {saved}");
        }
        let ended = saved.state == State::Up && lost.state == State::Down;
        let returns = ended && !matches!(before.state, State::Up | State::ProbeRtt);
        let expected = if returns { State::Refill } else { before.state };
        ensure!(after.state == expected, "{:?} follows", after.state);
        ups += usize::from(returns);
    }
    ensure!(ups > 0, "none of {} undone recoveries has ended Up", undone.len());
    Ok(format!(
        "{} undone, the model at least the saved one; {ups} had ended Up, and lead to Refill",
        undone.len()
    ))
}

fn startup_probe_rtt(run: &Run) -> Checked {
    let stays = stays(&run.steps);
    let states: Vec<_> = stays.iter().map(|stay| stay.first().state).collect();
    ensure!(states.len() >= 9, "{states:?}");
    for pair in states.chunks(2) {
        ensure!(pair == &[State::Startup, State::ProbeRtt][..pair.len()], "{states:?}");
    }
    let probes = ended(&run.steps, State::ProbeRtt);
    let (low, high) = range(probes.iter().map(Stay::seconds));
    Ok(format!("Startup after each of {} ProbeRTTs of {low:.2} to {high:.2} s", probes.len()))
}

/// HandleInflightTooHigh after a loss in Up.
fn up_loss_longterm(run: &Run) -> Checked {
    let losses = up_losses(run);
    let (mut reduced, mut bounded) = (Vec::new(), 0);
    for (before, after) in &losses {
        let Received::Lost(packets, sample) = after.received else { unreachable!() };
        ensure!(after.state == State::Down, "{:?} follows", after.state);
        ensure!(before.inflight_longterm.is_finite(), "inflight_longterm is not set");
        let size = f64::from(packets);
        let (previous, lost) = (f64::from(sample.in_flight) - size, sample.lost as f64 - size);
        let at_loss = previous + (LOSS_THRESH * previous - lost) / (1.0 - LOSS_THRESH);
        let least = BETA * before.bdp().min(before.window);
        let expected = at_loss.max(least);
        bounded += usize::from(least > at_loss);
        ensure!(
            near(after.inflight_longterm, expected),
            "inflight_longterm {}, not {expected}",
            after.inflight_longterm
        );
        reduced.push(after.inflight_longterm / before.inflight_longterm);
    }
    ensure!(losses.len() >= 3, "{} losses in Up", losses.len());
    let (low, high) = range(reduced.iter().copied());
    ensure!(low < 1.0, "{low} of inflight_longterm");
    ensure!(bounded > 0, "0.7 of the packets in flight is never the least");
    Ok(format!(
        "Down at once after {} losses, inflight_longterm times {low:.2} to {high:.2}, {bounded} times \
         0.7 min(BDP, w)",
        losses.len()
    ))
}

fn refill_limited(run: &Run) -> Checked {
    let refill = first(&ended(&run.steps, State::Refill), "end of Refill")?;
    let begin = refill.first();
    let next = refill.next;
    ensure!(next.state == State::Up, "{:?} follows", next.state);
    ensure!(next.application_limited(), "the application does not limit it");
    let rate = next.rate().unwrap_or(f64::NAN);
    ensure!(rate < 0.9 * begin.max_bw, "a rate of {}", rate / MBIT);
    ensure!(near(next.max_bw, begin.max_bw), "max_bw changes to {}", next.max_bw / MBIT);
    let up = first(&ended(run.after(next.at), State::Up), "end of Up")?;
    ensure!(up.next.state == State::Down, "{:?} follows", up.next.state);
    let plateau = up.plateau(up.first().rate().unwrap_or(0.0));
    ensure!(plateau == 3, "{plateau} rounds without growth");
    Ok(format!(
        "Up with a limited sample of {:.1} Mbit/s; max_bw stays {:.1} Mbit/s; Down after 3 rounds \
         without growth",
        rate / MBIT,
        next.max_bw / MBIT
    ))
}

/// A case of the appendix.
struct Case {
    /// The file in `validation/bbr`, without its ending.
    name: &'static str,
    text: &'static str,
    check: fn(&Run) -> Checked,
    /// A fault with which the check fails.
    fault: Fault,
}

impl Case {
    /// The number and the title in the first line of the file.
    fn title(&self) -> (&str, &str) {
        let line = self.text.lines().next().and_then(|line| line.strip_prefix("# Appendix "));
        let line = line.and_then(|line| line.strip_suffix('.'));
        line.and_then(|line| line.split_once(": ")).expect("the first line names the case")
    }

    /// The lines of a table of the file.
    fn table(&self, name: &str) -> String {
        let lines = self.text.lines().skip_while(|line| *line != name).skip(1);
        let lines = lines.take_while(|line| !line.is_empty() && !line.starts_with('['));
        lines.filter(|line| !line.starts_with("controller")).collect::<Vec<_>>().join(", ")
    }

    /// The row of the case in the document.
    fn row(&self, measured: &str) -> String {
        let (number, title) = self.title();
        let (link, flow) = (self.table("[dumbbell]"), self.table("[[flow]]"));
        let flow = if flow.is_empty() { flow } else { format!(", `{flow}`") };
        format!(
            "| [{number}](../validation/bbr/{}.toml) | {title} | `{link}`{flow} | {measured} | {} |\n",
            self.name, self.fault
        )
    }

    fn verify(&self) {
        let measured = (self.check)(&Run::new(self.text, Fault::None));
        let measured = measured.unwrap_or_else(|wrong| panic!("{}: {wrong}", self.name));
        if let Ok(measured) = (self.check)(&Run::new(self.text, self.fault)) {
            panic!("{}: a controller that {} passes: {measured}", self.name, self.fault);
        }
        let row = self.row(&measured);
        let document = include_str!("../../../docs/bbr.md");
        assert!(document.contains(&row), "{}: docs/bbr.md lacks\n{row}", self.name);
    }
}

/// Declares the cases and a test for each.
macro_rules! cases {
    ($($test:ident $name:literal $check:ident $fault:ident;)*) => {
        const CASES: &[Case] = &[$(Case {
            name: $name,
            text: include_str!(concat!("../../../validation/bbr/", $name, ".toml")),
            check: $check,
            fault: Fault::$fault,
        }),*];

        $(#[test]
        fn $test() {
            CASES.iter().find(|case| case.name == $name).unwrap().verify();
        })*
    };
}

cases! {
    a01 "A01-startup-plateau" startup_plateau ShortPlateau;
    a02 "A02-startup-loss" startup_loss NoLosses;
    a03 "A03-drain-inflight" drain_inflight NoGain;
    a04 "A04-drain-time" drain_time LittleInFlight;
    a05 "A05-up-plateau" up_plateau ShortPlateau;
    a06 "A06-up-loss" up_loss NoLosses;
    a07 "A07-up-limited" up_limited NoApplication;
    a08 "A08-down-inflight" down_inflight LittleInFlight;
    a09 "A09-down-time" down_time LittleInFlight;
    a10 "A10-probe-rtt" probe_rtt NoProbeRtt;
    a11 "A11-idle" idle NoApplication;
    a12 "A12-startup-aggregation" startup_aggregation NoExtraAcked;
    a13 "A13-cruise-aggregation" cruise_aggregation NoExtraAcked;
    a14 "A14-sub-packet" sub_packet SmallWindow;
    a15 "A15-faster" faster NoWindowLimit;
    a16 "A16-slower" slower NoLosses;
    a17 "A17-policer" policer NoLosses;
    a18 "A18-spurious-recovery" spurious NoUndo;
    a19 "A19-spurious-timeout" spurious NoUndo;
    a20 "A20-startup-probe-rtt" startup_probe_rtt NoProbeRtt;
    a21 "A21-up-loss-longterm" up_loss_longterm NoLosses;
    a22 "A22-refill-limited" refill_limited NoIdleTime;
}

/// Startup finds the bandwidth of other networks, and Drain the product.
#[test]
fn startup_and_drain_on_other_networks() {
    let text = include_str!("../../../validation/bbr/A01-startup-plateau.toml");
    // On the shortest path BBRInflight(1.0) is 25 packets, three times the product: after losses no
    // more are in flight, and Drain may end with the acknowledgement that begins it.
    for (rate, delay, queue) in [
        ("500kbit", "100ms", 4),
        ("20mbit", "20ms", 4),
        ("100mbit", "500us", 12),
        ("1gbit", "5ms", 4),
    ] {
        let text = text.replace("20mbit", rate).replace("20ms", delay);
        let run = Run::new(&text.replace("2bdp", &format!("{queue}bdp")), Fault::None);
        let startup = ended(&run.steps, State::Startup)[0];
        let found = startup.next.max_bw / run.rate;
        assert!((0.98..1.02).contains(&found), "{rate}: {found}");
        assert!(startup.rounds() < 20, "{rate}: {} rounds", startup.rounds());
        if delay != "500us" {
            drain_inflight(&run).unwrap();
        }
    }
}

/// The notes of the document: which decrease of the rate Drain outlasts (A.4), when max_bw falls by
/// the draft's rule alone, and how long min_rtt is too large (A.16).
#[test]
fn notes() {
    let text = include_str!("../../../validation/bbr/A04-drain-time.toml");
    let drains = ["18mbit", "11mbit", "10mbit"].map(|rate| {
        let run = Run::new(&text.replace("9mbit", rate), Fault::None);
        let drain = ended(&run.steps, State::Drain)[0];
        format!("{:.2} s, {:?}", drain.seconds(), drain.next.state)
    });
    assert_eq!(drains, ["0.10 s, Cruise", "0.38 s, Cruise", "0.47 s, Down"]);

    let text = include_str!("../../../validation/bbr/A16-slower.toml");
    let records = simulate(&text.replace("\"bbr3\"", "\"bbr3(aging=draft)\""), 1);
    let max_bw = gauge(&records.flows[0], "max_bw");
    let found = max_bw.iter().rposition(|rate| *rate > 10.5 * MBIT).unwrap();
    assert!((29.65..29.75).contains(&records.time[found]), "{}", records.time[found]);

    let records = simulate(&text.replace("40s", "45s"), 1);
    let at = |seconds: f64| records.time.partition_point(|time| *time < seconds);
    let [state, min_rtt] = ["state", "min_rtt"].map(|name| gauge(&records.flows[0], name));
    let probe_rtt = f64::from(State::ProbeRtt as u8);
    assert!(!state[at(27.0)..at(43.0)].contains(&probe_rtt));
    assert!(min_rtt[at(30.0)] > 0.09 && min_rtt[at(35.3)] > 0.06 && min_rtt[at(39.0)] < 0.043);
}

/// Writes the table of the document.
#[test]
#[ignore = "writes docs/bbr.md"]
fn report() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/bbr.md");
    let document = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = document.split_once(BEGIN).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    let rows: String = CASES
        .iter()
        .map(|case| {
            let measured = (case.check)(&Run::new(case.text, Fault::None));
            case.row(&measured.unwrap_or_else(|wrong| format!("**fails**: {wrong}")))
        })
        .collect();
    let head = "| case | | network and application | measured | fails for a controller that |\n\
                |---|---|---|---|---|\n";
    std::fs::write(&path, format!("{before}{BEGIN}{head}{rows}{END}{after}")).unwrap();
}
