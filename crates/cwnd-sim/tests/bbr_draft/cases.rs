//! The test cases of appendix A of draft-ietf-ccwg-bbr-06 as scenarios (`validation/bbr`), and the
//! check of each. A check reads the events that the controller of the only flow received, and the
//! controller after each: simulated TCP, QUIC and the kernel's TCP share them.

use cwnd::controllers::Bbr3;
use cwnd::controllers::bbr3::State;
use cwnd::delivery::LossSample;
use cwnd::{Acked, Controller, Dur, Output, Rate, Time};
use cwnd_sim::network::Network;
use cwnd_sim::record::Records;
use std::fmt;
use std::path::Path;

const LOSS_THRESH: f64 = 0.02;
const BETA: f64 = 0.7;
/// A pacing rate over the gain and the bandwidth.
const PACING_MARGIN: f64 = 0.99;

/// What the controller received.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Received {
    Acked(Acked),
    /// Packets declared lost, with the state of the one sent last.
    Lost(u32, LossSample),
    Timeout,
    Undo,
    Other,
}

/// The controller after an event. Rates are in packets per second.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) at: f64,
    pub(crate) received: Received,
    pub(crate) state: State,
    /// Whether the acknowledgement begins a packet-timed round.
    pub(crate) round_start: bool,
    pub(crate) window: f64,
    pub(crate) pace: f64,
    pub(crate) bandwidth: f64,
    pub(crate) max_bw: f64,
    pub(crate) min_rtt: f64,
    pub(crate) extra_acked: f64,
    /// Infinite where unset.
    pub(crate) bw_shortterm: f64,
    pub(crate) inflight_shortterm: f64,
    pub(crate) inflight_longterm: f64,
}

impl Step {
    /// Returns `controller` after an event. The kernel's answer and state may be those of another
    /// implementation.
    pub(crate) fn new(
        at: Time,
        received: Received,
        round_start: bool,
        (output, state): (Output, State),
        controller: &Bbr3,
    ) -> Self {
        let mut step = Step {
            at: at.as_secs(),
            received,
            state,
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
        controller.gauges(&mut |name, value| {
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

    pub(crate) fn acked(&self) -> Option<&Acked> {
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

/// Packet-timed rounds: UpdateRound and StartRound.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rounds {
    delivered: u64,
    /// BBR.next_round_delivered.
    pub(crate) next: u64,
}

impl Rounds {
    /// Returns whether an acknowledgement begins a round.
    pub(crate) fn begins(&mut self, acked: &Acked) -> bool {
        let Some(sample) = acked.delivery else { return false };
        self.delivered = sample.prior_delivered + sample.delivered;
        let begins = sample.prior_delivered >= self.next;
        if begins {
            self.next = self.delivered;
        }
        begins
    }

    /// Starts a round if the change from one state to another does. Drain, Up and ProbeRTT end with
    /// Down, which Cruise may follow at once.
    pub(crate) fn change(&mut self, from: State, to: State) {
        let starts = match to {
            State::Down | State::Refill | State::Up | State::ProbeRtt => from != to,
            State::Cruise => !matches!(from, State::Down | State::Cruise),
            State::Startup | State::Drain => false,
        };
        if starts {
            self.next = self.delivered;
        }
    }
}

/// A run of one flow.
pub(crate) struct Run {
    pub(crate) records: Records,
    /// Packets per second of the link.
    pub(crate) rate: f64,
    /// Packets per second of 1 Mbit/s.
    pub(crate) mbit: f64,
    pub(crate) steps: Vec<Step>,
}

impl Run {
    /// Returns the run of a flow with packets of `packet` bytes on the wire.
    pub(crate) fn new(network: &Network, packet: f64, records: Records, steps: Vec<Step>) -> Self {
        let bits = 8.0 * packet;
        let rate = network.links[0].rate.unwrap_or(f64::INFINITY) / bits;
        Run { records, rate, mbit: 1e6 / bits, steps }
    }

    fn after(&self, at: f64) -> &[Step] {
        &self.steps[self.steps.partition_point(|step| step.at < at)..]
    }

    /// Packets of an aggregate of acknowledgements of A.12 and A.13.
    fn aggregate(&self) -> f64 {
        0.02 * self.rate
    }

    fn utilization(&self) -> f64 {
        self.records.links[0].utilization
    }

    /// The part of the packets that the link dropped.
    fn loss(&self) -> f64 {
        let link = &self.records.links[0];
        link.drops as f64 / link.arrivals as f64
    }
}

/// A stay in a state that ends, with the first step of the next state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stay<'a> {
    pub(crate) steps: &'a [Step],
    pub(crate) next: &'a Step,
}

impl Stay<'_> {
    pub(crate) fn first(&self) -> &Step {
        &self.steps[0]
    }

    pub(crate) fn seconds(&self) -> f64 {
        self.next.at - self.first().at
    }

    /// Rounds that begin after the first step, with that of the next state.
    pub(crate) fn rounds(&self) -> usize {
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
pub(crate) fn stays(steps: &[Step]) -> Vec<Stay<'_>> {
    let chunks: Vec<_> = steps.chunk_by(|a, b| a.state == b.state).collect();
    chunks.windows(2).map(|pair| Stay { steps: pair[0], next: &pair[1][0] }).collect()
}

pub(crate) fn ended(steps: &[Step], state: State) -> Vec<Stay<'_>> {
    stays(steps).into_iter().filter(|stay| stay.first().state == state).collect()
}

/// Why a check does not hold.
#[derive(Clone, Debug)]
pub(crate) enum Wrong {
    /// The run does not have the situation of the case.
    NotExercised(String),
    Violated(String),
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Wrong::NotExercised(why) => write!(f, "not exercised: {why}"),
            Wrong::Violated(why) => write!(f, "**differs**: {why}"),
        }
    }
}

impl<T: Into<String>> From<T> for Wrong {
    fn from(why: T) -> Self {
        Wrong::Violated(why.into())
    }
}

/// The measured values, or what is wrong.
pub(crate) type Checked = Result<String, Wrong>;

macro_rules! ensure {
    ($condition:expr, $($message:tt)+) => {
        let holds = $condition;
        if !holds {
            return Err(format!($($message)+).into());
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
    let losses = up_losses(run);
    let limited = |(_, after): &&(&Step, &Step)| matches!(after.received, Received::Lost(_, sample) if sample.application_limited);
    let Some((before, after)) = losses.iter().find(limited) else {
        let is_up = run.after(24.5).iter().any(|step| step.state == State::Up);
        ensure!(!is_up || !losses.is_empty(), "no loss ends Up");
        return Err(Wrong::NotExercised("no loss of a limited sender in Up".into()));
    };
    let Received::Lost(_, sample) = after.received else { unreachable!() };
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
    ensure!(ups.len() >= 3, "{} probes that the application limits", ups.len());
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
    // The queue is gone, or ProbeRTT ends Down.
    let ends = |down: &&Stay| match down.next.state {
        State::Cruise => down.next.in_flight() > down.next.inflight(),
        next => next != State::ProbeRtt,
    };
    let down = downs.iter().find(ends);
    let down = down.ok_or_else(|| Wrong::NotExercised("no queue stays in Down".into()))?;
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

/// Times from a smallest RTT sample, or the end of ProbeRTT, to the ProbeRTT that follows:
/// BBR.probe_rtt_min_stamp.
fn probe_rtt_waits(run: &Run) -> Vec<f64> {
    let (mut smallest, mut since, mut waits) = (Dur::from_secs(f64::INFINITY), 0.0, Vec::new());
    for pair in run.steps.windows(2) {
        let [before, step] = pair else { unreachable!() };
        let enters = step.state == State::ProbeRtt && before.state != step.state;
        if enters {
            waits.push(step.at - since);
        }
        let sample = step.acked().and_then(|acked| acked.rtt);
        if let Some(rtt) = sample.filter(|rtt| *rtt < smallest || enters) {
            (smallest, since) = (rtt, step.at);
        }
        if before.state == State::ProbeRtt && step.state != State::ProbeRtt {
            since = step.at;
        }
    }
    waits
}

fn probe_rtt(run: &Run) -> Checked {
    let probes = ended(&run.steps, State::ProbeRtt);
    ensure!(probes.len() >= 7, "{} probes", probes.len());
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
    let (shortest, longest) = range(probe_rtt_waits(run).into_iter());
    ensure!(shortest >= 5.0 && longest < 5.2, "after {shortest} to {longest} s");
    let (low, high) = range(probes.iter().map(Stay::seconds));
    Ok(format!(
        "{} times, {shortest:.2} to {longest:.2} s after the last one or a smaller RTT, for {low:.2} to {high:.2} s \
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

fn startup_aggregation(run: &Run) -> Checked {
    let startup = first(&ended(&run.steps, State::Startup), "end of Startup")?;
    let found = startup.next.max_bw / run.rate;
    // The rate of k + 1 aggregates in k intervals between them, k of which are in a round-trip
    // time, is 1.5 of that of the link.
    ensure!((0.98..1.5).contains(&found), "max_bw is {found} of the rate");
    let last = startup.steps.last().ok_or("empty")?;
    let bdps = last.window / last.bdp();
    ensure!(bdps > 2.0 + 1e-6, "a window of {bdps} BDP");
    let extra = last.extra_acked / run.aggregate();
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
    let (low, high) = range(cruises.iter().map(|step| step.extra_acked / run.aggregate()));
    ensure!(low > 0.5 && high < 1.5, "extra_acked is {low} to {high} aggregates");
    let wide = cruises.iter().filter(|step| step.window > 2.0 * step.bdp() + 0.5 * run.aggregate());
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
    let (low, high) = range(cruises().map(|step| step.pace / (0.064 * run.mbit)));
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
    let full = |step: &Step| step.max_bw > 98.0 * run.mbit;
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
    let short = steps.iter().find(|step| step.bw_shortterm < 0.5 * 100.0 * run.mbit);
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
    let found = steps.iter().find(|step| step.max_bw < 10.5 * run.mbit).ok_or("max_bw stays")?;
    let cycles = ended(steps, State::Up);
    let cycles = cycles.iter().filter(|up| up.next.at <= found.at).count();
    ensure!((1..=2).contains(&cycles), "after {cycles} cycles");
    let last = run.steps.last().ok_or("empty")?.max_bw / (10.0 * run.mbit);
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
    let loss = run.loss();
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
    if ups == 0 {
        let why = format!("none of {} undone recoveries has ended Up", undone.len());
        return Err(Wrong::NotExercised(why));
    }
    Ok(format!(
        "{} undone, the model at least the saved one; {ups} had ended Up, and lead to Refill",
        undone.len()
    ))
}

fn startup_probe_rtt(run: &Run) -> Checked {
    let stays = stays(&run.steps);
    let states: Vec<_> = stays.iter().map(|stay| stay.first().state).collect();
    ensure!(states.len() >= 6, "{states:?}");
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
    let limited = |refill: &Stay| {
        let next = refill.next;
        next.application_limited() && next.rate().is_some_and(|rate| rate < 0.9 * next.max_bw)
    };
    let refill = ended(&run.steps, State::Refill).into_iter().find(limited);
    let refill = refill.ok_or_else(|| {
        Wrong::NotExercised("no Refill ends with a low rate of a limited sender".into())
    })?;
    let begin = refill.first();
    let next = refill.next;
    ensure!(next.state == State::Up, "{:?} follows", next.state);
    let rate = next.rate().unwrap_or(f64::NAN);
    ensure!(near(next.max_bw, begin.max_bw), "max_bw changes to {}", next.max_bw / run.mbit);
    let up = first(&ended(run.after(next.at), State::Up), "end of Up")?;
    ensure!(up.next.state == State::Down, "{:?} follows", up.next.state);
    let plateau = up.plateau(up.first().rate().unwrap_or(0.0));
    ensure!(plateau == 3, "{plateau} rounds without growth");
    Ok(format!(
        "Up with a limited sample of {:.1} Mbit/s; max_bw stays {:.1} Mbit/s; Down after 3 rounds \
         without growth",
        rate / run.mbit,
        next.max_bw / run.mbit
    ))
}

/// A case of the appendix.
pub(crate) struct Case {
    /// The file in `validation/bbr`, without its ending.
    pub(crate) name: &'static str,
    pub(crate) text: &'static str,
    pub(crate) check: fn(&Run) -> Checked,
}

impl Case {
    /// Returns the number and the title in the first line of the file.
    pub(crate) fn title(&self) -> (&str, &str) {
        let line = self.text.lines().next().and_then(|line| line.strip_prefix("# Appendix "));
        let line = line.and_then(|line| line.strip_suffix('.'));
        line.and_then(|line| line.split_once(": ")).expect("the first line names the case")
    }
}

/// Declares the cases.
macro_rules! cases {
    ($($name:literal $check:ident,)*) => {
        pub(crate) const CASES: &[Case] = &[$(Case {
            name: $name,
            text: include_str!(concat!("../../../../validation/bbr/", $name, ".toml")),
            check: $check,
        }),*];
    };
}

cases! {
    "A01-startup-plateau" startup_plateau,
    "A02-startup-loss" startup_loss,
    "A03-drain-inflight" drain_inflight,
    "A04-drain-time" drain_time,
    "A05-up-plateau" up_plateau,
    "A06-up-loss" up_loss,
    "A07-up-limited" up_limited,
    "A08-down-inflight" down_inflight,
    "A09-down-time" down_time,
    "A10-probe-rtt" probe_rtt,
    "A11-idle" idle,
    "A12-startup-aggregation" startup_aggregation,
    "A13-cruise-aggregation" cruise_aggregation,
    "A14-sub-packet" sub_packet,
    "A15-faster" faster,
    "A16-slower" slower,
    "A17-policer" policer,
    "A18-spurious-recovery" spurious,
    "A19-spurious-timeout" spurious,
    "A20-startup-probe-rtt" startup_probe_rtt,
    "A21-up-loss-longterm" up_loss_longterm,
    "A22-refill-limited" refill_limited,
}

/// Replaces what is between two lines of `docs/bbr.md`: `<!-- name -->` and `<!-- end of name -->`.
pub(crate) fn write_table(name: &str, table: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/bbr.md");
    let document = std::fs::read_to_string(&path).unwrap();
    let [begin, end] = [name, &format!("end of {name}")].map(|line| format!("<!-- {line} -->\n"));
    let (before, rest) = document.split_once(&begin).unwrap();
    let (_, after) = rest.split_once(&end).unwrap();
    std::fs::write(&path, format!("{before}{begin}{table}{end}{after}")).unwrap();
}
