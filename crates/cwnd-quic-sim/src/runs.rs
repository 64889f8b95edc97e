//! Runs of a scenario with many seeds, and the bounds on them.

use cwnd_sim::datagrams::Connection;
use cwnd_sim::metrics::{self, Expectations, format_time, format_value};
use cwnd_sim::network::{Network, QuicStack, Traffic};
use cwnd_sim::record::{Closed, FlowRecord, Records};
use cwnd_sim::scenario::{Scenario, ScenarioError};
use cwnd_sim::{Options, QuicFlow, Simulation, SimulationError};
use std::fmt;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Digits of a time in a message.
const DIGITS: usize = 4;

/// What the client of a connection sends.
#[derive(Debug, Default)]
pub struct ClientStream {
    pub(crate) bytes: u64,
}

impl ClientStream {
    /// Sends `bytes` bytes, which the server reads as they arrive.
    pub fn write_all(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_add(bytes);
    }
}

/// The end of a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// All data was acknowledged.
    Done,
    /// The run ended before all data was acknowledged.
    Deadline,
    /// An end closed the connection with an error. The text says which one, and why.
    Closed(String),
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Done => f.write_str("done"),
            Outcome::Deadline => f.write_str("deadline"),
            Outcome::Closed(reason) => write!(f, "closed, {reason}"),
        }
    }
}

/// A run.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// The seed.
    pub seed: u64,
    /// The outcome of the stack's connections together: the first one that was closed, or else
    /// [`Outcome::Deadline`] if one was incomplete.
    pub outcome: Outcome,
    /// Time of the outcome in seconds.
    pub at: f64,
    /// For each bound the value of its metric, if the run determines it, and whether it holds.
    checked: Vec<(Option<f64>, bool)>,
}

/// The runs of a scenario in the order of the seeds.
#[derive(Clone, Debug)]
pub struct Runs {
    runs: Vec<Run>,
    expectations: Option<Expectations>,
}

impl Runs {
    /// The runs in the order of the seeds.
    pub fn iter(&self) -> impl Iterator<Item = &Run> {
        self.runs.iter()
    }

    /// Checks that every bound of `[expect]` holds with every seed.
    ///
    /// # Errors
    /// There are no bounds, or some fail. The message has each of those with the first seed with
    /// which it fails.
    pub fn expect(&self) -> Result<(), Error> {
        let expectations = self.expectations.as_ref().ok_or(Cause::NoBounds)?;
        let failures: Vec<_> = expectations
            .iter()
            .enumerate()
            .filter_map(|(index, expectation)| {
                let mut failed = self.runs.iter().filter(|run| !run.checked[index].1);
                let first = failed.next()?;
                let value = format_value(
                    expectation.metric.metric.dimension,
                    first.checked[index].0.unwrap_or(f64::NAN),
                );
                Some(format!(
                    "{} {} fails with {} of {} seeds: {value} with seed {} ({} at {})",
                    expectation.metric.name,
                    expectation.bound,
                    1 + failed.count(),
                    self.runs.len(),
                    first.seed,
                    first.outcome,
                    format_time(first.at, DIGITS),
                ))
            })
            .collect();
        if failures.is_empty() { Ok(()) } else { Err(Cause::Bounds(failures.join("; ")).into()) }
    }
}

/// Why a scenario has no runs, or which bounds fail. The message is one line.
#[derive(thiserror::Error)]
#[error(transparent)]
pub struct Error(#[from] Cause);

/// A test that returns an error shows it by `Debug`.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum Cause {
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    #[error("seed {seed}: {source}")]
    Simulation { seed: u64, source: SimulationError },
    #[error("the scenario has no flow with protocol = \"quic\" and stack = \"{0}\"")]
    NoFlow(&'static str),
    #[error("no seeds: the range {0:?} is empty")]
    NoSeeds(Range<u64>),
    #[error("the scenario has no bounds of metrics: a table [expect]")]
    NoBounds,
    #[error("{0}")]
    Bounds(String),
}

/// A scenario for a stack, whose client and seeds may be set.
pub(crate) struct Plan {
    scenario: Scenario,
    stack: QuicStack,
    pub bytes: Option<u64>,
    pub seeds: Range<u64>,
}

impl Plan {
    /// Reads a scenario with a flow of the stack.
    pub(crate) fn from_toml(text: &str, stack: QuicStack) -> Result<Self, Cause> {
        let scenario = Scenario::from_toml(text, "scenario")?;
        let plan = Plan { scenario, stack, bytes: None, seeds: 1..2 };
        if !plan.own(&plan.scenario.network(1)?).contains(&true) {
            let name = if stack == QuicStack::Noq { "noq" } else { "quinn" };
            return Err(Cause::NoFlow(name));
        }
        Ok(plan)
    }

    /// Returns for each flow whether it is of the stack.
    fn own(&self, network: &Network) -> Vec<bool> {
        let of_stack = |traffic: &Traffic| match traffic {
            Traffic::Quic(quic) => quic.stack == self.stack,
            _ => false,
        };
        network.flows.iter().map(|flow| of_stack(&flow.traffic)).collect()
    }

    /// Runs all seeds on all cores. `connect` makes the connections of QUIC flows.
    pub(crate) fn run(
        &self,
        connect: &(dyn Fn(QuicFlow) -> Result<Connection, String> + Sync),
    ) -> Result<Runs, Cause> {
        let seeds: Vec<_> = self.seeds.clone().collect();
        let first = *seeds.first().ok_or_else(|| Cause::NoSeeds(self.seeds.clone()))?;
        let bounds = !self.scenario.bounds().is_empty();
        let read = || Expectations::of_scenario(&self.scenario, &self.scenario.network(first)?);
        let expectations = bounds.then(read).transpose()?;
        let next = AtomicUsize::new(0);
        let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let work = || {
            let mut done = Vec::new();
            while let Some(&seed) = seeds.get(next.fetch_add(1, Ordering::Relaxed)) {
                let run = || self.run_seed(seed, expectations.as_ref(), connect);
                // The panic of a stack does not name the seed.
                let run = catch_unwind(AssertUnwindSafe(run));
                done.push((seed, run.unwrap_or_else(|_| panic!("a panic with seed {seed}"))));
            }
            done
        };
        let mut runs = thread::scope(|scope| {
            let workers: Vec<_> = (0..cores.min(seeds.len())).map(|_| scope.spawn(work)).collect();
            let join = |worker: thread::ScopedJoinHandle<'_, Vec<_>>| {
                worker.join().unwrap_or_else(|panic| resume_unwind(panic))
            };
            workers.into_iter().flat_map(join).collect::<Vec<_>>()
        });
        runs.sort_unstable_by_key(|(seed, _)| *seed);
        let runs = runs.into_iter().map(|(_, run)| run).collect::<Result<_, _>>()?;
        Ok(Runs { runs, expectations })
    }

    fn run_seed(
        &self,
        seed: u64,
        expectations: Option<&Expectations>,
        connect: &(dyn Fn(QuicFlow) -> Result<Connection, String> + Sync),
    ) -> Result<Run, Cause> {
        let mut network = self.scenario.network(seed)?;
        let own = self.own(&network);
        for (flow, _) in network.flows.iter_mut().zip(&own).filter(|(_, own)| **own) {
            flow.bytes = self.bytes.or(flow.bytes);
        }
        let options = Options { quic: Some(&connect), ..Options::default() };
        let mut simulation = Simulation::new(&network, seed, &options)
            .map_err(|source| Cause::Simulation { seed, source })?;
        simulation.run();
        let records = simulation.finish();
        let (outcome, at) = outcome(&records, &own, network.duration.as_secs());
        let run = metrics::Run::new(&network, &records);
        let checked = expectations.map_or_else(Vec::new, |all| all.check(&run));
        let value = |value: f64| (!value.is_nan()).then_some(value);
        let checked = checked.iter().map(|each| (value(each.value), each.holds)).collect();
        Ok(Run { seed, outcome, at, checked })
    }
}

/// Returns the outcome of the flows in `own` and its time in seconds.
fn outcome(records: &Records, own: &[bool], duration: f64) -> (Outcome, f64) {
    let flows = || records.flows.iter().zip(own).filter(|(_, own)| **own).map(|(flow, _)| flow);
    let closed = flows().filter_map(|flow: &FlowRecord| flow.closed.as_ref());
    if let Some(Closed { at, reason }) = closed.min_by(|a, b| a.at.total_cmp(&b.at)) {
        return (Outcome::Closed(reason.clone()), *at);
    }
    let ends: Vec<_> = flows().map(|flow| flow.acknowledged).collect();
    if ends.iter().any(|end| end.is_nan()) {
        return (Outcome::Deadline, duration);
    }
    (Outcome::Done, ends.into_iter().fold(0.0, f64::max))
}
