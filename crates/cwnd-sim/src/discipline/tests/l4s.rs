//! DualPI2 with sources that respond: the purpose of the coupled queues (RFC 9332 section 1), and
//! its overload (appendix A.2).

use super::*;
use std::collections::BTreeMap;

/// The transmitter needs this time for a packet of 1000 bytes: 40 Mb/s.
const PACKET: u64 = MS / 5;
/// Round-trip time without queues.
const RTT: u64 = 10 * MS;

/// A window law with additive increase and its signal.
#[derive(Default)]
struct Source {
    /// The ECN field of its packets.
    ecn: u16,
    /// DCTCP's estimate of the marked fraction (RFC 8257 section 3.3); `None` for Reno, which
    /// halves its window.
    alpha: Option<f64>,
    window: f64,
    next: u32,
    in_flight: u32,
    /// Packets acknowledged, and those of them that were marked, since `round` was sent.
    acked: (f64, f64),
    round: u32,
    /// Packets before this one belong to the round of the last reduction.
    reduced: u32,
    /// Sums from the middle of the run on.
    delays: f64,
    windows: f64,
    delivered: u32,
    dropped: u32,
}

impl Source {
    fn new(ecn: u16, alpha: Option<f64>) -> Self {
        Source { ecn, alpha, window: 10.0, ..Source::default() }
    }

    fn scalable() -> Self {
        Source::new(ECT1, Some(1.0))
    }

    fn reno() -> Self {
        Source::new(0, None)
    }

    /// Handles the end of a packet's round trip, with a congestion signal or without one.
    fn acknowledge(&mut self, seq: u32, signal: bool) {
        self.in_flight -= 1;
        self.acked = (self.acked.0 + 1.0, self.acked.1 + f64::from(u8::from(signal)));
        if let Some(alpha) = &mut self.alpha
            && seq >= self.round
        {
            *alpha += (self.acked.1 / self.acked.0 - *alpha) / 16.0;
            (self.acked, self.round) = ((0.0, 0.0), self.next);
        }
        if !signal {
            self.window += 1.0 / self.window;
        } else if seq >= self.reduced {
            self.window = (self.window * (1.0 - self.alpha.unwrap_or(1.0) / 2.0)).max(2.0);
            self.reduced = self.next;
        }
    }
}

/// Runs the sources over a DualPI2 for this time in seconds. Returns the fraction of the second
/// half in which the transmitter was busy.
fn share_link(sources: &mut [Source], seconds: u64) -> f64 {
    let end = seconds * 1000 * MS;
    let mut queue = DualPi2Queue::new(&DualPi2 { mtu: 1000, ..dualpi2() }, clock());
    let mut effects = Effects::default();
    // Ends of round trips: source, packet and whether it was marked or dropped.
    let mut acks = BTreeMap::new();
    let mut order = 0u64;
    let (mut now, mut idle_at, mut sent) = (0, 0, 0);
    while now < end {
        for (flow, source) in (0..).zip(&mut *sources) {
            while f64::from(source.in_flight) < source.window {
                let packet = Packet::new(source.next, flow, 0, 1000, source.ecn);
                (source.next, source.in_flight) = (source.next + 1, source.in_flight + 1);
                if idle_at <= now && queue.occupancy().packets == 0 {
                    queue.bypass(now);
                }
                queue.enqueue(Queued { packet, enqueued_at: now }, flow, &mut effects);
            }
        }
        let departed = if idle_at <= now { queue.dequeue(now, &mut effects) } else { None };
        let counts = 2 * now >= end;
        if let Some(queued) = departed {
            idle_at = now + PACKET;
            sent += u64::from(counts);
            let source = &mut sources[queued.packet.hop() as usize];
            let marked = queued.packet.flags() & flags::CE != 0;
            if counts {
                source.delays += queued.sojourn(now) as f64 / 1e6;
                source.windows += source.window;
                source.delivered += 1;
            }
            order += 1;
            acks.insert((idle_at + RTT, order), (queued.packet, marked));
        }
        for queued in effects.dropped.drain(..) {
            sources[queued.packet.hop() as usize].dropped += u32::from(counts);
            order += 1;
            acks.insert((now + RTT, order), (queued.packet, true));
        }
        let ack = acks.first_key_value().map_or(u64::MAX, |(&(at, _), _)| at);
        now = if queue.occupancy().packets > 0 { ack.min(idle_at) } else { ack };
        while let Some(entry) = acks.first_entry().filter(|entry| entry.key().0 <= now) {
            let (packet, signal) = entry.remove();
            sources[packet.hop() as usize].acknowledge(packet.seq(), signal);
        }
    }
    (sent * PACKET) as f64 / (end / 2) as f64
}

#[test]
fn l4s_packets_do_not_wait_for_classic_ones() {
    let mut sources = [Source::scalable(), Source::scalable(), Source::reno(), Source::reno()];
    let busy = share_link(&mut sources, 60);
    let (l4s, classic) = sources.split_at(2);
    // The L4S queue is below its threshold of 0.8 ms, and the Classic queue at its target.
    let delay = |source: &Source| source.delays / f64::from(source.delivered);
    assert!(l4s.iter().all(|source| delay(source) < 0.8), "{:?}", [delay(&l4s[0]), delay(&l4s[1])]);
    for source in classic {
        assert!((delay(source) - 15.0).abs() < 1.0, "{}", delay(source));
    }
    // Only Classic packets are dropped, and the link is used as with one queue.
    assert!(l4s.iter().all(|source| source.dropped == 0));
    assert!(classic.iter().all(|source| source.dropped > 50));
    assert!(busy > 0.999, "{busy}");
    // Section 2.1: with k = 2, windows are about equal. Reno's is sqrt(3/2) / p', that of DCTCP 2 /
    // (k p').
    let window = |source: &Source| source.windows / f64::from(source.delivered);
    let ratio = (window(&classic[0]) + window(&classic[1])) / (window(&l4s[0]) + window(&l4s[1]));
    assert!((ratio - 1.5f64.sqrt()).abs() < 0.15, "{ratio}");
}

#[test]
fn scalable_sources_alone_have_a_short_queue() {
    let mut sources = [Source::scalable(), Source::scalable()];
    let busy = share_link(&mut sources, 20);
    for source in &sources {
        let delay = source.delays / f64::from(source.delivered);
        assert!(delay < 1.0 && source.dropped == 0, "{delay} {}", source.dropped);
    }
    assert!(busy > 0.99, "{busy}");
}

#[test]
fn an_unresponsive_source_in_the_l4s_queue_is_kept_to_the_target() {
    let (dropped, mean, sent) = overload(&mut DualPi2Queue::new(&dualpi2(), clock()), ECT1);
    // Appendix A.2: the base controller drops L4S packets at p'^2 and marks the rest.
    // The controller sees the first packet up to the time of one packet before its departure.
    assert!((15.0..16.0).contains(&mean), "{mean} ms");
    assert!(dropped > 13_000, "{dropped}");
    assert!(sent.iter().all(|bits| bits & flags::CE != 0));
}

#[test]
fn a_packet_of_the_largest_size_must_fit() {
    // Figure 3, line 2: the limit does not depend on the size of the packet.
    let limited = DualPi2 { limit: QueueLimit::Bytes(3000), ..dualpi2() };
    let accepts = |queued: u16, size| {
        let mut queue = DualPi2Queue::new(&limited, clock());
        let mut effects = Effects::default();
        queue.enqueue(packet(0, queued, 0, 0), 0, &mut effects);
        queue.enqueue(packet(1, size, 0, 0), 0, &mut effects);
        effects.dropped.is_empty()
    };
    assert!(accepts(1500, 1500) && accepts(1500, 100));
    assert!(!accepts(1501, 1500) && !accepts(1501, 100));
}

#[test]
fn the_l4s_queue_is_served_first_on_an_idle_link() {
    let mut queue = DualPi2Queue::new(&dualpi2(), clock());
    let mut effects = Effects::default();
    let mut serves_l4s = |idle: bool, queue: &mut DualPi2Queue| {
        if idle {
            queue.bypass(0);
        }
        queue.enqueue(packet(0, 1500, 0, 0), 0, &mut effects);
        queue.enqueue(packet(0, 1500, ECT1, 0), 1, &mut effects);
        let first = queue.dequeue(0, &mut effects).unwrap().packet.flags() & flags::ECT1 != 0;
        queue.dequeue(0, &mut effects).unwrap();
        first
    };
    // While the link is busy, the Classic queue is due after some packets of the L4S queue.
    let busy: Vec<_> = (0..20).map(|_| serves_l4s(false, &mut queue)).collect();
    assert!(busy.contains(&false));
    assert!((0..20).all(|_| serves_l4s(true, &mut queue)));
}
