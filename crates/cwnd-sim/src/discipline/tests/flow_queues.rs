//! Properties of FQ-CoDel that RFC 8290 and RFC 8289 state.

use super::*;

fn fq_codel_of(quantum: u32) -> FqCodelQueue {
    FqCodelQueue::new(&FqCodel { quantum, ..fq_codel(codel(false)) }, clock(), 1)
}

#[test]
fn a_queue_sends_a_quantum_in_a_round() {
    // RFC 8290 section 3: three packets of a third of the quantum, one packet of the quantum.
    let mut queue = fq_codel_of(1500);
    let mut effects = Effects::default();
    for number in 0..30 {
        queue.enqueue(packet(number, 500, 0, 0), 0, &mut effects);
        queue.enqueue(packet(number, 1500, 0, 0), 1, &mut effects);
    }
    let sizes: Vec<_> = (0..12).map(|_| send(&mut queue, 0).size()).collect();
    assert_eq!(sizes, [500, 500, 500, 1500].repeat(3));
}

#[test]
fn a_new_queue_cannot_starve_the_old_ones() {
    // RFC 8290 section 4.2: a flow whose packets arrive just after its queue has become empty is
    // served once in a round.
    let mut queue = fq_codel_of(1514);
    fill(&mut queue, 0..200, 1500, 0);
    send(&mut queue, 0);
    let mut sent = [0; 2];
    for number in 0..100 {
        fill(&mut queue, number..number + 1, 100, 1);
        loop {
            let size = send(&mut queue, 0).size();
            sent[usize::from(size == 100)] += 1;
            if size == 100 {
                break;
            }
        }
        // The empty queue is visited: it becomes an old one, and the bulk flow is served.
        assert_eq!(send(&mut queue, 0).size(), 1500);
        sent[0] += 1;
    }
    assert!(sent[0] >= sent[1] && sent[1] == 100, "{sent:?}");
}

#[test]
fn at_most_64_packets_are_dropped_at_once() {
    let limited = Codel { limit: QueueLimit::Packets(200), ..codel(false) };
    let mut queue = FqCodelQueue::new(&fq_codel(limited), clock(), 1);
    let dropped = fill(&mut queue, 0..201, 1500, 0);
    assert!(dropped.iter().map(|packet| packet.seq()).eq(0..64), "{dropped:?}");
    // The queue with most bytes is not the one with most packets.
    assert!(fill(&mut queue, 0..63, 40, 1).is_empty());
    let dropped = fill(&mut queue, 63..64, 40, 1);
    assert_eq!(dropped.len(), 64);
    assert!(dropped.iter().all(|packet| packet.size() == 1500));
}

#[test]
fn flows_rarely_share_a_queue() {
    // RFC 8290 section 5.3: with 100 flows in 1024 queues, a flow has its queue for itself with a
    // probability of 90.78 %.
    const RUNS: u64 = 400;
    let mut alone = 0;
    for run in 0..RUNS {
        let seed = Rng::new(run, "flow hash", 0).bits();
        let mut queues = super::super::flow_queues::FlowQueues::<()>::new(1024, seed);
        // Hashes of flows: consecutive numbers.
        let indices: Vec<_> = (0..100).map(|flow| queues.queue_of(flow)).collect();
        alone += indices
            .iter()
            .filter(|index| indices.iter().filter(|other| other == index).count() == 1)
            .count();
    }
    let share = alone as f64 / (100 * RUNS) as f64;
    assert!((share - 0.9078).abs() < 0.006, "{share}");
}

/// Sends packets of this many flows, each of which always has one packet in the queue, for a second
/// at a packet per millisecond. Returns the number of drops.
fn drops_of_single_packets(flows: u32) -> usize {
    let mut queue = fq_codel_of(1514);
    let mut effects = Effects::default();
    let packet_of = |flow, now| packet(flow, 1500, 0, now);
    (0..flows).for_each(|flow| queue.enqueue(packet_of(flow, 0), flow, &mut effects));
    let mut drops = 0;
    for step in 1..=1000 {
        let now = step * MS;
        let mut gone: Vec<_> =
            queue.dequeue(now, &mut effects).iter().map(|sent| sent.packet.seq()).collect();
        drops += effects.dropped.len();
        gone.extend(effects.dropped.drain(..).map(|dropped| dropped.packet.seq()));
        gone.into_iter().for_each(|flow| queue.enqueue(packet_of(flow, now), flow, &mut effects));
    }
    drops
}

#[test]
fn the_backlog_of_all_queues_counts() {
    // RFC 8289 section 4.4. A packet waits for 4 ms and 20 ms.
    assert_eq!(drops_of_single_packets(4), 0);
    assert!(drops_of_single_packets(20) > 20);
}

#[test]
fn codel_does_not_drop_the_last_packet() {
    // RFC 8289 section 5.6: on a link that needs 20 ms for a packet, a second one waits for longer
    // than the target.
    let drops = |waiting: u32| {
        let mut queue = CodelQueue::new(&codel(false), clock());
        let mut effects = Effects::default();
        (0..waiting).for_each(|number| queue.enqueue(packet(number, 1500, 0, 0), 0, &mut effects));
        for step in 1..=100 {
            let now = step * 20 * MS;
            queue.dequeue(now, &mut effects);
            while queue.occupancy().packets < waiting as usize {
                queue.enqueue(packet(0, 1500, 0, now), 0, &mut effects);
            }
        }
        effects.dropped.len()
    };
    assert_eq!((drops(1), drops(2)), (0, 0));
    assert!(drops(3) > 5);
}
