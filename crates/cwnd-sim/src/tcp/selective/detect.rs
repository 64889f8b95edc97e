//! Detection of losses, by RACK or by three SACKed packets, and their report.

use super::timer::Timer;
use super::{Core, Selective, State};
use crate::engine::net::Net;
use crate::tcp::prr::Delivery;
use crate::tcp::rack::{Detected, Path};
use crate::tcp::scoreboard::{DUP_THRESH, Losses};

impl Selective {
    pub(super) fn is_recovering(&self) -> bool {
        matches!(self.state, State::Recovery | State::Loss)
    }

    pub(super) fn path(&self, core: &Core) -> Path {
        Path {
            min_rtt: core.driver.meter.min_rtt,
            srtt: core.rto.srtt().unwrap_or(u64::MAX),
            in_recovery: self.is_recovering(),
        }
    }

    /// Detects losses after an acknowledgement, enters recovery and sets the timer.
    pub(super) fn detect(
        &mut self,
        core: &mut Core,
        net: &mut Net,
        now: u64,
        restarts: bool,
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
        } else if restarts && core.board.high() > una && !self.schedule_probe(core, net, now, true)
        {
            self.restart_rto(core, net, now);
        }
        found
    }

    /// Reports newly detected losses; they begin a recovery outside one. The acknowledgement
    /// delivered `delivered` packets.
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

    /// Reports lost packets. Returns whether the controller reduced its window. Linux does not
    /// reduce it again in a reduction that a mark began (`tcp_enter_recovery`): there, a
    /// transmission time before that reduction prevents a further one.
    pub(super) fn report_lost(&self, core: &mut Core, now: u64, losses: Losses) -> bool {
        let reduced = self.linux.is_some() && self.prr.is_some() && self.undo.marked;
        let sent_at = if reduced { 0 } else { losses.sent_at };
        core.report_lost(now, Losses { sent_at, ..losses })
    }

    /// RACK's reordering timer expired: packets that have not arrived are lost.
    pub(super) fn late(&mut self, core: &mut Core, net: &mut Net, now: u64) {
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
}
