//! The connections of a trace: the record of each, its series, and its replay.

use super::event::{Event, Kind, packets, per_second};
use super::replay::{Agreement, Replay};
use super::trace::Recording;
use cwnd::Spec;
use cwnd::record::Entry;
use std::collections::HashMap;

/// A cut that was seen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CutSeen {
    /// Seconds since the trace began.
    pub time: f64,
    /// Whether the retransmission timer expired; otherwise packets were lost.
    pub timeout: bool,
    /// The window in packets, or the rate in packets per second, before.
    pub before: f64,
    /// The same after.
    pub after: f64,
}

/// What was seen of one connection. Series have one number for each event that tells the window.
#[derive(Clone, Debug)]
pub struct Flow {
    /// Its first event: whose it is. At the end the kernel has taken the port off it.
    pub first: Event,
    /// Its newest event.
    pub last: Event,
    /// Whether it was seen from its beginning on.
    pub whole: bool,
    /// Seconds since the trace began.
    pub time: Vec<f64>,
    /// Packets.
    pub window: Vec<f64>,
    /// Packets; infinite before the first cut.
    pub ssthresh: Vec<f64>,
    /// Seconds, the newest sample; NaN before the first.
    pub rtt: Vec<f64>,
    /// Packets sent so far, retransmissions included.
    pub sent: Vec<f64>,
    /// Packets that arrived so far.
    pub delivered: Vec<f64>,
    /// A rate law's rate in packets per second; NaN in slow start. Empty for a window law.
    pub rate: Vec<f64>,
    /// Its cuts.
    pub cuts: Vec<CutSeen>,
    /// Sum and number of the samples of the round-trip time, in seconds.
    pub rtts: (f64, u64),
    /// Seconds in which the window, and in which something else, kept it from sending more.
    pub limited: (f64, f64),
    recording: Recording,
    replay: Option<Replay>,
}

impl Flow {
    fn new(spec: &Spec, paced: bool, event: &Event) -> Flow {
        let whole = event.kind == Kind::Begin;
        Flow {
            first: *event,
            last: *event,
            whole,
            time: Vec::new(),
            window: Vec::new(),
            ssthresh: Vec::new(),
            rtt: Vec::new(),
            sent: Vec::new(),
            delivered: Vec::new(),
            rate: Vec::new(),
            cuts: Vec::new(),
            rtts: (0.0, 0),
            limited: (0.0, 0.0),
            recording: Recording::new(paced),
            replay: whole.then(|| Replay::new(spec)).flatten(),
        }
    }

    /// How the law of crate `cwnd` agrees; `None` for a connection whose beginning was not seen.
    pub fn agreement(&self) -> Option<Agreement> {
        self.replay.as_ref().map(Replay::found)
    }

    fn push(&mut self, event: &Event, origin: u64, paced: bool) {
        let time = event.at.saturating_sub(origin) as f64 / 1e9;
        let since = event.at.saturating_sub(self.last.at) as f64 / 1e9;
        if self.last.limited {
            self.limited.0 += since;
        } else {
            self.limited.1 += since;
        }
        if event.rtt > 0 && matches!(event.kind, Kind::Acked | Kind::Report) {
            self.rtts = (self.rtts.0 + f64::from(event.rtt) / 1e6, self.rtts.1 + 1);
        }
        let timeout = event.kind == Kind::Timeout;
        if timeout && !paced {
            // The kernel cuts first, and says then that it was for a timeout.
            self.cuts.pop();
        }
        if timeout || event.kind == Kind::Cut {
            let unit = if paced { per_second } else { packets };
            let (before, after) = (unit(event.before), unit(event.after));
            self.cuts.push(CutSeen { time, timeout, before, after });
        }
        self.last = *event;
        if matches!(event.kind, Kind::End | Kind::Round | Kind::Enter) {
            return;
        }
        let cut = matches!(event.kind, Kind::Cut | Kind::Timeout | Kind::Undo) && !paced;
        let whole = !paced && event.after >> 40 == u64::from(event.cwnd);
        let window = if cut || whole { packets(event.after) } else { f64::from(event.cwnd) };
        let rtt = if event.rtt > 0 { f64::from(event.rtt) / 1e6 } else { f64::NAN };
        let unset = event.ssthresh >= i32::MAX as u32;
        let ssthresh = match cut {
            true => window,
            false if unset => f64::INFINITY,
            false => f64::from(event.ssthresh),
        };
        if self.window.last() == Some(&window) && event.kind == Kind::Slow {
            return; // its acknowledgement's own event has told it
        }
        if paced {
            let told = matches!(event.kind, Kind::Tick | Kind::Start | Kind::Cut | Kind::Timeout);
            let last = self.rate.last().copied().unwrap_or(f64::NAN);
            self.rate.push(if told { per_second(event.after) } else { last });
        }
        self.time.push(time);
        self.window.push(window);
        self.ssthresh.push(ssthresh);
        self.rtt.push(if rtt.is_nan() { self.rtt.last().copied().unwrap_or(rtt) } else { rtt });
        self.sent.push(f64::from(event.sent));
        self.delivered.push(f64::from(event.delivered));
    }
}

/// The connections of a trace, in the order in which they were first seen.
#[derive(Clone, Debug)]
pub struct Flows {
    spec: Spec,
    paced: bool,
    origin: Option<u64>,
    current: HashMap<u64, usize>,
    all: Vec<Flow>,
}

impl Flows {
    /// No connection yet of the controller that `spec` names.
    pub fn new(spec: &Spec) -> Flows {
        let paced = spec.algorithm().kind() == cwnd::registry::Kind::Rate;
        Flows { spec: *spec, paced, origin: None, current: HashMap::new(), all: Vec::new() }
    }

    /// All of them.
    pub fn all(&self) -> &[Flow] {
        &self.all
    }

    /// Takes the next event of any connection, and hands over its number and the entries of its record
    /// that are complete.
    pub fn push(&mut self, event: &Event, mut entry: impl FnMut(usize, &Entry)) {
        let origin = *self.origin.get_or_insert(event.at);
        // A connection's memory serves the next one.
        if event.kind == Kind::Begin {
            self.current.remove(&event.flow);
        }
        let number = *self.current.entry(event.flow).or_insert_with(|| {
            self.all.push(Flow::new(&self.spec, self.paced, event));
            self.all.len() - 1
        });
        let flow = &mut self.all[number];
        if let Some(replay) = &mut flow.replay {
            replay.step(event);
        }
        flow.recording.push(event, |done| entry(number, &done));
        flow.push(event, origin, self.paced);
        if event.kind == Kind::End {
            flow.recording.flush(|done| entry(number, &done));
            self.current.remove(&event.flow);
        }
    }
}
