//! Controllers in [s2n-quic](https://docs.rs/s2n-quic), for `with_congestion_controller` of a
//! server or client.
//!
//! s2n-quic's interface for controllers is unstable, and needs its feature
//! `unstable-congestion-controller`. This module is for s2n-quic 1.91.

use crate::connection::Connection;
use crate::controllers::Controllers;
use crate::error::Error;
use cwnd::delivery::{DeliveryEstimator, Sent};
use cwnd::parts::Pacer;
use cwnd::{Acked, AnyController, Dur, Limit, Rate, Time};
use s2n_quic_core::random::Generator;
use s2n_quic_core::recovery::RttEstimator;
use s2n_quic_core::recovery::congestion_controller::{
    CongestionController, Endpoint, PathInfo, Publisher,
};
use s2n_quic_core::time::Timestamp;

/// Returns what `with_congestion_controller` takes.
///
/// `controllers` is the specification of a controller, such as `simd(beta=1/16)`, the path of a
/// `.law` file, a [`Spec`](cwnd::Spec), an `Arc` of a [`MakeController`](cwnd::MakeController), or
/// [`Controllers`] with their settings.
///
/// ```
/// let controllers = cwnd_quic::s2n::factory("simd(beta=1/16)")?;
/// // s2n_quic::Client::builder().with_congestion_controller(controllers)?
/// # Ok::<(), cwnd_quic::Error>(())
/// ```
///
/// # Errors
/// A specification or a law that cannot be read, in one line.
pub fn factory<C>(controllers: C) -> Result<Factory, Error>
where
    C: TryInto<Controllers>,
    Error: From<C::Error>,
{
    Ok(Factory(controllers.try_into()?))
}

/// Makes the controller of each path of each connection.
#[derive(Debug)]
pub struct Factory(Controllers);

impl Endpoint for Factory {
    type CongestionController = Adapter;

    fn new_congestion_controller(&mut self, path: PathInfo<'_>) -> Adapter {
        let connection = self.0.paced_connection(path.max_datagram_size);
        let estimator = connection.needs().delivery_rate.then(DeliveryEstimator::default);
        Adapter {
            connection,
            start: None,
            in_flight: 0,
            estimator,
            pacer: Pacer::new(GRANULARITY),
            limit: Limit::Application,
            rtt: None,
            newest: Time::ZERO,
            marked: 0,
            persistent: None,
            retransmits: false,
        }
    }
}

/// The granularity of s2n-quic's timers: a packet leaves up to this time late.
const GRANULARITY: Dur = Dur::from_millis(1);

/// A controller on a path of a connection.
#[derive(Clone, Debug)]
pub struct Adapter {
    connection: Connection,
    /// The time of the first packet.
    start: Option<Timestamp>,
    in_flight: u64,
    estimator: Option<DeliveryEstimator>,
    pacer: Pacer,
    /// What limited the last transmission.
    limit: Limit,
    /// The round-trip time that the acknowledgement being processed gave, and the time of sending
    /// of its newest packet.
    rtt: Option<Dur>,
    newest: Time,
    /// The marks that it reported.
    marked: u32,
    /// When persistent congestion was reported last.
    persistent: Option<Time>,
    /// Whether the window was reduced and no packet has been sent since.
    retransmits: bool,
}

/// The state of a packet when it was sent.
#[derive(Clone, Copy, Debug)]
pub struct PacketInfo {
    sent_at: Time,
    /// For controllers that need delivery-rate samples; none for pure acknowledgements.
    sent: Option<Sent>,
}

impl Adapter {
    /// The controller.
    pub fn controller(&self) -> &AnyController {
        self.connection.controller()
    }

    fn time(&self, at: Timestamp) -> Time {
        self.start
            .map_or(Time::ZERO, |start| Time::ZERO + at.saturating_duration_since(start).into())
    }

    fn has_room(&self) -> bool {
        self.in_flight + u64::from(self.connection.packet()) <= self.connection.window()
    }
}

impl CongestionController for Adapter {
    type PacketInfo = PacketInfo;

    fn congestion_window(&self) -> u32 {
        u32::try_from(self.connection.window()).unwrap_or(u32::MAX)
    }

    fn bytes_in_flight(&self) -> u32 {
        u32::try_from(self.in_flight).unwrap_or(u32::MAX)
    }

    fn is_congestion_limited(&self) -> bool {
        !self.has_room()
    }

    fn requires_fast_retransmission(&self) -> bool {
        self.retransmits
    }

    fn on_packet_sent<P: Publisher>(
        &mut self,
        time_sent: Timestamp,
        sent_bytes: usize,
        app_limited: Option<bool>,
        _rtt_estimator: &RttEstimator,
        _publisher: &mut P,
    ) -> PacketInfo {
        self.start.get_or_insert(time_sent);
        let (sent_at, bytes) = (self.time(time_sent), sent_bytes as u64);
        if bytes == 0 {
            return PacketInfo { sent_at, sent: None };
        }
        self.connection.at(sent_at);
        self.connection.sent(1);
        self.retransmits = false;
        self.in_flight += bytes;
        let packet = self.connection.packet();
        let pace = self.connection.pace().map(|pace| Rate::from_bytes(pace as f64, packet));
        self.pacer.sent(sent_at, 1, pace);
        self.limit = match (self.has_room(), app_limited) {
            (false, _) => Limit::Window,
            // Without data of an application, in the handshake.
            (true, None | Some(true)) => Limit::Application,
            (true, Some(false)) => Limit::Pacing,
        };
        let in_flight = self.connection.packets(self.in_flight);
        let sent = self.estimator.as_mut().map(|estimator| {
            let sent = estimator.sent(sent_at, in_flight);
            if self.limit == Limit::Application {
                estimator.application_limited(in_flight);
            }
            sent
        });
        PacketInfo { sent_at, sent }
    }

    fn on_rtt_update<P: Publisher>(
        &mut self,
        time_sent: Timestamp,
        now: Timestamp,
        _rtt_estimator: &RttEstimator,
        _publisher: &mut P,
    ) {
        self.newest = self.time(time_sent);
        self.rtt = Some(self.time(now).since(self.newest));
    }

    fn on_ack<P: Publisher>(
        &mut self,
        _newest_acked_time_sent: Timestamp,
        bytes_acknowledged: usize,
        newest_acked_packet_info: PacketInfo,
        _rtt_estimator: &RttEstimator,
        _random_generator: &mut dyn Generator,
        ack_receive_time: Timestamp,
        _publisher: &mut P,
    ) {
        let (now, bytes) = (self.time(ack_receive_time), bytes_acknowledged as u64);
        let PacketInfo { sent_at, sent } = newest_acked_packet_info;
        self.connection.at(now);
        self.in_flight = self.in_flight.saturating_sub(bytes);
        let mut acked = Acked::new(self.connection.packets(bytes), sent_at);
        acked.in_flight = self.connection.packets(self.in_flight);
        acked.rtt = self.rtt.take();
        acked.limit = self.limit;
        acked.marked = std::mem::take(&mut self.marked);
        self.connection.rtt(acked.rtt);
        if let Some(estimator) = &mut self.estimator {
            let (now, min_rtt) = (self.connection.now(), self.connection.min_rtt());
            match sent {
                Some(sent) => {
                    let sample = estimator.sample_newest(now, acked.packets, &sent, min_rtt);
                    acked.delivery = Some(sample);
                }
                None => estimator.counted(now, acked.packets),
            }
        }
        self.connection.acknowledged(acked, bytes);
        if acked.marked > 0 {
            self.connection.marked(acked.marked, self.newest);
        }
    }

    fn on_packet_lost<P: Publisher>(
        &mut self,
        lost_bytes: u32,
        packet_info: PacketInfo,
        persistent_congestion: bool,
        _new_loss_burst: bool,
        _random_generator: &mut dyn Generator,
        timestamp: Timestamp,
        _publisher: &mut P,
    ) {
        let now = self.time(timestamp);
        self.connection.at(now);
        self.in_flight = self.in_flight.saturating_sub(u64::from(lost_bytes));
        let before = self.connection.window();
        let delivery = self.estimator.as_mut().and_then(|estimator| {
            estimator.lost(1);
            packet_info.sent.map(|sent| estimator.loss_sample(&sent))
        });
        // All packets of the same detection say it.
        let persistent = persistent_congestion && self.persistent != Some(now);
        if persistent {
            self.persistent = Some(now);
        }
        self.connection.lost(1, packet_info.sent_at, delivery, persistent);
        self.retransmits |= self.connection.window() < before;
    }

    fn on_explicit_congestion<P: Publisher>(
        &mut self,
        ce_count: u64,
        _event_time: Timestamp,
        _publisher: &mut P,
    ) {
        // The acknowledgement that reports the marks follows.
        self.marked = self.marked.saturating_add(u32::try_from(ce_count).unwrap_or(u32::MAX));
    }

    fn on_mtu_update<P: Publisher>(&mut self, max_data_size: u16, _publisher: &mut P) {
        self.connection.mtu(max_data_size);
    }

    fn on_packet_discarded<P: Publisher>(&mut self, bytes_sent: usize, _publisher: &mut P) {
        self.in_flight = self.in_flight.saturating_sub(bytes_sent as u64);
    }

    fn earliest_departure_time(&self) -> Option<Timestamp> {
        let departure = self.pacer.departure(Time::ZERO);
        self.start?.checked_add(departure.since(Time::ZERO).into())
    }
}
