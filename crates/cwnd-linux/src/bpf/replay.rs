//! Replays the kernel's events through the law of crate `cwnd`, and compares the windows.
//!
//! Each step starts from the kernel's window, because slow start and recovery are the kernel's. The
//! law's state (SIMD's α, AIRA's a, AIAD's rate) evolves in the replay from the start of the
//! connection. The whole state of a whole controller does: its steps start from the replay's own
//! window and pacing rate.

use super::Implementation;
use super::event::{Event, Kind, difference, micros, packets, per_second};
use super::whole::WholeReplay;
use cwnd::laws::{AnyLaw, AnyRateLaw};
use cwnd::{
    Context, Law, MakeController, Rate, RateLaw, Round, Rtt, Settings, Signal, Spec, Time,
    WindowLaw,
};

/// Largest accepted relative difference between a window or rate of the kernel and of the law.
///
/// The headers of `kernel/` bound the error of one step. The rest is for state that drifts: AIRA's
/// `a` by 2^-30 a round, within its limits, and AIAD's rate, whose filter decays.
pub const BOUND: f64 = 1.0 / (1 << 24) as f64;
/// The largest window in packets: `FX_MAX_WINDOW`.
const MAX_WINDOW: f64 = ((1 << 24) - 1) as f64;

/// Result of a replay.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Agreement {
    /// Steps compared.
    pub steps: u64,
    /// Cuts compared.
    pub cuts: u64,
    /// Largest relative difference of the window or rate.
    pub max_error: f64,
    /// Steps of whole controllers that are not compared, because rounding has changed a decision
    /// before.
    pub parted: u64,
}

/// The replayed law. `saved` is the state before the last cut.
#[derive(Clone, Debug)]
enum ReplayedLaw {
    Window { law: AnyLaw, saved: AnyLaw },
    Rate(AnyRateLaw),
    Whole(Box<WholeReplay>),
}

/// Replay of one connection.
#[derive(Clone, Debug)]
pub struct Replay {
    law: ReplayedLaw,
    /// The receiver's newest timestamp, and nanoseconds of its clock since the first one.
    timestamp: Option<u32>,
    receiver_time: u64,
    agreement: Agreement,
}

impl Replay {
    /// Creates the replay of a connection, from its [`Kind::Begin`]; `None` if `spec` has no kernel
    /// implementation.
    pub fn new(spec: &Spec) -> Option<Replay> {
        Implementation::of(spec).ok()?;
        let law = match spec.law(&Settings::default()) {
            Some(Law::Window(law)) => ReplayedLaw::Window { saved: law.clone(), law },
            Some(Law::Rate(law)) => ReplayedLaw::Rate(law),
            None => ReplayedLaw::Whole(Box::new(WholeReplay::new(spec))),
        };
        Some(Replay { law, timestamp: None, receiver_time: 0, agreement: Agreement::default() })
    }

    /// Returns the result so far.
    pub fn agreement(&self) -> Agreement {
        self.agreement
    }

    /// Processes an event. Returns the law's window or rate if the event changes it.
    pub fn step(&mut self, event: &Event) -> Option<f64> {
        let received_at = self.receiver_time(event);
        let (expected, error) = match &mut self.law {
            ReplayedLaw::Window { law, saved } => {
                let expected = window_step(law, saved, event, received_at)?;
                (expected, Some(difference(packets(event.after), expected)))
            }
            ReplayedLaw::Rate(law) => {
                let expected = rate_step(law, event)?;
                let unit = if event.kind == Kind::Report { packets } else { per_second };
                (expected, Some(difference(unit(event.after), expected)))
            }
            ReplayedLaw::Whole(replay) => replay.step(event, BOUND)?,
        };
        let agreement = &mut self.agreement;
        if let Some(error) = error {
            agreement.steps += 1;
            agreement.cuts += u64::from(event.is_cut());
            agreement.max_error = agreement.max_error.max(error);
        } else {
            agreement.parted += 1;
        }
        Some(expected)
    }

    /// Updates the receiver's clock, which is monotonic. Timestamps are milliseconds and wrap.
    fn receiver_time(&mut self, event: &Event) -> Option<Time> {
        if event.kind != Kind::Acked || event.timestamp == 0 {
            return None;
        }
        let ticks = self.timestamp.map_or(0, |last| event.timestamp.wrapping_sub(last) as i32);
        if ticks > 0 || self.timestamp.is_none() {
            self.timestamp = Some(event.timestamp);
            self.receiver_time += ticks as u64 * 1_000_000;
        }
        Some(Time::from_nanos(self.receiver_time))
    }
}

fn context(event: &Event) -> Context {
    let rtt = event.rtt.max(event.min_rtt);
    let known = (rtt > 0).then(|| {
        let mut known = Rtt::first(micros(rtt));
        known.min = micros(event.min_rtt);
        known
    });
    let mut cx = Context::new(Time::from_nanos(event.time), known);
    cx.packet = event.packet_bytes;
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
            let mut acked = event.acked(cx.now);
            acked.received_at = received_at;
            law.observe(&acked, &cx);
            None
        }
        Kind::Enter => {
            law.enter(before, &cx);
            None
        }
        Kind::Grow => {
            let mut cx = cx;
            cx.rtt = (event.smoothed_rtt > 0).then(|| Rtt::first(micros(event.smoothed_rtt)));
            Some(law.grow(before, f64::from(event.packets), &cx))
        }
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
            let signal = if timeout { Signal::Timeout } else { Signal::Loss };
            let cut = law.cut(before, signal, &cx);
            let slow_start = event.ssthresh != 0;
            // The same limit as `cut` of kernel/window.h.
            let limit = match law.threshold(cut, signal) {
                Some(_) if timeout => MAX_WINDOW,
                None if timeout || slow_start => before / 2.0,
                _ => before,
            };
            Some(cut.min(limit).max(2.0))
        }
        Kind::Undo => {
            // AIAD keeps its estimate: the measurements remain valid.
            if event.packets != 0 && !matches!(law, AnyLaw::Aiad(_)) {
                *law = saved.clone();
            }
            None
        }
        _ => None,
    }
}

fn rate_step(law: &mut AnyRateLaw, event: &Event) -> Option<f64> {
    /// The paced machine's minimum rate.
    const MIN_RATE: f64 = 1.0;
    let mut cx = context(event);
    cx.rtt = Some(Rtt::first(micros(event.rtt)));
    let before = Rate::per_sec(per_second(event.before));
    match event.kind {
        Kind::Report => {
            law.observe(&event.report(), &cx);
            law.window(&cx)
        }
        Kind::Tick => Some(law.tick(before, &cx).as_per_sec()),
        Kind::Start => Some(law.start(packets(event.before), &cx).as_per_sec().max(MIN_RATE)),
        Kind::Cut | Kind::Timeout => {
            Some(law.cut(before, true, Signal::Loss, &cx).as_per_sec().max(MIN_RATE))
        }
        _ => None,
    }
}
