//! Congestion controllers written once, as the equations of their papers.
//!
//! A **law** ([`laws`]) is what a paper prints: how the window grows and how it is cut. A
//! **machine** ([`machine`]) is everything around it, written once: slow start, recovery, timeouts,
//! clamps. A **driver** (a simulator, a socket, a kernel trace) tells a [`Controller`] what happened
//! as plain [`Event`]s and reads its [`Output`]. Nothing here knows a clock, a socket or a thread.
//!
//! ```
//! use cwnd::{Acked, Controller, Event, Limit, Settings, Time, Dur, Windowed, laws::Aimd};
//!
//! let mut reno = Windowed::new(Aimd::reno(), Settings::default());
//! let acked = Acked {
//!     packets: 2, credit: 2, in_flight: 8, sent: 10, sent_at: Time::ZERO, rtt: Some(Dur::from_millis(50)),
//!     received_at: None, echo: false, limit: Limit::Window,
//! };
//! reno.on(Time::from_nanos(50_000_000), &Event::Acked(acked));
//! assert_eq!(reno.output().window, 12.0);
//! ```

#![cfg_attr(feature = "libm", no_std)]
#![forbid(unsafe_code)]

#[cfg(feature = "libm")]
extern crate alloc;
#[cfg(not(feature = "libm"))]
extern crate std as alloc;

mod event;
mod law;
pub mod laws;
pub mod machine;
mod math;
pub mod model;
pub mod record;
pub mod registry;
mod units;

pub use event::{Acked, Event, Limit, Lost, Marked, Output, Report};
pub use law::{Clock, Context, RateLaw, Round, Rtt, Signal, WindowLaw};
pub use machine::{Controller, Cut, Paced, Settings, SlowStart, Windowed};
pub use registry::{AnyController, MakeLaw, Spec, SpecError};
pub use units::{Dur, Packets, Rate, Time};
