//! The tables of what varies on a link, and of what else happens to its packets.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::document::{ReadFile, is_default, kbit, millis};
use super::error::{Problem, problem};
use super::link::LinkKeys;
use crate::network::{
    self, Blackout, Cellular, Change, GilbertElliott, Impairments, Jitter, Leo, Link, Model, Queue,
    Reorder, TokenBucket,
};
use crate::units::{
    BitRate, Bytes, ChangedRate, Probability, RateRange, Span, SpanRange, json_schema,
    text_or_number,
};

/// A change of a link: a step, or a linear transition with `over`. Values that are not given stay.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table of a change")]
pub struct ChangeTable {
    /// Time of the change.
    pub at: Span,
    /// Duration of a linear transition; a step by default.
    #[serde(default, skip_serializing_if = "is_default")]
    pub over: Span,
    /// New rate; 0 stops the transmitter, and packets wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<ChangedRate>,
    /// New propagation delay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Span>,
    /// New probability of loss.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<Probability>,
}

/// A period in which all packets that reach the link are lost.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table of a blackout")]
pub struct BlackoutTable {
    /// Beginning.
    pub at: Span,
    /// Duration.
    #[serde(rename = "for")]
    pub length: Span,
}

/// Reordering: packets that are overtaken.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table of reordering")]
pub struct ReorderTable {
    /// Probability that a packet takes longer.
    pub probability: Probability,
    /// Additional delay of such a packet.
    pub delay: Span,
}

/// A token bucket.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table of a token bucket")]
pub struct BucketTable {
    /// Token rate.
    pub rate: BitRate,
    /// Size of the bucket, which begins full.
    pub burst: Bytes,
}

/// A random process. Times and rates have the defaults of the cited sources.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(
    tag = "kind",
    rename_all = "lowercase",
    deny_unknown_fields,
    expecting = "a table of a model"
)]
pub enum ModelTable {
    /// A cellular link as Sprout models it (Winstein, Sivaraman and Balakrishnan 2013): the rate is
    /// a Brownian motion with sticky outages at zero.
    Cellular {
        /// Maximum rate; by default 1000 packets of 1500 bytes per second.
        #[serde(default = "kbit::<12_000>")]
        max: BitRate,
        /// Standard deviation of the rate's change after one second; by default 200 packets of 1500
        /// bytes per second.
        #[serde(default = "kbit::<2400>")]
        sigma: BitRate,
        /// Mean duration of an outage.
        #[serde(default = "millis::<1000>")]
        outage: Span,
        /// Time between changes.
        #[serde(default = "millis::<20>")]
        step: Span,
    },
    /// A low-earth-orbit satellite link: rate and delay are drawn anew at each reconfiguration,
    /// after a short outage.
    Leo {
        /// Time between reconfigurations.
        #[serde(default = "millis::<15_000>")]
        interval: Span,
        /// Rates, drawn uniformly.
        rate: RateRange,
        /// One-way delays, drawn uniformly.
        #[serde(default = "leo_delay")]
        delay: SpanRange,
        /// Time without transmission at each reconfiguration.
        #[serde(default = "millis::<50>")]
        outage: Span,
    },
    /// The jitter of a Wi-Fi link with hidden nodes, as in the tests of C4. The link's rate and
    /// delay stay.
    Wifi {
        /// Mean jitter, from 1 ms to 91 ms.
        #[serde(default = "millis::<7>")]
        jitter: Span,
    },
}

fn leo_delay() -> SpanRange {
    SpanRange::new(Span::millis(15), Span::millis(40))
}

/// Loss: a probability, or the model of Gilbert and Elliott.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Loss {
    /// Independent loss.
    Independent(Probability),
    /// Loss in bursts.
    Bursts(LossTable),
}

/// A model of loss in bursts.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table of loss")]
pub struct LossTable {
    /// The model.
    pub kind: LossKind,
    /// Probability of a transition from the good state to the bad one, for each packet.
    pub p: Probability,
    /// Probability of a transition from the bad state to the good one, for each packet.
    pub r: Probability,
    /// Probability that a packet arrives in the bad state; 0 by default.
    #[serde(default, skip_serializing_if = "is_default")]
    pub h: Probability,
    /// Probability that a packet arrives in the good state; 1 by default.
    #[serde(default = "certain")]
    pub k: Probability,
}

/// A model of loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LossKind {
    /// A Markov chain with a good and a bad state (Gilbert 1960, Elliott 1963).
    GilbertElliott,
}

fn certain() -> Probability {
    Probability::ONE
}

/// A recorded link: the name of a file in mahimahi's format, or a table.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Trace(pub TraceTable);

/// The files of a recorded link, or their contents.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table of a trace")]
pub struct TraceTable {
    /// Delivery opportunities, as mahimahi and LeoCC write them: times in milliseconds, one a line.
    /// Each delivers 1504 bytes.
    pub rate: TraceColumn,
    /// One-way delays in milliseconds, one a line, as LeoCC writes them.
    #[serde(default, skip_serializing_if = "is_default")]
    pub delay: TraceColumn,
    /// Time between the lines of `delay`.
    #[serde(default = "trace_interval", skip_serializing_if = "is_trace_interval")]
    pub interval: Span,
}

fn trace_interval() -> Span {
    Span::millis(10)
}
fn is_trace_interval(value: &Span) -> bool {
    *value == trace_interval()
}

/// The name of a file with a number on each line, or the numbers.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(untagged, expecting = "the name of a file, or a list of whole numbers of milliseconds")]
pub enum TraceColumn {
    /// A name relative to the scenario file.
    File(String),
    /// Milliseconds.
    Numbers(Vec<u32>),
}

impl Default for TraceColumn {
    fn default() -> Self {
        TraceColumn::Numbers(Vec::new())
    }
}

/// The largest number of lines of a trace.
const MAX_LINES: usize = 10_000_000;

impl TraceTable {
    /// Replaces the names of files by their contents, which `read` returns.
    pub(super) fn resolve(&mut self, key: &str, read: &ReadFile) -> Result<(), Problem> {
        self.rate.resolve(key, read, network::Trace::check_times)?;
        self.delay.resolve(key, read, network::Trace::check_delays)
    }
}

impl TraceColumn {
    /// Replaces the name of a file by its contents, which `read` returns and `check` checks.
    fn resolve(
        &mut self,
        key: &str,
        read: &ReadFile,
        check: fn(&[u32]) -> Result<(), network::WrongLine>,
    ) -> Result<(), Problem> {
        let TraceColumn::File(name) = self else { return Ok(()) };
        let (path, text) = read(name).map_err(|message| Problem::new(key, message))?;
        let mut numbers = Vec::new();
        for (line, text) in text.trim_end().lines().enumerate() {
            let Ok(number) = text.trim().parse() else {
                let shown = crate::units::shorten(text);
                let message = format!(
                    "{path}:{}: `{shown}` is not a whole number of milliseconds; \
                     `cwnd trace convert` reads other formats",
                    line + 1
                );
                return problem(key, message);
            };
            numbers.push(number);
            if numbers.len() > MAX_LINES {
                return problem(key, format!("{path}: more than {MAX_LINES} lines"));
            }
        }
        if let Err((line, message)) = check(&numbers) {
            let line = line.map_or_else(String::new, |line| format!("{line}:"));
            return problem(key, format!("{path}:{line} {message}"));
        }
        *self = TraceColumn::Numbers(numbers);
        Ok(())
    }

    fn numbers(&self, key: impl Into<String>) -> Result<Arc<[u32]>, Problem> {
        match self {
            TraceColumn::Numbers(numbers) => Ok(numbers.as_slice().into()),
            TraceColumn::File(name) => {
                problem(key, format!("the file \"{}\" was not read", crate::units::shorten(name)))
            }
        }
    }
}

text_or_number!(
    Loss,
    "a probability such as 0.01 or { kind = \"gilbert_elliott\", … }",
    |text: &str| text.parse().map(Loss::Independent),
    |number| Probability::number(number).map(Loss::Independent),
    LossTable => Loss::Bursts
);
text_or_number!(
    Trace,
    "the name of a file or { rate = \"FILE\", delay = \"FILE\" }",
    |text: &str| Ok::<_, String>(Trace(TraceTable {
        rate: TraceColumn::File(text.to_owned()),
        interval: trace_interval(),
        ..TraceTable::default()
    })),
    |_: f64| Err("a trace is the name of a file"),
    TraceTable => Trace
);

json_schema!(Loss, |generator| {
    "description": "Loss: a probability, or a table of a model.",
    "anyOf": [
        generator.subschema_for::<Probability>(),
        generator.subschema_for::<LossTable>(),
    ],
});

json_schema!(Trace, |generator| {
    "description": "A trace: the name of a file relative to the scenario, or a table.",
    "anyOf": [{ "type": "string" }, generator.subschema_for::<TraceTable>()],
});

/// Compiles the keys of one direction of a link. Its queue has no size yet. `place` returns the path
/// of a key, for errors.
pub(super) fn compile(
    name: String,
    ends: [usize; 2],
    keys: &LinkKeys,
    place: impl Fn(&str) -> String,
) -> Result<Link, Problem> {
    let mut impairments = Impairments::default();
    let mut rate = keys.rate.copied().unwrap_or(BitRate::INFINITE).finite();
    let mut delay = keys.delay.copied().unwrap_or_default().dur();
    for (given, sets, name) in [
        (keys.rate.is_some(), keys.sets_rate(), "rate"),
        (keys.delay.is_some(), keys.sets_delay(), "delay"),
    ] {
        if given && sets {
            let by = if keys.trace.is_some() { "trace" } else { "model" };
            return problem(place(name), format!("`{by}` sets the {name} of the link"));
        }
    }
    if keys.trace.is_some() && keys.model.is_some() {
        return problem(place("trace"), "a link has a `trace` or a `model`, not both");
    }
    if let Some(Trace(trace)) = keys.trace {
        let trace = network::Trace {
            opportunities: trace.rate.numbers(place("trace"))?,
            delays: trace.delay.numbers(place("trace"))?,
            interval: trace.interval.dur(),
        };
        rate = trace.mean_rate();
        delay = trace.mean_delay().unwrap_or(delay);
        impairments.model = Some(Model::Trace(trace));
    }
    match keys.model {
        None => {}
        Some(ModelTable::Cellular { max, sigma, outage, step }) => {
            rate = Some(max.get() / 2.0);
            let (max, sigma) = (max.get(), sigma.get());
            let cellular = Cellular { max, sigma, outage: outage.dur(), step: step.dur() };
            impairments.model = Some(Model::Cellular(cellular));
        }
        Some(ModelTable::Leo { interval, rate: rates, delay: delays, outage }) => {
            rate = Some(f64::midpoint(rates.low().get(), rates.high().get()));
            delay = delays.at(0.5);
            impairments.model = Some(Model::Leo(Leo {
                interval: interval.dur(),
                rate: [rates.low().get(), rates.high().get()],
                delay: [delays.low().dur(), delays.high().dur()],
                outage: outage.dur(),
            }));
        }
        Some(ModelTable::Wifi { jitter }) => impairments.jitter = Some(Jitter::Wifi(jitter.dur())),
    }
    if let Some(&jitter) = keys.jitter {
        if impairments.jitter.is_some() {
            return problem(place("jitter"), "`model` sets the jitter of the link");
        }
        if jitter > Span::ZERO {
            impairments.jitter = Some(Jitter::Uniform(jitter.dur()));
        }
    }
    let mut loss = 0.0;
    match keys.loss {
        None => {}
        Some(Loss::Independent(probability)) => loss = probability.get(),
        Some(Loss::Bursts(table)) => {
            impairments.burst_loss = Some(GilbertElliott {
                p: table.p.get(),
                r: table.r.get(),
                bad: 1.0 - table.h.get(),
                good: 1.0 - table.k.get(),
            });
        }
    }
    let change = |change: &ChangeTable| Change {
        at: change.at.dur(),
        over: change.over.dur(),
        rate: change.rate.map(ChangedRate::get),
        delay: change.delay.map(Span::dur),
        loss: change.loss.map(Probability::get),
    };
    impairments.changes = keys.changes.into_iter().flatten().map(change).collect();
    let blackout = |dark: &BlackoutTable| Blackout { at: dark.at.dur(), length: dark.length.dur() };
    impairments.blackouts = keys.blackout.into_iter().flatten().map(blackout).collect();
    impairments.reorder = keys.reorder.map(|reorder| Reorder {
        probability: reorder.probability.get(),
        delay: reorder.delay.dur(),
    });
    impairments.ack_aggregation = keys.ack_aggregation.copied().unwrap_or_default().dur();
    impairments.ack_thinning = keys.ack_thinning.copied().unwrap_or_default().dur();
    let bucket = |bucket: &BucketTable| {
        let (rate, burst) = (bucket.rate.finite()?, bucket.burst.get());
        Some(TokenBucket { rate, burst })
    };
    impairments.policer = keys.policer.and_then(bucket);
    impairments.shaper = keys.shaper.and_then(bucket);
    let impairments = (impairments != Impairments::default()).then(|| Arc::new(impairments));
    let loss_of_acks = keys.loss_of_acks.copied().unwrap_or_default();
    let link = Link::new(name, ends, rate, delay, Queue::INFINITE);
    Ok(Link { loss, loss_of_acks, impairments, ..link })
}
