//! What a stack tells its congestion controller, for the records.

use cwnd::{Cut, Dur, Packets, Signal};
use std::collections::VecDeque;
use std::time::Instant;

/// The measurements of a sender.
#[derive(Clone, Debug)]
pub struct Meter {
    /// Bytes of a full packet.
    pub packet: u32,
    /// Bytes in flight.
    pub in_flight: u64,
    /// When the last one sent of the packets that an acknowledgement covers was sent.
    newest: Option<Instant>,
    /// The last sample of the round-trip time.
    pub rtt: Option<Dur>,
    /// Reductions of the window.
    pub cuts: VecDeque<Cut>,
    /// How often persistent congestion was established.
    pub timeouts: u64,
    /// Reductions in response to marks.
    pub mark_cuts: u64,
}

impl Meter {
    pub fn new(packet: u16) -> Self {
        Meter {
            packet: packet.into(),
            in_flight: 0,
            newest: None,
            rtt: None,
            cuts: VecDeque::new(),
            timeouts: 0,
            mark_cuts: 0,
        }
    }

    /// A packet sent at `sent` was acknowledged.
    pub fn acked(&mut self, sent: Instant) {
        self.newest = self.newest.max(Some(sent));
    }

    /// An acknowledgement that arrived at `now` leaves `in_flight` bytes in flight.
    pub fn acks_end(&mut self, now: Instant, in_flight: u64) {
        self.in_flight = in_flight;
        if let Some(sent) = self.newest.take() {
            let nanos = now.saturating_duration_since(sent).as_nanos();
            self.rtt = Some(Dur::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)));
        }
    }

    /// A congestion signal changed the window from `before` to `after` bytes.
    pub fn congestion(&mut self, why: Signal, before: u64, after: u64) {
        self.timeouts += u64::from(why == Signal::PersistentCongestion);
        if after < before {
            self.mark_cuts += u64::from(why == Signal::Mark);
            let [before, after] = [before, after].map(|bytes| self.packets(bytes));
            self.cuts.push_back(Cut::window(why, before, after));
        }
    }

    /// Returns bytes in packets.
    pub fn packets(&self, bytes: u64) -> Packets {
        Packets::from_bytes(bytes, self.packet)
    }
}
