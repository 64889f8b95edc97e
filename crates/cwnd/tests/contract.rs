//! The contract between drivers and controllers ("Writing a driver"), for every controller of the
//! registry: losses that a timer finds, handshakes, congestion events, changes of the packet size,
//! and the least window of QUIC.
//!
//! The driver here has a path of fixed capacity with a queue in bytes; every packet is acknowledged
//! or dropped by the queue.

use crate::common::{self, at};
use cwnd::delivery::{DeliveryEstimator, Sent};
use cwnd::parts::Pacer;
use cwnd::registry::{Kind, algorithms};
use cwnd::{
    Acked, AnyController, Controller, Conventions, Dur, Event, Limit, Lost, MakeController, Marked,
    Packets, Rate, Report, Rtt, Settings, Spec, Time,
};
use proptest::prelude::*;
use std::collections::VecDeque;

/// The path: bytes per second, the round-trip time of a packet in an empty queue, and the bytes
/// that are queued (two bandwidth-delay products).
const CAPACITY: f64 = 1.25e6;
const RTT: Dur = Dur::from_millis(40);
const QUEUE: f64 = 100e3;
/// The interval of reports.
const REPORTS: Dur = Dur::from_millis(10);

fn settings() -> Settings {
    let mut settings = Settings::default();
    settings.packet = 1452;
    settings.conventions = &Conventions::QUIC;
    settings.max_window = Packets::new(5000.0);
    settings.seed = 7;
    settings
}

/// Every controller with its defaults, and the variants that have rules of their own for what is
/// tested here.
fn specs() -> Vec<Spec> {
    let variants = [
        "ledbat(plus=on)",
        "reno(start=hystart)",
        "cubic(start=hystart-linux)",
        "vegas(pacing=1.25)",
    ];
    let variants = variants.map(|text| Spec::parse(text).unwrap());
    algorithms().iter().map(Spec::new).chain(variants).collect()
}

fn has_window(spec: &Spec) -> bool {
    spec.algorithm().kind() != Kind::Rate
}

struct Packet {
    bytes: u32,
    sent_at: Time,
    sent: Sent,
    /// The arrival time of its acknowledgement; none if it was dropped.
    answer: Option<Time>,
}

/// A connection and its path.
struct Connection {
    controller: AnyController,
    now: Time,
    packet: u32,
    /// Until when the link transmits; after `dead` it drops all packets.
    busy: Time,
    dead: Time,
    flight: VecDeque<Packet>,
    pacer: Pacer,
    estimator: DeliveryEstimator,
    rtt: Option<Rtt>,
    sent: u64,
    /// The deadline of the retransmission timer, and its time-out.
    expiry: Time,
    rto: Dur,
    timeouts: u32,
    report: Time,
    reported: (Time, u64),
    /// Bytes delivered.
    delivered: f64,
}

impl Connection {
    fn new(spec: &Spec, settings: &Settings) -> Self {
        Connection {
            controller: spec.controller(settings),
            now: Time::ZERO,
            packet: settings.packet,
            busy: Time::ZERO,
            dead: Time::NEVER,
            flight: VecDeque::new(),
            pacer: Pacer::new(Dur::ZERO),
            estimator: DeliveryEstimator::default(),
            rtt: None,
            sent: 0,
            expiry: Time::NEVER,
            rto: Dur::from_millis(1000),
            timeouts: 0,
            report: Time::ZERO,
            reported: (Time::ZERO, 0),
            delivered: 0.0,
        }
    }

    fn on(&mut self, event: &Event) {
        self.controller.on(self.now, event);
    }

    fn room(&self) -> bool {
        self.flight.len() as f64 + 1.0 <= self.controller.output().window.get()
    }

    fn send(&mut self) {
        let bytes = f64::from(self.packet);
        let queued = self.busy.since(self.now).as_secs() * CAPACITY;
        let answer = (queued + bytes <= QUEUE && self.now < self.dead).then(|| {
            self.busy = self.busy.max(self.now) + Dur::from_secs(bytes / CAPACITY);
            self.busy + RTT
        });
        if self.flight.is_empty() {
            self.expiry = self.now + self.rto;
        }
        self.sent += 1;
        let sent = self.estimator.sent(self.now, self.flight.len() as u32 + 1);
        self.flight.push_back(Packet { bytes: self.packet, sent_at: self.now, sent, answer });
        self.pacer.sent(self.now, 1, self.controller.output().pace);
    }

    /// `packets` packets are lost, of which `newest` was sent last.
    fn lost(&mut self, packets: u32, newest: &Packet) -> Lost {
        self.estimator.lost(packets);
        let mut lost = Lost::new(packets, newest.sent_at, self.sent);
        lost.delivery = Some(self.estimator.loss_sample(&newest.sent));
        lost
    }

    /// The acknowledgement of the first packet that was not dropped.
    fn acknowledge(&mut self, limit: Limit) {
        let first = self.flight.iter().position(|packet| packet.answer.is_some()).unwrap();
        let newest = self.flight.drain(..first).next_back();
        let packet = self.flight.pop_front().unwrap();
        let lost = newest.map(|newest| self.lost(first as u32, &newest));
        let rtt = self.now.since(packet.sent_at);
        let known = self.rtt.map_or(Rtt::first(rtt), |known| known.after(rtt));
        self.rtt = Some(known);
        self.estimator.acked(self.now, &packet.sent);
        self.delivered += f64::from(packet.bytes);
        self.rto = Dur::from_millis(1000);
        self.expiry = self.now + self.rto;
        let mut acked = Acked::new(1, packet.sent_at);
        (acked.in_flight, acked.sent) = (self.flight.len() as u32, self.sent);
        (acked.rtt, acked.limit) = (Some(rtt), limit);
        acked.delivery = self.estimator.sample(known.min);
        self.on(&Event::Acked(acked));
        if let Some(lost) = lost {
            self.on(&Event::Lost(lost));
        }
    }

    fn time_out(&mut self) {
        self.rto = self.rto + self.rto;
        self.expiry = self.now + self.rto;
        self.timeouts += 1;
        let packets = self.flight.len() as u32;
        let newest = self.flight.pop_back().unwrap();
        self.flight.clear();
        let lost = self.lost(packets, &newest);
        self.on(&Event::Timeout(lost));
    }

    fn report(&mut self) {
        self.report = self.now + REPORTS;
        let Some(rtt) = self.rtt else { return };
        let packets = self.estimator.delivered() - self.reported.1;
        if packets == 0 && self.now >= self.dead {
            return;
        }
        let mut report = Report::new(packets as u32, self.sent, rtt.latest);
        if packets > 0 {
            report.arrival = Some(Rate::over(packets as f64, self.now.since(self.reported.0)));
            self.reported = (self.now, self.estimator.delivered());
        }
        report.capacity = Some(Rate::per_sec(CAPACITY / f64::from(self.packet)));
        self.on(&Event::Report(report));
    }

    fn change_packet(&mut self, packet: u32) {
        self.packet = packet;
        self.on(&Event::Mtu { packet });
    }

    /// Runs until `end`.
    fn run(mut self, end: Time) -> Self {
        loop {
            while self.room() && self.pacer.departure(self.now) == self.now {
                self.send();
            }
            let room = self.room();
            let departure = room.then(|| self.pacer.departure(self.now));
            let answer = self.flight.iter().find_map(|packet| packet.answer);
            let expiry = (!self.flight.is_empty()).then_some(self.expiry);
            let reports = self.controller.needs().reports.then_some(self.report);
            let wake = self.controller.output().wake;
            let times = [departure, answer, expiry, reports, wake];
            let next = times.into_iter().flatten().fold(Time::NEVER, Time::min).max(self.now);
            if next >= end {
                self.now = end;
                return self;
            }
            self.now = next;
            if answer.is_some_and(|at| at <= next) {
                self.acknowledge(if room { Limit::Pacing } else { Limit::Window });
            } else if expiry.is_some_and(|at| at <= next) {
                self.time_out();
            }
            if reports.is_some_and(|at| at <= next) {
                self.report();
            }
            if self.controller.output().wake.is_some_and(|at| at <= next) {
                self.on(&Event::Tick);
            }
        }
    }
}

/// Asserts for all controllers at once that `difference` from what is allowed is none.
fn check(specs: impl IntoIterator<Item = Spec>, difference: impl Fn(&Spec) -> Option<String>) {
    let failures: Vec<_> = specs
        .into_iter()
        .filter_map(|spec| difference(&spec).map(|text| format!("{spec}: {text}")))
        .collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Path MTU discovery in the first round trips leaves at least 97 % of the bytes.
#[test]
fn changes_of_the_packet_size_keep_the_samples() {
    check(specs(), |spec| {
        let mut settings = settings();
        let fixed = Connection::new(spec, &settings).run(at(10_000)).delivered;
        settings.packet = 1326;
        let mut stepped = Connection::new(spec, &settings);
        for (step, packet) in [1389, 1420, 1452].into_iter().enumerate() {
            stepped = stepped.run(at(45 * (step as u64 + 1)));
            stepped.change_packet(packet);
        }
        let share = stepped.run(at(10_000)).delivered / fixed;
        (share < 0.97).then(|| format!("{share:.3} of the bytes"))
    });
}

/// In an outage each timeout permits the least window: two packets under the conventions of QUIC.
#[test]
fn in_an_outage_only_the_least_window_is_sent_at_each_timeout() {
    check(specs().into_iter().filter(has_window), |spec| {
        let mut connection = Connection::new(spec, &settings()).run(at(10_000));
        connection.dead = connection.now;
        connection = connection.run(at(11_500));
        let (sent, timeouts) = (connection.sent, connection.timeouts);
        connection = connection.run(at(60_000));
        let (sent, timeouts) = (connection.sent - sent, connection.timeouts - timeouts);
        (sent > 2 * u64::from(timeouts) + 2)
            .then(|| format!("{sent} packets at {timeouts} timeouts"))
    });
}

/// The controllers whose state depends on the number of packets that a timeout declares lost.
#[test]
fn losses_at_a_timeout_reach_the_controllers_that_count_losses() {
    let counting: Vec<_> = specs()
        .into_iter()
        .filter(|spec| {
            let states = [0, 5].map(|packets| {
                let mut connection = Connection::new(spec, &settings()).run(at(3000));
                let lost = Lost::new(packets, connection.now, connection.sent);
                connection.on(&Event::Timeout(lost));
                format!("{:?}", connection.controller)
            });
            states[0] != states[1]
        })
        .map(|spec| spec.to_string())
        .collect();
    // DAIMD keeps the number; a timeout is one feedback to it.
    assert_eq!(counting, ["aira", "daimd", "tfrc", "bbr", "bbr3", "copa", "c4"]);
}

/// A handshake of a tenth of the round-trip time is no sample: the bytes are those without it.
#[test]
fn a_handshake_is_no_sample() {
    check(specs(), |spec| {
        let name = spec.algorithm().name;
        // The sources begin with the handshake's time as min_rtt, for 10 s.
        let begin = if ["bbr", "bbr3"].contains(&name) { 12_000 } else { 0 };
        let [without, with] = [false, true].map(|handshake| {
            let mut connection = Connection::new(spec, &settings());
            if handshake {
                connection.on(&Event::Handshake { rtt: Dur::from_millis(4) });
            }
            let connection = connection.run(at(begin));
            let before = connection.delivered;
            connection.run(at(begin + 8000)).delivered - before
        });
        ((with / without - 1.0).abs() > 0.02).then(|| format!("{:.3} of the bytes", with / without))
    });
}

/// The losses of one window of data, reported one by one, and a mark of that window are answered
/// once.
#[test]
fn a_congestion_event_is_answered_once() {
    check(specs(), |spec| {
        // The window of BBR follows the packets in flight in a recovery; UDT answers up to five
        // reports.
        if ["bbr", "udt"].contains(&spec.algorithm().name) {
            return None;
        }
        let mut connection = Connection::new(spec, &settings()).run(at(8000));
        connection.controller.take_cut();
        let (sent_at, sent) = (connection.now, connection.sent);
        let mut cuts = 0;
        for step in 1..=5 {
            connection.now += Dur::from_millis(step);
            let event = if step == 5 {
                Event::Marked(Marked::new(1, sent_at, sent))
            } else {
                Event::Lost(Lost::new(1, sent_at, sent))
            };
            connection.on(&event);
            cuts += u32::from(connection.controller.take_cut().is_some());
        }
        (cuts > 1).then(|| format!("{cuts} reductions"))
    });
}

/// RFC 9002 section 7.6.2: the window after persistent congestion is two packets.
#[test]
fn persistent_congestion_leaves_two_packets() {
    check(specs().into_iter().filter(has_window), |spec| {
        let mut connection = Connection::new(spec, &settings()).run(at(3000));
        connection.on(&Event::PersistentCongestion);
        let window = connection.controller.output().window.get();
        (window != 2.0).then(|| format!("{window} packets"))
    });
}

proptest! {
    #![proptest_config(common::config(256))]

    /// A change of the packet size keeps all state in bytes, also that which an undo restores: after
    /// a change to a 64th of the size and back a controller answers as without it. Roots of 64 are
    /// exact.
    #[test]
    fn a_change_of_the_packet_size_that_is_reversed_has_no_effect(
        spec in common::spec(),
        events in common::events(200),
        position in any::<prop::sample::Index>(),
    ) {
        let mut settings = settings();
        settings.packet = 1280;
        let small = Event::Mtu { packet: settings.packet / 64 };
        let whole = Event::Mtu { packet: settings.packet };
        let events: Vec<_> =
            events.into_iter().filter(|(_, event)| !matches!(event, Event::Mtu { .. })).collect();
        let position = position.index(events.len() + 1);
        // An undo of BBR bounds the window from below by a number of packets of the present size.
        let whole_first = ["bbr", "bbr3"].contains(&spec.algorithm().name);
        let changes =
            if whole_first { [small, whole, Event::Undo] } else { [small, Event::Undo, whole] };
        let [mut changed, mut unchanged] = [(); 2].map(|()| spec.controller(&settings));
        let mut now = Time::ZERO;
        for (step, (at, event)) in events.iter().enumerate() {
            if step == position {
                changes.iter().for_each(|event| changed.on(now, event));
                unchanged.on(now, &Event::Undo);
            }
            now = *at;
            [&mut changed, &mut unchanged].into_iter().for_each(|it| it.on(now, event));
            let outputs = [&changed, &unchanged].map(|controller| controller.output());
            prop_assert_eq!(outputs[0], outputs[1], "{} after {:?}", spec, event);
        }
    }

    /// RFC 9002 section 7.2: a stack with a window below two packets never sends again.
    #[test]
    fn no_window_of_quic_is_below_two_packets(
        spec in common::spec(),
        events in common::events(400),
    ) {
        let mut settings = settings();
        settings.max_window = Packets::INFINITY;
        let mut controller = spec.controller(&settings);
        for (now, event) in &events {
            controller.on(*now, event);
            let window = controller.output().window.get();
            prop_assert!(window >= 2.0, "{spec}: {window} packets after {event:?}");
        }
    }
}
