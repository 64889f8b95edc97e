//! What a program gave to a law that is a text: `struct law_event` of `kernel/law_connection.h`, which
//! follows the `struct event`.

use super::event::Event;
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

/// Whether the event follows the one of number `last` of its connection.
pub(super) fn follows(event: &Event, last: u32) -> bool {
    event.given.is_none_or(|given| given.number == last.wrapping_add(1))
}
