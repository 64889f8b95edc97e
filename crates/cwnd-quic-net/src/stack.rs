//! Both ends of a connection. Compiled for each stack.

use super::quic_stack::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use super::quic_stack::{
    ClientConfig, Connection, Endpoint, EndpointConfig, RecvStream, SendStream, ServerConfig,
    TokioRuntime, VarInt,
};
use super::{Observing, Shared, Source, accepted, lost, transport_config};
use crate::sender::{Job, News, Open, Sender, Snapshot};
use crate::{CHUNK, Error, Receiver, refused};
use cwnd::{Limit, Rate};
use cwnd_sim::network::Quic;
use std::future::pending;
use std::net::UdpSocket;
use std::sync::Arc;
use tokio::task::JoinSet;
use tokio::time::timeout_at;

static ZEROS: [u8; CHUNK] = [0; CHUNK];

/// Returns an endpoint on a socket.
fn endpoint(
    quic: &Quic,
    socket: UdpSocket,
    server: Option<ServerConfig>,
) -> Result<Endpoint, Error> {
    let mut config = EndpointConfig::default();
    config.max_udp_payload_size(accepted(quic)).map_err(refused)?;
    Ok(Endpoint::new(config, server, socket, Arc::new(TokioRuntime))?)
}

/// Runs a receiver.
pub(crate) async fn receive(
    receiver: Arc<Receiver>,
    socket: UdpSocket,
    quic: &Quic,
    tls: rustls::ServerConfig,
) -> Result<(), Error> {
    let tls = QuicServerConfig::try_from(tls).map_err(refused)?;
    let mut config = ServerConfig::with_crypto(Arc::new(tls));
    config.transport_config(Arc::new(transport_config(quic).map_err(Error::Refused)?));
    let endpoint = endpoint(quic, socket, Some(config))?;
    let Some(incoming) = endpoint.accept().await else { return Ok(()) };
    match incoming.await {
        Ok(connection) => loop {
            match connection.accept_uni().await {
                Ok(stream) => drop(tokio::spawn(read(receiver.clone(), stream))),
                Err(reason) => break receiver.close(reason),
            }
        },
        Err(reason) => receiver.close(reason),
    }
    pending().await
}

/// Reads a stream to its end, or to that of the connection.
async fn read(receiver: Arc<Receiver>, mut stream: RecvStream) {
    let mut buffer = vec![0; CHUNK];
    while let Ok(Some(bytes)) = stream.read(&mut buffer).await {
        receiver.add(bytes);
    }
}

/// Runs a sender.
pub(crate) async fn send(
    sender: &Sender,
    socket: UdpSocket,
    job: Job<'_>,
    tls: rustls::ClientConfig,
) -> Result<(), Error> {
    let source = match job.controllers {
        Some(controllers) => Source::ours(controllers),
        None => Source::own(job.own()?),
    };
    let controllers = Arc::new(Observing::new(source.map_err(Error::Refused)?));
    let mut transport = transport_config(job.quic).map_err(Error::Refused)?;
    transport.congestion_controller_factory(controllers.clone());
    let tls = QuicClientConfig::try_from(tls).map_err(refused)?;
    let mut config = ClientConfig::new(Arc::new(tls));
    config.transport_config(Arc::new(transport));
    let endpoint = endpoint(job.quic, socket, None)?;
    // The name is not verified, but the key.
    let connecting = endpoint.connect_with(config, job.peer, "receiver").map_err(refused)?;
    let connection = match connecting.await {
        Ok(connection) => connection,
        Err(reason) => {
            sender.close(reason);
            return pending().await;
        }
    };
    let shared = controllers.made().ok_or_else(|| refused("the connection has no controller"))?;
    let admitted = job.quic.admitted();
    sender.open(Opened { connection: connection.clone(), shared, admitted });
    let mut streams = JoinSet::new();
    for bytes in job.quic.stream_bytes() {
        streams.spawn(write(connection.clone(), bytes));
    }
    let all = async { streams.join_all().await.into_iter().all(|acknowledged| acknowledged) };
    // If the flow stops before, the streams are dropped with the tasks that write them: reset.
    let acknowledged = match job.stop {
        Some(stop) => timeout_at(stop.into(), all).await.unwrap_or(false),
        None => all.await,
    };
    if acknowledged {
        // The connection stays open: the receiver may not have read all of it.
        sender.acknowledge();
    } else {
        sender.close(connection.closed().await);
    }
    pending().await
}

/// Writes zeros to a new stream. Returns whether all of them were acknowledged.
async fn write(connection: Connection, bytes: u64) -> bool {
    let Ok(stream) = connection.open_uni().await else { return false };
    let mut stream = ResetOnDrop(stream);
    let mut left = bytes;
    while left > 0 {
        let most = usize::try_from(left).map_or(CHUNK, |left| left.min(CHUNK));
        match stream.0.write(&ZEROS[..most]).await {
            Ok(written) => left -= written as u64,
            Err(_) => return false,
        }
    }
    stream.0.finish().is_ok() && matches!(stream.0.stopped().await, Ok(None))
}

/// A stream that is reset when it is dropped, unless all of it was acknowledged.
struct ResetOnDrop(SendStream);

impl Drop for ResetOnDrop {
    fn drop(&mut self) {
        // A stream that is complete, or whose connection is closed, cannot be reset.
        let _ = self.0.reset(VarInt::from_u32(0));
    }
}

/// An open connection.
struct Opened {
    connection: Connection,
    shared: Shared,
    /// Bytes that the receiver admits before it has read them.
    admitted: u64,
}

impl Open for Opened {
    fn snapshot(&self) -> Snapshot {
        let (sent, lost) = (self.connection.stats().frame_tx.stream, lost(&self.connection));
        let observed = self.shared.lock();
        let meter = &observed.meter;
        // Receivers extend a window when an eighth of it was read.
        let limit = if observed.is_full() {
            Limit::Window
        } else if meter.in_flight > self.admitted - self.admitted / 8 {
            Limit::Receiver
        } else {
            Limit::Pacing
        };
        let mut gauges = Vec::new();
        observed.gauges(&mut |name, value| gauges.push((name, value)));
        Snapshot {
            sent,
            lost,
            timeouts: meter.timeouts,
            mark_cuts: meter.mark_cuts,
            window: meter.packets(observed.window()),
            pace: observed.pace().map(|bytes| Rate::from_bytes(bytes as f64, meter.packet)),
            limit,
            gauges,
        }
    }

    fn news(&self) -> News {
        let meter = &mut self.shared.lock().meter;
        News { rtt: meter.rtt.take(), cuts: meter.cuts.drain(..).collect() }
    }
}
