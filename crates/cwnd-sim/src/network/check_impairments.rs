//! The impairments that can be simulated. The scenario compiler applies the same rules.

use super::{Cellular, Change, GilbertElliott, Impairments, Jitter, Leo, Link, Model, Trace};
use crate::check::{Checked, MAX_DURATION, check_probability, check_rate, check_spans, invalid};
use cwnd::Dur;

/// The means of the Wi-Fi jitter.
const WIFI_MEANS: std::ops::RangeInclusive<Dur> = Dur::from_millis(1)..=Dur::from_millis(91);

/// The least time between changes of a model: their number is limited.
const MIN_INTERVAL: Dur = Dur::from_millis(1);

impl Link {
    /// Checks the impairments.
    pub(crate) fn check_impairments(&self) -> Checked {
        let Some(own) = &self.impairments else { return Ok(()) };
        own.check_changes(self.rate)?;
        own.check_altered(self.rate)?;
        match &own.model {
            None => {}
            Some(Model::Trace(trace)) => trace.check()?,
            Some(Model::Cellular(cellular)) => cellular.check()?,
            Some(Model::Leo(leo)) => leo.check()?,
        }
        own.check_blackouts()?;
        match own.jitter {
            Some(Jitter::Uniform(most)) => check_spans([("jitter", most)])?,
            Some(Jitter::Wifi(mean)) if !WIFI_MEANS.contains(&mean) => {
                return invalid("model", "the mean jitter of a wifi link is from 1ms to 91ms");
            }
            _ => {}
        }
        if let Some(reorder) = own.reorder {
            check_probability("reorder", reorder.probability)?;
            check_spans([("reorder", reorder.delay)])?;
        }
        if let Some(GilbertElliott { p, r, bad, good }) = own.burst_loss {
            for probability in [p, r, bad, good] {
                check_probability("loss", probability)?;
            }
        }
        check_spans([
            ("ack_aggregation", own.ack_aggregation),
            ("ack_thinning", own.ack_thinning),
        ])?;
        for (field, bucket) in [("policer", own.policer), ("shaper", own.shaper)] {
            let Some(bucket) = bucket else { continue };
            check_rate(field, bucket.rate)?;
            if bucket.burst == 0 || bucket.burst > 1 << 53 {
                return invalid(field, "the burst of a token bucket is from 1 byte to 2^53 bytes");
            }
        }
        Ok(())
    }
}

impl Impairments {
    fn check_changes(&self, initial: Option<f64>) -> Checked {
        let error = |message: &str| invalid("changes", message);
        let sets_delay = match &self.model {
            Some(Model::Leo(_)) => true,
            Some(Model::Trace(trace)) => !trace.delays.is_empty(),
            _ => false,
        };
        let mut before = Dur::ZERO;
        let mut last_rate = None;
        for &Change { at, over, rate, delay, loss } in &self.changes {
            if at < before {
                return error("changes are in the order of time");
            }
            before = at;
            if rate.is_none() && delay.is_none() && loss.is_none() {
                return error("a change gives a rate, a delay or a loss");
            }
            if rate.is_some() && self.model.is_some() {
                return error("a trace or a model sets the rate of the link");
            }
            if rate.is_some() && initial.is_none() {
                return error("the rate of a link that changes is finite from the beginning");
            }
            if delay.is_some() && sets_delay {
                return error("a trace or a model sets the delay of the link");
            }
            if loss.is_some() && self.burst_loss.is_some() {
                return error("a loss that changes is a probability");
            }
            if let Some(rate) = rate.filter(|&rate| rate != 0.0) {
                check_rate("changes", rate)?;
            }
            check_probability("changes", loss.unwrap_or(0.0))?;
            check_spans([
                ("changes", at),
                ("changes", over),
                ("changes", delay.unwrap_or_default()),
            ])?;
            last_rate = rate.or(last_rate);
        }
        if last_rate == Some(0.0) {
            return error("the last rate is above 0; a stopped link would keep its queue for ever");
        }
        Ok(())
    }

    /// Checks the changes during a run.
    fn check_altered(&self, initial: Option<f64>) -> Checked {
        let altered = &self.altered;
        let stepwise = altered.is_sorted_by_key(|change| change.at)
            && altered.iter().all(|change| change.over.is_zero() && change.rate != Some(0.0));
        if !stepwise {
            return invalid("altered", "a run changes in steps, in the order of time");
        }
        let varies = |quantity: fn(&Change) -> bool| {
            altered.iter().any(quantity) && self.changes.iter().any(quantity)
        };
        let varies_rate = varies(|change| change.rate.is_some());
        if varies_rate
            || varies(|change| change.delay.is_some())
            || varies(|change| change.loss.is_some())
        {
            return invalid("changes", "what they vary cannot change in a run");
        }
        let changes = altered.clone();
        let (model, burst_loss) = (self.model.clone(), self.burst_loss);
        Impairments { changes, model, burst_loss, ..Impairments::default() }.check_changes(initial)
    }

    fn check_blackouts(&self) -> Checked {
        let mut before = Dur::ZERO;
        for blackout in &self.blackouts {
            if blackout.length.is_zero() {
                return invalid("blackout", "the duration of a blackout is above 0");
            }
            if blackout.at < before {
                return invalid(
                    "blackout",
                    "blackouts are in the order of time and do not overlap",
                );
            }
            check_spans([("blackout", blackout.at), ("blackout", blackout.length)])?;
            before = blackout.at + blackout.length;
        }
        Ok(())
    }
}

/// A wrong number of a trace: its line, counted from 1, and what is allowed.
pub(crate) type WrongLine = (Option<usize>, &'static str);

impl Trace {
    /// Checks the times of the delivery opportunities.
    pub(crate) fn check_times(times: &[u32]) -> Result<(), WrongLine> {
        if let Some(line) = times.windows(2).position(|pair| pair[1] < pair[0]) {
            return Err((Some(line + 2), "times do not decrease"));
        }
        if times.last().is_none_or(|&last| last == 0) {
            return Err((None, "a trace has at least one time, and its last one is above 0"));
        }
        Ok(())
    }

    /// Checks the delays.
    pub(crate) fn check_delays(delays: &[u32]) -> Result<(), WrongLine> {
        let longest = MAX_DURATION.as_nanos() / 1_000_000;
        match delays.iter().position(|&delay| u64::from(delay) > longest) {
            Some(line) => Err((Some(line + 1), "a delay is at most 2h")),
            None => Ok(()),
        }
    }

    fn check(&self) -> Checked {
        let error = |message: String| invalid("trace", message);
        let located = |of: &str, (line, message): WrongLine| match line {
            Some(line) => error(format!("line {line}{of}: {message}")),
            None => error(message.into()),
        };
        Self::check_times(&self.opportunities).or_else(|wrong| located("", wrong))?;
        Self::check_delays(&self.delays).or_else(|wrong| located(" of the delays", wrong))?;
        if self.interval < MIN_INTERVAL {
            return error("the interval of the delays is at least 1ms".into());
        }
        check_spans([("trace", self.interval)])
    }
}

impl Cellular {
    fn check(&self) -> Checked {
        check_rate("model", self.max)?;
        check_rate("model", self.sigma)?;
        if self.step < MIN_INTERVAL || self.outage < MIN_INTERVAL {
            return invalid("model", "`step` and `outage` of a cellular link are at least 1ms");
        }
        check_spans([("model", self.step), ("model", self.outage)])
    }
}

impl Leo {
    fn check(&self) -> Checked {
        let [low, high] = self.rate;
        check_rate("model", low)?;
        check_rate("model", high)?;
        if low > high || self.delay[0] > self.delay[1] {
            return invalid("model", "a range of a leo link ends before it begins");
        }
        if self.interval < MIN_INTERVAL {
            return invalid("model", "the interval of a leo link is at least 1ms");
        }
        if self.outage >= self.interval {
            return invalid("model", "the outage of a leo link is shorter than its interval");
        }
        check_spans([("model", self.interval), ("model", self.delay[1])])
    }
}
