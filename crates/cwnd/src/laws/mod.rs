//! The laws, one file each.
//!
//! A law is a text, such as `simd.law`, in the language of `docs/laws.md`: the build makes Rust and
//! the entry in the `registry` from it. What has no place in a text is Rust. Its file begins with a
//! card: name, source, equations, symbols with units, ranges and defaults, and every deviation from
//! the source. The test `cards` compares it with the `registry`.
//!
//! Parameters of the machine, which every window law has in a `Spec` besides its own:
//!
//! | symbol | meaning | unit | range | default |
//! |---|---|---|---|---|
//! | `start` | slow start: RFC 5681, HyStart++ (RFC 9406), HyStart++ with acknowledgement trains, or HyStart of Linux's CUBIC | | standard, hystart, hystart-train, hystart-linux | the driver's |
//! | `pacing` | pacing rate over window / smoothed round-trip time; 0: the driver's | | 0 <= pacing <= 100 | 0, prague: 1 |
//!
//! A new law is a text here and its name in the list of the registry. In Rust it is a file here, its
//! name in the list in `any.rs`, and an entry in the registry: `cwnd new-controller` writes them.

mod any;
pub mod cubic;
pub(crate) mod text;
pub(crate) mod texts;
pub mod tfrc;

pub use any::{AnyLaw, AnyRateLaw};
pub use cubic::Cubic;
pub use texts::*;
pub use tfrc::Tfrc;

#[cfg(test)]
pub(crate) mod testing {
    //! Contexts for the tests of the laws.

    use crate::law::Context;
    use crate::rtt::Rtt;
    use crate::units::{Dur, Time};

    /// Congestion avoidance at `now` with a round-trip time of 100 ms and 1500-byte packets.
    pub(crate) fn at(now: Time) -> Context {
        Context::new(now, Some(Rtt::first(Dur::from_millis(100))))
    }
}
