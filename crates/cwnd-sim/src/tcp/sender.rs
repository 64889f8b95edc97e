//! The sender's state and the parts common to the RFCs and ns-2: transmission, timers, counters and the controller's
//! events.

use super::demands::Demands;
use super::rto::Rto;
use super::scoreboard::Scoreboard;
use super::{ns2, rfc};
use crate::cast::{low32, saturate16, saturate32, to_index, whole};
use crate::driver::Driver;
use crate::engine::clock::Clock;
use crate::engine::net::{Net, TIMERS};
use crate::engine::packet::{Extra, Packet, flags};
use crate::engine::schedule::NONE;
use crate::network::{Conventions, Recovery, Tcp};
use crate::rng::Rng;
use cwnd::AnyController;
use cwnd::{Acked, Dur, Event, Limit, Lost};
use std::num::NonZeroU64;

/// The position of a sender in the network.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub clock: Clock,
    pub flow: u32,
    /// The first hop of the route.
    pub hop: u32,
    pub timer: usize,
}

/// The cause of ns-2's last congestion action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    None,
    Duplicates,
    Mark,
    Timeout,
}

/// A TCP sender. Fields used for every acknowledgement come first.
pub(crate) struct Sender {
    pub(super) board: Scoreboard,
    pub(super) rto: Rto,
    /// Deadline of the retransmission timer; [`NONE`] if it is not running.
    pub(super) deadline: u64,
    pub driver: Driver,
    /// The packet that ns-2 times, one per window: sequence number and transmission time.
    pub(super) timed: Option<(u32, u64)>,
    /// RFC 6675's RecoveryPoint or ns-2's `recover_`: recovery ends when this packet is acknowledged; -1 before the first
    /// loss.
    pub(super) recover: i64,
    /// Packets by which fast recovery inflates the window (RFC 5681 section 3.2, step 4).
    pub(super) inflation: i64,
    /// ns-2's estimate of the packets in flight in SACK recovery.
    pub(super) pipe: i64,
    /// The timestamp granularity in ticks, if timestamps are used.
    stamps: Option<NonZeroU64>,
    /// Present with a random host delay (`overhead`).
    host_delay: Option<Box<HostDelay>>,
    /// Present if the controller needs pacing, timers or delivery-rate samples.
    pub(super) demands: Option<Box<Demands>>,
    /// RFC 3522's `RetransmitTS`: timestamp of the first retransmission, until the next new acknowledgement.
    pub(super) retransmit_ts: Option<u32>,
    hop: u32,
    pub(super) timer: u32,
    /// Acknowledgements received.
    pub(super) acks_received: u64,
    /// The next packet to send; below the highest one sent while going back after a timeout.
    pub(super) next: u32,
    /// One past the last packet of the transfer.
    pub(super) total: u32,
    /// The receiver's window in packets.
    pub(super) receiver_window: u32,
    pub(super) duplicates: u32,
    size: u16,
    last_size: u16,
    ect: u16,
    pub(super) recovery: Recovery,
    pub(super) last_action: Action,
    pub(super) ns2: bool,
    pub(super) limited_transmit: bool,
    byte_counting: bool,
    syn: bool,
    pub(super) connected: bool,
    pub(super) in_recovery: bool,
    pub(super) first_partial: bool,
    pub(super) rescued: bool,
    /// A mark closed ns-2's window: nothing is sent until the retransmission timer expires.
    pub(super) closed_by_mark: bool,
    /// No new data has been acknowledged since the last timeout.
    pub(super) timed_out: bool,
    /// The window was reduced: the next data packet carries CWR (RFC 3168 section 6.1.2).
    reduced: bool,
}

/// Random delay of transmissions in the host (`overhead`).
struct HostDelay {
    /// The maximum delay in ticks.
    max: f64,
    rng: Rng,
    /// Time of the delayed transmission; [`NONE`] if there is none.
    until: u64,
}

impl Sender {
    pub(crate) fn new(tcp: &Tcp, driver: Driver, place: Place, seed: u64) -> Self {
        let Place { clock, flow, hop, timer } = place;
        let mut rng = Rng::new(seed, "sender", u64::from(flow));
        let packets = tcp.bytes.map(|bytes| bytes.div_ceil(u64::from(tcp.packet)));
        let remainder = low32(tcp.bytes.map_or(0, |bytes| bytes % u64::from(tcp.packet)));
        let last = if remainder == 0 { tcp.packet } else { remainder };
        let syn = u32::from(tcp.syn);
        Sender {
            hop,
            timer: saturate32(timer),
            acks_received: 0,
            size: saturate16((tcp.packet + tcp.header) as usize),
            last_size: saturate16((last + tcp.header) as usize),
            ect: if tcp.ecn { flags::ECT } else { 0 },
            recovery: tcp.recovery,
            ns2: tcp.conventions != Conventions::Rfc,
            limited_transmit: tcp.limited_transmit,
            byte_counting: tcp.byte_counting,
            stamps: stamps(tcp, clock),
            rto: Rto::new(tcp, clock, &mut rng),
            host_delay: (!tcp.overhead.is_zero()).then(|| {
                let max = clock.ticks(tcp.overhead.as_nanos()) as f64;
                Box::new(HostDelay { max, rng, until: NONE })
            }),
            demands: Demands::of(&driver.controller),
            receiver_window: tcp.window,
            board: Scoreboard::new(),
            next: 0,
            total: packets
                .map_or(u32::MAX, |packets| saturate32(to_index(packets)))
                .saturating_add(syn),
            syn: tcp.syn,
            connected: !tcp.syn,
            duplicates: 0,
            in_recovery: false,
            recover: -1,
            inflation: 0,
            pipe: 0,
            first_partial: false,
            rescued: false,
            last_action: Action::None,
            closed_by_mark: false,
            timed_out: false,
            reduced: false,
            deadline: NONE,
            timed: None,
            retransmit_ts: None,
            driver,
        }
    }

    /// The congestion window in packets.
    #[inline(always)]
    pub(crate) fn window(&self) -> f64 {
        self.driver.window()
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

    /// Stores the timestamp of a retransmission for the detection of spurious retransmissions (RFC 3522).
    pub(super) fn record_retransmit_ts(&mut self, now: u64) {
        self.retransmit_ts = self.stamps.map(|granularity| low32(now / granularity));
    }

    /// The number of the flow.
    pub(super) fn flow(&self) -> usize {
        self.timer as usize / TIMERS
    }

    /// Starts the transfer.
    pub(crate) fn start(&mut self, net: &mut Net, now: u64) {
        self.driver.start(now);
        self.resume(net, now);
    }

    /// Ends the data of the application.
    pub(crate) fn stop(&mut self) {
        self.total = self.total.min(self.board.high());
    }

    /// Handles an expired timer.
    pub(crate) fn wake(&mut self, net: &mut Net, now: u64) {
        if let Some(host_delay) = &mut self.host_delay
            && host_delay.until <= now
        {
            host_delay.until = NONE;
            self.send_now(net, now, u32::MAX);
        }
        if self.deadline <= now {
            self.deadline = NONE;
            if self.ns2 { ns2::timeout(self, net, now) } else { rfc::timeout(self, net, now) }
        }
        self.wake_demands(net, now);
        let burst = self.host_delay.as_ref().map_or(NONE, |host_delay| host_delay.until);
        let at = self.deadline.min(burst).min(self.demands_due());
        if at != NONE {
            net.arm(self.timer as usize, at);
        }
    }

    /// Whether a burst waits for the host's delay.
    pub(super) fn burst_waits(&self) -> bool {
        self.host_delay.as_ref().is_some_and(|host_delay| host_delay.until != NONE)
    }

    /// Handles an acknowledgement.
    #[inline(always)]
    pub(crate) fn acknowledgement(&mut self, net: &mut Net, now: u64, packet: Packet) {
        self.acks_received += 1;
        let taken;
        let extra = if packet.aux() == 0 {
            &Extra::NONE
        } else {
            taken = net.extras[self.flow()].take(packet.aux()).unwrap_or(Extra::NONE);
            &taken
        };
        let echo = packet.flags() & flags::ECE != 0;
        let burst = if self.ns2 {
            ns2::acknowledgement(self, net, now, packet.seq(), echo, extra)
        } else {
            rfc::acknowledgement(self, net, now, packet.seq(), echo, extra)
        };
        if let Some(burst) = burst {
            self.send(net, now, burst);
            if !self.ns2 && self.board.high() == self.board.una() {
                self.deadline = NONE;
            }
        } else if self.demands.is_some() {
            self.arm_demands(net, now);
        }
        if self.board.una() >= self.total && self.driver.completed == NONE {
            self.driver.settle(now);
            self.driver.completed = now;
            self.deadline = NONE;
            self.demands = None;
        }
    }

    /// Sends as many packets as the window allows, in response to an event other than an acknowledgement.
    #[inline(never)]
    pub(super) fn resume(&mut self, net: &mut Net, now: u64) {
        self.send(net, now, u32::MAX);
    }

    /// Sends as many packets as the window allows, at most `burst`, after the host's delay.
    #[inline(always)]
    fn send(&mut self, net: &mut Net, now: u64, burst: u32) {
        let Some(host_delay) = &mut self.host_delay else {
            return self.send_now(net, now, burst);
        };
        if host_delay.until == NONE {
            host_delay.until = now + whole(host_delay.max * host_delay.rng.uniform());
            net.arm(self.timer as usize, host_delay.until);
        }
    }

    #[inline(always)]
    fn send_now(&mut self, net: &mut Net, now: u64, burst: u32) {
        let limit = if !self.connected {
            self.send_syn(net, now)
        } else if self.ns2 {
            ns2::send(self, net, now, burst)
        } else {
            rfc::send(self, net, now)
        };
        self.driver.limited_by(now, limit);
        if self.demands.is_some() {
            self.finish_sending(net, now, limit);
        }
    }

    /// Whether the pacing rate delays the next packet.
    #[inline(always)]
    pub(super) fn delayed(&self, now: u64) -> bool {
        self.demands.as_ref().is_some_and(|demands| demands.delays(now))
    }

    #[cold]
    fn finish_sending(&mut self, net: &mut Net, now: u64, limit: Limit) {
        if limit == Limit::Application {
            self.record_application_limit();
        }
        self.arm_demands(net, now);
    }

    #[cold]
    fn send_syn(&mut self, net: &mut Net, now: u64) -> Limit {
        if self.next == 0 {
            self.repair(net, now, 0);
            self.next = 1;
        }
        Limit::Window
    }

    /// Transmits packet `seq`. Not inlined, for rare paths.
    #[inline(never)]
    pub(super) fn repair(&mut self, net: &mut Net, now: u64, seq: u32) {
        self.transmit(net, now, seq);
    }

    /// Transmits or retransmits packet `seq`.
    #[inline(always)]
    pub(super) fn transmit(&mut self, net: &mut Net, now: u64, seq: u32) {
        let again = seq < self.board.high();
        let mut bits = self.ect;
        if again {
            self.board.resent(now, seq);
            self.driver.counters.retransmitted += 1;
            bits |= flags::AGAIN;
        } else {
            self.board.sent(now);
            if self.ns2 && self.timed.is_none() {
                self.timed = Some((seq, now));
            }
        }
        let syn = seq == 0 && self.syn;
        if syn {
            bits = flags::SYN;
        } else if seq == 0 && self.ns2 {
            // Packet 0 represents the handshake, which is not ECN-capable (RFC 3168 section 6.1.1).
            bits &= !flags::ECT;
        } else if self.reduced {
            bits |= flags::CWR;
            self.reduced = false;
        }
        self.driver.packets_sent += 1;
        if self.demands.is_some() {
            self.record_sent(now, seq);
        }
        let last = seq + 1 == self.total;
        let size = if syn {
            40
        } else if last {
            self.last_size
        } else {
            self.size
        };
        let aux = self.stamps.map_or(0, |granularity| low32(now / granularity));
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

    /// Passes a congestion event to the controller. Returns whether the controller reduced its window; if so, CWR is
    /// scheduled.
    pub(super) fn report_congestion(&mut self, now: u64, event: Event) -> bool {
        let cut = self.driver.report_congestion(now, event);
        self.reduced |= cut && self.ect != 0;
        cut
    }

    /// Reports an acknowledgement to the controller.
    #[inline(always)]
    pub(super) fn report_acked(&mut self, now: u64, covered: Covered) {
        if self.demands.is_some() {
            return self.report_acked_with_delivery(now, covered);
        }
        let event = Event::Acked(self.acked(now, covered));
        self.driver.report(now, event);
    }

    /// Reports an acknowledgement with a delivery-rate sample. A separate function, because the sample would force the
    /// acknowledgement out of registers in the common case.
    #[cold]
    fn report_acked_with_delivery(&mut self, now: u64, covered: Covered) {
        let mut acked = self.acked(now, covered);
        acked.delivery = self.delivery_sample(now, covered.packets, covered.newest);
        self.driver.report(now, Event::Acked(acked));
    }

    /// Builds the event of an acknowledgement, without a delivery-rate sample.
    #[inline(always)]
    fn acked(&mut self, now: u64, acked: Covered) -> Acked {
        let rtt = acked.rtt_from.map(|sent_at| self.driver.measured(now - sent_at));
        let received_at = match self.stamps {
            Some(granularity) => {
                Some(self.driver.clock.time(u64::from(acked.stamp) * granularity.get()))
            }
            None => None,
        };
        let credit = if self.byte_counting { acked.packets } else { acked.packets.min(1) };
        let mut event = Acked::new(acked.packets, self.driver.clock.time(acked.sent_at));
        event.credit = if acked.grows { credit } else { 0 };
        event.in_flight = self.board.in_flight();
        event.sent = self.driver.packets_sent;
        event.rtt = rtt;
        event.received_at = received_at;
        event.echo = acked.echo;
        event.limit = self.driver.limit;
        event
    }

    /// Reports `packets` packets as lost, the most recently sent of them sent at `sent_at`.
    pub(super) fn report_lost(&mut self, now: u64, packets: u32, sent_at: u64) {
        self.record_lost(packets);
        let sent_at = self.driver.clock.time(sent_at);
        let lost = Lost::new(packets, sent_at, self.driver.packets_sent);
        self.report_congestion(now, Event::Lost(lost));
    }
}

/// Packets covered by an acknowledgement, for the controller's event.
#[derive(Clone, Copy)]
pub(super) struct Covered {
    pub packets: u32,
    /// The most recently sent of the covered packets.
    pub newest: u32,
    /// Transmission time of `newest`.
    pub sent_at: u64,
    /// `sent_at`, if it gives a valid round-trip time sample.
    pub rtt_from: Option<u64>,
    /// The receiver's timestamp.
    pub stamp: u32,
    /// Whether ECN echo is set.
    pub echo: bool,
    /// Whether the acknowledgement may increase the window.
    pub grows: bool,
}

/// Returns the timestamp granularity of a connection in ticks, if timestamps are used.
pub(super) fn stamps(tcp: &Tcp, clock: Clock) -> Option<NonZeroU64> {
    let ticks = |granularity: Dur| clock.ticks(granularity.as_nanos()).max(1);
    tcp.timestamps.and_then(|granularity| NonZeroU64::new(ticks(granularity)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::Receiver;

    /// A simulation holds one pair per started flow, possibly a million.
    #[test]
    fn the_state_of_a_flow_is_small() {
        assert!(size_of::<Sender>() <= 664, "{}", size_of::<Sender>());
        assert!(size_of::<Receiver>() <= 112, "{}", size_of::<Receiver>());
    }
}
