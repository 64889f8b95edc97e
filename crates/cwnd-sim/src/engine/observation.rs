//! Times at which the network is observed: samples, and the end of the warm-up.
//!
//! A node (a link or an end of a flow) is observed before it processes its first event at or after
//! that time. Nodes that are ahead of the clock therefore need no synchronisation, and an idle node
//! costs nothing.

use super::schedule::NONE;
use crate::clock::Clock;
use crate::network::Network;

/// The observation times of a run, in ticks.
#[derive(Clone, Copy)]
pub(crate) struct Observations {
    sample: u64,
    warmup: u64,
    end: u64,
}

impl Observations {
    pub(crate) fn new(network: &Network, clock: Clock) -> Self {
        Observations {
            sample: clock.ticks(network.sample.as_nanos().max(1)),
            warmup: clock.ticks(network.warmup.as_nanos()),
            end: clock.ticks(network.duration.as_nanos()),
        }
    }

    /// No observations.
    pub(crate) const fn none() -> Self {
        Observations { sample: NONE, warmup: NONE, end: 0 }
    }

    /// The end of the run.
    pub(crate) fn end(self) -> u64 {
        self.end
    }

    /// The end of the warm-up.
    pub(crate) fn warmup(self) -> u64 {
        self.warmup
    }

    /// The first observation time.
    pub(crate) fn first(self) -> u64 {
        if self.end > 0 { 0 } else { NONE }
    }

    /// The first observation time after `now`; [`NONE`] if there is none before the end.
    pub(crate) fn after(self, now: u64) -> u64 {
        let sample = (now / self.sample + 1) * self.sample;
        let next = if now < self.warmup { sample.min(self.warmup) } else { sample };
        if next < self.end { next } else { NONE }
    }

    /// Whether a sample is taken at `now`.
    pub(crate) fn is_sample(self, now: u64) -> bool {
        now.is_multiple_of(self.sample)
    }

    /// Whether the warm-up ends at `now`.
    pub(crate) fn is_warmup(self, now: u64) -> bool {
        now == self.warmup
    }

    /// Samples taken at times up to `now`.
    pub(crate) fn samples_until(self, now: u64) -> u64 {
        now / self.sample + 1
    }

    /// Number of samples of the run.
    pub(crate) fn sample_count(self) -> u64 {
        self.end.div_ceil(self.sample)
    }

    /// All sample times.
    pub(crate) fn samples(self) -> impl Iterator<Item = u64> {
        (0..).map(move |number| number * self.sample).take_while(move |&at| at < self.end)
    }
}

/// A link from sample number `at` on.
#[derive(Clone)]
struct Change {
    at: u32,
    waiting: u32,
    lost: u64,
}

/// Change-only samples of a link; before the first change the queue is empty and the counter is
/// zero.
#[derive(Clone, Default)]
pub(crate) struct LinkSamples {
    /// Samples so far.
    taken: u32,
    last: (u32, u64),
    changes: Vec<Change>,
}

impl LinkSamples {
    /// Takes a sample: the queue length in packets, and the packets dropped and lost so far.
    #[inline]
    pub(crate) fn take(&mut self, waiting: u32, lost: u64) {
        if self.last != (waiting, lost) {
            self.last = (waiting, lost);
            self.changes.push(Change { at: self.taken, waiting, lost });
        }
        self.taken += 1;
    }

    /// Both series as columns of the records.
    pub(crate) fn columns(&self) -> [Vec<f64>; 2] {
        let mut columns = [(); 2].map(|()| vec![0.0; self.taken as usize]);
        let ends = self.changes.iter().skip(1).map(|next| next.at).chain([self.taken]);
        for (change, end) in self.changes.iter().zip(ends) {
            let values = [f64::from(change.waiting), change.lost as f64];
            for (column, value) in columns.iter_mut().zip(values) {
                column[change.at as usize..end as usize].fill(value);
            }
        }
        columns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn observations_are_samples_and_the_end_of_the_warm_up() {
        let observations = Observations { sample: 10, warmup: 25, end: 40 };
        let mut times = vec![observations.first()];
        while let Some(&last) = times.last()
            && last != NONE
        {
            times.push(observations.after(last));
        }
        assert_eq!(times, [0, 10, 20, 25, 30, NONE]);
        assert!(observations.is_warmup(25) && !observations.is_sample(25));
        assert_eq!([0, 9, 10, 39].map(|at| observations.samples_until(at)), [1, 1, 2, 4]);
        assert_eq!(observations.samples().collect::<Vec<_>>(), [0, 10, 20, 30]);
        assert_eq!(Observations::none().first(), NONE);
    }

    #[test]
    fn changes_become_columns() {
        let mut samples = LinkSamples::default();
        let taken = [(0, 0), (0, 0), (3, 0), (3, 0), (0, 2), (1, 2), (1, 2)];
        taken.iter().for_each(|&(waiting, lost)| samples.take(waiting, lost));
        assert_eq!(samples.changes.len(), 3);
        let expected = [taken.map(|row| f64::from(row.0)), taken.map(|row| row.1 as f64)];
        assert_eq!(samples.columns(), expected.map(Vec::from));
        assert_eq!(LinkSamples::default().columns(), [const { Vec::<f64>::new() }; 2]);
    }
}
