//! Loss recovery with selective acknowledgements whose parts can be switched on one by one: loss
//! detection by RACK (RFC 8985) or by three SACKed packets (RFC 6675), tail loss probes (RFC 8985),
//! and the window reduction of PRR (RFC 9937). The order of operations is that of Linux (`tcp_ack`
//! in net/ipv4/tcp_input.c).

mod detect;
mod in_order;
mod send;
mod state;
mod timer;
mod undo;

use self::send::Linux;
use self::state::State;
use self::timer::Timer;
use self::undo::{Frto, Undo};
use super::prr::{Delivery, Prr};
use super::rack::Rack;
use super::recovery::LossRecovery;
use super::rto::AnySrtt;
use super::scoreboard::{Covered, Newly};
use super::sender::{self, Ack, FirstPacket};
use super::tlp::Tlp;
use crate::cast::whole32;
use crate::clock::Clock;
use crate::engine::net::Net;
use crate::engine::schedule::NONE;
use crate::network::{Conventions, Tcp};
use cwnd::{AnyController, Controller, Event, Limit, Packets};

type Core = sender::Core<AnySrtt>;

const MS: u64 = 1_000_000;
/// Linux's `TCP_TIMEOUT_MIN_US`: the least timeout of a timer for packets that are late.
const LINUX_TIMEOUT_MIN: u64 = 2 * MS;
/// RFC 8985 section 7.2 with RFC 6298's initial timeout.
const INITIAL_PTO: u64 = 1000 * MS;
/// The delay of acknowledgements that a probe allows for: the longest of common receivers, and
/// Linux's minimum timeout.
const MAX_ACK_DELAY: u64 = 200 * MS;

/// What an acknowledgement delivered and reported.
struct Delivered {
    newly: Newly,
    /// Whether it acknowledges new data cumulatively.
    advanced: bool,
    /// The packet whose duplicate the receiver reports.
    duplicate: Option<u32>,
    /// Whether it has the original transmission of a packet below `high_seq`.
    original: bool,
    /// Whether packets were newly SACKed.
    sacked: bool,
    /// Whether the retransmission timeout begins again.
    restarts: bool,
}

/// State of the loss recovery.
#[derive(Clone, Default)]
pub(crate) struct Selective {
    /// Packets that the state lasts for: it ends when all below are acknowledged.
    high_seq: u32,
    duplicates: u32,
    state: State,
    timer: Timer,
    /// Time of the last timeout.
    timed_out: u64,
    /// Timeouts since the last acknowledgement of new data.
    retransmits: u32,
    undo: Undo,
    frto: Frto,
    rack: Option<Box<Rack>>,
    tlp: Option<Tlp>,
    /// The current reduction by PRR.
    prr: Option<Prr>,
    uses_prr: bool,
    limited_transmit: bool,
    /// The last outstanding packet was retransmitted in this recovery (rule 4 of RFC 6675's
    /// `NextSeg`).
    rescued: bool,
    linux: Option<Box<Linux>>,
}

impl LossRecovery for Selective {
    type Estimator = AnySrtt;

    const FIRST_PACKET: FirstPacket = FirstPacket::Data;

    fn new(tcp: &Tcp, clock: Clock) -> Self {
        let parts = &tcp.extensions;
        let linux = tcp.conventions == Conventions::Linux;
        let slack = if linux { clock.ticks(LINUX_TIMEOUT_MIN) } else { 0 };
        let tlp = || Tlp::new(clock.ticks(MAX_ACK_DELAY), slack, clock.ticks(INITIAL_PTO));
        Selective {
            undo: Undo::new(parts.dsack),
            frto: Frto::new(parts.frto),
            rack: parts.rack.then(Box::default),
            tlp: parts.tlp.then(tlp),
            uses_prr: parts.prr,
            limited_transmit: tcp.limited_transmit,
            linux: linux.then(|| Box::new(Linux::new(clock, tcp.packet))),
            ..Selective::default()
        }
    }

    fn resized(&mut self, packet: u32) {
        if let Some(linux) = &mut self.linux {
            linux.tso.resized(packet);
        }
    }

    fn acknowledgement(
        &mut self,
        core: &mut Core,
        net: &mut Net,
        now: u64,
        ack: Ack,
    ) -> Option<u32> {
        let una = core.board.una();
        if ack.number < una {
            return None;
        }
        if self.acknowledge_in_order(core, net, now, &ack) {
            return Some(u32::MAX);
        }
        let delivered = self.deliver(core, now, &ack, una);
        let Delivered { newly, advanced, .. } = delivered;
        let ack = core.with_marks(ack, newly);
        core.next = core.next.max(ack.number);
        if advanced {
            self.retransmits = 0;
            self.duplicates = 0;
        } else if newly.changed {
            self.duplicates += 1;
        }
        self.process_probe(core, now, ack, &delivered);
        if advanced && core.connected {
            self.detect_spurious(core, now, ack);
        }
        self.process_duplicate(core, now, delivered.duplicate);
        let most = self.process_loss(core, now, ack, &delivered);
        // PRR alone sets the window during its reduction.
        self.report_acked(core, now, newly, &ack, advanced && self.prr.is_none());
        if let Some(window) = most
            && matches!(core.driver.controller, AnyController::Window(_))
        {
            core.driver.report(now, Event::Reduced { window: Packets::new(window), idle: false });
        }
        if advanced && !core.connected {
            core.connect(now, self.undo.take_stamp(), ack);
        }
        let ended = self.leave_states(core, now);
        let found = self.detect(core, net, now, delivered.restarts, newly.packets);
        if ended && self.state != State::Recovery {
            core.driver.report(now, Event::Recovered);
        }
        self.mark(core, now, ack, newly, una);
        if let Some(prr) = &mut self.prr {
            let safe = advanced && found.losses.packets == 0;
            let in_flight = core.board.in_flight();
            prr.acknowledged(Delivery { delivered: newly.packets, in_flight, safe });
        }
        self.stop_timer_if_idle(core);
        Some(u32::MAX)
    }

    fn timeout(&mut self, core: &mut Core, net: &mut Net, now: u64) -> bool {
        if core.board.high() == core.board.una() {
            return false;
        }
        match std::mem::replace(&mut self.timer, Timer::Rto) {
            Timer::Rto => self.retransmission_timeout(core, net, now),
            Timer::Reordering => {
                self.late(core, net, now);
                true
            }
            Timer::Probe => {
                self.probe(core, net, now);
                false
            }
        }
    }

    fn send(&mut self, core: &mut Core, net: &mut Net, now: u64, _burst: u32) -> Limit {
        let before = core.board.high();
        let mut limit = self.send_packets(core, net, now);
        let awaits_new = self.frto.new_left().is_some()
            && core.board.high() <= self.high_seq
            && limit != Limit::Pacing;
        if std::mem::take(&mut self.frto.new_first) && core.board.high() == before || awaits_new {
            // No new packet could be sent: the lost ones are retransmitted.
            self.frto.end();
            limit = self.send_packets(core, net, now);
        }
        let high = core.board.high();
        if let Some(linux) = &mut self.linux {
            linux.usage.validate(core.board.una(), high, limit == Limit::Window);
        }
        if high > before
            && !self.schedule_probe(core, net, now, false)
            && self.timer == Timer::Probe
        {
            self.restart_rto(core, net, now);
        }
        limit
    }

    /// In Linux the window is halved for each retransmission timeout of the idle period, down to
    /// the initial one, but not that of a controller with `cong_control`
    /// (`tcp_slow_start_after_idle_check`, `tcp_cwnd_restart`).
    fn restart_window(&self, core: &Core, idle: u64, initial: u32) -> Option<f64> {
        if self.linux.is_none() {
            return Some(f64::from(initial));
        }
        if has_cong_control(&core.driver.controller) {
            return None;
        }
        let timeouts = idle.saturating_sub(1) / core.rto.timeout();
        let halved =
            u32::try_from(timeouts).ok().and_then(|n| whole32(core.window()).checked_shr(n));
        Some(f64::from(halved.unwrap_or(0).max(initial)))
    }

    fn transmit(&mut self, core: &mut Core, net: &mut Net, now: u64, seq: u32) {
        let high = core.board.high();
        if seq < high {
            self.undo.retransmitted();
            if let Some(rack) = &mut self.rack {
                rack.resent(now, seq, high);
            }
        }
        core.transmit(net, now, seq);
        if let Some(linux) = &mut self.linux {
            linux.sent_at = now;
        }
        if let Some(prr) = &mut self.prr {
            prr.sent();
        }
    }
}

impl Selective {
    /// Updates the scoreboard, RACK and the timeout's estimator. `una` is the oldest packet that
    /// was unacknowledged before.
    #[inline(never)]
    fn deliver(&mut self, core: &mut Core, now: u64, ack: &Ack, una: u32) -> Delivered {
        let (min_rtt, stamps) = (core.driver.meter.min_rtt, core.stamps);
        let rack = &mut self.rack;
        // The first packets that were sent once, and whether a retransmitted one is acknowledged.
        let (mut first, mut again) = (None, false);
        let (mut original, high_seq) = (false, self.high_seq);
        let cumulative = core.board.acked_each(ack.number, |covered: Covered| {
            if covered.retransmitted {
                again = true;
            } else {
                first = first.or(Some(covered.sent_at));
                original |= covered.seq < high_seq;
            }
            let echoes = !covered.retransmitted
                || stamps.is_none_or(|granularity| {
                    u64::from(ack.extra.echo) >= covered.sent_at / granularity
                });
            if let Some(rack) = rack {
                rack.update(now, covered, min_rtt, echoes);
            }
        });
        let mut first_sacked = None;
        let selective = core.board.sack_each(ack.blocks(), &mut |covered| {
            if !covered.retransmitted {
                first_sacked = first_sacked.or(Some(covered.sent_at));
                original |= covered.seq < high_seq;
            }
            if let Some(rack) = rack {
                rack.update(now, covered, min_rtt, true);
            }
        });
        let mut newly = cumulative.and(selective);
        let sampled = if self.linux.is_some() {
            // `tcp_ack_update_rtt`: with timestamps a retransmitted packet gives a sample too, to
            // the estimator and to the controller.
            let echoed = stamps
                .map(|granularity| u64::from(ack.extra.echo) * granularity.get())
                .filter(|sent_at| again && *sent_at < now);
            if let Some(sent_at) = echoed
                && !newly.once
            {
                newly = Newly { sent_at, once: true, ..newly };
            }
            first.filter(|_| !again).or(first_sacked).or(echoed)
        } else {
            newly.once.then_some(newly.sent_at)
        };
        if let Some(sent_at) = sampled {
            self.sample(core, now, sent_at);
        }
        let (advanced, duplicate) = (ack.number > una, self.undo.reported(*ack));
        // `tcp_clean_rtx_queue`: also if packets are SACKed that were sent before the oldest packet
        // was retransmitted.
        let restarts = advanced
            || self.linux.is_some()
                && first_sacked.is_some_and(|sent_at| sent_at < core.board.sent_at(una));
        Delivered { newly, advanced, duplicate, original, sacked: selective.changed, restarts }
    }

    /// Updates the timeout's estimator with the round-trip time of a packet sent at `sent_at`.
    #[inline(always)]
    fn sample(&mut self, core: &mut Core, now: u64, sent_at: u64) {
        core.rto.sample(now, sent_at);
        core.rto.restart();
        if let Some(tlp) = &mut self.tlp {
            tlp.sampled();
        }
    }

    /// Stops the timer if all data is acknowledged (RFC 6298 section 5.2).
    #[inline(always)]
    fn stop_timer_if_idle(&mut self, core: &mut Core) {
        if core.board.high() == core.board.una() {
            core.deadline = NONE;
            self.timer = Timer::Rto;
        }
    }

    /// Reports an acknowledgement to the controller.
    #[inline(always)]
    fn report_acked(&self, core: &mut Core, now: u64, newly: Newly, ack: &Ack, grows: bool) {
        if core.connected && !matches!(core.driver.controller, AnyController::Window(_)) {
            let how = (core.driver.meter.limit, self.linux.is_some());
            return core.report_acked_with_delivery(now, newly, ack, grows, how);
        }
        self.report_acked_to_law(core, now, newly, ack, grows);
    }

    #[inline(never)]
    fn report_acked_to_law(&self, core: &mut Core, now: u64, newly: Newly, ack: &Ack, grows: bool) {
        if !core.connected {
            return core.report_handshake(now, newly);
        }
        let mut limit = core.driver.meter.limit;
        if let Some(linux) = &self.linux
            && let AnyController::Window(machine) = &core.driver.controller
            && linux.usage.permits_growth(machine.window().get(), machine.in_slow_start())
        {
            limit = Limit::Window;
        }
        if core.demands.is_some() {
            let linux = self.linux.is_some();
            return core.report_acked_with_delivery(now, newly, ack, grows, (limit, linux));
        }
        let mut event = core.acked::<false>(now, newly, ack, grows);
        event.limit = limit;
        core.driver.report(now, Event::Acked(event));
    }
}

/// Whether a controller would be a `cong_control` in Linux: one that gets rate samples and is not a
/// window law.
fn has_cong_control(controller: &AnyController) -> bool {
    !matches!(controller, AnyController::Window(_)) && controller.needs().delivery_rate
}
