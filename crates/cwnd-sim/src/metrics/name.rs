//! Metrics by name, for `[expect]`, sweeps and evaluations: `docs/scenario.md` lists them.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::flow_kinds::group_of;
use super::quantity::{Kind, MetricError};
use super::run::label_of_first;
use super::{Flow, METRICS, Metric, Run};

/// Names in a message, at most.
const SHOWN: usize = 12;

/// The places of metrics: names of the groups of flows and of the links.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places {
    /// Groups of flows, and flows.
    pub groups: BTreeSet<String>,
    /// Links.
    pub links: BTreeSet<String>,
}

impl Places {
    /// The places of a run: each flow is one, and the flows with one name and numbers are one.
    pub fn of_run(run: &Run<'_>) -> Self {
        let groups = run.flows.iter().flat_map(|flow| [&*flow.name, group_of(&flow.name)]);
        let links = run.links.iter().map(|link| link.name.to_string());
        Places { groups: groups.map(str::to_owned).collect(), links: links.collect() }
    }
}

/// A metric of certain flows or of a link, by its full name.
#[derive(Clone, Debug)]
pub struct Named {
    /// Such as `goodput.min.reno` or `goodput.reno@10s..20s`.
    pub name: String,
    /// The entry of the catalogue.
    pub metric: &'static Metric,
    statistic: &'static str,
    place: String,
    rate_bps: f64,
    span: Option<(f64, f64)>,
}

impl Named {
    /// Reads `METRIC[.STATISTIC][.PLACE]`, for some metrics with `@FROM..TO`. Without `places` the
    /// place is not checked.
    ///
    /// # Errors
    /// One line says what is allowed.
    pub fn read(name: &str, places: Option<&Places>) -> Result<Self, MetricError> {
        let (before, times) = match name.split_once('@') {
            Some((before, times)) => (before, Some(times)),
            None => (name, None),
        };
        let mut parts = before.split('.').peekable();
        let word = parts.next().unwrap_or_default();
        let Some(metric) = named().find(|metric| metric.name == word) else {
            let known = names(named());
            return Err(format!("unknown metric \"{word}\"; allowed: {known}").into());
        };
        let rate_bps = match metric.of_rate {
            true => Kind::RATE.parse(parts.next().unwrap_or_default(), false)?,
            false => f64::NAN,
        };
        let statistics =
            metric.statistics.iter().find(|one| parts.next_if(|part| part == *one).is_some());
        let statistic = statistics.copied().unwrap_or_default();
        let place = parts.next().unwrap_or_default().to_owned();
        if parts.next().is_some() {
            return Err(MetricError(
                "a name is METRIC, METRIC.STATISTIC, METRIC.PLACE or METRIC.STATISTIC.PLACE".into(),
            ));
        }
        if let (false, Some(places)) = (place.is_empty(), places) {
            check_place(metric, &place, places, statistic.is_empty())?;
        }
        let span = times.map(|times| read_span(metric, times)).transpose()?;
        if span.is_none() && metric.of_rate {
            return Err(format!("{word} needs a part of the run: {before}@10s..20s").into());
        }
        if span.is_some() && !statistic.is_empty() {
            return Err(format!("{word} has no statistics of a part of the run").into());
        }
        Ok(Named { name: name.to_owned(), metric, statistic, place, rate_bps, span })
    }

    /// The end of the part of the run in seconds, and its text.
    pub(super) fn end(&self) -> Option<(f64, &str)> {
        let times = self.name.split_once('@').map_or("", |(_, times)| times);
        self.span.map(|(_, end)| (end, times))
    }

    /// The flows that the metric is of.
    fn flows<'r, 'a>(&self, run: &'r Run<'a>) -> Vec<&'r Flow<'a>> {
        match &*self.place {
            "" => run.measured(),
            place => flows_of(run, place),
        }
    }

    /// Which flows Jain's index is of, if the flows of the metric differ in kind.
    pub(super) fn kind(&self, run: &Run<'_>) -> Option<String> {
        if self.metric.name == "jain" { label_of_first(&self.flows(run)) } else { None }
    }

    /// The metric in bits per second, seconds, or without unit; NaN if the run does not determine
    /// it.
    pub fn value(&self, run: &Run<'_>) -> f64 {
        let metric = self.metric;
        let flows = || self.flows(run);
        if let (Some(span), Some(of_span)) = (self.span, metric.of_span) {
            return of_span(run, &flows(), self.rate_bps, span);
        }
        if let Some(of_run) = metric.of_run {
            return of_run(run);
        }
        if let Some(of_link) = metric.of_link {
            let link = match &*self.place {
                "" => run.bottleneck(),
                place => run.links.iter().find(|link| link.name == place),
            };
            if let Some(link) = link {
                return of_link(link, self.statistic);
            }
        }
        match (metric.of_flows, flows()) {
            (Some(of_flows), flows) if !flows.is_empty() => of_flows(run, &flows, self.statistic),
            _ => f64::NAN,
        }
    }
}

impl Run<'_> {
    /// A metric of the run by its name, such as `goodput.min.reno`; NaN if the run does not
    /// determine it.
    ///
    /// # Errors
    /// The name is not that of a metric, a group or a link.
    pub fn metric(&self, name: &str) -> Result<f64, MetricError> {
        Ok(Named::read(name, Some(&Places::of_run(self)))?.value(self))
    }
}

/// The metrics that can be named.
pub fn named() -> impl Iterator<Item = &'static Metric> {
    METRICS.iter().filter(|metric| metric.is_named())
}

/// The names of metrics, for a message.
fn names(metrics: impl Iterator<Item = &'static Metric>) -> String {
    metrics.map(|metric| metric.name).collect::<Vec<_>>().join(", ")
}

/// The flow of this name, or the flows of this name and a number.
fn flows_of<'r, 'a>(run: &'r Run<'a>, place: &str) -> Vec<&'r Flow<'a>> {
    let of = |name: fn(&str) -> &str| {
        run.flows.iter().filter(|flow| name(&flow.name) == place).collect()
    };
    let alone: Vec<_> = of(|name| name);
    if alone.is_empty() { of(group_of) } else { alone }
}

fn read_span(metric: &Metric, text: &str) -> Result<(f64, f64), MetricError> {
    if metric.of_span.is_none() {
        let allowed = names(named().filter(|metric| metric.of_span.is_some()));
        let name = metric.name;
        return Err(format!("{name} has no value for a part of the run; allowed: {allowed}").into());
    }
    let time = |text| Kind::TIME.parse(text, true);
    let ends = text
        .split_once("..")
        .map(|(begin, end)| time(begin).and_then(|begin| Ok((begin, time(end)?))));
    match ends.transpose()? {
        Some((begin, end)) if begin < end => Ok((begin, end)),
        _ => Err(format!("'{text}' is not a part of the run such as 10s..20s").into()),
    }
}

/// Checks the name at the end of a metric's name.
fn check_place(
    metric: &Metric,
    place: &str,
    places: &Places,
    statistics: bool,
) -> Result<(), MetricError> {
    let none = BTreeSet::new();
    let groups = if metric.of_flows.is_some() { &places.groups } else { &none };
    let links = if metric.of_link.is_some() { &places.links } else { &none };
    if links.contains(place) || groups.contains(place) || groups.contains(group_of(place)) {
        return Ok(());
    }
    let mut allowed = Vec::new();
    if statistics && !metric.statistics.is_empty() {
        allowed.push(format!("statistics: {}", metric.statistics.join(", ")));
    }
    for (kind, names) in [("groups of flows", groups), ("links", links)] {
        let shown: Vec<_> = names.iter().take(SHOWN).map(String::as_str).collect();
        let mut shown = format!("{kind}: {}", shown.join(", "));
        if names.len() > SHOWN {
            let _ = write!(shown, " and {} others", names.len() - SHOWN);
        }
        allowed.extend((!names.is_empty()).then_some(shown));
    }
    let allowed = match allowed.is_empty() {
        true => "nothing: it is a metric of the run".into(),
        false => allowed.join("; "),
    };
    let name = metric.name;
    Err(format!("\"{place}\" is not allowed after {name}; allowed: {allowed}").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_lists_the_metrics() {
        let document = include_str!("../../../../docs/scenario.md");
        let (_, table) = document.split_once("| metric | value | statistics").unwrap();
        let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
        let mut listed = BTreeSet::new();
        for row in rows {
            let cells: Vec<_> = row.split(" | ").collect();
            for name in cells[0].split('`').skip(1).step_by(2) {
                let word = name.split('.').next().unwrap();
                let metric = named().find(|metric| metric.name == word).unwrap();
                if cells[2].contains('`') && !metric.of_rate {
                    let statistics: Vec<_> = cells[2].split('`').skip(1).step_by(2).collect();
                    assert_eq!(statistics, metric.statistics, "{word}");
                }
                listed.insert(word);
            }
        }
        assert_eq!(listed, named().map(|metric| metric.name).collect());
    }

    #[test]
    fn names_have_places_and_parts_of_the_run() {
        let set = |name: &str| BTreeSet::from([name.to_owned()]);
        let places = Places { groups: set("reno"), links: set("left-right") };
        let read = |name: &str| Named::read(name, Some(&places));
        for name in [
            "goodput.min.reno-2",
            "goodput@1s..2s",
            "time_to.1mbit.reno@0..2s",
            "loss_rate.left-right",
        ] {
            assert_eq!(read(name).unwrap().name, name);
        }
        let allowed = "is not allowed after";
        for (name, message) in [
            (
                "jain.a",
                format!(
                    "\"a\" {allowed} jain; allowed: statistics: worst, mean; groups of flows: reno"
                ),
            ),
            ("utilization.a", format!("\"a\" {allowed} utilization; allowed: links: left-right")),
            (
                "useful.a",
                format!("\"a\" {allowed} useful; allowed: nothing: it is a metric of the run"),
            ),
            (
                "goodput.reno.a",
                "a name is METRIC, METRIC.STATISTIC, METRIC.PLACE or METRIC.STATISTIC.PLACE".into(),
            ),
            ("goodput.min@1s..2s", "goodput has no statistics of a part of the run".into()),
            ("goodput@2s..1s", "'2s..1s' is not a part of the run such as 10s..20s".into()),
            ("time_to.1mbit", "time_to needs a part of the run: time_to.1mbit@10s..20s".into()),
            (
                "jain@1s..2s",
                "jain has no value for a part of the run; allowed: goodput, throughput, time_to"
                    .into(),
            ),
        ] {
            assert_eq!(read(name).unwrap_err().to_string(), message);
        }
        assert_eq!(["a-1", "a-01", "a-", "-1", "a"].map(group_of), ["a", "a-01", "a-", "-1", "a"]);
    }
}
