//! What a program gave to a law that is a text: `struct law_event` of `kernel/law_connection.h`, which
//! follows the `struct event`.

use cwnd::{Context, Dur, Rtt, Signal, Time};

/// The members of `struct law_event` after `struct event`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Given {
    /// The time in nanoseconds.
    now: u64,
    /// The smoothed, the smallest and the latest round-trip time in nanoseconds; [`NONE`] without a
    /// sample.
    rtt: [u64; 3],
    /// The time of the last cut in nanoseconds.
    last_cut: u64,
    /// The packet size in bytes.
    packet: u32,
    slow_start: bool,
    /// In nanoseconds: the time of the receiver's clock, the length of a round, or when the newest
    /// lost packet was sent.
    pub(super) time: u64,
    /// The number of the event of its connection, from 1 on.
    pub(super) number: u32,
    /// Packets reported as marked.
    pub(super) marked: u32,
    /// Why the law cut.
    pub(super) why: Signal,
    /// Whether the law left slow start, or a new congestion period began.
    pub(super) answer: bool,
}

/// No value.
const NONE: u64 = u64::MAX;

impl Given {
    const SIZE: usize = 88;

    /// Parses the bytes after a `struct event`; `None` if they are none of a text.
    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Given> {
        let bytes: &[u8; Self::SIZE] = bytes.try_into().ok()?;
        let u64_at = |n: usize| u64::from_ne_bytes(std::array::from_fn(|k| bytes[8 * n + k]));
        let u32_at = |n: usize| u32::from_ne_bytes(std::array::from_fn(|k| bytes[72 + 4 * n + k]));
        Some(Given {
            now: u64_at(0),
            rtt: [u64_at(1), u64_at(2), u64_at(3)],
            last_cut: u64_at(4),
            packet: u64_at(6) as u32,
            slow_start: u64_at(7) != 0,
            time: u64_at(8),
            number: u32_at(0),
            marked: u32_at(1),
            why: *Signal::ALL.get(u32_at(2) as usize)?,
            answer: u32_at(3) != 0,
        })
    }

    /// The context that the law was given.
    pub(super) fn context(&self) -> Context {
        let [smoothed, min, latest] = self.rtt.map(Dur::from_nanos);
        let rtt = (self.rtt[0] != NONE).then(|| {
            let mut rtt = Rtt::first(latest);
            // Without a sample it is `Dur::MAX`, as in the machine.
            (rtt.smoothed, rtt.min) = (smoothed, min);
            rtt
        });
        let mut cx = Context::new(Time::from_nanos(self.now), rtt);
        cx.last_cut = Time::from_nanos(self.last_cut);
        (cx.packet, cx.slow_start) = (self.packet, self.slow_start);
        cx
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_the_kernel_has_given() {
        let mut bytes = [0; Given::SIZE];
        let words = [7_000_000_u64, 40_000, NONE, 41_000, 5_000_000, 0, 1500, 1, 9];
        for (word, number) in bytes.chunks_exact_mut(8).zip(words) {
            word.copy_from_slice(&number.to_ne_bytes());
        }
        for (at, number) in [(72, 3_u32), (76, 4), (80, 2), (84, 1)] {
            bytes[at..at + 4].copy_from_slice(&number.to_ne_bytes());
        }
        let given = Given::from_bytes(&bytes).unwrap();
        assert_eq!((given.time, given.number, given.marked), (9, 3, 4));
        assert_eq!((given.why, given.answer), (Signal::Timeout, true));
        let cx = given.context();
        assert_eq!(
            (cx.now, cx.last_cut),
            (Time::from_nanos(7_000_000), Time::from_nanos(5_000_000))
        );
        assert_eq!((cx.packet, cx.slow_start), (1500, true));
        let rtt = cx.rtt.unwrap();
        assert_eq!((rtt.smoothed, rtt.min), (Dur::from_micros(40), Dur::MAX));
        assert_eq!(rtt.latest, Dur::from_micros(41));
        bytes[8..16].copy_from_slice(&NONE.to_ne_bytes());
        assert_eq!(Given::from_bytes(&bytes).unwrap().context().rtt, None);
        assert_eq!(Given::from_bytes(&bytes[1..]), None);
    }
}
