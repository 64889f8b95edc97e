//! The callbacks of quinn's congestion controllers.

use super::observed::Shared;
use super::proto;
use cwnd::Signal;
use proto::RttEstimator;
use proto::congestion::{Controller, ControllerMetrics};
use std::any::Any;
use std::time::Instant;

impl Controller for Shared {
    fn on_sent(&mut self, now: Instant, bytes: u64, last_packet_number: u64) {
        let mut observed = self.lock();
        observed.meter.in_flight += bytes;
        observed.controller_mut().on_sent(now, bytes, last_packet_number);
    }

    fn on_ack(
        &mut self,
        now: Instant,
        sent: Instant,
        bytes: u64,
        app_limited: bool,
        rtt: &RttEstimator,
    ) {
        let mut observed = self.lock();
        observed.meter.acked(sent);
        observed.controller_mut().on_ack(now, sent, bytes, app_limited, rtt);
    }

    fn on_end_acks(
        &mut self,
        now: Instant,
        in_flight: u64,
        app_limited: bool,
        largest_packet_num_acked: Option<u64>,
    ) {
        let mut observed = self.lock();
        observed.meter.acks_end(now, in_flight);
        let controller = observed.controller_mut();
        controller.on_end_acks(now, in_flight, app_limited, largest_packet_num_acked);
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        lost_bytes: u64,
    ) {
        // Marks lose no bytes.
        let why = match (lost_bytes, is_persistent_congestion) {
            (0, false) => Signal::Mark,
            (_, true) => Signal::PersistentCongestion,
            _ => Signal::Loss,
        };
        self.lock().congestion(why, |controller| {
            controller.on_congestion_event(now, sent, is_persistent_congestion, lost_bytes);
        });
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        let mut observed = self.lock();
        observed.meter.packet = new_mtu.into();
        observed.controller_mut().on_mtu_update(new_mtu);
    }

    fn window(&self) -> u64 {
        self.lock().window()
    }

    fn metrics(&self) -> ControllerMetrics {
        self.lock().controller().metrics()
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.separate())
    }

    fn initial_window(&self) -> u64 {
        self.lock().controller().initial_window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
