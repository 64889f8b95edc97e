//! The congestion controllers of the crate [`cwnd`] in QUIC stacks.
//!
//! | feature | stack | module |
//! |---|---|---|
//! | `noq` | noq 1.4 | `noq` |
//! | `quinn` | quinn 0.11 | `quinn` |
//! | `s2n` | s2n-quic 1.91, with its feature `unstable-congestion-controller` | `s2n` |
//!
//! No feature is on by default. In each module `factory` returns what the stack's configuration
//! takes:
#![cfg_attr(feature = "noq", doc = "```")]
#![cfg_attr(not(feature = "noq"), doc = "```ignore")]
//! let mut transport = noq_proto::TransportConfig::default();
//! transport.congestion_controller_factory(cwnd_quic::noq::factory("simd(beta=1/16)")?);
//! # Ok::<(), cwnd_quic::Error>(())
//! ```
//!
//! A controller is a specification of the [registry](cwnd::registry), the path of a `.law` file, a
//! text by [`law`], a [`Spec`](cwnd::Spec), or an `Arc` of any
//! [`MakeController`](cwnd::MakeController). [`Controllers`] has settings beside it: a seed, the
//! largest window, [`Recordings`]. A record replays bit by bit:
#![cfg_attr(feature = "noq", doc = "```")]
#![cfg_attr(not(feature = "noq"), doc = "```ignore")]
//! use cwnd::record::replay;
//! use cwnd_quic::{Controllers, Recordings};
//!
//! let recordings = Recordings::new();
//! let controllers = Controllers::try_from("cubic")?.record(&recordings);
//! let mut transport = noq_proto::TransportConfig::default();
//! transport.congestion_controller_factory(cwnd_quic::noq::factory(controllers)?);
//! // After the connections:
//! for recording in recordings.to_vec() {
//!     let cubic = Controllers::try_from("cubic")?.controller(&recording.settings);
//!     assert!(replay(cubic, &recording.record).is_ok());
//! }
//! # Ok::<(), cwnd_quic::Error>(())
//! ```
//!
//! [`events`] lists what each stack reports to a controller.

#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(
    not(any(feature = "noq", feature = "quinn", feature = "s2n")),
    expect(dead_code, reason = "without a stack nothing drives a controller")
)]

#[cfg(any(feature = "noq", feature = "quinn"))]
mod batch;
mod connection;
mod controllers;
mod error;
pub mod events;
#[cfg(any(feature = "noq", feature = "quinn"))]
mod flight;
#[cfg(feature = "noq")]
pub mod noq;
#[cfg(feature = "quinn")]
pub mod quinn;
mod recording;
#[cfg(feature = "s2n")]
pub mod s2n;

pub use controllers::{Controllers, law};
pub use error::Error;
pub use recording::{Recording, Recordings};
