//! Controllers in [noq](https://docs.rs/noq), for `TransportConfig::congestion_controller_factory`.

use crate::batch::Batch;
use crate::controllers::Controllers;
use crate::error::Error;
use cwnd::{AnyController, Time};
use noq_proto::RttEstimator;
use noq_proto::congestion;
use std::any::Any;
use std::sync::Arc;
use std::time::Instant;

/// Returns what `TransportConfig::congestion_controller_factory` takes.
///
/// `controllers` is the specification of a controller, such as `simd(beta=1/16)`, the path of a
/// `.law` file, a [`Spec`](cwnd::Spec), an `Arc` of a [`MakeController`](cwnd::MakeController), or
/// [`Controllers`] with their settings.
///
/// ```
/// let mut transport = noq_proto::TransportConfig::default();
/// transport.congestion_controller_factory(cwnd_quic::noq::factory("simd(beta=1/16)")?);
/// # Ok::<(), cwnd_quic::Error>(())
/// ```
///
/// # Errors
/// A specification or a law that cannot be read, in one line.
pub fn factory<C>(controllers: C) -> Result<Arc<Factory>, Error>
where
    C: TryInto<Controllers>,
    Error: From<C::Error>,
{
    Ok(Arc::new(Factory(controllers.try_into()?)))
}

/// Makes the controller of each path of each connection.
#[derive(Debug)]
pub struct Factory(Controllers);

impl congestion::ControllerFactory for Factory {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn congestion::Controller> {
        let batch = Batch::new(self.0.connection(current_mtu));
        let initial_window = batch.connection.window();
        Box::new(Adapter { batch, start: now, initial_window })
    }
}

/// A controller on a path of a connection.
#[derive(Clone, Debug)]
pub struct Adapter {
    batch: Batch,
    start: Instant,
    initial_window: u64,
}

impl Adapter {
    /// The controller.
    pub fn controller(&self) -> &AnyController {
        self.batch.connection.controller()
    }

    fn time(&self, at: Instant) -> Time {
        Time::from_instant(at, self.start)
    }
}

impl congestion::Controller for Adapter {
    fn on_packet_sent(&mut self, now: Instant, bytes: u16, pn: u64) {
        self.batch.sent(self.time(now), 1, bytes.into(), Some(pn));
    }

    fn on_cwnd_limited(&mut self) {
        self.batch.window_limits();
    }

    fn on_ack(
        &mut self,
        now: Instant,
        sent: Instant,
        bytes: u64,
        pn: u64,
        _app_limited: bool,
        _rtt: &RttEstimator,
    ) {
        self.batch.acked(self.time(now), self.time(sent), bytes, Some(pn));
    }

    fn on_end_acks(
        &mut self,
        now: Instant,
        in_flight: u64,
        app_limited: bool,
        largest_packet_num_acked: Option<u64>,
    ) {
        self.batch.acks_end(self.time(now), in_flight, app_limited, largest_packet_num_acked);
    }

    fn on_packet_lost(&mut self, lost_bytes: u16, pn: u64, now: Instant) {
        self.batch.packet_lost(self.time(now), lost_bytes.into(), pn);
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        is_ecn: bool,
        _lost_bytes: u64,
        _largest_lost_pn: u64,
    ) {
        let (now, sent_at) = (self.time(now), self.time(sent));
        if is_ecn {
            self.batch.marked(now, sent_at);
        } else {
            self.batch.losses_end(now, sent_at, is_persistent_congestion);
        }
    }

    fn on_spurious_congestion_event(&mut self) {
        self.batch.connection.spurious();
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.batch.connection.mtu(new_mtu);
    }

    fn window(&self) -> u64 {
        self.batch.connection.window()
    }

    fn metrics(&self) -> congestion::ControllerMetrics {
        let mut metrics = congestion::ControllerMetrics::default();
        metrics.congestion_window = self.batch.connection.window();
        metrics.pacing_rate = self.batch.connection.pace();
        metrics
    }

    fn clone_box(&self) -> Box<dyn congestion::Controller> {
        Box::new(self.clone())
    }

    fn initial_window(&self) -> u64 {
        self.initial_window
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
