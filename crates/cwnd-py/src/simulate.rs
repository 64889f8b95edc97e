//! Runs simulations on all cores with the GIL released.

use crate::custom::{Factory, Failure, begin_run};
use crate::parallel;
use crate::records::{self, Finished};
use crate::scenario::{ScenarioError, read_scenario, scenario_error};
use cwnd::answers::{OddAnswer, odd_answers, watch_answers};
use cwnd::registry::declared_name;
use cwnd::{AnyController, Controller, MakeController, Settings, Spec};
use cwnd_law::{Hook, Kind};
use cwnd_sim::network::{Flow, Network, Quic, Tcp, Traffic, Udt};
use cwnd_sim::qlog;
use cwnd_sim::record::Records;
use cwnd_sim::scenario::Conventions;
use cwnd_sim::{Options, PcapWriter, Simulation};
use pyo3::exceptions::{PyOSError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::PyList;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// Events between two looks at whether to stop.
pub(crate) const SLICE: u64 = 200_000;
/// Progress is counted in this many parts of a run.
const PARTS: f64 = 1e6;

struct Job {
    name: String,
    seed: u64,
    network: Arc<Network>,
    conventions: Vec<Conventions>,
    /// Parts done so far.
    done: AtomicU64,
}

/// What makes the controllers written in Python, by their specifications.
type Laws = HashMap<String, Arc<dyn MakeController>>;

/// What the workers share.
struct Shared {
    jobs: Vec<Job>,
    stop: AtomicBool,
    failure: Arc<Failure>,
    laws: Laws,
    /// The first odd answers of laws in files, with the names of the laws and the jobs' numbers.
    odd: Mutex<Vec<(&'static str, usize, OddAnswer)>>,
    tap: Option<Tap>,
    lookahead: bool,
    /// Records the acknowledgements of each flow.
    acks: bool,
    qlogs: Option<Qlogs>,
}

/// The folder of the qlogs of the flows; the first failure to write one.
struct Qlogs {
    folder: PathBuf,
    failure: Mutex<Option<io::Error>>,
}

/// The capture of one link; what went wrong with it, if anything did.
struct Tap {
    link: usize,
    writer: Arc<Mutex<io::Result<PcapWriter<BufWriter<File>>>>>,
}

/// Runs every job, a scenario in JSON with a seed, and returns in order their records, or what
/// `keep` made of their numbers and records while other jobs went on. `progress` is called with the
/// fraction of the work that is done.
#[pyfunction]
#[pyo3(signature = (jobs, *, threads = 0, controllers = None, progress = None, keep = None, pcap = None, lookahead = true, acks = false, qlog = None))]
#[expect(clippy::too_many_arguments, reason = "they are named in Python")]
pub(crate) fn simulate<'py>(
    py: Python<'py>,
    jobs: Vec<(String, u64)>,
    threads: usize,
    controllers: Option<HashMap<String, Py<PyAny>>>,
    progress: Option<Bound<'py, PyAny>>,
    keep: Option<Bound<'py, PyAny>>,
    pcap: Option<(String, String)>,
    lookahead: bool,
    acks: bool,
    qlog: Option<PathBuf>,
) -> PyResult<Bound<'py, PyList>> {
    let jobs = py.detach(|| jobs.into_iter().map(prepare).collect::<PyResult<Vec<_>>>())?;
    let failure = Arc::<Failure>::default();
    let law = |(spec, factory): (String, _)| -> (String, Arc<dyn MakeController>) {
        let made = Arc::new(Factory::new(factory, &spec, failure.clone()));
        (spec, made)
    };
    let laws: HashMap<_, _> = controllers.unwrap_or_default().into_iter().map(law).collect();
    let tap = match (pcap, jobs.first()) {
        (Some((link, path)), Some(job)) => Some(Tap::new(&job.network, &laws, &link, &path)?),
        _ => None,
    };
    failure.check()?;
    let stop = AtomicBool::new(false);
    let odd = Mutex::default();
    let qlogs = qlog.map(|folder| Qlogs { folder, failure: Mutex::default() });
    let shared = Shared { jobs, stop, failure, laws, odd, tap, lookahead, acks, qlogs };
    let total: f64 = shared.jobs.iter().map(|job| job.network.duration.as_secs()).sum();
    let mut results = Vec::with_capacity(shared.jobs.len());
    let take = |message: Option<(usize, Result<Finished, String>)>| {
        if let Some(progress) = &progress {
            let done = |job: &Job| {
                job.network.duration.as_secs() * job.done.load(Ordering::Relaxed) as f64 / PARTS
            };
            progress.call1((shared.jobs.iter().map(done).sum::<f64>() / total,))?;
        }
        let Some((index, finished)) = message else { return Ok(()) };
        let finished = finished.map_err(ScenarioError::new_err)?;
        let record = without_collecting(py, || records::run(py, finished))?.into_any();
        let kept = match &keep {
            Some(keep) => keep.call1((index, record))?,
            None => record,
        };
        results.push((index, kept));
        Ok(())
    };
    let work = |index: usize| {
        watch_answers();
        let ended = run_one(&shared, &shared.jobs[index]).transpose();
        let named = |answer: OddAnswer| Some((declared_name(answer.law)?, index, answer));
        let answers = odd_answers().into_iter().filter_map(named);
        shared.odd.lock().unwrap_or_else(PoisonError::into_inner).extend(answers);
        ended
    };
    let stop = || {
        shared.stop.store(true, Ordering::Relaxed);
        shared.failure.stop();
    };
    let ended = parallel::each(py, (shared.jobs.len(), threads), work, stop, take);
    // What went wrong in Python comes first: the rest follows from it.
    if let Some(error) = shared.failure.take() {
        return Err(error);
    }
    if ended?.is_err() || results.len() < shared.jobs.len() {
        return Err(PyRuntimeError::new_err("a run ended early: this is a bug in cwnd"));
    }
    if let Some(tap) = &shared.tap {
        tap.finish()?;
    }
    if let Some(qlogs) = shared.qlogs {
        let failure = qlogs.failure.into_inner().unwrap_or_else(PoisonError::into_inner);
        failure.map_or(Ok(()), |error| Err(PyErr::from(error)))?;
    }
    warn_of(py, shared.odd.into_inner().unwrap_or_else(PoisonError::into_inner))?;
    results.sort_by_key(|(index, _)| *index);
    PyList::new(py, results.into_iter().map(|(_, kept)| kept))
}

/// Warns of one odd answer of each law: that of the first job.
pub(crate) fn warn_of(
    py: Python<'_>,
    mut answers: Vec<(&'static str, usize, OddAnswer)>,
) -> PyResult<()> {
    answers.sort_by_key(|(name, job, _)| (*name, *job));
    answers.dedup_by_key(|(name, ..)| *name);
    for (name, _, OddAnswer { hook, answer, at, .. }) in answers {
        let counts = match hook.kind() {
            Kind::Window if hook == Hook::Grow && answer > 0.0 => "the largest window",
            Kind::Window => "the least window",
            Kind::Rate if hook == Hook::Start || answer.is_finite() => "the least rate",
            Kind::Rate => "the rate before",
        };
        let files = py.import("cwnd._base.law_files")?;
        files.call_method1("warn_answer", (name, hook.name(), answer, at, counts))?;
    }
    Ok(())
}

/// Runs `work` with Python's garbage collector disabled: records have no reference cycles, and with
/// many flows the repeated collections take longer than the conversion.
fn without_collecting<'py, T>(py: Python<'py>, work: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    let gc = py.import("gc")?;
    if !gc.call_method0("isenabled")?.extract::<bool>()? {
        return work();
    }
    gc.call_method0("disable")?;
    let done = work();
    gc.call_method0("enable")?;
    done
}

fn prepare((scenario, seed): (String, u64)) -> PyResult<Job> {
    let scenario = read_scenario(&scenario)?;
    let network = Arc::new(scenario.network(seed).map_err(scenario_error)?);
    let (name, conventions) = (network.name.clone(), scenario.conventions());
    Ok(Job { name, seed, network, conventions, done: AtomicU64::new(0) })
}

/// Runs one job; `None` if it was stopped.
fn run_one(shared: &Shared, job: &Job) -> Result<Option<Finished>, String> {
    let begin = Instant::now();
    let custom =
        |spec: &str| -> Option<Arc<dyn MakeController>> { Some(shared.laws.get(spec)?.clone()) };
    let python = !shared.laws.is_empty();
    if python {
        begin_run(format!("in {} with {}, seed {}", job.name, controllers(&job.network), job.seed));
    }
    let options = Options {
        custom: python.then_some(&custom),
        quic: Some(&cwnd_quic_sim::connect),
        lookahead: shared.lookahead,
        record_events: shared.acks || shared.qlogs.is_some(),
        record_packets: shared.qlogs.is_some(),
    };
    let made = Simulation::new(job.network.clone(), job.seed, &options);
    if shared.failure.happened() {
        return Ok(None);
    }
    let mut simulation = made.map_err(|error| error.to_string())?;
    if let Some(tap) = &shared.tap {
        let writer = tap.writer.clone();
        simulation.tap(tap.link, move |seen| {
            let mut writer = writer.lock().unwrap_or_else(PoisonError::into_inner);
            if let Ok(pcap) = &mut *writer
                && let Err(error) = pcap.write(seen)
            {
                *writer = Err(error);
            }
        });
    }
    while !simulation.run_for(SLICE) {
        job.done.store((simulation.progress() * PARTS) as u64, Ordering::Relaxed);
        if shared.stop.load(Ordering::Relaxed) || shared.failure.happened() {
            return Ok(None);
        }
    }
    job.done.store(PARTS as u64, Ordering::Relaxed);
    let flows = 0..job.network.flows.len();
    let controllers: Vec<_> = match &shared.qlogs {
        Some(_) => flows.map(|flow| again(&simulation, &job.network, flow)).collect(),
        None => Vec::new(),
    };
    let mut records = simulation.finish();
    if let Some(qlogs) = &shared.qlogs {
        if let Err(error) = qlogs.write(&job.network, &records, controllers) {
            *qlogs.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        }
        for record in &mut records.flows {
            record.packets = Vec::new();
            record.events.take_if(|_| !shared.acks);
        }
    }
    let wall = begin.elapsed().as_secs_f64();
    let (name, seed, network) = (job.name.clone(), job.seed, job.network.clone());
    let conventions = job.conventions.clone();
    Ok(Some(Finished { name, seed, network, conventions, records, wall }))
}

/// Makes the controller of a flow anew, if it is one of the registry.
fn again(simulation: &Simulation, network: &Network, flow: usize) -> Option<AnyController> {
    let settings = simulation.settings(flow)?;
    Some(Spec::parse(controller(&network.flows[flow])?).ok()?.controller(&settings))
}

/// The specification of the controller of a flow.
pub(crate) fn controller(flow: &Flow) -> Option<&str> {
    match &*flow.traffic {
        Traffic::Tcp(Tcp { controller, .. })
        | Traffic::Udt(Udt { controller, .. })
        | Traffic::Quic(Quic { controller, .. }) => Some(controller),
        Traffic::Cbr { .. } | Traffic::Pareto { .. } => None,
    }
}

/// The names of the controllers of a network, each once.
pub(crate) fn controllers(network: &Network) -> String {
    let mut names = Vec::new();
    for flow in &network.flows {
        let Some(controller) = controller(flow) else { continue };
        if !names.contains(&controller) {
            names.push(controller);
        }
    }
    names.join(" and ")
}

impl Qlogs {
    /// Writes the files of the flows with a controller, which have the numbers of the flows.
    fn write(
        &self,
        network: &Network,
        records: &Records,
        controllers: Vec<Option<AnyController>>,
    ) -> io::Result<()> {
        for (flow, again) in controllers.into_iter().enumerate() {
            if controller(&network.flows[flow]).is_some() {
                let file = File::create(self.folder.join(format!("{flow}.sqlog")))?;
                qlog::write(BufWriter::new(file), network, flow, &records.flows[flow], again)?;
            }
        }
        Ok(())
    }
}

impl Tap {
    fn new(network: &Network, laws: &Laws, link: &str, path: &str) -> PyResult<Self> {
        let found = network.links.iter().position(|known| known.name == link);
        let link = found.ok_or_else(|| {
            let known: Vec<_> = network.links.iter().map(|link| link.name.as_str()).collect();
            let most = known.len().min(12);
            let more = if most < known.len() { ", …" } else { "" };
            let known = known[..most].join(", ");
            ScenarioError::new_err(format!("no link is named {link:?}; links: {known}{more}"))
        })?;
        let file = File::create(path)?;
        let mut writer = PcapWriter::new(BufWriter::new(file), network)?;
        for (at, flow) in network.flows.iter().enumerate() {
            if let Traffic::Tcp(tcp) = &*flow.traffic
                && let Some(law) = laws.get(&tcp.controller)
                && law.controller(&Settings::default()).needs().reports
            {
                writer.use_datagrams(at);
            }
        }
        Ok(Tap { link, writer: Arc::new(Mutex::new(Ok(writer))) })
    }

    fn finish(&self) -> PyResult<()> {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let finished = std::mem::replace(&mut *writer, Err(io::Error::other("finished")));
        finished.and_then(PcapWriter::finish).map_err(|error| PyOSError::new_err(error.to_string()))
    }
}

/// Refuses a scenario in JSON that names a controller of the kernel without a law of that name in
/// the simulator.
#[pyfunction]
pub(crate) fn check_simulated(scenario_json: &str) -> PyResult<()> {
    let scenario = read_scenario(scenario_json)?;
    let network = scenario.network(0).map_err(scenario_error)?;
    let options = Options { quic: Some(&cwnd_quic_sim::connect), ..Options::default() };
    Simulation::new(network, 0, &options)
        .map(drop)
        .map_err(|error| ScenarioError::new_err(error.to_string()))
}
