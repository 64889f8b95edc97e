//! F-RTO (RFC 5682): detection of spurious timeouts by new packets.

use super::{Core, Delivered, Selective, State};
use crate::tcp::sender::Ack;

/// The new packets of step 2b.
const NEW_PACKETS: u32 = 2;
/// The largest windows in packets after steps 2a and 3a.
const ACKNOWLEDGED_WINDOW: f64 = 2.0;
const LOST_WINDOW: f64 = 3.0;

/// The progress of F-RTO (section 3.1) after a timeout.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    /// Not in progress: the recovery is the conventional one.
    Off,
    /// Step 2: the retransmission has not been acknowledged. In Linux also step 3, and each step may prove that the timeout was spurious.
    Retransmitted,
    /// Step 3: the next acknowledgement decides. As many new packets may still be sent, and no lost ones.
    NewData(u32),
}

/// F-RTO of the last timeout.
pub(super) struct Frto {
    enabled: bool,
    /// It was applied to the last timeout.
    applied: bool,
    step: Step,
    /// Linux: new packets go first, to find out whether the timeout was spurious (section 3.1, step 2).
    pub(super) new_first: bool,
}

impl Frto {
    pub(super) fn new(enabled: bool) -> Self {
        Frto { enabled, applied: false, step: Step::Off, new_first: false }
    }

    /// Step 1: F-RTO does not apply to a timeout in a recovery, unless it is another one of the same packet (`repeated`) and F-RTO applied
    /// to the one before. Linux does not require the latter.
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
    /// F-RTO with SACK (RFC 5682 section 3.1): after a timeout, new packets show whether the packets presumed lost still arrive. Returns the
    /// largest window in packets, if there is one.
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

    /// F-RTO in Linux (`tcp_process_loss`): the delivery of an original transmission proves at each step that the timeout was spurious.
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
