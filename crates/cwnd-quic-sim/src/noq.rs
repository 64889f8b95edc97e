//! noq in simulated time, for the tests of applications and of the stack.

// What noq-proto does not have in common with quinn-proto.

#[path = "stack/application.rs"]
mod application;
#[path = "stack/connection.rs"]
mod connection;
mod controller;
mod keys;
#[path = "stack/observed.rs"]
mod observed;
#[path = "stack/scenario.rs"]
mod scenario;
#[path = "stack/session.rs"]
mod session;
#[cfg(feature = "tls")]
mod tapped;
#[cfg_attr(feature = "tls", path = "stack/tls.rs")]
#[cfg_attr(not(feature = "tls"), path = "stack/no_tls.rs")]
mod tls;

pub use application::Application;
pub(crate) use connection::connect;
#[doc(hidden)]
pub use connection::{accepted, transport_config};
#[doc(hidden)]
pub use observed::{Observed, Observing, Shared, Source};
pub use scenario::Scenario;

use bytes::{Bytes, BytesMut};
use cwnd_quic::noq::{Adapter, Factory, factory};
use cwnd_quic::{Controllers, Error};
use cwnd_sim::network::QuicStack;
use noq_proto as proto;
use proto::congestion::{Bbr3Config, Controller, ControllerFactory, CubicConfig, NewRenoConfig};
use proto::{
    ConnectionId, ConnectionIdGenerator, DatagramEvent, EcnCodepoint, Endpoint, EndpointConfig,
    FourTuple, PathId, SendStream, ServerConfig, Transmit,
};
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Instant;

const STACK: QuicStack = QuicStack::Noq;

/// How the stack passes an identifier.
type Identifier<'a> = ConnectionId;

/// Returns the factory of one of the stack's controllers.
fn own(name: &str) -> Option<Arc<dyn ControllerFactory + Send + Sync>> {
    Some(match name {
        "cubic" => Arc::new(CubicConfig::default()),
        "reno" => Arc::new(NewRenoConfig::default()),
        "bbr3" => Arc::new(Bbr3Config::default()),
        _ => return None,
    })
}

/// Returns the factory of controllers of cwnd's.
fn ours(controllers: Controllers) -> Result<Arc<Factory>, Error> {
    factory(controllers)
}

/// Returns a copy of the controller of a connection.
fn congestion(connection: &proto::Connection) -> Option<Box<dyn Controller>> {
    connection.congestion_state(PathId::ZERO).map(Controller::clone_box)
}

impl Observed {
    /// The pacing rate in bytes per second.
    pub fn pace(&self) -> Option<u64> {
        self.controller().metrics().pacing_rate
    }
}

fn endpoint(config: Arc<EndpointConfig>, server: Option<Arc<ServerConfig>>) -> Endpoint {
    Endpoint::new(config, server, true)
}

fn set_cid_generator<F>(config: &mut EndpointConfig, make: F)
where
    F: Fn() -> Box<dyn ConnectionIdGenerator> + Send + Sync + 'static,
{
    config.cid_generator(Arc::new(make));
}

fn handle(
    endpoint: &mut Endpoint,
    now: Instant,
    from: SocketAddr,
    ecn: Option<EcnCodepoint>,
    data: BytesMut,
    reply: &mut Vec<u8>,
) -> Option<DatagramEvent> {
    endpoint.handle(now, FourTuple::new(from, None), ecn, data, reply)
}

fn poll_transmit(
    connection: &mut proto::Connection,
    now: Instant,
    datagram: &mut Vec<u8>,
) -> Option<Transmit> {
    connection.poll_transmit(now, NonZeroUsize::MIN, datagram)
}

/// Writes to a stream. Returns the bytes that flow control and the send buffer admit.
fn write(stream: &mut SendStream, data: Bytes) -> u64 {
    stream.write_chunks(&mut &mut [data][..]).map_or(0, |bytes| bytes as u64)
}
