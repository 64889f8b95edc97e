//! Properties of links that vary: order, capacity and bounds.

use super::*;
use crate::network::{
    Blackout, Cellular, Change, GilbertElliott, Impairments, Jitter, Leo, Model, Queue, Reorder,
    TokenBucket, Trace,
};
use cwnd::Dur;
use proptest::prelude::*;

const MS: u64 = 1_000_000;

fn ms(millis: u64) -> Dur {
    Dur::from_millis(millis)
}

fn packet(size: u16, flags: u16) -> Packet {
    Packet::new(0, 0, 0, size, flags)
}

fn spec(impairments: Impairments) -> network::Link {
    let plain = network::Link::new("link", [0, 1], Some(10e6), ms(10), Queue::INFINITE);
    network::Link { impairments: Some(impairments.into()), ..plain }
}

fn clock() -> Clock {
    Clock::widest(Dur::from_secs(1000.0))
}

fn link(impairments: Impairments) -> Link {
    let spec = spec(impairments);
    assert_eq!(spec.validate(), Ok(()));
    Link::new(&spec, clock(), Observations::none(), 0, 1)
}

fn change(at: u64, rate: f64, over: u64) -> Change {
    Change { at: ms(at), over: ms(over), rate: Some(rate), ..Change::default() }
}

fn leo() -> Leo {
    let delay = [ms(5), ms(40)];
    Leo { interval: ms(300), rate: [1e6, 50e6], delay, outage: ms(20) }
}

fn cellular() -> Cellular {
    Cellular { max: 12e6, sigma: 20e6, outage: ms(100), step: ms(20) }
}

fn trace(opportunities: &[u32], delays: &[u32]) -> Model {
    Model::Trace(Trace {
        opportunities: opportunities.into(),
        delays: delays.into(),
        interval: ms(10),
    })
}

/// Passes this many packets of `size` bytes at the start. Returns their departures in milliseconds.
fn departures(link: &mut Link, count: usize, size: u16) -> Vec<u64> {
    let departure = |_| {
        link.receive(0, packet(size, 0));
        clock().nanos(link.departed()) / MS
    };
    (0..count).map(departure).collect()
}

/// Impairments of every kind, except reordering and token buckets.
fn any_impairments() -> impl Strategy<Value = Impairments> {
    let changes = prop::collection::vec((0u64..500, 0u64..300, 0.0..40e6f64, 0u64..50), 1..6);
    let changes = changes.prop_map(|each| {
        let mut at = 0;
        let mut changes: Vec<_> = each
            .into_iter()
            .map(|(gap, over, rate, delay)| {
                at += gap;
                let rate = if rate < 4e6 { 0.0 } else { rate };
                Change { delay: Some(ms(delay)), ..change(at, rate, over) }
            })
            .collect();
        changes.push(change(at + 300, 8e6, 0));
        Impairments { changes, ..Impairments::default() }
    });
    let model = |model| Impairments { model: Some(model), ..Impairments::default() };
    let times = prop::collection::vec(0u32..20, 1..30).prop_map(move |mut times| {
        times.push(20);
        times.sort_unstable();
        model(trace(&times, &[30, 1, 0, 17]))
    });
    let base = prop_oneof![
        2 => changes,
        1 => times,
        1 => Just(model(Model::Cellular(cellular()))),
        1 => Just(model(Model::Leo(leo()))),
    ];
    let jitter = prop_oneof![
        Just(None),
        Just(Some(Jitter::Uniform(ms(8)))),
        Just(Some(Jitter::Wifi(ms(7)))),
    ];
    (base, jitter, prop_oneof![Just(0u64), 1u64..20]).prop_map(|(base, jitter, release)| {
        Impairments { jitter, ack_aggregation: ms(release), ..base }
    })
}

/// Gaps in nanoseconds, sizes and flags of arriving packets.
fn arrivals() -> impl Strategy<Value = Vec<(u64, u16, bool)>> {
    prop::collection::vec((0u64..3 * MS, 40u16..1500, any::<bool>()), 1..600)
}

fn flags_of(ack: bool) -> u16 {
    if ack { flags::ACK } else { 0 }
}

proptest! {
    #[test]
    fn packets_stay_in_order_and_take_the_least_delay(
        impairments in any_impairments(), packets in arrivals(),
    ) {
        let mut link = link(impairments);
        let (mut now, mut last) = (0, 0);
        for (gap, size, ack) in packets {
            now += clock().ticks(gap);
            let expected = link.earliest_arrival(now);
            let (arrives, gained) = link.receive(now, packet(size, flags_of(ack)));
            prop_assert_eq!(gained, 0);
            prop_assert!(arrives >= last && arrives >= expected, "{arrives} {last} {expected}");
            prop_assert!(link.departed() > now && link.departed() <= arrives);
            last = arrives;
        }
    }

    /// Late packets and others are each in order, and a late packet takes the additional delay.
    #[test]
    fn reordering_delays_some_packets(impairments in any_impairments(), packets in arrivals()) {
        let reorder = Some(Reorder { probability: 0.3, delay: ms(5) });
        let mut one = link(impairments.clone());
        let mut other = link(Impairments { reorder, ..impairments });
        let (mut now, mut late) = (0, 0);
        for (gap, size, ack) in packets {
            now += clock().ticks(gap);
            let (expected, _) = one.receive(now, packet(size, flags_of(ack)));
            let (arrives, gained) = other.receive(now, packet(size, flags_of(ack)));
            let extra = if other.is_late() { clock().ticks(5 * MS) } else { 0 };
            prop_assert_eq!(arrives, expected + extra);
            prop_assert_eq!(gained != 0, other.is_late());
            if other.is_late() {
                prop_assert!(arrives >= late);
                late = arrives;
            }
        }
    }

    /// A link that always has packets carries the integral of its rate, up to a packet.
    #[test]
    fn a_saturated_link_carries_its_capacity(
        impairments in any_impairments(), from in 0u64..500, length in 200u64..2000,
    ) {
        let spec = spec(impairments);
        let mut link = Link::new(&spec, clock(), Observations::none(), 0, 1);
        let [from, until] = [from, from + length].map(|at| clock().ticks(at * MS));
        let samples: Vec<_> = (0..10).map(|at| from + at * (until - from) / 10).collect();
        let (mean, series) = capacity(&spec, clock(), (0, 1), [from, until], &samples);
        let mut bytes = 0.0;
        while link.departed() < until {
            link.receive(0, packet(1000, 0));
            let departed = link.departed();
            bytes += if (from..until).contains(&departed) { 1000.0 } else { 0.0 };
        }
        let expected = mean.unwrap() / 8.0 * clock().seconds(until - from);
        // An opportunity at the start counts with its part that the link used before.
        prop_assert!((bytes - expected).abs() <= 3010.0, "{bytes} {expected}");
        let parts = series.iter().sum::<f64>() / 10.0;
        prop_assert!((parts - mean.unwrap()).abs() <= 1e-6 * parts.max(1.0), "{parts} {mean:?}");
    }
}

#[test]
fn a_stopped_link_keeps_its_packets() {
    let changes =
        vec![change(0, 0.0, 0), change(50, 8e6, 0), change(100, 0.0, 0), change(200, 8e6, 0)];
    let mut link = link(Impairments { changes, ..Impairments::default() });
    let departures = departures(&mut link, 52, 1000);
    assert_eq!(departures[0], 51);
    assert_eq!(departures[49], 100);
    assert_eq!(departures[50..], [201, 202]);
}

#[test]
fn a_ramp_starts_from_the_value_reached() {
    // The ramp from 10 Mb/s to 0 within 100 ms is interrupted at 5 Mb/s.
    let changes = vec![change(0, 0.0, 100), change(50, 15e6, 100), change(1000, 8e6, 0)];
    let mut rate = profile::Rate::new(
        &spec(Impairments { changes: changes.clone(), ..Impairments::default() }),
        &Impairments { changes, ..Impairments::default() },
        clock(),
        (0, 1),
    )
    .unwrap();
    // Bits: 50 ms at 7.5 Mb/s and 100 ms at 10 Mb/s on average, then 15 Mb/s.
    let departure = rate.departure(0, (375_000 + 1_000_000 + 150_000) / 8);
    assert_eq!(clock().nanos(departure + 512) / 1000, 160_000);
}

/// mahimahi: accounting is by bytes, an opportunity without waiting bytes is lost, and the trace
/// repeats.
#[test]
fn a_trace_delivers_at_its_opportunities() {
    let impairments =
        Impairments { model: Some(trace(&[2, 5, 5, 10], &[])), ..Impairments::default() };
    let mut link = link(impairments);
    let mut departure = |at: u64, size| {
        link.receive(clock().ticks(at * 1000), packet(size, 0));
        clock().nanos(link.departed()) / 1000
    };
    assert_eq!([departure(0, 1504), departure(0, 1000)], [2000, 5000]);
    // The rest of the opportunity and the second one at 5 ms, and the one at 10 ms.
    assert_eq!([departure(0, 504), departure(0, 1504), departure(0, 1504)], [5000, 5000, 10_000]);
    // The opportunity at 12 ms is lost.
    assert_eq!([departure(13_000, 100), departure(13_000, 1404)], [15_000, 15_000]);
    assert_eq!(departure(13_000, 1504 * 3), 22_000);
}

#[test]
fn a_delay_that_falls_keeps_the_order() {
    let delay = |at, delay| Change { at: ms(at), delay: Some(ms(delay)), ..Change::default() };
    let changes = vec![delay(100, 50), delay(200, 5)];
    let mut link = link(Impairments { changes, ..Impairments::default() });
    let mut arrives = |at: u64| {
        let (arrives, _) = link.receive(clock().ticks(at * MS), packet(1250, 0));
        clock().nanos(arrives) / MS
    };
    // A packet takes 1 ms at 10 Mb/s.
    assert_eq!([50, 150, 198, 200, 250].map(&mut arrives), [61, 201, 249, 249, 256]);
}

#[test]
fn loss_in_bursts_has_its_mean_and_its_lengths() {
    let chain = GilbertElliott { p: 0.01, r: 0.2, bad: 1.0, good: 0.0 };
    let mut link = link(Impairments { burst_loss: Some(chain), ..Impairments::default() });
    let count = 400_000;
    let lost: Vec<_> = (0..count)
        .map(|at| link.receive(clock().ticks(at * 2 * MS), packet(1250, 0)).1 & flags::LOST != 0)
        .collect();
    let losses = lost.iter().filter(|&&lost| lost).count() as f64;
    let bursts = lost.windows(2).filter(|pair| !pair[0] && pair[1]).count() as f64;
    assert!((losses / count as f64 - 0.01 / 0.21).abs() < 0.002, "{losses}");
    assert!((losses / bursts - 5.0).abs() < 0.2, "{losses} {bursts}");
}

#[test]
fn a_blackout_loses_everything_and_a_change_some() {
    let blackouts = vec![Blackout { at: ms(100), length: ms(100) }];
    let loss = |at, loss| Change { at: ms(at), loss: Some(loss), ..Change::default() };
    let changes = vec![loss(300, 0.5), loss(1300, 0.0)];
    let mut link = link(Impairments { blackouts, changes, ..Impairments::default() });
    let lost: Vec<_> = (0..1500u64)
        .map(|at| {
            let (_, gained) =
                link.receive(clock().ticks(at * MS), packet(100, flags_of(at % 2 == 0)));
            gained & flags::LOST != 0
        })
        .collect();
    assert!(lost[100..200].iter().all(|&lost| lost));
    let others = [&lost[..100], &lost[200..300], &lost[1300..]].concat();
    assert!(others.iter().all(|&lost| !lost));
    // Of the other half, acknowledgements are exempt.
    let share = lost[300..1300].iter().filter(|&&lost| lost).count();
    assert!((200..300).contains(&share), "{share}");
    assert_eq!(link.counters.losses, 100 + share as u64);
}

#[test]
fn acknowledgements_are_released_together_and_thinned() {
    let impairments =
        Impairments { ack_aggregation: ms(20), ack_thinning: ms(3), ..Impairments::default() };
    let mut link = link(impairments);
    let mut outcome = |at: u64, flags, hop| {
        let (arrives, gained) =
            link.receive(clock().ticks(at * MS), Packet::new(0, hop, 0, 40, flags));
        (gained & flags::DROPPED == 0).then(|| clock().nanos(arrives) / MS)
    };
    let acks: Vec<_> = (1..=6).map(|at| outcome(at, flags::ACK, 7)).collect();
    assert_eq!(acks, [Some(20), None, None, Some(20), None, None]);
    // Those of another flow, and those that no later one replaces.
    assert_eq!([outcome(6, flags::ACK, 8), outcome(6, flags::ACK | flags::NAK, 7)], [Some(20); 2]);
    // Data keep their place behind the acknowledgements.
    assert_eq!([outcome(8, 0, 7), outcome(11, 0, 7)], [Some(20), Some(21)]);
}

#[test]
fn a_shaper_sends_its_burst_at_the_peak_rate() {
    let shaper = Some(TokenBucket { rate: 1e6, burst: 10_000 });
    let mut link = link(Impairments { shaper, ..Impairments::default() });
    let departures = departures(&mut link, 12, 1250);
    // Nine packets: the last one finds the bucket not yet empty. Each further one waits for 10 ms
    // of tokens.
    assert_eq!(departures[..9], [1, 2, 3, 4, 5, 6, 7, 8, 9]);
    let gaps: Vec<_> = departures[9..].windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(gaps, [10, 10]);
    assert_eq!(link.queue_length(clock().ticks(50 * MS)), 0);
}
