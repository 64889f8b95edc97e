//! Laws that are texts: each follows its paper.

mod aiad;
mod aimd;
mod aira;
mod bic;
mod binomial;
mod daimd;
mod dctcp;
mod highspeed;
mod prague;
mod scalable;
mod simd;
mod udt;
mod vegas;

use crate::common::at;
use cwnd::{Context, Dur, Rtt, WindowLaw};

/// Congestion avoidance at time 0 with a round-trip time of 100 ms and 1500-byte packets.
fn context() -> Context {
    context_at(0)
}

/// The same at `now` in milliseconds.
fn context_at(now: u64) -> Context {
    Context::new(at(now), Some(Rtt::first(Dur::from_millis(100))))
}

/// A variable that the law shows.
fn gauge(law: &impl WindowLaw, wanted: &str) -> f64 {
    let mut found = None;
    law.gauges(&mut |name, value| {
        if name == wanted {
            found = Some(value);
        }
    });
    found.unwrap_or_else(|| panic!("{law:?} does not show {wanted}"))
}
