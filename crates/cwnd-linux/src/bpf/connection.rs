//! Connections of a trace: the series, record and replay of each.

use super::event::{Event, Kind, per_second};
use super::replay::{Agreement, Replay};
use super::trace::Recording;
use cwnd::record::Entry;
use cwnd::{Cut, Signal, Spec};
use std::collections::HashMap;

/// Trace of one connection. The series have one value for each event that reports a window.
#[derive(Clone, Debug)]
pub struct Connection {
    /// First event, which identifies the connection: the last event has no local port.
    pub first: Event,
    /// Last event.
    pub last: Event,
    /// Whether the trace contains the start of the connection.
    pub from_start: bool,
    /// Seconds since the trace began.
    pub time: Vec<f64>,
    /// Window in packets.
    pub window: Vec<f64>,
    /// Slow start threshold in packets; infinite before the first cut.
    pub ssthresh: Vec<f64>,
    /// Newest round-trip time sample in seconds; NaN before the first.
    pub rtt: Vec<f64>,
    /// Packets sent, including retransmissions.
    pub sent: Vec<f64>,
    /// Packets delivered.
    pub delivered: Vec<f64>,
    /// A rate law's rate or a whole controller's pacing rate in packets per second; NaN in a rate
    /// law's slow start. Empty for window laws.
    pub rate: Vec<f64>,
    /// Cuts of the window or rate, each with its time in seconds since the trace began.
    pub cuts: Vec<(f64, Cut)>,
    /// Sum in seconds, and count, of the round-trip time samples.
    pub rtt_sum_count: (f64, u64),
    /// Seconds limited by the window, and by anything else.
    pub limited: (f64, f64),
    /// Packets reported as marked, to a law that is a text.
    pub marked: u64,
    recording: Recording,
    replay: Option<Replay>,
}

impl Connection {
    fn new(spec: &Spec, paced: bool, event: &Event) -> Connection {
        let from_start = event.kind == Kind::Begin;
        Connection {
            first: *event,
            last: *event,
            from_start,
            time: Vec::new(),
            window: Vec::new(),
            ssthresh: Vec::new(),
            rtt: Vec::new(),
            sent: Vec::new(),
            delivered: Vec::new(),
            rate: Vec::new(),
            cuts: Vec::new(),
            rtt_sum_count: (0.0, 0),
            limited: (0.0, 0.0),
            marked: 0,
            recording: Recording::new(paced),
            replay: from_start.then(|| Replay::new(spec)).flatten(),
        }
    }

    /// Agreement with the law of crate `cwnd`; `None` if the trace does not contain the start.
    pub fn agreement(&self) -> Option<Agreement> {
        self.replay.as_ref().map(Replay::agreement)
    }

    fn push(&mut self, event: &Event, origin: u64, paced: bool) {
        let time = event.time.saturating_sub(origin) as f64 / 1e9;
        let elapsed = event.time.saturating_sub(self.last.time) as f64 / 1e9;
        if self.last.limited {
            self.limited.0 += elapsed;
        } else {
            self.limited.1 += elapsed;
        }
        if event.rtt > 0 && matches!(event.kind, Kind::Acked | Kind::Report) {
            self.rtt_sum_count =
                (self.rtt_sum_count.0 + f64::from(event.rtt) / 1e6, self.rtt_sum_count.1 + 1);
        }
        self.marked += match (&event.given, event.kind) {
            (Some(given), Kind::Acked) => u64::from(given.marked),
            (Some(given), Kind::Cut | Kind::Lost) if given.why == Signal::Mark => {
                u64::from(event.packets)
            }
            _ => 0,
        };
        if event.replaces_cut(paced) {
            self.cuts.pop();
        }
        self.cuts.extend(event.cut(paced).map(|cut| (time, cut)));
        self.last = *event;
        if matches!(event.kind, Kind::End | Kind::Round | Kind::Enter) {
            return;
        }
        let cut = matches!(event.kind, Kind::Cut | Kind::Timeout | Kind::Undo)
            && !paced
            && event.whole.is_none();
        // The kernel's window is set after the event of a whole controller.
        let window = match paced {
            _ if cut || event.whole.is_some() => event.packets(event.after),
            true => f64::from(event.cwnd),
            false => event.window(),
        };
        let rtt = if event.rtt > 0 { f64::from(event.rtt) / 1e6 } else { f64::NAN };
        let unset = event.ssthresh >= i32::MAX as u32;
        let ssthresh = match cut {
            true => window,
            false if unset => f64::INFINITY,
            false => f64::from(event.ssthresh),
        };
        if self.window.last() == Some(&window) && event.kind == Kind::Slow {
            return; // The event of the acknowledgement has the same window.
        }
        if let Some(whole) = &event.whole {
            self.rate.push(per_second(whole.pace));
        } else if paced {
            let last = self.rate.last().copied().unwrap_or(f64::NAN);
            self.rate.push(event.new_rate().unwrap_or(last));
        }
        self.time.push(time);
        self.window.push(window);
        self.ssthresh.push(ssthresh);
        self.rtt.push(if rtt.is_nan() { self.rtt.last().copied().unwrap_or(rtt) } else { rtt });
        self.sent.push(f64::from(event.sent));
        self.delivered.push(f64::from(event.delivered));
    }
}

/// Connections of a trace, in the order of their first events.
#[derive(Clone, Debug)]
pub struct Connections {
    spec: Spec,
    paced: bool,
    origin: Option<u64>,
    active: HashMap<u64, usize>,
    all: Vec<Connection>,
}

impl Connections {
    /// Creates an empty trace of the controller `spec`.
    pub fn new(spec: &Spec) -> Connections {
        let paced = spec.algorithm().kind() == cwnd::registry::Kind::Rate;
        Connections { spec: *spec, paced, origin: None, active: HashMap::new(), all: Vec::new() }
    }

    /// Returns all connections.
    pub fn all(&self) -> &[Connection] {
        &self.all
    }

    /// Processes an event of any connection. Passes each completed record entry, with the index of
    /// its connection, to `entry`.
    pub fn push(&mut self, event: &Event, mut entry: impl FnMut(usize, &Entry)) {
        let origin = *self.origin.get_or_insert(event.time);
        // The identifier is the address of the socket, which the kernel reuses for later
        // connections.
        if event.kind == Kind::Begin {
            self.active.remove(&event.connection);
        }
        let index = *self.active.entry(event.connection).or_insert_with(|| {
            self.all.push(Connection::new(&self.spec, self.paced, event));
            self.all.len() - 1
        });
        let connection = &mut self.all[index];
        if let Some(replay) = &mut connection.replay {
            replay.step(event);
        }
        connection.recording.push(event, |completed| entry(index, &completed));
        connection.push(event, origin, self.paced);
        if event.kind == Kind::End {
            connection.recording.flush(|completed| entry(index, &completed));
            self.active.remove(&event.connection);
        }
    }
}
