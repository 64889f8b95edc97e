//! A simulation that Python runs in parts, copies and changes.

use crate::custom::{Factory, Failure, begin_run};
use crate::records::{self, Finished};
use crate::scenario::{ScenarioError, read_scenario, scenario_error};
use crate::simulate::{SLICE, controllers};
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
    failure: Arc<Failure>,
    laws: HashMap<String, Arc<dyn MakeController>>,
    lookahead: bool,
}

impl Beginning {
    fn simulation(&self) -> PyResult<cwnd_sim::Simulation> {
        let network = &self.network;
        if !self.laws.is_empty() {
            let names = controllers(network);
            begin_run(format!("in {} with {names}, seed {}", network.name, self.seed));
        }
        let custom = |spec: &str| self.laws.get(spec).cloned();
        let options = Options {
            custom: Some(&custom),
            quic: Some(&cwnd_quic_sim::connect),
            lookahead: self.lookahead,
            ..Options::default()
        };
        let made = cwnd_sim::Simulation::new(network.clone(), self.seed, &options);
        self.failure.check()?;
        made.map_err(|error| ScenarioError::new_err(error.to_string()))
    }
}

/// One run of a scenario in JSON. A run whose state cannot be copied stays at its beginning: its
/// copies begin anew, with the same results.
#[pyclass(module = "cwnd._native")]
pub(crate) struct Simulation {
    beginning: Arc<Beginning>,
    run: Mutex<cwnd_sim::Simulation>,
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
        scenario_json: &str,
        seed: u64,
        controllers: Option<HashMap<String, Py<PyAny>>>,
        lookahead: bool,
    ) -> PyResult<Self> {
        let scenario = read_scenario(scenario_json)?;
        let network = Arc::new(scenario.network(seed).map_err(scenario_error)?);
        let failure = Arc::<Failure>::default();
        let law = |(spec, factory): (String, _)| -> (String, Arc<dyn MakeController>) {
            let made = Arc::new(Factory::new(factory, &spec, failure.clone()));
            (spec, made)
        };
        let laws = controllers.unwrap_or_default().into_iter().map(law).collect();
        let conventions = scenario.conventions();
        let beginning = Beginning { network, seed, conventions, failure, laws, lookahead };
        let run = Mutex::new(beginning.simulation()?);
        let (changes, took) = (Vec::new(), Duration::ZERO);
        Ok(Simulation { beginning: Arc::new(beginning), run, changes, again: None, took })
    }

    /// Runs as far towards `at_s` seconds as nothing of this time is determined.
    fn run_until(&mut self, py: Python<'_>, at_s: f64) -> PyResult<()> {
        let begin = Instant::now();
        let run = self.run();
        let ended = py.detach(|| run.run_until(time(at_s)));
        self.took += begin.elapsed();
        self.again = ended.err().map(|error| error.to_string());
        self.beginning.failure.check()
    }

    /// Returns a copy of the run.
    fn fork(&mut self) -> PyResult<Self> {
        let copied = self.run().fork();
        let (run, again) = match copied {
            Ok(run) => (run, None),
            Err(error) => {
                let mut run = self.beginning.simulation()?;
                for (at, network) in &self.changes {
                    run.change(*at, network.clone()).map_err(refused)?;
                }
                (run, Some(error.to_string()))
            }
        };
        self.again.clone_from(&again);
        let (beginning, changes, took) = (self.beginning.clone(), self.changes.clone(), self.took);
        Ok(Simulation { beginning, run: Mutex::new(run), changes, again, took })
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
        let Simulation { mut run, again, took, .. } = self.fork()?;
        let run_mut = run.get_mut().unwrap_or_else(PoisonError::into_inner);
        while !py.detach(|| run_mut.run_for(SLICE)) {
            py.check_signals()?;
            self.beginning.failure.check()?;
            if let Some(progress) = &progress {
                progress.call1((run_mut.progress(),))?;
            }
        }
        self.beginning.failure.check()?;
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
