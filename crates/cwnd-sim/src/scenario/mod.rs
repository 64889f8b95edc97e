//! Scenario files in TOML: a network with its traffic.
//!
//! ```
//! use cwnd_sim::scenario::Scenario;
//!
//! let scenario = Scenario::from_toml(
//!     r#"
//!     duration = "100s"
//!
//!     [dumbbell]
//!     rate = "15mbit"
//!     delay = "20ms"
//!     queue = "1.5bdp"
//!
//!     [[flow]]
//!     controller = "reno"
//!     count = 4
//!     start = "0s..5s"
//!     "#,
//!     "four.toml",
//! )?;
//! let network = scenario.network(scenario.seed)?;
//! assert_eq!(network.flows.len(), 4);
//! # Ok::<(), cwnd_sim::scenario::ScenarioError>(())
//! ```
//!
//! [`Scenario`] has the keys of the file. [`Scenario::network`] draws the random values and
//! compiles the [`Network`] of a simulation. The reference of the format is `docs/scenario.md`.

mod application;
mod arrivals;
mod compile;
mod document;
mod ecn;
mod error;
mod format;
mod groups;
mod impairments;
mod link;
mod queue;
mod quic;
mod routes;
mod tcp;
mod topology;

pub use crate::discipline::{QueueKind, QueueTable};
pub use crate::network::{QuicStack, Recovery};
pub use application::{Application, Arrivals, Sizes, SizesTable, Times, TimesTable};
pub use document::ReadFile;
pub use ecn::Ecn;
pub use error::ScenarioError;
pub use format::{Access, Cbr, Expectation, Flow, MAX_FLOWS, Pareto, Protocol, Scenario};
pub use impairments::{
    BlackoutTable, BucketTable, ChangeTable, Loss, LossKind, LossTable, ModelTable, ReorderTable,
    Trace, TraceColumn, TraceTable,
};
pub use link::{Back, Chain, Dumbbell, Fabric, LeafSpine, Link};
pub use queue::Queue;
pub use quic::QuicOptions;
pub use tcp::{Conventions, Preset, TcpOptions};

use std::collections::BTreeSet;

use schemars::Schema;
use schemars::transform::{RecursiveTransform, Transform};
use serde_json::Value;
use toml::de::DeTable;

use crate::network::Network;
use crate::units::shorten;
use compile::ValidScenario;
use error::{Problem, Source, problem, value_error};

impl Scenario {
    /// Reads and checks a scenario file. `origin` is its path for error messages; the file's stem
    /// is the default name of the scenario.
    ///
    /// # Errors
    /// One line with the file, the line, the key and what was expected.
    pub fn from_toml(text: &str, origin: &str) -> Result<Self, ScenarioError> {
        Self::from_toml_with(text, origin, &no_files)
    }

    /// Reads and checks a scenario file as [`from_toml`](Self::from_toml), with its traces and
    /// files of sizes: `files` reads a file that the scenario names. The names in the scenario are
    /// replaced by the contents.
    ///
    /// # Errors
    /// As [`from_toml`](Self::from_toml), or a file that cannot be read.
    pub fn from_toml_with(
        text: &str,
        origin: &str,
        files: &ReadFile,
    ) -> Result<Self, ScenarioError> {
        let source = Source::new(origin, text);
        let document = DeTable::parse(text).map_err(|error| source.syntax_error(&error))?;
        let document = document.get_ref();
        let mut scenario = document::from_toml(document)
            .and_then(|document| Self::from_value(&document, files))
            .map_err(|problem| source.locate(document, problem))?;
        let stem = std::path::Path::new(origin).file_stem().and_then(|stem| stem.to_str());
        if let (true, Some(stem)) = (scenario.name.is_empty(), stem)
            && topology::check_name("name", stem).is_ok()
        {
            scenario.name = stem.to_owned();
        }
        Ok(scenario)
    }

    /// Reads and checks a scenario file, whose bytes may not be UTF-8.
    ///
    /// # Errors
    /// As [`from_toml`](Self::from_toml).
    pub fn from_bytes(bytes: &[u8], origin: &str) -> Result<Self, ScenarioError> {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::from_toml(text, origin),
            Err(error) => {
                let at = error.valid_up_to();
                let line = 1 + bytes[..at].iter().filter(|byte| **byte == b'\n').count();
                let message = format!("not a text file: byte {at} is not UTF-8");
                Err(Problem::new("", message).at(origin, Some(line)))
            }
        }
    }

    /// Reads a scenario from JSON with the keys of a scenario file. A null means that the key is
    /// not given.
    ///
    /// # Errors
    /// As [`from_toml`](Self::from_toml), without file and line.
    pub fn from_json(text: &str) -> Result<Self, ScenarioError> {
        Self::from_json_with(text, &no_files)
    }

    /// Reads a scenario as [`from_json`](Self::from_json), with its files as
    /// [`from_toml_with`](Self::from_toml_with) does.
    ///
    /// # Errors
    /// As [`from_json`](Self::from_json), or a file that cannot be read.
    pub fn from_json_with(text: &str, files: &ReadFile) -> Result<Self, ScenarioError> {
        document::from_json(text)
            .and_then(|document| Self::from_value(&document, files))
            .map_err(|problem| problem.at("", None))
    }

    /// Reads a scenario from its document, and the files that it names, and checks it.
    fn from_value(document: &Value, files: &ReadFile) -> Result<Self, Problem> {
        match document.as_object() {
            None => return problem("", "a scenario in JSON is an object, {\"duration\": …}"),
            Some(object) if object.is_empty() => {
                return problem("", "empty: a scenario needs a duration, a network and a flow");
            }
            Some(_) => {}
        }
        let mut scenario: Scenario =
            serde_path_to_error::deserialize(document).map_err(|error| value_error(&error))?;
        scenario.read_files(files)?;
        ValidScenario::new(&scenario, scenario.seed)?;
        Ok(scenario)
    }

    /// Replaces the names of traces and of files of sizes by their contents.
    fn read_files(&mut self, files: &ReadFile) -> Result<(), Problem> {
        let tables =
            self.dumbbell.iter_mut().map(|own| ("dumbbell".into(), &mut own.trace, &mut own.back));
        let chains =
            self.chain.iter_mut().map(|own| ("chain".into(), &mut own.trace, &mut own.back));
        let links = self.link.iter_mut().enumerate();
        let links = links.map(|(at, own)| (format!("link[{at}]"), &mut own.trace, &mut own.back));
        for (key, trace, back) in tables.chain(chains).chain(links) {
            let back = back.as_mut().and_then(|own| own.trace.as_mut());
            let traces =
                [(format!("{key}.trace"), trace.as_mut()), (format!("{key}.back.trace"), back)];
            for (key, trace) in traces {
                if let Some(Trace(trace)) = trace {
                    trace.resolve(&key, files)?;
                }
            }
        }
        for (at, flow) in self.flow.iter_mut().enumerate() {
            if let Some(arrivals) = &mut flow.arrivals {
                arrivals.sizes.resolve(&format!("flow[{at}].arrivals.sizes"), files)?;
            }
            if let Some(Application::Request { sizes, .. }) = &mut flow.source {
                sizes.resolve(&format!("flow[{at}].source.sizes"), files)?;
            }
        }
        Ok(())
    }

    /// Returns the scenario as JSON for [`from_json`](Self::from_json).
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default()
    }

    /// Returns the conventions of the TCP flows, each once, in the order of the flows.
    pub fn conventions(&self) -> Vec<Conventions> {
        let mut found = Vec::new();
        for flow in self.flow.iter().filter(|flow| flow.protocol.is_none()) {
            let conventions = tcp::conventions(&flow.controller, &flow.tcp, &self.tcp);
            if !found.contains(&conventions) {
                found.push(conventions);
            }
        }
        found
    }

    /// Returns the names of the groups of flows.
    pub fn group_names(&self) -> BTreeSet<String> {
        let groups = groups::groups(self).unwrap_or_default();
        let groups = groups.into_iter().filter(|group| group.count > 0);
        groups.map(|group| group.name.map_or(group.base, str::to_owned)).collect()
    }

    /// Returns the bounds of `[expect]`, with the parts of the metrics' names.
    pub fn bounds(&self) -> Vec<(Vec<String>, String)> {
        let mut found = Vec::new();
        for (key, bounds) in &self.expect {
            bounds.list(vec![key.clone()], &mut found);
        }
        found
    }

    /// Compiles the network. Start times and access delays that have ranges are drawn with `seed`.
    ///
    /// # Errors
    /// If the scenario is invalid, because it was changed since it was read or because the delays
    /// of this seed make a queue too large.
    pub fn network(&self, seed: u64) -> Result<Network, ScenarioError> {
        ValidScenario::new(self, seed)
            .map(ValidScenario::network)
            .map_err(|problem| problem.at("", None))
    }
}

fn no_files(name: &str) -> Result<(String, String), String> {
    Err(format!("the file \"{}\" cannot be read here", shorten(name)))
}

/// Returns the JSON Schema of a scenario.
pub fn schema() -> Value {
    let mut schema = schemars::schema_for!(Scenario);
    // Descriptions do not depend on the width of the comments that they come from.
    let mut on_one_line = RecursiveTransform(|part: &mut Schema| {
        if let Some(Value::String(text)) = part.get_mut("description") {
            *text = text.replace('\n', " ");
        }
    });
    on_one_line.transform(&mut schema);
    schema.to_value()
}

#[cfg(test)]
mod tests;
