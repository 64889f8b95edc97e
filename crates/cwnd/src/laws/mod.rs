//! One file for each law, each reading like its source.
//!
//! A new law is a file here, its name in the list in `any.rs`, and an entry in the registry.

mod aimd;
mod any;
mod daimd;

pub use aimd::Aimd;
pub use any::{AnyLaw, AnyRateLaw, Custom, CustomLaw};
pub use daimd::{Daimd, DaimdParameters};

#[cfg(test)]
pub(crate) mod testing {
    //! What the laws' own tests share.

    use crate::law::{Context, Rtt};
    use crate::units::{Dur, Time};

    /// Congestion avoidance at time 0 with a round-trip time of 100 ms and 1500-byte packets.
    pub(crate) fn context() -> Context {
        at(Time::ZERO)
    }

    /// The same at `now`.
    pub(crate) fn at(now: Time) -> Context {
        let rtt = Dur::from_millis(100);
        Context {
            now,
            rtt: Some(Rtt { latest: rtt, smoothed: rtt, min: rtt }),
            last_cut: Time::ZERO,
            packet: 1500,
            slow_start: false,
        }
    }
}
