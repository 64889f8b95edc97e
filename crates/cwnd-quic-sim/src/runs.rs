//! Runs of a scenario with many seeds, and the bounds on them.

use cwnd_sim::datagrams::Connection;
use cwnd_sim::metrics::{self, Expectations, format_time, format_value};
use cwnd_sim::network::{Network, QuicStack, Traffic};
use cwnd_sim::qlog;
use cwnd_sim::record::{Closed, Records};
use cwnd_sim::scenario::{Scenario, ScenarioError};
use cwnd_sim::{Options, QuicFlow, Simulation, SimulationError};
use std::collections::BTreeMap;
use std::env;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::num::NonZeroUsize;
use std::ops::{Deref, Range};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Makes the connection of a QUIC flow.
pub(crate) type Connect<'a> = dyn Fn(QuicFlow) -> Result<Connection, String> + Sync + 'a;

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
    /// The number of the flow that determined the outcome.
    flow: usize,
}

impl Run {
    /// How far the run is from the bound that it fails most, relative to the larger one of bound and
    /// value; negative if all bounds hold. Without bounds, all runs are equal.
    fn distance(&self, expectations: &Expectations) -> f64 {
        let distances = expectations.iter().zip(&self.checked).map(|(bound, (value, holds))| {
            let Some(value) = value else { return f64::INFINITY };
            let distance = (value - bound.limit).abs() / value.abs().max(bound.limit.abs());
            // Both are zero.
            let distance = if distance.is_nan() { 0.0 } else { distance };
            if *holds { -distance } else { distance }
        });
        distances.fold(f64::NEG_INFINITY, f64::max)
    }

    /// Orders outcomes, the worst last.
    fn rank(&self) -> u8 {
        match self.outcome {
            Outcome::Done => 0,
            Outcome::Deadline => 1,
            Outcome::Closed(_) => 2,
        }
    }
}

/// The runs of a scenario in the order of the seeds. `'a` is the lifetime of what the application
/// provides.
pub struct Runs<'a> {
    runs: Vec<Run>,
    expectations: Option<Expectations>,
    plan: Plan,
    connect: Box<Connect<'a>>,
}

impl fmt::Debug for Runs<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.runs).finish()
    }
}

/// A run of [`Runs`].
#[derive(Clone, Copy)]
pub struct RunOf<'r> {
    runs: &'r Runs<'r>,
    run: &'r Run,
}

/// The run, without the other ones.
impl fmt::Debug for RunOf<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.run, f)
    }
}

impl Deref for RunOf<'_> {
    type Target = Run;

    fn deref(&self) -> &Run {
        self.run
    }
}

impl RunOf<'_> {
    /// Simulates the run again, and writes the qlog of the flow that determined its outcome: the
    /// first one that was closed, incomplete or last. Folders are created.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn qlog(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        let (path, run) = (path.as_ref(), self.run);
        let connect = &*self.runs.connect;
        let (network, records, _) = self.runs.plan.simulate(run.seed, connect, true)?;
        let write = || {
            fs::create_dir_all(path.parent().unwrap_or(Path::new("")))?;
            let out = BufWriter::new(File::create(path)?);
            qlog::write(out, &network, run.flow, &records.flows[run.flow], None)
        };
        write().map_err(|source| Cause::Qlog { path: path.to_owned(), source }.into())
    }
}

/// Returns the path of a qlog for the test of this thread: in cargo's `target`, in which its programs
/// are `PROFILE/deps/NAME`, or else in the folder of temporary files.
fn qlog_path(seed: u64) -> PathBuf {
    let program = env::current_exe().unwrap_or_default();
    let target = program
        .ancestors()
        .nth(3)
        .filter(|_| program.parent().is_some_and(|of| of.ends_with("deps")));
    let folder = target.map_or_else(env::temp_dir, Path::to_path_buf);
    let name =
        thread::current().name().unwrap_or("test").replace(|c: char| !c.is_alphanumeric(), "-");
    folder.join("cwnd").join(format!("{name}-seed-{seed}.sqlog"))
}

impl Runs<'_> {
    /// The runs in the order of the seeds.
    pub fn iter(&self) -> impl Iterator<Item = &Run> {
        self.runs.iter()
    }

    /// The run that is farthest from the bounds of `[expect]`: the one that fails by the largest part
    /// of a bound, or holds by the smallest. Of equal ones, and without bounds, it is a closed
    /// connection, a deadline, or the run that took longest, and then the first.
    #[must_use]
    pub fn worst(&self) -> RunOf<'_> {
        let distance = |run: &Run| self.expectations.as_ref().map_or(0.0, |all| run.distance(all));
        let worst = self.runs.iter().rev().max_by(|a, b| {
            let by_outcome = || a.rank().cmp(&b.rank()).then(a.at.total_cmp(&b.at));
            distance(a).total_cmp(&distance(b)).then_with(by_outcome)
        });
        RunOf { runs: self, run: worst.expect("a seed at least") }
    }

    /// Checks that every bound of `[expect]` holds with every seed.
    ///
    /// # Errors
    /// There are no bounds, or some fail. The message has each of those with the first seed with
    /// which it fails, and the path of that run's qlog, which is written to the folder `cwnd` in
    /// cargo's `target`, or else in the folder of temporary files.
    pub fn expect(&self) -> Result<(), Error> {
        let expectations = self.expectations.as_ref().ok_or(Cause::NoBounds)?;
        let mut qlogs = BTreeMap::new();
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
                let qlog = qlogs.entry(first.seed).or_insert_with(|| {
                    let path = qlog_path(first.seed);
                    let written = RunOf { runs: self, run: first }.qlog(&path);
                    written.map_or_else(|error| error.to_string(), |()| path.display().to_string())
                });
                Some(format!(
                    "{} {} fails with {} of {} seeds: {value} with seed {} ({} at {}), qlog: {qlog}",
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
    #[error("{}: {source}", path.display())]
    Qlog { path: PathBuf, source: io::Error },
}

/// A scenario for a stack, whose client and seeds may be set.
pub(crate) struct Plan {
    scenario: Scenario,
    stack: QuicStack,
    pub bytes: Option<u64>,
    /// Whether the client is an application, whose data is a transfer.
    pub application: bool,
    pub seeds: Range<u64>,
}

impl Plan {
    /// Reads a scenario with a flow of the stack.
    pub(crate) fn from_toml(text: &str, stack: QuicStack) -> Result<Self, Cause> {
        let scenario = Scenario::from_toml(text, "scenario")?;
        let plan = Plan { scenario, stack, bytes: None, application: false, seeds: 1..2 };
        if !plan.own(&plan.scenario.network(1)?).contains(&true) {
            return Err(Cause::NoFlow(stack.name()));
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
    pub(crate) fn run(self, connect: Box<Connect<'_>>) -> Result<Runs<'_>, Cause> {
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
                let run = || self.run_seed(seed, expectations.as_ref(), &*connect);
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
        Ok(Runs { runs, expectations, plan: self, connect })
    }

    fn run_seed(
        &self,
        seed: u64,
        expectations: Option<&Expectations>,
        connect: &Connect<'_>,
    ) -> Result<Run, Cause> {
        let (mut network, records, own) = self.simulate(seed, connect, false)?;
        let flows = network.flows.iter_mut().zip(&records.flows).zip(&own);
        for ((flow, record), _) in flows.filter(|(_, own)| **own && self.application) {
            flow.bytes = Some(record.bytes_delivered.max(1));
        }
        let (flow, outcome, at) = outcome(&records, &own, network.duration.as_secs());
        let run = metrics::Run::new(&network, &records);
        let checked = expectations.map_or_else(Vec::new, |all| all.check(&run));
        let value = |value: f64| (!value.is_nan()).then_some(value);
        let checked = checked.iter().map(|each| (value(each.value), each.holds)).collect();
        Ok(Run { seed, outcome, at, checked, flow })
    }

    /// Runs one seed. Returns for each flow whether it is of the stack, too. With `qlog` the records
    /// have the packets and the events of controllers.
    fn simulate(
        &self,
        seed: u64,
        connect: &Connect<'_>,
        qlog: bool,
    ) -> Result<(Network, Records, Vec<bool>), Cause> {
        let mut network = self.scenario.network(seed)?;
        let own = self.own(&network);
        for (flow, _) in network.flows.iter_mut().zip(&own).filter(|(_, own)| **own) {
            flow.bytes = self.bytes.or(flow.bytes);
        }
        let options = Options {
            quic: Some(&connect),
            record_events: qlog,
            record_packets: qlog,
            ..Options::default()
        };
        let mut simulation = Simulation::new(&network, seed, &options)
            .map_err(|source| Cause::Simulation { seed, source })?;
        simulation.run();
        Ok((network, simulation.finish(), own))
    }
}

/// Returns the number of the flow in `own` that determines the outcome, the outcome and its time in
/// seconds.
fn outcome(records: &Records, own: &[bool], duration: f64) -> (usize, Outcome, f64) {
    let flows = || records.flows.iter().enumerate().filter(|(index, _)| own[*index]);
    let closed = flows().filter_map(|(index, flow)| Some((index, flow.closed.as_ref()?)));
    let first = closed.min_by(|(_, a), (_, b)| a.at.total_cmp(&b.at));
    if let Some((index, Closed { at, reason })) = first {
        return (index, Outcome::Closed(reason.clone()), *at);
    }
    if let Some((index, _)) = flows().find(|(_, flow)| flow.acknowledged.is_nan()) {
        return (index, Outcome::Deadline, duration);
    }
    let ends = flows().map(|(index, flow)| (index, flow.acknowledged));
    let (index, at) = ends.max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or_default();
    (index, Outcome::Done, at)
}
