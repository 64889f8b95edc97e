//! Replays the kernel's events through the law of crate `cwnd`, and compares the windows.
//!
//! Each step starts from the kernel's window, because slow start and recovery are the kernel's. The
//! law's state (SIMD's α, CUBIC's epoch) evolves in the replay from the start of the
//! connection. The whole state of a whole controller does: its steps start from the replay's own
//! window and pacing rate.
//!
//! A law that is a text computes the same bits in the kernel: each step has to be equal. Its events have
//! numbers, and the replay ends at a missing one.

use super::Implementation;
use super::event::{Event, Kind, difference, micros};
use super::given::Given;
use super::whole::WholeReplay;
use cwnd::laws::{AnyLaw, AnyRateLaw};
use cwnd::{
    Context, Dur, Law, Lost, MakeController, Rate, RateLaw, Round, Rtt, Settings, Spec, Time,
    WindowLaw,
};

/// Largest accepted relative difference between a window or rate of the kernel and of the law; a
/// text has none.
///
/// The headers of `kernel/` bound the error of one step.
pub const BOUND: f64 = 1.0 / (1 << 24) as f64;
/// The largest window in packets: `FX_MAX_WINDOW`.
const MAX_WINDOW: f64 = ((1 << 24) - 1) as f64;
/// The smallest window in packets.
const MIN_WINDOW: f64 = 2.0;

/// Result of a replay.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Agreement {
    /// Steps compared.
    pub steps: u64,
    /// Cuts compared.
    pub cuts: u64,
    /// Largest relative difference of the window or rate.
    pub max_error: f64,
    /// Steps that are not compared: of whole controllers, because rounding has changed a decision
    /// before; of texts, because an event was lost.
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
    /// The number of the last event of a text; `None` after a lost one.
    number: Option<u32>,
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
        Some(Replay { law, number: Some(0), agreement: Agreement::default() })
    }

    /// Returns the result so far.
    pub fn agreement(&self) -> Agreement {
        self.agreement
    }

    /// Processes an event. Returns the law's window or rate if the event changes it.
    pub fn step(&mut self, event: &Event) -> Option<f64> {
        if let Some(given) = &event.given {
            let next = self.number.map(|last| last.wrapping_add(1));
            self.number = next.filter(|next| *next == given.number);
            if self.number.is_none() {
                self.agreement.parted += 1;
                return None;
            }
        }
        let (expected, error) = match &mut self.law {
            ReplayedLaw::Window { law, saved } => {
                let expected = window_step(law, saved, event)?;
                let found = match &event.given {
                    Some(given) if event.kind == Kind::Slow => f64::from(given.answer),
                    _ => event.packets(event.after),
                };
                (expected, Some(difference(found, expected)))
            }
            ReplayedLaw::Rate(law) => {
                let (expected, found) = rate_step(law, event, event.given.as_ref()?)?;
                (expected, Some(difference(found, expected)))
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
}

fn context(event: &Event) -> Context {
    if let Some(given) = &event.given {
        return given.context();
    }
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

fn window_step(law: &mut AnyLaw, saved: &mut AnyLaw, event: &Event) -> Option<f64> {
    let (cx, before) = (context(event), event.packets(event.before));
    match event.kind {
        Kind::Acked => {
            let mut acked = event.acked(cx.now);
            // What the window grows for is known later: a text is given all packets.
            acked.credit = event.given.map_or(0, |_| event.packets);
            law.observe(&acked, &cx);
            None
        }
        Kind::Enter => {
            law.enter(before, &cx);
            None
        }
        Kind::Slow => {
            let grows = event.given.is_some() && event.packets > 0;
            grows.then(|| f64::from(law.leave_slow_start(event.packets(event.after), &cx)))
        }
        Kind::Grow if event.given.is_some() => {
            let grown = law.grow(before, f64::from(event.packets), &cx);
            // An answer that is not a number leaves the least window.
            let grown = grown.max(MIN_WINDOW);
            Some(grown.min(MAX_WINDOW))
        }
        Kind::Grow => {
            let mut cx = cx;
            cx.rtt = (event.smoothed_rtt > 0).then(|| Rtt::first(micros(event.smoothed_rtt)));
            Some(law.grow(before, f64::from(event.packets), &cx))
        }
        Kind::Reduced => {
            law.reduced(event.packets(event.after));
            None
        }
        Kind::Mtu => {
            law.rescale(f64::from(event.packets) / f64::from(event.packet_bytes));
            None
        }
        Kind::Round => {
            let mut round = Round::default();
            (round.sent, round.lost) = (u64::from(event.sent), u64::from(event.lost));
            if let Some(given) = &event.given {
                round.marked = u64::from(given.marked);
                round.took = Dur::from_nanos(given.time);
            }
            law.round(&round, &cx);
            None
        }
        Kind::Cut | Kind::Timeout => {
            let timeout = event.kind == Kind::Timeout;
            if timeout {
                *law = saved.clone();
            }
            *saved = law.clone();
            let signal = event.signal();
            let cut = law.cut(before, signal, &cx);
            let slow_start = event.ssthresh != 0;
            // The same limits as `cut` of kernel/cubic.bpf.c.
            let threshold = law.threshold(cut, signal).filter(|threshold| !threshold.is_nan());
            let limit = match threshold {
                Some(_) if timeout => MAX_WINDOW,
                None if timeout || slow_start => before / 2.0,
                _ => before,
            };
            Some(threshold.unwrap_or(cut).min(limit).max(MIN_WINDOW))
        }
        Kind::Undo => {
            if event.packets != 0 {
                *law = saved.clone();
            }
            None
        }
        _ => None,
    }
}

/// The window or rate by the law, with the paced machine's bounds, and that of the kernel.
fn rate_step(law: &mut AnyRateLaw, event: &Event, given: &Given) -> Option<(f64, f64)> {
    let (cx, before) = (given.context(), Rate::per_sec(f64::from_bits(event.before)));
    let (rate, otherwise) = match event.kind {
        Kind::Report => {
            law.observe(&event.report(), &cx);
            let rises = law.delay_rises(&cx);
            if rises != given.answer {
                return Some((f64::from(rises), f64::from(given.answer)));
            }
            return Some((law.window(&cx).unwrap_or(f64::INFINITY), event.packets(event.after)));
        }
        Kind::Tick => (law.tick(before, &cx), before),
        Kind::Start => (law.start(event.packets(event.before), &cx), law.least()),
        Kind::Cut | Kind::Delay | Kind::Timeout | Kind::Lost => {
            if event.packets > 0 {
                let sent_at = Time::from_nanos(given.time);
                let lost = Lost::new(event.packets, sent_at, u64::from(event.sent));
                law.losses(&lost, before, &cx);
            }
            if event.kind == Kind::Lost {
                return None;
            }
            let after = law.cut(before, given.answer, event.signal(), &cx);
            (if after < before { after } else { before }, before)
        }
        Kind::Mtu => {
            law.rescale(f64::from(event.packets) / f64::from(event.packet_bytes));
            return None;
        }
        _ => return None,
    };
    let rate = if rate.as_per_sec().is_finite() { rate } else { otherwise };
    let rate = if rate < law.least() { law.least() } else { rate };
    Some((rate.as_per_sec(), f64::from_bits(event.after)))
}
