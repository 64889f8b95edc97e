//! What happened to a window in the kernel: `struct event` of `kernel/trace.h`.

/// What an event is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The law was given a connection.
    Begin,
    /// And left it.
    End,
    /// An acknowledgement, in any phase.
    Acked,
    /// The kernel's slow start grew the window.
    Slow,
    /// The law grew the window.
    Grow,
    /// Congestion avoidance begins.
    Enter,
    /// A round is over and its losses are known.
    Round,
    /// The law cut the window or the rate.
    Cut,
    /// That cut was a timeout's, and is made again.
    Timeout,
    /// That cut is taken back.
    Undo,
    /// A rate law was told the arrival rate of an interval.
    Report,
    /// It raised its rate.
    Tick,
    /// It left slow start.
    Start,
}

const KINDS: [Kind; 13] = [
    Kind::Begin,
    Kind::End,
    Kind::Acked,
    Kind::Slow,
    Kind::Grow,
    Kind::Enter,
    Kind::Round,
    Kind::Cut,
    Kind::Timeout,
    Kind::Undo,
    Kind::Report,
    Kind::Tick,
    Kind::Start,
];

/// Packets of a window in the kernel's fixed point.
pub fn packets(window: u64) -> f64 {
    window as f64 / 2f64.powi(40)
}

/// Packets per second of a rate in the kernel's fixed point.
pub fn per_second(rate: u64) -> f64 {
    rate as f64 / 2f64.powi(24)
}

/// One event of one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Nanoseconds of CLOCK_MONOTONIC.
    pub at: u64,
    /// The same for all of a connection.
    pub flow: u64,
    /// The window (Q40 packets) or rate (Q24 packets per second) before.
    pub before: u64,
    /// The same after.
    pub after: u64,
    /// A rate law's arrival rate, Q24 packets per second.
    pub arrival: u64,
    /// Its estimate of the capacity, Q24 packets per second.
    pub capacity: u64,
    /// What happened.
    pub kind: Kind,
    /// Packets that arrived, or to grow for; of an undo, whether the law is taken back too.
    pub packets: u32,
    /// Packets sent since the connection began; of a round, in it.
    pub sent: u32,
    /// Packets lost since the connection began; of a round, in it.
    pub lost: u32,
    /// The round-trip time in microseconds; 0 without a sample.
    pub rtt: u32,
    /// The smallest one; 0 without a sample.
    pub min_rtt: u32,
    /// Packets in flight.
    pub in_flight: u32,
    /// The kernel's window in packets.
    pub cwnd: u32,
    /// The kernel's threshold of slow start; of a cut, whether it was in slow start.
    pub ssthresh: u32,
    /// The receiver's timestamp, in milliseconds of its clock.
    pub stamp: u32,
    /// Bytes of a packet, with its headers.
    pub bytes: u32,
    /// The peer's IPv4 address; its first byte comes first.
    pub peer: [u8; 4],
    /// The port here.
    pub port: u16,
    /// The port of the peer.
    pub peer_port: u16,
    /// Whether the window was what kept the sender from sending more.
    pub limited: bool,
    /// Packets sent again since the connection began.
    pub retransmitted: u32,
    /// Packets that arrived since the connection began.
    pub delivered: u32,
}

impl Event {
    const SIZE: usize = 112;

    /// Reads one; `None` for what is none.
    pub fn read(bytes: &[u8]) -> Option<Event> {
        let bytes: &[u8; Self::SIZE] = bytes.get(..Self::SIZE)?.try_into().ok()?;
        let long = |n: usize| u64::from_ne_bytes(std::array::from_fn(|k| bytes[8 * n + k]));
        let word = |n: usize| u32::from_ne_bytes(std::array::from_fn(|k| bytes[48 + 4 * n + k]));
        Some(Event {
            at: long(0),
            flow: long(1),
            before: long(2),
            after: long(3),
            arrival: long(4),
            capacity: long(5),
            kind: *KINDS.get(word(0) as usize)?,
            packets: word(1),
            sent: word(2),
            lost: word(3),
            rtt: word(4),
            min_rtt: word(5),
            in_flight: word(6),
            cwnd: word(7),
            ssthresh: word(8),
            stamp: word(9),
            bytes: word(10),
            peer: [bytes[92], bytes[93], bytes[94], bytes[95]],
            port: u16::from_ne_bytes([bytes[96], bytes[97]]),
            peer_port: u16::from_be_bytes([bytes[98], bytes[99]]),
            limited: word(13) != 0,
            retransmitted: word(14),
            delivered: word(15),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_the_kernel_writes() {
        let mut bytes = vec![0; Event::SIZE];
        bytes[16..24].copy_from_slice(&(5_u64 << 40).to_ne_bytes());
        bytes[48..52].copy_from_slice(&4_u32.to_ne_bytes());
        bytes[92..96].copy_from_slice(&[10, 77, 0, 2]);
        bytes[98..100].copy_from_slice(&5201_u16.to_be_bytes());
        let event = Event::read(&bytes).unwrap();
        assert_eq!((event.kind, packets(event.before)), (Kind::Grow, 5.0));
        assert_eq!((event.peer, event.peer_port), ([10, 77, 0, 2], 5201));
        assert_eq!(Event::read(&bytes[1..]), None);
        bytes[48] = 99;
        assert_eq!(Event::read(&bytes), None);
    }
}
