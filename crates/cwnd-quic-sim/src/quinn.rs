//! quinn in simulated time, for the tests of applications and of the stack.

// What quinn-proto does not have in common with noq-proto.

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
use cwnd_quic::quinn::{Adapter, Factory, factory_even_if_paced};
use cwnd_quic::{Controllers, Error};
use cwnd_sim::network::QuicStack;
use proto::congestion::{BbrConfig, Controller, ControllerFactory, CubicConfig, NewRenoConfig};
use proto::{
    ConnectionId, ConnectionIdGenerator, DatagramEvent, EcnCodepoint, Endpoint, EndpointConfig,
    SendStream, ServerConfig, Transmit,
};
use quinn_proto as proto;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

const STACK: QuicStack = QuicStack::Quinn;

/// How the stack passes an identifier.
type Identifier<'a> = &'a ConnectionId;

/// Returns the factory of one of the stack's controllers.
fn own(name: &str) -> Option<Arc<dyn ControllerFactory + Send + Sync>> {
    Some(match name {
        "cubic" => Arc::new(CubicConfig::default()),
        "reno" => Arc::new(NewRenoConfig::default()),
        "bbr" => Arc::new(BbrConfig::default()),
        _ => return None,
    })
}

/// Returns the factory of controllers of cwnd's. The stack ignores their pacing rates.
fn ours(controllers: Controllers) -> Result<Arc<Factory>, Error> {
    factory_even_if_paced(controllers)
}

/// Returns a copy of the controller of a connection.
fn congestion(connection: &proto::Connection) -> Option<Box<dyn Controller>> {
    Some(connection.congestion_state().clone_box())
}

impl Observed {
    /// The stack computes its pacing rate from the window.
    pub fn pace(&self) -> Option<u64> {
        None
    }
}

fn endpoint(config: Arc<EndpointConfig>, server: Option<Arc<ServerConfig>>) -> Endpoint {
    Endpoint::new(config, server, true, None)
}

fn set_cid_generator<F>(config: &mut EndpointConfig, make: F)
where
    F: Fn() -> Box<dyn ConnectionIdGenerator> + Send + Sync + 'static,
{
    config.cid_generator(make);
}

fn handle(
    endpoint: &mut Endpoint,
    now: Instant,
    from: SocketAddr,
    ecn: Option<EcnCodepoint>,
    data: BytesMut,
    reply: &mut Vec<u8>,
) -> Option<DatagramEvent> {
    endpoint.handle(now, from, None, ecn, data, reply)
}

fn poll_transmit(
    connection: &mut proto::Connection,
    now: Instant,
    datagram: &mut Vec<u8>,
) -> Option<Transmit> {
    connection.poll_transmit(now, 1, datagram)
}

/// Writes to a stream. Returns the bytes that flow control and the send buffer admit.
fn write(stream: &mut SendStream, data: Bytes) -> u64 {
    stream.write_chunks(&mut [data]).map_or(0, |written| written.bytes as u64)
}
