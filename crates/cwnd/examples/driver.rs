//! A driver of your own: a toy transport over a bottleneck queue, in virtual time.
//!
//! The sender has unlimited data and gives each transmission a new packet number, as QUIC does.
//! Packets arrive in order or are dropped by the full queue; the receiver acknowledges each one.
//! The transport runs any controller of the registry:
//!
//! ```text
//! cargo run --example driver                          # all controllers
//! cargo run --example driver -- "cubic(pacing=1.25)"  # one of them
//! ```

use cwnd::delivery::{DeliveryEstimator, Sent};
use cwnd::parts::Pacer;
use cwnd::registry::algorithms;
use cwnd::{
    Acked, Controller, Conventions, Dur, Event, Limit, Lost, MakeController, Packets, Rate, Report,
    Rtt, Settings, Spec, Time,
};
use std::collections::VecDeque;

/// The bottleneck: its rate, the packets that it queues, and the round-trip time of an empty queue.
pub(crate) const LINK: Rate = Rate::per_sec(1000.0);
const QUEUE: f64 = 40.0;
const BASE_RTT: Dur = Dur::from_millis(50);
/// The interval of the receiver's reports (UDT's SYN), and the retransmission timeout.
const REPORTS: Dur = Dur::from_millis(10);
const RTO: Dur = Dur::from_millis(1000);

/// A first-in, first-out queue and its link, which transmits until `busy`.
#[derive(Default)]
struct Path {
    busy: Time,
}

impl Path {
    /// Sends a packet at `now`; returns the arrival time of its acknowledgement, `None` if the
    /// queue drops the packet.
    fn send(&mut self, now: Time) -> Option<Time> {
        if LINK.packets(self.busy.since(now)) > QUEUE {
            return None;
        }
        self.busy = self.busy.max(now) + LINK.period();
        Some(self.busy + BASE_RTT)
    }
}

/// A packet in flight.
struct Packet {
    sent_at: Time,
    sent: Sent,
    /// The arrival time of its acknowledgement.
    answer: Option<Time>,
}

/// The sender of a connection.
#[derive(Default)]
struct Sender {
    path: Path,
    flight: VecDeque<Packet>,
    /// Packets sent since the connection began.
    sent: u64,
    rtt: Option<Rtt>,
    estimator: DeliveryEstimator,
    /// The time of the last report of acknowledged packets, and the packets delivered by then.
    reported: (Time, u64),
}

impl Sender {
    fn send(&mut self, now: Time) {
        let sent = self.estimator.sent(now, self.flight.len() as u32 + 1);
        let answer = self.path.send(now);
        self.flight.push_back(Packet { sent_at: now, sent, answer });
        self.sent += 1;
    }

    /// Processes an acknowledgement, which covers the first packet that was not dropped. The
    /// packets before it are lost.
    fn acked(&mut self, now: Time, limit: Limit) -> Option<(Acked, Option<Lost>)> {
        let first = self.flight.iter().position(|packet| packet.answer.is_some())?;
        let newest_lost = self.flight.drain(..first).next_back();
        let packet = self.flight.pop_front()?;
        let rtt = now.since(packet.sent_at);
        let known = self.rtt.map_or(Rtt::first(rtt), |known| known.after(rtt));
        self.rtt = Some(known);
        // The losses belong to the sample of this acknowledgement.
        let lost = newest_lost.map(|newest| self.lost(first as u32, &newest));
        self.estimator.acked(now, &packet.sent);

        let mut acked = Acked::new(1, packet.sent_at);
        acked.in_flight = self.flight.len() as u32;
        acked.sent = self.sent;
        acked.rtt = Some(rtt);
        acked.limit = limit;
        // Only controllers whose `Needs` name it use the sample: a driver may do without the
        // estimator for the others.
        acked.delivery = self.estimator.sample(known.min);
        Some((acked, lost))
    }

    /// `packets` packets are lost, of which `newest` was sent last.
    fn lost(&mut self, packets: u32, newest: &Packet) -> Lost {
        self.estimator.lost(packets);
        let mut lost = Lost::new(packets, newest.sent_at, self.sent);
        lost.delivery = Some(self.estimator.loss_sample(&newest.sent));
        lost
    }

    /// The receiver's report, for controllers that need reports instead of acknowledgements.
    fn report(&mut self, now: Time) -> Option<Report> {
        let packets = self.estimator.delivered() - self.reported.1;
        let mut report = Report::new(packets as u32, self.sent, self.rtt?.latest);
        // Without arrivals there is no new estimate: a rate of zero would stop the sender.
        if packets > 0 {
            report.arrival = Some(Rate::over(packets as f64, now.since(self.reported.0)));
            self.reported = (now, self.estimator.delivered());
        }
        // A real receiver derives the capacity from the gap between the packets of a pair.
        report.capacity = Some(LINK);
        Some(report)
    }
}

/// Runs `controller` for `length` and returns the rate at which packets were delivered.
pub(crate) fn transfer(controller: &mut impl Controller, length: Dur) -> Rate {
    let (mut sender, mut pacer) = (Sender::default(), Pacer::new(Dur::ZERO));
    let (mut now, mut timeout) = (Time::ZERO, Time::ZERO + RTO);
    let mut report = controller.needs().reports.then_some(Time::ZERO + REPORTS);
    while now < Time::ZERO + length {
        let output = controller.output();
        let room =
            |sender: &Sender| Packets::new(sender.flight.len() as f64 + 1.0) <= output.window;
        while room(&sender) && pacer.departure(now) == now {
            if sender.flight.is_empty() {
                timeout = now + RTO;
            }
            sender.send(now);
            pacer.sent(now, 1, output.pace);
        }

        // Advance to the next departure, acknowledgement, report, wake-up or timeout.
        let limit = if room(&sender) { Limit::Pacing } else { Limit::Window };
        let departure = room(&sender).then(|| pacer.departure(now));
        let answer = sender.flight.iter().find_map(|packet| packet.answer);
        let timer = (!sender.flight.is_empty()).then_some(timeout);
        let times = [departure, answer, report, output.wake, timer];
        now = times.into_iter().flatten().fold(Time::NEVER, Time::min).max(now);

        if answer.is_some_and(|at| at <= now)
            && let Some((acked, lost)) = sender.acked(now, limit)
        {
            timeout = now + RTO;
            // `Conventions::QUIC`: the controller infers the end of recovery from the
            // acknowledgement.
            controller.on(now, &Event::Acked(acked));
            if let Some(lost) = lost {
                controller.on(now, &Event::Lost(lost));
            }
        } else if timer.is_some_and(|at| at <= now) {
            timeout = now + RTO;
            if let Some(newest) = sender.flight.pop_back() {
                let lost = sender.lost(1 + sender.flight.len() as u32, &newest);
                sender.flight.clear();
                controller.on(now, &Event::Timeout(lost));
            }
        }
        if let Some(due) = report.filter(|due| *due <= now) {
            report = Some(due + REPORTS);
            if let Some(report) = sender.report(now) {
                controller.on(now, &Event::Report(report));
            }
        }
        if controller.output().wake.is_some_and(|wake| wake <= now) {
            controller.on(now, &Event::Tick);
        }
    }
    Rate::over(sender.estimator.delivered() as f64, length)
}

/// The settings of this transport.
pub(crate) fn settings() -> Settings {
    let mut settings = Settings::default();
    // The receiver's window.
    settings.max_window = Packets::new(10_000.0);
    settings.conventions = &Conventions::QUIC;
    settings
}

fn main() -> Result<(), String> {
    let specs = match std::env::args().nth(1) {
        Some(text) => vec![Spec::parse(&text).map_err(|error| error.to_string())?],
        None => algorithms().iter().map(Spec::new).collect(),
    };
    for spec in specs {
        let rate = transfer(&mut spec.controller(&settings()), Dur::from_millis(20_000));
        println!("{spec}: {:.0} of {:.0} packets/s", rate.as_per_sec(), LINK.as_per_sec());
    }
    Ok(())
}
