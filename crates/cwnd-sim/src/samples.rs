//! The samples of a flow while it runs: rows of numbers, made into the columns of the records at the
//! end. A flow that has not begun costs nothing: nothing about it changes.

use crate::endpoint::Endpoint;
use crate::engine::clock::Clock;
use crate::record::FlowSeries;

/// The length of most rows.
const ROW: usize = 6;

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
    /// The flow begins after so many samples.
    pub fn begin(&mut self, before: usize, endpoint: &Endpoint, clock: Clock) {
        self.before = before as u32;
        if before > 0 {
            self.source.reserve_exact(ROW);
            self.look(endpoint, clock);
        }
    }

    /// A sample of the source.
    pub fn look(&mut self, endpoint: &Endpoint, clock: Clock) {
        self.rows += 1;
        endpoint.look(clock, &mut |_, value| self.source.push(value));
    }

    /// A sample of the sink.
    pub fn count(&mut self, delivered: u64) {
        self.sink.push(delivered as f64);
    }

    /// What the sink saw, as a column of the records.
    pub fn delivered(&self) -> Vec<f64> {
        let mut column = Vec::with_capacity(self.before as usize + self.sink.len());
        column.resize(self.before as usize, 0.0);
        column.extend(&self.sink);
        column
    }

    /// What the source looked like, as columns of the records.
    pub fn columns(&self, endpoint: &Endpoint, clock: Clock) -> FlowSeries {
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
