//! The delivery-rate estimator against the pseudocode of draft-ietf-ccwg-bbr section 4.1.2, whose
//! volumes are bytes, with packets of one size.

use crate::common::at;
use cwnd::delivery::{DeliveryEstimator, RateSample, Sent};
use cwnd::parts::RoundCounter;
use cwnd::{Dur, Rate};
use proptest::prelude::*;

const MIN_RTT: Dur = Dur::from_millis(20);
/// The bytes of a packet.
const SIZE: u64 = 1500;

/// P of the draft, in milliseconds; `state` is the estimator's.
#[derive(Clone, Debug)]
struct Packet {
    id: u64,
    delivered: u64,
    delivered_time: u64,
    first_send_time: u64,
    send_time: u64,
    is_app_limited: bool,
    tx_in_flight: u32,
    lost: u64,
    in_flight: bool,
    state: Sent,
}

/// RS of the draft.
#[derive(Clone, Debug, Default)]
struct Sample {
    has_data: bool,
    prior_delivered: u64,
    prior_time: u64,
    is_app_limited: bool,
    send_elapsed: u64,
    ack_elapsed: u64,
    last_acked_packet_id: u64,
    tx_in_flight: u32,
    prior_lost: u64,
}

/// C of the draft, beside the estimator. The packets are those not yet acknowledged.
#[derive(Clone, Debug, Default)]
struct Connection {
    now: u64,
    packets: Vec<Packet>,
    sent: u64,
    delivered: u64,
    delivered_time: u64,
    first_send_time: u64,
    app_limited: u64,
    lost: u64,
    next_round_delivered: u64,
    round_count: u64,
    estimator: DeliveryEstimator,
    rounds: RoundCounter,
}

impl Connection {
    fn in_flight(&self) -> u32 {
        self.packets.iter().filter(|packet| packet.in_flight).count() as u32
    }

    fn send(&mut self) {
        if self.in_flight() == 0 {
            self.first_send_time = self.now;
            self.delivered_time = self.now;
        }
        self.sent += 1;
        let tx_in_flight = self.in_flight() + 1;
        self.packets.push(Packet {
            id: self.sent,
            delivered: self.delivered,
            delivered_time: self.delivered_time,
            first_send_time: self.first_send_time,
            send_time: self.now,
            is_app_limited: self.app_limited != 0,
            tx_in_flight,
            lost: self.lost,
            in_flight: true,
            state: self.estimator.sent(at(self.now), tx_in_flight),
        });
    }

    /// Declares the packet at `place` lost. It stays in the list: its acknowledgement may follow.
    fn lose(&mut self, place: usize) {
        let packets = self.packets.len();
        if packets > 0 && std::mem::take(&mut self.packets[place % packets].in_flight) {
            self.lost += 1;
            self.estimator.lost(1);
        }
    }

    fn limit(&mut self) {
        self.app_limited = (SIZE * (self.delivered + u64::from(self.in_flight()))).max(1);
        self.estimator.application_limited(self.in_flight());
    }

    /// Acknowledges the packets at `places`, in that order, and compares the samples.
    fn ack(&mut self, places: &[usize]) -> Result<(), TestCaseError> {
        let mut sample = Sample::default();
        for place in places {
            if self.packets.is_empty() {
                break;
            }
            let packet = self.packets.remove(place % self.packets.len());
            self.estimator.acked(at(self.now), &packet.state);
            self.delivered += 1;
            self.delivered_time = self.now;
            let is_newest = packet.send_time > self.first_send_time
                || packet.send_time == self.first_send_time
                    && packet.id > sample.last_acked_packet_id;
            if !sample.has_data || is_newest {
                sample = Sample {
                    has_data: true,
                    prior_delivered: packet.delivered,
                    prior_time: packet.delivered_time,
                    is_app_limited: packet.is_app_limited,
                    send_elapsed: packet.send_time - packet.first_send_time,
                    ack_elapsed: self.delivered_time - packet.delivered_time,
                    last_acked_packet_id: packet.id,
                    tx_in_flight: packet.tx_in_flight,
                    prior_lost: packet.lost,
                };
                self.first_send_time = packet.send_time;
            }
        }
        if self.app_limited != 0 && SIZE * self.delivered > self.app_limited {
            self.app_limited = 0;
        }
        let found = self.estimator.sample(MIN_RTT);
        prop_assert_eq!(found.is_some(), sample.prior_time != 0);
        let Some(found) = found else { return Ok(()) };
        let delivered = self.delivered - sample.prior_delivered;
        prop_assert_eq!(
            (found.delivered, found.prior_delivered),
            (delivered, sample.prior_delivered)
        );
        prop_assert_eq!(found.send_elapsed, Dur::from_millis(sample.send_elapsed));
        prop_assert_eq!(found.ack_elapsed, Dur::from_millis(sample.ack_elapsed));
        prop_assert_eq!(found.application_limited, sample.is_app_limited);
        prop_assert_eq!(found.in_flight, sample.tx_in_flight);
        prop_assert_eq!(found.lost, self.lost - sample.prior_lost);
        let interval = Dur::from_millis(sample.send_elapsed.max(sample.ack_elapsed));
        let rate = (interval >= MIN_RTT).then(|| Rate::over(delivered as f64, interval));
        prop_assert_eq!((found.interval(), found.rate()), (interval, rate));
        // UpdateRound, section 5.5.1.
        let begins = sample.prior_delivered >= self.next_round_delivered;
        if begins {
            self.next_round_delivered = self.delivered;
            self.round_count += 1;
        }
        prop_assert_eq!(self.rounds.acked(&found), begins);
        prop_assert_eq!(self.rounds.count(), self.round_count);
        Ok(())
    }
}

#[derive(Clone, Debug)]
enum Step {
    Wait(u64),
    Send(usize),
    Lose(usize),
    Limit,
    Ack(Vec<usize>),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1..30_u64).prop_map(Step::Wait),
        4 => (1..6_usize).prop_map(Step::Send),
        1 => any::<usize>().prop_map(Step::Lose),
        1 => Just(Step::Limit),
        4 => prop::collection::vec(0..8_usize, 0..6).prop_map(Step::Ack),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn samples_are_those_of_the_draft(steps in prop::collection::vec(step(), 1..120)) {
        // Time 0 is none in the draft.
        let mut connection = Connection { now: 1, ..Connection::default() };
        for step in steps {
            match step {
                Step::Wait(millis) => connection.now += millis,
                Step::Send(count) => (0..count).for_each(|_| connection.send()),
                Step::Lose(place) => connection.lose(place),
                Step::Limit => connection.limit(),
                Step::Ack(places) => connection.ack(&places)?,
            }
        }
    }
}

/// Section 4.1.2.3: the packet with the highest identifier is the newest of those sent at the same
/// time, in whatever order an acknowledgement lists them.
#[test]
fn the_newest_of_packets_sent_at_once_gives_the_sample() {
    for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
        let mut estimator = DeliveryEstimator::default();
        let flight = [1, 2, 3].map(|in_flight| estimator.sent(at(10), in_flight));
        for place in order {
            estimator.acked(at(60), &flight[place]);
        }
        assert_eq!(estimator.sample(MIN_RTT).map(|sample| sample.in_flight), Some(3));
    }
}

/// Section 4.1.2.2: "If there is no data in flight yet, then we can start the delivery rate
/// interval at the current time".
#[test]
fn idle_time_is_not_part_of_a_sample() {
    let mut estimator = DeliveryEstimator::default();
    let first = estimator.sent(at(0), 1);
    estimator.acked(at(50), &first);
    assert!(estimator.sample(MIN_RTT).is_some());
    let flight = [1, 2].map(|in_flight| estimator.sent(at(9000), in_flight));
    flight.iter().for_each(|packet| estimator.acked(at(9050), packet));
    let sample = estimator.sample(MIN_RTT).expect("two packets were acknowledged");
    assert_eq!((sample.delivered, sample.interval()), (2, Dur::from_millis(50)));
}

/// Section 4.1.2.4: a phase that begins again before its end lasts for the packets then in flight.
#[test]
fn an_application_limited_phase_can_be_extended() {
    let mut estimator = DeliveryEstimator::default();
    // The phase begins with nothing in flight, before the first packet.
    estimator.application_limited(0);
    let first = estimator.sent(at(0), 1);
    let second = estimator.sent(at(5), 2);
    estimator.application_limited(2);
    let limited = |estimator: &mut DeliveryEstimator, packet: &Sent, now| {
        estimator.acked(at(now), packet);
        estimator.sample(MIN_RTT).expect("a packet was acknowledged").application_limited
    };
    assert!(limited(&mut estimator, &first, 50));
    let third = estimator.sent(at(50), 2);
    assert!(limited(&mut estimator, &second, 55));
    let fourth = estimator.sent(at(55), 2);
    // Two packets were in flight; the third delivered one ends the phase.
    assert!(limited(&mut estimator, &third, 100));
    let fifth = estimator.sent(at(100), 2);
    assert!(limited(&mut estimator, &fourth, 105));
    assert!(!limited(&mut estimator, &fifth, 150));
}

/// The state of a packet may come from the estimator of another path, and a sample from a record.
#[test]
fn counts_saturate() {
    let mut old = DeliveryEstimator::default();
    for n in 0..10 {
        let packet = old.sent(at(n), 1);
        old.acked(at(n + 5), &packet);
        old.lost(3);
    }
    let packet = old.sent(at(100), 1);
    let mut new = DeliveryEstimator::default();
    new.acked(at(200), &packet);
    let sample = new.sample(MIN_RTT).expect("a packet was acknowledged");
    assert_eq!((sample.delivered, sample.lost), (0, 0));
    let mut sample = RateSample::new();
    (sample.prior_delivered, sample.delivered) = (u64::MAX, u64::MAX);
    let mut rounds = RoundCounter::default();
    assert!(rounds.acked(&sample));
    assert_eq!(sample.rate(), None);
}
