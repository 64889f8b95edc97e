//! Events of a connection in the kernel: `struct event` of `kernel/trace.h`.

use super::{Given, Whole};
use cwnd::{Acked, Cut, Dur, Limit, Packets, Rate, Report, Signal, Time};

/// Kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The connection starts using the law.
    Begin,
    /// The connection stops using the law.
    End,
    /// An acknowledgement arrived, in any phase.
    Acked,
    /// The kernel's slow start grew the window.
    Slow,
    /// The law grew the window.
    Grow,
    /// Congestion avoidance begins.
    Enter,
    /// A round has ended and its losses are known.
    Round,
    /// The law cut the window or the rate.
    Cut,
    /// The last cut was for a timeout; this cut replaces it.
    Timeout,
    /// The last cut was spurious and is undone.
    Undo,
    /// A rate law received a rate report.
    Report,
    /// A rate law increased its rate.
    Tick,
    /// A rate law left slow start.
    Start,
    /// Whole controllers: packets were declared lost.
    Lost,
    /// Whole controllers: loss recovery ended.
    Recovered,
    /// The packet size changed.
    Mtu,
    /// Laws that are texts: the kernel reduced the window by a rule of its own.
    Reduced,
    /// Rate laws that are texts: the law cut its rate because the round-trip time rises.
    Delay,
}

/// The kinds, in the order of their numbers.
const KINDS: [Kind; 18] = {
    use Kind::*;
    [
        Begin, End, Acked, Slow, Grow, Enter, Round, Cut, Timeout, Undo, Report, Tick, Start, Lost,
        Recovered, Mtu, Reduced, Delay,
    ]
};

/// Converts a window of the kernel (Q40) to packets.
pub fn packets(window: u64) -> f64 {
    window as f64 / 2f64.powi(40)
}

/// Converts a rate of the kernel (Q24) to packets per second.
pub fn per_second(rate: u64) -> f64 {
    rate as f64 / 2f64.powi(24)
}

/// Converts microseconds of the kernel.
pub(super) fn micros(time: u32) -> Dur {
    Dur::from_micros(time.into())
}

/// The relative difference of a value of the kernel; infinite if either is not a number.
pub(super) fn difference(found: f64, expected: f64) -> f64 {
    let difference = (found - expected).abs() / expected.abs().max(f64::MIN_POSITIVE);
    match found == expected {
        true => 0.0,
        false if difference.is_nan() => f64::INFINITY,
        false => difference,
    }
}

/// One event of one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Nanoseconds of CLOCK_MONOTONIC.
    pub time: u64,
    /// Identifies the connection while it is open.
    pub connection: u64,
    /// The window (Q40 packets; of a text the bits of binary64) or the rate before. Rates are bits
    /// of binary64, in packets per second.
    pub before: u64,
    /// The window or rate after.
    pub after: u64,
    /// A rate law's arrival rate.
    pub arrival: u64,
    /// A rate law's capacity estimate.
    pub capacity: u64,
    /// The kind.
    pub kind: Kind,
    /// Packets delivered, or that the window grows for; for [`Kind::Undo`], 1 if the law's state is
    /// also restored.
    pub packets: u32,
    /// Packets sent in total; for [`Kind::Round`], in the round.
    pub sent: u32,
    /// Packets lost in total; for [`Kind::Round`], in the round.
    pub lost: u32,
    /// The round-trip time in microseconds; 0 without a sample.
    pub rtt: u32,
    /// The minimum round-trip time in microseconds; 0 without a sample.
    pub min_rtt: u32,
    /// Packets in flight.
    pub in_flight: u32,
    /// The kernel's window in packets.
    pub cwnd: u32,
    /// The kernel's slow start threshold in packets; for cuts of window laws, 1 if the connection
    /// was in slow start.
    pub ssthresh: u32,
    /// The receiver's newest timestamp, in milliseconds.
    pub timestamp: u32,
    /// Packet size in bytes, with headers.
    pub packet_bytes: u32,
    /// The peer's IPv4 address.
    pub peer: [u8; 4],
    /// The local port.
    pub port: u16,
    /// The peer's port.
    pub peer_port: u16,
    /// Whether the window limits the sender.
    pub limited: bool,
    /// Retransmitted packets in total.
    pub retransmitted: u32,
    /// Packets delivered in total.
    pub delivered: u32,
    /// The smoothed round-trip time in microseconds; 0 without a sample.
    pub smoothed_rtt: u32,
    /// The inputs of a whole controller.
    pub whole: Option<Whole>,
    /// The inputs of a law that is a text.
    pub given: Option<Given>,
}

impl Event {
    const SIZE: usize = 120;

    /// Whether the controller reduced its window or rate for a loss or a timeout.
    pub fn is_cut(&self) -> bool {
        match self.kind {
            Kind::Cut | Kind::Timeout | Kind::Delay => true,
            Kind::Lost => self.after < self.before,
            _ => false,
        }
    }

    /// The reduction, if [`Event::is_cut`]; `paced` for a rate law.
    pub(crate) fn cut(&self, paced: bool) -> Option<Cut> {
        let (signal, values) = (self.signal(), [self.before, self.after]);
        self.is_cut().then(|| {
            if paced {
                let [before, after] = values.map(|rate| Rate::per_sec(f64::from_bits(rate)));
                Cut::rate(signal, before, after)
            } else {
                let [before, after] = values.map(|window| Packets::new(self.packets(window)));
                Cut::window(signal, before, after)
            }
        })
    }

    /// Why the law cut.
    pub(super) fn signal(&self) -> Signal {
        match (self.kind, &self.given) {
            (Kind::Timeout, _) => Signal::Timeout,
            (_, Some(given)) => given.why,
            _ => Signal::Loss,
        }
    }

    /// A window of the event in packets.
    pub(super) fn packets(&self, window: u64) -> f64 {
        if self.given.is_some() { f64::from_bits(window) } else { packets(window) }
    }

    /// Whether the cut replaces the one before: the kernel cuts before it reports a timeout.
    pub(crate) fn replaces_cut(&self, paced: bool) -> bool {
        self.kind == Kind::Timeout && !paced && self.whole.is_none()
    }

    /// The rate law's new rate in packets per second, if the event changes it.
    pub(crate) fn new_rate(&self) -> Option<f64> {
        let changes = self.is_cut() || matches!(self.kind, Kind::Tick | Kind::Start);
        changes.then(|| f64::from_bits(self.after))
    }

    /// The law's window in packets, or the kernel's if the kernel has changed it.
    pub(super) fn window(&self) -> f64 {
        let (window, kernel) = (self.packets(self.after), f64::from(self.cwnd));
        if window.floor() == kernel { window } else { kernel }
    }

    /// The acknowledgement of [`Kind::Acked`] at `at`. The window grows in later events.
    pub(super) fn acked(&self, at: Time) -> Acked {
        let rtt = micros(self.rtt);
        let sent_at = at.as_nanos().saturating_sub(rtt.as_nanos());
        let mut acked = Acked::new(self.packets, Time::from_nanos(sent_at));
        acked.credit = 0;
        acked.in_flight = self.in_flight;
        acked.sent = u64::from(self.sent);
        acked.rtt = (self.rtt > 0).then_some(rtt);
        acked.received_at =
            (self.timestamp != 0).then(|| Time::from_nanos(u64::from(self.timestamp) * 1_000_000));
        if let Some(given) = &self.given {
            acked.received_at = acked.received_at.map(|_| Time::from_nanos(given.time));
            (acked.marked, acked.echo) = (given.marked, given.marked > 0);
        }
        acked.limit = if self.limited { Limit::Window } else { Limit::Application };
        acked
    }

    /// The report of [`Kind::Report`].
    pub(super) fn report(&self) -> Report {
        let rate = |rate| Some(Rate::per_sec(f64::from_bits(rate)));
        let mut report = Report::new(self.packets, u64::from(self.sent), micros(self.rtt));
        (report.arrival, report.capacity) = (rate(self.arrival), rate(self.capacity));
        report
    }

    /// Parses an event; `None` if the bytes are too short or the kind is unknown.
    pub fn from_bytes(bytes: &[u8]) -> Option<Event> {
        let rest = bytes.get(Self::SIZE..)?;
        let (whole, given) = (Whole::from_bytes(rest), Given::from_bytes(rest));
        let bytes: &[u8; Self::SIZE] = bytes.get(..Self::SIZE)?.try_into().ok()?;
        let u64_at = |n: usize| u64::from_ne_bytes(std::array::from_fn(|k| bytes[8 * n + k]));
        let u32_at = |n: usize| u32::from_ne_bytes(std::array::from_fn(|k| bytes[48 + 4 * n + k]));
        Some(Event {
            time: u64_at(0),
            connection: u64_at(1),
            before: u64_at(2),
            after: u64_at(3),
            arrival: u64_at(4),
            capacity: u64_at(5),
            kind: *KINDS.get(u32_at(0) as usize)?,
            packets: u32_at(1),
            sent: u32_at(2),
            lost: u32_at(3),
            rtt: u32_at(4),
            min_rtt: u32_at(5),
            in_flight: u32_at(6),
            cwnd: u32_at(7),
            ssthresh: u32_at(8),
            timestamp: u32_at(9),
            packet_bytes: u32_at(10),
            peer: [bytes[92], bytes[93], bytes[94], bytes[95]],
            port: u16::from_ne_bytes([bytes[96], bytes[97]]),
            peer_port: u16::from_be_bytes([bytes[98], bytes[99]]),
            limited: u32_at(13) != 0,
            retransmitted: u32_at(14),
            delivered: u32_at(15),
            smoothed_rtt: u32_at(16),
            whole,
            given,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_events_of_the_kernel_layout() {
        let mut bytes = vec![0; Event::SIZE];
        bytes[16..24].copy_from_slice(&(5_u64 << 40).to_ne_bytes());
        bytes[48..52].copy_from_slice(&4_u32.to_ne_bytes());
        bytes[92..96].copy_from_slice(&[10, 77, 0, 2]);
        bytes[98..100].copy_from_slice(&5201_u16.to_be_bytes());
        let event = Event::from_bytes(&bytes).unwrap();
        assert_eq!((event.kind, packets(event.before)), (Kind::Grow, 5.0));
        assert_eq!((event.peer, event.peer_port), ([10, 77, 0, 2], 5201));
        assert_eq!(Event::from_bytes(&bytes[1..]), None);
        bytes[48] = 99;
        assert_eq!(Event::from_bytes(&bytes), None);
    }
}
