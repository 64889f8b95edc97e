//! Proportional Rate Reduction (RFC 9937): the packets that each acknowledgement in a window
//! reduction permits.
//!
//! In whole packets, as in Linux: ssthresh is rounded down, and a negative `SndCnt` is 0.

/// PRR's variables (RFC 9937 section 6.1), in packets, during a reduction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Prr {
    ssthresh: u64,
    /// `RecoverFS`: the packets that may be delivered during the reduction; in Linux the window.
    recover_fs: u64,
    prr_delivered: u64,
    prr_out: u64,
    /// The window of the last acknowledgement: packets in flight and `sndcnt`.
    cwnd: u32,
}

/// An acknowledgement during a reduction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delivery {
    /// `DeliveredData`: packets newly acknowledged or SACKed.
    pub delivered: u32,
    /// Packets in flight after it.
    pub in_flight: u32,
    /// `SafeACK`: it advances SND.UNA and indicates no further loss.
    pub safe: bool,
}

impl Prr {
    /// Begins a reduction to `ssthresh` from `recover_fs` packets.
    pub(super) fn new(ssthresh: u32, recover_fs: u32) -> Self {
        let recover_fs = u64::from(recover_fs.max(1));
        Prr {
            ssthresh: u64::from(ssthresh),
            recover_fs,
            prr_delivered: 0,
            prr_out: 0,
            cwnd: ssthresh,
        }
    }

    /// Handles an acknowledgement (section 6.2): the reduction is proportional while more than
    /// `ssthresh` packets are in flight. Below, the sender sends what was delivered (PRR-CRB), and
    /// one packet more for a safe acknowledgement (PRR-SSRB).
    pub(super) fn acknowledged(&mut self, ack: Delivery) {
        if ack.delivered == 0 {
            return;
        }
        let in_flight = u64::from(ack.in_flight);
        self.prr_delivered += u64::from(ack.delivered);
        let mut sndcnt = if in_flight > self.ssthresh {
            let due = (self.prr_delivered * self.ssthresh).div_ceil(self.recover_fs);
            due.saturating_sub(self.prr_out)
        } else {
            let conserved =
                self.prr_delivered.saturating_sub(self.prr_out).max(u64::from(ack.delivered));
            (conserved + u64::from(ack.safe)).min(self.ssthresh - in_flight)
        };
        if self.prr_out == 0 {
            // Fast retransmit is not delayed.
            sndcnt = sndcnt.max(1);
        }
        self.cwnd = u32::try_from(in_flight + sndcnt).unwrap_or(u32::MAX);
    }

    /// Records the transmission of a packet.
    pub(super) fn sent(&mut self) {
        self.prr_out += 1;
    }

    /// The window in packets until the next acknowledgement.
    pub(super) fn window(&self) -> f64 {
        f64::from(self.cwnd)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Processes acknowledgements of one packet each, which indicate no progress of SND.UNA, and
    /// sends as many packets as permitted. Returns the window, the packets in flight before sending
    /// and the packets sent, after each.
    fn run(prr: &mut Prr, mut in_flight: u32, acks: usize, first_lost: u32) -> Vec<[u32; 3]> {
        let mut rows = Vec::new();
        for ack in 0..acks {
            in_flight -= 1 + if ack == 0 { first_lost } else { 0 };
            prr.acknowledged(Delivery { delivered: 1, in_flight, safe: false });
            let sent = prr.cwnd.saturating_sub(in_flight);
            (0..sent).for_each(|_| prr.sent());
            rows.push([prr.cwnd, in_flight, sent]);
            in_flight += sent;
        }
        rows
    }

    /// RFC 9937 section 8, Figure 1: 20 packets in flight, one lost, ssthresh 10; ACK#3 to ACK#21.
    /// The figure sends a packet on ACK#19, where 10 packets are in flight. The algorithm of
    /// section 6.2 is proportional only above ssthresh: it sends that packet on ACK#20, as Linux
    /// does.
    #[test]
    fn a_single_loss_spreads_the_reduction() {
        let rows = run(&mut Prr::new(10, 20), 20, 19, 1);
        let column = |index: usize| rows.iter().map(|row| row[index]).collect::<Vec<_>>();
        let figure = [19, 18, 18, 17, 17, 16, 16, 15, 15, 14, 14, 13, 13, 12, 12, 11];
        assert_eq!(column(0)[..16], figure);
        assert_eq!(column(0)[16..], [10, 10, 10]);
        let figure = [18, 18, 17, 17, 16, 16, 15, 15, 14, 14, 13, 13, 12, 12, 11, 11, 10, 9, 9];
        assert_eq!(column(1), figure);
        assert_eq!(column(2), [1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 0, 1, 1]);
    }

    /// RFC 9937 section 8, Figure 2: 15 of 20 packets are lost; ACK#17 to ACK#19. PRR-CRB sends a
    /// packet for each that is delivered.
    #[test]
    fn burst_loss_conserves_packets() {
        let rows = run(&mut Prr::new(10, 20), 20, 3, 15);
        assert_eq!(rows, [[5, 4, 1]; 3]);
    }

    /// PRR-SSRB: each safe acknowledgement raises the packets in flight by one, up to ssthresh.
    #[test]
    fn safe_acknowledgements_slow_start() {
        let mut prr = Prr::new(10, 20);
        let (mut in_flight, mut rows) = (5, Vec::new());
        for _ in 0..8 {
            in_flight -= 1;
            prr.acknowledged(Delivery { delivered: 1, in_flight, safe: true });
            let sent = prr.cwnd - in_flight;
            (0..sent).for_each(|_| prr.sent());
            in_flight += sent;
            rows.push(in_flight);
        }
        assert_eq!(rows, [6, 7, 8, 9, 10, 10, 10, 10]);
    }

    /// The first acknowledgement permits a retransmission even if the flight is far above ssthresh.
    #[test]
    fn fast_retransmit_is_not_delayed() {
        let mut prr = Prr::new(10, 1000);
        prr.acknowledged(Delivery { delivered: 1, in_flight: 998, safe: false });
        assert_eq!(prr.cwnd, 999);
        let mut prr = Prr::new(2, 2);
        prr.acknowledged(Delivery { delivered: 1, in_flight: 2, safe: false });
        assert_eq!(prr.cwnd, 3);
    }

    proptest! {
        /// Section 7: a whole flight of acknowledgements with limited loss ends at ssthresh, and
        /// PRR-CRB never sends more than was delivered, except for the first retransmission.
        #[test]
        fn the_flight_ends_at_ssthresh(flight in 4u32..500, kept in 1u32..100, lost in 1u32..100) {
            let ssthresh = (flight * kept / 100).max(2);
            let lost = (lost * flight / 200).clamp(1, flight - 1);
            let mut prr = Prr::new(ssthresh, flight);
            let rows = run(&mut prr, flight, (flight - lost) as usize, lost);
            let sent: u32 = rows.iter().map(|row| row[2]).sum();
            prop_assert!(sent <= flight - lost + 1);
            let [last, ..] = rows[rows.len() - 1];
            if flight - lost >= ssthresh {
                prop_assert!(last <= ssthresh + 1, "{last} of {ssthresh}");
            }
        }
    }
}
