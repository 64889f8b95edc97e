//! Times, and random events and random specs for the property tests.

use cwnd::delivery::RateSample;
use cwnd::registry::{Algorithm, Domain, algorithms};
use cwnd::{Acked, Conventions, Decided, Decision, Dur, Event, Limit, Lost, Marked, Packets};
use cwnd::{Rate, Report, Signal, SlowStart, Spec, Time};
use proptest::prelude::*;

pub(crate) fn at(millis: u64) -> Time {
    Time::ZERO + Dur::from_millis(millis)
}

/// A policy with every rule of [`Conventions`] turned on, and a reduction that uses every field of
/// the decision.
pub(crate) static EVERY_RULE: Conventions = {
    let mut conventions = Conventions::RFC;
    conventions.reduce = halve;
    conventions.infers_recovery = true;
    conventions.marks_reduce_in_recovery = true;
    conventions.threshold_from_max_window = true;
    conventions.overshoots_threshold = true;
    conventions.grows_unused = true;
    conventions.grows_past_max_window = true;
    conventions.restart_raises_threshold = true;
    conventions
};

/// Half of the window in slow start, at the first reduction and after a timeout; a timeout keeps
/// the threshold of a mark before it.
fn halve(decision: &Decision) -> Decided {
    let halves = decision.slow_start || decision.first || decision.why == Signal::Timeout;
    let target = match decision.law_threshold {
        Some(threshold) => threshold,
        None if halves => decision.window / 2.0,
        None => decision.cut,
    };
    let kept = decision.why == Signal::Timeout && decision.after_mark;
    let threshold = if kept { decision.threshold } else { target.floor().max(2.0) };
    Decided { threshold, window: target.min(decision.window).max(1.0) }
}

/// The conventions of TCP, of QUIC, and [`EVERY_RULE`].
pub(crate) fn conventions() -> impl Strategy<Value = &'static Conventions> {
    proptest::sample::select(vec![&Conventions::RFC, &Conventions::QUIC, &EVERY_RULE])
}

/// Every slow start of the crate.
pub(crate) fn slow_start() -> impl Strategy<Value = SlowStart> {
    proptest::sample::select(vec![
        SlowStart::Standard,
        SlowStart::HyStart,
        SlowStart::HyStartTrain,
        SlowStart::HyStartLinux,
    ])
}

/// Few enough cases that all laws take seconds, and no files beside the tests.
pub(crate) fn config(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

fn algorithm() -> impl Strategy<Value = &'static Algorithm> {
    (0..algorithms().len()).prop_map(|at| &algorithms()[at])
}

/// A value of `domain`, as a spec holds it; `None` leaves the parameter as it is.
fn value(domain: Domain) -> BoxedStrategy<Option<f64>> {
    match domain {
        Domain::Switch { .. } => prop_oneof![Just(Some(0.0)), Just(Some(1.0))].boxed(),
        Domain::Choice { choices, .. } => {
            prop::option::of((0..choices.len()).prop_map(|at| at as f64)).boxed()
        }
        Domain::Number { range, .. } => {
            let inside = (0.0..1.0_f64).prop_map(move |u| range.min + u * (range.max - range.min));
            let fraction = (1..64_u32, 1..64_u32).prop_map(|(n, d)| f64::from(n) / f64::from(d));
            let small = (-12.0..0.0_f64).prop_map(move |e| range.min + 10_f64.powf(e));
            let any = prop_oneof![inside, fraction, small];
            let middle = (range.min + range.max) / 2.0;
            any.prop_map(move |v| Some(if range.contains(v) { v } else { middle })).boxed()
        }
    }
}

/// Any controller with any values of its parameters.
pub(crate) fn spec() -> impl Strategy<Value = Spec> {
    algorithm().prop_flat_map(|algorithm| {
        let values: Vec<_> = algorithm.parameters.iter().map(|p| value(p.domain)).collect();
        values.prop_map(move |values| {
            algorithm.parameters.iter().zip(values).fold(Spec::new(algorithm), |spec, (p, v)| {
                v.map_or(spec, |v| spec.with(p.name, v).expect("a value of the domain is allowed"))
            })
        })
    })
}

/// Each controller with its defaults, and with each number at both ends of its range.
pub(crate) fn corners() -> Vec<Spec> {
    let mut specs = Vec::new();
    for algorithm in algorithms() {
        let plain = Spec::new(algorithm);
        specs.push(plain);
        for parameter in algorithm.parameters {
            if let Domain::Number { range, .. } = parameter.domain {
                let least = if range.min_excluded { range.min.next_up() } else { range.min };
                let most = if range.max_excluded { range.max.next_down() } else { range.max };
                specs.push(plain.with(parameter.name, least).expect("the least is allowed"));
                specs.push(plain.with(parameter.name, most).expect("the most is allowed"));
            }
        }
    }
    specs
}

/// One event and the time that passes before it.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub after: Dur,
    pub event: Event,
}

/// Times run on, and packets sent are counted up, as a driver would.
pub(crate) fn timed(steps: Vec<Step>) -> Vec<(Time, Event)> {
    let (mut now, mut total) = (Time::ZERO, 0_u64);
    let timed = steps.into_iter().map(|Step { after, mut event }| {
        now += after;
        total += 3;
        match &mut event {
            Event::Acked(Acked { sent_at, received_at, sent, .. }) => {
                // Drawn as an age.
                *sent_at = now - Dur::from_nanos(sent_at.as_nanos());
                *received_at = received_at.map(|age| now - Dur::from_nanos(age.as_nanos()));
                *sent = total;
            }
            Event::Lost(Lost { sent_at, sent, .. })
            | Event::Timeout(Lost { sent_at, sent, .. })
            | Event::Marked(Marked { sent_at, sent, .. }) => {
                *sent_at = now - Dur::from_nanos(sent_at.as_nanos());
                *sent = total;
            }
            Event::Report(Report { sent, .. }) => *sent = total,
            _ => {}
        }
        (now, event)
    });
    timed.collect()
}

fn age() -> impl Strategy<Value = Time> {
    prop_oneof![
        8 => (0..300_000_000_u64).prop_map(Time::from_nanos),
        1 => (0..20_000_000_000_u64).prop_map(Time::from_nanos),
    ]
}

fn rtt() -> impl Strategy<Value = Dur> {
    prop_oneof![
        8 => (1_000_000..300_000_000_u64).prop_map(Dur::from_nanos),
        1 => (0..20_000_000_000_u64).prop_map(Dur::from_nanos),
    ]
}

fn packets() -> impl Strategy<Value = u32> {
    prop_oneof![20 => 0..5_u32, 2 => 5..1000_u32, 1 => any::<u32>()]
}

fn limit() -> impl Strategy<Value = Limit> {
    prop_oneof![
        8 => Just(Limit::Window),
        1 => Just(Limit::Pacing),
        1 => Just(Limit::Receiver),
        1 => Just(Limit::Application),
    ]
}

fn delivery() -> impl Strategy<Value = RateSample> {
    let volumes = (0..1000_u64, any::<u64>(), 0..1000_u64, any::<u32>());
    let flags = (any::<bool>(), any::<bool>());
    (volumes, rtt(), rtt(), flags).prop_map(|(volumes, send_elapsed, ack_elapsed, flags)| {
        let mut sample = RateSample::new();
        (sample.delivered, sample.prior_delivered, sample.lost, sample.in_flight) = volumes;
        (sample.send_elapsed, sample.ack_elapsed) = (send_elapsed, ack_elapsed);
        (sample.application_limited, sample.reliable) = flags;
        sample
    })
}

fn acked() -> impl Strategy<Value = Event> {
    let counts = (packets(), packets(), any::<u32>());
    let times = (age(), prop::option::of(rtt()), prop::option::of(age()));
    let marks = (prop::bool::weighted(0.05), prop_oneof![9 => Just(0), 1 => packets()]);
    let sample = (prop::option::of(delivery()), prop::option::of(age()));
    (counts, times, marks, limit(), sample).prop_map(
        |((packets, credit, in_flight), (sent_at, rtt, received_at), marks, limit, sample)| {
            let mut acked = Acked::new(packets, sent_at);
            (acked.credit, acked.in_flight) = (credit, in_flight);
            (acked.rtt, acked.received_at) = (rtt, received_at);
            (acked.echo, acked.marked) = marks;
            (acked.limit, (acked.delivery, acked.departure)) = (limit, sample);
            Event::Acked(acked)
        },
    )
}

fn rate() -> impl Strategy<Value = Option<Rate>> {
    prop::option::of((-3.0..9.0_f64).prop_map(|e| Rate::per_sec(10_f64.powf(e))))
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        30 => acked(),
        3 => (packets(), age()).prop_map(|(packets, sent_at)| {
            Event::Lost(Lost::new(packets, sent_at, 0))
        }),
        2 => (packets(), age()).prop_map(|(packets, sent_at)| {
            Event::Marked(Marked::new(packets, sent_at, 0))
        }),
        10 => (packets(), rate(), rate(), rtt()).prop_map(|(packets, arrival, capacity, rtt)| {
            let mut report = Report::new(packets, 0, rtt);
            (report.arrival, report.capacity) = (arrival, capacity);
            Event::Report(report)
        }),
        3 => Just(Event::Recovered),
        1 => rtt().prop_map(|rtt| Event::Handshake { rtt }),
        1 => (packets(), age()).prop_map(|(packets, sent_at)| {
            Event::Timeout(Lost::new(packets, sent_at, 0))
        }),
        1 => Just(Event::Undo),
        1 => Just(Event::PersistentCongestion),
        1 => (0.0..40.0_f64, any::<bool>())
            .prop_map(|(w, idle)| Event::Reduced { window: Packets::new(w), idle }),
        1 => prop_oneof![4 => 500..9000_u32, 1 => any::<u32>()].prop_map(|packet| Event::Mtu { packet }),
        10 => Just(Event::Tick),
    ]
}

/// What a driver might tell a controller, in any order.
pub(crate) fn events(most: usize) -> impl Strategy<Value = Vec<(Time, Event)>> {
    let after = prop_oneof![
        1 => Just(Dur::ZERO),
        8 => (0..30_000_000_u64).prop_map(Dur::from_nanos),
        1 => (0..5_000_000_000_u64).prop_map(Dur::from_nanos),
    ];
    let step = (after, event()).prop_map(|(after, event)| Step { after, event });
    prop::collection::vec(step, 0..most).prop_map(timed)
}
