//! Spurious reductions and timeouts: Eifel detection (RFC 3522), duplicate reports (RFC 2883) and
//! F-RTO (RFC 5682), and their reversal.

use super::{Core, Delivered, Selective, State};
use crate::tcp::sender::Ack;
use cwnd::Event;

/// The evidence for and against the reversal of the last reduction.
#[derive(Clone, Default)]
pub(super) struct Undo {
    uses_dsack: bool,
    /// Linux's `undo_retrans`: retransmissions of this recovery less duplicates reported; `None` if
    /// it was undone.
    retransmissions: Option<u32>,
    /// RFC 3522's `RetransmitTS`, until the next new acknowledgement.
    retransmit_ts: Option<u32>,
    /// A mark was reported since the recovery began, or before it in the same reduction: the
    /// reduction is not undone (`prior_ssthresh` of 0 in Linux).
    pub(super) marked: bool,
}

impl Undo {
    pub(super) fn new(uses_dsack: bool) -> Self {
        Undo { uses_dsack, ..Undo::default() }
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

    /// Whether a retransmission awaits the acknowledgement that shows whether it was spurious.
    pub(super) fn has_stamp(&self) -> bool {
        self.retransmit_ts.is_some()
    }

    pub(super) fn take_stamp(&mut self) -> Option<u32> {
        self.retransmit_ts.take()
    }

    /// The packet whose duplicate the receiver reports (RFC 2883 section 4): the first block is
    /// below the acknowledgement, or within the second one.
    pub(super) fn reported(&self, ack: Ack) -> Option<u32> {
        let &(start, end) = ack.blocks().first().filter(|_| self.uses_dsack)?;
        let within =
            ack.blocks().get(1).is_some_and(|&(first, last)| first <= start && end <= last);
        (end <= ack.number || within).then_some(start)
    }
}

/// The new packets of step 2b.
const NEW_PACKETS: u32 = 2;
/// The largest windows in packets after steps 2a and 3a.
const ACKNOWLEDGED_WINDOW: f64 = 2.0;
const LOST_WINDOW: f64 = 3.0;

/// The progress of F-RTO (section 3.1) after a timeout.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Step {
    /// Not in progress: the recovery is the conventional one.
    #[default]
    Off,
    /// Step 2: the retransmission has not been acknowledged. In Linux also step 3, and each step
    /// may prove that the timeout was spurious.
    Retransmitted,
    /// Step 3: the next acknowledgement decides. As many new packets may still be sent, and no lost
    /// ones.
    NewData(u32),
}

/// F-RTO of the last timeout.
#[derive(Clone, Default)]
pub(super) struct Frto {
    enabled: bool,
    /// It was applied to the last timeout.
    applied: bool,
    step: Step,
    /// Linux: new packets go first, to find out whether the timeout was spurious (section 3.1, step
    /// 2).
    pub(super) new_first: bool,
}

impl Frto {
    pub(super) fn new(enabled: bool) -> Self {
        Frto { enabled, ..Frto::default() }
    }

    /// Step 1: F-RTO does not apply to a timeout in a recovery, unless it is another one of the
    /// same packet (`repeated`) and F-RTO applied to the one before. Linux does not require the
    /// latter.
    pub(super) fn begin(&mut self, recovering: bool, repeated: bool, linux: bool) {
        self.applied = self.enabled && (!recovering || repeated && (self.applied || linux));
        self.step = if self.applied { Step::Retransmitted } else { Step::Off };
        self.new_first = false;
    }

    pub(super) fn end(&mut self) {
        self.step = Step::Off;
    }

    /// The new packets that step 3 still permits; `None` in other steps.
    pub(super) fn new_left(&self) -> Option<u32> {
        if let Step::NewData(left) = self.step { Some(left) } else { None }
    }

    /// A new packet was sent in step 3, with `left` permitted before.
    pub(super) fn new_sent(&mut self, left: u32) {
        self.step = Step::NewData(left - 1);
    }
}

impl Selective {
    /// Eifel detection (RFC 3522): if the acknowledgement echoes a timestamp older than that of the
    /// retransmission, the retransmission was spurious and the window reduction is undone. In Linux
    /// the delayed packet is one that was reordered (`tcp_try_undo_partial`).
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

    /// A duplicate was reported: if all retransmissions of the recovery were duplicates, it was
    /// spurious (`tcp_try_undo_dsack`).
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

    /// Reverts the last reduction, unless it is due to a mark too. `unmark`: the packets presumed
    /// lost are in flight.
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

    /// F-RTO with SACK (RFC 5682 section 3.1): after a timeout, new packets show whether the
    /// packets presumed lost still arrive. Returns the largest window in packets, if there is one.
    pub(super) fn process_loss(
        &mut self,
        core: &mut Core,
        now: u64,
        ack: Ack,
        delivered: &Delivered,
    ) -> Option<f64> {
        self.frto.new_first = false;
        if self.frto.step == Step::Off || self.state != State::Loss {
            return None;
        }
        if self.linux.is_some() {
            self.process_loss_linux(core, now, delivered);
            return None;
        }
        let (una, high) = (core.board.una(), core.board.high());
        match self.frto.step {
            // Step 2: duplicate acknowledgements change the scoreboard only.
            Step::Retransmitted if delivered.advanced => {
                self.high_seq = high;
                let decides = una < high && core.may_send_new();
                self.frto.step = if decides { Step::NewData(NEW_PACKETS) } else { Step::Off };
                (una >= high).then_some(ACKNOWLEDGED_WINDOW)
            }
            Step::NewData(_) => {
                let new =
                    una > self.high_seq || ack.blocks().iter().any(|&(_, end)| end > self.high_seq);
                if delivered.original && !new {
                    self.undo(core, now, true);
                    return None;
                }
                self.frto.end();
                Some(LOST_WINDOW)
            }
            _ => None,
        }
    }

    /// F-RTO in Linux (`tcp_process_loss`): the delivery of an original transmission proves at each
    /// step that the timeout was spurious.
    fn process_loss_linux(&mut self, core: &mut Core, now: u64, delivered: &Delivered) {
        let &Delivered { advanced, duplicate, .. } = delivered;
        let (una, high) = (core.board.una(), core.board.high());
        if delivered.original {
            self.undo(core, now, true);
        } else if high > self.high_seq {
            // The acknowledgement of the new packets SACKs them: the packets below are lost.
            if delivered.sacked || !advanced && duplicate.is_none() {
                self.frto.end();
            }
        } else if advanced && una < self.high_seq {
            self.high_seq = high;
            self.frto.new_first = core.may_send_new();
            if !self.frto.new_first {
                self.frto.end();
            }
        }
    }
}
