//! The kernel's events through the law of crate `cwnd`: does it give the same windows?
//!
//! Each step begins at the kernel's own window, as slow start and recovery are the kernel's; the law's
//! state (SIMD's α, AIRA's a, AIAD's rate) is its own from the beginning of the connection on.

use super::event::{Event, Kind, packets, per_second};
use cwnd::laws::{AnyLaw, AnyRateLaw};
use cwnd::{
    Acked, Context, Dur, Law, MakeController, Rate, RateLaw, Report, Round, Rtt, Settings, Signal,
    Spec, Time, WindowLaw,
};

/// How far a window or rate of the kernel's may be from the law's, as a part of it.
///
/// The bounds of a single step are in the headers of `kernel/`; what is left is the state that drifts:
/// AIRA's `a` by 2^-30 a round, bounded by its limits, and AIAD's rate, whose filter forgets.
pub const BOUND: f64 = 1.0 / (1 << 24) as f64;
/// The largest window in packets: `FX_MAX_WINDOW`.
const MAX_WINDOW: f64 = ((1 << 24) - 1) as f64;

/// What one connection's replay found.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Agreement {
    /// Steps of the law that were compared.
    pub steps: u64,
    /// Cuts among them.
    pub cuts: u64,
    /// The largest difference, as a part of the window or rate.
    pub worst: f64,
}

/// A law beside the kernel's.
#[derive(Clone, Debug)]
enum Beside {
    Window { law: AnyLaw, saved: AnyLaw },
    Rate(AnyRateLaw),
}

/// One connection's replay.
#[derive(Clone, Debug)]
pub struct Replay {
    beside: Beside,
    /// The receiver's clock: its last timestamp, and the time since the first.
    stamp: Option<u32>,
    received: u64,
    found: Agreement,
}

impl Replay {
    /// The replay of a connection from its [`Kind::Begin`] on; `None` for a controller that is not a law.
    pub fn new(spec: &Spec) -> Option<Replay> {
        let beside = match spec.law(&Settings::default())? {
            Law::Window(law) => Beside::Window { saved: law.clone(), law },
            Law::Rate(law) => Beside::Rate(law),
        };
        Some(Replay { beside, stamp: None, received: 0, found: Agreement::default() })
    }

    /// What was found so far.
    pub fn found(&self) -> Agreement {
        self.found
    }

    /// Takes the next event, and returns what the law makes of it where it makes something.
    pub fn step(&mut self, event: &Event) -> Option<f64> {
        let received = self.receive(event);
        let made = match &mut self.beside {
            Beside::Window { law, saved } => window_step(law, saved, event, received),
            Beside::Rate(law) => rate_step(law, event),
        };
        if let Some(made) = made {
            let window = matches!(self.beside, Beside::Window { .. });
            let unit = if window || event.kind == Kind::Report { packets } else { per_second };
            let off = (unit(event.after) - made).abs() / made.abs().max(f64::MIN_POSITIVE);
            self.found.steps += 1;
            self.found.cuts += u64::from(matches!(event.kind, Kind::Cut | Kind::Timeout));
            self.found.worst = self.found.worst.max(off);
        }
        made
    }

    /// The receiver's clock: milliseconds that wrap, and do not go back.
    fn receive(&mut self, event: &Event) -> Option<Time> {
        if event.kind != Kind::Acked || event.stamp == 0 {
            return None;
        }
        let ticks = self.stamp.map_or(0, |last| event.stamp.wrapping_sub(last) as i32);
        if ticks > 0 || self.stamp.is_none() {
            self.stamp = Some(event.stamp);
            self.received += ticks as u64 * 1_000_000;
        }
        Some(Time::from_nanos(self.received))
    }
}

fn context(event: &Event) -> Context {
    let micros = |time: u32| Dur::from_nanos(u64::from(time) * 1000);
    let rtt = event.rtt.max(event.min_rtt);
    let known = (rtt > 0).then(|| {
        let mut known = Rtt::first(micros(rtt));
        known.min = micros(event.min_rtt);
        known
    });
    let mut cx = Context::new(Time::from_nanos(event.at), known);
    cx.packet = event.bytes;
    cx
}

fn window_step(
    law: &mut AnyLaw,
    saved: &mut AnyLaw,
    event: &Event,
    received_at: Option<Time>,
) -> Option<f64> {
    let (cx, before) = (context(event), packets(event.before));
    match event.kind {
        Kind::Acked => {
            let mut acked = Acked::new(event.packets, Time::ZERO);
            acked.credit = 0;
            acked.in_flight = event.in_flight;
            acked.sent = u64::from(event.sent);
            acked.received_at = received_at;
            law.observe(&acked, &cx);
            None
        }
        Kind::Enter => {
            law.enter(before, &cx);
            None
        }
        Kind::Grow => Some(law.grow(before, f64::from(event.packets), &cx)),
        Kind::Round => {
            let mut round = Round::default();
            (round.sent, round.lost) = (u64::from(event.sent), u64::from(event.lost));
            law.round(&round, &cx);
            None
        }
        Kind::Cut | Kind::Timeout => {
            let timeout = event.kind == Kind::Timeout;
            if timeout {
                *law = saved.clone();
            }
            *saved = law.clone();
            let why = if timeout { Signal::Timeout } else { Signal::Loss };
            let cut = law.cut(before, why, &cx);
            let slow_start = event.ssthresh != 0;
            // As `cut` of kernel/window.h.
            let most = match law.threshold(cut, why) {
                Some(_) if timeout => MAX_WINDOW,
                None if timeout || slow_start => before / 2.0,
                _ => before,
            };
            Some(cut.min(most).max(2.0))
        }
        Kind::Undo => {
            // An estimate is not taken back: what was measured stays true.
            if event.packets != 0 && !matches!(law, AnyLaw::Aiad(_)) {
                *law = saved.clone();
            }
            None
        }
        _ => None,
    }
}

fn rate_step(law: &mut AnyRateLaw, event: &Event) -> Option<f64> {
    /// The paced machine's slowest rate.
    const SLOWEST: f64 = 1.0;
    let rtt = Dur::from_nanos(u64::from(event.rtt) * 1000);
    let mut cx = context(event);
    cx.rtt = Some(Rtt::first(rtt));
    let before = Rate::per_sec(per_second(event.before));
    match event.kind {
        Kind::Report => {
            let rate = |q24| Some(Rate::per_sec(per_second(q24)));
            let (arrival, capacity) = (rate(event.arrival), rate(event.capacity));
            let mut report = Report::new(event.packets, u64::from(event.sent), rtt);
            (report.arrival, report.capacity) = (arrival, capacity);
            law.observe(&report, &cx);
            law.window(&cx)
        }
        Kind::Tick => Some(law.tick(before, &cx).as_per_sec()),
        Kind::Start => Some(law.start(packets(event.before), &cx).as_per_sec().max(SLOWEST)),
        Kind::Cut | Kind::Timeout => {
            Some(law.cut(before, true, Signal::Loss, &cx).as_per_sec().max(SLOWEST))
        }
        _ => None,
    }
}
