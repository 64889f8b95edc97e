//! The interface between a TCP sender and its loss recovery.

use super::rto::Estimator;
use super::sender::{Ack, Core, FirstPacket};
use crate::clock::Clock;
use crate::engine::net::Net;
use crate::network::Tcp;
use cwnd::Limit;

/// Loss recovery of a TCP sender with its state. `core` is the rest of the sender.
pub(crate) trait LossRecovery: Clone + Send + 'static {
    /// The estimator of the retransmission timeout.
    type Estimator: Estimator;

    /// What packet 0 carries on a connection without a SYN.
    const FIRST_PACKET: FirstPacket;

    fn new(tcp: &Tcp, clock: Clock) -> Self;

    /// Handles a cumulative acknowledgement. Returns the most packets that may be sent for it;
    /// `None` if the sender must not try to send.
    fn acknowledgement(
        &mut self,
        core: &mut Core<Self::Estimator>,
        net: &mut Net,
        now: u64,
        ack: Ack,
    ) -> Option<u32>;

    /// Handles an expired retransmission timer. Returns whether to send what the window allows.
    fn timeout(&mut self, core: &mut Core<Self::Estimator>, net: &mut Net, now: u64) -> bool;

    /// Sends as many packets as the window allows, at most `burst`, and returns what limits the
    /// sender then.
    fn send(
        &mut self,
        core: &mut Core<Self::Estimator>,
        net: &mut Net,
        now: u64,
        burst: u32,
    ) -> Limit;

    /// New packets carry `packet` bytes of data from now on.
    fn resized(&mut self, _packet: u32) {}

    /// The largest window in packets after an idle period that is longer than the retransmission
    /// timeout: the initial window (RFC 5681 section 4.1). `None` for no limit.
    fn restart_window(
        &self,
        _core: &Core<Self::Estimator>,
        _idle: u64,
        initial: u32,
    ) -> Option<f64> {
        Some(f64::from(initial))
    }

    /// Transmits or retransmits packet `seq`.
    #[inline(always)]
    fn transmit(&mut self, core: &mut Core<Self::Estimator>, net: &mut Net, now: u64, seq: u32) {
        core.transmit(net, now, seq);
    }

    /// Transmits packet `seq`. Not inlined, for rare paths.
    #[inline(never)]
    fn repair(&mut self, core: &mut Core<Self::Estimator>, net: &mut Net, now: u64, seq: u32) {
        self.transmit(core, net, now, seq);
    }
}
