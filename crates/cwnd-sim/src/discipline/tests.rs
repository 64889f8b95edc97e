//! Disciplines in front of a transmitter.

use super::*;
use crate::clock::Clock;
use crate::packet::{Packet, flags};
use crate::rng::Rng;
use cwnd::Dur;
use proptest::prelude::*;
use std::ops::Range;

mod flow_queues;
mod l4s;

pub(super) const MS: u64 = 1_000_000;

/// A clock whose ticks are nanoseconds.
pub(super) fn clock() -> Clock {
    Clock::new(Dur::from_nanos((1 << 40) - 1), 41).unwrap()
}

fn defaults<T>(new: fn(&QueueTable, &LinkUse) -> Checked<T>) -> T {
    let link = LinkUse { rate: None, rtt: None, packet: 1500 };
    new(&QueueTable::default(), &link).unwrap()
}

fn codel(ecn: bool) -> Codel {
    Codel { ecn, ..defaults(Codel::new) }
}

fn fq_codel(codel: Codel) -> FqCodel {
    FqCodel { codel, ..defaults(FqCodel::new) }
}

fn fq() -> Fq {
    Fq { limit: QueueLimit::Packets(1000), ..defaults(Fq::new) }
}

pub(super) fn pie() -> Pie {
    Pie { ecn: true, ..defaults(Pie::new) }
}

fn dualpi2() -> DualPi2 {
    DualPi2 { limit: QueueLimit::Packets(1000), alpha: 0.15, beta: 3.0, ..defaults(DualPi2::new) }
}

/// All disciplines with this limit.
fn all(limit: QueueLimit) -> Vec<Box<dyn Discipline>> {
    let codel = |ecn| Codel { limit, ..codel(ecn) };
    let few = FqCodel { flows: 2, ..fq_codel(codel(false)) };
    let marking = FqCodel { ce_threshold: Some(Dur::from_millis(1)), ..fq_codel(codel(true)) };
    let rng = Rng::new(1, "pie", 0);
    vec![
        Box::new(CodelQueue::new(&codel(false), clock())),
        Box::new(CodelQueue::new(&codel(true), clock())),
        Box::new(FqCodelQueue::new(&few, clock(), 1)),
        Box::new(FqCodelQueue::new(&marking, clock(), 2)),
        Box::new(FqQueue::new(&Fq { limit, ..fq() }, clock(), 3)),
        Box::new(PieQueue::new(&Pie { limit, ..pie() }, clock(), rng)),
        Box::new(DualPi2Queue::new(&DualPi2 { limit, ..dualpi2() }, clock())),
    ]
}

fn packet(number: u32, size: u16, flags: u16, at: u64) -> Queued {
    Queued { packet: Packet::new(number, 0, 0, size, flags), enqueued_at: at }
}

/// Passes packets of a flow with these numbers at time 0. Returns those that are dropped.
fn fill(queue: &mut dyn Discipline, numbers: Range<u32>, size: u16, flow: u32) -> Vec<Packet> {
    let mut effects = Effects::default();
    for number in numbers {
        queue.enqueue(packet(number, size, 0, 0), flow, &mut effects);
    }
    effects.dropped.iter().map(|queued| queued.packet).collect()
}

/// The packet that is sent next.
fn send(queue: &mut dyn Discipline, now: u64) -> Packet {
    queue.dequeue(now, &mut Effects::default()).unwrap().packet
}

const ECT1: u16 = flags::ECT | flags::ECT1;

/// An arriving packet.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    gap: u64,
    size: u16,
    flow: u32,
    flags: u16,
}

fn arrivals() -> impl Strategy<Value = Vec<Arrival>> {
    let gap = prop_oneof![6 => 0..2 * MS, 2 => Just(0), 1 => 0..400 * MS];
    let size = prop_oneof![3 => Just(1500u16), 1 => 40u16..=1500];
    let ecn = prop_oneof![Just(0), Just(flags::ECT), Just(ECT1), Just(flags::ECT | flags::CE),];
    let arrival = (gap, size, 0u32..6, ecn).prop_map(|(gap, size, flow, flags)| Arrival {
        gap,
        size,
        flow,
        flags,
    });
    prop::collection::vec(arrival, 1..600)
}

/// The fates of packets.
#[derive(Default)]
struct Run {
    sent: Vec<(u64, Queued)>,
    dropped: usize,
    effects: Effects,
    /// Time integral of the queue length, and the sum of the waits of packets that have left the
    /// queue.
    area: u64,
    waits: u64,
    last: u64,
}

impl Run {
    fn pass(&mut self, queue: &dyn Discipline, now: u64) {
        self.area += (now - self.last) * queue.occupancy().packets as u64;
        self.last = now;
    }

    fn count_drops(&mut self, now: u64) {
        for queued in self.effects.dropped.drain(..) {
            self.dropped += 1;
            self.waits += now - queued.enqueued_at;
        }
    }

    fn take(&mut self, queue: &mut dyn Discipline, now: u64) -> Option<u64> {
        self.pass(queue, now);
        let sent = queue.dequeue(now, &mut self.effects);
        self.count_drops(now);
        // Work conservation: nothing is sent only if nothing is left.
        assert!(sent.is_some() || queue.occupancy().packets == 0);
        let queued = sent?;
        self.waits += now - queued.enqueued_at;
        self.sent.push((now, queued));
        Some(u64::from(queued.packet.size()))
    }
}

/// Passes packets to a queue before a transmitter that needs this many nanoseconds for a byte.
fn run(queue: &mut dyn Discipline, arrivals: &[Arrival], per_byte: u64) -> Run {
    let mut run = Run::default();
    let (mut now, mut busy) = (0, 0);
    for (number, arrival) in (0..).zip(arrivals) {
        now += arrival.gap;
        while busy < now && queue.occupancy().packets > 0 {
            let at = busy;
            busy = at + run.take(queue, at).unwrap_or(0) * per_byte;
        }
        run.pass(queue, now);
        let queued = packet(number, arrival.size, arrival.flags, now);
        queue.enqueue(queued, arrival.flow, &mut run.effects);
        run.count_drops(now);
        if busy < now {
            busy = now + run.take(queue, now).unwrap_or(0) * per_byte;
        }
    }
    run
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn packets_and_time_are_conserved(
        arrivals in arrivals(),
        per_byte in 100u64..2000,
        limit in prop_oneof![(1u32..200).prop_map(QueueLimit::Packets), (1500u64..200_000).prop_map(QueueLimit::Bytes)],
    ) {
        for (kind, mut queue) in all(limit).into_iter().enumerate() {
            let run = run(queue.as_mut(), &arrivals, per_byte);
            let (mut left, mut bytes, mut waits) = (0, 0, 0);
            queue.visit(&mut |queued| {
                left += 1;
                bytes += u64::from(queued.packet.size());
                waits += run.last - queued.enqueued_at;
            });
            let occupancy = queue.occupancy();
            prop_assert_eq!((occupancy.packets, occupancy.bytes), (left, bytes), "{}", kind);
            prop_assert_eq!(arrivals.len(), run.sent.len() + run.dropped + left, "{}", kind);
            // Little's law.
            prop_assert_eq!(run.area, run.waits + waits, "{}", kind);
            match limit {
                QueueLimit::Packets(most) => prop_assert!(left <= most as usize),
                QueueLimit::Bytes(most) => prop_assert!(bytes <= most),
            }
            let mut newest = [None; 12];
            let mut marks = 0;
            for (_, queued) in &run.sent {
                let arrival = arrivals[queued.packet.seq() as usize];
                let marked = queued.packet.flags() & !arrival.flags;
                prop_assert!(marked == 0 || marked == flags::CE && arrival.flags & flags::ECT != 0);
                marks += u64::from(marked != 0);
                // Packets of a flow keep their order, in each of DualPI2's queues.
                let l4s = arrival.flags & (flags::ECT1 | flags::CE) != 0;
                let stream = &mut newest[2 * arrival.flow as usize + usize::from(l4s)];
                prop_assert!(*stream < Some(queued.packet.seq()));
                *stream = Some(queued.packet.seq());
            }
            prop_assert!(marks <= run.effects.marks);
        }
    }

    /// Updates at their times and updates made up for at the next packet are the same.
    #[test]
    fn late_updates_are_those_of_a_timer(arrivals in arrivals(), per_byte in 100u64..2000) {
        #[derive(Clone)]
        struct Stepped<D>(D, u64, fn(&mut D, u64));
        impl<D: Discipline> Stepped<D> {
            fn step(&mut self, now: u64) {
                while self.1 <= now {
                    (self.2)(&mut self.0, self.1);
                    self.1 += 15 * MS;
                }
            }
        }
        impl<D: Discipline + Clone> Discipline for Stepped<D> {
            fn enqueue(&mut self, queued: Queued, flow: u32, effects: &mut Effects) {
                self.step(queued.enqueued_at);
                self.0.enqueue(queued, flow, effects);
            }
            fn dequeue(&mut self, now: u64, effects: &mut Effects) -> Option<Queued> {
                self.step(now);
                self.0.dequeue(now, effects)
            }
            fn visit(&self, each: &mut dyn FnMut(&Queued)) {
                self.0.visit(each);
            }
            fn occupancy(&self) -> super::Occupancy {
                self.0.occupancy()
            }
        }
        let new_pie = || PieQueue::new(&pie(), clock(), Rng::new(1, "pie", 0));
        let new_dualpi2 = || DualPi2Queue::new(&dualpi2(), clock());
        let fates = |queue: &mut dyn Discipline| {
            let run = run(queue, &arrivals, per_byte);
            let sent = run.sent.iter().map(|(at, queued)| (*at, queued.packet.seq(), queued.packet.flags()));
            (sent.collect::<Vec<_>>(), run.dropped, run.effects.marks)
        };
        let first = 15 * MS;
        prop_assert_eq!(fates(&mut new_pie()), fates(&mut Stepped(new_pie(), first, PieQueue::update)));
        prop_assert_eq!(
            fates(&mut new_dualpi2()),
            fates(&mut Stepped(new_dualpi2(), first, DualPi2Queue::update)),
        );
    }
}

/// A queue of 200 packets that gets a packet every millisecond, and sends one: the sojourn time
/// stays 200 ms unless packets are dropped.
fn standing(queue: &mut dyn Discipline, ecn: u16, seconds: u64) -> (Vec<u64>, Vec<u64>) {
    let mut effects = Effects::default();
    let (mut drops, mut marks) = (Vec::new(), Vec::new());
    for number in 0..200 {
        queue.enqueue(packet(number, 1500, ecn, 0), 0, &mut effects);
    }
    for step in 1..=1000 * seconds {
        let now = step * MS;
        queue.enqueue(packet(0, 1500, ecn, now), 0, &mut effects);
        let sent = queue.dequeue(now, &mut effects);
        drops.extend(effects.dropped.drain(..).map(|_| step));
        marks.extend(sent.filter(|queued| queued.packet.flags() & flags::CE != 0).map(|_| step));
    }
    (drops, marks)
}

#[test]
fn codel_drops_by_the_control_law() {
    // The sojourn time is above the target from 5 ms on. The first drop is an interval later, and
    // drop n follows after interval/sqrt(n).
    let mut expected = vec![105.0];
    let mut next: f64 = 105.0;
    for count in 1..10 {
        next += 100.0 / f64::from(count).sqrt();
        expected.push(next.ceil());
    }
    let expected: Vec<_> = expected.into_iter().map(crate::cast::whole).collect();
    let (drops, marks) = standing(&mut CodelQueue::new(&codel(false), clock()), 0, 1);
    assert_eq!(drops[..expected.len()], expected);
    assert!(marks.is_empty());
    // Marks come at the same times.
    let (drops, marks) = standing(&mut CodelQueue::new(&codel(true), clock()), flags::ECT, 1);
    assert_eq!(marks[..expected.len()], expected);
    assert!(drops.is_empty());
    // RFC 3168 section 5: routers treat ECT(1) as ECT(0), unless an experiment defines otherwise
    // (RFC 8311 section 4.2).
    assert_eq!(standing(&mut CodelQueue::new(&codel(true), clock()), ECT1, 1).1, marks);
}

#[test]
fn codel_resumes_with_the_last_drop_rate() {
    let mut queue = CodelQueue::new(&codel(false), clock());
    let (drops, _) = standing(&mut queue, 0, 1);
    let count = drops.len();
    // The queue empties and stands again at once: the first drop is an interval after that, and the
    // second follows sooner.
    let mut effects = Effects::default();
    let mut now = 1000 * MS;
    while queue.dequeue(now, &mut effects).is_some() {}
    effects.dropped.clear();
    for number in 0..200 {
        queue.enqueue(packet(number, 1500, 0, now), 0, &mut effects);
    }
    let mut again = Vec::new();
    while again.len() < 2 {
        now += MS;
        queue.dequeue(now, &mut effects);
        again.extend(effects.dropped.drain(..).map(|_| now / MS));
    }
    assert_eq!(again[0], 1105);
    let gap = 100.0 / f64::from(crate::cast::saturate32(count - 1)).sqrt();
    assert!(
        (again[1] - again[0]) as f64 - gap < 2.0 && again[1] - again[0] < 60,
        "{again:?} {gap}"
    );
}

#[test]
fn flows_get_equal_shares_of_bytes() {
    let queues: [Box<dyn Discipline>; 2] = [
        Box::new(FqCodelQueue::new(&fq_codel(codel(false)), clock(), 1)),
        Box::new(FqQueue::new(&Fq { flow_limit: 1000, ..fq() }, clock(), 1)),
    ];
    for mut queue in queues {
        for (size, flow, count) in [(1500, 0, 60), (300, 1, 300), (750, 2, 120)] {
            fill(queue.as_mut(), 0..count, size, flow);
        }
        let mut sent = [0i64; 3];
        for _ in 0..200 {
            let size = send(queue.as_mut(), MS).size();
            sent[match size {
                1500 => 0,
                300 => 1,
                _ => 2,
            }] += i64::from(size);
        }
        // Each is within its quantum and its largest packet of the others.
        assert!(sent.iter().all(|bytes| (bytes - sent[0]).abs() <= 3028 + 1500), "{sent:?}");
    }
}

#[test]
fn a_sparse_flow_overtakes_a_queue() {
    let mut queue = FqCodelQueue::new(&fq_codel(codel(false)), clock(), 1);
    fill(&mut queue, 0..100, 1500, 0);
    // The bulk flow has used its first quantum.
    (0..2).for_each(|number| assert_eq!(send(&mut queue, 0).seq(), number));
    fill(&mut queue, 1000..1001, 200, 1);
    assert_eq!(send(&mut queue, 0).seq(), 1000);
    assert_eq!(send(&mut queue, 0).seq(), 2);
}

#[test]
fn the_fattest_flow_loses_half_of_its_packets_at_the_limit() {
    let limited = Codel { limit: QueueLimit::Packets(30), ..codel(false) };
    let mut queue = FqCodelQueue::new(&fq_codel(limited), clock(), 1);
    assert!(fill(&mut queue, 0..20, 1500, 0).is_empty());
    // The packet above the limit is of the other flow; the head of the first flow is dropped.
    let dropped = fill(&mut queue, 100..111, 300, 1);
    assert!(dropped.iter().map(|packet| packet.seq()).eq(0..10), "{dropped:?}");
}

#[test]
fn a_flow_of_fq_is_limited() {
    let mut queue = FqQueue::new(&fq(), clock(), 1);
    assert_eq!(fill(&mut queue, 0..120, 1500, 0).len(), 20);
    assert!(fill(&mut queue, 120..150, 1500, 1).is_empty());
}

#[test]
fn pie_forgives_a_burst() {
    let (drops, _) = standing(&mut PieQueue::new(&pie(), clock(), Rng::new(1, "pie", 0)), 0, 1);
    // The queue of 200 ms is there at once, and nothing is dropped during the burst allowance of
    // 150 ms.
    assert!(drops[0] > 150 && drops[0] < 400, "{drops:?}");
}

/// Runs a queue for 60 s at which five packets with these flags arrive in the time of four
/// departures: a fifth of them must be dropped. Returns their number, and the mean delay in
/// milliseconds and the flags of the packets sent in the second half.
fn overload(queue: &mut dyn Discipline, flags: u16) -> (usize, f64, Vec<u16>) {
    let arrival = Arrival { gap: 800_000, size: 1000, flow: 0, flags };
    let run = run(queue, &vec![arrival; 75_000], 1000);
    let late: Vec<_> = run.sent.iter().filter(|(at, _)| *at > 30_000 * MS).collect();
    // The transmitter is never idle.
    assert!(late.len() > 29_990, "{}", late.len());
    let delays = late.iter().map(|(at, queued)| queued.sojourn(*at) as f64 / 1e6);
    let mean = delays.sum::<f64>() / late.len() as f64;
    (run.dropped, mean, late.iter().map(|(_, queued)| queued.packet.flags()).collect())
}

#[test]
fn pie_holds_its_target() {
    let mut queue = PieQueue::new(&pie(), clock(), Rng::new(1, "pie", 0));
    let (_, mean, _) = overload(&mut queue, 0);
    assert!((mean - 15.0).abs() < 0.5, "{mean} ms");
}

#[test]
fn pie_marks_below_its_threshold() {
    let marked = |gap, mark_ecnth| {
        let arrivals = vec![Arrival { gap, size: 1000, flow: 0, flags: flags::ECT }; 60_000];
        let parameters = Pie { mark_ecnth, ..pie() };
        let mut queue = PieQueue::new(&parameters, clock(), Rng::new(1, "pie", 0));
        let run = run(&mut queue, &arrivals, 1000);
        (run.effects.marks, run.dropped)
    };
    // Marks do not relieve an open-loop source: the queue grows until the probability is above the
    // threshold.
    let (marks, drops) = marked(900_000, 0.05);
    assert!(marks > 0 && drops > 1000, "{marks} {drops}");
    let (marks, drops) = marked(900_000, 0.0);
    assert!(marks == 0 && drops > 1000, "{marks} {drops}");
}

/// Sends packets at the rate of the transmitter through a DualPI2 whose Classic queue has this
/// constant delay in milliseconds; returns the marked and dropped fractions of the L4S and the
/// Classic packets.
fn coupled(k: f64, base: f64, ect: u16) -> ([f64; 2], [f64; 2]) {
    // Without gains the base probability stays.
    let parameters = DualPi2 { alpha: 0.0, beta: 0.0, k, classic_protection: 0.5, ..dualpi2() };
    let mut queue = DualPi2Queue::new(&parameters, clock());
    queue.base = base;
    let mut effects = Effects::default();
    let (mut marked, mut dropped) = ([0.0; 2], [0.0; 2]);
    const COUNT: u32 = 20_000;
    for number in 0..COUNT {
        let now = u64::from(number) * MS;
        queue.enqueue(packet(0, 1000, ect, now), 0, &mut effects);
        queue.enqueue(packet(1, 1000, ECT1, now), 1, &mut effects);
        while let Some(queued) = queue.dequeue(now, &mut effects) {
            marked[queued.packet.seq() as usize] +=
                f64::from(u8::from(queued.packet.flags() & flags::CE != 0));
        }
        effects.dropped.drain(..).for_each(|queued| dropped[queued.packet.seq() as usize] += 1.0);
    }
    let count = f64::from(COUNT);
    (marked.map(|count_of| count_of / count), dropped.map(|count_of| count_of / count))
}

#[test]
fn dualpi2_couples_its_queues() {
    let near = |one: [f64; 2], other: [f64; 2]| {
        one.iter().zip(other).all(|(one, other)| (one - other).abs() < 1e-3)
    };
    // Below saturation: Classic packets are dropped or marked with p'^2, L4S packets marked with k
    // p'.
    let (marked, dropped) = coupled(2.0, 0.2, 0);
    assert!(near(marked, [0.0, 0.4]) && near(dropped, [0.04, 0.0]), "{marked:?} {dropped:?}");
    let (marked, dropped) = coupled(2.0, 0.2, flags::ECT);
    assert!(near(marked, [0.04, 0.4]) && near(dropped, [0.0, 0.0]), "{marked:?} {dropped:?}");
    // At saturation, k p' >= 1, ECN is disabled: both queues drop with p'^2, and the rest of the
    // L4S packets is marked.
    let (marked, dropped) = coupled(2.0, 0.6, flags::ECT);
    assert!(near(marked, [0.0, 0.64]) && near(dropped, [0.36, 0.36]), "{marked:?} {dropped:?}");
}

#[test]
fn the_l4s_queue_marks_on_a_ramp() {
    let mark = |delay: u64, behind: bool| {
        let mut queue = DualPi2Queue::new(&dualpi2(), clock());
        let mut effects = Effects::default();
        // The first packet brings the sum of probabilities to just below a mark.
        queue.l4s.count = 0.5;
        queue.enqueue(packet(0, 1500, ECT1, 0), 0, &mut effects);
        if behind {
            queue.enqueue(packet(1, 1500, ECT1, 0), 0, &mut effects);
        }
        queue.dequeue(delay * 1000, &mut effects).unwrap().packet.flags() & flags::CE != 0
    };
    // Half of the ramp is at 1000 us.
    assert!(!mark(800, true) && !mark(999, true) && mark(1001, true) && mark(1200, true));
    // A single packet in the queue is not marked.
    assert!(!mark(5000, false));
}

#[test]
fn the_classic_queue_keeps_its_share() {
    let mut queue = DualPi2Queue::new(&dualpi2(), clock());
    let mut effects = Effects::default();
    for number in 0..300 {
        queue.enqueue(packet(number, 1500, 0, 0), 0, &mut effects);
        queue.enqueue(packet(number, 1500, ECT1, 0), 1, &mut effects);
    }
    let l4s = (0..200)
        .filter(|_| queue.dequeue(0, &mut effects).unwrap().packet.flags() & flags::ECT1 != 0)
        .count();
    assert!((179..=181).contains(&l4s), "{l4s}");
}
