//! The driver for stacks that report the packets of an acknowledgement one by one, and then its
//! end: noq and quinn.

use crate::connection::Connection;
use crate::flight::Flight;
use cwnd::{Acked, Dur, Limit, Time};

/// Packets of which the stack has said that they arrived, until the acknowledgement is over.
#[derive(Clone, Copy, Debug, Default)]
struct Newly {
    packets: u32,
    bytes: u64,
    newest: Newest,
}

/// The most recently sent packet of an acknowledgement.
#[derive(Clone, Copy, Debug, Default)]
struct Newest {
    sent_at: Time,
    number: Option<u64>,
}

/// The largest packet acknowledged so far.
#[derive(Clone, Copy, Debug, Default)]
struct Largest {
    number: Option<u64>,
    sent_at: Time,
}

/// A controller on a connection.
#[derive(Clone, Debug)]
pub(crate) struct Batch {
    pub(crate) connection: Connection,
    newly: Newly,
    largest: Largest,
    window_limits: bool,
    #[cfg(feature = "noq")]
    losses: u32,
    /// For a controller that needs delivery-rate samples.
    flight: Option<Box<Flight>>,
}

impl Batch {
    pub(crate) fn new(connection: Connection) -> Self {
        let flight = connection.needs().delivery_rate.then(Box::default);
        Batch {
            connection,
            newly: Newly::default(),
            largest: Largest::default(),
            window_limits: false,
            #[cfg(feature = "noq")]
            losses: 0,
            flight,
        }
    }

    /// `packets` packets with `bytes` bytes in all are sent; `number` is that of a single one.
    pub(crate) fn sent(&mut self, now: Time, packets: u32, bytes: u64, number: Option<u64>) {
        let connection = &mut self.connection;
        connection.at(now);
        connection.sent(packets);
        self.window_limits = false;
        if let Some(flight) = &mut self.flight {
            let in_flight = connection.packets(flight.bytes());
            flight.sent(connection.now(), packets, bytes, number, in_flight);
            // Pure acknowledgements, which quinn reports too, are never acknowledged here.
            let probes = 16 * u64::from(connection.packet());
            flight.limit(connection.window().min(u64::from(u32::MAX)) + probes);
        }
    }

    /// The window keeps the stack from sending.
    #[cfg(feature = "noq")]
    pub(crate) fn window_limits(&mut self) {
        self.window_limits = true;
    }

    /// `in_flight` bytes are in flight after the acknowledgement: whether those before it left no room
    /// for a packet in the window.
    #[cfg(feature = "quinn")]
    pub(crate) fn fill(&mut self, in_flight: u64) {
        let before = in_flight.saturating_add(self.newly.bytes);
        let packet = u64::from(self.connection.packet());
        self.window_limits = before.saturating_add(packet) > self.connection.window();
    }

    /// An acknowledgement covers a packet of `bytes` bytes; `number` is its number, if the stack
    /// says it.
    pub(crate) fn acked(&mut self, now: Time, sent_at: Time, bytes: u64, number: Option<u64>) {
        let newly = &mut self.newly;
        newly.packets += 1;
        newly.bytes += bytes;
        if sent_at >= newly.newest.sent_at {
            newly.newest = Newest { sent_at, number };
        }
        if let Some(flight) = &mut self.flight {
            flight.acked(now.max(self.connection.now()), sent_at, bytes, number);
        }
    }

    /// The acknowledgement is over: `in_flight` bytes are in flight, and `largest` is the largest
    /// number of an acknowledged packet of its number space.
    pub(crate) fn acks_end(
        &mut self,
        now: Time,
        in_flight: u64,
        application_limited: bool,
        largest: Option<u64>,
    ) {
        self.connection.at(now);
        if let Some(flight) = &mut self.flight {
            flight.limit(in_flight);
        }
        let Newly { packets, bytes, newest } = std::mem::take(&mut self.newly);
        if packets == 0 {
            return;
        }
        let mut acked = Acked::new(packets, newest.sent_at);
        acked.rtt = self.rtt_sample(newest, largest);
        acked.in_flight = self.connection.packets(in_flight);
        acked.limit = match (application_limited, self.window_limits) {
            (true, _) => Limit::Application,
            (false, true) => Limit::Window,
            (false, false) => Limit::Pacing,
        };
        self.connection.rtt(acked.rtt);
        if let Some(flight) = &mut self.flight {
            if application_limited {
                flight.application_limited(acked.in_flight);
            }
            acked.delivery = flight.sample(self.connection.min_rtt());
        }
        self.connection.acknowledged(acked, bytes);
    }

    /// The time since `newest` was sent, if it is the largest packet acknowledged so far and its
    /// acknowledgement is new (RFC 9002 section 5.1).
    fn rtt_sample(&mut self, newest: Newest, largest: Option<u64>) -> Option<Dur> {
        let before = self.largest;
        self.largest = Largest { number: largest, sent_at: before.sent_at.max(newest.sent_at) };
        let is_largest = match newest.number {
            Some(_) => newest.number == largest,
            // Numbers rise with the times of sending, except among packets of one instant, and are
            // compared only there: they do not name their number space.
            None => {
                newest.sent_at > before.sent_at
                    || newest.sent_at == before.sent_at && largest > before.number
            }
        };
        is_largest.then(|| self.connection.now().since(newest.sent_at))
    }

    /// The packet `number` of `bytes` bytes is lost; 0 bytes for one that does not count, such as a
    /// pure acknowledgement.
    #[cfg(feature = "noq")]
    pub(crate) fn packet_lost(&mut self, now: Time, bytes: u64, number: u64) {
        if now > self.connection.now() {
            // The stack did not count the losses of an earlier time.
            self.losses = 0;
            self.connection.at(now);
        }
        if bytes > 0 {
            self.losses += 1;
            if let Some(flight) = &mut self.flight {
                flight.lost(number, bytes);
            }
        }
    }

    /// The losses that `packet_lost` has counted are complete; the most recently sent of the lost
    /// packets was sent at `sent_at`.
    #[cfg(feature = "noq")]
    pub(crate) fn losses_end(&mut self, now: Time, sent_at: Time, persistent: bool) {
        self.connection.at(now);
        let packets = std::mem::take(&mut self.losses);
        let delivery = self.flight.as_mut().and_then(|flight| flight.losses_end(packets, sent_at));
        self.connection.lost(packets, sent_at, delivery, persistent);
    }

    /// `bytes` bytes are lost; the most recently sent of the lost packets was sent at `sent_at`.
    #[cfg(feature = "quinn")]
    pub(crate) fn bytes_lost(&mut self, now: Time, sent_at: Time, bytes: u64, persistent: bool) {
        self.connection.at(now);
        let packets = self.connection.packets(bytes);
        let delivery = self.flight.as_mut().and_then(|flight| {
            flight.oldest_lost(bytes, sent_at);
            flight.losses_end(packets, sent_at)
        });
        self.connection.lost(packets, sent_at, delivery, persistent);
    }

    /// A packet that was sent at `sent_at` or before was marked: the stacks do not say how many.
    pub(crate) fn marked(&mut self, now: Time, sent_at: Time) {
        self.connection.at(now);
        self.connection.marked(1, sent_at);
    }
}

#[cfg(all(test, feature = "noq", feature = "quinn"))]
mod tests;
