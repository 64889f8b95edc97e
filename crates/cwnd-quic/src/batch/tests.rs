use super::*;
use crate::controllers::Controllers;
use crate::recording::Recordings;
use cwnd::{
    AnyController, Controller, Event, MakeController, Needs, Output, Packets, Rate, Settings,
};
use std::fmt;
use std::sync::Arc;

/// A controller whose answer does not change.
#[derive(Clone, Debug)]
struct Fixed {
    output: Output,
    needs: Needs,
}

impl Fixed {
    fn window(packets: f64) -> Self {
        Fixed { output: Output::window(Packets::new(packets)), needs: Needs::default() }
    }
}

impl Controller for Fixed {
    fn on(&mut self, _now: Time, _event: &Event) {}

    fn output(&self) -> Output {
        self.output
    }

    fn needs(&self) -> Needs {
        self.needs
    }
}

impl fmt::Display for Fixed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("fixed")
    }
}

impl MakeController for Fixed {
    fn controller(&self, _settings: &Settings) -> AnyController {
        AnyController::whole(self.clone())
    }
}

const PACKET: u16 = 1200;
const BYTES: u64 = PACKET as u64;

fn at_ms(millis: u64) -> Time {
    Time::ZERO + Dur::from_millis(millis)
}

/// A connection of `fixed` and its record.
struct Driven {
    batch: Batch,
    recordings: Recordings,
}

impl Driven {
    fn new(fixed: Fixed) -> Self {
        let recordings = Recordings::new();
        let controllers = Controllers::from(Arc::new(fixed)).record(&recordings);
        Driven { batch: Batch::new(controllers.connection(PACKET)), recordings }
    }

    fn with_delivery() -> Self {
        let mut fixed = Fixed::window(100.0);
        fixed.needs.delivery_rate = true;
        Driven::new(fixed)
    }

    /// A packet of full size is sent.
    fn sent(&mut self, millis: u64, number: u64) {
        self.batch.sent(at_ms(millis), 1, BYTES, Some(number));
    }

    /// An acknowledgement covers the packets with these times of sending and numbers.
    fn acked(&mut self, millis: u64, packets: &[(u64, u64)], in_flight: u64, largest: u64) {
        for (sent, number) in packets {
            self.batch.acked(at_ms(millis), at_ms(*sent), BYTES, Some(*number));
        }
        self.batch.acks_end(at_ms(millis), in_flight * BYTES, false, Some(largest));
    }

    fn events(&self) -> Vec<(Time, Event)> {
        let all = self.recordings.to_vec();
        all[0].record.entries.iter().map(|entry| (entry.at, entry.event)).collect()
    }

    fn last_acked(&self) -> Acked {
        match self.events().last() {
            Some((_, Event::Acked(acked))) => *acked,
            other => panic!("{other:?} is no acknowledgement"),
        }
    }
}

/// RFC 9002 section 7.2. A window of one packet never sends in quinn.
#[test]
fn the_window_is_at_least_two_packets() {
    for packets in [-1.0, 0.0, 0.5, 1.0, 2.0, f64::NAN] {
        assert_eq!(
            Driven::new(Fixed::window(packets)).batch.connection.window(),
            2 * BYTES,
            "{packets}"
        );
    }
    assert_eq!(Driven::new(Fixed::window(2.5)).batch.connection.window(), 3000);
    assert_eq!(Driven::new(Fixed::window(f64::INFINITY)).batch.connection.window(), u64::MAX);
}

#[test]
fn the_rate_is_in_bytes() {
    let mut fixed = Fixed::window(10.0);
    fixed.output.pace = Some(Rate::per_sec(100.0));
    let mut driven = Driven::new(fixed);
    assert_eq!(driven.batch.connection.pace(), Some(120_000));
    driven.batch.connection.mtu(1400);
    driven.sent(1, 0);
    assert_eq!(
        (driven.batch.connection.pace(), driven.batch.connection.window()),
        (Some(140_000), 14_000)
    );
}

/// Packets of different number spaces have equal numbers: Initial 0, Handshake 0, Data 0.
#[test]
fn equal_numbers_of_two_spaces_are_two_packets() {
    let mut driven = Driven::with_delivery();
    driven.sent(0, 0);
    driven.sent(10, 0);
    driven.acked(40, &[(10, 0)], 1, 0);
    let acked = driven.last_acked();
    assert_eq!((acked.sent_at, acked.rtt), (at_ms(10), Some(Dur::from_millis(30))));
    let sample = acked.delivery.expect("it needs one");
    assert_eq!((sample.delivered, sample.in_flight), (1, 2));
    // The other one is still in flight.
    driven.acked(50, &[(0, 0)], 0, 0);
    assert_eq!(driven.last_acked().delivery.map(|sample| sample.in_flight), Some(1));
    // Both in one datagram.
    driven.sent(60, 0);
    driven.sent(60, 0);
    driven.acked(90, &[(60, 0)], 1, 0);
    driven.acked(90, &[(60, 0)], 0, 0);
    assert_eq!(driven.last_acked().delivery.map(|sample| sample.delivered), Some(2));
}

/// The packets of a discarded space, and lost probes of the path's MTU, are forgotten without a
/// callback.
#[test]
fn packets_forgotten_by_the_stack_leave_the_flight() {
    let mut driven = Driven::with_delivery();
    for number in 0..3 {
        driven.sent(0, number);
    }
    driven.sent(10, 0);
    // The first three are discarded: nothing is in flight after this acknowledgement.
    driven.acked(40, &[(10, 0)], 0, 0);
    driven.sent(50, 1);
    driven.acked(80, &[(50, 1)], 0, 1);
    let sample = driven.last_acked().delivery.expect("it needs one");
    assert_eq!((sample.in_flight, sample.delivered), (1, 1));
}

/// A stack reports pure acknowledgements as sent and never as acknowledged.
#[test]
fn the_flight_of_a_receiver_is_bounded() {
    let mut driven = Driven::with_delivery();
    for number in 0..100_000 {
        driven.batch.sent(at_ms(number), 1, 40, None);
    }
    let bytes = driven.batch.flight.as_ref().map(|flight| flight.bytes());
    assert!(bytes.is_some_and(|bytes| bytes <= 116 * BYTES), "{bytes:?}");
}

/// Losses of pure acknowledgements have the size 0.
#[test]
fn lost_acknowledgements_do_not_count() {
    let mut driven = Driven::with_delivery();
    for number in 0..4 {
        driven.sent(number, number);
    }
    let now = at_ms(50);
    driven.batch.packet_lost(now, BYTES, 0);
    driven.batch.packet_lost(now, 0, 1);
    driven.batch.packet_lost(now, BYTES, 2);
    driven.batch.losses_end(now, at_ms(2), false);
    let events = driven.events();
    let [(_, Event::Lost(lost))] = events[..] else { panic!("{events:?}") };
    assert_eq!((lost.packets, lost.sent_at, lost.sent), (2, at_ms(2), 4));
    let sample = lost.delivery.expect("it needs one");
    assert_eq!((sample.lost, sample.in_flight), (2, 3));
}

/// noq reports the losses of packets of a former path, and no congestion event.
#[test]
fn losses_without_a_congestion_event_do_not_count_later() {
    let mut driven = Driven::new(Fixed::window(10.0));
    driven.batch.packet_lost(at_ms(50), BYTES, 0);
    driven.batch.packet_lost(at_ms(60), BYTES, 1);
    driven.batch.losses_end(at_ms(60), at_ms(1), true);
    let events = driven.events();
    let [(_, Event::Lost(lost)), (_, Event::PersistentCongestion)] = events[..] else {
        panic!("{events:?}");
    };
    assert_eq!(lost.packets, 1);
}

/// The losses of a stack that says only their bytes are those of the oldest packets.
#[test]
fn lost_bytes_are_the_oldest() {
    let mut driven = Driven::with_delivery();
    driven.batch.sent(at_ms(0), 3, 3 * BYTES, None);
    driven.batch.sent(at_ms(1), 3, 3 * BYTES, None);
    driven.batch.bytes_lost(at_ms(50), at_ms(1), 4 * BYTES, false);
    let events = driven.events();
    let [(_, Event::Lost(lost))] = events[..] else { panic!("{events:?}") };
    assert_eq!((lost.packets, lost.delivery.map(|sample| sample.in_flight)), (4, Some(6)));
    assert_eq!(driven.batch.flight.map(|flight| flight.bytes()), Some(2 * BYTES));
}

/// An undo and a packet size come without a time: they are reported with the next callback that
/// has one, in order.
#[test]
fn events_without_a_time_wait_for_one() {
    let mut driven = Driven::new(Fixed::window(10.0));
    driven.sent(0, 0);
    driven.batch.connection.spurious();
    driven.batch.connection.mtu(1400);
    driven.batch.connection.mtu(1450);
    assert_eq!(driven.events(), []);
    assert_eq!(driven.batch.connection.window(), 12_000);
    driven.acked(40, &[(0, 0)], 0, 0);
    let events = driven.events();
    assert_eq!(events[..2], [(at_ms(40), Event::Undo), (at_ms(40), Event::Mtu { packet: 1450 })]);
    assert!(matches!(events[2..], [(_, Event::Acked(_))]));
    assert_eq!(driven.batch.connection.window(), 14_500);
}

/// RFC 9002 section 5.1: only the largest packet, newly acknowledged, gives a sample.
#[test]
fn a_round_trip_time_is_that_of_the_largest_packet() {
    let mut driven = Driven::new(Fixed::window(10.0));
    let ms = |millis| Some(Dur::from_millis(millis));
    driven.acked(50, &[(0, 0), (10, 1)], 3, 1);
    assert_eq!(driven.last_acked().rtt, ms(40));
    // Packet 4 was acknowledged before.
    driven.acked(60, &[(30, 3)], 2, 4);
    assert_eq!(driven.last_acked().rtt, None);
}

/// The same for a stack that does not name the packets.
#[test]
fn a_round_trip_time_without_numbers_is_that_of_the_newest_packet() {
    let mut driven = Driven::new(Fixed::window(10.0));
    let mut acked = |millis, sent: u64, largest| {
        driven.batch.acked(at_ms(millis), at_ms(sent), BYTES, None);
        driven.batch.acks_end(at_ms(millis), 0, false, Some(largest));
        driven.last_acked().rtt.map(|rtt| rtt.as_nanos() / 1_000_000)
    };
    // Initial 0 and Handshake 0.
    assert_eq!(acked(40, 0, 0), Some(40));
    assert_eq!(acked(70, 30, 0), Some(40));
    // Two of one transmission, the second of which arrives first.
    assert_eq!(acked(110, 60, 2), Some(50));
    assert_eq!(acked(115, 60, 2), None);
    // An older one.
    assert_eq!(acked(120, 50, 2), None);
}

#[test]
fn the_limit_is_that_of_the_last_transmission() {
    let mut driven = Driven::new(Fixed::window(10.0));
    let mut limit = |millis, application, window: bool| {
        driven.sent(millis, millis);
        if window {
            driven.batch.window_limits();
        }
        driven.batch.acked(at_ms(millis + 1), at_ms(millis), BYTES, Some(millis));
        driven.batch.acks_end(at_ms(millis + 1), 0, application, Some(millis));
        driven.last_acked().limit
    };
    assert_eq!(limit(0, false, true), Limit::Window);
    assert_eq!(limit(10, false, false), Limit::Pacing);
    assert_eq!(limit(20, true, true), Limit::Application);
}

/// RFC 9002 section 7.3: the window grows by bytes. Three packets of half the size are three
/// packets, and count for one and a half.
#[test]
fn small_packets_count_by_their_bytes() {
    let mut driven = Driven::new(Fixed::window(10.0));
    let mut counts = |numbers: std::ops::Range<u64>| {
        for number in numbers {
            driven.batch.acked(at_ms(1), at_ms(0), BYTES / 2, Some(number));
        }
        driven.batch.acks_end(at_ms(1), BYTES / 2, false, None);
        let acked = driven.last_acked();
        (acked.packets, acked.credit, acked.in_flight)
    };
    assert_eq!(counts(0..3), (3, 1, 1));
    assert_eq!(counts(3..4), (1, 1, 1));
    assert_eq!(counts(4..5), (1, 0, 1));
}

/// An acknowledgement of packets that are not congestion-controlled is none.
#[test]
fn an_acknowledgement_of_nothing_is_not_reported() {
    let mut driven = Driven::new(Fixed::window(10.0));
    driven.acked(40, &[], 0, 0);
    assert_eq!(driven.events(), []);
}

/// The stacks have no timer for a controller: a Tick comes with the next callback, and once.
#[test]
fn a_tick_comes_with_the_next_callback() {
    let mut fixed = Fixed::window(10.0);
    fixed.output.wake = Some(at_ms(5));
    let mut driven = Driven::new(fixed);
    driven.sent(4, 0);
    assert_eq!(driven.events(), []);
    driven.sent(9, 1);
    driven.sent(9, 2);
    assert_eq!(driven.events(), [(at_ms(9), Event::Tick)]);
}

#[test]
fn times_never_decrease() {
    let mut driven = Driven::new(Fixed::window(10.0));
    driven.acked(40, &[(0, 0)], 0, 0);
    driven.acked(30, &[(20, 1)], 0, 1);
    assert_eq!(driven.events().iter().map(|(at, _)| *at).collect::<Vec<_>>(), [at_ms(40); 2]);
}

/// A controller that needs reports gets one every 10 ms, from the first round-trip time on.
#[test]
fn reports_count_the_packets_acknowledged() {
    let mut fixed = Fixed::window(100.0);
    fixed.needs.reports = true;
    let mut driven = Driven::new(fixed);
    // Without a round-trip time.
    driven.acked(30, &[(0, 0)], 0, 1);
    for number in 1..=30 {
        driven.acked(39 + number, &[(number, number)], 0, number);
    }
    let reports: Vec<_> = driven
        .events()
        .into_iter()
        .map(|(at, event)| match event {
            Event::Report(report) => (at, report.packets, report.arrival.map(Rate::as_per_sec)),
            other => panic!("{other:?} is no report"),
        })
        .collect();
    assert_eq!(
        reports,
        [(at_ms(40), 1, None), (at_ms(50), 10, Some(1000.0)), (at_ms(60), 10, Some(1000.0)),]
    );
}
