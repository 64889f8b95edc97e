//! Tests over the public interface, in one binary: each binary compiles the generic code of the
//! crate again. Tests that measure the whole process are binaries of their own.

#[cfg(all(unix, feature = "net"))]
mod admission;
mod common;
#[cfg(all(unix, feature = "net"))]
mod credentials;
#[cfg(all(unix, feature = "net"))]
mod faults;
mod handshake;
mod hostile;
#[cfg(all(unix, feature = "net"))]
mod interop;
mod keep_alive;
mod limits;
mod messages;
mod path_mtu;
mod rate;
mod recovery;
#[cfg(all(unix, feature = "net"))]
mod reset;
#[cfg(all(unix, feature = "net"))]
mod sealed;
mod secure;
#[cfg(all(unix, feature = "net"))]
mod sockets;
mod stream;
#[cfg(all(unix, feature = "net"))]
mod support;
#[cfg(all(unix, feature = "tokio"))]
mod tokio;
