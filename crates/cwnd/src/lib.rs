//! Congestion controllers written once, as the equations of their papers and specifications.
//!
//! * A **law** ([`WindowLaw`], [`RateLaw`]; [`laws`]) is what a paper prints: how the window or the
//!   rate grows and how it is reduced.
//! * A **machine** ([`Windowed`], [`Paced`]) contains everything around a law, written once: slow
//!   start, recovery, timeouts, undo, clamps, pacing.
//! * A **whole controller** implements [`Controller`] itself and shares [`parts`] and the
//!   [`delivery`]-rate estimator.
//! * A **driver** (a QUIC or UDP transport, a simulator, a kernel trace) reports plain [`Event`]s
//!   to a [`Controller`] and reads its [`Output`].
//!
//! [Writing a driver](#writing-a-driver) and [Writing a controller](#writing-a-controller) define
//! the interface between them. [`examples`] contains complete programs.
//!
//! The crate has no I/O, clocks or threads. Results are bit-equal on every machine: powers, roots
//! and logarithms come from the crate `libm`.
//!
//! ```
//! use cwnd::laws::Reno;
//! use cwnd::{Acked, Controller, Dur, Event, Packets, Settings, Time, Windowed};
//!
//! let mut reno = Windowed::new(Reno::new(), &Settings::default());
//! let mut acked = Acked::new(2, Time::ZERO);
//! acked.rtt = Some(Dur::from_millis(50));
//! reno.on(Time::ZERO + Dur::from_millis(50), &Event::Acked(acked));
//! assert_eq!(reno.output().window, Packets::new(12.0));
//! ```
//!
//! # Writing a driver
//!
//! A driver is the part of a transport, simulator or measurement that owns a connection. It makes a
//! controller from [`Settings`], reports each [`Event`] through [`Controller::on`], and sends as
//! [`Controller::output`] permits. The key words MUST, MUST NOT, SHOULD and MAY are those of RFC
//! 2119.
//!
//! **Settings.** A driver sets the packet size, the initial window and the largest window of the
//! connection, its [`Conventions`], and a seed that differs between connections. A stack whose
//! acknowledgements cover many packets raises [`Settings::slow_start_limit`]; one that paces sets
//! [`Settings::pacing`] for the window laws. `Spec` makes a controller by name, such as
//! `cubic(start=hystart)`.
//!
//! **Units.** Volumes are numbers of packets of the maximum packet size, [`Settings::packet`]
//! bytes. A packet that is not full counts as one; packets outside of congestion control, such as
//! pure acknowledgements, do not count. [`Time`] is in nanoseconds since the driver's epoch, which
//! SHOULD be the start of the connection: before the first reduction, laws that depend on the time
//! since the last reduction count from the epoch. Any clock that never goes back is suitable;
//! `Time::from_instant` converts that of `std`.
//!
//! **Calls.** The times of successive calls MUST NOT decrease. A driver MUST read the [`Output`]
//! again after each event. A controller that gets events against the rules of this section answers
//! with an unspecified window and rate, and does not panic.
//!
//! **Sending.** The driver MAY send a packet if `in_flight + 1 <= output.window` and, where
//! `output.pace` is a rate, if the pacer permits it ([`parts::Pacer`]). Retransmissions count like
//! any other packet, except for those that loss recovery sends regardless of the window: the first
//! one of fast retransmit (RFC 5681 section 3.2), and probes (RFC 9002 section 7.5). The window is
//! at least [`Conventions::least_window`], if the largest window is: two packets for QUIC (RFC 9002
//! section 7.2). It may be infinite and may fall below the packets in flight. The receiver's window
//! is the driver's business; [`Settings::max_window`] names its largest value. A window that is not
//! a number permits nothing. A pace of zero delays the next packet for ever, also if the pace rises
//! later.
//!
//! **Timer.** If `output.wake` is a time, the driver MUST report [`Event::Tick`] at that time or
//! later, once. Each event may change it; only the last value counts. [`Output::next_tick`] gives
//! the time, and keeps Ticks at least 10 µs apart.
//!
//! **Needs.** [`Controller::needs`] says which optional data the controller uses. It is constant: a
//! driver reads it once. A controller that needs reports gets [`Event::Report`] about every 10 ms
//! and makes no use of [`Event::Acked`]; losses, marks and timeouts are reported to it as to any
//! other. If the receiver sends no such reports, the sender computes them from the
//! acknowledgements, from the first round-trip time sample on; [`Report::arrival`] says how.
//!
//! **Order.** One acknowledgement may cause several events. They have the same time and this order:
//!
//! | | event | condition |
//! |---|---|---|
//! | 1 | [`Event::Undo`] | it proves that the losses or the timeout behind the last reduction were spurious (RFC 3522, RFC 5682, RFC 9438 section 4.9) |
//! | 2 | [`Event::Acked`] | it newly acknowledges packets: exactly one event, whatever their number. A driver MAY also report a duplicate acknowledgement, with 0 packets |
//! | 3 | [`Event::Marked`] | it newly reports CE marks, or carries ECN-Echo |
//! | 4 | [`Event::Recovered`] | all packets sent before recovery began are acknowledged; not reported with [`Conventions::infers_recovery`] |
//! | 5 | [`Event::Lost`] | packets are newly declared lost: one event for all of them; or, with 0 packets, a recovery begins for packets that were declared lost in the one before |
//! | 6 | [`Event::PersistentCongestion`] | these losses establish it (RFC 9002 section 7.6) |
//!
//! Losses that belong to a recovery are thus reported before its end, and losses found by the
//! acknowledgement that ends it begin the next one. Losses that a timer detects (RFC 8985, RFC 9002
//! section 6.1.2) are reported in the same way, without an acknowledgement. The driver reports
//! every loss, in recovery too: the controller decides which one is a new congestion event. The
//! losses and marks of one window of data are one congestion event, which is answered once.
//!
//! **Fields.**
//!
//! * [`Acked::packets`] counts packets acknowledged for the first time, cumulatively or
//!   selectively.
//! * [`Acked::credit`] is the number of packets that the window may grow for: `packets`, or 1 in a
//!   stack without byte counting (RFC 5681 section 3.1), or 0 if the window must not grow on this
//!   acknowledgement.
//! * `sent_at` is the time of the last transmission of a packet; among several packets, the latest
//!   one. Controllers compare it with the time of the last reduction: the loss of a packet sent
//!   before it belongs to the same window of data.
//! * `sent` counts all transmissions since the connection began, up to the time of the event.
//! * [`Acked::in_flight`] counts packets sent and neither acknowledged nor declared lost. Packets
//!   that this acknowledgement causes to be declared lost MAY still be counted.
//! * [`Acked::rtt`] is the time since the transmission of the newest newly acknowledged packet, not
//!   corrected for delayed acknowledgements. It is `None` if that packet was retransmitted and its
//!   transmissions cannot be distinguished (Karn), and in QUIC if the largest acknowledged packet
//!   is not newly acknowledged (RFC 9002 section 5.1).
//! * [`Acked::limit`] is why the sender last stopped sending before this acknowledgement. The
//!   window grows only if the window or the pacing rate limited the sender (RFC 7661): a driver
//!   that always reports [`Limit::Window`] lets the window of an idle application grow without
//!   bound.
//!
//! **Timeouts.** [`Event::Timeout`] is the expiry of the retransmission timer of RFC 6298. It
//! contains the packets in flight that the driver declares lost then: with selective
//! acknowledgements those that are not acknowledged, with RACK those that it marks (RFC 8985
//! section 6.3), and otherwise all, because the sender goes back. They are losses for every
//! controller that counts losses, and are not reported as [`Lost`] too. A retransmission that is
//! lost again counts again. If a packet that a timeout has retransmitted times out again, the
//! driver reports [`Event::Reduced`] to a window law instead, so that the slow-start threshold
//! stays (RFC 5681 section 3.1). A QUIC stack does not report its probe timeout (RFC 9002 section
//! 6.2), after which no packet is declared lost: the acknowledgement of the probe declares them.
//!
//! **Handshakes.** The acknowledgement of a segment without data, such as a SYN, is no
//! [`Event::Acked`]. A TCP reports [`Event::Handshake`] with the time of its handshake, unless the
//! SYN was retransmitted (Karn). The time counts for the smoothed round-trip time, from which the
//! machines pace, and not for [`Rtt::min`]: 40 bytes have no transmission time to speak of. No law
//! observes it. `bbr` and `bbr3` begin with it as min_rtt, because their sources do (`bbr_init` of
//! Linux takes `tcp_min_rtt`; BBROnInit takes C.srtt); the other controllers that keep a least
//! round-trip time ignore it, as do those of Linux: `tcp_init_transfer` initialises them after the
//! handshake (`tcp_vegas_init`, `bictcp_reset`, `dctcp_init`). The delivery-rate estimator does not
//! count the SYN as delivered.
//!
//! **ECN.** A stack that counts marks (AccECN, RFC 9768; QUIC) sets [`Acked::marked`] and reports
//! [`Marked`] with the increase of the count. A stack with the ECN-Echo of RFC 3168 sets
//! [`Acked::echo`] and reports [`Marked`] with one packet for each such acknowledgement. An
//! acknowledgement of packets sent before and after a reduction does not tell which of them are
//! marked: [`Marked::sent_at`] is before the reduction if all marks may be, so that one window of
//! data is answered once (RFC 3168 section 6.1.2). [`Controller::take_cut`] then returns whether
//! the window was reduced, which a TCP answers with CWR.
//!
//! **Other events.** [`Event::Reduced`] reports a window that the driver reduced itself. A restart
//! after an idle period is marked as such, and reported also if the window stays. [`Event::Mtu`]
//! reports a change of the maximum packet size: from then on one packet is one of the new size, in
//! the output too. Packets sent before the change still count as one packet each when they are
//! acknowledged or lost, and in delivery-rate samples. The controller keeps its windows, rates and
//! samples as the same numbers of bytes, and converts the samples of the next round trips
//! ([`parts::PacketSizes`]): path MTU discovery costs it no estimates.
//!
//! **Delivery rate.** If the controller needs it, the driver keeps a
//! [`delivery::DeliveryEstimator`]: [`sent`](delivery::DeliveryEstimator::sent) at each
//! transmission; [`application_limited`](delivery::DeliveryEstimator::application_limited) when the
//! application has no more data and the window has room; for each acknowledgement
//! [`lost`](delivery::DeliveryEstimator::lost) for the losses known by then,
//! [`acked`](delivery::DeliveryEstimator::acked) for each newly acknowledged packet, and
//! [`sample`](delivery::DeliveryEstimator::sample), whose result is [`Acked::delivery`]; or only
//! [`sample_newest`](delivery::DeliveryEstimator::sample_newest), if it knows which packet was sent
//! last. With the losses it reports [`loss_sample`](delivery::DeliveryEstimator::loss_sample) of
//! the most recently sent lost packet as [`Lost::delivery`].
//!
//! **Rules of the stack.** [`Conventions`] names the rules in which stacks differ.
//! [`Conventions::RFC`] is for stacks that report the end of recovery, [`Conventions::QUIC`] for
//! the others, and [`Conventions::LINUX`] for Linux's TCP.
//!
//! # Writing a controller
//!
//! | the idea is | implement | example |
//! |---|---|---|
//! | a formula for the window at an acknowledgement and at a loss | [`WindowLaw`]; [`Windowed`] makes it a controller | [a law](examples#a-law) |
//! | a formula for the sending rate in each control interval | [`RateLaw`]; [`Paced`] makes it a controller | [`laws::tfrc`] |
//! | a model of the path with its own state machine, such as BBR | [`Controller`], with [`parts`] | [a whole controller](examples#a-whole-controller) |
//! | another slow start for any window law | [`SlowStartLaw`], in [`Settings::slow_start`] | |
//! | other rules of a stack around any window law | [`Conventions`] | |
//!
//! **A window law** is called by [`Windowed`] as follows.
//!
//! | call | when |
//! |---|---|
//! | [`observe`](WindowLaw::observe) | at each acknowledgement, in every phase, before anything else |
//! | [`leave_slow_start`](WindowLaw::leave_slow_start) | after each growth in slow start |
//! | [`enter`](WindowLaw::enter) | once after slow start and after each reduction, before the first growth in congestion avoidance |
//! | [`grow`](WindowLaw::grow) | at each acknowledgement in congestion avoidance, outside of recovery, if the sender used the window |
//! | [`cut`](WindowLaw::cut), then [`threshold`](WindowLaw::threshold) | at a loss or mark of a packet not sent before the last reduction, outside of recovery; at each timeout; at persistent congestion |
//! | [`answers_mark`](WindowLaw::answers_mark) | before `cut` at a mark: whether there is a reduction |
//! | [`grows_after_mark`](WindowLaw::grows_after_mark) | after `cut` at a mark: whether `grow` is called before the next round |
//! | [`round`](WindowLaw::round) | after the recovery of each reduction; at once if the reduction begins no recovery: after a timeout, and after a mark unless recovery is inferred |
//! | [`reduced`](WindowLaw::reduced) | after a reduction by the driver |
//! | [`rescale`](WindowLaw::rescale) | at a change of the packet size |
//!
//! The machine keeps the window between [`Conventions::least_window`] and the largest window. An
//! answer of `cut` above the window before the signal, or an answer that is not a number, leaves
//! the window as it is. The machine clones the law at each reduction, to restore it at
//! [`Event::Undo`]: the state of a law should be small.
//!
//! **A rate law** is called by [`Paced`]. Slow start opens a window by one packet for each packet
//! acknowledged, unpaced, up to the first loss or mark or the largest window;
//! [`start`](RateLaw::start) then sets the rate. After each control interval with acknowledgements
//! and without losses [`tick`](RateLaw::tick) raises the rate; [`losses`](RateLaw::losses) and
//! [`cut`](RateLaw::cut) follow each loss report, and each timeout. A law that [starts
//! itself](RateLaw::starts_itself) has no slow start, and `tick` runs after each interval. The
//! machine keeps the rate at [`least`](RateLaw::least) (1 packet/s) or more and the flow window at
//! 16 packets or more. Reports do not say what limits the sender: slow start and the rate also grow
//! while the application limits it, and a law that must not do so compares its rate with
//! [`Report::arrival`].
//!
//! **A whole controller** MUST accept any event in any order without a panic, and ignores events
//! that it does not know: [`Event`] will get more. Its window SHOULD be at least
//! [`Conventions::least_window`], and two packets after persistent congestion (RFC 9002 section
//! 7.6.2). [`Controller::output`] changes only with an event. After an [`Event::Tick`] `wake` MUST
//! be later than the time of the event, and a Tick before `wake` MUST have no effect.
//! [`Controller::needs`] never changes, and [`Controller::gauges`] emits the same names in each
//! call. At [`Event::Mtu`] it converts its windows, rates and filters to packets of the new size,
//! and from then on the delivery-rate samples with [`parts::PacketSizes`].
//!
//! **Determinism.** The same events give the same answers, bit by bit, on every machine: a
//! controller reads no clock and no other source of randomness than [`Settings::seed`], and takes
//! powers, roots and logarithms from `libm`.
//!
//! **Use.** A driver that is generic over [`Controller`] takes a [`Windowed`], a [`Paced`] or the
//! controller itself. One that takes [`AnyController`], such as the transports and simulators of
//! this project, gets it from [`AnyController::window`], [`AnyController::rate`] or
//! [`AnyController::whole`], and makes one for each connection through [`MakeController`].
//!
//! **Tests.** `model` runs a law alone in closed form. `record` replays the recorded events of a
//! connection: a regression test of any controller.
//!
//! # Features
//!
//! | feature | contents |
//! |---|---|
//! | `std` | conversion of `std::time::Instant`; without it the crate is `no_std` and needs `alloc` |
//! | `registry` | controllers by name: [`Spec`], [`registry`] |
//! | `models` | laws in closed-form models: [`model`] |
//! | `records` | recording, replay and checks of events: [`record`], [`conform`] |
//!
//! All are on by default.

#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

#[cfg(all(doc, not(doctest)))]
pub mod examples;
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

#[cfg(feature = "files")]
pub mod answers;
mod any;
#[cfg(feature = "records")]
pub mod conform;
mod controller;
pub mod controllers;
mod conventions;
pub mod delivery;
mod event;
mod law;
pub mod laws;
pub mod machine;
#[cfg(feature = "models")]
pub mod model;
pub mod parts;
mod random;
#[cfg(feature = "records")]
pub mod record;
#[cfg(feature = "registry")]
pub mod registry;
mod rtt;
#[cfg(test)]
mod testing;
mod units;
mod whole;

pub use any::{AnyController, Law, MakeController};
pub use controller::{Controller, Cut, Needs, Reduction, Settings};
pub use conventions::{Conventions, Decided, Decision};
pub use event::{Acked, Event, Limit, Lost, Marked, Output, Report};
pub use law::{Clock, Context, RateLaw, Round, Signal, WindowLaw};
#[doc(inline)]
pub use machine::{Growth, Paced, SlowStart, SlowStartLaw, Windowed};
#[cfg(feature = "registry")]
#[doc(inline)]
pub use registry::{Spec, SpecError};
pub use rtt::Rtt;
pub use units::{Dur, Packets, Rate, Time};
