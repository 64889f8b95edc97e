//! The scoreboard of RFC 6675: the state of each packet from the oldest unacknowledged one to the
//! newest one sent, in eight bytes per packet. Sequence numbers count packets.

use crate::cast::low32;
use crate::engine::ring::Ring;

/// Time of the last transmission and state of a packet, in one word.
#[derive(Clone, Copy, Default)]
struct Segment(u64);

const SACKED: u64 = 1;
/// Presumed lost and not selectively acknowledged.
const LOST: u64 = 1 << 1;
/// Lost and retransmitted since.
const RESENT: u64 = 1 << 2;
/// Retransmitted at least once: Karn's algorithm excludes the packet from round-trip time samples.
const AGAIN: u64 = 1 << 3;
/// SACKed at some time, even if the scoreboard was cleared since.
const DELIVERED: u64 = 1 << 4;
const STATE_BITS: u32 = 8;

/// RFC 6675's DupThresh: a hole with this many SACKed packets above it is lost.
pub(crate) const DUP_THRESH: u32 = 3;

impl Segment {
    fn has(self, bits: u64) -> bool {
        self.0 & bits != 0
    }
    fn sent_at(self) -> u64 {
        self.0 >> STATE_BITS
    }
    fn covered(self, seq: u32) -> Covered {
        Covered { seq, sent_at: self.sent_at(), retransmitted: self.has(AGAIN) }
    }
}

/// A packet that an acknowledgement newly covers, cumulatively or selectively.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Covered {
    pub seq: u32,
    /// Time of the last transmission.
    pub sent_at: u64,
    /// Whether the packet was retransmitted at least once.
    pub retransmitted: bool,
}

/// Packets newly covered by an acknowledgement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Newly {
    /// Packets not acknowledged or SACKed before.
    pub packets: u32,
    /// The most recently sent of `packets`.
    pub newest: u32,
    /// Transmission time of `newest`.
    pub sent_at: u64,
    /// Whether `newest` was sent only once.
    pub once: bool,
    /// Whether the acknowledgement changed the scoreboard.
    pub changed: bool,
}

impl Newly {
    /// Combines two sets of covered packets.
    pub(crate) fn and(self, other: Newly) -> Newly {
        let newest = if other.packets > 0 && other.sent_at >= self.sent_at { other } else { self };
        Newly {
            packets: self.packets + other.packets,
            changed: self.changed || other.changed,
            ..newest
        }
    }

    /// Adds a packet.
    fn add(&mut self, packet: Covered) {
        self.packets += 1;
        if packet.sent_at >= self.sent_at {
            (self.newest, self.sent_at) = (packet.seq, packet.sent_at);
            self.once = !packet.retransmitted;
        }
    }
}

/// Packets newly presumed lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Losses {
    pub packets: u32,
    /// The most recently sent of them.
    pub newest: u32,
    /// Transmission time of `newest`.
    pub sent_at: u64,
}

impl Losses {
    /// Adds packet `seq`, which was sent at `sent_at`.
    pub(crate) fn add(&mut self, seq: u32, sent_at: u64) {
        self.packets += 1;
        if sent_at >= self.sent_at {
            (self.newest, self.sent_at) = (seq, sent_at);
        }
    }

    /// Combines two sets of lost packets.
    pub(crate) fn and(self, other: Losses) -> Losses {
        let newest = if other.sent_at > self.sent_at { other } else { self };
        Losses { packets: self.packets + other.packets, ..newest }
    }
}

#[derive(Clone, Default)]
pub(crate) struct Scoreboard {
    segments: Ring<Segment>,
    una: u32,
    sacked: u32,
    lost: u32,
    resent: u32,
    /// One past each of the highest SACKed packets, in descending order.
    top: [u32; DUP_THRESH as usize],
    /// All packets below are SACKed or marked lost.
    swept: u32,
    /// All packets below that are not SACKed are retransmitted in this recovery (RFC 6675's HighRxt
    /// plus one).
    repaired: u32,
    /// One past the highest packet with a state bit; 0 if there is none.
    marked: u32,
    /// The blocks of the last acknowledgement, used to skip packets already SACKed.
    seen: [(u32, u32); 3],
}

impl Scoreboard {
    /// The oldest unacknowledged packet.
    #[inline(always)]
    pub(crate) fn una(&self) -> u32 {
        self.una
    }

    /// One past the highest packet sent.
    #[inline(always)]
    pub(crate) fn high(&self) -> u32 {
        self.una + self.outstanding()
    }

    /// Packets in flight: RFC 6675's pipe.
    #[inline(always)]
    pub(crate) fn in_flight(&self) -> u32 {
        self.outstanding() - self.sacked - self.lost + self.resent
    }

    /// Packets sent and not acknowledged.
    #[inline(always)]
    fn outstanding(&self) -> u32 {
        low32(self.segments.len() as u64)
    }

    pub(crate) fn sacked(&self) -> u32 {
        self.sacked
    }

    pub(crate) fn lost(&self) -> u32 {
        self.lost
    }

    fn segment(&mut self, seq: u32) -> &mut Segment {
        self.segments.get_mut((seq - self.una) as usize)
    }

    /// Time of the last transmission of an outstanding packet.
    pub(crate) fn sent_at(&mut self, seq: u32) -> u64 {
        self.segment(seq).sent_at()
    }

    /// Whether an outstanding packet was retransmitted.
    pub(crate) fn is_retransmitted(&mut self, seq: u32) -> bool {
        self.segment(seq).has(AGAIN)
    }

    /// The loss of an outstanding packet.
    pub(crate) fn loss_of(&mut self, seq: u32) -> Losses {
        Losses { packets: 1, newest: seq, sent_at: self.sent_at(seq) }
    }

    /// Records the first transmission of packet `high`.
    #[inline(always)]
    pub(crate) fn sent(&mut self, now: u64) {
        self.segments.push(Segment(now << STATE_BITS));
    }

    /// Records a retransmission of packet `seq`.
    pub(crate) fn resent(&mut self, now: u64, seq: u32) {
        let segment = self.segment(seq);
        let was = *segment;
        let resent = if was.has(LOST) { RESENT } else { 0 };
        let state = was.0 & (SACKED | LOST | DELIVERED) | resent;
        *segment = Segment(now << STATE_BITS | state | AGAIN);
        self.resent += u32::from(was.has(LOST) && !was.has(RESENT));
        // Neither a rescue retransmission (RFC 6675 section 4, rule 4 of `NextSeg`) nor a tail loss
        // probe, whose packet may be SACKed, updates HighRxt.
        if was.has(LOST) || !was.has(SACKED) && seq < self.top[0] {
            self.repaired = self.repaired.max(seq + 1);
        }
        self.marked = self.marked.max(seq + 1);
    }

    /// Removes the packets below `ack`.
    #[inline]
    pub(crate) fn acked(&mut self, ack: u32) -> Newly {
        self.acked_each(ack, |_| ())
    }

    /// Removes the packets below `ack` and shows to `each` those that were not delivered before.
    #[inline]
    pub(crate) fn acked_each(&mut self, ack: u32, mut each: impl FnMut(Covered)) -> Newly {
        let mut newly = Newly { changed: self.una < ack.min(self.high()), ..Newly::default() };
        while self.una < ack && self.segments.len() > 0 {
            let segment = self.segments.pop();
            let packet = segment.covered(self.una);
            self.una += 1;
            if !segment.has(DELIVERED) {
                newly.add(packet);
                each(packet);
            }
            self.sacked -= u32::from(segment.has(SACKED));
            self.forget_loss(segment);
        }
        newly
    }

    /// A lost packet is lost no more. Tested at once, because most packets are not: compilers would
    /// combine the two subtractions, with three times the instructions.
    #[inline(always)]
    fn forget_loss(&mut self, segment: Segment) {
        if segment.has(LOST) {
            self.lost -= 1;
            self.resent -= u32::from(segment.has(RESENT));
        }
    }

    /// Marks the packets of SACK blocks as SACKed. A block is its first packet and one past its
    /// last.
    pub(crate) fn sack(&mut self, blocks: &[(u32, u32)]) -> Newly {
        self.sack_each(blocks, &mut |_| ())
    }

    /// [`sack`](Self::sack) that shows to `each` the packets that were not delivered before, in the
    /// order of their numbers: a sender takes another order for reordering. If acknowledgements
    /// were lost, several blocks have new packets.
    #[inline]
    pub(crate) fn sack_each(
        &mut self,
        blocks: &[(u32, u32)],
        each: &mut impl FnMut(Covered),
    ) -> Newly {
        // A new block precedes the blocks reported before.
        let before = self.seen;
        let (mut ranges, mut count) = ([(0, 0); 3], 0);
        let high = self.high();
        for (place, &block) in blocks.iter().enumerate() {
            let end = block.1.min(high);
            let old = before.iter().find(|seen| seen.0 == block.0 && seen.1 <= end);
            let start = old.map_or(block.0, |seen| seen.1).max(self.una);
            if start < end {
                ranges[count] = (start, end);
                count += 1;
            }
            self.seen[place] = (block.0, end);
        }
        let ranges = &mut ranges[..count];
        if count > 1 {
            ranges.sort_unstable();
        }
        let mut newly = Newly::default();
        for &(start, end) in &*ranges {
            newly = newly.and(self.sack_range(start, end, each));
        }
        newly
    }

    #[inline]
    fn sack_range(&mut self, start: u32, end: u32, each: &mut impl FnMut(Covered)) -> Newly {
        let mut newly = Newly::default();
        for seq in start..end {
            let segment = self.segment(seq);
            let was = *segment;
            if was.has(SACKED) {
                continue;
            }
            segment.0 = was.0 & !(LOST | RESENT) | SACKED | DELIVERED;
            self.sacked += 1;
            self.forget_loss(was);
            newly.changed = true;
            if !was.has(DELIVERED) {
                newly.add(was.covered(seq));
                each(was.covered(seq));
            }
            self.raise(seq + 1);
        }
        self.marked = self.marked.max(end);
        newly
    }

    /// Inserts one past a SACKed packet into `top`.
    fn raise(&mut self, mut above: u32) {
        for top in &mut self.top {
            (*top, above) = (above.max(*top), above.min(*top));
        }
    }

    /// One past the highest SACKed packet.
    pub(crate) fn highest_sacked(&self) -> u32 {
        self.top[0]
    }

    /// Marks as lost each hole with [`DUP_THRESH`] SACKed packets above it (RFC 6675's `IsLost`).
    /// Returns the packets newly lost.
    pub(crate) fn find_lost(&mut self) -> Losses {
        let threshold = self.top[DUP_THRESH as usize - 1];
        self.mark_lost_below(threshold.saturating_sub(1))
    }

    /// Marks each hole below `bound` as lost. A hole up to HighRxt is retransmitted already (RFC
    /// 6675 section 4, step (b) of `SetPipe`). Returns the packets newly lost.
    pub(crate) fn mark_lost_below(&mut self, bound: u32) -> Losses {
        let bound = bound.min(self.high());
        let start = self.swept.max(self.una);
        if start >= bound {
            return Losses::default();
        }
        let (mut found, mut resent) = (Losses::default(), 0);
        let repaired = self.repaired;
        for seq in start..bound {
            let segment = self.segment(seq);
            if !segment.has(SACKED | LOST) {
                segment.0 |= if seq < repaired { LOST | RESENT } else { LOST };
                found.add(seq, segment.sent_at());
                resent += u32::from(seq < repaired);
            }
        }
        self.swept = bound;
        self.marked = self.marked.max(bound);
        self.lost += found.packets;
        self.resent += resent;
        found
    }

    /// Ends a recovery. The next one may retransmit the packets that this one retransmitted before
    /// they were lost (RFC 6675 section 5, step 4.3).
    pub(crate) fn end_recovery(&mut self) {
        self.repaired = self.una;
    }

    /// Marks all packets that are not SACKed as lost and not retransmitted. Returns those that were
    /// in flight.
    pub(crate) fn mark_all_lost(&mut self) -> Losses {
        let mut found = Losses::default();
        for seq in self.una..self.high() {
            let segment = self.segment(seq);
            let was = *segment;
            if !was.has(SACKED) {
                segment.0 = was.0 & !RESENT | LOST;
                if !was.has(LOST) || was.has(RESENT) {
                    found.add(seq, was.sent_at());
                }
            }
        }
        self.lost = self.outstanding() - self.sacked;
        self.resent = 0;
        self.repaired = self.una;
        self.swept = self.high();
        self.marked = self.high();
        found
    }

    /// Marks packets `range.0 .. range.1` of a NAK as lost. A packet retransmitted since counts as
    /// lost again. Returns the packets newly lost.
    pub(crate) fn mark_lost(&mut self, range: (u32, u32)) -> Losses {
        let mut found = Losses::default();
        let end = range.1.min(self.high());
        self.marked = self.marked.max(end);
        for seq in range.0.max(self.una)..end {
            let segment = self.segment(seq);
            let was = *segment;
            if was.has(SACKED) || was.has(LOST) && !was.has(RESENT) {
                continue;
            }
            segment.0 = was.0 & !RESENT | LOST;
            self.lost += u32::from(!was.has(LOST));
            self.resent -= u32::from(was.has(RESENT));
            found.add(seq, was.sent_at());
        }
        self.repaired = self.repaired.min(range.0);
        found
    }

    /// The first lost packet that is not retransmitted.
    #[inline(always)]
    pub(crate) fn next_lost(&mut self) -> Option<u32> {
        if self.lost == self.resent { None } else { self.find_next_lost() }
    }

    #[inline(never)]
    fn find_next_lost(&mut self) -> Option<u32> {
        let from = (self.repaired.max(self.una) - self.una) as usize;
        let lost = |segment: Segment| segment.0 & (LOST | RESENT) == LOST;
        let found = self.segments.position(from, lost).map(|place| self.una + low32(place as u64));
        self.repaired = found.unwrap_or(self.repaired);
        found
    }

    /// The first hole above the retransmitted packets that has a SACKed packet above it.
    pub(crate) fn next_hole(&mut self) -> Option<u32> {
        let bound = self.top[0].min(self.high());
        let found =
            (self.repaired.max(self.una)..bound).find(|&seq| !self.segment(seq).has(SACKED));
        self.repaired = self.repaired.max(found.unwrap_or(bound));
        found
    }

    /// The packet to retransmit by rules 3 and 4 of RFC 6675's `NextSeg`: a hole not yet presumed
    /// lost, or the last outstanding packet, which is `rescued` once per recovery. Also returns
    /// whether it is the latter. Rule 4 also names the highest hole below a SACKed last packet;
    /// here that hole waits for the retransmission timeout.
    pub(crate) fn further_repair(&mut self, rescued: bool) -> Option<(u32, bool)> {
        if let Some(seq) = self.next_hole() {
            return Some((seq, false));
        }
        let last = self.high().checked_sub(1).filter(|&last| last >= self.una)?;
        (!rescued && last >= self.highest_sacked()).then_some((last, true))
    }

    /// Whether the last transmission of packet `seq`, at `sent_at`, is still in flight:
    /// outstanding, and neither SACKed nor presumed lost.
    pub(crate) fn is_pending(&mut self, seq: u32, sent_at: u64) -> bool {
        (self.una..self.high()).contains(&seq) && {
            let segment = *self.segment(seq);
            segment.sent_at() == sent_at
                && !segment.has(SACKED)
                && (!segment.has(LOST) || segment.has(RESENT))
        }
    }

    /// Whether outstanding packet `seq` is in flight and was sent only once.
    pub(crate) fn is_original(&mut self, seq: u32) -> bool {
        !self.segment(seq).has(SACKED | LOST | AGAIN)
    }

    /// Whether all outstanding packets were sent once, and none is SACKed or presumed lost.
    #[inline(always)]
    pub(crate) fn is_plain(&self) -> bool {
        self.marked <= self.una
    }

    /// The transmission times of the first and the last packet below `ack`, where at least one is
    /// outstanding.
    #[inline(always)]
    pub(crate) fn sent_below(&self, ack: u32) -> (u64, u64) {
        let last = (ack - self.una - 1) as usize;
        (self.segments.get(0).sent_at(), self.segments.get(last).sent_at())
    }

    /// [`acked`](Self::acked) for a [plain](Self::is_plain) scoreboard and an `ack` above its first
    /// packet. `sent_at` is the time of the last packet below.
    #[inline(always)]
    pub(crate) fn acked_plain(&mut self, ack: u32, sent_at: u64) -> Newly {
        let packets = ack - self.una;
        self.segments.skip(packets as usize);
        self.una = ack;
        Newly { packets, newest: ack - 1, sent_at, once: true, changed: true }
    }

    /// Whether a retransmitted packet is outstanding.
    pub(crate) fn any_retransmitted(&mut self) -> bool {
        self.resent > 0 || self.outstanding() > 0 && self.is_retransmitted(self.una)
    }

    /// Presumes all lost packets to be in flight again, after a spurious retransmission.
    pub(crate) fn unmark_lost(&mut self) {
        for seq in self.una..self.marked.min(self.high()) {
            self.segment(seq).0 &= !(LOST | RESENT);
        }
        (self.lost, self.resent) = (0, 0);
        (self.swept, self.repaired) = (self.una, self.una);
    }

    /// Clears the scoreboard. ns-2 does so outside recovery; RFC 2018 section 8 recommends it after
    /// a timeout.
    pub(crate) fn clear(&mut self) {
        if self.marked == 0 {
            return;
        }
        for seq in self.una..self.marked {
            self.segment(seq).0 &= !(SACKED | LOST | RESENT);
        }
        self.marked = 0;
        (self.sacked, self.lost, self.resent) = (0, 0, 0);
        self.top = [0; DUP_THRESH as usize];
        (self.swept, self.repaired) = (0, 0);
        self.seen = [(0, 0); 3];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of packets lost, and the latest transmission time among them.
    fn found(losses: Losses) -> (u32, u64) {
        (losses.packets, losses.sent_at)
    }
    use proptest::prelude::*;

    fn board(packets: u32) -> Scoreboard {
        let mut board = Scoreboard::default();
        (0..packets).for_each(|at| board.sent(u64::from(at)));
        board
    }

    #[test]
    fn a_hole_is_lost_below_three_sacked_packets() {
        let mut board = board(10);
        board.sack(&[(2, 4)]);
        assert_eq!(found(board.find_lost()), (0, 0));
        board.sack(&[(2, 5)]);
        assert_eq!(found(board.find_lost()), (2, 1));
        assert_eq!((board.in_flight(), board.lost(), board.sacked()), (5, 2, 3));
        assert_eq!(board.next_lost(), Some(0));
        board.resent(20, 0);
        assert_eq!(board.next_lost(), Some(1));
        assert_eq!(board.in_flight(), 6);
        let newly = board.acked(1);
        assert_eq!((newly.packets, newly.once, newly.sent_at), (1, false, 20));
        assert_eq!(board.in_flight(), 5);
    }

    /// RFC 6675 section 4: a rescue retransmission does not hide a packet below it that is found
    /// lost later.
    #[test]
    fn a_rescue_retransmission_leaves_high_rxt() {
        let mut board = board(8);
        board.sack(&[(1, 4)]);
        assert_eq!(found(board.find_lost()), (1, 0));
        board.resent(20, 0);
        board.resent(21, 7);
        board.sack(&[(5, 8)]);
        assert_eq!(found(board.find_lost()), (1, 4));
        assert_eq!(board.next_lost(), Some(4));
    }

    /// RFC 6675 section 4: a hole that rule 3 of `NextSeg` returned is up to HighRxt. When it is
    /// found lost, `SetPipe` counts its retransmission, and `NextSeg` does not return it again.
    #[test]
    fn a_hole_retransmitted_before_its_loss_is_in_flight() {
        let mut board = board(8);
        board.sack(&[(1, 4), (5, 6)]);
        assert_eq!(found(board.find_lost()), (1, 0));
        board.resent(20, 0);
        assert_eq!(board.next_hole(), Some(4));
        board.resent(21, 4);
        board.sack(&[(5, 8)]);
        assert_eq!(found(board.find_lost()), (1, 21));
        assert_eq!((board.in_flight(), board.next_lost()), (2, None));
    }

    /// RFC 6675 section 5, step 4.3: a recovery begins with the oldest packet, also if the last
    /// recovery retransmitted it before its loss.
    #[test]
    fn the_next_recovery_retransmits_again() {
        let mut board = board(8);
        board.sack(&[(1, 4), (5, 6)]);
        assert_eq!(found(board.find_lost()), (1, 0));
        board.resent(20, 0);
        board.resent(21, 4);
        board.acked(4);
        board.end_recovery();
        board.sack(&[(5, 8)]);
        assert_eq!(found(board.find_lost()), (1, 21));
        assert_eq!((board.in_flight(), board.next_lost()), (0, Some(4)));
    }

    /// A tail loss probe is the highest packet, also if it is SACKed: it does not hide the packets
    /// below it either.
    #[test]
    fn a_probe_leaves_high_rxt() {
        let mut board = board(4);
        board.sack(&[(2, 4)]);
        board.resent(20, 3);
        board.sent(21);
        board.sack(&[(2, 5)]);
        assert_eq!(found(board.find_lost()), (2, 1));
        assert_eq!(board.next_lost(), Some(0));
    }

    /// Packets 1 to 3 arrived before packet 0 filled the hole, so they give no round-trip time
    /// sample.
    #[test]
    fn packets_behind_a_hole_give_no_rtt_sample() {
        let mut board = board(4);
        board.resent(50, 0);
        let newly = board.acked(4);
        assert_eq!((newly.packets, newly.once, newly.sent_at), (4, false, 50));
        // A packet sent after the retransmission gives a sample.
        board.sent(60);
        board.sent(61);
        board.resent(70, 4);
        board.sent(71);
        let newly = board.acked(7);
        assert_eq!((newly.packets, newly.once, newly.sent_at), (3, true, 71));
    }

    /// A rate sample is that of the most recently sent packet that is newly delivered
    /// (draft-ietf-ccwg-bbr, UpdateRateSample: a packet SACKed before is skipped).
    #[test]
    fn the_newest_packet_was_not_sacked_before() {
        let mut board = board(4);
        board.resent(50, 1);
        board.sent(60);
        assert_eq!(board.sack(&[(4, 5)]).newest, 4);
        let newly = board.acked(5);
        // The acknowledgement also covers a packet sent later.
        assert_eq!((newly.packets, newly.newest), (4, 1));
        assert_eq!((newly.sent_at, newly.once), (50, false));
    }

    /// A late packet that was sent once gives a round-trip time sample, of its own transmission.
    #[test]
    fn a_late_packet_gives_a_sample() {
        let mut board = Scoreboard::default();
        (0..4).for_each(|seq| board.sent(10 + seq));
        board.sack(&[(1, 4)]);
        let newly = board.acked(4);
        assert_eq!((newly.packets, newly.sent_at, newly.once), (1, 10, true));
    }

    /// The blocks begin with the newest one (RFC 2018 section 4), and the sender processes them in
    /// the order of the packets.
    #[test]
    fn packets_of_several_blocks_are_shown_in_order() {
        let mut board = board(9);
        let mut shown = Vec::new();
        board.sack_each(&[(7, 8), (1, 2), (4, 6)], &mut |packet| shown.push(packet.seq));
        assert_eq!(shown, [1, 4, 5, 7]);
    }

    proptest! {
        #[test]
        fn counters_agree_with_the_states(steps in proptest::collection::vec((0u8..8, 0u32..40, 0u32..12), 0..200)) {
            let mut board = board(5);
            for (now, (kind, seq, length)) in steps.into_iter().enumerate() {
                let now = now as u64 + 100;
                match kind {
                    0 => board.sent(now),
                    1 => { let ack = board.una() + seq % 4; board.acked(ack.min(board.high())); }
                    2 => { let start = board.una() + seq; board.sack(&[(start, start + length)]); }
                    3 => { board.find_lost(); }
                    4 => if let Some(seq) = board.next_lost() { board.resent(now, seq) },
                    5 => if seq == 0 { board.mark_all_lost(); },
                    6 => { board.mark_lost((board.una() + seq, board.una() + seq + length)); }
                    7 if seq % 2 == 0 => {
                        board.unmark_lost();
                        prop_assert_eq!((board.lost, board.resent), (0, 0));
                    }
                    _ => {
                        board.clear();
                        prop_assert_eq!((board.sacked, board.lost, board.resent), (0, 0, 0));
                    }
                }
                let segments: Vec<_> = (0..board.segments.len()).map(|i| board.segments.get(i)).collect();
                let count = |bits| segments.iter().map(|s| u32::from(s.has(bits))).sum::<u32>();
                prop_assert_eq!(board.sacked, count(SACKED));
                prop_assert_eq!(board.lost, count(LOST));
                prop_assert_eq!(board.resent, count(RESENT));
                prop_assert!(segments.iter().all(|s| !(s.has(SACKED) && s.has(LOST | RESENT))));
            }
        }
    }
}
