//! Keep-alives to a receiver that checks its timers only when a packet arrives, or every 100 ms, as
//! UDT4 does.

use crate::common::{config, encoded, ends};
use cwnd::{Dur, Time};
use cwnd_udt::Seq;
use cwnd_udt::packet::{Ack, Body, Control, Packet};
use cwnd_udt::seq::AckNo;
use std::collections::VecDeque;

const SYN: Dur = Dur::from_millis(10);
/// The receive buffer in packets.
const BUFFER: u64 = 256;
/// The one-way delay of the path, and the step of simulated time.
const DELAY: Dur = Dur::from_nanos(100_000);

/// A model of UDT4's receiver on a path without loss.
struct Udt4Receiver {
    /// The number of packets received.
    next: u64,
    /// The number of packets acknowledged.
    acknowledged: u64,
    /// The number of packets read by the application.
    read: u64,
    /// Whether the application reads.
    reads: bool,
    light: u64,
    number: AckNo,
    sent_at: Time,
    /// The smoothed round-trip time in microseconds.
    rtt: f64,
    due: Time,
    last_check: Time,
}

impl Udt4Receiver {
    fn receive(&mut self, now: Time, datagram: &[u8], answers: &mut VecDeque<(Time, Vec<u8>)>) {
        match Packet::parse(datagram).unwrap().body {
            Body::Data(_) => self.next += u64::from(self.next - self.read < BUFFER),
            Body::Control(Control::Ack2(_)) => {
                let sample = now.since(self.sent_at).as_nanos() as f64 / 1000.0;
                self.rtt = (7.0 * self.rtt + sample) / 8.0;
            }
            Body::Control(_) => {}
        }
        self.check_timers(now, answers);
    }

    /// Checks the timers.
    fn check_timers(&mut self, now: Time, answers: &mut VecDeque<(Time, Vec<u8>)>) {
        self.last_check = now;
        let next = Seq::new(self.next as u32);
        let answer = if now >= self.due && self.next > self.acknowledged {
            self.due = now + SYN;
            (self.number, self.sent_at) = (self.number.next(), now);
            self.light = self.next;
            let available = (BUFFER - (self.next - self.read)).max(2) as u32;
            // The application reads acknowledged packets.
            self.acknowledged = self.next;
            self.read = if self.reads { self.next } else { self.read };
            let (rtt_us, rtt_var_us) = (self.rtt as u32, self.rtt as u32 / 2);
            let rates = Some((100_000, 1_000_000));
            Control::Ack(Ack { number: self.number, next, rtt_us, rtt_var_us, available, rates })
        } else if self.next - self.light >= 64 {
            self.light = self.next;
            Control::LightAck(next)
        } else {
            return;
        };
        answers.push_back((now + DELAY, encoded(answer, 11)));
    }
}

/// The next datagram that arrives by `now`.
fn due(in_transit: &mut VecDeque<(Time, Vec<u8>)>, now: Time) -> Option<Vec<u8>> {
    let arrives = in_transit.front().is_some_and(|(at, _)| *at <= now);
    if arrives { in_transit.pop_front().map(|(_, datagram)| datagram) } else { None }
}

/// Runs a bulk transfer to a [`Udt4Receiver`] for `span`. Returns the numbers of packets received
/// and of keep-alives.
fn run(law: &str, reads: bool, span: Dur) -> (u64, u64) {
    let mut now = Time::ZERO;
    let [mut sender, _] = ends(&config(law), [11, 22], 0);
    let mut receiver = Udt4Receiver {
        next: 0,
        acknowledged: 0,
        read: 0,
        reads,
        light: 0,
        number: AckNo::default(),
        sent_at: now,
        rtt: 100_000.0,
        due: now + SYN,
        last_check: now,
    };
    let (mut packets, mut answers) = (VecDeque::new(), VecDeque::new());
    let mut keep_alives = 0;
    while now < Time::ZERO + span {
        while sender.write(&[0; 100_000]).unwrap() > 0 {}
        sender.handle_timeout(now);
        while let Some(transmit) = sender.poll_transmit(now, 16) {
            for datagram in transmit.iter() {
                let packet = Packet::parse(datagram).unwrap();
                keep_alives += u64::from(matches!(packet.body, Body::Control(Control::KeepAlive)));
                packets.push_back((now + DELAY, datagram.to_vec()));
            }
        }
        now += DELAY;
        while let Some(datagram) = due(&mut packets, now) {
            receiver.receive(now, &datagram, &mut answers);
        }
        if now.since(receiver.last_check) >= Dur::from_millis(100) {
            receiver.check_timers(now, &mut answers);
        }
        while let Some(datagram) = due(&mut answers, now) {
            sender.handle_datagram(now, &datagram);
        }
    }
    (receiver.next, keep_alives)
}

/// The receiver acknowledges a full buffer, which the application then reads, and announces the
/// room with the next acknowledgement: at best a buffer per 20 ms, and a buffer per 200 ms without
/// keep-alives. The receiver's round-trip time estimate, which starts at 100 ms, does not delay the
/// first keep-alives.
#[test]
fn keep_alives_make_a_full_receiver_acknowledge() {
    for law in ["udt", "reno"] {
        let (first, _) = run(law, true, Dur::from_millis(1000));
        let (packets, keep_alives) = run(law, true, Dur::from_millis(3000));
        println!("{law}: {first} and {packets} packets, {keep_alives} keep-alives");
        assert!(first > 40 * BUFFER, "{law}: {first}");
        assert!(packets - first > 2 * 45 * BUFFER, "{law}: {packets}");
        assert!(keep_alives <= 310, "{law}: {keep_alives}");
    }
}

/// The intervals double up to one second.
#[test]
fn keep_alives_to_a_receiver_that_does_not_read_back_off() {
    for law in ["udt", "reno"] {
        let (packets, keep_alives) = run(law, false, Dur::from_millis(20_000));
        println!("{law}: {keep_alives} keep-alives");
        assert_eq!(packets, BUFFER, "{law}");
        assert!(keep_alives <= 40, "{law}: {keep_alives}");
    }
}
