//! Reversal of spurious reductions: Eifel detection (RFC 3522) and duplicate reports (RFC 2883).

use super::{Core, Selective, State};
use crate::tcp::sender::Ack;
use cwnd::Event;

/// The evidence for and against the reversal of the last reduction.
pub(super) struct Undo {
    uses_dsack: bool,
    /// Linux's `undo_retrans`: retransmissions of this recovery less duplicates reported; `None` if it was undone.
    retransmissions: Option<u32>,
    /// RFC 3522's `RetransmitTS`, until the next new acknowledgement.
    retransmit_ts: Option<u32>,
    /// A mark was reported since the recovery began, or before it in the same reduction: the reduction is not undone (`prior_ssthresh` of
    /// 0 in Linux).
    pub(super) marked: bool,
}

impl Undo {
    pub(super) fn new(uses_dsack: bool) -> Self {
        Undo { uses_dsack, retransmissions: None, retransmit_ts: None, marked: false }
    }

    /// Begins a recovery; `marked` if a mark began its reduction.
    pub(super) fn begin(&mut self, marked: bool) {
        self.retransmissions = Some(0);
        self.marked = marked;
    }

    /// A mark began a reduction outside a recovery.
    pub(super) fn begin_marked(&mut self) {
        self.retransmissions = None;
        self.marked = true;
    }

    /// Ends the recovery as spurious. Returns whether a mark forbids the reversal of its reduction.
    fn end(&mut self) -> bool {
        self.retransmissions = None;
        self.retransmit_ts = None;
        std::mem::take(&mut self.marked)
    }

    /// Records a retransmission.
    pub(super) fn retransmitted(&mut self) {
        self.retransmissions = self.retransmissions.map(|sent| sent + 1);
    }

    /// Records a duplicate. Returns whether all retransmissions of the recovery were duplicates.
    fn duplicate(&mut self) -> bool {
        let Some(left @ 1..) = self.retransmissions else { return false };
        self.retransmissions = Some(left - 1);
        left == 1
    }

    /// Records the timestamp of the first retransmission.
    pub(super) fn stamp(&mut self, core: &mut Core, now: u64) {
        self.retransmit_ts = core.retransmit_ts(now, self.retransmit_ts);
    }

    pub(super) fn take_stamp(&mut self) -> Option<u32> {
        self.retransmit_ts.take()
    }

    /// The packet whose duplicate the receiver reports (RFC 2883 section 4): the first block is below the acknowledgement, or within the
    /// second one.
    pub(super) fn reported(&self, ack: Ack) -> Option<u32> {
        let &(start, end) = ack.blocks().first().filter(|_| self.uses_dsack)?;
        let within =
            ack.blocks().get(1).is_some_and(|&(first, last)| first <= start && end <= last);
        (end <= ack.number || within).then_some(start)
    }
}

impl Selective {
    /// Eifel detection (RFC 3522): if the acknowledgement echoes a timestamp older than that of the retransmission, the
    /// retransmission was spurious and the window reduction is undone. In Linux the delayed packet is one that was reordered
    /// (`tcp_try_undo_partial`).
    pub(super) fn detect_spurious(&mut self, core: &mut Core, now: u64, ack: Ack) {
        if let Some(stamp) = self.undo.take_stamp()
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
    pub(super) fn process_duplicate(&mut self, core: &mut Core, now: u64, duplicate: Option<u32>) {
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
        if self.undo.duplicate() {
            self.undo(core, now, self.state == State::Loss);
        }
    }

    /// Reverts the last reduction, unless it is due to a mark too. `unmark`: the packets presumed lost are in flight.
    pub(super) fn undo(&mut self, core: &mut Core, now: u64, unmark: bool) {
        if unmark {
            core.board.unmark_lost();
            if let Some(rack) = &mut self.rack {
                rack.restart(&mut core.board);
            }
        }
        self.frto.end();
        self.state = State::Open;
        self.prr = None;
        if self.undo.end() {
            core.driver.report(now, Event::Recovered);
        } else {
            core.driver.undo(now);
        }
    }
}
