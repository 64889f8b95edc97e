//! A receiver that looks at its timers only when a packet arrives, or every 100 ms, as UDT4 does, is woken by
//! keep-alives, and not flooded with them.

mod common;

use common::{KEY, client, config, server};
use cwnd::{Dur, Time};
use cwnd_udt::packet::{Ack, Body, Control, Packet};
use cwnd_udt::seq::AckNo;
use cwnd_udt::{Answer, Connection, Listener, Seq, SocketType};
use std::collections::VecDeque;

const SYN: Dur = Dur::from_millis(10);
/// The receive buffer in packets.
const BUFFER: u64 = 256;
/// The path's delay each way, and the step of simulated time.
const DELAY: Dur = Dur::from_nanos(100_000);

/// What UDT4's receiver does on a path without loss.
struct Udt4 {
    /// Packets received, acknowledged and read by the application, and whether it reads.
    next: u64,
    acknowledged: u64,
    read: u64,
    reads: bool,
    light: u64,
    number: AckNo,
    sent_at: Time,
    /// The smoothed round-trip time in microseconds.
    rtt: f64,
    due: Time,
    looked: Time,
}

impl Udt4 {
    fn receive(&mut self, now: Time, datagram: &[u8], answers: &mut VecDeque<(Time, Vec<u8>)>) {
        match Packet::parse(datagram).unwrap().body {
            Body::Data(_) => self.next += u64::from(self.next - self.read < BUFFER),
            Body::Control(Control::Ack2(_)) => {
                let sample = now.since(self.sent_at).as_nanos() as f64 / 1000.0;
                self.rtt = (7.0 * self.rtt + sample) / 8.0;
            }
            Body::Control(_) => {}
        }
        self.look(now, answers);
    }

    /// Looks at the timers.
    fn look(&mut self, now: Time, answers: &mut VecDeque<(Time, Vec<u8>)>) {
        self.looked = now;
        let next = Seq::new(self.next as u32);
        let answer = if now >= self.due && self.next > self.acknowledged {
            self.due = now + SYN;
            (self.number, self.sent_at) = (self.number.next(), now);
            self.light = self.next;
            let available = (BUFFER - (self.next - self.read)).max(2) as u32;
            // The application reads what is acknowledged.
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
        let mut out = [0; 64];
        let length = answer.encode(0, 11, &mut out);
        answers.push_back((now + DELAY, out[..length].to_vec()));
    }
}

/// The next datagram that arrives by `now`.
fn due(flying: &mut VecDeque<(Time, Vec<u8>)>, now: Time) -> Option<Vec<u8>> {
    let arrives = flying.front().is_some_and(|(at, _)| *at <= now);
    if arrives { flying.pop_front().map(|(_, datagram)| datagram) } else { None }
}

/// A sender, as much to send as it takes, and a [`Udt4`]: runs for `span` and returns packets received and
/// keep-alives.
fn run(law: &str, reads: bool, span: Dur) -> (u64, u64) {
    let config = config(law);
    let mut now = Time::ZERO;
    let mut sender = Connection::connect(&config, now, 11, Seq::new(0), server().ip());
    let listener = Listener::new(KEY, SocketType::Stream);
    let mut accepted = loop {
        let asked = sender.poll_transmit(now, 1).unwrap().datagrams.to_vec();
        match listener.handle(now, client(), &asked) {
            Answer::Ignore => {}
            Answer::Reply(reply) => sender.handle_datagram(now, &reply),
            Answer::Accept(asked) => break Connection::accept(&config, now, 22, &asked),
        }
    };
    sender.handle_datagram(now, accepted.poll_transmit(now, 1).unwrap().datagrams);
    let mut receiver = Udt4 {
        next: 0,
        acknowledged: 0,
        read: 0,
        reads,
        light: 0,
        number: AckNo::default(),
        sent_at: now,
        rtt: 100_000.0,
        due: now + SYN,
        looked: now,
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
        if now.since(receiver.looked) >= Dur::from_millis(100) {
            receiver.look(now, &mut answers);
        }
        while let Some(datagram) = due(&mut answers, now) {
            sender.handle_datagram(now, &datagram);
        }
    }
    (receiver.next, keep_alives)
}

/// The receiver acknowledges a full buffer, which the application then reads, and gives room with the next
/// acknowledgement: a buffer each 20 ms at best, and one each 200 ms without keep-alives.
/// The receiver's own round-trip time, which begins at 100 ms, does not delay the first keep-alives.
#[test]
fn a_receiver_without_room_is_woken() {
    for law in ["udt", "reno"] {
        let (first, _) = run(law, true, Dur::from_millis(1000));
        let (packets, keep_alives) = run(law, true, Dur::from_millis(3000));
        println!("{law}: {first} and {packets} packets, {keep_alives} keep-alives");
        assert!(first > 40 * BUFFER, "{law}: {first}");
        assert!(packets - first > 2 * 45 * BUFFER, "{law}: {packets}");
        assert!(keep_alives <= 310, "{law}: {keep_alives}");
    }
}

/// The intervals double up to a second.
#[test]
fn a_receiver_that_does_not_read_is_not_flooded() {
    for law in ["udt", "reno"] {
        let (packets, keep_alives) = run(law, false, Dur::from_millis(20_000));
        println!("{law}: {keep_alives} keep-alives");
        assert_eq!(packets, BUFFER, "{law}");
        assert!(keep_alives <= 40, "{law}: {keep_alives}");
    }
}
