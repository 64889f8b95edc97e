//! The one language between a driver (simulator, socket, kernel trace) and a controller: plain
//! data, so that a run can be recorded and replayed to the same answers.

use crate::units::{Dur, Packets, Rate, Time};

/// What kept the sender from sending more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Limit {
    /// The congestion window.
    Window,
    /// The pacing rate.
    Pacing,
    /// The receiver's window.
    Receiver,
    /// The application had nothing to send.
    Application,
}

/// One acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Acked {
    /// Packets that this acknowledgement newly reports as arrived, in order or selectively.
    pub packets: u32,
    /// Packets that the window may grow for: `packets` where packets are counted (RFC 3465), 1 for
    /// each acknowledgement where those are (RFC 5681 section 3.1, ns-2).
    pub credit: u32,
    /// Packets still in flight after it.
    pub in_flight: u32,
    /// Packets sent since the connection began, retransmissions included.
    pub sent: u64,
    /// When the newest packet that it reports was sent.
    pub sent_at: Time,
    /// The round-trip time it measures, unless Karn's rule forbids it (RFC 6298 section 3).
    pub rtt: Option<Dur>,
    /// The receiver's clock when the newest packet arrived (RFC 7323 timestamps).
    pub received_at: Option<Time>,
    /// Whether it echoes a congestion mark (RFC 3168 section 6.1.2): the window does not grow on it.
    pub echo: bool,
    /// What limited the sender since the last acknowledgement.
    pub limit: Limit,
}

/// Packets found lost, one event for each detection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lost {
    /// Packets newly found lost.
    pub packets: u32,
    /// When the newest of them was sent: tells a new loss event from an old one.
    pub sent_at: Time,
    /// Packets sent since the connection began, retransmissions included.
    pub sent: u64,
}

/// Packets that arrived carrying a congestion mark.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Marked {
    /// Packets newly reported as marked.
    pub packets: u32,
    /// When the newest of them was sent.
    pub sent_at: Time,
    /// Packets sent since the connection began, retransmissions included.
    pub sent: u64,
}

/// The receiver's periodic report, UDT's full acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Report {
    /// Packets newly acknowledged by it.
    pub packets: u32,
    /// Packets sent since the connection began, retransmissions included.
    pub sent: u64,
    /// The receiver's packet arrival rate, once it knows one.
    pub arrival: Option<Rate>,
    /// The link capacity that the receiver estimates from packet pairs, once it knows one.
    pub capacity: Option<Rate>,
    /// The round-trip time.
    pub rtt: Dur,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// An acknowledgement arrived.
    Acked(Acked),
    /// Packets were found lost.
    Lost(Lost),
    /// Packets were reported as marked.
    Marked(Marked),
    /// The receiver reported its rates.
    Report(Report),
    /// The window in which packets were lost has been repaired: recovery is over.
    Recovered,
    /// The retransmission timer expired; `sent` counts packets sent so far.
    Timeout {
        /// Packets sent since the connection began, retransmissions included.
        sent: u64,
    },
    /// NewReno's partial window deflation (RFC 6582 section 3.2 step 5), for a driver that does not
    /// restore the window at the end of recovery (ns-2).
    Deflated {
        /// Packets to take off the window.
        packets: Packets,
    },
    /// The last cut answered a loss that was none (RFC 4015, RFC 5682): take it back.
    Undo,
    /// The time asked for in [`Output::wake`] has come.
    Tick,
}

/// A controller's answer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Output {
    /// Packets that may be in flight.
    pub window: Packets,
    /// The rate to send at; without one the acknowledgements clock the sender.
    pub pace: Option<Rate>,
    /// When to send a [`Event::Tick`].
    pub wake: Option<Time>,
}
