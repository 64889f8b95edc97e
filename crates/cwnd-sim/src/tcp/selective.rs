//! Loss recovery with selective acknowledgements whose parts can be switched on one by one: loss detection by RACK (RFC 8985) or by three
//! SACKed packets (RFC 6675), tail loss probes (RFC 8985), and the window reduction of PRR (RFC 9937). The order of operations is that of
//! Linux (`tcp_ack` in net/ipv4/tcp_input.c).

use super::prr::{Delivery, Prr};
use super::rack::{Detected, Path, Rack};
use super::recovery::LossRecovery;
use super::rto::AnySrtt;
use super::scoreboard::{Covered, DUP_THRESH, Losses, Newly};
use super::sender::{self, Ack, FirstPacket};
use super::tlp::{Answer, Probe, Tlp};
use super::tso::{Opportunity, Pace, Tso};
use crate::cast::whole32;
use crate::engine::clock::Clock;
use crate::engine::net::Net;
use crate::engine::schedule::NONE;
use crate::network::{Conventions, Tcp};
use cwnd::{AnyController, Controller, Event, Limit, Marked, Packets, Time, WindowLaw};

type Core = sender::Core<AnySrtt>;

const MS: u64 = 1_000_000;
/// Linux's `TCP_TIMEOUT_MIN_US`: the least timeout of a timer for packets that are late.
const LINUX_TIMEOUT_MIN: u64 = 2 * MS;
/// RFC 8985 section 7.2 with RFC 6298's initial timeout.
const INITIAL_PTO: u64 = 1000 * MS;
/// The delay of acknowledgements that a probe allows for: the longest of common receivers, and Linux's minimum timeout.
const MAX_ACK_DELAY: u64 = 200 * MS;

/// The states of Linux's congestion control. In Linux, a sender in `Open` with SACKed packets is in `Disorder`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    /// The window is reduced because of a mark.
    Cwr,
    /// Fast recovery.
    Recovery,
    /// Recovery after a timeout.
    Loss,
}

/// The progress of F-RTO (RFC 5682 section 3.1) after a timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Frto {
    /// Not in progress: the recovery is the conventional one.
    Off,
    /// Step 2: the retransmission has not been acknowledged. In Linux also step 3, and each step may prove that the timeout was spurious.
    Retransmitted,
    /// Step 3: the next acknowledgement decides. As many new packets may still be sent, and no lost ones.
    NewData(u32),
}

/// The new packets of F-RTO's step 2b.
const FRTO_NEW: u32 = 2;
/// The largest windows in packets after steps 2a and 3a.
const FRTO_ACKNOWLEDGED: f64 = 2.0;
const FRTO_LOST: f64 = 3.0;

/// What an acknowledgement delivered.
struct Delivered {
    newly: Newly,
    /// Whether it has the original transmission of a packet below `high_seq`.
    original: bool,
    /// Whether packets were newly SACKed.
    sacked: bool,
}

/// For what the retransmission timer runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Timer {
    /// The retransmission timeout.
    Rto,
    /// RACK's reordering window.
    Reordering,
    /// A tail loss probe.
    Probe,
}

/// State of the loss recovery.
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
    /// Linux's `undo_retrans`: retransmissions of this recovery less duplicates reported; `None` if it was undone.
    undo_retrans: Option<u32>,
    uses_dsack: bool,
    frto: Frto,
    uses_frto: bool,
    /// F-RTO was applied to the last timeout.
    frto_applied: bool,
    /// Linux: new packets go first, to find out whether the timeout was spurious (RFC 5682 section 3.1, step 2).
    new_first: bool,
    /// A mark was reported since the recovery began, or before it in the same reduction: the reduction is not undone (`prior_ssthresh` of
    /// 0 in Linux).
    marked: bool,
    /// RFC 3522's `RetransmitTS`, until the next new acknowledgement.
    retransmit_ts: Option<u32>,
    rack: Option<Box<Rack>>,
    tlp: Option<Tlp>,
    /// The current reduction by PRR.
    prr: Option<Prr>,
    uses_prr: bool,
    limited_transmit: bool,
    /// The last outstanding packet was retransmitted in this recovery (rule 4 of RFC 6675's `NextSeg`).
    rescued: bool,
    linux: Option<Box<Linux>>,
}

/// Rules and state that only Linux has.
struct Linux {
    /// Added to the timeout of the reordering window, and the least time to a timer.
    slack: u64,
    millisecond: u64,
    usage: WindowUsage,
    tso: Tso,
    /// Time of the last transmission.
    sent_at: u64,
}

/// How much of the window the sender uses (`tcp_cwnd_validate` in net/ipv4/tcp_output.c).
#[derive(Default)]
struct WindowUsage {
    /// The window limited the sender in this round.
    limited: bool,
    /// The most packets outstanding in this round.
    max_packets_out: u32,
    /// The round ends when this packet is acknowledged.
    round_end: u32,
}

impl WindowUsage {
    fn validate(&mut self, una: u32, high: u32, limited: bool) {
        let outstanding = high - una;
        if una >= self.round_end || limited || !self.limited && outstanding > self.max_packets_out {
            self.limited = limited;
            self.max_packets_out = outstanding;
            self.round_end = high;
        }
    }

    /// Whether the window may grow (`tcp_is_cwnd_limited`): in slow start if more than half of it was used.
    fn permits_growth(&self, window: f64, slow_start: bool) -> bool {
        self.limited || slow_start && window < 2.0 * f64::from(self.max_packets_out)
    }
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
            high_seq: 0,
            duplicates: 0,
            state: State::Open,
            timer: Timer::Rto,
            timed_out: 0,
            retransmits: 0,
            undo_retrans: None,
            uses_dsack: parts.dsack,
            frto: Frto::Off,
            uses_frto: parts.frto,
            frto_applied: false,
            new_first: false,
            marked: false,
            retransmit_ts: None,
            rack: parts.rack.then(Box::default),
            tlp: parts.tlp.then(tlp),
            prr: None,
            uses_prr: parts.prr,
            limited_transmit: tcp.limited_transmit,
            rescued: false,
            linux: linux.then(|| {
                Box::new(Linux {
                    slack,
                    millisecond: clock.ticks(MS),
                    usage: WindowUsage::default(),
                    tso: Tso::new(clock, tcp.packet),
                    sent_at: 0,
                })
            }),
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
        let advanced = ack.number > una;
        let delivered = self.deliver(core, now, ack);
        let newly = delivered.newly;
        let ack = core.with_marks(ack, newly);
        let duplicate = self.uses_dsack.then(|| duplicate(ack)).flatten();
        core.next = core.next.max(ack.number);
        if advanced {
            self.retransmits = 0;
            self.duplicates = 0;
        } else if newly.changed {
            self.duplicates += 1;
        }
        self.process_probe(core, now, ack, advanced, newly, duplicate);
        if advanced && core.connected {
            self.detect_spurious(core, now, ack);
        }
        self.process_duplicate(core, now, duplicate);
        let most = self.process_loss(core, now, ack, advanced, duplicate.is_some(), &delivered);
        // PRR alone sets the window during its reduction.
        self.report_acked(core, now, newly, ack, advanced && self.prr.is_none());
        if let Some(window) = most
            && matches!(core.driver.controller, AnyController::Window(_))
        {
            core.driver.report(now, Event::Reduced { window: Packets::new(window), idle: false });
        }
        if advanced && !core.connected {
            core.connect(now, self.retransmit_ts.take(), ack);
        }
        let ended = self.leave_states(core, now);
        let found = self.detect(core, net, now, advanced, newly.packets);
        if ended && self.state != State::Recovery {
            core.driver.report(now, Event::Recovered);
        }
        self.mark(core, now, ack, newly, una);
        if let Some(prr) = &mut self.prr {
            let safe = advanced && found.losses.packets == 0;
            let in_flight = core.board.in_flight();
            prr.acknowledged(Delivery { delivered: newly.packets, in_flight, safe });
        }
        if core.board.high() == core.board.una() {
            // All data is acknowledged (RFC 6298 section 5.2).
            core.deadline = NONE;
            self.timer = Timer::Rto;
        }
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
        let awaits_new = matches!(self.frto, Frto::NewData(_))
            && core.board.high() <= self.high_seq
            && limit != Limit::Pacing;
        if std::mem::take(&mut self.new_first) && core.board.high() == before || awaits_new {
            // No new packet could be sent: the lost ones are retransmitted.
            self.frto = Frto::Off;
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

    /// In Linux the window is halved for each retransmission timeout of the idle period, down to the initial one, but not that of a
    /// controller with `cong_control` (`tcp_slow_start_after_idle_check`, `tcp_cwnd_restart`).
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
        if seq < core.board.high() {
            self.undo_retrans = self.undo_retrans.map(|sent| sent + 1);
        }
        core.transmit(net, now, seq);
        if let Some(linux) = &mut self.linux {
            linux.sent_at = now;
        }
        if let Some(rack) = &mut self.rack {
            rack.sent(now, seq);
        }
        if let Some(prr) = &mut self.prr {
            prr.sent();
        }
    }
}

impl Selective {
    /// Updates the scoreboard, RACK and the timeout's estimator.
    fn deliver(&mut self, core: &mut Core, now: u64, ack: Ack) -> Delivered {
        let (min_rtt, stamps) = (core.driver.min_rtt, core.stamps);
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
            let echoes = stamps.is_none_or(|granularity| {
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
        let newly = cumulative.and(selective);
        let sampled = if self.linux.is_some() {
            // `tcp_ack_update_rtt`: with timestamps a retransmitted packet gives a sample too.
            let echoed = || {
                let sent_at = u64::from(ack.extra.echo) * stamps?.get();
                (again && sent_at < now).then_some(sent_at)
            };
            first.filter(|_| !again).or(first_sacked).or_else(echoed)
        } else {
            newly.once.then_some(newly.sent_at)
        };
        if let Some(sent_at) = sampled {
            core.rto.sample(now, sent_at);
            core.rto.restart();
            if let Some(tlp) = &mut self.tlp {
                tlp.sampled();
            }
        }
        Delivered { newly, original, sacked: selective.changed }
    }

    /// Reports an acknowledgement to the controller.
    fn report_acked(&self, core: &mut Core, now: u64, newly: Newly, ack: Ack, grows: bool) {
        if !core.connected {
            return core.report_handshake(now, newly);
        }
        let mut event = core.acked(now, newly, ack, grows);
        if let Some(linux) = &self.linux
            && let AnyController::Window(machine) = &core.driver.controller
            && linux.usage.permits_growth(machine.window().get(), machine.in_slow_start())
        {
            event.limit = Limit::Window;
        }
        if core.demands.is_some() {
            event.delivery = core.delivery_sample(now, newly.packets, newly.newest);
            if self.linux.is_some() && has_cong_control(&core.driver.controller) {
                event.departure = core.departure().map(|at| core.driver.clock.time(at));
            }
        }
        core.driver.report(now, Event::Acked(event));
    }

    /// Section 7.4 of RFC 8985. The loss of one packet that the probe repaired reduces the window at once.
    fn process_probe(
        &mut self,
        core: &mut Core,
        now: u64,
        ack: Ack,
        advanced: bool,
        newly: Newly,
        duplicate: Option<u32>,
    ) {
        let Some(tlp) = &mut self.tlp else { return };
        let plain_duplicate = !advanced && !newly.changed && ack.blocks().is_empty();
        let duplicate = duplicate.is_some_and(|seq| tlp.is_probe(seq));
        let answer = Answer { number: ack.number, duplicate, plain_duplicate };
        if tlp.acknowledged(answer) == Probe::Repaired && self.state == State::Open {
            // The probe is acknowledged: no packet in flight has the state of the lost one.
            core.report_lost(now, Losses { packets: 1, newest: core.board.high(), sent_at: now });
            core.driver.report(now, Event::Recovered);
        }
    }

    /// Eifel detection (RFC 3522): if the acknowledgement echoes a timestamp older than that of the retransmission, the
    /// retransmission was spurious and the window reduction is undone. In Linux the delayed packet is one that was reordered
    /// (`tcp_try_undo_partial`).
    fn detect_spurious(&mut self, core: &mut Core, now: u64, ack: Ack) {
        if let Some(stamp) = self.retransmit_ts.take()
            && ack.extra.echo < stamp
        {
            if self.linux.is_some()
                && self.state == State::Recovery
                && core.board.una() < self.high_seq
                && let Some(rack) = &mut self.rack
            {
                rack.reordered();
            }
            self.undo(core, now, true);
        }
    }

    /// A duplicate was reported: if all retransmissions of the recovery were duplicates, it was spurious (`tcp_try_undo_dsack`).
    fn process_duplicate(&mut self, core: &mut Core, now: u64, duplicate: Option<u32>) {
        let Some(seq) = duplicate else { return };
        if self.tlp.is_some_and(|tlp| tlp.is_probe(seq)) {
            return;
        }
        let (una, high) = (core.board.una(), core.board.high());
        // Linux disregards duplicates before reordering is seen (`tcp_dsack_seen`).
        if let Some(rack) = &mut self.rack
            && (self.linux.is_none() || rack.reordering_seen())
        {
            rack.duplicate_reported(una, high);
        }
        if let Some(left @ 1..) = self.undo_retrans {
            self.undo_retrans = Some(left - 1);
            if left == 1 {
                self.undo(core, now, self.state == State::Loss);
            }
        }
    }

    /// F-RTO with SACK (RFC 5682 section 3.1): after a timeout, new packets show whether the packets presumed lost still arrive. Returns the
    /// largest window in packets, if there is one.
    fn process_loss(
        &mut self,
        core: &mut Core,
        now: u64,
        ack: Ack,
        advanced: bool,
        duplicate: bool,
        delivered: &Delivered,
    ) -> Option<f64> {
        self.new_first = false;
        if self.frto == Frto::Off || self.state != State::Loss {
            return None;
        }
        let (una, high) = (core.board.una(), core.board.high());
        let sendable = high < core.total && high - una < core.receiver_window;
        if self.linux.is_some() {
            self.process_loss_linux(core, now, advanced, duplicate, delivered, sendable);
            return None;
        }
        match self.frto {
            // Step 2: duplicate acknowledgements change the scoreboard only.
            Frto::Retransmitted if advanced => {
                self.high_seq = high;
                let decides = una < high && sendable;
                self.frto = if decides { Frto::NewData(FRTO_NEW) } else { Frto::Off };
                (una >= high).then_some(FRTO_ACKNOWLEDGED)
            }
            Frto::NewData(_) => {
                let new =
                    una > self.high_seq || ack.blocks().iter().any(|&(_, end)| end > self.high_seq);
                if delivered.original && !new {
                    self.undo(core, now, true);
                    return None;
                }
                self.frto = Frto::Off;
                Some(FRTO_LOST)
            }
            _ => None,
        }
    }

    /// F-RTO in Linux (`tcp_process_loss`): the delivery of an original transmission proves at each step that the timeout was spurious.
    fn process_loss_linux(
        &mut self,
        core: &mut Core,
        now: u64,
        advanced: bool,
        duplicate: bool,
        delivered: &Delivered,
        sendable: bool,
    ) {
        let (una, high) = (core.board.una(), core.board.high());
        if delivered.original {
            self.undo(core, now, true);
        } else if high > self.high_seq {
            // The acknowledgement of the new packets SACKs them: the packets below are lost.
            if delivered.sacked || !advanced && !duplicate {
                self.frto = Frto::Off;
            }
        } else if advanced && una < self.high_seq {
            self.high_seq = high;
            self.new_first = sendable;
            if !sendable {
                self.frto = Frto::Off;
            }
        }
    }

    /// Reverts the last reduction, unless it is due to a mark too. `unmark`: the packets presumed lost are in flight.
    fn undo(&mut self, core: &mut Core, now: u64, unmark: bool) {
        if unmark {
            core.board.unmark_lost();
            if let Some(rack) = &mut self.rack {
                rack.restart(&mut core.board);
            }
        }
        self.undo_retrans = None;
        self.retransmit_ts = None;
        self.frto = Frto::Off;
        self.state = State::Open;
        self.prr = None;
        if std::mem::take(&mut self.marked) {
            core.driver.report(now, Event::Recovered);
        } else {
            core.driver.undo(now);
        }
    }

    /// Ends recoveries and reductions whose packets are acknowledged. Returns whether the controller does not know of the end yet.
    ///
    /// Linux calls a controller with rate samples (`cong_control`) after `tcp_fastretrans_alert`. Such a controller sees neither the end
    /// nor the beginning of a recovery if the same acknowledgement begins the next one.
    fn leave_states(&mut self, core: &mut Core, now: u64) -> bool {
        let una = core.board.una();
        let over = match self.state {
            State::Open => false,
            State::Cwr => una > self.high_seq,
            State::Recovery | State::Loss => una >= self.high_seq,
        };
        if !over {
            return false;
        }
        if self.state != State::Cwr
            && let Some(rack) = &mut self.rack
        {
            rack.recovered();
        }
        let mut waits = false;
        if self.state == State::Recovery {
            core.board.end_recovery();
            waits = self.linux.is_some() && has_cong_control(&core.driver.controller);
            if !waits {
                core.driver.report(now, Event::Recovered);
            }
        }
        self.state = State::Open;
        self.prr = None;
        waits
    }

    fn path(&self, core: &Core) -> Path {
        Path {
            min_rtt: core.driver.min_rtt,
            srtt: core.rto.srtt().unwrap_or(u64::MAX),
            in_recovery: self.is_recovering(),
        }
    }

    /// Detects losses after an acknowledgement, enters recovery and sets the timer.
    fn detect(
        &mut self,
        core: &mut Core,
        net: &mut Net,
        now: u64,
        advanced: bool,
        delivered: u32,
    ) -> Detected {
        let path = self.path(core);
        let una = core.board.una();
        let found = match &mut self.rack {
            Some(rack) if rack.advanced() => rack.detect_loss(&mut core.board, now, path),
            Some(_) => Detected::default(),
            None if core.board.sacked() == 0 => Detected::default(),
            None => {
                let mut losses = core.board.find_lost();
                if losses.packets == 0 && self.state == State::Open && self.duplicates >= DUP_THRESH
                {
                    losses = core.board.mark_lost_below(una + 1);
                }
                Detected { losses, timeout: 0 }
            }
        };
        self.losses(core, net, now, found.losses, delivered);
        if found.timeout > 0 {
            self.wait_for_late(core, net, now, found.timeout);
        } else if advanced && core.board.high() > una && !self.schedule_probe(core, net, now, true)
        {
            self.restart_rto(core, net, now);
        }
        found
    }

    /// Reports newly detected losses; they begin a recovery outside one. The acknowledgement delivered `delivered` packets.
    fn losses(&mut self, core: &mut Core, net: &mut Net, now: u64, found: Losses, delivered: u32) {
        let una = core.board.una();
        match self.state {
            // Packets that were sent and lost in a recovery, and reported then, begin the next one.
            State::Open | State::Cwr if found.packets > 0 || core.board.lost() > 0 => {
                let reported = Losses { packets: 0, ..core.board.loss_of(una) };
                let losses = if found.packets > 0 { found } else { reported };
                self.enter(core, net, now, losses, delivered);
            }
            // A retransmission after the timeout was lost too.
            State::Loss if found.packets > 0 && found.sent_at >= self.timed_out => {
                self.enter(core, net, now, found, delivered);
            }
            State::Recovery | State::Loss if found.packets > 0 => {
                let prior = self.prior_window(core, delivered);
                if self.report_lost(core, now, found) && self.prr.is_some() {
                    self.begin_reduction(core, prior);
                }
            }
            _ => {}
        }
    }

    /// Reports lost packets. Returns whether the controller reduced its window. Linux does not reduce it again in a reduction that a mark
    /// began (`tcp_enter_recovery`): there, a transmission time before that reduction prevents a further one.
    fn report_lost(&self, core: &mut Core, now: u64, losses: Losses) -> bool {
        let reduced = self.linux.is_some() && self.prr.is_some() && self.marked;
        let sent_at = if reduced { 0 } else { losses.sent_at };
        core.report_lost(now, Losses { sent_at, ..losses })
    }

    /// Enters fast recovery.
    fn enter(&mut self, core: &mut Core, net: &mut Net, now: u64, losses: Losses, delivered: u32) {
        let reduces = self.state != State::Cwr;
        self.undo_retrans = Some(0);
        let prior = self.prior_window(core, delivered);
        self.state = State::Recovery;
        self.rescued = false;
        self.frto = Frto::Off;
        self.marked = !reduces;
        if reduces || self.linux.is_none() {
            self.high_seq = core.board.high();
        }
        if let Some(tlp) = &mut self.tlp {
            tlp.forget();
        }
        let cut = self.report_lost(core, now, losses);
        self.retransmit_ts = core.retransmit_ts(now, self.retransmit_ts);
        // A further reduction by the controller begins PRR anew (RFC 9937 section 6.1).
        if reduces || cut {
            self.begin_reduction(core, prior);
        }
        if self.prr.is_none()
            && let Some(seq) = core.board.next_lost()
        {
            self.repair(core, net, now, seq);
            core.restart_timer(net, now);
            self.timer = Timer::Rto;
        }
    }

    /// The window from which PRR reduces: Linux's `prior_cwnd`, or `RecoverFS` (RFC 9937 section 6.1), the packets outstanding and not
    /// SACKed before the acknowledgement that delivered `delivered` packets. Packets that it acknowledges cumulatively, and that were SACKed
    /// before, do not count: they are not delivered during the reduction.
    fn prior_window(&self, core: &Core, delivered: u32) -> u32 {
        if self.linux.is_some() {
            whole32(core.window())
        } else {
            core.board.high() - core.board.una() - core.board.sacked() + delivered
        }
    }

    /// Begins PRR's reduction to the controller's window from `prior`. A controller that is not a window law, or whose window grows after
    /// a mark, sets its window itself.
    fn begin_reduction(&mut self, core: &Core, prior: u32) {
        let law = matches!(core.driver.controller, AnyController::Window(_));
        let applies = self.uses_prr && law && !grows_after_mark(core);
        self.prr = applies.then(|| Prr::new(whole32(core.window()), prior));
    }

    /// Handles marks; `una` is the oldest packet that was unacknowledged before. PRR is a part of fast recovery (RFC 9937): a mark reduces the
    /// window at once. In Linux the reduction takes a round with PRR, in which further marks change nothing (`tcp_enter_cwr`).
    fn mark(&mut self, core: &mut Core, now: u64, ack: Ack, newly: Newly, una: u32) {
        if ack.marks == 0 {
            return;
        }
        self.marked |= self.state != State::Open;
        let smooths = self.uses_prr && self.linux.is_some() && !grows_after_mark(core);
        if smooths && self.state != State::Open {
            if !ack.echo {
                // Controllers that count marks get all. Linux makes no further reduction before this one ends, not even for marks of
                // packets sent after it began, which `Core::marked` reports as new: a transmission time before the reduction prevents one.
                let marked = Marked::new(ack.marks, Time::ZERO, core.driver.packets_sent);
                core.driver.report(now, Event::Marked(marked));
            }
            return;
        }
        let prior = self.prior_window(core, newly.packets);
        let marked = core.marked(ack, newly, una);
        let cut = core.report_congestion(now, Event::Marked(marked));
        core.driver.counters.mark_cuts += u32::from(cut);
        if cut && smooths {
            self.undo_retrans = None;
            self.marked = true;
            self.state = State::Cwr;
            self.high_seq = core.board.high();
            self.begin_reduction(core, prior);
        }
    }

    /// RACK's reordering timer expired: packets that have not arrived are lost.
    fn late(&mut self, core: &mut Core, net: &mut Net, now: u64) {
        let path = self.path(core);
        let Some(rack) = &mut self.rack else { return };
        let found = rack.detect_loss(&mut core.board, now, path);
        let before = self.state;
        self.losses(core, net, now, found.losses, 0);
        if before != self.state
            && let Some(prr) = &mut self.prr
        {
            // `tcp_rack_reo_timeout`: without an acknowledgement, one packet counts as delivered.
            let in_flight = core.board.in_flight();
            prr.acknowledged(Delivery { delivered: 1, in_flight, safe: false });
        }
        if found.timeout > 0 {
            self.wait_for_late(core, net, now, found.timeout);
        } else {
            self.timer = Timer::Reordering;
            self.restart_rto(core, net, now);
        }
    }

    /// RFC 6298 section 5, and section 6.3 of RFC 8985.
    fn retransmission_timeout(&mut self, core: &mut Core, net: &mut Net, now: u64) -> bool {
        core.driver.counters.timeouts += 1;
        core.rto.back_off();
        if !core.connected {
            self.retransmit_ts = core.retransmit_ts(now, self.retransmit_ts);
            self.repair(core, net, now, 0);
            return false;
        }
        // Linux keeps the threshold if the packets were lost before the last reduction (`tcp_enter_loss`).
        let reduced = match self.state {
            State::Open => false,
            State::Cwr => self.linux.is_some(),
            State::Recovery => true,
            State::Loss => self.retransmits > 0,
        };
        let again = reduced && self.high_seq > core.board.una();
        // RFC 5681 section 3.1 keeps the threshold in fewer cases than Linux.
        let keeps = if self.linux.is_some() { again } else { self.retransmits > 0 };
        // RFC 5682 section 3.1, step 1: F-RTO does not apply to a timeout in a recovery, unless it is another one of the same packet and F-RTO
        // applied to the one before. Linux does not require the latter.
        let repeats = self.retransmits > 0 && (self.frto_applied || self.linux.is_some());
        self.frto_applied = self.uses_frto && (!self.is_recovering() || repeats);
        self.frto = if self.frto_applied { Frto::Retransmitted } else { Frto::Off };
        if !again {
            self.undo_retrans = Some(0);
            self.marked = false;
        }
        self.new_first = false;
        self.retransmits += 1;
        self.duplicates = 0;
        self.prr = None;
        self.state = State::Loss;
        self.high_seq = core.board.high();
        self.timed_out = now;
        if let Some(tlp) = &mut self.tlp {
            tlp.forget();
        }
        let lost = match &mut self.rack {
            Some(rack) => rack.mark_losses_on_rto(&mut core.board, now),
            None => core.board.mark_all_lost(),
        };
        core.report_timeout(now, lost, keeps);
        self.retransmit_ts = core.retransmit_ts(now, self.retransmit_ts);
        if core.board.in_flight() > 0
            && let Some(seq) = core.board.next_lost()
        {
            // The window has no room for the oldest packet beside those that are not lost.
            self.repair(core, net, now, seq);
        }
        true
    }

    /// Section 7.3 of RFC 8985: sends a new packet, or else the last one again.
    fn probe(&mut self, core: &mut Core, net: &mut Net, now: u64) {
        if self.tlp.is_some_and(|tlp| tlp.may_probe()) {
            let high = core.board.high();
            let room = high - core.board.una() < core.receiver_window;
            let new = high < core.total && room;
            if new {
                core.next = high + 1;
            }
            self.repair(core, net, now, if new { high } else { high - 1 });
            if let Some(tlp) = &mut self.tlp {
                tlp.probed(core.board.high(), !new);
            }
        }
        core.restart_timer(net, now);
    }

    /// Sets the timer to a tail loss probe if there is nothing to recover (section 7.2). Returns false if none is due.
    fn schedule_probe(
        &mut self,
        core: &mut Core,
        net: &mut Net,
        now: u64,
        advancing: bool,
    ) -> bool {
        let Some(tlp) = &self.tlp else { return false };
        let (una, high) = (core.board.una(), core.board.high());
        let orderly = matches!(self.state, State::Open | State::Cwr)
            && core.board.sacked() + core.board.lost() == 0
            && !core.board.any_retransmitted();
        if !orderly || high == una || !core.connected {
            return false;
        }
        let pto = now + tlp.pto(core.rto.srtt(), high - una);
        let rto = if advancing { now } else { core.board.sent_at(una) } + core.rto.timeout();
        let at = if rto > now { pto.min(rto) } else { pto };
        self.set_timer(core, net, at, Timer::Probe);
        true
    }

    /// Sets the timer to the time after which packets are late.
    fn wait_for_late(&mut self, core: &mut Core, net: &mut Net, now: u64, timeout: u64) {
        let slack = self.linux.as_ref().map_or(0, |linux| linux.slack);
        self.set_timer(core, net, now + timeout + slack, Timer::Reordering);
    }

    /// Restarts the retransmission timeout: from now, or from the transmission of the oldest packet if the timer ran for something else
    /// (`tcp_rearm_rto`).
    fn restart_rto(&mut self, core: &mut Core, net: &mut Net, now: u64) {
        let mut at = now + core.rto.timeout();
        if self.timer != Timer::Rto {
            let least = self.linux.as_ref().map_or(1, |linux| linux.millisecond);
            let una = core.board.una();
            at = (core.board.sent_at(una) + core.rto.timeout()).max(now + least);
        }
        self.set_timer(core, net, at, Timer::Rto);
    }

    fn set_timer(&mut self, core: &mut Core, net: &mut Net, at: u64, timer: Timer) {
        self.timer = timer;
        core.deadline = at;
        net.arm(core.timer as usize, at);
    }

    /// Sends as many packets as the window allows: retransmissions first.
    fn send_packets(&mut self, core: &mut Core, net: &mut Net, now: u64) -> Limit {
        // Outside recovery SACKed packets permit new packets only with limited transmit (RFC 3042).
        let all = !self.limited_transmit && self.state == State::Open && core.board.lost() == 0;
        let window = match &self.prr {
            Some(prr) => prr.window(),
            None => core.window(),
        };
        let new_first = self.new_first;
        loop {
            let new_left = match self.frto {
                Frto::NewData(left) if self.state == State::Loss => Some(left),
                _ => None,
            };
            if new_left == Some(0) {
                return Limit::Window;
            }
            let held_back = if all { core.board.sacked() } else { 0 };
            if f64::from(core.board.in_flight() + held_back) + 1.0 > window {
                return core.closed();
            }
            let lost = if new_first || new_left.is_some() { None } else { core.board.next_lost() };
            if let Some(seq) = lost {
                if core.delayed(now) {
                    return Limit::Pacing;
                }
                self.retransmit(core, net, now, seq, window);
                if seq == core.board.una() && self.timer != Timer::Reordering {
                    core.restart_timer(net, now);
                    self.timer = Timer::Rto;
                }
                continue;
            }
            let high = core.board.high();
            let room = high - core.board.una() < core.receiver_window;
            if high < core.total && room {
                if core.delayed(now) {
                    return Limit::Pacing;
                }
                let Some(burst) = self.burst(core, now, window) else { return Limit::Window };
                let due = core.departure();
                let end = high + burst;
                let pushes = self.linux.is_some() && (burst > 1 || end == core.total);
                for seq in high..end {
                    if pushes && seq + 1 == end {
                        core.push();
                    }
                    self.transmit(core, net, now, seq);
                    core.next = seq + 1;
                }
                self.segment_sent(core, now, due);
                if let Some(left) = new_left {
                    self.frto = Frto::NewData(left - 1);
                }
                continue;
            }
            if self.rack.is_none()
                && self.state == State::Recovery
                && let Some((seq, rescues)) = self.further_repair(core)
            {
                if core.delayed(now) {
                    return Limit::Pacing;
                }
                self.rescued |= rescues;
                let due = core.departure();
                self.repair(core, net, now, seq);
                self.segment_sent(core, now, due);
                continue;
            }
            return if high < core.total { Limit::Receiver } else { Limit::Application };
        }
    }

    /// Retransmits packet `seq`. A paced sender of Linux also retransmits the lost packets that follow it, as many as a segment has, if
    /// they were sent with it: they are the same segment (`tcp_xmit_retransmit_queue`).
    fn retransmit(&mut self, core: &mut Core, net: &mut Net, now: u64, seq: u32, window: f64) {
        let due = core.departure();
        let most = self.retransmitted_segment(core, now, window);
        let sent_at = core.board.sent_at(seq);
        self.repair(core, net, now, seq);
        for next in seq + 1..seq.saturating_add(most) {
            let room = f64::from(core.board.in_flight()) + 1.0 <= window;
            if !room || core.board.next_lost() != Some(next) || core.board.sent_at(next) != sent_at
            {
                break;
            }
            self.repair(core, net, now, next);
        }
        self.segment_sent(core, now, due);
    }

    /// Completes the pacing of a segment that was due at `due`.
    fn segment_sent(&self, core: &mut Core, now: u64, due: Option<u64>) {
        if self.linux.is_some()
            && let Some(due) = due
        {
            core.segment_sent(now, due);
        }
    }

    /// Returns how many packets to retransmit at once.
    fn retransmitted_segment(&self, core: &mut Core, now: u64, window: f64) -> u32 {
        let (Some(linux), Some(pace)) = (&self.linux, pace(core)) else { return 1 };
        linux.tso.segment(self.opportunity(core, linux, now, window, pace))
    }

    /// Returns how many new packets to send at once; `None` if Linux's sender waits for a larger segment.
    fn burst(&self, core: &mut Core, now: u64, window: f64) -> Option<u32> {
        let Some(linux) = &self.linux else { return Some(1) };
        let pace = match (pace(core), &core.driver.controller) {
            (Some(pace), _) => pace,
            (None, AnyController::Window(machine)) if !self.is_recovering() => Pace::Window {
                slow_start: f64::from(whole32(window)) < machine.ssthresh().get() / 2.0,
            },
            // Not paced: further packets follow at once.
            _ => return Some(1),
        };
        let left = core.total - core.board.high();
        linux.tso.burst(self.opportunity(core, linux, now, window, pace), left)
    }

    fn opportunity(
        &self,
        core: &mut Core,
        linux: &Linux,
        now: u64,
        window: f64,
        pace: Pace,
    ) -> Opportunity {
        let (una, high) = (core.board.una(), core.board.high());
        let (window, outstanding) = (whole32(window), high - una);
        let permitted = core.receiver_window.saturating_sub(outstanding).min(core.total - high);
        let departure = if matches!(pace, Pace::Window { .. }) { None } else { core.departure() };
        Opportunity {
            now,
            sent_at: departure.unwrap_or(linux.sent_at),
            oldest: (high > una).then(|| core.board.sent_at(una)),
            srtt: core.rto.srtt(),
            min_rtt: core.driver.min_rtt,
            window,
            pace,
            recovering: self.is_recovering(),
            outstanding,
            room: window.saturating_sub(core.board.in_flight()).min(permitted),
        }
    }

    fn is_recovering(&self) -> bool {
        matches!(self.state, State::Recovery | State::Loss)
    }

    /// Rules 3 and 4 of RFC 6675's `NextSeg`, where RACK does not detect lost retransmissions: a hole not yet presumed lost, or the last
    /// outstanding packet, once per recovery. Also returns whether it is the latter.
    fn further_repair(&self, core: &mut Core) -> Option<(u32, bool)> {
        if let Some(seq) = core.board.next_hole() {
            return Some((seq, false));
        }
        let last = core.board.high().checked_sub(1).filter(|&last| last >= core.board.una())?;
        (!self.rescued && last >= core.board.highest_sacked()).then_some((last, true))
    }
}

/// Whether a controller would be a `cong_control` in Linux: one that gets rate samples and is not a window law.
fn has_cong_control(controller: &AnyController) -> bool {
    !matches!(controller, AnyController::Window(_)) && controller.needs().delivery_rate
}

/// The controller's pacing rate, if it has one.
fn pace(core: &Core) -> Option<Pace> {
    core.demands.as_ref()?;
    let rate = core.driver.output().pace?.as_per_sec();
    let law = matches!(core.driver.controller, AnyController::Window(_));
    Some(if law { Pace::Law(rate) } else { Pace::Controller(rate) })
}

/// The packet whose duplicate the receiver reports (RFC 2883 section 4): the first block is below the acknowledgement, or within the
/// second one.
fn duplicate(ack: Ack) -> Option<u32> {
    let &(start, end) = ack.blocks().first()?;
    let within = ack.blocks().get(1).is_some_and(|&(first, last)| first <= start && end <= last);
    (end <= ack.number || within).then_some(start)
}
/// Whether the controller is a window law that grows in the round after a mark too.
fn grows_after_mark(core: &Core) -> bool {
    matches!(&core.driver.controller, AnyController::Window(machine) if machine.law().grows_after_mark())
}
