//! The hooks of a law: the methods of cwnd's traits `WindowLaw` and `RateLaw`, by their names, and
//! the values that they are given.

use crate::unit::Unit;
use core::fmt;

/// The kind of a law.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A law for the window, clocked by acknowledgements.
    Window,
    /// A law for the sending rate, run once in each control interval.
    Rate,
}

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Type {
    /// A number with a unit.
    Number(Unit),
    /// A time by the clock of the connection. The difference of two is in seconds.
    Instant,
    /// True or false.
    Truth,
    /// One of the choices of a parameter or of an input.
    Choice(&'static [&'static str]),
    /// One of the choices of the parameter of this number.
    ParameterChoice(usize),
    /// 0 or none: of any of the other types.
    Any,
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Type::Number(unit) => unit.fmt(f),
            Type::Instant => f.write_str("a time of the clock"),
            Type::Truth => f.write_str("true or false"),
            Type::Choice(_) | Type::ParameterChoice(_) => f.write_str("a choice"),
            Type::Any => f.write_str("0 or none"),
        }
    }
}

const PLAIN: Type = Type::Number(Unit::PLAIN);
const SECONDS: Type = Type::Number(Unit::SECONDS);
const RATE: Type = Type::Number(Unit::PER_SECOND);

/// The congestion signals, by the names of `Signal`; each is the number of its place.
pub const SIGNALS: &[&str] = &["loss", "mark", "timeout", "persistent_congestion", "delay"];
/// What limits a sender, by the names of `Limit`.
pub const LIMITS: &[&str] = &["window", "pacing", "receiver", "application"];
/// The clocks of a rate law, by the names of `Clock`.
pub const CLOCKS: &[&str] = &["timer", "reports"];

/// The inputs: for each its name, its type, and whether it may be none.
macro_rules! inputs {
    ($($(#[$doc:meta])* $variant:ident $name:literal $type:expr, $maybe:literal;)+) => {
        /// A value that a hook is given.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Input {
            $($(#[$doc])* $variant,)+
        }

        impl Input {
            /// All inputs.
            pub const ALL: &'static [Input] = &[$(Input::$variant),+];

            /// Its name in a law.
            pub const fn name(self) -> &'static str {
                match self { $(Input::$variant => $name,)+ }
            }

            pub(crate) const fn kind(self) -> Type {
                match self { $(Input::$variant => $type,)+ }
            }

            /// Whether it may be none.
            pub const fn may_be_none(self) -> bool {
                match self { $(Input::$variant => $maybe,)+ }
            }
        }
    };
}

inputs! {
    /// The time.
    Now "now" Type::Instant, false;
    /// The smoothed round-trip time.
    Rtt "rtt" SECONDS, true;
    /// The smallest round-trip time.
    MinRtt "min_rtt" SECONDS, true;
    /// The latest round-trip time.
    LatestRtt "latest_rtt" SECONDS, true;
    /// The time of the last reduction, or of the start of the connection.
    LastCut "last_cut" Type::Instant, false;
    /// Round-trip times since the last reduction.
    RttsSinceCut "rtts_since_cut" PLAIN, false;
    /// The maximum packet size in bytes.
    Packet "packet" PLAIN, false;
    /// Whether the sender is in slow start.
    SlowStart "slow_start" Type::Truth, false;
    /// The window in packets.
    W "w" PLAIN, false;
    /// Packets acknowledged in congestion avoidance.
    Acked "acked" PLAIN, false;
    /// The congestion signal.
    Why "why" Type::Choice(SIGNALS), false;
    /// The answer of the hook `cut`.
    Cut "cut" PLAIN, false;
    /// Packets sent in the round.
    RoundSent "round.sent" PLAIN, false;
    /// Packets of the round declared lost.
    RoundLost "round.lost" PLAIN, false;
    /// Packets of the round reported as marked.
    RoundMarked "round.marked" PLAIN, false;
    /// The length of the round.
    RoundTook "round.took" SECONDS, false;
    /// Packets newly acknowledged.
    AckedPackets "acked.packets" PLAIN, false;
    /// Packets that the window may grow for.
    AckedCredit "acked.credit" PLAIN, false;
    /// Packets in flight after the acknowledgement.
    AckedInFlight "acked.in_flight" PLAIN, false;
    /// Packets sent since the connection began.
    AckedSent "acked.sent" PLAIN, false;
    /// When the most recently sent of the acknowledged packets was sent.
    AckedSentAt "acked.sent_at" Type::Instant, false;
    /// The round-trip time sample.
    AckedRtt "acked.rtt" SECONDS, true;
    /// When the acknowledgement was sent, by the receiver's clock.
    AckedReceivedAt "acked.received_at" Type::Instant, true;
    /// Whether the acknowledgement carries ECN-Echo.
    AckedEcho "acked.echo" Type::Truth, false;
    /// Packets newly reported as marked.
    AckedMarked "acked.marked" PLAIN, false;
    /// Why the sender last stopped sending.
    AckedLimit "acked.limit" Type::Choice(LIMITS), false;
    /// The delivery rate of the sample.
    AckedDeliveryRate "acked.delivery.rate" RATE, true;
    /// Packets delivered in the sample.
    AckedDeliveryDelivered "acked.delivery.delivered" PLAIN, true;
    /// Packets delivered before the sample's packet was sent.
    AckedDeliveryPriorDelivered "acked.delivery.prior_delivered" PLAIN, true;
    /// The length of the sample.
    AckedDeliveryInterval "acked.delivery.interval" SECONDS, true;
    /// Packets declared lost in the sample.
    AckedDeliveryLost "acked.delivery.lost" PLAIN, true;
    /// Packets in flight when the sample's packet was sent.
    AckedDeliveryInFlight "acked.delivery.in_flight" PLAIN, true;
    /// Whether the application limited the sender when the sample's packet was sent.
    AckedDeliveryApplicationLimited "acked.delivery.application_limited" Type::Truth, true;
    /// The sending rate in packets per second.
    Rate "rate" RATE, false;
    /// Whether a new congestion period begins.
    Fresh "fresh" Type::Truth, false;
    /// Packets newly acknowledged.
    ReportPackets "report.packets" PLAIN, false;
    /// Packets sent since the connection began.
    ReportSent "report.sent" PLAIN, false;
    /// The arrival rate that the receiver measures.
    ReportArrival "report.arrival" RATE, true;
    /// The link capacity that the receiver estimates.
    ReportCapacity "report.capacity" RATE, true;
    /// The round-trip time.
    ReportRtt "report.rtt" SECONDS, false;
    /// Packets lost or marked.
    LostPackets "lost.packets" PLAIN, false;
    /// When the most recently sent of them was sent.
    LostSentAt "lost.sent_at" Type::Instant, false;
    /// Packets sent since the connection began.
    LostSent "lost.sent" PLAIN, false;
    /// Whether windows are counts of whole packets, as in Linux.
    WholePackets "conventions.whole_packets" Type::Truth, false;
    /// By which the packet size divides packets.
    Factor "factor" PLAIN, false;
}

/// What a hook answers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Answer {
    /// Its type; nothing for hooks that only change the state.
    pub(crate) kind: Option<Type>,
    /// Whether it may be none.
    pub(crate) may_be_none: bool,
    /// The input that is the answer of a hook that returns none of its own; without one each path
    /// returns.
    pub(crate) otherwise: Option<Input>,
}

/// The context of most hooks.
const CONTEXT: &[Input] = &[
    Input::Now,
    Input::Rtt,
    Input::MinRtt,
    Input::LatestRtt,
    Input::LastCut,
    Input::RttsSinceCut,
    Input::Packet,
    Input::SlowStart,
];

/// The hooks: for each its name, the kind of its law, whether it changes the state, whether it is
/// given the context, its other inputs and its answer.
macro_rules! hooks {
    ($($variant:ident $name:literal $kind:ident, $changes:literal, $context:literal,
        [$($input:ident),*], $answer:expr;)+) => {
        /// A method of cwnd's traits of laws.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Hook {
            $(#[doc = concat!("`", stringify!($kind), "Law::", $name, "`.")] $variant,)+
        }

        impl Hook {
            /// All hooks.
            pub const ALL: &'static [Hook] = &[$(Hook::$variant),+];

            /// Its name in a law.
            pub const fn name(self) -> &'static str {
                match self { $(Hook::$variant => $name,)+ }
            }

            /// The kind of law that has it.
            pub const fn kind(self) -> Kind {
                match self { $(Hook::$variant => Kind::$kind,)+ }
            }

            pub(crate) const fn changes_state(self) -> bool {
                match self { $(Hook::$variant => $changes,)+ }
            }

            /// The values that it is given.
            pub fn inputs(self) -> impl Iterator<Item = Input> {
                let (context, own): (bool, &[Input]) = match self {
                    $(Hook::$variant => ($context, &[$(Input::$input),*]),)+
                };
                own.iter().chain(if context { CONTEXT } else { &[] }).copied()
            }

            pub(crate) const fn answer(self) -> Answer {
                match self { $(Hook::$variant => $answer,)+ }
            }
        }
    };
}

const fn answer(kind: Type) -> Answer {
    Answer { kind: Some(kind), may_be_none: false, otherwise: None }
}

const fn or_else(kind: Type, otherwise: Input) -> Answer {
    Answer { kind: Some(kind), may_be_none: false, otherwise: Some(otherwise) }
}

const fn perhaps(kind: Type) -> Answer {
    Answer { kind: Some(kind), may_be_none: true, otherwise: None }
}

const NOTHING: Answer = Answer { kind: None, may_be_none: false, otherwise: None };

hooks! {
    Adopt "adopt" Window, true, false, [WholePackets], NOTHING;
    Grow "grow" Window, true, true, [W, Acked], or_else(PLAIN, Input::W);
    Cut "cut" Window, true, true, [W, Why], or_else(PLAIN, Input::W);
    AnswersMark "answers_mark" Window, false, true, [], answer(Type::Truth);
    GrowsAfterMark "grows_after_mark" Window, false, false, [], answer(Type::Truth);
    Threshold "threshold" Window, false, false, [Cut, Why], perhaps(PLAIN);
    Enter "enter" Window, true, true, [W], NOTHING;
    Round "round" Window, true, true, [RoundSent, RoundLost, RoundMarked, RoundTook], NOTHING;
    TimeoutEndsRound "timeout_ends_round" Window, false, false, [], answer(Type::Truth);
    Observe "observe" Window, true, true, [
        AckedPackets, AckedCredit, AckedInFlight, AckedSent, AckedSentAt, AckedRtt, AckedReceivedAt,
        AckedEcho, AckedMarked, AckedLimit, AckedDeliveryRate, AckedDeliveryDelivered,
        AckedDeliveryPriorDelivered, AckedDeliveryInterval, AckedDeliveryLost, AckedDeliveryInFlight,
        AckedDeliveryApplicationLimited
    ], NOTHING;
    LeaveSlowStart "leave_slow_start" Window, true, true, [W], answer(Type::Truth);
    Reduced "reduced" Window, true, false, [W], NOTHING;
    Rescale "rescale" Window, true, false, [Factor], NOTHING;
    NeedsEcn "needs_ecn" Window, false, false, [], answer(Type::Truth);
    Clock "clock" Rate, false, false, [], answer(Type::Choice(CLOCKS));
    Interval "interval" Rate, false, false, [], answer(SECONDS);
    Tick "tick" Rate, true, true, [Rate], or_else(RATE, Input::Rate);
    CutRate "cut" Rate, true, true, [Rate, Fresh, Why], or_else(RATE, Input::Rate);
    Start "start" Rate, true, true, [W], answer(RATE);
    ObserveReport "observe" Rate, true, true,
        [ReportPackets, ReportSent, ReportArrival, ReportCapacity, ReportRtt], NOTHING;
    DelayRises "delay_rises" Rate, true, true, [], answer(Type::Truth);
    Losses "losses" Rate, true, true, [LostPackets, LostSentAt, LostSent, Rate], NOTHING;
    FlowWindow "window" Rate, false, true, [], perhaps(PLAIN);
    StartsItself "starts_itself" Rate, false, false, [], answer(Type::Truth);
    Least "least" Rate, false, false, [], answer(RATE);
    RescaleRate "rescale" Rate, true, false, [Factor], NOTHING;
}

impl Hook {
    /// Whether each law of its kind has it.
    pub const fn is_required(self) -> bool {
        matches!(
            self,
            Hook::Grow
                | Hook::Cut
                | Hook::Clock
                | Hook::Interval
                | Hook::Tick
                | Hook::CutRate
                | Hook::Start
        )
    }
}
