//! What a driver (a transport, a simulator, a kernel trace) reports to a controller, and the
//! controller's answer.
//!
//! Events are plain data: a run can be recorded and replayed bit for bit (`cwnd::record`). Their
//! order and the exact meaning of their fields are in [Writing a driver](crate#writing-a-driver).

use crate::delivery::{LossSample, RateSample};
use crate::units::{Dur, Packets, Rate, Time};

/// What keeps a sender from sending more: why it stopped when it last sent packets, or could have
/// sent some.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Limit {
    /// The congestion window.
    Window,
    /// The controller's pacing rate.
    Pacing,
    /// The receiver's window.
    Receiver,
    /// The application has no data to send, or limits the rate itself.
    Application,
}

/// An acknowledgement that newly acknowledges packets. Its losses follow in an event of their own.
///
/// ```
/// use cwnd::{Acked, Dur, Time};
///
/// let mut acked = Acked::new(2, Time::ZERO);
/// acked.in_flight = 8;
/// acked.sent = 10;
/// acked.rtt = Some(Dur::from_millis(50));
/// assert_eq!(acked.credit, 2);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Acked {
    /// Packets newly acknowledged, cumulatively or selectively.
    pub packets: u32,
    /// Packets that the window may grow for, and by in slow start: `packets` with byte counting
    /// (RFC 3465), 1 for each acknowledgement without (RFC 5681 section 3.1, ns-2). The window does
    /// not grow on 0.
    pub credit: u32,
    /// Packets in flight after this acknowledgement (RFC 6675's pipe, RFC 9002's bytes_in_flight).
    pub in_flight: u32,
    /// Packets sent since the connection began, with retransmissions.
    pub sent: u64,
    /// When the most recently sent of the newly acknowledged packets was sent.
    pub sent_at: Time,
    /// The round-trip time sample; `None` where Karn's algorithm forbids one (RFC 6298 section 3),
    /// and in QUIC where the largest acknowledged packet is not newly acknowledged (RFC 9002
    /// section 5.1).
    pub rtt: Option<Dur>,
    /// The time at which the acknowledgement was sent by the receiver's clock (RFC 7323
    /// timestamps), whose epoch is unknown: only differences count.
    pub received_at: Option<Time>,
    /// Whether the acknowledgement carries ECN-Echo (RFC 3168 section 6.1.2). The window does not
    /// grow on it.
    pub echo: bool,
    /// Packets newly reported as CE-marked, where the transport counts them (AccECN, RFC 9768;
    /// QUIC, RFC 9000 section 19.3.2). A driver reports them as [`Event::Marked`] too.
    pub marked: u32,
    /// Why the sender last stopped sending before this acknowledgement.
    pub limit: Limit,
    /// The delivery-rate sample, for controllers that [need](crate::Needs) one.
    pub delivery: Option<RateSample>,
    /// The earliest time at which the pacing rate lets the next packet leave; `None` where the
    /// driver does not report it.
    pub departure: Option<Time>,
}

impl Acked {
    /// An acknowledgement of `packets` packets, the most recently sent of them sent at `sent_at`,
    /// for a sender that its window limits. Each packet counts for growth; nothing is in flight;
    /// there is no sample.
    #[inline(always)]
    pub const fn new(packets: u32, sent_at: Time) -> Self {
        Acked {
            packets,
            credit: packets,
            in_flight: 0,
            sent: 0,
            sent_at,
            rtt: None,
            received_at: None,
            echo: false,
            marked: 0,
            limit: Limit::Window,
            delivery: None,
            departure: None,
        }
    }
}

/// Packets declared lost: one event for all packets that the same acknowledgement or timer declares
/// lost, in recovery as well; and those that a retransmission timeout declares lost.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Lost {
    /// Packets newly declared lost; 0 where a recovery begins for packets that were sent and
    /// reported as lost in the one before.
    pub packets: u32,
    /// When the most recently sent of them was sent: distinguishes a new congestion event from an
    /// old one.
    pub sent_at: Time,
    /// Packets sent since the connection began, with retransmissions.
    pub sent: u64,
    /// The state of the most recently sent of them when it was sent, for controllers that need
    /// delivery-rate samples.
    pub delivery: Option<LossSample>,
}

impl Lost {
    /// `packets` packets declared lost, the most recently sent of them sent at `sent_at`, out of
    /// `sent` packets sent since the connection began.
    #[inline(always)]
    pub const fn new(packets: u32, sent_at: Time, sent: u64) -> Self {
        Lost { packets, sent_at, sent, delivery: None }
    }
}

/// Packets reported as CE-marked.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Marked {
    /// Packets newly reported as CE-marked: the increase of the receiver's counter (AccECN, RFC
    /// 9768; QUIC, RFC 9000), or 1 for an ECN-Echo, which does not count (RFC 3168).
    pub packets: u32,
    /// When the most recently sent of them was sent. A time before the last reduction if all of
    /// them may have been sent before it.
    pub sent_at: Time,
    /// Packets sent since the connection began, with retransmissions.
    pub sent: u64,
}

impl Marked {
    /// `packets` packets reported as CE-marked, the most recently sent of them sent at `sent_at`,
    /// out of `sent` packets sent since the connection began.
    #[inline(always)]
    pub const fn new(packets: u32, sent_at: Time, sent: u64) -> Self {
        Marked { packets, sent_at, sent }
    }
}

/// The receiver's periodic report, such as UDT's full acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Report {
    /// Packets newly acknowledged.
    pub packets: u32,
    /// Packets sent since the connection began, with retransmissions.
    pub sent: u64,
    /// The packet arrival rate that the receiver measures; `None` if there is no new estimate, for
    /// instance because no packet has arrived since the last report. A driver that computes the
    /// rate divides the packets acknowledged by the time since the last report with acknowledged
    /// packets: the rate of an interval without arrivals is unknown, not zero.
    pub arrival: Option<Rate>,
    /// The link capacity that the receiver estimates from packet pairs; `None` if there is no new
    /// estimate.
    pub capacity: Option<Rate>,
    /// The round-trip time: the latest sample, or the receiver's own estimate.
    pub rtt: Dur,
}

impl Report {
    /// A report without estimates that newly acknowledges `packets` packets, out of `sent` packets
    /// sent since the connection began.
    #[inline(always)]
    pub const fn new(packets: u32, sent: u64, rtt: Dur) -> Self {
        Report { packets, sent, arrival: None, capacity: None, rtt }
    }
}

/// What happened on a connection: see [Writing a driver](crate#writing-a-driver) for the order of
/// events.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// An acknowledgement arrived.
    Acked(Acked),
    /// The handshake of a TCP is complete. Its segments have no data: their acknowledgement is no
    /// [`Event::Acked`].
    Handshake {
        /// The time between the SYN and its acknowledgement. It is a sample for a smoothed
        /// round-trip time, and none for a least one: a SYN is smaller than data.
        rtt: Dur,
    },
    /// Packets were declared lost.
    Lost(Lost),
    /// Packets were reported as CE-marked.
    Marked(Marked),
    /// The receiver reported its rates. Only for controllers that [need](crate::Needs) reports.
    Report(Report),
    /// Loss recovery is over (RFC 6675, RFC 6582). A driver that never reports it sets
    /// [`Conventions::infers_recovery`](crate::Conventions::infers_recovery).
    Recovered,
    /// The retransmission timer expired (RFC 6298), and the driver declared these packets lost.
    /// They are reported here alone. QUIC's probe timeout is no such event (RFC 9002 section 6.2).
    Timeout(Lost),
    /// All packets sent over a period longer than the persistent congestion duration were lost (RFC
    /// 9002 section 7.6). The losses themselves are reported first.
    PersistentCongestion,
    /// The last reduction answered a loss that was spurious (RFC 4015, RFC 5682): the controller
    /// reverts it.
    Undo,
    /// The driver reduced the window by a rule of its own, such as the restart after an idle period
    /// (RFC 5681 section 4.1).
    Reduced {
        /// The new window in packets. A larger one than the controller's does not change it.
        window: Packets,
        /// Whether this is the restart after an idle period. It is reported also if the window
        /// stays.
        idle: bool,
    },
    /// The maximum packet size changed, for instance by path MTU discovery (RFC 8899).
    Mtu {
        /// The new size in bytes.
        packet: u32,
    },
    /// The time of [`Output::wake`] has come. A Tick before that time has no effect.
    Tick,
}

/// A controller's answer.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Output {
    /// The largest number of packets in flight. Real-valued; may be infinite.
    pub window: Packets,
    /// The pacing rate; `None` for a sender clocked by acknowledgements alone.
    pub pace: Option<Rate>,
    /// When the controller wants an [`Event::Tick`], in place of any earlier wish.
    pub wake: Option<Time>,
}

/// The least time between two Ticks: a controller whose [`Output::wake`] is not later than its last
/// Tick cannot hold its driver at one instant.
pub(crate) const TICK_GAP: Dur = Dur::from_micros(10);

impl Output {
    /// A congestion window, without pacing and without a timer.
    #[inline(always)]
    pub const fn window(window: Packets) -> Self {
        Output { window, pace: None, wake: None }
    }

    /// When a driver reports the next [`Event::Tick`], after the last one at `last`: at
    /// [`wake`](Self::wake), and at least 10 µs after `last`.
    ///
    /// ```
    /// use cwnd::{Dur, Output, Packets, Time};
    ///
    /// let mut output = Output::window(Packets::new(10.0));
    /// output.wake = Some(Time::ZERO + Dur::from_millis(5));
    /// assert_eq!(output.next_tick(None), output.wake);
    /// // The controller did not change its wish at the Tick.
    /// let later = Time::ZERO + Dur::from_millis(6);
    /// assert_eq!(output.next_tick(Some(later)), Some(later + Dur::from_micros(10)));
    /// ```
    pub fn next_tick(&self, last: Option<Time>) -> Option<Time> {
        let earliest = last.map_or(Time::ZERO, |last| last + TICK_GAP);
        self.wake.map(|wake| wake.max(earliest))
    }
}
