//! The three uses of the sender's timer, and tail loss probes.

use super::{Core, Delivered, Selective, State};
use crate::engine::net::Net;
use crate::tcp::recovery::LossRecovery;
use crate::tcp::scoreboard::Losses;
use crate::tcp::sender::Ack;
use crate::tcp::tlp::{Answer, Probe};
use cwnd::Event;

/// For what the retransmission timer runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Timer {
    /// The retransmission timeout.
    #[default]
    Rto,
    /// RACK's reordering window.
    Reordering,
    /// A tail loss probe.
    Probe,
}

impl Selective {
    /// Section 7.4 of RFC 8985. The loss of one packet that the probe repaired reduces the window
    /// at once.
    pub(super) fn process_probe(
        &mut self,
        core: &mut Core,
        now: u64,
        ack: Ack,
        delivered: &Delivered,
    ) {
        let Some(tlp) = &mut self.tlp else { return };
        let &Delivered { newly, advanced, duplicate, .. } = delivered;
        let plain_duplicate = !advanced && !newly.changed && ack.blocks().is_empty();
        let duplicate = duplicate.is_some_and(|seq| tlp.is_probe(seq));
        let answer = Answer { number: ack.number, duplicate, plain_duplicate };
        if tlp.acknowledged(answer) == Probe::Repaired && self.state == State::Open {
            // The probe is acknowledged: no packet in flight has the state of the lost one.
            core.report_lost(now, Losses { packets: 1, newest: core.board.high(), sent_at: now });
            core.driver.report(now, Event::Recovered);
        }
    }

    /// Section 7.3 of RFC 8985: sends a new packet, or else the last one again.
    pub(super) fn probe(&mut self, core: &mut Core, net: &mut Net, now: u64) {
        if self.tlp.is_some_and(|tlp| tlp.may_probe()) {
            let high = core.board.high();
            let new = core.may_send_new();
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

    /// Sets the timer to a tail loss probe if there is nothing to recover (section 7.2). Returns
    /// false if none is due.
    pub(super) fn schedule_probe(
        &mut self,
        core: &mut Core,
        net: &mut Net,
        now: u64,
        advancing: bool,
    ) -> bool {
        let Some(tlp) = &self.tlp else { return false };
        let (una, high) = (core.board.una(), core.board.high());
        let board = &mut core.board;
        let orderly = matches!(self.state, State::Open | State::Cwr)
            && (board.is_plain()
                || board.sacked() + board.lost() == 0 && !board.any_retransmitted());
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
    pub(super) fn wait_for_late(&mut self, core: &mut Core, net: &mut Net, now: u64, timeout: u64) {
        let slack = self.linux.as_ref().map_or(0, |linux| linux.slack);
        self.set_timer(core, net, now + timeout + slack, Timer::Reordering);
    }

    /// Restarts the retransmission timeout: from now, or from the transmission of the oldest packet
    /// if the timer ran for something else (`tcp_rearm_rto`).
    pub(super) fn restart_rto(&mut self, core: &mut Core, net: &mut Net, now: u64) {
        let mut at = now + core.rto.timeout();
        if self.timer != Timer::Rto {
            let least = self.linux.as_ref().map_or(1, |linux| linux.millisecond);
            let una = core.board.una();
            at = (core.board.sent_at(una) + core.rto.timeout()).max(now + least);
        }
        self.set_timer(core, net, at, Timer::Rto);
    }

    #[inline(always)]
    fn set_timer(&mut self, core: &mut Core, net: &mut Net, at: u64, timer: Timer) {
        self.timer = timer;
        core.deadline = at;
        net.arm(core.timer as usize, at);
    }
}
