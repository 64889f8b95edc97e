//! RACK (RFC 8985 section 6): loss detection by time. A packet is lost if one sent sufficiently
//! later was delivered. Times are in ticks.

use super::scoreboard::{Covered, DUP_THRESH, Losses, Scoreboard};
use std::collections::VecDeque;

/// Recoveries without a duplicate report after which the reordering window shrinks again (section
/// 6.2, step 4).
const REO_WND_PERSIST: u32 = 16;

/// RACK's variables (RFC 8985 section 5.3), and the outstanding packets in the order of
/// transmission.
#[derive(Clone, Default)]
pub(super) struct Rack {
    /// `RACK.xmit_ts`: transmission time of the most recently sent packet that was delivered.
    xmit_ts: u64,
    /// `RACK.end_seq`: one past that packet; 0 before the first one.
    end_seq: u32,
    /// `RACK.rtt`: its round-trip time.
    rtt: u64,
    /// `RACK.fack`: one past the highest packet delivered.
    fack: u32,
    /// `RACK.reo_wnd`: how much later than expected a packet may arrive.
    reo_wnd: u64,
    /// `RACK.reordering_seen`.
    reordering_seen: bool,
    /// Whether a packet was delivered since the last detection.
    advanced: bool,
    /// `RACK.reo_wnd_mult` less one, and the recoveries until it is reset.
    further_mult: u32,
    reo_wnd_persist: u32,
    /// `RACK.dsack_round`: duplicate reports do not widen the window again before this packet is
    /// acknowledged.
    dsack_round: Option<u32>,
    /// The last transmissions of retransmitted packets, and of packets below `next`, in their order.
    /// Those of packets that were delivered, lost or retransmitted since are removed when they are
    /// met.
    order: VecDeque<Sent>,
    /// The first packet that `order` does not have: from it on, the scoreboard has the transmission
    /// times of the packets that were sent once.
    next: u32,
}

/// The last transmission of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sent {
    at: u64,
    seq: u32,
    /// One past the highest packet sent before; `seq` at the first transmission. It orders
    /// transmissions of the same time.
    high: u32,
}

/// The state of the sender on which the reordering window depends.
#[derive(Clone, Copy)]
pub(super) struct Path {
    /// The smallest round-trip time; [`u64::MAX`] before the first sample.
    pub min_rtt: u64,
    pub srtt: u64,
    /// Whether the sender is in recovery, after a loss or a timeout.
    pub in_recovery: bool,
}

/// What a detection found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Detected {
    pub losses: Losses,
    /// Time until further packets are lost if they are not delivered; 0 if there are none.
    pub timeout: u64,
}

/// `RACK_sent_after` (section 6.2, step 2).
fn sent_after(one: (u64, u32), other: (u64, u32)) -> bool {
    one > other
}

impl Rack {
    /// Records the retransmission of packet `seq`. `high` is one past the highest packet sent.
    pub(super) fn resent(&mut self, now: u64, seq: u32, high: u32) {
        self.order.push_back(Sent { at: now, seq, high });
    }

    /// Whether packets sent once that are acknowledged in order, up to the one before `end_seq`
    /// sent at `sent_at`, are the latest ones sent that were delivered. Then no other packet is
    /// late.
    #[inline(always)]
    pub(super) fn is_in_order(&self, una: u32, sent_at: u64, end_seq: u32) -> bool {
        self.fack <= una && sent_after((sent_at, end_seq), (self.xmit_ts, self.end_seq))
    }

    /// Steps 2 to 5 for packets that are [in order](Self::is_in_order), without others that are
    /// retransmitted, SACKed or lost.
    #[inline(always)]
    pub(super) fn in_order(&mut self, now: u64, sent_at: u64, board: &Scoreboard, path: Path) {
        self.end_seq = board.una();
        self.fack = board.una();
        self.xmit_ts = sent_at;
        self.rtt = now - sent_at;
        self.reo_wnd = self.update_reo_wnd(board, path);
        self.advanced = false;
    }

    /// Steps 2 and 3: updates the state for a packet that is newly delivered. `echoes` tells
    /// whether the acknowledgement's timestamp permits that it answers the last transmission.
    pub(super) fn update(&mut self, now: u64, covered: Covered, min_rtt: u64, echoes: bool) {
        let Covered { seq, sent_at, retransmitted } = covered;
        let end_seq = seq + 1;
        if end_seq > self.fack {
            self.fack = end_seq;
        } else if !retransmitted {
            self.reordering_seen = true;
        }
        let rtt = now - sent_at;
        if retransmitted && (!echoes || rtt < min_rtt) {
            return;
        }
        self.advanced = true;
        if self.end_seq == 0 || sent_after((sent_at, end_seq), (self.xmit_ts, self.end_seq)) {
            self.rtt = rtt;
            self.xmit_ts = sent_at;
            self.end_seq = end_seq;
        }
    }

    /// A packet that was retransmitted arrived late, as its timestamp shows: Linux counts that as
    /// reordering.
    pub(super) fn reordered(&mut self) {
        self.reordering_seen = true;
    }

    /// Whether a packet arrived after one that was sent later.
    pub(super) fn reordering_seen(&self) -> bool {
        self.reordering_seen
    }

    /// Step 4: a duplicate was reported. `high` is one past the highest packet sent.
    pub(super) fn duplicate_reported(&mut self, una: u32, high: u32) {
        if self.dsack_round.is_none_or(|round| una >= round) {
            self.dsack_round = Some(high);
            self.further_mult += 1;
            self.reo_wnd_persist = REO_WND_PERSIST;
        }
    }

    /// Step 4: a recovery is over.
    pub(super) fn recovered(&mut self) {
        self.reo_wnd_persist = self.reo_wnd_persist.saturating_sub(1);
        if self.reo_wnd_persist == 0 {
            self.further_mult = 0;
        }
    }

    /// Step 4: the reordering window. It is zero in recovery, and once three packets are SACKed,
    /// until reordering is seen.
    fn update_reo_wnd(&self, board: &Scoreboard, path: Path) -> u64 {
        let enough = path.in_recovery || board.sacked() >= DUP_THRESH;
        if !self.reordering_seen && enough || path.min_rtt == u64::MAX {
            return 0;
        }
        (path.min_rtt / 4).saturating_mul(u64::from(self.further_mult) + 1).min(path.srtt)
    }

    /// Whether a packet was delivered since the last detection.
    pub(super) fn advanced(&self) -> bool {
        self.advanced
    }

    /// Step 5: marks packets as lost that were sent before one that was delivered, if they are
    /// later than expected by more than the reordering window.
    pub(super) fn detect_loss(&mut self, board: &mut Scoreboard, now: u64, path: Path) -> Detected {
        self.advanced = false;
        self.reo_wnd = self.update_reo_wnd(board, path);
        let mut found = Detected::default();
        let mut waiting = 0;
        while let Some(sent) = self.pending(board, waiting) {
            if !sent_after((self.xmit_ts, self.end_seq), (sent.at, sent.seq + 1)) {
                break;
            }
            let due = sent.at + self.rtt + self.reo_wnd;
            if due <= now {
                self.mark(board, waiting, sent, &mut found);
            } else {
                found.timeout = found.timeout.max(due - now);
                self.keep(waiting, sent);
                waiting += 1;
            }
        }
        found
    }

    /// Section 6.3: after a timeout the oldest packet is lost, and those that are later than
    /// expected by more than the reordering window. Returns the number of packets newly lost.
    pub(super) fn mark_losses_on_rto(&mut self, board: &mut Scoreboard, now: u64) -> Losses {
        let mut found = Detected::default();
        let mut at = 0;
        while let Some(sent) = self.pending(board, at) {
            if sent.seq == board.una() || sent.at + self.rtt + self.reo_wnd <= now {
                self.mark(board, at, sent, &mut found);
            } else {
                self.keep(at, sent);
                at += 1;
            }
        }
        found.losses
    }

    /// The packet in flight that was sent after the first `place` of `order`.
    #[inline(always)]
    fn pending(&mut self, board: &mut Scoreboard, place: usize) -> Option<Sent> {
        let again = loop {
            match self.order.get(place).copied() {
                Some(sent) if !board.is_pending(sent.seq, sent.at) => {
                    // Delivered, lost or retransmitted since. The removal moves only the entries
                    // before it, which are few.
                    self.order.remove(place);
                }
                again => break again,
            }
        };
        let high = board.high();
        self.next = self.next.max(board.una());
        while self.next < high && !board.is_original(self.next) {
            self.next += 1;
        }
        let seq = self.next;
        if seq < high && again.is_none_or(|again| seq < again.high) {
            return Some(Sent { at: board.sent_at(seq), seq, high: seq });
        }
        again
    }

    /// Whether a [pending](Self::pending) packet is not in `order`.
    fn is_next(&self, sent: Sent) -> bool {
        sent.seq == self.next && sent.high == sent.seq
    }

    /// Follows a packet further, behind `place` others.
    fn keep(&mut self, place: usize, sent: Sent) {
        if self.is_next(sent) {
            self.next += 1;
            self.order.insert(place, sent);
        }
    }

    /// Marks a packet behind `place` others as lost.
    fn mark(&mut self, board: &mut Scoreboard, place: usize, sent: Sent, found: &mut Detected) {
        if self.is_next(sent) {
            self.next += 1;
        } else {
            self.order.remove(place);
        }
        board.mark_lost((sent.seq, sent.seq + 1));
        found.losses.add(sent.seq, sent.at);
    }

    /// Follows all outstanding packets anew, after lost packets were presumed to be in flight
    /// again.
    pub(super) fn restart(&mut self, board: &mut Scoreboard) {
        let outstanding = board.una()..board.high();
        let sent = |seq| Sent { at: board.sent_at(seq), seq, high: seq };
        let mut order: Vec<_> = outstanding.map(sent).collect();
        order.retain(|sent| board.is_pending(sent.seq, sent.at));
        order.sort_unstable_by_key(|sent| (sent.at, sent.seq));
        self.order = order.into();
        self.next = board.high();
        self.advanced = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const RTT: u64 = 100;

    /// A sender whose packet `n` was sent at time `n`.
    struct Bench {
        board: Scoreboard,
        rack: Rack,
        path: Path,
    }

    impl Bench {
        fn new(packets: u32) -> Self {
            let path = Path { min_rtt: RTT, srtt: RTT, in_recovery: false };
            let mut bench = Bench { board: Scoreboard::default(), rack: Rack::default(), path };
            (0..packets).for_each(|seq| bench.send(u64::from(seq)));
            bench
        }

        fn send(&mut self, now: u64) {
            self.board.sent(now);
        }

        fn resend(&mut self, now: u64, seq: u32) {
            self.rack.resent(now, seq, self.board.high());
            self.board.resent(now, seq);
        }

        fn sack(&mut self, now: u64, block: (u32, u32)) -> Detected {
            let (rack, min_rtt) = (&mut self.rack, self.path.min_rtt);
            self.board.sack_each(&[block], &mut |covered| rack.update(now, covered, min_rtt, true));
            self.detect(now)
        }

        fn detect(&mut self, now: u64) -> Detected {
            self.rack.detect_loss(&mut self.board, now, self.path)
        }
    }

    /// The number of packets lost, the latest transmission time among them, and the time until
    /// further ones are lost.
    fn found(detected: Detected) -> (u32, u64, u64) {
        (detected.losses.packets, detected.losses.sent_at, detected.timeout)
    }

    /// RFC 8985 section 3.4, figure 1: the tail of a flight is lost, and a retransmission of it
    /// again. The loss probe (event 3) is the retransmission of the last packet.
    #[test]
    fn a_lost_tail_and_a_lost_retransmission_are_detected() {
        let mut bench = Bench::new(3);
        bench.resend(300, 2);
        // Event 5: the SACK of P3 shows that P1 and P2 are lost.
        assert_eq!(found(bench.sack(400, (2, 3))), (2, 1, 0));
        bench.path.in_recovery = true;
        bench.resend(400, 0);
        bench.resend(401, 1);
        // Event 7: the SACK of P2 shows that the retransmission of P1 is lost.
        assert_eq!(found(bench.sack(501, (1, 2))), (1, 400, 0));
        assert_eq!(bench.board.next_lost(), Some(0));
    }

    /// Section 6.2, step 5: the SACK of P2 arms the reordering timer for a quarter of the
    /// round-trip time; when it expires, P1 is lost.
    #[test]
    fn a_hole_is_lost_after_the_reordering_window() {
        let mut bench = Bench::new(3);
        // P2 was sent at 1: P1, sent at 0, is lost at 0 + 100 + 25.
        assert_eq!(found(bench.sack(101, (1, 2))), (0, 0, 24));
        assert_eq!(found(bench.sack(102, (1, 3))), (0, 0, 23));
        assert_eq!(found(bench.detect(125)), (1, 0, 0));
        assert_eq!((bench.board.lost(), bench.board.next_lost()), (1, Some(0)));
    }

    /// Section 6.2, step 4: three SACKed packets prove the loss at once, as long as no reordering
    /// was seen.
    #[test]
    fn three_sacked_packets_need_no_reordering_window() {
        let mut bench = Bench::new(5);
        assert_eq!(found(bench.sack(104, (1, 4))), (1, 0, 0));
        // In recovery there is no reordering window either.
        let mut bench = Bench::new(5);
        bench.path.in_recovery = true;
        assert_eq!(found(bench.sack(101, (1, 2))), (1, 0, 0));
    }

    /// Section 6.2, step 3: a packet below a delivered one that was not retransmitted shows
    /// reordering. From then on three SACKed packets are not enough.
    #[test]
    fn reordering_keeps_the_window() {
        let mut bench = Bench::new(10);
        assert_eq!(found(bench.sack(103, (3, 4))), (0, 0, 24));
        bench.sack(104, (2, 3));
        assert!(bench.rack.reordering_seen);
        // Packets 0 and 1 are lost at 125 and 126.
        assert_eq!(found(bench.sack(107, (4, 8))), (0, 0, 19));
        assert_eq!(found(bench.detect(125)), (1, 0, 1));
        assert_eq!(found(bench.detect(126)), (1, 1, 0));
    }

    /// Section 3.2: RACK detects the loss of a retransmission, which the number of SACKed packets
    /// does not show.
    #[test]
    fn a_lost_retransmission_is_detected() {
        let mut bench = Bench::new(4);
        bench.path.in_recovery = true;
        assert_eq!(found(bench.sack(103, (1, 4))), (1, 0, 0));
        bench.resend(104, 0);
        bench.send(105);
        bench.send(106);
        // Packet 4, sent after the retransmission, is delivered; the retransmission was due at 204.
        assert_eq!(found(bench.sack(205, (4, 5))), (1, 104, 0));
        assert_eq!(bench.board.next_lost(), Some(0));
    }

    /// Section 6.2, step 2: an acknowledgement sooner than the smallest round-trip time, or with an
    /// older timestamp, answers the original packet.
    #[test]
    fn an_ambiguous_retransmission_does_not_count() {
        let covered = |sent_at| Covered { seq: 7, sent_at, retransmitted: true };
        let mut rack = Rack::default();
        rack.update(150, covered(100), RTT, true);
        rack.update(250, covered(100), RTT, false);
        assert!(!rack.advanced());
        rack.update(250, covered(100), RTT, true);
        assert_eq!((rack.advanced(), rack.rtt, rack.end_seq), (true, 150, 8));
    }

    /// Section 6.2, step 4: each round with a duplicate report widens the window by a quarter of
    /// the smallest round-trip time, up to the smoothed one. It shrinks after 16 recoveries
    /// without.
    #[test]
    fn duplicate_reports_widen_the_window() {
        let mut bench = Bench::new(0);
        bench.rack.reordering_seen = true;
        let window = |bench: &Bench| bench.rack.update_reo_wnd(&bench.board, bench.path);
        assert_eq!(window(&bench), 25);
        bench.rack.duplicate_reported(0, 10);
        bench.rack.duplicate_reported(9, 12);
        assert_eq!(window(&bench), 50);
        bench.rack.duplicate_reported(10, 20);
        bench.rack.duplicate_reported(20, 30);
        bench.rack.duplicate_reported(30, 40);
        assert_eq!(window(&bench), RTT);
        (0..15).for_each(|_| bench.rack.recovered());
        assert_eq!(window(&bench), RTT);
        bench.rack.recovered();
        assert_eq!(window(&bench), 25);
    }

    /// Section 6.3: a timeout marks the oldest packet and those overdue, not the ones sent
    /// recently.
    #[test]
    fn a_timeout_spares_recent_packets() {
        let mut bench = Bench::new(3);
        bench.sack(101, (1, 2));
        bench.send(290);
        // The reordering window is 25: packet 2 was due at 127, packet 3 is not before 415.
        assert_eq!(bench.rack.mark_losses_on_rto(&mut bench.board, 300).packets, 2);
        assert_eq!((bench.board.lost(), bench.board.in_flight()), (2, 1));
    }

    /// After an undo all packets can be lost again.
    #[test]
    fn packets_are_followed_again_after_an_undo() {
        let mut bench = Bench::new(5);
        assert_eq!(bench.sack(104, (1, 4)).losses.packets, 1);
        bench.board.unmark_lost();
        bench.rack.restart(&mut bench.board);
        assert_eq!(found(bench.detect(105)), (1, 0, 0));
    }

    /// Changes a sender by a step of a random history, and returns what is detected and the state
    /// of the scoreboard. `all`: each packet is in `order` from its first transmission on.
    fn step(
        bench: &mut Bench,
        now: u64,
        (kind, place, length): (u8, u32, u32),
        all: bool,
    ) -> String {
        let (una, high) = (bench.board.una(), bench.board.high());
        let seq = una + place;
        let mut found = Detected::default();
        match kind {
            0..3 => (0..length).for_each(|_| {
                let seq = bench.board.high();
                bench.send(now);
                if all {
                    bench.rack.resent(now, seq, seq);
                    bench.rack.next = seq + 1;
                }
            }),
            3..5 => {
                for _ in 0..length {
                    let Some(seq) = bench.board.next_lost() else { break };
                    bench.resend(now, seq);
                }
            }
            5..8 => found = bench.sack(now, (seq, seq + length)),
            8 => {
                let (rack, min_rtt) = (&mut bench.rack, bench.path.min_rtt);
                let ack = (una + length).min(high);
                bench.board.acked_each(ack, |covered| rack.update(now, covered, min_rtt, true));
                found = bench.detect(now);
            }
            9 => found = bench.detect(now),
            10 => found.losses = bench.rack.mark_losses_on_rto(&mut bench.board, now),
            11 => {
                bench.board.unmark_lost();
                bench.rack.restart(&mut bench.board);
            }
            _ => bench.path.in_recovery = length % 2 == 0,
        }
        let board = &mut bench.board;
        format!("{found:?} {} {} {:?}", board.lost(), board.in_flight(), board.next_lost())
    }

    proptest! {
        /// Packets sent once are detected without entries in `order` as they are with them, also if
        /// several are sent at the same time.
        #[test]
        fn packets_sent_once_need_no_entries(
            steps in prop::collection::vec((0u64..60, (0u8..13, 0u32..30, 1u32..9)), 0..150),
        ) {
            let (mut bench, mut reference) = (Bench::new(0), Bench::new(0));
            let mut now = 0;
            for (gap, change) in steps {
                now += gap.saturating_sub(20);
                let found = step(&mut bench, now, change, false);
                prop_assert_eq!(found, step(&mut reference, now, change, true));
            }
        }
    }
}
