//! What the sender knows of each packet between the oldest unacknowledged one and the newest sent:
//! RFC 6675's scoreboard, eight bytes a packet. Packets are numbered, not bytes.

use crate::cast::low32;
use crate::engine::ring::Ring;

/// When a packet was last sent, and its state, in one word.
#[derive(Clone, Copy, Default)]
struct Segment(u64);

const SACKED: u64 = 1;
/// Presumed lost and not selectively acknowledged.
const LOST: u64 = 1 << 1;
/// Lost, and sent again since.
const RESENT: u64 = 1 << 2;
/// Sent more than once: Karn's rule forbids its round-trip time.
const AGAIN: u64 = 1 << 3;
/// SACKed once, even if that was forgotten since.
const DELIVERED: u64 = 1 << 4;
const STATE_BITS: u32 = 8;

/// Packets SACKed above a hole that make it a loss (RFC 6675's DupThresh).
pub(crate) const DUP_THRESH: u32 = 3;

impl Segment {
    fn has(self, bits: u64) -> bool {
        self.0 & bits != 0
    }
    fn sent_at(self) -> u64 {
        self.0 >> STATE_BITS
    }
}

/// What an acknowledgement newly covered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Newly {
    /// Packets that were not known to have arrived.
    pub packets: u32,
    /// The most recently sent of the covered packets, when it was sent, and whether it was sent only once.
    pub newest: u32,
    pub sent_at: u64,
    pub once: bool,
    /// Whether the scoreboard learned anything.
    pub changed: bool,
}

impl Newly {
    /// Both taken together.
    pub(crate) fn and(self, other: Newly) -> Newly {
        let newest = if other.sent_at > self.sent_at { other } else { self };
        Newly {
            packets: self.packets + other.packets,
            changed: self.changed || other.changed,
            ..newest
        }
    }
}

pub(crate) struct Scoreboard {
    segments: Ring<Segment>,
    una: u32,
    sacked: u32,
    lost: u32,
    resent: u32,
    /// The highest packets SACKed, the highest first, as one past their numbers.
    top: [u32; DUP_THRESH as usize],
    /// Every unSACKed packet below is marked lost.
    swept: u32,
    /// Every lost packet below has been sent again (RFC 6675's HighRxt, plus one).
    repaired: u32,
    /// One past the highest packet with a state, 0 when nothing is known of any.
    marked: u32,
    /// The last acknowledgement's blocks: most of a block is old news.
    seen: [(u32, u32); 3],
}

impl Scoreboard {
    pub(crate) fn new() -> Self {
        Scoreboard {
            segments: Ring::new(),
            una: 0,
            sacked: 0,
            lost: 0,
            resent: 0,
            top: [0; DUP_THRESH as usize],
            swept: 0,
            repaired: 0,
            marked: 0,
            seen: [(0, 0); 3],
        }
    }

    /// The oldest packet not acknowledged.
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

    /// When an outstanding packet was last sent.
    pub(crate) fn sent_at(&mut self, seq: u32) -> u64 {
        self.segment(seq).sent_at()
    }

    /// Packet `high` is sent for the first time.
    #[inline(always)]
    pub(crate) fn sent(&mut self, now: u64) {
        self.segments.push(Segment(now << STATE_BITS));
    }

    /// Packet `seq` is sent again.
    pub(crate) fn resent(&mut self, now: u64, seq: u32) {
        let segment = self.segment(seq);
        let counts = segment.has(LOST) && !segment.has(RESENT);
        let state =
            segment.0 & (SACKED | LOST | DELIVERED) | if segment.has(LOST) { RESENT } else { 0 };
        *segment = Segment(now << STATE_BITS | state | AGAIN);
        self.resent += u32::from(counts);
        self.repaired = self.repaired.max(seq + 1);
        self.marked = self.marked.max(seq + 1);
    }

    /// Everything below `ack` has arrived.
    #[inline]
    pub(crate) fn acked(&mut self, ack: u32) -> Newly {
        let mut newly = Newly::default();
        while self.una < ack && self.segments.len() > 0 {
            let segment = self.segments.pop();
            self.una += 1;
            if segment.0 & (SACKED | LOST | DELIVERED) == 0 {
                newly.packets += 1;
            } else {
                newly.packets += u32::from(!segment.has(DELIVERED));
                self.sacked -= u32::from(segment.has(SACKED));
                self.lost -= u32::from(segment.has(LOST));
                self.resent -= u32::from(segment.has(RESENT));
            }
            // The packet that filled a hole was sent after those that waited behind it.
            let sent_at = segment.sent_at();
            if sent_at >= newly.sent_at {
                newly.newest = self.una - 1;
                newly.sent_at = sent_at;
                newly.once = !segment.has(AGAIN | DELIVERED);
            }
            newly.changed = true;
        }
        newly
    }

    /// The packets of an acknowledgement's blocks have arrived: first numbers, and one past the last.
    pub(crate) fn sack(&mut self, blocks: &[(u32, u32)]) -> Newly {
        // A new block comes first and moves the others one place on.
        let before = self.seen;
        let mut newly = Newly::default();
        let high = self.high();
        for (place, &block) in blocks.iter().enumerate() {
            let end = block.1.min(high);
            let old = before.iter().find(|seen| seen.0 == block.0 && seen.1 <= end);
            let start = old.map_or(block.0, |seen| seen.1).max(self.una);
            if start < end {
                newly = newly.and(self.sack_range(start, end));
            }
            self.seen[place] = (block.0, end);
        }
        newly
    }

    fn sack_range(&mut self, start: u32, end: u32) -> Newly {
        let mut newly = Newly::default();
        for seq in start..end {
            let segment = self.segment(seq);
            let was = *segment;
            if was.has(SACKED) {
                continue;
            }
            segment.0 = was.0 & !(LOST | RESENT) | SACKED | DELIVERED;
            self.sacked += 1;
            self.lost -= u32::from(was.has(LOST));
            self.resent -= u32::from(was.has(RESENT));
            newly.changed = true;
            newly.packets += u32::from(!was.has(DELIVERED));
            if was.sent_at() >= newly.sent_at {
                newly.newest = seq;
                newly.sent_at = was.sent_at();
                newly.once = !was.has(AGAIN);
            }
            self.raise(seq + 1);
        }
        self.marked = self.marked.max(end);
        newly
    }

    fn raise(&mut self, mut above: u32) {
        for top in &mut self.top {
            (*top, above) = (above.max(*top), above.min(*top));
        }
    }

    /// One past the highest packet SACKed.
    pub(crate) fn highest_sacked(&self) -> u32 {
        self.top[0]
    }

    /// Marks as lost every hole with enough packets SACKed above it (RFC 6675's IsLost). Returns
    /// how many are new, and when the newest of them was sent.
    pub(crate) fn find_lost(&mut self) -> (u32, u64) {
        let threshold = self.top[DUP_THRESH as usize - 1];
        self.mark_lost_below(threshold.saturating_sub(1))
    }

    /// Marks every hole below `bound` as lost.
    pub(crate) fn mark_lost_below(&mut self, bound: u32) -> (u32, u64) {
        let (mut found, mut newest) = (0, 0);
        let bound = bound.min(self.high());
        for seq in self.swept.max(self.una)..bound {
            let segment = self.segment(seq);
            if !segment.has(SACKED | LOST) {
                segment.0 |= LOST;
                newest = newest.max(segment.sent_at());
                found += 1;
            }
        }
        self.swept = self.swept.max(bound);
        self.marked = self.marked.max(bound);
        self.lost += found;
        (found, newest)
    }

    /// Marks every packet that is not SACKed as lost and in need of another transmission.
    pub(crate) fn lose_all(&mut self) {
        for seq in self.una..self.high() {
            let segment = self.segment(seq);
            if !segment.has(SACKED) {
                segment.0 = segment.0 & !RESENT | LOST;
            }
        }
        self.lost = self.outstanding() - self.sacked;
        self.resent = 0;
        self.repaired = self.una;
        self.swept = self.high();
        self.marked = self.high();
    }

    /// The receiver names packets `range.0 .. range.1` as lost, for the first time or again. Returns
    /// how many of them count, and when the newest was sent.
    pub(crate) fn lose(&mut self, range: (u32, u32)) -> (u32, u64) {
        let (mut found, mut newest) = (0, 0);
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
            newest = newest.max(was.sent_at());
            found += 1;
        }
        self.repaired = self.repaired.min(range.0);
        (found, newest)
    }

    /// The first lost packet that was not sent again.
    pub(crate) fn next_lost(&mut self) -> Option<u32> {
        if self.lost == self.resent {
            return None;
        }
        let found = (self.repaired.max(self.una)..self.high()).find(|&seq| {
            let segment = *self.segment(seq);
            segment.has(LOST) && !segment.has(RESENT)
        });
        self.repaired = found.unwrap_or(self.repaired);
        found
    }

    /// The first packet at or above those sent again that is not SACKed and has a SACKed one above.
    pub(crate) fn next_hole(&mut self) -> Option<u32> {
        let bound = self.top[0].min(self.high());
        let found =
            (self.repaired.max(self.una)..bound).find(|&seq| !self.segment(seq).has(SACKED));
        self.repaired = self.repaired.max(found.unwrap_or(bound));
        found
    }

    /// Forgets what was SACKed and lost: ns-2 does outside recovery, and everybody may after a
    /// timeout (RFC 2018 section 8).
    pub(crate) fn forget(&mut self) {
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
    use proptest::prelude::*;

    fn board(packets: u32) -> Scoreboard {
        let mut board = Scoreboard::new();
        (0..packets).for_each(|at| board.sent(u64::from(at)));
        board
    }

    #[test]
    fn three_packets_above_make_a_hole_a_loss() {
        let mut board = board(10);
        board.sack(&[(2, 4)]);
        assert_eq!(board.find_lost(), (0, 0));
        board.sack(&[(2, 5)]);
        assert_eq!(board.find_lost(), (2, 1));
        assert_eq!((board.in_flight(), board.lost(), board.sacked()), (5, 2, 3));
        assert_eq!(board.next_lost(), Some(0));
        board.resent(20, 0);
        assert_eq!(board.next_lost(), Some(1));
        assert_eq!(board.in_flight(), 6);
        let newly = board.acked(1);
        assert_eq!((newly.packets, newly.once, newly.sent_at), (1, false, 20));
        assert_eq!(board.in_flight(), 5);
    }

    /// Packets 1 to 3 arrived and waited for packet 0: they say nothing of the round trip.
    #[test]
    fn what_waited_behind_a_hole_is_not_timed() {
        let mut board = board(4);
        board.resent(50, 0);
        let newly = board.acked(4);
        assert_eq!((newly.packets, newly.once, newly.sent_at), (4, false, 50));
        // What was sent after the repair is.
        board.sent(60);
        board.sent(61);
        board.resent(70, 4);
        board.sent(71);
        let newly = board.acked(7);
        assert_eq!((newly.packets, newly.once, newly.sent_at), (3, true, 71));
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
                    5 => if seq == 0 { board.lose_all() },
                    6 => { board.lose((board.una() + seq, board.una() + seq + length)); }
                    _ => {
                        board.forget();
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
