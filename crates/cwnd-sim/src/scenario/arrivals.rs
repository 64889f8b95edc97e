//! Arrivals of transfers: a Poisson process.

use cwnd::Dur;

use super::application::Arrivals;
use super::error::{Problem, problem};
use super::format::MAX_FLOWS;
use crate::cast::{to_index, whole};
use crate::network::{Link, Sizes, Traffic};
use crate::rng::Rng;

/// A transfer that arrives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Arrival {
    /// Nanoseconds since the start of the run.
    pub at: u64,
    pub bytes: u64,
}

/// A Poisson process of transfers.
#[derive(Debug)]
pub(super) struct Process {
    /// Arrivals per second.
    rate: f64,
    sizes: Sizes,
}

/// The largest load. Beyond it the transfers only wait.
const MAX_LOAD: f64 = 100.0;

impl Process {
    /// Compiles the arrivals at `key` of flows of `traffic` that cross the links `path`; access
    /// links may limit them to `access` bits per second.
    pub(super) fn new(
        arrivals: &Arrivals,
        key: &str,
        traffic: &Traffic,
        path: &[&Link],
        access: Option<f64>,
    ) -> Result<Self, Problem> {
        let sizes = arrivals.sizes.compile(&format!("{key}.sizes"))?;
        let rate = match (arrivals.rate, arrivals.load) {
            (Some(rate), None) => rate,
            (None, Some(load)) if load > 0.0 && load <= MAX_LOAD => {
                let bits = link_rate(arrivals.link.as_deref(), key, path, access)?;
                let (payload, header) = traffic.packet_bytes();
                let headers = 1.0 + f64::from(header) / f64::from(payload);
                load * bits / (8.0 * sizes.mean() * headers)
            }
            (None, Some(load)) => {
                let message = format!("{load} is not above 0 and at most {MAX_LOAD}");
                return problem(format!("{key}.load"), message);
            }
            _ => return problem(key, "give either `rate`, arrivals per second, or `load`"),
        };
        if arrivals.link.is_some() && arrivals.load.is_none() {
            return problem(format!("{key}.link"), "needs `load` beside it");
        }
        if !(rate > 0.0 && rate <= 1e9) {
            let message = format!("{rate} arrivals per second are not above 0 and at most 10^9");
            return problem(format!("{key}.rate"), message);
        }
        Ok(Process { rate, sizes })
    }

    /// Draws the arrivals of group number `group` between two times.
    ///
    /// # Errors
    /// More than [`MAX_FLOWS`] arrivals.
    pub(super) fn draw(
        &self,
        key: &str,
        seed: u64,
        group: usize,
        from: Dur,
        to: Dur,
    ) -> Result<Vec<Arrival>, Problem> {
        // Two streams: other sizes do not change the times.
        let mut times = Rng::new(seed, "arrivals", group as u64);
        let mut sizes = Rng::new(seed, "sizes", group as u64);
        let (mut at, end) = (from.as_nanos() as f64, to.as_nanos() as f64);
        let mut arrivals = Vec::new();
        loop {
            at += times.exponential(1e9 / self.rate);
            if at >= end {
                return Ok(arrivals);
            }
            if arrivals.len() == to_index(MAX_FLOWS) {
                return problem(key, format!("more than {MAX_FLOWS} arrivals"));
            }
            arrivals.push(Arrival { at: whole(at), bytes: self.sizes.draw(&mut sizes) });
        }
    }
}

/// Returns the rate of the link named `name`, or else of the slowest one of the path and the access
/// links.
fn link_rate(
    name: Option<&str>,
    key: &str,
    path: &[&Link],
    access: Option<f64>,
) -> Result<f64, Problem> {
    let Some(name) = name else {
        let rates = path.iter().filter_map(|link| link.rate).chain(access);
        return rates.min_by(f64::total_cmp).ok_or_else(|| {
            Problem::new(format!("{key}.load"), "no link of the path has a finite rate")
        });
    };
    let link = path.iter().find(|link| link.name == name);
    match link.map(|link| link.rate) {
        Some(Some(rate)) => Ok(rate),
        Some(None) => problem(format!("{key}.link"), format!("the rate of {name} is infinite")),
        None => {
            let names: Vec<_> = path.iter().map(|link| link.name.as_str()).collect();
            let names = names.join(", ");
            problem(format!("{key}.link"), format!("{name} is not on the path: {names}"))
        }
    }
}
