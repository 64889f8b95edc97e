//! The transfers of an application.

use crate::clock::Clock;
use crate::engine::schedule::NONE;
use crate::record::Transfer;

/// A transfer in ticks, and in the units in which the data of its flow is counted.
#[derive(Clone)]
struct Span {
    begin: u64,
    /// Its size; while it grows, the bytes of the flow before it.
    bytes: u64,
    /// Units from the start of the flow to the end of the transfer; `u64::MAX` while it grows.
    end_unit: u64,
    end: u64,
}

/// The transfers of a flow in the order of their data.
#[derive(Clone, Default)]
pub(super) struct Transfers {
    spans: Vec<Span>,
    /// Number of complete transfers. They precede the others.
    complete: usize,
}

impl Transfers {
    /// Begins a transfer that grows until it is [closed](Self::close), after `before` bytes of the
    /// flow.
    pub(super) fn open(&mut self, begin: u64, before: u64) {
        self.spans.push(Span { begin, bytes: before, end_unit: u64::MAX, end: NONE });
    }

    /// Ends the data of the growing transfer after `bytes` bytes and `units` units of the flow.
    /// A transfer without data is removed.
    pub(super) fn close(&mut self, bytes: u64, units: u64) {
        let Some(last) = self.spans.last_mut() else { return };
        if bytes <= last.bytes {
            self.spans.pop();
            return;
        }
        (last.bytes, last.end_unit) = (bytes - last.bytes, units);
    }

    /// Adds a transfer of `bytes` bytes that ends with unit number `units` of the flow.
    pub(super) fn add(&mut self, begin: u64, bytes: u64, units: u64) {
        self.spans.push(Span { begin, bytes, end_unit: units, end: NONE });
    }

    /// Whether the last transfer still grows.
    pub(super) fn is_open(&self) -> bool {
        self.spans.last().is_some_and(|last| last.end_unit == u64::MAX)
    }

    /// Ends the transfers that the first `units` units of the flow complete. Returns whether
    /// there were any.
    pub(super) fn acknowledge(&mut self, now: u64, units: u64) -> bool {
        let before = self.complete;
        while let Some(next) = self.spans.get_mut(self.complete)
            && next.end_unit <= units
        {
            next.end = now;
            self.complete += 1;
        }
        self.complete > before
    }

    /// Number of transfers that took longer than `deadline`, or are incomplete for longer at `end`.
    pub(super) fn late(&self, deadline: u64, end: u64) -> usize {
        let late = |span: &&Span| span.end.min(end) - span.begin > deadline;
        self.spans.iter().filter(late).count()
    }

    /// The records of all transfers. The growing one extends to byte `bytes` of the flow.
    pub(super) fn records(&self, clock: Clock, bytes: u64) -> Vec<Transfer> {
        let seconds = |at: u64| if at == NONE { f64::NAN } else { clock.seconds(at) };
        let record = |span: &Span| {
            let grows = span.end_unit == u64::MAX;
            let size = if grows { bytes.saturating_sub(span.bytes) } else { span.bytes };
            Transfer { begin: clock.seconds(span.begin), bytes: size, end: seconds(span.end) }
        };
        self.spans.iter().map(record).collect()
    }
}
