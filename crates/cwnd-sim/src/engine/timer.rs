//! The entries of a timer in the event queue.

use super::schedule::NONE;

/// A timer's two known entries in the event queue. The queue cannot remove an entry, so that a
/// timer that moves to a later time keeps its entry, and its owner arms it again when it expires.
/// The second entry is usually that of the retransmission timer, behind the departure of a paced
/// packet: without it, each departure would leave an entry behind.
#[derive(Clone, Copy)]
pub(super) struct Timer {
    /// The earliest entry; [`NONE`] without one.
    first: u64,
    /// A later entry; [`NONE`] without one.
    second: u64,
}

impl Timer {
    pub(super) const IDLE: Timer = Timer { first: NONE, second: NONE };

    /// Time of the earliest entry; [`NONE`] without one.
    #[inline(always)]
    pub(super) fn first(self) -> u64 {
        self.first
    }

    /// Arms the timer to expire at `at` at the latest. Returns whether this needs a new entry.
    #[inline(always)]
    pub(super) fn arm(&mut self, at: u64) -> bool {
        let earlier = at < self.first;
        if earlier {
            (self.first, self.second) = (at, self.first);
        }
        earlier
    }

    /// An entry at `now` was removed from the event queue. Returns whether the timer expires:
    /// otherwise the entry is one that the timer has replaced by earlier ones.
    #[inline(always)]
    pub(super) fn expire(&mut self, now: u64) -> bool {
        let expires = self.first == now;
        if expires {
            (self.first, self.second) = (self.second, NONE);
        }
        expires
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::cmp::Reverse;
    use std::collections::BinaryHeap;

    /// A timer and its entries in an event queue.
    struct Queued {
        timer: Timer,
        entries: BinaryHeap<Reverse<u64>>,
    }

    impl Queued {
        fn new() -> Self {
            Queued { timer: Timer::IDLE, entries: BinaryHeap::new() }
        }

        fn arm(&mut self, at: u64) {
            if self.timer.arm(at) {
                self.entries.push(Reverse(at));
            }
        }

        /// Removes the next entry. Returns its time and whether the timer expires.
        fn next(&mut self) -> Option<(u64, bool)> {
            let Reverse(now) = self.entries.pop()?;
            Some((now, self.timer.expire(now)))
        }
    }

    #[test]
    fn departures_before_a_timeout_leave_no_entries_behind() {
        let mut timer = Queued::new();
        timer.arm(1000);
        for departure in 1..1000 {
            timer.arm(departure);
            assert_eq!(timer.next(), Some((departure, true)));
            timer.arm(1000 + departure);
        }
        assert_eq!(timer.entries.len(), 1);
    }

    proptest! {
        /// An owner that arms the timer again when it expires too early loses no deadline.
        #[test]
        fn a_timer_expires_at_its_deadline(steps in proptest::collection::vec((any::<bool>(), 1u64..50), 0..200)) {
            let (mut timer, mut now, mut deadline) = (Queued::new(), 0, NONE);
            for (arms, delay) in steps {
                if arms {
                    deadline = now + delay;
                    timer.arm(deadline);
                } else if let Some((at, expires)) = timer.next() {
                    prop_assert!(at <= deadline);
                    now = at;
                    if expires && at == deadline {
                        deadline = NONE;
                    } else if expires && deadline != NONE {
                        timer.arm(deadline);
                    }
                }
                prop_assert!(timer.timer.first() <= deadline);
            }
        }
    }
}
