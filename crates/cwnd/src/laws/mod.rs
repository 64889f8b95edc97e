//! The laws, one file each.
//!
//! A file begins with a card: name, source, equations, symbols with units, ranges and defaults, and
//! every deviation from the source. The test `cards` compares it with the `registry`.
//!
//! Parameters of the machine, which every window law has in a `Spec` besides its own:
//!
//! | symbol | meaning | unit | range | default |
//! |---|---|---|---|---|
//! | `start` | slow start: RFC 5681, HyStart++ (RFC 9406), HyStart++ with acknowledgement trains, or HyStart of Linux's CUBIC | | standard, hystart, hystart-train, hystart-linux | the driver's |
//! | `pacing` | pacing rate over window / smoothed round-trip time; 0: the driver's | | 0 <= pacing <= 100 | 0, prague: 1 |
//!
//! A new law is a file here, its name in the list in `any.rs`, and an entry in the registry:
//! `cwnd new-controller` writes them.

pub mod aiad;
pub mod aimd;
pub mod aira;
mod any;
pub mod bic;
pub mod binomial;
pub mod cubic;
pub mod daimd;
pub mod dctcp;
#[cfg(feature = "files")]
pub(crate) mod file;
pub mod highspeed;
pub mod prague;
pub mod scalable;
pub mod simd;
pub mod tfrc;
pub mod udt;
pub mod vegas;

pub use aiad::{Aiad, RateClock, RateFilter};
pub use aimd::Aimd;
pub use aira::{Aira, AiraParameters, AiraPeak};
pub use any::{AnyLaw, AnyRateLaw};
pub use bic::{Bic, BicParameters};
pub use binomial::Binomial;
pub use cubic::Cubic;
pub use daimd::{Daimd, DaimdParameters, Feedback};
pub use dctcp::Dctcp;
pub use highspeed::HighSpeed;
pub use prague::Prague;
pub use scalable::Scalable;
pub use simd::{Simd, SimdReset};
pub use tfrc::Tfrc;
pub use udt::Udt;
pub use vegas::Vegas;

#[cfg(test)]
pub(crate) mod testing {
    //! Contexts for the tests of the laws.

    use crate::law::Context;
    use crate::rtt::Rtt;
    use crate::units::{Dur, Time};

    /// Congestion avoidance at time 0 with a round-trip time of 100 ms and 1500-byte packets.
    pub(crate) fn context() -> Context {
        at(Time::ZERO)
    }

    /// The same at `now`.
    pub(crate) fn at(now: Time) -> Context {
        Context::new(now, Some(Rtt::first(Dur::from_millis(100))))
    }
}
