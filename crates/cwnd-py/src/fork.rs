//! A simulation that Python runs in parts, copies and changes.

use crate::custom::{Factory, Failure, begin_run};
use crate::records::{self, Finished};
use crate::scenario::{ScenarioError, read_scenario, scenario_error};
use crate::simulate::{SLICE, controllers, warn_of};
use cwnd::answers::{OddAnswer, odd_answers, watch_answers};
use cwnd::registry::declared_name;
use cwnd::{Dur, MakeController, Time};
use cwnd_sim::Options;
use cwnd_sim::network::Network;
use cwnd_sim::scenario::Conventions;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What a run and its copies begin with.
struct Beginning {
    network: Arc<Network>,
    seed: u64,
    conventions: Vec<Conventions>,
    /// What makes the controllers written in Python, by their specifications.
    controllers: HashMap<String, Py<PyAny>>,
    lookahead: bool,
}

impl Beginning {
    /// Begins a run. After an error of a Python controller this run has no result; others go on.
    fn simulation(&self, py: Python<'_>) -> PyResult<(cwnd_sim::Simulation, Arc<Failure>)> {
        let network = &self.network;
        if !self.controllers.is_empty() {
            let names = controllers(network);
            begin_run(format!("in {} with {names}, seed {}", network.name, self.seed));
        }
        let failure = Arc::<Failure>::default();
        let custom = |spec: &str| -> Option<Arc<dyn MakeController>> {
            let factory = self.controllers.get(spec)?.clone_ref(py);
            Some(Arc::new(Factory::new(factory, spec, failure.clone())))
        };
        let options = Options {
            custom: Some(&custom),
            quic: Some(&cwnd_quic_sim::connect),
            lookahead: self.lookahead,
            ..Options::default()
        };
        let made = cwnd_sim::Simulation::new(network.clone(), self.seed, &options);
        failure.check()?;
        let made = made.map_err(|error| ScenarioError::new_err(error.to_string()))?;
        Ok((made, failure))
    }
}

/// One run of a scenario in JSON. A run whose state cannot be copied stays at its beginning: its
/// copies begin anew, with the same results.
#[pyclass(module = "cwnd._native")]
pub(crate) struct Simulation {
    beginning: Arc<Beginning>,
    run: Mutex<cwnd_sim::Simulation>,
    /// The first error of the run's Python controllers.
    failure: Arc<Failure>,
    /// The first odd answers of laws in files up to the time of the run.
    odd: Vec<OddAnswer>,
    /// The times of the changes, and the networks after them.
    changes: Vec<(Time, Arc<Network>)>,
    /// Why the state cannot be copied, if that was tried.
    again: Option<String>,
    /// Time that the run took, that of its copies until they were made included.
    took: Duration,
}

impl Simulation {
    fn run(&mut self) -> &mut cwnd_sim::Simulation {
        self.run.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Simulation {
    #[new]
    #[pyo3(signature = (scenario_json, seed, *, controllers = None, lookahead = true))]
    fn new(
        py: Python<'_>,
        scenario_json: &str,
        seed: u64,
        controllers: Option<HashMap<String, Py<PyAny>>>,
        lookahead: bool,
    ) -> PyResult<Self> {
        let scenario = read_scenario(scenario_json)?;
        let network = Arc::new(scenario.network(seed).map_err(scenario_error)?);
        let (controllers, conventions) = (controllers.unwrap_or_default(), scenario.conventions());
        let beginning = Beginning { network, seed, conventions, controllers, lookahead };
        let (run, failure) = beginning.simulation(py)?;
        Ok(Simulation {
            beginning: Arc::new(beginning),
            run: Mutex::new(run),
            failure,
            odd: Vec::new(),
            changes: Vec::new(),
            again: None,
            took: Duration::ZERO,
        })
    }

    /// Runs as far towards `at_s` seconds as nothing of this time is determined.
    fn run_until(&mut self, py: Python<'_>, at_s: f64) -> PyResult<()> {
        let begin = Instant::now();
        let run = self.run();
        let (ended, odd) = py.detach(|| {
            watch_answers();
            (run.run_until(time(at_s)), odd_answers())
        });
        self.took += begin.elapsed();
        self.again = ended.err().map(|error| error.to_string());
        // The copies that lead to the time may have passed it.
        self.odd.extend(odd.into_iter().filter(|answer| answer.at < at_s));
        Ok(())
    }

    /// Returns a copy of the run.
    fn fork(&mut self, py: Python<'_>) -> PyResult<Self> {
        let copied = self.run().fork();
        let (run, failure, again) = match copied {
            Ok(run) => (run, self.failure.clone(), None),
            Err(error) => {
                let (mut run, failure) = self.beginning.simulation(py)?;
                for (at, network) in &self.changes {
                    run.change(*at, network.clone()).map_err(refused)?;
                }
                (run, failure, Some(error.to_string()))
            }
        };
        self.again.clone_from(&again);
        Ok(Simulation {
            beginning: self.beginning.clone(),
            run: Mutex::new(run),
            failure,
            odd: self.odd.clone(),
            changes: self.changes.clone(),
            again,
            took: self.took,
        })
    }

    /// Makes the run one of another scenario in JSON from `at_s` seconds on.
    fn change(&mut self, scenario_json: &str, at_s: f64) -> PyResult<()> {
        let scenario = read_scenario(scenario_json)?;
        let network = scenario.network(self.beginning.seed).map_err(scenario_error)?;
        let (at, network) = (time(at_s), Arc::new(network));
        self.run().change(at, network.clone()).map_err(refused)?;
        self.changes.push((at, network));
        Ok(())
    }

    /// Runs a copy to the end, and returns its record.
    #[pyo3(signature = (progress = None))]
    fn record<'py>(
        &mut self,
        py: Python<'py>,
        progress: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let begin = Instant::now();
        watch_answers();
        let Simulation { mut run, failure, mut odd, again, took, .. } = self.fork(py)?;
        let run_mut = run.get_mut().unwrap_or_else(PoisonError::into_inner);
        while !py.detach(|| run_mut.run_for(SLICE)) {
            py.check_signals()?;
            failure.check()?;
            if let Some(progress) = &progress {
                progress.call1((run_mut.progress(),))?;
            }
        }
        failure.check()?;
        odd.extend(odd_answers());
        warn_of(
            py,
            odd.into_iter().filter_map(|odd| Some((declared_name(odd.law)?, 0, odd))).collect(),
        )?;
        let run = run.into_inner().unwrap_or_else(PoisonError::into_inner);
        let network = run.network().clone();
        let mut records = run.finish();
        if let Some(again) = again.filter(|_| !self.changes.is_empty()) {
            records.notes.push(format!("The run was repeated from its beginning: {again}."));
        }
        let (name, seed) = (network.name.clone(), self.beginning.seed);
        let conventions = self.beginning.conventions.clone();
        let wall = (took + begin.elapsed()).as_secs_f64();
        records::run(py, Finished { name, seed, network, conventions, records, wall })
    }
}

fn refused(error: cwnd_sim::ChangeError) -> PyErr {
    ScenarioError::new_err(error.to_string())
}

fn time(seconds: f64) -> Time {
    Time::ZERO + Dur::from_secs(seconds)
}
