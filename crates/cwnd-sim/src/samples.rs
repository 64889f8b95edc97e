//! The samples of flows and links during a run, made into the columns of the records at the end. A flow
//! that has not begun costs nothing, and a link little while it idles: nothing about them changes.

use crate::cast::saturate32;
use crate::endpoint::Endpoint;
use crate::engine::clock::Clock;
use crate::engine::net::{SINK, SOURCE};
use crate::record::FlowSeries;

/// Of a flow: rows of numbers.
#[derive(Default)]
pub(crate) struct Samples {
    /// Rows of the source ([`Endpoint::look`]). The first stands for all before it began, if there
    /// were any.
    source: Vec<f64>,
    /// What was delivered at each sample since it began; nothing was before.
    sink: Vec<f64>,
    /// How many rows.
    rows: u32,
    /// Samples before it began.
    before: u32,
}

impl Samples {
    /// The flow begins after so many samples; so many are to come of its ends.
    pub(crate) fn begin(
        &mut self,
        before: usize,
        to_come: [usize; 2],
        endpoint: &Endpoint,
        clock: Clock,
    ) {
        self.before = saturate32(before);
        let mut width = 0;
        endpoint.look(clock, &mut |_, _| width += 1);
        self.source.reserve_exact(width * (to_come[SOURCE] + usize::from(before > 0)));
        self.sink.reserve_exact(to_come[SINK]);
        if before > 0 {
            self.look(endpoint, clock);
        }
    }

    /// A sample of the source.
    pub(crate) fn look(&mut self, endpoint: &Endpoint, clock: Clock) {
        self.rows += 1;
        endpoint.look(clock, &mut |_, value| self.source.push(value));
    }

    /// A sample of the sink.
    pub(crate) fn count(&mut self, delivered: u64) {
        self.sink.push(delivered as f64);
    }

    /// What the sink saw, as a column of the records.
    pub(crate) fn delivered(&self) -> Vec<f64> {
        let mut column = Vec::with_capacity(self.before as usize + self.sink.len());
        column.resize(self.before as usize, 0.0);
        column.extend(&self.sink);
        column
    }

    /// What the source looked like, as columns of the records.
    pub(crate) fn columns(&self, endpoint: &Endpoint, clock: Clock) -> FlowSeries {
        let width = self.source.len() / self.rows.max(1) as usize;
        let repeated = self.before.saturating_sub(1) as usize;
        let column = |at: usize| {
            let mut column = Vec::with_capacity(repeated + self.rows as usize);
            column.resize(repeated, self.source.get(at).copied().unwrap_or(f64::NAN));
            column.extend(self.source.chunks_exact(width.max(1)).map(|row| row[at]));
            column
        };
        let gauges = Vec::with_capacity(width.saturating_sub(3));
        let mut series = FlowSeries { gauges, ..FlowSeries::default() };
        let mut at = 0;
        endpoint.look(clock, &mut |name, _| {
            match at {
                0 => series.sent = column(at),
                1 => series.window = column(at),
                2 => series.rtt = column(at),
                _ => series.gauges.push((name, column(at))),
            }
            at += 1;
        });
        series
    }
}

/// A link from sample number `at` on.
struct Change {
    at: u32,
    waiting: u32,
    lost: u64,
}

/// Of a link: what has changed. Before the first change it is empty and has lost nothing.
#[derive(Default)]
pub(crate) struct LinkSamples {
    /// Samples so far.
    pub taken: u32,
    last: (u32, u64),
    changes: Vec<Change>,
}

impl LinkSamples {
    /// A sample: packets that wait, and packets dropped or lost so far.
    #[inline]
    pub(crate) fn take(&mut self, waiting: u32, lost: u64) {
        if self.last != (waiting, lost) {
            self.last = (waiting, lost);
            self.changes.push(Change { at: self.taken, waiting, lost });
        }
        self.taken += 1;
    }

    /// Both as columns of the records.
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
