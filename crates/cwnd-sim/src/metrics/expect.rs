//! Bounds of metrics: the table `[expect]` of a scenario.

use std::fmt;

use super::name::{Named, Places};
use super::quantity::{Kind, MetricError, format_time, format_value};
use super::{Dimension, Run};
use crate::network::Network;
use crate::scenario::{Scenario, ScenarioError};

/// The operators of bounds. A longer one precedes those that it begins with.
const OPERATORS: [&str; 4] = [">=", "<=", ">", "<"];

/// A bound on a metric.
#[derive(Clone, Debug)]
pub struct Expectation {
    /// The metric.
    pub metric: Named,
    /// The bound as in the file, such as `>= 4mbit`.
    pub bound: String,
    /// `>=`, `<=`, `>` or `<`.
    pub operator: &'static str,
    /// In bits per second, seconds, or without unit.
    pub limit: f64,
}

impl Expectation {
    fn read(
        name: &str,
        bound: &str,
        places: &Places,
        duration_s: f64,
    ) -> Result<Self, MetricError> {
        let metric = Named::read(name, Some(places))?;
        if let Some((end, times)) = metric.end()
            && end > duration_s
        {
            let run = format_time(duration_s, 4);
            return Err(MetricError(format!("{times} is not within the run of {run}")));
        }
        let (operator, value) = read_bound(bound)?;
        let limit = read_limit(metric.metric.dimension, value)?;
        Ok(Expectation { metric, operator, limit, bound: bound.to_owned() })
    }

    /// Measures the metric in a run, and compares it with the limit.
    pub fn check(&self, run: &Run<'_>) -> Outcome<'_> {
        let (value, limit) = (self.metric.value(run), self.limit);
        // A comparison with NaN is false: an unknown value does not hold.
        let holds = match self.operator {
            ">=" => value >= limit,
            "<=" => value <= limit,
            ">" => value > limit,
            _ => value < limit,
        };
        Outcome { expectation: self, value, holds, flows: self.metric.kind(run) }
    }
}

/// An expectation with the measured value. It is shown as one line.
#[derive(Clone, Debug)]
pub struct Outcome<'e> {
    /// The expectation.
    pub expectation: &'e Expectation,
    /// In bits per second, seconds, or without unit; NaN if the run does not determine it.
    pub value: f64,
    /// Whether the bound holds; false for NaN.
    pub holds: bool,
    /// Which flows the metric is of, if it is of one kind and the flows differ in kind.
    pub flows: Option<String>,
}

impl fmt::Display for Outcome<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Expectation { metric, bound, .. } = self.expectation;
        let verdict = if self.holds { "holds" } else { "fails" };
        let shown = format_value(metric.metric.dimension, self.value);
        write!(f, "{verdict}  {} {bound}: {shown}", metric.name)?;
        self.flows.as_ref().map_or(Ok(()), |flows| write!(f, ", {flows}"))
    }
}

/// Bounds of metrics.
///
/// ```
/// use cwnd_sim::metrics::{Expectations, Run};
/// use cwnd_sim::{Options, Simulation, scenario::Scenario};
///
/// let text = r#"
/// duration = "10s"
/// [dumbbell]
/// rate = "10mbit"
/// delay = "10ms"
/// [[flow]]
/// controller = "reno"
/// count = 2
/// [expect]
/// "goodput.min" = ">= 2mbit"
/// queue_delay.p95 = ["> 0", "<= 100ms"]
/// "#;
/// let scenario = Scenario::from_toml(text, "two.toml")?;
/// let network = scenario.network(1)?;
/// let expectations = Expectations::of_scenario(&scenario, &network)?;
/// let mut simulation = Simulation::new(&network, 1, &Options::default())?;
/// simulation.run();
/// let records = simulation.finish();
/// let run = Run::new(&network, &records);
/// assert!(run.metric("utilization")? > 0.9);
/// for outcome in expectations.check(&run) {
///     assert!(outcome.holds, "{outcome}");
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Expectations(Vec<Expectation>);

impl Expectations {
    /// Reads bounds by the parts of the names of the metrics; no part of the run may exceed
    /// `duration_s`. `file` is the path and the text of the scenario, for the line of an error.
    ///
    /// # Errors
    /// There are none, or one line with the key and what is wrong.
    pub fn read(
        bounds: impl IntoIterator<Item = (Vec<String>, String)>,
        places: &Places,
        duration_s: f64,
        file: Option<(&str, &str)>,
    ) -> Result<Self, ScenarioError> {
        let read = |(keys, bound): (Vec<String>, String)| {
            Expectation::read(&keys.join("."), &bound, places, duration_s)
                .map_err(|error| ScenarioError::of_bound(&keys, &bound, error.to_string(), file))
        };
        let found: Vec<_> = bounds.into_iter().map(read).collect::<Result<_, _>>()?;
        if found.is_empty() {
            let message = "no expectations: [expect] has bounds of metrics";
            return Err(ScenarioError::of_bound(&[], "", message, file));
        }
        Ok(Expectations(found))
    }

    /// Reads the table `[expect]` of a valid scenario, before its run.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn of_scenario(scenario: &Scenario, network: &Network) -> Result<Self, ScenarioError> {
        let links = network.links.iter().map(|link| link.name.clone());
        let places = Places { groups: scenario.group_names(), links: links.collect() };
        Self::read(scenario.bounds(), &places, network.duration.as_secs(), None)
    }

    /// The expectations, in the order of the bounds.
    pub fn iter(&self) -> impl Iterator<Item = &Expectation> {
        self.0.iter()
    }

    /// Compares the metrics of a run with the bounds.
    pub fn check(&self, run: &Run<'_>) -> Vec<Outcome<'_>> {
        self.iter().map(|expectation| expectation.check(run)).collect()
    }
}

/// Splits a bound into its operator and its value.
///
/// # Errors
/// The text is not a bound.
pub fn read_bound(bound: &str) -> Result<(&'static str, &str), MetricError> {
    let text = bound.trim();
    let split = OPERATORS.iter().find_map(|one| Some((*one, text.strip_prefix(one)?)));
    match split.map(|(operator, value)| (operator, value.trim())) {
        Some((operator, value)) if !value.is_empty() && !value.starts_with('=') => {
            Ok((operator, value))
        }
        _ => Err(MetricError(format!(
            "\"{bound}\" is not a bound: an operator (>=, <=, > or <) and a value"
        ))),
    }
}

/// Reads the value of a bound in the unit of a metric.
///
/// # Errors
/// It is not a value of this dimension.
pub fn read_limit(dimension: Dimension, text: &str) -> Result<f64, MetricError> {
    if text == "0" {
        return Ok(0.0);
    }
    let number = |text: &str| text.parse::<f64>().unwrap_or(f64::NAN);
    match dimension {
        Dimension::Rate => Kind::RATE.parse(text, false),
        Dimension::Time => Kind::TIME.parse(text, true),
        Dimension::Fraction => {
            let percent = text.strip_suffix('%').map(|percent| number(percent.trim_end()) / 100.0);
            let value = percent.unwrap_or_else(|| number(text));
            let valid = (0.0..=1.0).contains(&value);
            valid.then_some(value).ok_or_else(|| {
                MetricError(format!("'{text}' is not a fraction such as 0.01 or 1%"))
            })
        }
        Dimension::Count | Dimension::Number => {
            let value = number(text);
            let valid = value.is_finite() && value >= 0.0;
            valid.then_some(value).ok_or_else(|| {
                MetricError(format!("'{text}' is not a number, at least 0 and without a unit"))
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Flow;
    use super::*;

    const TEXT: &str = "duration = '5s'\n[dumbbell]\nrate = '9mbit'\ndelay = 0\n[[flow]]\n\
        controller = 'mine.py:Law'\ncount = 2\n[[cbr]]\nrate = '1mbit'\n[expect]\n";

    fn read(bounds: &str) -> Result<Expectations, ScenarioError> {
        let text = format!("{TEXT}{bounds}");
        let scenario = Scenario::from_toml(&text, "x.toml").unwrap();
        let groups = scenario.group_names();
        let places = Places { groups, links: ["left-right".to_owned()].into() };
        Expectations::read(scenario.bounds(), &places, 5.0, Some(("x.toml", &text)))
    }

    #[test]
    fn bounds_have_the_dimension_of_their_metric() {
        let bounds = "goodput.Law = '>= 4mbit'\njain = ['>= 0.5', '<= 100 %']\nrtt.cbr = '< 20ms'";
        let found: Vec<_> = read(bounds).unwrap().0;
        let limits: Vec<_> = found.iter().map(|each| (each.operator, each.limit)).collect();
        assert_eq!(limits, [(">=", 4e6), (">=", 0.5), ("<=", 1.0), ("<", 0.02)]);
    }

    #[test]
    fn errors_have_the_line_of_the_bound() {
        for (bounds, message) in [
            ("", "x.toml: expect: no expectations: [expect] has bounds of metrics"),
            (
                "jain = [\n'< 1',\n'= 1']",
                "x.toml:11: expect.jain: \"= 1\" is not a bound: an operator (>=, <=, > or <) and a value",
            ),
            (
                "'jain' = '< 1'\n'goodput@1s..6s' = '> 0'",
                "x.toml:12: expect.goodput@1s..6s: 1s..6s is not within the run of 5 s",
            ),
            (
                "[expect.goodput]\nLaw = '> 4'",
                "x.toml:12: expect.goodput.Law: a rate needs a unit, such as 15mbit",
            ),
            ("jain = '<= 90'", "x.toml:11: expect.jain: '90' is not a fraction such as 0.01 or 1%"),
            (
                "timeouts = '<= 3%'",
                "x.toml:11: expect.timeouts: '3%' is not a number, at least 0 and without a unit",
            ),
        ] {
            assert_eq!(read(bounds).unwrap_err().to_string(), message);
        }
        let changed = ScenarioError::of_bound(
            &["jain".into()],
            "< 2",
            "no",
            Some(("x", "[expect]\njain = '< 1'")),
        );
        assert_eq!(changed.to_string(), "x: expect.jain: no");
    }

    #[test]
    fn jain_is_of_one_kind_of_flows() {
        let places = Places { groups: ["web".to_owned()].into(), links: [].into() };
        let flow = |name: &'static str, bytes, rate: f64| Flow {
            name: name.into(),
            measured: true,
            bytes,
            stop_s: f64::INFINITY,
            completed_s: f64::NAN,
            bytes_delivered: rate,
            ..Flow::default()
        };
        let check = |flows: Vec<Flow<'_>>| {
            let run = Run { duration_s: 1.0, flows, ..Run::default() };
            let bounds = ["jain", "jain.web"]
                .map(|name| (name.split('.').map(str::to_owned).collect(), ">= 0.9".to_owned()));
            let read = Expectations::read(bounds, &places, 1.0, None).unwrap();
            let lines: Vec<_> = read.check(&run).iter().map(Outcome::to_string).collect();
            (lines, run.figures().jain_by_kind.map(|kinds| kinds.len()))
        };
        let long = [flow("reno", None, 4.0), flow("simd", None, 4.0)];
        let web = [flow("web-1", Some(9.0), 1.0), flow("web-2", Some(9.0), 0.0)];
        let both = check([long.clone(), web.clone()].concat());
        let of_web = "fails  jain.web >= 0.9: 0.5";
        let of_long = "holds  jain >= 0.9: 1, of the 2 flows that always have data";
        assert_eq!(both, (vec![of_long.into(), of_web.into()], Some(2)));
        let one = check([&long[..1], &web].concat());
        let first = "fails  jain >= 0.9: 0.5, of the 2 flows of web";
        assert_eq!(one, (vec![first.into(), of_web.into()], Some(1)));
        let none = check([&long[..1], &web[..1]].concat());
        let unknown = "fails  jain >= 0.9: unknown, as no two flows are of one kind";
        assert_eq!(none, (vec![unknown.into(), "holds  jain.web >= 0.9: 1".into()], Some(0)));
        assert_eq!(
            check(web.to_vec()),
            (vec!["fails  jain >= 0.9: 0.5".into(), of_web.into()], None)
        );
    }

    #[test]
    fn an_unknown_value_does_not_hold() {
        let expectations = read("rate_ratio = '>= 0'").unwrap();
        let run = Run::default();
        let [ref outcome] = expectations.check(&run)[..] else { unreachable!() };
        assert!(!outcome.holds);
        assert_eq!(outcome.to_string(), "fails  rate_ratio >= 0: unknown");
    }
}
