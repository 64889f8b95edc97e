//! Congestion controllers written once, as the equations of their papers and specifications.
//!
//! * A **law** ([`WindowLaw`], [`RateLaw`]; [`laws`]) is what a paper prints: how the window or the rate grows and how
//!   it is reduced.
//! * A **machine** ([`Windowed`], [`Paced`]) contains everything around a law, written once: slow start, recovery,
//!   timeouts, undo, clamps, pacing.
//! * A **whole controller** implements [`Controller`] itself and shares [`parts`] and the [`delivery`]-rate estimator.
//! * A **driver** (a QUIC or UDP transport, a simulator, a kernel trace) reports plain [`Event`]s to a [`Controller`]
//!   and reads its [`Output`].
//!
//! The crate has no I/O, clocks or threads. Results are bit-equal on every machine: powers, roots and logarithms come
//! from the crate `libm`.
//!
//! ```
//! use cwnd::laws::Aimd;
//! use cwnd::{Acked, Controller, Dur, Event, Packets, Settings, Time, Windowed};
//!
//! let mut reno = Windowed::new(Aimd::reno(), &Settings::default());
//! let mut acked = Acked::new(2, Time::ZERO);
//! acked.rtt = Some(Dur::from_millis(50));
//! reno.on(Time::ZERO + Dur::from_millis(50), &Event::Acked(acked));
//! assert_eq!(reno.output().window, Packets::new(12.0));
//! ```
//!
//! # Features
//!
//! | feature | contents |
//! |---|---|
//! | `std` | conversion of `std::time::Instant`; without it the crate is `no_std` and needs `alloc` |
//! | `registry` | controllers by name: [`Spec`], [`registry`] |
//! | `models` | laws in closed-form models: [`model`] |
//! | `records` | recording and replay of events: [`record`] |
//!
//! All are on by default.

#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod any;
mod controller;
mod conventions;
pub mod delivery;
mod event;
mod law;
pub mod laws;
pub mod machine;
#[cfg(feature = "models")]
pub mod model;
pub mod parts;
#[cfg(feature = "records")]
pub mod record;
#[cfg(feature = "registry")]
pub mod registry;
mod rtt;
mod units;

pub use any::{AnyController, Law, MakeController};
pub use controller::{Controller, Cut, Needs, Reduction, Settings};
pub use conventions::{Conventions, Decided, Decision};
pub use event::{Acked, Event, Limit, Lost, Marked, Output, Report};
pub use law::{Clock, Context, RateLaw, Round, Signal, WindowLaw};
pub use machine::{Growth, Paced, SlowStart, SlowStartLaw, Windowed};
#[cfg(feature = "registry")]
pub use registry::{Spec, SpecError};
pub use rtt::Rtt;
pub use units::{Dur, Packets, Rate, Time};
