//! Loss recovery of the RFCs: RFC 6675 with selective acknowledgements, RFC 6582 (NewReno) and RFC
//! 5681 (Reno) without, RFC 6298 for timeouts, RFC 3042 for limited transmit and RFC 3522 for the
//! detection of spurious retransmissions.

use super::recovery::LossRecovery;
use super::rto::Srtt;
use super::scoreboard::{DUP_THRESH, Losses, Newly};
use super::sender::{self, Ack, FirstPacket};
use crate::clock::Clock;
use crate::engine::net::Net;
use crate::engine::schedule::NONE;
use crate::network::{Recovery, Tcp};
use cwnd::{Event, Limit};

type Core = sender::Core<Srtt>;

/// State of the RFCs' loss recovery.
#[derive(Clone, Default)]
pub(crate) struct Rfc {
    /// RFC 6675's RecoveryPoint: recovery ends when this packet is acknowledged; -1 before the
    /// first loss.
    recover: i64,
    /// Packets by which fast recovery inflates the window (RFC 5681 section 3.2, step 4).
    inflation: i64,
    /// RFC 3522's `RetransmitTS`, until the next new acknowledgement.
    retransmit_ts: Option<u32>,
    duplicates: u32,
    scheme: Recovery,
    limited_transmit: bool,
    in_recovery: bool,
    /// A timeout has retransmitted the oldest packet.
    timed_out: bool,
    /// The next partial acknowledgement is the first one of this recovery.
    first_partial: bool,
    /// The last outstanding packet was retransmitted in this recovery (rule 4 of RFC 6675's
    /// `NextSeg`).
    rescued: bool,
}

impl LossRecovery for Rfc {
    type Estimator = Srtt;

    const FIRST_PACKET: FirstPacket = FirstPacket::Data;

    fn new(tcp: &Tcp, _: Clock) -> Self {
        Rfc {
            recover: -1,
            scheme: tcp.recovery,
            limited_transmit: tcp.limited_transmit,
            ..Rfc::default()
        }
    }

    #[inline(always)]
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
        let mut newly = core.board.acked(ack.number);
        if !ack.blocks().is_empty() {
            newly = newly.and(core.board.sack(ack.blocks()));
        }
        core.next = core.next.max(ack.number);
        if newly.once {
            core.rto.sample(now, newly.sent_at);
            core.rto.restart();
        }
        if advanced && core.connected {
            self.timed_out = false;
            self.detect_spurious(core, now, ack);
        }
        let ack = core.with_marks(ack, newly);
        core.report_acked(now, newly, ack, advanced);
        if advanced && !core.connected {
            core.connect(now, self.retransmit_ts.take(), ack);
        }
        if ack.marks > 0 {
            let marked = core.marked(ack, newly, una);
            let cut = core.report_congestion(now, Event::Marked(marked));
            core.driver.meter.counters.mark_cuts += u32::from(cut);
        }
        if self.scheme == Recovery::Sack {
            self.selective(core, net, now, advanced, newly);
        } else {
            self.cumulative(core, net, now, advanced, ack.number - una);
        }
        if core.board.high() == core.board.una() {
            // All data is acknowledged (RFC 6298 section 5.2).
            core.deadline = NONE;
        }
        Some(u32::MAX)
    }

    /// RFC 6298 section 5.
    fn timeout(&mut self, core: &mut Core, net: &mut Net, now: u64) -> bool {
        if core.board.high() == core.board.una() {
            return false;
        }
        core.driver.meter.counters.timeouts += 1;
        core.rto.back_off();
        if !core.connected {
            self.retransmit_ts = core.retransmit_ts(now, self.retransmit_ts);
            self.repair(core, net, now, 0);
            return false;
        }
        self.in_recovery = false;
        self.inflation = 0;
        self.duplicates = 0;
        self.recover = i64::from(core.board.high()) - 1;
        let lost =
            if self.scheme == Recovery::Sack { core.board.mark_all_lost() } else { core.go_back() };
        core.report_timeout(now, lost, std::mem::replace(&mut self.timed_out, true));
        self.retransmit_ts = core.retransmit_ts(now, self.retransmit_ts);
        true
    }

    #[inline(always)]
    fn send(&mut self, core: &mut Core, net: &mut Net, now: u64, _burst: u32) -> Limit {
        if self.scheme == Recovery::Sack {
            self.send_selective(core, net, now)
        } else {
            self.send_cumulative(core, net, now)
        }
    }
}

impl Rfc {
    /// Eifel detection (RFC 3522): if the acknowledgement echoes a timestamp older than that of the
    /// retransmission, the retransmission was spurious and the window reduction is undone.
    #[inline(always)]
    fn detect_spurious(&mut self, core: &mut Core, now: u64, ack: Ack) {
        if let Some(stamp) = self.retransmit_ts.take()
            && ack.extra.echo < stamp
        {
            self.undo(core, now);
        }
    }

    #[cold]
    fn undo(&mut self, core: &mut Core, now: u64) {
        core.board.unmark_lost();
        core.next = core.board.high();
        self.in_recovery = false;
        // A loss of packets sent before the undo begins a recovery.
        self.recover = i64::from(core.board.una()) - 1;
        core.driver.undo(now);
    }

    /// Loss recovery with SACK (RFC 6675 section 5).
    #[inline(always)]
    fn selective(
        &mut self,
        core: &mut Core,
        net: &mut Net,
        now: u64,
        advanced: bool,
        newly: Newly,
    ) {
        if advanced {
            self.duplicates = 0;
            core.restart_timer(net, now);
        } else if newly.changed {
            self.duplicates += 1;
        }
        if core.board.sacked() == 0 && !self.in_recovery {
            return;
        }
        let una = core.board.una();
        if self.in_recovery && i64::from(una) > self.recover {
            self.in_recovery = false;
            core.board.end_recovery();
            core.driver.report(now, Event::Recovered);
        }
        let found = core.board.find_lost();
        if self.in_recovery && found.packets > 0 {
            core.report_lost(now, found);
        }
        // Losses that the end of recovery reveals begin the next one.
        let begins = found.packets > 0 || self.duplicates >= DUP_THRESH;
        if !self.in_recovery && begins && i64::from(una) > self.recover {
            let first = core.board.mark_lost_below(una + 1);
            let oldest = Losses { packets: first.packets, ..core.board.loss_of(una) };
            self.enter(core, now, found.and(oldest));
            if let Some(seq) = core.board.next_lost() {
                self.repair(core, net, now, seq);
            }
            core.restart_timer(net, now);
        }
    }

    /// Loss recovery without SACK (RFC 5681 section 3.2, RFC 6582 section 3.2).
    fn cumulative(
        &mut self,
        core: &mut Core,
        net: &mut Net,
        now: u64,
        advanced: bool,
        covered: u32,
    ) {
        let una = core.board.una();
        if !advanced {
            if core.board.high() == una {
                return;
            }
            self.duplicates += 1;
            if self.in_recovery {
                self.inflation += 1;
            } else if self.duplicates == DUP_THRESH && i64::from(una) > self.recover {
                let oldest = core.board.loss_of(una);
                self.enter(core, now, oldest);
                self.inflation = i64::from(DUP_THRESH);
                self.first_partial = true;
                self.repair(core, net, now, una);
                core.restart_timer(net, now);
            }
            return;
        }
        if self.in_recovery && self.scheme == Recovery::NewReno && i64::from(una) <= self.recover {
            // Partial acknowledgement: retransmit the first unacknowledged packet, deflate the
            // window by the packets acknowledged and add back one packet (RFC 6582 section 3.2,
            // step 3).
            self.inflation -= i64::from(covered) - 1;
            let oldest = core.board.loss_of(una);
            core.report_lost(now, oldest);
            self.repair(core, net, now, una);
            if std::mem::take(&mut self.first_partial) {
                core.restart_timer(net, now);
            }
            return;
        }
        self.duplicates = 0;
        self.inflation = 0;
        core.restart_timer(net, now);
        if std::mem::take(&mut self.in_recovery) {
            core.driver.report(now, Event::Recovered);
        }
    }

    /// Enters fast recovery after losses.
    fn enter(&mut self, core: &mut Core, now: u64, losses: Losses) {
        self.in_recovery = true;
        self.rescued = false;
        self.recover = i64::from(core.board.high()) - 1;
        core.report_lost(now, losses);
        self.retransmit_ts = core.retransmit_ts(now, self.retransmit_ts);
    }

    #[inline(always)]
    fn send_selective(&mut self, core: &mut Core, net: &mut Net, now: u64) -> Limit {
        let window = core.window();
        // Outside recovery SACKed packets permit new packets only with limited transmit (RFC 3042).
        let all = !self.limited_transmit && !self.in_recovery && core.board.lost() == 0;
        loop {
            let held_back = if all { core.board.sacked() } else { 0 };
            if f64::from(core.board.in_flight() + held_back) + 1.0 > window {
                return core.closed();
            }
            if let Some(seq) = core.board.next_lost() {
                if core.delayed(now) {
                    return Limit::Pacing;
                }
                self.repair(core, net, now, seq);
                continue;
            }
            let high = core.board.high();
            if core.may_send_new() {
                if core.delayed(now) {
                    return Limit::Pacing;
                }
                self.transmit(core, net, now, high);
                core.next = high + 1;
                continue;
            }
            if self.in_recovery
                && let Some((seq, rescues)) = core.board.further_repair(self.rescued)
            {
                if core.delayed(now) {
                    return Limit::Pacing;
                }
                self.rescued |= rescues;
                self.repair(core, net, now, seq);
                continue;
            }
            return if high < core.total { Limit::Receiver } else { Limit::Application };
        }
    }

    fn send_cumulative(&mut self, core: &mut Core, net: &mut Net, now: u64) -> Limit {
        let extra = if self.in_recovery {
            self.inflation as f64
        } else if self.limited_transmit && self.duplicates < DUP_THRESH {
            f64::from(self.duplicates)
        } else {
            0.0
        };
        let window = core.window() + extra;
        loop {
            let outstanding = core.next - core.board.una();
            if f64::from(outstanding) + 1.0 > window {
                return core.closed();
            }
            if core.next >= core.total {
                return Limit::Application;
            }
            if outstanding >= core.receiver_window {
                return Limit::Receiver;
            }
            if core.delayed(now) {
                return Limit::Pacing;
            }
            let seq = core.next;
            core.next += 1;
            self.transmit(core, net, now, seq);
        }
    }
}
