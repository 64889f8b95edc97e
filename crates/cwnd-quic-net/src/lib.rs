//! Flows of the QUIC stacks noq and quinn over UDP sockets, with TLS.
//!
//! A flow has a [`Sender`] and a [`Receiver`], each with a thread, which runs its end of the
//! connection. Another thread reads the state of both meanwhile. The options and the controller are
//! those of a scenario's flow.
//!
//! A [`Stream`] is for threads of an application that measures a path, `cwnd perf --quic`: bytes in
//! both directions, and the credentials of `cwnd-udt`.
//!
//! The receiver of a flow proves by TLS 1.3 that it has the key of its [`Identity`], which the
//! sender knows (raw public keys, RFC 7250): there are no certificates.

#![forbid(unsafe_code)]
#![expect(clippy::duplicate_mod, reason = "the types of both stacks have the same names")]

mod authenticate;
mod noq;
mod quinn;
mod receiver;
mod sender;
mod stream;
mod tls;

pub use cwnd_quic::Controllers;
pub use receiver::Receiver;
pub use sender::{Job, News, Sender, Snapshot};
pub use stream::{Connecting, Stream, StreamListener, StreamOptions, StreamStats, client_socket};
pub use tls::Identity;

use std::io;
use std::time::Duration;

/// Longest time before an end notices that it is to stop.
const STOP_INTERVAL: Duration = Duration::from_millis(20);
/// Bytes per write and read of a stream.
const CHUNK: usize = 1 << 16;

/// An error of an end, other than a connection that is closed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A system call failed.
    #[error(transparent)]
    System(#[from] io::Error),
    /// The stack or TLS refuses an option.
    #[error("{0}")]
    Refused(String),
}

/// Runs an end in this thread until it is done or `stopped` returns true.
fn run(
    end: impl Future<Output = Result<(), Error>>,
    stopped: impl Fn() -> bool,
) -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let stop = async {
            while !stopped() {
                tokio::time::sleep(STOP_INTERVAL).await;
            }
        };
        tokio::select! {
            result = end => result,
            () = stop => Ok(()),
        }
    })
}

fn refused(error: impl ToString) -> Error {
    Error::Refused(error.to_string())
}
