//! Creates the discipline of a queue.

use super::{Discipline, codel, dualpi2, fq, fq_codel, pie};
use crate::engine::clock::Clock;
use crate::network::Queue;
use crate::rng::Rng;

/// Returns the discipline of link number `index`; `None` for those that decide at arrival only.
pub(in crate::engine::link) fn create(
    queue: &Queue,
    clock: Clock,
    index: usize,
    seed: u64,
) -> Option<Box<dyn Discipline>> {
    let rng = |name| Rng::new(seed, name, index as u64);
    match queue {
        Queue::DropTail { .. } | Queue::Red(_) => None,
        Queue::Codel(codel) => Some(Box::new(codel::Codel::new(codel, clock))),
        Queue::FqCodel(fq_codel) => {
            Some(Box::new(fq_codel::FqCodel::new(fq_codel, clock, rng("flow hash").bits())))
        }
        Queue::Fq(fq) => Some(Box::new(fq::Fq::new(fq, clock, rng("flow hash").bits()))),
        Queue::Pie(pie) => Some(Box::new(pie::Pie::new(pie, clock, rng("pie")))),
        Queue::DualPi2(dualpi2) => Some(Box::new(dualpi2::DualPi2::new(dualpi2, clock))),
    }
}
