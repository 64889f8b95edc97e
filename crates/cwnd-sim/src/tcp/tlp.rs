//! Tail loss probes (RFC 8985 section 7): a probe instead of a timeout where the end of a flight is
//! lost. Times are in ticks.

/// TLP's variables (RFC 8985 section 5.4).
#[derive(Clone, Copy, Debug)]
pub(super) struct Tlp {
    /// `TLP.max_ack_delay`: added for a single packet in flight, whose acknowledgement may be
    /// delayed.
    max_ack_delay: u64,
    /// Added for several packets: Linux's least timer.
    slack: u64,
    /// The timeout before the first round-trip time sample.
    initial: u64,
    /// `TLP.end_seq`: one past the highest packet sent when a probe was; `None` without an
    /// outstanding probe.
    end_seq: Option<u32>,
    /// `TLP.is_retrans`: whether the probe is a retransmission.
    is_retrans: bool,
    /// Whether there was a round-trip time sample since the last probe.
    sampled: bool,
}

/// What an acknowledgement says of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Probe {
    /// There is none, or it is still outstanding.
    Open,
    /// Nothing was lost.
    NoLoss,
    /// The probe repaired the loss of the last packet.
    Repaired,
}

/// What is in an acknowledgement for TLP.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answer {
    pub number: u32,
    /// Whether a duplicate of the probe was reported (DSACK).
    pub duplicate: bool,
    /// Whether it is a duplicate acknowledgement without SACK blocks.
    pub plain_duplicate: bool,
}

impl Tlp {
    pub(super) fn new(max_ack_delay: u64, slack: u64, initial: u64) -> Self {
        Tlp { max_ack_delay, slack, initial, end_seq: None, is_retrans: false, sampled: true }
    }

    /// `TLP_calc_PTO` (section 7.2) without the limit by the retransmission timer.
    pub(super) fn pto(&self, srtt: Option<u64>, outstanding: u32) -> u64 {
        match srtt {
            None => self.initial,
            Some(srtt) if outstanding == 1 => 2 * srtt + self.max_ack_delay,
            Some(srtt) => 2 * srtt + self.slack,
        }
    }

    /// Whether a probe is outstanding.
    pub(super) fn is_outstanding(&self) -> bool {
        self.end_seq.is_some()
    }

    /// Records a round-trip time sample.
    pub(super) fn sampled(&mut self) {
        self.sampled = true;
    }

    /// Whether a probe may be sent (section 7.3).
    pub(super) fn may_probe(&self) -> bool {
        self.end_seq.is_none() && self.sampled
    }

    /// Records a probe. `high` is one past the highest packet sent, with the probe.
    pub(super) fn probed(&mut self, high: u32, is_retrans: bool) {
        self.end_seq = Some(high);
        self.is_retrans = is_retrans;
        self.sampled = false;
    }

    /// Whether `seq` is the packet of the outstanding probe.
    pub(super) fn is_probe(&self, seq: u32) -> bool {
        self.end_seq == Some(seq + 1)
    }

    /// Forgets the probe: a recovery answers the loss.
    pub(super) fn forget(&mut self) {
        self.end_seq = None;
    }

    /// `TLP_process_ack` (section 7.4).
    pub(super) fn acknowledged(&mut self, ack: Answer) -> Probe {
        let Some(end_seq) = self.end_seq.filter(|&end_seq| ack.number >= end_seq) else {
            return Probe::Open;
        };
        if self.is_retrans && !ack.duplicate && ack.number > end_seq {
            self.end_seq = None;
            return Probe::Repaired;
        }
        if !self.is_retrans || ack.duplicate || ack.plain_duplicate {
            self.end_seq = None;
            return Probe::NoLoss;
        }
        Probe::Open
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ack(number: u32) -> Answer {
        Answer { number, duplicate: false, plain_duplicate: false }
    }

    /// Section 7.2: twice the smoothed round-trip time, and the delay of an acknowledgement for a
    /// single packet.
    #[test]
    fn the_probe_timeout_waits_for_a_delayed_acknowledgement() {
        let tlp = Tlp::new(200, 2, 1000);
        let timeouts =
            [tlp.pto(None, 3), tlp.pto(Some(50), 1), tlp.pto(Some(50), 2), tlp.pto(Some(50), 9)];
        assert_eq!(timeouts, [1000, 300, 102, 102]);
    }

    /// Section 7.3: one probe at a time, and a sample between two.
    #[test]
    fn probes_are_one_at_a_time() {
        let mut tlp = Tlp::new(200, 0, 1000);
        assert!(tlp.may_probe());
        tlp.probed(10, false);
        assert!(!tlp.may_probe());
        assert_eq!(tlp.acknowledged(ack(9)), Probe::Open);
        assert_eq!(tlp.acknowledged(ack(10)), Probe::NoLoss);
        assert!(!tlp.may_probe());
        tlp.sampled();
        assert!(tlp.may_probe());
    }

    /// Section 7.4.2: a retransmission that is acknowledged with later data repaired a loss. A
    /// duplicate acknowledgement or a duplicate report shows that original and probe arrived.
    #[test]
    fn a_repaired_loss_is_noticed() {
        let probed = || {
            let mut tlp = Tlp::new(200, 0, 1000);
            tlp.probed(10, true);
            tlp
        };
        assert_eq!(probed().acknowledged(ack(10)), Probe::Open);
        assert_eq!(probed().acknowledged(ack(11)), Probe::Repaired);
        let duplicate = Answer { duplicate: true, ..ack(12) };
        assert_eq!(probed().acknowledged(duplicate), Probe::NoLoss);
        let plain_duplicate = Answer { plain_duplicate: true, ..ack(10) };
        assert_eq!(probed().acknowledged(plain_duplicate), Probe::NoLoss);
    }
}
