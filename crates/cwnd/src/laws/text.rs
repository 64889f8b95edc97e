//! Laws that are texts: the traits' methods are the hooks of the text. The build makes Rust from
//! the texts in this folder (`build.rs`); those of users are interpreted.

#[cfg(feature = "files")]
use crate::answers;
use crate::conventions::Conventions;
use crate::event::{Acked, Limit, Lost, Report};
use crate::law::{Clock, Context, RateLaw, Round, Signal, WindowLaw};
use crate::units::{Dur, Rate, Time, to_f64};
#[cfg(feature = "files")]
use cwnd_law::Instance;
use cwnd_law::{Hook, Input};

/// The hooks of a text.
#[doc(hidden)]
pub trait Hooks: Clone + core::fmt::Debug + Send + Sync + 'static {
    /// Runs a hook that changes the state, which asks for its inputs: its answer; nothing without an
    /// answer, or without the hook. Instants are in nanoseconds, other times in seconds, choices are
    /// their places.
    fn call(&mut self, hook: Hook, input: impl Fn(Input) -> Option<f64>) -> Option<f64>;

    /// The same for a hook that does not change the state.
    fn ask(&self, hook: Hook, input: impl Fn(Input) -> Option<f64>) -> Option<f64>;

    /// Whether a hook uses the input.
    fn uses(&self, input: Input) -> bool;

    /// Emits the states that are shown.
    fn gauges(&self, emit: &mut dyn FnMut(&'static str, f64));
}

/// A text of a window law.
#[doc(hidden)]
pub trait WindowText: Hooks {}

/// A text of a rate law.
#[doc(hidden)]
pub trait RateText: Hooks {}

/// The law of a user's file.
#[cfg(feature = "files")]
#[derive(Clone, Debug)]
pub(crate) struct File(pub(crate) Instance<'static>);

#[cfg(feature = "files")]
impl Hooks for File {
    #[inline]
    fn call(&mut self, hook: Hook, input: impl Fn(Input) -> Option<f64>) -> Option<f64> {
        let answer = self.0.call(hook, &input)?;
        // The machine bounds these answers.
        let bounded = [Hook::Grow, Hook::Cut, Hook::CutRate, Hook::Tick, Hook::Start];
        if bounded.contains(&hook) && !(0.0..f64::INFINITY).contains(&answer) {
            answers::keep(self.0.law(), hook, answer, input(Input::Now));
        }
        Some(answer)
    }

    fn ask(&self, hook: Hook, input: impl Fn(Input) -> Option<f64>) -> Option<f64> {
        self.0.ask(hook, input)
    }

    fn uses(&self, input: Input) -> bool {
        self.0.law().uses(input)
    }

    fn gauges(&self, emit: &mut dyn FnMut(&'static str, f64)) {
        self.0.states().for_each(|(name, value)| emit(name, value));
    }
}

#[cfg(feature = "files")]
impl WindowText for File {}

#[cfg(feature = "files")]
impl RateText for File {}

fn instant(time: Time) -> Option<f64> {
    Some(to_f64(time.as_nanos()))
}

fn truth(is: bool) -> Option<f64> {
    Some(f64::from(u8::from(is)))
}

/// The place of a signal in [`cwnd_law::SIGNALS`].
fn signal(why: Signal) -> Option<f64> {
    Signal::ALL.iter().position(|signal| *signal == why).map(|place| place as f64)
}

/// The place of a limit in [`cwnd_law::LIMITS`].
fn limit(limit: Limit) -> Option<f64> {
    Some(match limit {
        Limit::Window => 0.0,
        Limit::Pacing => 1.0,
        Limit::Receiver => 2.0,
        Limit::Application => 3.0,
    })
}

#[inline]
fn context(cx: &Context, input: Input) -> Option<f64> {
    match input {
        Input::Now => instant(cx.now),
        Input::Rtt => cx.rtt.map(|rtt| rtt.smoothed.as_secs()),
        Input::MinRtt => cx.rtt.filter(|rtt| rtt.min < Dur::MAX).map(|rtt| rtt.min.as_secs()),
        Input::LatestRtt => cx.rtt.map(|rtt| rtt.latest.as_secs()),
        Input::LastCut => instant(cx.last_cut),
        Input::RttsSinceCut => Some(cx.rtts_since_cut()),
        Input::Packet => Some(f64::from(cx.packet)),
        Input::SlowStart => truth(cx.slow_start),
        _ => None,
    }
}

fn acknowledgement(acked: &Acked, cx: &Context, input: Input) -> Option<f64> {
    let delivery = acked.delivery.as_ref();
    match input {
        Input::AckedPackets => Some(f64::from(acked.packets)),
        Input::AckedCredit => Some(f64::from(acked.credit)),
        Input::AckedInFlight => Some(f64::from(acked.in_flight)),
        Input::AckedSent => Some(to_f64(acked.sent)),
        Input::AckedSentAt => instant(acked.sent_at),
        Input::AckedRtt => acked.rtt.map(Dur::as_secs),
        Input::AckedReceivedAt => acked.received_at.and_then(instant),
        Input::AckedEcho => truth(acked.echo),
        Input::AckedMarked => Some(f64::from(acked.marked)),
        Input::AckedLimit => limit(acked.limit),
        Input::AckedDeliveryRate => delivery?.rate().map(Rate::as_per_sec),
        Input::AckedDeliveryDelivered => Some(to_f64(delivery?.delivered)),
        Input::AckedDeliveryPriorDelivered => Some(to_f64(delivery?.prior_delivered)),
        Input::AckedDeliveryInterval => Some(delivery?.interval().as_secs()),
        Input::AckedDeliveryLost => Some(to_f64(delivery?.lost)),
        Input::AckedDeliveryInFlight => Some(f64::from(delivery?.in_flight)),
        Input::AckedDeliveryApplicationLimited => truth(delivery?.application_limited),
        other => context(cx, other),
    }
}

/// The inputs that a law uses only if its driver measures the delivery rate.
const DELIVERY: [Input; 7] = [
    Input::AckedDeliveryRate,
    Input::AckedDeliveryDelivered,
    Input::AckedDeliveryPriorDelivered,
    Input::AckedDeliveryInterval,
    Input::AckedDeliveryLost,
    Input::AckedDeliveryInFlight,
    Input::AckedDeliveryApplicationLimited,
];

impl<T: WindowText> WindowLaw for T {
    fn adopt(&mut self, conventions: &'static Conventions) {
        self.call(Hook::Adopt, |_| truth(conventions.whole_packets));
    }

    #[inline]
    fn grow(&mut self, w: f64, acked: f64, cx: &Context) -> f64 {
        let grown = self.call(Hook::Grow, |input| match input {
            Input::W => Some(w),
            Input::Acked => Some(acked),
            other => context(cx, other),
        });
        grown.unwrap_or(w)
    }

    fn cut(&mut self, w: f64, why: Signal, cx: &Context) -> f64 {
        let cut = self.call(Hook::Cut, |input| match input {
            Input::W => Some(w),
            Input::Why => signal(why),
            other => context(cx, other),
        });
        // The machine leaves the least window; a value that is not finite would be no cut.
        cut.map_or(w, |cut| if cut.is_finite() { cut } else { 0.0 })
    }

    fn answers_mark(&self, cx: &Context) -> bool {
        self.ask(Hook::AnswersMark, |input| context(cx, input)) != Some(0.0)
    }

    fn grows_after_mark(&self) -> bool {
        self.ask(Hook::GrowsAfterMark, |_| None) == Some(1.0)
    }

    fn threshold(&self, cut: f64, why: Signal) -> Option<f64> {
        self.ask(Hook::Threshold, |input| match input {
            Input::Cut => Some(cut),
            Input::Why => signal(why),
            _ => None,
        })
    }

    fn enter(&mut self, w: f64, cx: &Context) {
        self.call(Hook::Enter, |input| match input {
            Input::W => Some(w),
            other => context(cx, other),
        });
    }

    fn round(&mut self, round: &Round, cx: &Context) {
        self.call(Hook::Round, |input| match input {
            Input::RoundSent => Some(to_f64(round.sent)),
            Input::RoundLost => Some(to_f64(round.lost)),
            Input::RoundMarked => Some(to_f64(round.marked)),
            Input::RoundTook => Some(round.took.as_secs()),
            other => context(cx, other),
        });
    }

    fn timeout_ends_round(&self) -> bool {
        self.ask(Hook::TimeoutEndsRound, |_| None) != Some(0.0)
    }

    #[inline]
    fn observe(&mut self, acked: &Acked, cx: &Context) {
        self.call(Hook::Observe, |input| acknowledgement(acked, cx, input));
    }

    fn leave_slow_start(&mut self, w: f64, cx: &Context) -> bool {
        let leaves = self.call(Hook::LeaveSlowStart, |input| match input {
            Input::W => Some(w),
            other => context(cx, other),
        });
        leaves == Some(1.0)
    }

    fn reduced(&mut self, w: f64) {
        self.call(Hook::Reduced, |_| Some(w));
    }

    fn rescale(&mut self, factor: f64) {
        self.call(Hook::Rescale, |_| Some(factor));
    }

    fn uses_delivery_rate(&self) -> bool {
        DELIVERY.iter().any(|input| self.uses(*input))
    }

    fn needs_ecn(&self) -> bool {
        self.ask(Hook::NeedsEcn, |_| None) == Some(1.0)
    }

    fn gauges(&self, emit: &mut dyn FnMut(&'static str, f64)) {
        Hooks::gauges(self, emit);
    }
}

/// The answer of a hook that changes the rate.
fn changed(
    law: &mut impl Hooks,
    hook: Hook,
    rate: Rate,
    input: impl Fn(Input) -> Option<f64>,
) -> Rate {
    let answer = law.call(hook, |name| match name {
        Input::Rate => Some(rate.as_per_sec()),
        other => input(other),
    });
    answer.map_or(rate, Rate::per_sec)
}

impl<T: RateText> RateLaw for T {
    fn clock(&self) -> Clock {
        match self.ask(Hook::Clock, |_| None) {
            Some(1.0) => Clock::Reports,
            _ => Clock::Timer,
        }
    }

    fn interval(&self) -> Dur {
        // A shorter interval is none on the clock of the drivers.
        let interval = self.ask(Hook::Interval, |_| None).unwrap_or(0.0);
        Dur::from_secs(interval).max(Dur::from_micros(1))
    }

    fn tick(&mut self, rate: Rate, cx: &Context) -> Rate {
        changed(self, Hook::Tick, rate, |input| context(cx, input))
    }

    fn cut(&mut self, rate: Rate, fresh: bool, why: Signal, cx: &Context) -> Rate {
        changed(self, Hook::CutRate, rate, |input| match input {
            Input::Fresh => truth(fresh),
            Input::Why => signal(why),
            other => context(cx, other),
        })
    }

    fn start(&mut self, w: f64, cx: &Context) -> Rate {
        let rate = self.call(Hook::Start, |input| match input {
            Input::W => Some(w),
            other => context(cx, other),
        });
        Rate::per_sec(rate.unwrap_or(0.0))
    }

    fn observe(&mut self, report: &Report, cx: &Context) {
        self.call(Hook::ObserveReport, |input| match input {
            Input::ReportPackets => Some(f64::from(report.packets)),
            Input::ReportSent => Some(to_f64(report.sent)),
            Input::ReportArrival => report.arrival.map(Rate::as_per_sec),
            Input::ReportCapacity => report.capacity.map(Rate::as_per_sec),
            Input::ReportRtt => Some(report.rtt.as_secs()),
            other => context(cx, other),
        });
    }

    fn delay_rises(&mut self, cx: &Context) -> bool {
        self.call(Hook::DelayRises, |input| context(cx, input)) == Some(1.0)
    }

    fn losses(&mut self, lost: &Lost, rate: Rate, cx: &Context) {
        self.call(Hook::Losses, |input| match input {
            Input::LostPackets => Some(f64::from(lost.packets)),
            Input::LostSentAt => instant(lost.sent_at),
            Input::LostSent => Some(to_f64(lost.sent)),
            Input::Rate => Some(rate.as_per_sec()),
            other => context(cx, other),
        });
    }

    fn window(&self, cx: &Context) -> Option<f64> {
        self.ask(Hook::FlowWindow, |input| context(cx, input))
    }

    fn starts_itself(&self) -> bool {
        self.ask(Hook::StartsItself, |_| None) == Some(1.0)
    }

    fn uses_capacity(&self) -> bool {
        self.uses(Input::ReportCapacity)
    }

    fn least(&self) -> Rate {
        Rate::per_sec(self.ask(Hook::Least, |_| None).unwrap_or(1.0))
    }

    fn rescale(&mut self, factor: f64) {
        self.call(Hook::RescaleRate, |_| Some(factor));
    }

    fn gauges(&self, emit: &mut dyn FnMut(&'static str, f64)) {
        Hooks::gauges(self, emit);
    }
}
