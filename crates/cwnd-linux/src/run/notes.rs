//! Notes on the parts of a scenario that a backend does not support or approximates.

use std::collections::BTreeMap;

/// Notes, and the flows that they apply to.
#[derive(Default)]
pub(super) struct Notes {
    by_text: BTreeMap<String, Vec<String>>,
    /// Number of flows that use TCP or UDT.
    flows: usize,
    others: Vec<String>,
}

impl Notes {
    /// Adds a note on a flow.
    pub(super) fn add(&mut self, flow: &str, note: impl Into<String>) {
        self.by_text.entry(note.into()).or_default().push(flow.to_owned());
    }

    /// Sets the number of flows that use TCP or UDT. A note that applies to all of them names no
    /// flow.
    pub(super) fn set_flows(&mut self, flows: usize) {
        self.flows = flows;
    }

    /// Adds notes that do not apply to flows, or name them.
    pub(super) fn extend(&mut self, notes: impl IntoIterator<Item = String>) {
        self.others.extend(notes);
    }

    /// Returns one line for each note, with the flows it applies to unless it applies to all.
    pub(super) fn into_lines(self) -> Vec<String> {
        let line = |(note, flows): (String, Vec<String>)| match flows.as_slice() {
            all if all.len() == self.flows => note,
            [first, second, third, rest @ ..] if !rest.is_empty() => {
                format!("{first}, {second}, {third} and {} more: {note}", rest.len())
            }
            some => format!("{}: {note}", some.join(", ")),
        };
        self.by_text.into_iter().map(line).chain(self.others).collect()
    }
}
