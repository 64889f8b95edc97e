//! Laws without a network, for the models in Python, which check the arguments.

#![expect(clippy::too_many_arguments, reason = "they are named in Python")]

use crate::custom::{Failure, Given};
use crate::parallel;
use crate::registry::SpecError;
use cwnd::model::{self, Alone, Epoch, Path, Pattern, Plane};
use cwnd::{Dur, Law, MakeController, Rate, RateLaw, Settings, WindowLaw};
use numpy::ndarray::Array2;
use numpy::{IntoPyArray, PyArray1, PyArray2, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Steps in which a sawtooth must return to its window; otherwise it is not periodic.
const SAWTOOTH_LIMIT: u64 = 100_000_000;

type Column<'py> = Bound<'py, PyArray1<f64>>;
type Table<'py> = Bound<'py, PyArray2<f64>>;

/// A law that can start at a given window, and the error raised by a law written in Python.
struct Model {
    make: Arc<dyn MakeController>,
    law: Law,
    failure: Arc<Failure>,
}

impl Model {
    fn read(given: &Given) -> PyResult<Self> {
        let failure = Arc::default();
        let make = given.read(&failure)?;
        let law = make.law(&Settings::default());
        failure.check()?;
        let law = law.ok_or_else(|| {
            SpecError::new_err(format!("{make} is not a law: the models need a law"))
        })?;
        if let Law::Rate(rate) = &law
            && rate.starts_itself()
        {
            return Err(SpecError::new_err(format!(
                "{make} has a slow start of its own: it cannot begin at a given window"
            )));
        }
        if let Law::Window(window) = &law
            && window.uses_delivery_rate()
        {
            return Err(SpecError::new_err(format!(
                "{make} uses delivery-rate samples, which the models do not have"
            )));
        }
        Ok(Model { make, law, failure })
    }

    /// Reads a window law.
    fn windowed(given: &Given) -> PyResult<Self> {
        let model = Model::read(given)?;
        match model.law {
            Law::Window(_) => Ok(model),
            Law::Rate(_) => Err(SpecError::new_err(format!(
                "{} sets a rate by a clock of its own: here a law for the window is needed",
                model.make
            ))),
        }
    }

    /// The law of flow number `index`, with a random stream of its own.
    fn law(&self, index: u64) -> PyResult<Law> {
        let mut settings = Settings::default();
        settings.seed = index;
        let law = self.make.law(&settings);
        self.failure.check()?;
        Ok(law.unwrap_or_else(|| self.law.clone()))
    }
}

fn path(rtt: f64, packet: u32, capacity: f64) -> Path {
    Path { rtt: Dur::from_secs(rtt), capacity: Rate::per_sec(capacity / rtt), packet }
}

fn pattern(whole: bool) -> Pattern {
    if whole { Pattern::Whole } else { Pattern::Each }
}

fn table<'py>(py: Python<'py>, columns: usize, rows: Vec<f64>) -> PyResult<Table<'py>> {
    let shape = (rows.len() / columns.max(1), columns);
    let array = Array2::from_shape_vec(shape, rows)
        .map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok(array.into_pyarray(py))
}

/// A law that starts congestion avoidance at `window`, or at the window after a loss there.
fn start(model: &Model, window: f64, path: Path, at_loss: bool) -> Alone {
    let mut flow = Alone::new(model.law.clone(), window, path);
    if at_loss {
        flow.cut();
    }
    flow
}

/// Returns the window before the first acknowledgement and after each.
#[pyfunction]
#[pyo3(signature = (spec, window, acks, *, rtt, packet, at_loss))]
pub(crate) fn law_acks<'py>(
    py: Python<'py>,
    spec: Given,
    window: f64,
    acks: usize,
    rtt: f64,
    packet: u32,
    at_loss: bool,
) -> PyResult<Column<'py>> {
    let model = Model::windowed(&spec)?;
    let mut flow = start(&model, window, path(rtt, packet, 0.0), at_loss);
    let mut windows = vec![flow.window()];
    py.detach(|| {
        windows.extend((0..acks).map(|_| {
            flow.acknowledge(false);
            flow.window()
        }));
    });
    model.failure.check()?;
    Ok(windows.into_pyarray(py))
}

/// Returns the window before the first round and after each.
#[pyfunction]
#[pyo3(signature = (spec, window, rounds, *, rtt, packet, capacity, whole, at_loss))]
pub(crate) fn law_rounds<'py>(
    py: Python<'py>,
    spec: Given,
    window: f64,
    rounds: usize,
    rtt: f64,
    packet: u32,
    capacity: f64,
    whole: bool,
    at_loss: bool,
) -> PyResult<Column<'py>> {
    let model = Model::read(&spec)?;
    let mut flow = start(&model, window, path(rtt, packet, capacity), at_loss);
    let mut windows = vec![flow.window()];
    py.detach(|| {
        windows.extend((0..rounds).map(|_| {
            flow.round(pattern(whole));
            flow.window()
        }));
    });
    model.failure.check()?;
    Ok(windows.into_pyarray(py))
}

/// Returns the window after a first loss at each of `windows`.
#[pyfunction]
#[pyo3(signature = (spec, windows, *, rtt, packet))]
pub(crate) fn law_cut<'py>(
    py: Python<'py>,
    spec: Given,
    windows: PyReadonlyArray1<'py, f64>,
    rtt: f64,
    packet: u32,
) -> PyResult<Column<'py>> {
    let (model, path) = (Model::read(&spec)?, path(rtt, packet, 0.0));
    let after = |&window: &f64| start(&model, window, path, true).window();
    let windows: Vec<_> = windows.as_slice()?.iter().map(after).collect();
    model.failure.check()?;
    Ok(windows.into_pyarray(py))
}

/// Whether the state of a window law after a loss depends only on the window at the loss.
#[pyfunction]
#[pyo3(signature = (spec, *, rtt, packet))]
pub(crate) fn law_forgets(spec: Given, rtt: f64, packet: u32) -> PyResult<bool> {
    let model = Model::windowed(&spec)?;
    let forgets = model::forgets(&model.law, path(rtt, packet, 0.0));
    model.failure.check()?;
    Ok(forgets)
}

/// Returns for a loss at each of `windows`: the window after it, and the round-trip times and
/// packets until the window returns to its value. NaN where the law is not periodic, and at the windows
/// after one where it is not.
#[pyfunction]
#[pyo3(signature = (spec, windows, *, rtt, packet))]
pub(crate) fn law_sawtooth<'py>(
    py: Python<'py>,
    spec: Given,
    windows: PyReadonlyArray1<'py, f64>,
    rtt: f64,
    packet: u32,
) -> PyResult<Table<'py>> {
    let (model, path) = (Model::windowed(&spec)?, path(rtt, packet, 0.0));
    let windows = windows.as_slice()?;
    let failed = AtomicBool::new(false);
    let teeth = parallel::map(py, windows.len(), |at| {
        // After one window without a sawtooth the others are not needed.
        let wanted = (!failed.load(Ordering::Relaxed)).then_some(windows[at]);
        let tooth = wanted
            .and_then(|window| model::sawtooth(model.law.clone(), window, path, SAWTOOTH_LIMIT));
        failed.fetch_or(tooth.is_none(), Ordering::Relaxed);
        tooth.map_or([f64::NAN; 3], |tooth| [tooth.after, tooth.rounds, tooth.packets])
    })?;
    model.failure.check()?;
    table(py, 3, teeth.into_flattened())
}

/// Returns the windows at the end of each round, and those after its loss, if there was one. A
/// column is a flow; the first row is the start.
#[pyfunction]
#[pyo3(signature = (specs, windows, capacity, rounds, *, rtt, packet, whole))]
pub(crate) fn synchronous<'py>(
    py: Python<'py>,
    specs: Vec<Given>,
    windows: Vec<f64>,
    capacity: f64,
    rounds: usize,
    rtt: f64,
    packet: u32,
    whole: bool,
) -> PyResult<(Table<'py>, Table<'py>)> {
    let models = specs.iter().map(Model::read).collect::<PyResult<Vec<_>>>()?;
    let laws = models.iter().zip(0..).map(|(model, at)| model.law(at));
    let laws = laws.collect::<PyResult<Vec<_>>>()?;
    let path = path(rtt, packet, capacity);
    let mut plane = Plane::new(laws.into_iter().zip(windows), capacity, path, pattern(whole));
    let (mut before, mut after) = (Vec::new(), Vec::new());
    py.detach(|| {
        for round in 0..=rounds {
            if round > 0 {
                plane.grow();
            }
            before.extend(plane.windows());
            if plane.is_full() {
                plane.cut();
            }
            after.extend(plane.windows());
        }
    });
    models.iter().try_for_each(|model| model.failure.check())?;
    Ok((table(py, models.len(), before)?, table(py, models.len(), after)?))
}

/// Returns for each pair of windows: the rounds to the efficiency line, the difference there, and
/// the rounds and losses from there to fairness.
#[pyfunction]
#[pyo3(signature = (specs, first, second, capacity, epsilon, *, limit, rtt, packet, whole))]
pub(crate) fn converge<'py>(
    py: Python<'py>,
    specs: (Given, Given),
    first: PyReadonlyArray1<'py, f64>,
    second: PyReadonlyArray1<'py, f64>,
    capacity: f64,
    epsilon: f64,
    limit: u64,
    rtt: f64,
    packet: u32,
    whole: bool,
) -> PyResult<Table<'py>> {
    let (a, b) = (Model::read(&specs.0)?, Model::read(&specs.1)?);
    let (first, second) = (first.as_slice()?, second.as_slice()?);
    let path = path(rtt, packet, capacity);
    let laws = [a.law(0)?, b.law(1)?];
    let found = parallel::map(py, first.len().min(second.len()), |at| {
        let [first_law, second_law] = laws.clone();
        let flows = [(first_law, first[at]), (second_law, second[at])];
        let plane = Plane::new(flows, capacity, path, pattern(whole));
        let found = model::converge(plane, epsilon, limit);
        [found.to_efficiency, found.difference, found.to_fairness, found.epochs]
    })?;
    [a, b].iter().try_for_each(|model| model.failure.check())?;
    table(py, 4, found.into_flattened())
}

/// The chain of windows at losses of probability `p`, on `grid` (ascending packets): the matrix of
/// its transitions, the expected round-trip times at each window in an epoch that begins with a
/// loss at each, and the expected sums of [`model::Sums`]. Windows between two points are split so
/// that the mean is kept; the grid has at least two.
#[pyfunction]
#[pyo3(signature = (spec, grid, p, *, tail, ideal, rtt, packet))]
pub(crate) fn loss_chain<'py>(
    py: Python<'py>,
    spec: Given,
    grid: PyReadonlyArray1<'py, f64>,
    p: f64,
    tail: f64,
    ideal: bool,
    rtt: f64,
    packet: u32,
) -> PyResult<(Table<'py>, Table<'py>, Table<'py>)> {
    let (model, path) = (Model::windowed(&spec)?, path(rtt, packet, 0.0));
    let grid = grid.as_slice()?;
    let top = grid.last().copied().unwrap_or_default();
    let rows = parallel::map(py, grid.len(), |at| {
        let (mut ends, mut stays) = (vec![0.0; grid.len()], vec![0.0; grid.len()]);
        // The grid point below the last window: consecutive windows are close to each other.
        let mut below = 0;
        let epoch = Epoch::new(model.law.clone(), grid[at], path, ideal);
        let sums = epoch.run(p, tail, top, |window, end, stay| {
            while below > 0 && grid[below] > window {
                below -= 1;
            }
            while below + 2 < grid.len() && grid[below + 1] <= window {
                below += 1;
            }
            let gap = grid[below + 1] - grid[below];
            let part = ((window - grid[below]) / gap).clamp(0.0, 1.0);
            for (weights, weight) in [(&mut ends, end), (&mut stays, stay)] {
                weights[below] += weight * (1.0 - part);
                weights[below + 1] += weight * part;
            }
        });
        (ends, stays, [sums.rounds, sums.window, sums.square, sums.at_loss, sums.packets])
    })?;
    model.failure.check()?;
    let (mut ends, mut stays, mut sums) = (Vec::new(), Vec::new(), Vec::new());
    for (of_ends, of_stays, of_sums) in rows {
        ends.extend(of_ends);
        stays.extend(of_stays);
        sums.extend(of_sums);
    }
    Ok((table(py, grid.len(), ends)?, table(py, grid.len(), stays)?, table(py, 5, sums)?))
}
