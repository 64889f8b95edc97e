//! The samples of a flow. They become columns of the records at the end of the run; a flow that has
//! not started has none.

use crate::cast::{saturate32, to_index};
use crate::clock::Clock;
use crate::driver::Payload;
use crate::endpoint::Endpoint;
use crate::record::FlowSeries;

/// The samples of a flow, in rows.
#[derive(Clone, Default)]
pub(crate) struct Samples {
    /// Rows of the source ([`Endpoint::sample`]). If there were samples before the start, the first
    /// row stands for them.
    source: Vec<f64>,
    /// Packets and bytes arrived for the first time at each sample; zero before the start.
    sink: Vec<[f64; 2]>,
    /// The variables of a row, if the law was replaced; otherwise those of the source.
    names: Option<Vec<&'static str>>,
    /// Number of rows.
    rows: u32,
    /// Samples before the start.
    before: u32,
}

impl Samples {
    /// The flow starts after `before` samples, `to_come` samples before the end of the run.
    pub(crate) fn start(
        &mut self,
        before: u64,
        to_come: usize,
        endpoint: &dyn Endpoint,
        clock: Clock,
    ) {
        self.before = saturate32(to_index(before));
        let mut width = 0;
        endpoint.sample(clock, &mut |_, _| width += 1);
        self.source.reserve_exact(width * (to_come + usize::from(before > 0)));
        self.sink.reserve_exact(to_come);
        if before > 0 {
            self.take_source(endpoint, clock);
        }
    }

    /// Takes a sample of the source.
    pub(crate) fn take_source(&mut self, endpoint: &dyn Endpoint, clock: Clock) {
        self.rows += 1;
        let Some(names) = &self.names else {
            endpoint.sample(clock, &mut |_, value| self.source.push(value));
            return;
        };
        let row = self.source.len();
        self.source.resize(row + names.len(), f64::NAN);
        endpoint.sample(clock, &mut |name, value| {
            if let Some(at) = names.iter().position(|&known| known == name) {
                self.source[row + at] = value;
            }
        });
    }

    /// The law of the source is about to be replaced: the next rows have the variables that the
    /// first law has, NaN for those that the new law has not.
    pub(crate) fn keep_names(&mut self, endpoint: &dyn Endpoint, clock: Clock) {
        self.names.get_or_insert_with(|| {
            let mut names = Vec::new();
            endpoint.sample(clock, &mut |name, _| names.push(name));
            names
        });
    }

    /// Takes a sample of the sink.
    pub(crate) fn take_sink(&mut self, delivered: Payload) {
        self.sink.push([delivered.packets as f64, delivered.bytes as f64]);
    }

    /// Writes the samples of the sink.
    pub(crate) fn write_delivered(&self, series: &mut FlowSeries) {
        let column = |at: usize| {
            let mut column = Vec::with_capacity(self.before as usize + self.sink.len());
            column.resize(self.before as usize, 0.0);
            column.extend(self.sink.iter().map(|row| row[at]));
            column
        };
        [series.delivered, series.delivered_bytes] = [column(0), column(1)];
    }

    /// The samples of the source as columns.
    pub(crate) fn columns(&self, endpoint: &dyn Endpoint, clock: Clock) -> FlowSeries {
        let width = self.source.len() / self.rows.max(1) as usize;
        let repeated = self.before.saturating_sub(1) as usize;
        let column = |at: usize| {
            let mut column = Vec::with_capacity(repeated + self.rows as usize);
            column.resize(repeated, self.source.get(at).copied().unwrap_or(f64::NAN));
            column.extend(self.source.chunks_exact(width.max(1)).map(|row| row[at]));
            column
        };
        let gauges = Vec::with_capacity(width.saturating_sub(4));
        let mut series = FlowSeries { gauges, ..FlowSeries::default() };
        let mut at = 0;
        let mut add = |name| {
            match at {
                0 => series.sent = column(at),
                1 => series.sent_bytes = column(at),
                2 => series.window = column(at),
                3 => series.rtt = column(at),
                _ => series.gauges.push((name, column(at))),
            }
            at += 1;
        };
        match &self.names {
            None => endpoint.sample(clock, &mut |name, _| add(name)),
            Some(names) => names.iter().copied().for_each(add),
        }
        series
    }
}
