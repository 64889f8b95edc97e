//! The callbacks of noq's congestion controllers.

use super::observed::Shared;
use super::proto;
use cwnd::Signal;
use proto::RttEstimator;
use proto::congestion::{Controller, ControllerMetrics};
use std::any::Any;
use std::time::{Duration, Instant};

impl Controller for Shared {
    fn on_sent(&mut self, now: Instant, bytes: u64, largest_pn: u64) {
        self.lock().controller_mut().on_sent(now, bytes, largest_pn);
    }

    fn on_packet_sent(&mut self, now: Instant, bytes: u16, pn: u64) {
        let mut observed = self.lock();
        observed.meter.in_flight += u64::from(bytes);
        observed.controller_mut().on_packet_sent(now, bytes, pn);
    }

    fn on_cwnd_limited(&mut self) {
        self.lock().controller_mut().on_cwnd_limited();
    }

    fn on_ack(
        &mut self,
        now: Instant,
        sent: Instant,
        bytes: u64,
        pn: u64,
        app_limited: bool,
        rtt: &RttEstimator,
    ) {
        let mut observed = self.lock();
        observed.meter.acked(sent);
        observed.controller_mut().on_ack(now, sent, bytes, pn, app_limited, rtt);
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
        is_ecn: bool,
        lost_bytes: u64,
        largest_lost_pn: u64,
    ) {
        let why = match (is_ecn, is_persistent_congestion) {
            (true, _) => Signal::Mark,
            (_, true) => Signal::PersistentCongestion,
            _ => Signal::Loss,
        };
        self.lock().congestion(why, |controller| {
            let persistent = is_persistent_congestion;
            controller.on_congestion_event(
                now,
                sent,
                persistent,
                is_ecn,
                lost_bytes,
                largest_lost_pn,
            );
        });
    }

    fn on_packet_lost(&mut self, lost_bytes: u16, pn: u64, now: Instant) {
        self.lock().controller_mut().on_packet_lost(lost_bytes, pn, now);
    }

    fn on_spurious_congestion_event(&mut self) {
        self.lock().controller_mut().on_spurious_congestion_event();
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        let mut observed = self.lock();
        observed.meter.packet = new_mtu.into();
        observed.controller_mut().on_mtu_update(new_mtu);
    }

    fn on_ack_frequency_update(&mut self, threshold: u64, max_ack_delay: Duration) {
        self.lock().controller_mut().on_ack_frequency_update(threshold, max_ack_delay);
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
