//! The short path of an acknowledgement in order, which most are: nothing is retransmitted, SACKed,
//! lost, marked or to be judged.

use super::{Core, Selective, State};
use crate::engine::net::Net;
use crate::fast_path;
use crate::tcp::sender::Ack;

impl Selective {
    /// Does for an acknowledgement of new data in order what `acknowledgement` does for any, without
    /// the steps that change nothing then. Returns false, and has changed nothing, for any other.
    #[inline(always)]
    pub(super) fn acknowledge_in_order(
        &mut self,
        core: &mut Core,
        net: &mut Net,
        now: u64,
        ack: &Ack,
    ) -> bool {
        let una = core.board.una();
        if !self.is_orderly(core, ack) || !(una + 1..=core.board.high()).contains(&ack.number) {
            return false;
        }
        let (first, last) = core.board.sent_below(ack.number);
        if self.rack.as_ref().is_some_and(|rack| !rack.is_in_order(una, last, ack.number)) {
            return false;
        }
        let newly = core.board.acked_plain(ack.number, last);
        self.sample(core, now, if self.linux.is_some() { first } else { last });
        core.next = core.next.max(ack.number);
        self.retransmits = 0;
        self.duplicates = 0;
        self.report_acked(core, now, newly, ack, true);
        let path = self.path(core);
        if let Some(rack) = &mut self.rack {
            rack.in_order(now, last, &core.board, path);
        }
        if core.board.high() > ack.number && !self.schedule_probe(core, net, now, true) {
            self.restart_rto(core, net, now);
        }
        self.stop_timer_if_idle(core);
        true
    }

    /// Whether neither the sender nor the acknowledgement is in a special state.
    #[inline(always)]
    fn is_orderly(&self, core: &Core, ack: &Ack) -> bool {
        core.board.is_plain()
            && core.connected
            && self.state == State::Open
            && self.prr.is_none()
            && !self.frto.new_first
            && !self.undo.has_stamp()
            && !self.tlp.is_some_and(|tlp| tlp.is_outstanding())
            && ack.extra.count == 0
            && ack.marks == 0
            && !core.has_feedback()
            && fast_path::permitted()
    }
}
