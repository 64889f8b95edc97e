//! Controllers in [quinn](https://docs.rs/quinn), for
//! `TransportConfig::congestion_controller_factory`.

use crate::batch::Batch;
use crate::controllers::Controllers;
use crate::error::Error;
use cwnd::{AnyController, Time};
use quinn_proto::RttEstimator;
use quinn_proto::congestion;
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
/// let mut transport = quinn_proto::TransportConfig::default();
/// transport.congestion_controller_factory(cwnd_quic::quinn::factory("simd(beta=1/16)")?);
/// # Ok::<(), cwnd_quic::Error>(())
/// ```
///
/// # Errors
/// A specification or a law that cannot be read, and a controller that sets a pacing rate, which
/// quinn ignores; in one line.
pub fn factory<C>(controllers: C) -> Result<Arc<Factory>, Error>
where
    C: TryInto<Controllers>,
    Error: From<C::Error>,
{
    let controllers = controllers.try_into()?;
    if controllers.pace() {
        return Err(Error::Paced { controller: controllers.to_string(), stack: "quinn" });
    }
    Ok(Arc::new(Factory(controllers)))
}

/// The same for controllers that set a pacing rate: quinn sends at the rate of the window.
///
/// # Errors
/// A specification or a law that cannot be read, in one line.
pub fn factory_even_if_paced<C>(controllers: C) -> Result<Arc<Factory>, Error>
where
    C: TryInto<Controllers>,
    Error: From<C::Error>,
{
    Ok(Arc::new(Factory(controllers.try_into()?)))
}

/// Makes the controller of each connection.
#[derive(Debug)]
pub struct Factory(Controllers);

impl congestion::ControllerFactory for Factory {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn congestion::Controller> {
        let batch = Batch::new(self.0.connection(current_mtu));
        let initial_window = batch.connection.window();
        Box::new(Adapter { batch, start: now, initial_window })
    }
}

/// A controller on a connection.
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
    fn on_sent(&mut self, now: Instant, bytes: u64, _last_packet_number: u64) {
        let packets = self.batch.connection.packets(bytes);
        self.batch.sent(self.time(now), packets, bytes, None);
    }

    fn on_ack(
        &mut self,
        now: Instant,
        sent: Instant,
        bytes: u64,
        _app_limited: bool,
        _rtt: &RttEstimator,
    ) {
        self.batch.acked(self.time(now), self.time(sent), bytes, None);
    }

    fn on_end_acks(
        &mut self,
        now: Instant,
        in_flight: u64,
        app_limited: bool,
        largest_packet_num_acked: Option<u64>,
    ) {
        self.batch.fill(in_flight);
        self.batch.acks_end(self.time(now), in_flight, app_limited, largest_packet_num_acked);
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        lost_bytes: u64,
    ) {
        let (now, sent_at) = (self.time(now), self.time(sent));
        if lost_bytes == 0 {
            // A mark.
            self.batch.marked(now, sent_at);
        } else {
            self.batch.bytes_lost(now, sent_at, lost_bytes, is_persistent_congestion);
        }
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.batch.connection.mtu(new_mtu);
    }

    /// quinn sends while the bytes in flight with the next packet are less than the window, not
    /// equal to it.
    fn window(&self) -> u64 {
        self.batch.connection.window().saturating_add(1)
    }

    fn metrics(&self) -> congestion::ControllerMetrics {
        let mut metrics = congestion::ControllerMetrics::default();
        metrics.congestion_window = self.batch.connection.window();
        metrics.pacing_rate = self.batch.connection.pace().map(|bytes| bytes.saturating_mul(8));
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
