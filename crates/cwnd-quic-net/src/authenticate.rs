//! Proof of credentials in a connection that TLS encrypts and that proves no identity.
//!
//! The handshake is that of UDT. In its session both ends send a value that only the ends of this
//! connection of TLS can compute: an attacker between them has a connection with each, and two
//! values.

use crate::{Error, refused};
use cwnd::{Dur, Time};
use cwnd_udt::secure::{Credentials, Initiator, Reply, Responder};
use ring::rand::{SecureRandom, SystemRandom};
use std::io;
use std::net::SocketAddr;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// A value of a connection of TLS (RFC 9266).
pub(crate) type Binding = [u8; 32];

/// The label of a [`Binding`].
pub(crate) const LABEL: &[u8] = b"EXPORTER-cwnd-binding";
/// The time of all messages: the caller has a deadline for the handshake, which needs no clock.
const NOW: Time = Time::ZERO;
/// Identifiers of the ends, which a connection of its own need not distinguish.
const IDS: [u32; 2] = [1, 2];
/// Requests of a client at most: one that gets a cookie, one with the cookie, and the proof.
const MAX_REQUESTS: usize = 3;

/// The error of an end that refuses the other, and of the refused one.
pub(crate) const OTHER: &str = "the peer has other credentials";

fn other() -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, OTHER)
}

async fn send(stream: &mut (impl AsyncWrite + Unpin), message: &[u8]) -> io::Result<()> {
    let length = u8::try_from(message.len()).map_err(io::Error::other)?;
    stream.write_all(&[&[length], message].concat()).await
}

async fn receive(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Vec<u8>> {
    let mut message = vec![0; stream.read_u8().await?.into()];
    stream.read_exact(&mut message).await?;
    Ok(message)
}

/// Proves the credentials of a client, and checks those of the listener.
pub(crate) async fn initiate(
    credentials: &Credentials,
    binding: Binding,
    output: &mut (impl AsyncWrite + Unpin),
    input: &mut (impl AsyncRead + Unpin),
) -> io::Result<()> {
    let mut initiator =
        Initiator::new(credentials, NOW, IDS[0], Dur::from_millis(1)).map_err(io::Error::other)?;
    let mut session = loop {
        send(output, initiator.poll(NOW).ok_or_else(other)?).await?;
        let answer = receive(input).await?;
        if let Some(session) = initiator.handle(NOW, &answer).map_err(|_| other())? {
            break session;
        }
    };
    let mut sealed = Vec::new();
    session.sealer.seal(&binding, binding.len(), &mut sealed).map_err(io::Error::other)?;
    send(output, &sealed).await?;
    let mut answer = receive(input).await?;
    let opened = session.opener.open(&mut answer).map_err(|_| other())?;
    if *opened == binding { Ok(()) } else { Err(other()) }
}

/// Checks the credentials of a client, and proves those of the listener.
pub(crate) async fn respond(
    credentials: &Credentials,
    binding: Binding,
    peer: SocketAddr,
    output: &mut (impl AsyncWrite + Unpin),
    input: &mut (impl AsyncRead + Unpin),
) -> io::Result<()> {
    let mut responder = Responder::new(credentials, random().map_err(io::Error::other)?, b"");
    for _ in 0..MAX_REQUESTS {
        let mut request = receive(input).await?;
        match responder.handle(NOW, peer, &mut request, || IDS[1]) {
            Reply::Send(answer) => send(output, &answer).await?,
            Reply::Open(mut session, opened) if *opened == binding => {
                let mut sealed = Vec::new();
                let sealer = &mut session.sealer;
                sealer.seal(&binding, binding.len(), &mut sealed).map_err(io::Error::other)?;
                return send(output, &sealed).await;
            }
            _ => break,
        }
    }
    Err(other())
}

fn random() -> Result<[u8; 32], Error> {
    let mut bytes = [0; 32];
    SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| refused("the system has no random numbers"))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cwnd_udt::secure::Key;
    use tokio::io::split;

    /// Runs both ends, whose connections of TLS have these values.
    async fn run(bindings: [Binding; 2]) -> [io::Result<()>; 2] {
        let bytes: Vec<u8> = (0..32).collect();
        let credentials = Credentials::Key(Key::from_file_contents(&bytes).expect("a key"));
        let (client, listener) = tokio::io::duplex(1000);
        let peer = SocketAddr::from(([192, 0, 2, 1], 9000));
        let initiated = async {
            let (mut input, mut output) = split(client);
            initiate(&credentials, bindings[0], &mut output, &mut input).await
        };
        let responded = async {
            let (mut input, mut output) = split(listener);
            respond(&credentials, bindings[1], peer, &mut output, &mut input).await
        };
        <[_; 2]>::from(tokio::join!(initiated, responded))
    }

    #[test]
    fn an_attacker_between_the_ends_is_detected_by_the_connections_of_tls() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let [client, listener] = runtime.block_on(run([[1; 32], [1; 32]]));
        assert!(client.is_ok() && listener.is_ok(), "{client:?} {listener:?}");
        let [client, listener] = runtime.block_on(run([[1; 32], [2; 32]]));
        assert_eq!(listener.expect_err("another connection").to_string(), OTHER);
        assert!(client.is_err());
    }
}
