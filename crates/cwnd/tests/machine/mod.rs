//! A window machine whose law records its calls.

use crate::common::at;
use cwnd::{Acked, Context, Controller, Event, Lost, Marked, Round, Settings, Signal};
use cwnd::{WindowLaw, Windowed};

/// A call of the law.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Call {
    /// Growth for these packets.
    Grow(f64),
    /// A reduction at this window.
    Cut(f64, Signal),
    /// Congestion avoidance begins at this window.
    Enter(f64),
    /// A round ends: packets sent, lost and marked.
    Round(u64, u64, u64),
    /// The packet size changed.
    Rescale(f64),
}

/// AIMD(gain, 1/2) that records its calls.
#[derive(Clone, Debug)]
pub(crate) struct Trace {
    pub calls: Vec<Call>,
    /// The lengths of the rounds in milliseconds.
    pub took: Vec<u64>,
    /// The contexts of growth and reductions.
    pub contexts: Vec<Context>,
    /// The threshold after a signal.
    pub threshold: Option<f64>,
    /// The window at which the law ends slow start.
    pub leaves_at: f64,
    /// Whether a round continues after a timeout.
    pub rounds_continue: bool,
    /// The growth for each packet acknowledged, times the window.
    pub gain: f64,
}

impl Default for Trace {
    fn default() -> Self {
        Trace {
            calls: Vec::new(),
            took: Vec::new(),
            contexts: Vec::new(),
            threshold: None,
            leaves_at: f64::INFINITY,
            rounds_continue: false,
            gain: 1.0,
        }
    }
}

impl WindowLaw for Trace {
    fn grow(&mut self, w: f64, acked: f64, cx: &Context) -> f64 {
        self.calls.push(Call::Grow(acked));
        self.contexts.push(*cx);
        w + self.gain * acked / w
    }
    fn cut(&mut self, w: f64, why: Signal, cx: &Context) -> f64 {
        self.calls.push(Call::Cut(w, why));
        self.contexts.push(*cx);
        w / 2.0
    }
    fn threshold(&self, _: f64, _: Signal) -> Option<f64> {
        self.threshold
    }
    fn enter(&mut self, w: f64, _: &Context) {
        self.calls.push(Call::Enter(w));
    }
    fn round(&mut self, round: &Round, _: &Context) {
        self.calls.push(Call::Round(round.sent, round.lost, round.marked));
        self.took.push(round.took.as_nanos() / 1_000_000);
    }
    fn timeout_ends_round(&self) -> bool {
        !self.rounds_continue
    }
    fn leave_slow_start(&mut self, w: f64, _: &Context) -> bool {
        w >= self.leaves_at
    }
    fn rescale(&mut self, factor: f64) {
        self.calls.push(Call::Rescale(factor));
    }
    fn uses_delivery_rate(&self) -> bool {
        true
    }
}

/// A state of the diagram in `src/machine/windowed.rs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    SlowStart,
    Avoidance,
    Recovery,
}

/// A machine and its events, at times in milliseconds. A packet is sent in each millisecond.
#[derive(Clone, Debug)]
pub(crate) struct Bench {
    pub machine: Windowed<Trace>,
    /// The number of calls before those that [`calls`](Self::calls) returns.
    skipped: usize,
}

impl Default for Bench {
    /// An initial window of 10 and the conventions of the RFCs.
    fn default() -> Self {
        Bench::with(|_| {})
    }
}

impl Bench {
    pub(crate) fn with(change: impl FnOnce(&mut Settings)) -> Self {
        Bench::of(Trace::default(), change)
    }

    pub(crate) fn of(law: Trace, change: impl FnOnce(&mut Settings)) -> Self {
        let mut settings = Settings::default();
        change(&mut settings);
        Bench { machine: Windowed::new(law, &settings), skipped: 0 }
    }

    /// Congestion avoidance at 5.2 packets with a threshold of 5, or slow start at 11.
    pub(crate) fn in_avoidance_if(avoidance: bool) -> Self {
        let mut bench = Bench::default();
        if avoidance {
            bench.mark(20, 19);
            bench.machine.take_cut();
        }
        bench.ack(30, 1);
        bench
    }

    pub(crate) fn on(&mut self, millis: u64, event: Event) -> &mut Self {
        self.machine.on(at(millis), &event);
        self
    }

    /// An acknowledgement of `packets` packets, sent a millisecond before.
    pub(crate) fn ack(&mut self, millis: u64, packets: u32) -> &mut Self {
        self.on(millis, Event::Acked(Acked::new(packets, at(millis - 1))))
    }

    /// An acknowledgement of a packet sent at `sent_at`.
    pub(crate) fn ack_of(&mut self, millis: u64, sent_at: u64) -> &mut Self {
        self.on(millis, Event::Acked(Acked::new(1, at(sent_at))))
    }

    /// The loss of a packet sent at `sent_at`.
    pub(crate) fn lose(&mut self, millis: u64, sent_at: u64) -> &mut Self {
        self.on(millis, Event::Lost(Lost::new(1, at(sent_at), millis)))
    }

    /// A mark of a packet sent at `sent_at`.
    pub(crate) fn mark(&mut self, millis: u64, sent_at: u64) -> &mut Self {
        self.on(millis, Event::Marked(Marked::new(1, at(sent_at), millis)))
    }

    pub(crate) fn state(&self) -> State {
        if self.machine.in_recovery() {
            State::Recovery
        } else if self.machine.in_slow_start() {
            State::SlowStart
        } else {
            State::Avoidance
        }
    }

    /// The state, the window and the slow-start threshold.
    pub(crate) fn values(&self) -> (State, f64, f64) {
        (self.state(), self.window(), self.machine.ssthresh().get())
    }

    pub(crate) fn window(&self) -> f64 {
        self.machine.window().get()
    }

    pub(crate) fn calls_from_here(&mut self) -> &mut Self {
        self.skipped = self.machine.law().calls.len();
        self
    }

    pub(crate) fn calls(&self) -> Vec<Call> {
        self.machine.law().calls[self.skipped..].to_vec()
    }

    pub(crate) fn rounds(&self) -> Vec<Call> {
        self.calls().into_iter().filter(|call| matches!(call, Call::Round(..))).collect()
    }
}
