//! The controller of a sender with its event record and counters, common to all senders.

use crate::clock::Clock;
use crate::engine::schedule::NONE;
use crate::record::{CutRecord, FlowRecord};
use cwnd::record::{Entry, Record};
use cwnd::{AnyController, Controller, Cut, Dur, Event, Limit, Output, Signal, Time};

/// Data packets and the bytes of their payload. A SYN is no data packet.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Payload {
    pub packets: u64,
    pub bytes: u64,
}

impl Payload {
    /// The difference from an earlier count.
    pub(crate) fn since(self, before: Payload) -> Payload {
        Payload { packets: self.packets - before.packets, bytes: self.bytes - before.bytes }
    }
}

/// Counters of a sender since the end of the warm-up.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counters {
    pub rtt_sum: u64,
    /// Ticks limited by the window, by pacing, by the receiver and by the application.
    pub limited: [u64; 4],
    pub rtt_count: u32,
    pub retransmitted: u32,
    pub timeouts: u32,
    pub mark_cuts: u32,
}

/// The output of a controller after the last event.
#[derive(Clone)]
struct CachedOutput {
    output: Output,
    /// The pacing interval in ticks.
    period: Option<u64>,
    /// Time of the controller's next Tick; [`NONE`] without one.
    tick: u64,
    /// Time of the last Tick; `None` before the first.
    ticked: Option<Time>,
}

impl CachedOutput {
    fn new(output: Output, clock: Clock) -> Self {
        let mut cached = CachedOutput { output, period: None, tick: NONE, ticked: None };
        cached.output.pace = None;
        cached.update(output, clock);
        cached
    }

    /// Replaces the output after another event.
    #[inline(always)]
    fn update(&mut self, output: Output, clock: Clock) {
        self.tick = output.next_tick(self.ticked).map_or(NONE, |tick| clock.ticks(tick.as_nanos()));
        // Not as a whole: a copy of fields that were written one by one would wait for the writes.
        self.output.window = output.window;
        if output.pace != self.output.pace {
            self.period = output.pace.map(|pace| clock.ticks(pace.period().as_nanos()));
            self.output.pace = output.pace;
        }
        if output.wake != self.output.wake {
            self.output.wake = output.wake;
        }
    }
}

/// The measurements of a sender: round-trip times, reductions, and what limits it. Times are in
/// ticks.
#[derive(Clone)]
pub(crate) struct Meter {
    pub last_rtt: u64,
    pub min_rtt: u64,
    limit_since: u64,
    /// Time at which all data was acknowledged; [`NONE`] before.
    pub acknowledged: u64,
    pub counters: Counters,
    pub cuts: Vec<CutRecord>,
    pub clock: Clock,
    /// What currently limits the sender.
    pub limit: Limit,
}

impl Meter {
    pub(crate) fn new(clock: Clock) -> Self {
        Meter {
            last_rtt: 0,
            min_rtt: u64::MAX,
            limit_since: 0,
            acknowledged: NONE,
            counters: Counters::default(),
            cuts: Vec::new(),
            clock,
            limit: Limit::Application,
        }
    }

    /// Starts the transfer.
    pub(crate) fn start(&mut self, now: u64) {
        self.limit_since = now;
    }

    /// Clears the counters at the end of the warm-up.
    pub(crate) fn reset(&mut self, now: u64) {
        self.settle(now);
        self.counters = Counters::default();
    }

    /// Records a round-trip time sample in ticks and returns its duration.
    #[inline(always)]
    pub(crate) fn measured(&mut self, rtt: u64) -> Dur {
        self.last_rtt = rtt;
        self.min_rtt = self.min_rtt.min(rtt);
        self.counters.rtt_sum += rtt;
        self.counters.rtt_count += 1;
        self.clock.dur(rtt)
    }

    /// Records a reduction at `now`.
    pub(crate) fn record_cut(&mut self, now: u64, cut: Option<Cut>) {
        self.cuts.extend(cut.map(|cut| CutRecord { at: self.clock.time(now), cut }));
    }

    /// Sets what limits the sender from `now` on.
    #[inline(always)]
    pub(crate) fn limited_by(&mut self, now: u64, limit: Limit) {
        self.settle(now);
        self.limit = limit;
    }

    /// Adds the time since the last call to the current limit. Time after completion does not
    /// count.
    #[inline(always)]
    fn settle(&mut self, now: u64) {
        if self.acknowledged == NONE {
            self.counters.limited[self.limit as usize] += now - self.limit_since;
            self.limit_since = now;
        }
    }

    /// All data is acknowledged at `now`, and there will be no more.
    pub(crate) fn complete(&mut self, now: u64) {
        self.settle(now);
        self.acknowledged = now;
    }

    /// Writes the measurements into the record at the end of the run.
    pub(crate) fn finish(mut self, end: u64, record: &mut FlowRecord) {
        self.settle(end);
        let counters = self.counters;
        let clock = self.clock;
        let seconds = |ticks: u64| if ticks == u64::MAX { f64::NAN } else { clock.seconds(ticks) };
        record.cuts = self.cuts;
        record.retransmissions = u64::from(counters.retransmitted);
        record.timeouts = u64::from(counters.timeouts);
        record.ecn_cuts = u64::from(counters.mark_cuts);
        record.limited = counters.limited.map(|ticks| clock.seconds(ticks)).into();
        record.mean_rtt = clock.seconds(counters.rtt_sum) / f64::from(counters.rtt_count);
        record.min_rtt = seconds(self.min_rtt);
        record.acknowledged = seconds(self.acknowledged);
    }
}

/// A controller and its measurements. Fields used for every packet come first.
#[derive(Clone)]
pub(crate) struct Driver {
    pub controller: AnyController,
    /// Present unless the controller is a window law without pacing, whose window is cheap to
    /// compute.
    cached: Option<Box<CachedOutput>>,
    /// Packets sent, with SYNs and retransmissions: the number in the controller's events.
    pub packets_sent: u64,
    /// Their bytes, with headers.
    pub bytes_sent: u64,
    pub meter: Meter,
    /// The controller's events and outputs, if they are recorded.
    events: Option<Box<Record>>,
    /// Whether the last reduction answered a mark.
    marked: bool,
}

impl Driver {
    pub(crate) fn new(clock: Clock, controller: AnyController, record_events: bool) -> Self {
        let plain = matches!(&controller, AnyController::Window(machine) if !machine.is_paced());
        Driver {
            cached: (!plain).then(|| Box::new(CachedOutput::new(controller.output(), clock))),
            controller,
            packets_sent: 0,
            bytes_sent: 0,
            meter: Meter::new(clock),
            events: record_events.then(Box::default),
            marked: false,
        }
    }

    /// The measurements and the controller's output.
    pub(crate) fn measured(&self) -> (&Meter, Output) {
        (&self.meter, self.controller.output())
    }

    /// Data packets sent by a sender without SYNs. They have headers of `header` bytes.
    pub(crate) fn sent(&self, header: u16) -> Payload {
        let packets = self.packets_sent;
        Payload { packets, bytes: self.bytes_sent - packets * u64::from(header) }
    }

    /// The congestion window, or the flow window of a paced controller, in packets; 0 where a
    /// controller's answer is not a number.
    #[inline(always)]
    pub(crate) fn window(&self) -> f64 {
        match &self.controller {
            AnyController::Window(machine) => machine.window().get(),
            _ => self.cached.as_ref().map_or(0.0, |cached| cached.output.window.get().max(0.0)),
        }
    }

    /// Whether the controller is a window law without pacing: acknowledgements alone clock its
    /// sender.
    pub(crate) fn is_ack_clocked(&self) -> bool {
        self.cached.is_none()
    }

    /// The controller's output after the last event.
    #[inline(always)]
    pub(crate) fn output(&self) -> Output {
        match &self.cached {
            Some(cached) => cached.output,
            None => self.controller.output(),
        }
    }

    /// The pacing interval in ticks; `None` without pacing.
    #[inline(always)]
    pub(crate) fn period(&self) -> Option<u64> {
        self.cached.as_ref().and_then(|cached| cached.period)
    }

    /// Time of the controller's next Tick; [`NONE`] without one.
    #[inline(always)]
    pub(crate) fn next_tick(&self) -> u64 {
        self.cached.as_ref().map_or(NONE, |cached| cached.tick)
    }

    /// Replaces the law of the controller at `now`.
    #[cold]
    pub(crate) fn replace_law(&mut self, now: u64, other: AnyController) {
        self.controller.replace_law(self.meter.clock.time(now), other);
        if let Some(cached) = &mut self.cached {
            cached.update(self.controller.output(), self.meter.clock);
        }
    }

    /// Passes an event to the controller.
    #[inline(always)]
    pub(crate) fn report(&mut self, now: u64, event: Event) {
        match &mut self.controller {
            AnyController::Window(machine) if self.cached.is_none() => {
                let now = self.meter.clock.time(now);
                machine.on(now, &event);
                self.record(now, event);
            }
            // A copy: a reference for a non-inlined function forces the value out of registers.
            _ => self.report_in_place(now, &{ event }),
        }
    }

    /// [`report`](Self::report) without a copy.
    #[inline(never)]
    pub(crate) fn report_in_place(&mut self, now: u64, event: &Event) {
        let now = self.meter.clock.time(now);
        self.controller.on(now, event);
        if let Some(cached) = &mut self.cached {
            if matches!(event, Event::Tick) {
                cached.ticked = Some(now);
            }
            cached.update(self.controller.output(), self.meter.clock);
        }
        self.record(now, *event);
    }

    /// Records an event and the output after it, if they are recorded.
    #[inline(always)]
    fn record(&mut self, now: Time, event: Event) {
        let output = self.events.is_some().then(|| self.output());
        if let (Some(events), Some(output)) = (&mut self.events, output) {
            events.entries.push(Entry { at: now, event, output });
        }
    }

    /// Passes an event that may be a congestion signal to the controller, records a reduction and
    /// returns whether there was one.
    pub(crate) fn report_congestion(&mut self, now: u64, event: Event) -> bool {
        self.report(now, event);
        let cut = self.controller.take_cut();
        if let Some(cut) = &cut {
            self.marked = cut.why == Signal::Mark;
        }
        self.meter.record_cut(now, cut);
        cut.is_some()
    }

    /// Reports that the losses of the recovery were spurious. They have no reduction to revert if
    /// the last one answered a mark: that ends the recovery alone.
    pub(crate) fn undo(&mut self, now: u64) {
        self.report(now, if self.marked { Event::Recovered } else { Event::Undo });
    }

    /// Writes the sender's part of the record at the end of the run.
    pub(crate) fn finish(self, end: u64, record: &mut FlowRecord) {
        record.events = self.events.map(|events| *events);
        self.meter.finish(end, record);
    }
}
