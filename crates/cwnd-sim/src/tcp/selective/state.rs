//! The states of the sender: their beginning by a loss, a timeout or a mark, their window
//! reduction, and their end.

use super::timer::Timer;
use super::{Core, Selective, has_cong_control};
use crate::cast::whole32;
use crate::engine::net::Net;
use crate::tcp::prr::Prr;
use crate::tcp::recovery::LossRecovery;
use crate::tcp::scoreboard::{Losses, Newly};
use crate::tcp::sender::Ack;
use cwnd::{AnyController, Event, Marked, Time, WindowLaw};

/// The states of Linux's congestion control. In Linux, a sender in `Open` with SACKed packets is in
/// `Disorder`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum State {
    #[default]
    Open,
    /// The window is reduced because of a mark.
    Cwr,
    /// Fast recovery.
    Recovery,
    /// Recovery after a timeout.
    Loss,
}

impl Selective {
    /// Enters fast recovery.
    pub(super) fn enter(
        &mut self,
        core: &mut Core,
        net: &mut Net,
        now: u64,
        losses: Losses,
        delivered: u32,
    ) {
        let reduces = self.state != State::Cwr;
        self.undo.begin(!reduces);
        let prior = self.prior_window(core, delivered);
        self.state = State::Recovery;
        self.rescued = false;
        self.frto.end();
        if reduces || self.linux.is_none() {
            self.high_seq = core.board.high();
        }
        if let Some(tlp) = &mut self.tlp {
            tlp.forget();
        }
        let cut = self.report_lost(core, now, losses);
        self.undo.stamp(core, now);
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

    /// RFC 6298 section 5, and section 6.3 of RFC 8985.
    pub(super) fn retransmission_timeout(
        &mut self,
        core: &mut Core,
        net: &mut Net,
        now: u64,
    ) -> bool {
        core.driver.meter.counters.timeouts += 1;
        core.rto.back_off();
        if !core.connected {
            self.undo.stamp(core, now);
            self.repair(core, net, now, 0);
            return false;
        }
        // Linux keeps the threshold if the packets were lost before the last reduction
        // (`tcp_enter_loss`).
        let reduced = match self.state {
            State::Open => false,
            State::Cwr => self.linux.is_some(),
            State::Recovery => true,
            State::Loss => self.retransmits > 0,
        };
        let again = reduced && self.high_seq > core.board.una();
        // RFC 5681 section 3.1 keeps the threshold in fewer cases than Linux.
        let keeps = if self.linux.is_some() { again } else { self.retransmits > 0 };
        self.frto.begin(self.is_recovering(), self.retransmits > 0, self.linux.is_some());
        if !again {
            self.undo.begin(false);
        }
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
        self.undo.stamp(core, now);
        if core.board.in_flight() > 0
            && let Some(seq) = core.board.next_lost()
        {
            // The window has no room for the oldest packet beside those that are not lost.
            self.repair(core, net, now, seq);
        }
        true
    }

    /// Ends recoveries and reductions whose packets are acknowledged. Returns whether the
    /// controller does not know of the end yet.
    ///
    /// Linux calls a controller with rate samples (`cong_control`) after `tcp_fastretrans_alert`.
    /// Such a controller sees neither the end nor the beginning of a recovery if the same
    /// acknowledgement begins the next one.
    pub(super) fn leave_states(&mut self, core: &mut Core, now: u64) -> bool {
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

    /// Handles marks; `una` is the oldest packet that was unacknowledged before. PRR is a part of
    /// fast recovery (RFC 9937): a mark reduces the window at once. In Linux the reduction takes a
    /// round with PRR, in which further marks change nothing (`tcp_enter_cwr`).
    pub(super) fn mark(&mut self, core: &mut Core, now: u64, ack: Ack, newly: Newly, una: u32) {
        if ack.marks == 0 {
            return;
        }
        self.undo.marked |= self.state != State::Open;
        let smooths = self.uses_prr && self.linux.is_some() && !grows_after_mark(core);
        if smooths && self.state != State::Open {
            if !ack.echo {
                // Controllers that count marks get all. Linux makes no further reduction before
                // this one ends, not even for marks of packets sent after it began, which
                // `Core::marked` reports as new: a transmission time before the reduction prevents
                // one.
                let marked = Marked::new(ack.marks, Time::ZERO, core.driver.packets_sent);
                core.driver.report(now, Event::Marked(marked));
            }
            return;
        }
        let prior = self.prior_window(core, newly.packets);
        let marked = core.marked(ack, newly, una);
        let cut = core.report_congestion(now, Event::Marked(marked));
        core.driver.meter.counters.mark_cuts += u32::from(cut);
        if cut && smooths {
            self.undo.begin_marked();
            self.state = State::Cwr;
            self.high_seq = core.board.high();
            self.begin_reduction(core, prior);
        }
    }

    /// The window from which PRR reduces: Linux's `prior_cwnd`, or `RecoverFS` (RFC 9937 section
    /// 6.1), the packets outstanding and not SACKed before the acknowledgement that delivered
    /// `delivered` packets. Packets that it acknowledges cumulatively, and that were SACKed before,
    /// do not count: they are not delivered during the reduction.
    pub(super) fn prior_window(&self, core: &Core, delivered: u32) -> u32 {
        if self.linux.is_some() {
            whole32(core.window())
        } else {
            core.board.high() - core.board.una() - core.board.sacked() + delivered
        }
    }

    /// Begins PRR's reduction to the controller's window from `prior`. A controller that is not a
    /// window law, or whose window grows after a mark, sets its window itself.
    pub(super) fn begin_reduction(&mut self, core: &Core, prior: u32) {
        let law = matches!(core.driver.controller, AnyController::Window(_));
        let applies = self.uses_prr && law && !grows_after_mark(core);
        self.prr = applies.then(|| Prr::new(whole32(core.window()), prior));
    }
}

/// Whether the controller is a window law that grows in the round after a mark too.
fn grows_after_mark(core: &Core) -> bool {
    matches!(&core.driver.controller, AnyController::Window(machine) if machine.law().grows_after_mark())
}
