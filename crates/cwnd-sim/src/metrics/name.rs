//! Names of metrics in `[expect]`, plans and evaluations.

use std::collections::BTreeSet;

use super::{METRICS, Metric, Part, limit, metric};
use crate::metrics::Dimension;

/// The largest number of places that an error lists.
const MAX_LISTED: usize = 12;

/// Names of the groups of flows and of the links of a scenario or a run.
#[derive(Clone, Debug, Default)]
pub struct Places {
    /// Groups of flows; a flow of a group has its name, a dash and a number.
    pub groups: BTreeSet<String>,
    /// Links.
    pub links: BTreeSet<String>,
}

/// A metric of certain flows or of a link: `METRIC[.STATISTIC][.PLACE][@FROM..TO]`.
#[derive(Clone, Debug)]
pub struct Name {
    /// The metric.
    pub metric: &'static Metric,
    /// Empty for the default one.
    pub statistic: String,
    /// A group of flows, a flow or a link; empty for the whole run.
    pub place: String,
    /// Rate in the name in bits per second; NaN without one.
    pub rate: f64,
    /// Begin and end of a part of the run in seconds; `None` for all of it after the warm-up.
    pub span: Option<(f64, f64)>,
}

impl Name {
    /// Reads a name.
    ///
    /// # Errors
    /// One sentence that says what is allowed.
    pub fn parse(name: &str, places: &Places) -> Result<Self, String> {
        let (before, times) =
            name.split_once('@').map_or((name, None), |(before, times)| (before, Some(times)));
        let mut words = before.split('.').peekable();
        let metric = metric(words.next().unwrap_or_default())?;
        let rate = match metric.part {
            Part::WithRate => limit(Dimension::Rate, words.next().unwrap_or_default())?,
            Part::Never | Part::Optional => f64::NAN,
        };
        let statistic = words.next_if(|word| metric.statistics.contains(word)).unwrap_or_default();
        let place = words.next().unwrap_or_default();
        if words.next().is_some() {
            return Err("a name is METRIC, METRIC.STATISTIC, METRIC.PLACE or \
                        METRIC.STATISTIC.PLACE"
                .into());
        }
        if !place.is_empty() {
            check_place(metric, place, places, statistic.is_empty())?;
        }
        let span = times.map(|times| parse_span(metric, times)).transpose()?;
        if span.is_none() && metric.part == Part::WithRate {
            return Err(format!("{} needs a part of the run: {before}@10s..20s", metric.name));
        }
        if span.is_some() && !statistic.is_empty() {
            return Err(format!("{} has no statistics of a part of the run", metric.name));
        }
        Ok(Name { metric, statistic: statistic.into(), place: place.into(), rate, span })
    }
}

/// Reads a part of a run, `FROM..TO`.
fn parse_span(metric: &Metric, text: &str) -> Result<(f64, f64), String> {
    if metric.part == Part::Never {
        let allowed: Vec<_> =
            METRICS.iter().filter(|each| each.part != Part::Never).map(|each| each.name).collect();
        return Err(format!(
            "{} has no value for a part of the run; allowed: {}",
            metric.name,
            allowed.join(", ")
        ));
    }
    let ends = text.split_once("..");
    let span = ends
        .map(|(begin, end)| {
            Ok::<_, String>((limit(Dimension::Time, begin)?, limit(Dimension::Time, end)?))
        })
        .transpose()?;
    span.filter(|(begin, end)| begin < end)
        .ok_or_else(|| format!("'{text}' is not a part of the run such as 10s..20s"))
}

/// Checks the place at the end of a name.
fn check_place(
    metric: &Metric,
    place: &str,
    places: &Places,
    statistics: bool,
) -> Result<(), String> {
    let none = BTreeSet::new();
    let groups = if metric.scope.has_flows() { &places.groups } else { &none };
    let links = if metric.scope.has_links() { &places.links } else { &none };
    if links.contains(place) || groups.contains(place) || groups.contains(group_of(place)) {
        return Ok(());
    }
    let mut allowed = Vec::new();
    if statistics && !metric.statistics.is_empty() {
        allowed.push(format!("statistics: {}", metric.statistics.join(", ")));
    }
    for (kind, names) in [("groups of flows", groups), ("links", links)] {
        if !names.is_empty() {
            allowed.push(format!("{kind}: {}", listed(names)));
        }
    }
    if allowed.is_empty() {
        allowed.push("nothing: it is a metric of the run".into());
    }
    Err(format!(
        "\"{place}\" is not allowed after {}; allowed: {}",
        metric.name,
        allowed.join("; ")
    ))
}

/// Returns the name of a flow without its dash and number.
fn group_of(flow: &str) -> &str {
    match flow.rsplit_once('-') {
        Some((group, number))
            if !group.is_empty()
                && !number.starts_with('0')
                && !number.is_empty()
                && number.bytes().all(|byte| byte.is_ascii_digit()) =>
        {
            group
        }
        _ => flow,
    }
}

/// Joins names, at most [`MAX_LISTED`].
fn listed(names: &BTreeSet<String>) -> String {
    let shown: Vec<_> = names.iter().take(MAX_LISTED).map(String::as_str).collect();
    let more = names.len() - shown.len();
    let rest = if more > 0 { format!(" and {more} others") } else { String::new() };
    shown.join(", ") + &rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places() -> Places {
        Places { groups: ["reno".into(), "web".into()].into(), links: ["left-right".into()].into() }
    }

    fn error(name: &str) -> String {
        Name::parse(name, &places()).err().unwrap_or_default()
    }

    #[test]
    fn parts_of_a_name() {
        let name = Name::parse("goodput.min.reno-2", &places()).unwrap();
        assert_eq!(
            (name.metric.name, &*name.statistic, &*name.place),
            ("goodput", "min", "reno-2")
        );
        let name = Name::parse("time_to.8mbit.web@1s..2s", &places()).unwrap();
        assert_eq!((name.rate, &*name.place, name.span), (8e6, "web", Some((1.0, 2.0))));
        let name = Name::parse("queue_delay.p95.left-right", &places()).unwrap();
        assert_eq!((&*name.statistic, &*name.place, name.span), ("p95", "left-right", None));
    }

    #[test]
    fn errors_say_what_is_allowed() {
        assert_eq!(
            error("queue_delay.reno"),
            "\"reno\" is not allowed after queue_delay; allowed: statistics: mean, p50, p95, p99; \
             links: left-right"
        );
        assert_eq!(
            error("convergence_time.reno"),
            "\"reno\" is not allowed after convergence_time; allowed: nothing: it is a metric of \
             the run"
        );
        assert!(error("goodput.reno-02").contains("groups of flows: reno, web"));
        assert!(error("goodput.a.b").contains("a name is METRIC"));
        assert_eq!(
            error("time_to.8mbit"),
            "time_to needs a part of the run: time_to.8mbit@10s..20s"
        );
        assert_eq!(error("goodput.min@1s..2s"), "goodput has no statistics of a part of the run");
        assert_eq!(error("goodput@2s..1s"), "'2s..1s' is not a part of the run such as 10s..20s");
        assert_eq!(
            error("jain@1s..2s"),
            "jain has no value for a part of the run; allowed: goodput, throughput, time_to"
        );
    }
}
