//! The sender, and its state and operations that do not depend on the loss recovery.

use super::accecn::Decoder;
use super::demands::Demands;
use super::recovery::LossRecovery;
use super::rto::{Estimator, Rto};
use super::scoreboard::{Losses, Newly, Scoreboard};
use crate::cast::{low32, saturate32, to_index, whole};
use crate::clock::Clock;
use crate::driver::{Driver, Payload};
use crate::engine::net::{Net, Place, TIMERS};
use crate::engine::schedule::NONE;
use crate::network::Tcp;
use crate::packet::{Extra, Packet, flags};
use crate::rng::Rng;
use crate::segment_size::{SegmentSize, SizeChanges};
use cwnd::AnyController;
use cwnd::{Acked, Controller, Dur, Event, Limit, Lost, Marked, Packets, Time};
use std::num::NonZeroU64;

/// What packet 0 carries.
#[derive(Clone, Copy)]
pub(crate) enum FirstPacket {
    /// Data.
    Data,
    /// Data. The packet also represents the handshake, which is not ECN-capable (RFC 3168 section
    /// 6.1.1).
    Handshake,
    /// A SYN without data.
    Syn,
}

/// The retransmission timeout in nanoseconds after a handshake without a round-trip time sample
/// (RFC 6298 section 5.7).
const AFTER_LOST_SYN: u64 = 3_000_000_000;
/// Size of a SYN in bytes.
pub(super) const SYN_SIZE: u16 = 40;

/// A TCP sender with the loss recovery `R`.
#[derive(Clone)]
pub(crate) struct Sender<R: LossRecovery> {
    pub(super) core: Core<R::Estimator>,
    recovery: R,
}

/// The part of a sender that does not depend on its loss recovery: transmission, timers, counters
/// and the controller's events. Fields used for every acknowledgement come first.
#[derive(Clone)]
pub(crate) struct Core<E> {
    pub(super) board: Scoreboard,
    pub(super) rto: Rto<E>,
    /// Deadline of the retransmission timer; [`NONE`] if it is not running.
    pub(super) deadline: u64,
    pub(super) driver: Driver,
    /// The timestamp granularity in ticks, if timestamps are used.
    pub(super) stamps: Option<NonZeroU64>,
    /// Rarely used state, boxed to keep `Core` small.
    rare: Option<Box<Rare>>,
    /// Present if the controller needs pacing, timers or delivery-rate samples.
    pub(super) demands: Option<Box<Demands>>,
    /// Present with AccECN.
    accecn: Option<Box<Decoder>>,
    hop: u32,
    pub(super) timer: u32,
    /// Acknowledgements received, modulo 2^32.
    pub(super) acks_received: u32,
    /// One past the highest packet sent at the last reduction, which answered the marks of all
    /// packets below.
    window_end: u32,
    /// The next packet to send; below the highest one sent while going back after a timeout.
    pub(super) next: u32,
    sizes: SegmentSize,
    /// One past the last packet of the transfer.
    pub(super) total: u32,
    /// SYNs among the packets sent.
    syns: u32,
    /// The receiver's window in packets.
    pub(super) receiver_window: u32,
    /// Flags of a data packet.
    flags: u16,
    /// Flags of the next data packet: after a window reduction it carries CWR (RFC 3168 section
    /// 6.1.2).
    next_flags: u16,
    first: FirstPacket,
    byte_counting: bool,
    pub(super) connected: bool,
    /// Whether the application may write more.
    open: bool,
}

/// Rarely used state of a sender.
#[derive(Clone)]
struct Rare {
    host_delay: Option<HostDelay>,
    size_changes: Option<SizeChanges>,
}

impl Rare {
    fn new(tcp: &Tcp, clock: Clock, rng: Rng) -> Option<Box<Self>> {
        let host_delay = HostDelay::new(tcp, clock, rng);
        let size_changes = SizeChanges::new(tcp, clock, u32::from(tcp.syn));
        (host_delay.is_some() || size_changes.is_some())
            .then(|| Box::new(Rare { host_delay, size_changes }))
    }
}

/// The random delay of bursts in a host of ns-2 (`overhead_`). Other hosts delay each packet
/// ([`Network::processing_time`](crate::network::Network::processing_time)).
#[derive(Clone)]
struct HostDelay {
    /// The maximum delay in ticks.
    max: f64,
    rng: Rng,
    /// Time of the delayed transmission; [`NONE`] if there is none.
    until: u64,
}

impl HostDelay {
    fn new(tcp: &Tcp, clock: Clock, rng: Rng) -> Option<Self> {
        let max = tcp.overhead.filter(|max| tcp.conventions.is_ns2() && !max.is_zero())?;
        Some(HostDelay { max: clock.ticks(max.as_nanos()) as f64, rng, until: NONE })
    }
}

/// An acknowledgement as the sender receives it. It is passed by reference where its fields are
/// read just after they were written: a copy would wait for the writes.
#[derive(Clone, Copy)]
pub(crate) struct Ack<'a> {
    pub extra: &'a Extra,
    /// The next packet that the receiver expects.
    pub number: u32,
    /// Whether ECN echo is set.
    pub echo: bool,
    /// Packets reported as CE-marked; 1 for an ECN echo.
    pub marks: u32,
}

impl Ack<'_> {
    /// The SACK blocks.
    #[inline(always)]
    pub(super) fn blocks(&self) -> &[(u32, u32)] {
        &self.extra.blocks[..self.extra.count as usize]
    }
}

impl<R: LossRecovery> Sender<R> {
    pub(crate) fn new(tcp: &Tcp, driver: Driver, place: Place, seed: u64) -> Self {
        Sender {
            core: Core::new(tcp, driver, place, seed, R::FIRST_PACKET),
            recovery: R::new(tcp, place.clock),
        }
    }

    /// Data packets sent, with retransmissions. They have headers of `header` bytes.
    pub(crate) fn sent(&self, header: u16) -> Payload {
        let packets = self.core.data_sent();
        let syns = u64::from(SYN_SIZE) * u64::from(self.core.syns);
        let bytes = self.core.driver.bytes_sent - syns - packets * u64::from(header);
        Payload { packets, bytes }
    }

    /// The number of the flow.
    pub(super) fn flow(&self) -> usize {
        self.core.timer as usize / TIMERS
    }

    /// Starts the transfer.
    pub(crate) fn start(&mut self, net: &mut Net, now: u64) {
        self.core.driver.meter.start(now);
        if let Some(changes) = self.core.size_changes() {
            changes.start(now);
        }
        self.resume(net, now);
    }

    /// Ends the data of the application.
    pub(crate) fn stop(&mut self, now: u64) {
        self.core.total = self.core.total.min(self.core.board.high());
        // Without data in flight no acknowledgement completes the transfer.
        if std::mem::take(&mut self.core.open) && self.core.board.una() >= self.core.total {
            self.core.complete(now);
        }
    }

    /// Without data at first, which an application writes later.
    pub(crate) fn open(&mut self) {
        self.core.open = true;
        self.core.total = u32::from(matches!(self.core.first, FirstPacket::Syn));
    }

    /// Makes the first `packets` data packets available, or those sent already if they are more.
    /// Returns their number.
    pub(crate) fn make_available(&mut self, packets: u64) -> u64 {
        let core = &mut self.core;
        let syn = u32::from(matches!(core.first, FirstPacket::Syn));
        let wanted = saturate32(to_index(packets)).saturating_add(syn);
        core.total = wanted.max(core.board.high()).max(syn);
        if core.total == u32::MAX { u64::MAX } else { u64::from(core.total - syn) }
    }

    /// Data packets of the whole transfer; `None` if there may be more than now.
    pub(super) fn total(&self) -> Option<u64> {
        let Core { total, open, first, .. } = &self.core;
        let syn = u32::from(matches!(first, FirstPacket::Syn));
        (*total != u32::MAX && !open).then(|| u64::from(total.saturating_sub(syn)))
    }

    /// Data packets acknowledged cumulatively.
    pub(crate) fn acknowledged(&self) -> u64 {
        let syn = u32::from(matches!(self.core.first, FirstPacket::Syn));
        u64::from(self.core.board.una().saturating_sub(syn))
    }

    /// Reduces the window if nothing is in flight and nothing was sent for longer than the
    /// retransmission timeout. `idle` is the time since the last transmission, `initial` the
    /// initial window.
    pub(crate) fn restart_after_idle(&mut self, now: u64, idle: u64, initial: u32) {
        let core = &mut self.core;
        if core.connected
            && core.board.high() == core.board.una()
            && idle > core.rto.timeout()
            && let Some(window) = self.recovery.restart_window(core, idle, initial)
        {
            core.driver.report(now, Event::Reduced { window: Packets::new(window), idle: true });
        }
    }

    /// Handles an expired timer.
    pub(crate) fn wake(&mut self, net: &mut Net, now: u64) {
        if let Some(host_delay) = self.core.host_delay()
            && host_delay.until <= now
        {
            host_delay.until = NONE;
            self.send_now(net, now, u32::MAX);
        }
        if self.core.deadline <= now {
            self.core.deadline = NONE;
            if self.recovery.timeout(&mut self.core, net, now) {
                self.resume(net, now);
                // Without a transmission the timer is not running.
                if self.core.deadline == NONE {
                    self.core.restart_timer(net, now);
                }
            }
        }
        if self.core.wake_demands(now) {
            self.send(net, now, u32::MAX);
        }
        let at = self.core.due();
        if at != NONE {
            net.arm(self.core.timer as usize, at.max(now));
        }
    }

    /// Handles an acknowledgement.
    #[inline(always)]
    pub(crate) fn acknowledgement(&mut self, net: &mut Net, now: u64, packet: Packet) {
        self.core.acks_received = self.core.acks_received.wrapping_add(1);
        let taken = match packet.aux() {
            0 => None,
            number => net.extras[self.flow()].take(number),
        };
        let extra = taken.as_ref().unwrap_or(&Extra::NONE);
        let echo = packet.flags() & flags::ECE != 0;
        let ack = Ack { extra, number: packet.seq(), echo, marks: u32::from(echo) };
        if let Some(burst) = self.recovery.acknowledgement(&mut self.core, net, now, ack) {
            self.send(net, now, burst);
        } else if self.core.demands.is_some() {
            self.core.arm_demands(net, now);
        }
        let core = &mut self.core;
        if core.board.una() >= core.total && core.driver.meter.acknowledged == NONE && !core.open {
            core.complete(now);
        }
    }

    /// Sends as many packets as the window allows, in response to an event other than an
    /// acknowledgement.
    #[inline(never)]
    pub(crate) fn resume(&mut self, net: &mut Net, now: u64) {
        self.send(net, now, u32::MAX);
    }

    /// Sends as many packets as the window allows, at most `burst`, after the host's delay.
    #[inline(always)]
    fn send(&mut self, net: &mut Net, now: u64, burst: u32) {
        if self.core.rare.is_some() {
            self.send_rare(net, now, burst);
        } else {
            self.send_now(net, now, burst);
        }
    }

    #[inline(always)]
    fn send_now(&mut self, net: &mut Net, now: u64, burst: u32) {
        let limit = if self.core.connected {
            self.recovery.send(&mut self.core, net, now, burst)
        } else {
            self.send_syn(net, now)
        };
        self.core.driver.meter.limited_by(now, limit);
        if self.core.demands.is_some() {
            if limit == Limit::Application {
                self.core.record_application_limit();
            }
            self.core.arm_demands(net, now);
        }
    }

    /// Sends as many packets as the window allows, for a sender whose packet size changes or whose
    /// host delays bursts.
    #[cold]
    fn send_rare(&mut self, net: &mut Net, now: u64, burst: u32) {
        if let Some(packet) = self.core.change_size(now) {
            self.resized(now, packet);
        }
        if self.core.host_delay().is_some() {
            self.core.delay_burst(net, now);
        } else {
            self.send_now(net, now, burst);
        }
    }

    /// New packets carry `packet` bytes of data from now on.
    fn resized(&mut self, now: u64, packet: u32) {
        self.core.driver.report(now, Event::Mtu { packet });
        if let Some(decoder) = &mut self.core.accecn {
            decoder.mss = packet;
        }
        self.recovery.resized(packet);
    }

    #[cold]
    fn send_syn(&mut self, net: &mut Net, now: u64) -> Limit {
        if self.core.next == 0 {
            self.recovery.repair(&mut self.core, net, now, 0);
            self.core.next = 1;
        }
        Limit::Window
    }
}

impl<E: Estimator> Core<E> {
    fn new(tcp: &Tcp, driver: Driver, place: Place, seed: u64, first: FirstPacket) -> Self {
        let Place { clock, flow, hop, timer, .. } = place;
        let mut rng = Rng::new(seed, "sender", u64::from(flow));
        let (sizes, packets) = SegmentSize::new(tcp.bytes, tcp.packet, tcp.header);
        let ect = match (tcp.ecn, tcp.l4s) {
            (false, _) => 0,
            (true, false) => flags::ECT,
            (true, true) => flags::ECT | flags::ECT1,
        };
        Core {
            board: Scoreboard::default(),
            rto: Rto::new(tcp, clock, &mut rng),
            deadline: NONE,
            stamps: stamps(tcp, clock),
            rare: Rare::new(tcp, clock, rng),
            demands: Demands::of(&driver),
            accecn: tcp.extensions.accecn.then(|| Box::new(Decoder::new(tcp.packet))),
            driver,
            hop,
            timer: saturate32(timer),
            acks_received: 0,
            window_end: 0,
            next: 0,
            total: packets.saturating_add(u32::from(tcp.syn)),
            syns: 0,
            sizes,
            receiver_window: tcp.window,
            flags: ect,
            next_flags: ect,
            first: if tcp.syn { FirstPacket::Syn } else { first },
            byte_counting: tcp.byte_counting,
            connected: !tcp.syn,
            open: false,
        }
    }

    /// Transmits or retransmits packet `seq`.
    #[inline(always)]
    pub(super) fn transmit(&mut self, net: &mut Net, now: u64, seq: u32) {
        if seq < self.board.high() {
            self.board.resent(now, seq);
            self.driver.meter.counters.retransmitted += 1;
        } else {
            self.board.sent(now);
        }
        self.driver.packets_sent += 1;
        if self.demands.is_some() {
            self.record_sent(now, seq);
        }
        let (size, bits) = if seq == 0 { self.first() } else { self.data(seq) };
        self.driver.bytes_sent += u64::from(size);
        let aux = self.timestamp(now).unwrap_or(0);
        net.send(now, Packet::new(seq, self.hop, aux, size, bits));
        if self.deadline == NONE {
            self.restart_timer(net, now);
        }
    }

    /// Restarts the retransmission timer (RFC 6298 section 5).
    #[inline(always)]
    pub(super) fn restart_timer(&mut self, net: &mut Net, now: u64) {
        self.deadline = now + self.rto.timeout();
        net.arm(self.timer as usize, self.deadline);
    }

    /// The handshake is complete. A lost SYN is no reason for a lower slow-start threshold, which
    /// is high at the start (RFC 5681 section 3.1). The window is one packet if the SYN was
    /// retransmitted more than once: after one retransmission RFC 6928 section 2 keeps it, because
    /// that may be spurious with the initial timeout of RFC 6298. `retransmitted` is the timestamp
    /// of the first retransmission: one that `ack` does not answer was spurious.
    #[cold]
    pub(super) fn connect(&mut self, now: u64, retransmitted: Option<u32>, ack: Ack) {
        self.connected = true;
        let syns = self.driver.packets_sent;
        if syns > 1 {
            self.rto.begin_data(self.driver.meter.clock.ticks(AFTER_LOST_SYN));
        }
        let spurious = retransmitted.is_some_and(|stamp| ack.extra.echo < stamp);
        if syns > 2 && !spurious {
            self.driver.report(now, Event::Reduced { window: Packets::new(1.0), idle: false });
        }
    }
}

impl<E> Core<E> {
    /// The congestion window in packets.
    #[inline(always)]
    pub(super) fn window(&self) -> f64 {
        self.driver.window()
    }

    /// Whether there is a new packet with data and the receiver's window has room for it.
    #[inline(always)]
    pub(super) fn may_send_new(&self) -> bool {
        let high = self.board.high();
        high < self.total && high - self.board.una() < self.receiver_window
    }

    /// Returns which window is full: the receiver's or the congestion window.
    #[inline]
    pub(super) fn closed(&self) -> Limit {
        let outstanding = self.board.high() - self.board.una();
        if outstanding >= self.receiver_window { Limit::Receiver } else { Limit::Window }
    }

    /// The congestion window in packets, not limited by the receiver's window.
    pub(super) fn unclamped_window(&self) -> f64 {
        match &self.driver.controller {
            AnyController::Window(windowed) => windowed.unclamped().get(),
            _ => self.window(),
        }
    }

    /// Data packets sent, with retransmissions.
    pub(super) fn data_sent(&self) -> u64 {
        self.driver.packets_sent - u64::from(self.syns)
    }

    /// The timestamp of packets sent at `now`, if timestamps are used.
    #[inline(always)]
    pub(super) fn timestamp(&self, now: u64) -> Option<u32> {
        self.stamps.map(|granularity| low32(now / granularity))
    }

    /// RFC 3522's `RetransmitTS` where a loss recovery begins: the timestamp of the first
    /// retransmission of the oldest packet, which is sent now unless it was before. `known` is the
    /// one that no acknowledgement has answered; it must not be overwritten (section 3.2, step 1).
    pub(super) fn retransmit_ts(&mut self, now: u64, known: Option<u32>) -> Option<u32> {
        self.stamps?;
        let una = self.board.una();
        let again = self.board.is_retransmitted(una);
        let sent_at = if again { self.board.sent_at(una) } else { now };
        known.or(self.timestamp(sent_at))
    }

    /// Returns size and flags of packet 0.
    #[cold]
    fn first(&mut self) -> (u16, u16) {
        match self.first {
            FirstPacket::Data => self.data(0),
            FirstPacket::Handshake => (self.data_size(0), 0),
            FirstPacket::Syn => {
                // A retransmitted SYN is no retransmission of data.
                self.driver.meter.counters.retransmitted -= u32::from(self.syns > 0);
                self.syns += 1;
                let ect = if self.driver.controller.needs().ecn { self.flags } else { 0 };
                (SYN_SIZE, flags::SYN | ect)
            }
        }
    }

    /// Returns size and flags of data packet `seq`. The next one does not carry CWR.
    #[inline(always)]
    fn data(&mut self, seq: u32) -> (u16, u16) {
        (self.data_size(seq), std::mem::replace(&mut self.next_flags, self.flags))
    }

    /// The next data packet has PSH.
    #[inline]
    pub(super) fn push(&mut self) {
        self.next_flags |= flags::PSH;
    }

    #[inline(always)]
    fn data_size(&self, seq: u32) -> u16 {
        let changes = self.rare.as_ref().and_then(|rare| rare.size_changes.as_ref());
        self.sizes.of(seq, self.total, changes)
    }

    fn host_delay(&mut self) -> Option<&mut HostDelay> {
        self.rare.as_mut()?.host_delay.as_mut()
    }

    fn size_changes(&mut self) -> Option<&mut SizeChanges> {
        self.rare.as_mut()?.size_changes.as_mut()
    }

    /// Applies a change of the packet size that is due. Returns the new payload in bytes.
    fn change_size(&mut self, now: u64) -> Option<u32> {
        let changes = self.rare.as_mut()?.size_changes.as_mut()?;
        changes.apply(now, self.board.high(), &mut self.sizes, &mut self.total)
    }

    /// All data is acknowledged, and there will be no more.
    #[cold]
    fn complete(&mut self, now: u64) {
        self.driver.meter.complete(now);
        self.deadline = NONE;
        self.demands = None;
    }

    /// Time of the next timer action.
    pub(super) fn due(&self) -> u64 {
        let host_delay = self.rare.as_ref().and_then(|rare| rare.host_delay.as_ref());
        let burst = host_delay.map_or(NONE, |host_delay| host_delay.until);
        self.deadline.min(burst).min(self.demands_due())
    }

    /// Schedules a burst after a random delay, unless a burst already waits.
    #[cold]
    fn delay_burst(&mut self, net: &mut Net, now: u64) {
        if let Some(host_delay) = self.host_delay()
            && host_delay.until == NONE
        {
            let until = now + whole(host_delay.max * host_delay.rng.uniform());
            host_delay.until = until;
            net.arm(self.timer as usize, until);
        }
    }

    /// Whether a burst waits for the host's delay.
    pub(super) fn burst_waits(&self) -> bool {
        let host_delay = self.rare.as_ref().and_then(|rare| rare.host_delay.as_ref());
        host_delay.is_some_and(|host_delay| host_delay.until != NONE)
    }

    /// Whether the pacing rate delays the next packet.
    #[inline(always)]
    pub(super) fn delayed(&self, now: u64) -> bool {
        self.demands.as_ref().is_some_and(|demands| demands.delays(now))
    }

    /// Passes a congestion event to the controller. Returns whether the controller reduced its
    /// window; if so, CWR is scheduled.
    pub(super) fn report_congestion(&mut self, now: u64, event: Event) -> bool {
        let cut = self.driver.report_congestion(now, event);
        if cut {
            self.window_end = self.board.high();
        }
        // With AccECN the sender does not set CWR (RFC 9768 section 3.1.5).
        if cut && self.flags & flags::ECT != 0 && self.accecn.is_none() {
            self.next_flags = self.flags | flags::CWR;
        }
        cut
    }

    /// The event of the marks of an acknowledgement that covers `newly`; `una` is the oldest packet
    /// that was unacknowledged before. It is not known which of several packets are marked. Marks
    /// that may all be of packets sent before the last reduction have a transmission time before
    /// it: there is one reduction for each window of data (RFC 3168 section 6.1.2).
    pub(super) fn marked(&self, ack: Ack, newly: Newly, una: u32) -> Marked {
        let answered = if ack.echo {
            // The echo ends at the packet with CWR, the first one after the reduction.
            ack.number <= self.window_end
        } else {
            ack.marks <= newly.packets.min(self.window_end.saturating_sub(una))
        };
        let sent_at =
            if answered { Time::ZERO } else { self.driver.meter.clock.time(newly.sent_at) };
        Marked::new(ack.marks, sent_at, self.driver.packets_sent)
    }

    /// Returns an acknowledgement that covers `newly` with the marks of its AccECN feedback, if it
    /// has any.
    #[inline(always)]
    pub(super) fn with_marks<'a>(&mut self, mut ack: Ack<'a>, newly: Newly) -> Ack<'a> {
        if let Some(decoder) = &mut self.accecn
            && let Some(feedback) = ack.extra.accecn
        {
            ack.marks = decoder.decode(feedback, newly.packets, newly.changed, ack.extra.echo);
        }
        ack
    }

    /// Whether acknowledgements have AccECN's feedback.
    #[inline(always)]
    pub(super) fn has_feedback(&self) -> bool {
        self.accecn.is_some()
    }

    /// Reports to the controller an acknowledgement that covers `newly`. `grows`: whether it may
    /// increase the window.
    #[inline(always)]
    pub(super) fn report_acked(&mut self, now: u64, newly: Newly, ack: Ack, grows: bool) {
        if !self.connected {
            return self.report_handshake(now, newly);
        }
        if self.demands.is_some() {
            let limit = self.driver.meter.limit;
            return self.report_acked_with_delivery(now, newly, &ack, grows, (limit, false));
        }
        let event = Event::Acked(self.acked::<false>(now, newly, &ack, grows));
        self.driver.report(now, event);
    }

    /// Reports the acknowledgement of the SYN to the controller. A SYN has no data: it is no
    /// delivery-rate sample.
    #[cold]
    pub(super) fn report_handshake(&mut self, now: u64, newly: Newly) {
        if newly.once {
            let rtt = self.driver.meter.measured(now - newly.sent_at);
            self.driver.report(now, Event::Handshake { rtt });
        }
    }

    /// Builds the event of an acknowledgement, with a delivery-rate sample if `SAMPLES`.
    #[inline(always)]
    pub(super) fn acked<const SAMPLES: bool>(
        &mut self,
        now: u64,
        newly: Newly,
        ack: &Ack,
        grows: bool,
    ) -> Acked {
        let rtt = newly.once.then(|| self.driver.meter.measured(now - newly.sent_at));
        let delivery = if SAMPLES { self.delivery_sample(now, newly) } else { None };
        let credit = if self.byte_counting { newly.packets } else { newly.packets.min(1) };
        let mut event = Acked::new(newly.packets, self.driver.meter.clock.time(newly.sent_at));
        event.credit = if grows { credit } else { 0 };
        event.in_flight = self.board.in_flight();
        event.sent = self.driver.packets_sent;
        event.rtt = rtt;
        event.delivery = delivery;
        event.received_at = self.stamps.map(|granularity| {
            self.driver.meter.clock.time(u64::from(ack.extra.stamp) * granularity.get())
        });
        event.echo = ack.echo;
        event.marked = if ack.echo { 0 } else { ack.marks };
        event.limit = self.driver.meter.limit;
        event
    }

    /// Sends again from the oldest packet. Without selective acknowledgements all packets from
    /// there on count as lost.
    pub(super) fn go_back(&mut self) -> Losses {
        let una = self.board.una();
        let gone = std::mem::replace(&mut self.next, una).max(una);
        match gone - una {
            0 => Losses::default(),
            packets => Losses { packets, ..self.board.loss_of(gone - 1) },
        }
    }

    /// Reports a timeout that declares `losses` lost. `again`: the packet was retransmitted by a
    /// timeout before, and the threshold of a window law stays (RFC 5681 section 3.1).
    pub(super) fn report_timeout(&mut self, now: u64, losses: Losses, again: bool) {
        let lost = self.lost(losses);
        if again && matches!(self.driver.controller, AnyController::Window(_)) {
            self.driver.report(now, Event::Recovered);
            self.driver.report(now, Event::Reduced { window: Packets::new(1.0), idle: false });
        } else {
            self.report_congestion(now, Event::Timeout(lost));
        }
    }

    /// Reports lost packets. Returns whether the controller reduced its window.
    pub(super) fn report_lost(&mut self, now: u64, losses: Losses) -> bool {
        let lost = self.lost(losses);
        self.report_congestion(now, Event::Lost(lost))
    }

    /// Counts lost packets for the delivery rate. Returns them as an event has them.
    pub(super) fn lost(&mut self, losses: Losses) -> Lost {
        self.record_lost(losses.packets);
        let sent_at = self.driver.meter.clock.time(losses.sent_at);
        let mut lost = Lost::new(losses.packets, sent_at, self.driver.packets_sent);
        lost.delivery = if losses.packets > 0 { self.loss_sample(losses.newest) } else { None };
        lost
    }
}

/// Returns the timestamp granularity of a connection in ticks, if timestamps are used.
pub(super) fn stamps(tcp: &Tcp, clock: Clock) -> Option<NonZeroU64> {
    let ticks = |granularity: Dur| clock.ticks(granularity.as_nanos()).max(1);
    tcp.timestamps.and_then(|granularity| NonZeroU64::new(ticks(granularity)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::{Ns2, Receiver, Rfc, Selective};

    /// A simulation holds one pair per started flow, possibly a million.
    #[test]
    fn the_state_of_a_flow_is_small() {
        let sizes = [
            size_of::<Sender<Rfc>>(),
            size_of::<Sender<Ns2>>(),
            size_of::<Sender<Selective>>(),
            size_of::<Receiver>(),
        ];
        let most = [656, 688, 816, 152];
        assert!(sizes.iter().zip(most).all(|(&size, most)| size <= most), "{sizes:?}");
    }
}
