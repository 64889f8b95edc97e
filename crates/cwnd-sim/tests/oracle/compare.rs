//! Recorded results of ns-2, runs of scenarios, and the comparison of both.

use std::fmt::Write;
use std::fs;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::common;
use cwnd_sim::network::Network;
use cwnd_sim::record::{FlowRecord, LinkRecord, Records};
use serde_json::Value;

/// One experiment of ns-2, with its parameters and results.
pub(crate) struct Case {
    pub name: String,
    value: Value,
}

/// Returns the cases of a recorded experiment.
pub(crate) fn cases(json: &str) -> Vec<Case> {
    let mut file: Value = serde_json::from_str(json).expect("recorded results are JSON");
    let Value::Array(cases) = file["cases"].take() else { panic!("no cases") };
    cases
        .into_iter()
        .map(|value| Case { name: value["name"].as_str().expect("a name").to_owned(), value })
        .collect()
}

impl Case {
    /// Returns a parameter of the experiment.
    pub(crate) fn text(&self, key: &str) -> Option<String> {
        match &self.value["params"][key] {
            Value::Null => None,
            Value::String(text) => Some(text.clone()),
            value => Some(value.to_string()),
        }
    }

    /// Returns a numeric parameter, or its default.
    pub(crate) fn number(&self, key: &str, default: f64) -> f64 {
        self.value["params"][key].as_f64().unwrap_or(default)
    }

    /// Returns the mean and the standard deviation of a result over the seeds of ns-2.
    pub(crate) fn result(&self, key: &str) -> (f64, f64) {
        match &self.value[key] {
            Value::Array(pair) => {
                (pair[0].as_f64().expect("a mean"), pair[1].as_f64().expect("a standard deviation"))
            }
            value => (value.as_f64().expect("a result"), 0.0),
        }
    }

    /// Returns the number of runs of ns-2.
    pub(crate) fn seeds(&self) -> u64 {
        self.value["seeds"].as_u64().unwrap_or(1)
    }

    /// Whether there is a result of this name.
    pub(crate) fn has(&self, key: &str) -> bool {
        !self.value[key].is_null()
    }

    /// Returns a result that is a list; empty if there is none.
    pub(crate) fn list(&self, key: &str) -> &[Value] {
        self.value[key].as_array().map_or(&[], Vec::as_slice)
    }
}

/// Returns the uniform random numbers with which ns-2 placed the flows of this seed, in order.
pub(crate) fn draws(seed: u64) -> impl FnMut() -> f64 {
    let mut file: Value = serde_json::from_str(include_str!("draws.json")).expect("JSON");
    let lists = file["draws"].as_array_mut().expect("lists of draws");
    let at = (seed - 1) as usize % lists.len();
    let Value::Array(list) = lists[at].take() else { panic!("no draws of seed {seed}") };
    let mut list = list.into_iter();
    move || list.next().and_then(|draw| draw.as_f64()).expect("enough draws")
}

/// Hosts with a link each, whose delays are the random draws of ns-2.
pub(crate) struct Hosts<D> {
    /// Rate of the links in bits per second.
    pub rate: f64,
    /// Returns the next uniform random number.
    pub draw: D,
    /// Minimum and maximum delay of the links in seconds.
    pub least: f64,
    pub longest: f64,
    pub count: usize,
}

impl<D: FnMut() -> f64> Hosts<D> {
    /// Adds a host at a router to a scenario and returns its name.
    pub(crate) fn add(&mut self, scenario: &mut String, router: &str) -> String {
        self.count += 1;
        let (rate, delay) = (self.rate, self.least + (self.longest - self.least) * (self.draw)());
        *scenario += &format!(
            r#"
            [[link]]
            from = "host-{}"
            to = "{router}"
            rate = {rate}
            delay = {delay:.9}
            queue = "infinite"
            "#,
            self.count
        );
        format!("host-{}", self.count)
    }
}

/// Returns the table of a TCP flow, to which keys can be appended.
pub(crate) fn tcp_flow(name: &str, law: &str, from: &str, to: &str, start: f64) -> String {
    format!(
        r#"
        [[flow]]
        name = "{name}"
        controller = "{law}"
        from = "{from}"
        to = "{to}"
        start = {start:.9}
        "#
    )
}

/// A run: the network and its records.
pub(crate) struct Run {
    pub network: Network,
    pub records: Records,
}

/// Runs a scenario in TOML.
pub(crate) fn run(toml: &str, seed: u64) -> Run {
    let network = common::scenario(toml, seed);
    let records = common::run(&network, seed);
    Run { network, records }
}

impl Run {
    /// Returns the record of a link.
    pub(crate) fn link(&self, name: &str) -> &LinkRecord {
        let index = self.network.links.iter().position(|link| link.name == name);
        &self.records.links[index.unwrap_or_else(|| panic!("no link {name}"))]
    }

    /// Returns the records of the measured flows.
    pub(crate) fn flows(&self) -> impl Iterator<Item = &FlowRecord> {
        let flows = self.network.flows.iter().zip(&self.records.flows);
        flows.filter(|(flow, _)| flow.measured).map(|(_, record)| record)
    }

    /// Returns a sum over the measured flows.
    pub(crate) fn sum(&self, of: impl Fn(&FlowRecord) -> f64) -> f64 {
        self.flows().map(of).sum()
    }

    /// Returns the duration after the warm-up in seconds.
    pub(crate) fn seconds(&self) -> f64 {
        (self.network.duration.as_nanos() - self.network.warmup.as_nanos()) as f64 / 1e9
    }
}

/// Returns `work` of every item, computed on all cores, in the order of the items.
pub(crate) fn each<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::with_capacity(items.len()));
    let threads = std::thread::available_parallelism().map_or(2, |cores| cores.get());
    std::thread::scope(|scope| {
        for _ in 0..threads.min(items.len()) {
            scope.spawn(|| {
                while let Some((index, item)) = {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    items.get(index).map(|item| (index, item))
                } {
                    let result = work(item);
                    results.lock().expect("no thread panics").push((index, result));
                }
            });
        }
    });
    let mut results = results.into_inner().expect("no thread panics");
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}

/// Runs every case with seeds 1 to `seeds`. Returns for each case the mean and standard deviation
/// of each quantity that `measure` returns.
pub(crate) fn over_seeds<const N: usize>(
    cases: &[Case],
    seeds: impl Fn(&Case) -> u64,
    measure: impl Fn(&Case, u64) -> [f64; N] + Sync,
) -> Vec<[Measured; N]> {
    let asked = std::env::var("ORACLE_SEEDS").ok().and_then(|seeds| seeds.parse().ok());
    let jobs: Vec<(usize, u64)> = cases
        .iter()
        .enumerate()
        .flat_map(|(index, case)| (1..=asked.unwrap_or(seeds(case))).map(move |seed| (index, seed)))
        .collect();
    let results = each(&jobs, |&(index, seed)| measure(&cases[index], seed));
    let mut by_case = vec![Vec::new(); cases.len()];
    for ((index, _), result) in jobs.into_iter().zip(results) {
        by_case[index].push(result);
    }
    let mean_of = |runs: Vec<[f64; N]>| {
        std::array::from_fn(|at| Measured::of(runs.iter().map(|run| run[at]).collect()))
    };
    by_case.into_iter().map(mean_of).collect()
}

/// A mean over seeds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measured {
    pub mean: f64,
    /// Standard deviation over the seeds.
    pub spread: f64,
    pub runs: f64,
}

impl Measured {
    /// Returns the mean of the values that are not NaN.
    pub(crate) fn of(mut values: Vec<f64>) -> Self {
        values.retain(|value| !value.is_nan());
        let runs = values.len() as f64;
        let mean = values.iter().sum::<f64>() / runs;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        Measured {
            mean,
            spread: if runs > 1.0 { (squares / (runs - 1.0)).sqrt() } else { 0.0 },
            runs,
        }
    }

    /// Returns the variance of the mean.
    fn error(self) -> f64 {
        self.spread * self.spread / self.runs
    }
}

/// The allowed difference between cwnd and ns-2.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Allowed {
    /// Absolute.
    Absolute(f64),
    /// Relative to the result of ns-2.
    Share(f64),
    /// The larger one of a relative and an absolute difference.
    ShareOr(f64, f64),
    /// The larger one of a relative difference and a standard deviation of ns-2's runs.
    ShareOrSpread(f64),
    /// The larger one of a relative difference and two standard errors of the difference of the
    /// means.
    ShareOrErrors(f64),
    /// Not checked.
    Any,
}

/// A quantity of a case.
pub(crate) struct Row {
    case: String,
    what: &'static str,
    pub ns2: Measured,
    cwnd: Measured,
    allowed: Allowed,
}

impl Row {
    /// Creates a row for the result `key` of ns-2.
    pub(crate) fn new(
        case: &Case,
        what: &'static str,
        key: &str,
        cwnd: Measured,
        allowed: Allowed,
    ) -> Self {
        let (mean, spread) = case.result(key);
        let ns2 = Measured { mean, spread, runs: case.seeds() as f64 };
        Row::between(&case.name, what, ns2, cwnd, allowed)
    }

    /// Creates a row for a result of the reference simulator.
    pub(crate) fn between(
        case: &str,
        what: &'static str,
        reference: Measured,
        cwnd: Measured,
        allowed: Allowed,
    ) -> Self {
        Row { case: case.to_owned(), what, ns2: reference, cwnd, allowed }
    }

    /// Creates the rows of a case. Each quantity has its name, that of the result of ns-2 and the
    /// allowed difference.
    pub(crate) fn all<const N: usize>(
        case: &Case,
        quantities: [(&'static str, &str, Allowed); N],
        values: [Measured; N],
    ) -> Vec<Self> {
        let rows = quantities.into_iter().zip(values);
        rows.map(|((what, key, allowed), cwnd)| Row::new(case, what, key, cwnd, allowed)).collect()
    }

    fn limit(&self) -> f64 {
        let share = |share: f64| share * self.ns2.mean.abs();
        match self.allowed {
            Allowed::Absolute(limit) => limit,
            Allowed::Share(part) => share(part),
            Allowed::ShareOr(part, limit) => share(part).max(limit),
            Allowed::ShareOrSpread(part) => share(part).max(self.ns2.spread),
            Allowed::ShareOrErrors(part) => {
                share(part).max(2.0 * (self.ns2.error() + self.cwnd.error()).sqrt())
            }
            Allowed::Any => f64::INFINITY,
        }
    }

    fn holds(&self) -> bool {
        let difference = (self.cwnd.mean - self.ns2.mean).abs();
        difference <= self.limit() + 1e-9 || matches!(self.allowed, Allowed::Any)
    }

    /// Returns both results and their difference as text.
    fn cell(&self) -> String {
        let (ns2, cwnd) = (self.ns2.mean, self.cwnd.mean);
        let share = 100.0 * (cwnd / ns2 - 1.0);
        let difference = match () {
            () if ns2 == cwnd => String::new(),
            () if ns2 == 0.0 => " (–)".into(),
            () => format!(" ({share:+.1} %)"),
        };
        let fails = if self.holds() { "" } else { " **!**" };
        format!("{} / {}{difference}{fails}", short(ns2), short(cwnd))
    }
}

/// Formats a number with four digits, or all digits of an integer.
fn short(value: f64) -> String {
    let digits = if value == 0.0 || value.fract() == 0.0 && value.abs() < 1e6 {
        0
    } else {
        (3 - value.abs().log10().floor() as i32).clamp(0, 6) as usize
    };
    format!("{value:.digits$}")
}

/// Panics with all rows whose difference is not allowed.
pub(crate) fn check(rows: &[Row]) {
    let wrong: Vec<_> = rows
        .iter()
        .filter(|row| !row.holds())
        .map(|row| {
            let Row { case, what, ns2, cwnd, .. } = row;
            format!(
                "{case}, {what}: {} ({} ± {} and {} ± {}, {:.2} of what is allowed)",
                row.cell(),
                ns2.mean,
                ns2.spread,
                cwnd.mean,
                cwnd.spread,
                (ns2.mean - cwnd.mean).abs() / row.limit()
            )
        })
        .collect();
    assert!(
        wrong.is_empty(),
        "{} of {} numbers disagree (reference / cwnd):\n{}",
        wrong.len(),
        rows.len(),
        wrong.join("\n")
    );
}

/// Prints a table with a line for each case and both results, ns-2 / cwnd, in each column.
fn print(rows: &[Row]) {
    let mut columns: Vec<&str> = Vec::new();
    for row in rows {
        if !columns.contains(&row.what) {
            columns.push(row.what);
        }
    }
    println!("| case | {} |\n|---|{}", columns.join(" | "), "---|".repeat(columns.len()));
    for of_case in rows.chunk_by(|a, b| a.case == b.case) {
        let cell = |column: &&str| {
            of_case.iter().find(|row| row.what == *column).map_or(String::new(), Row::cell)
        };
        let cells: Vec<_> = columns.iter().map(cell).collect();
        println!("| {} | {} |", of_case[0].case, cells.join(" | "));
    }
}

/// Writes all tables to a CSV file in `validation`, or prints those whose names contain the value of
/// the variable `choice`.
pub(crate) fn report<R: Fn() -> Vec<Row>>(
    choice: &str,
    [file, reference]: [&str; 2],
    tables: impl IntoIterator<Item = (&'static str, R)>,
) {
    let wanted = std::env::var(choice).unwrap_or_default();
    let chosen = tables.into_iter().filter(|(name, _)| name.contains(&wanted));
    let found: Vec<_> = chosen.map(|(name, rows)| (name, rows())).collect();
    if wanted.is_empty() {
        return write(file, reference, &found);
    }
    for (name, rows) in found {
        println!("\n## {name}\n");
        print(&rows);
    }
}

/// Writes the rows of all tables to a CSV file in `validation`, a line for each row.
fn write(file: &str, reference: &str, tables: &[(&str, Vec<Row>)]) {
    let mut text = format!("table,case,quantity,{reference},cwnd\n");
    for (table, rows) in tables {
        for Row { case, what, ns2, cwnd, .. } in rows {
            let (ns2, cwnd) = (short(ns2.mean), short(cwnd.mean));
            writeln!(text, "{table},\"{case}\",\"{what}\",{ns2},{cwnd}").expect("memory");
        }
    }
    let path = format!("{}/../../validation/{file}", env!("CARGO_MANIFEST_DIR"));
    fs::write(path, text).expect("a file in validation");
}
