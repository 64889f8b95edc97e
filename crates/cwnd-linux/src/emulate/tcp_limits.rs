//! What limited the TCP connections over an emulated link, from the kernel's socket diagnosis
//! (`sock_diag`).

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::net::Ipv4Addr;

use super::sys;

/// Bytes of `nlmsghdr`, `inet_diag_req_v2`, `inet_diag_msg` and `nlattr`.
const HEADER: usize = 16;
const REQUEST: usize = 56;
const MESSAGE: usize = 72;
const ATTRIBUTE: usize = 4;
/// `NLMSG_ERROR`, `NLMSG_DONE`, `SOCK_DIAG_BY_FAMILY`, `NLM_F_REQUEST | NLM_F_DUMP` and
/// `INET_DIAG_INFO`.
const ERROR: u16 = 2;
const DONE: u16 = 3;
const BY_FAMILY: u16 = 20;
const DUMP: u16 = 0x301;
const INFO: u16 = 2;
/// `TCP_LISTEN`.
const LISTEN: u32 = 10;
/// Largest answer of the kernel to one read.
const MAX_ANSWER: usize = 1 << 16;

/// Times in seconds of the TCP connections whose data cross a link in one direction, summed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TcpLimits {
    /// Time with data to send.
    pub busy: f64,
    /// Part of `busy` in which the receiver's window was the limit.
    pub receive_window: f64,
    /// Part of `busy` in which the send buffer was the limit.
    pub send_buffer: f64,
}

/// Diagnosis of the TCP sockets of a network namespace.
pub(super) struct TcpDiagnosis(File);

impl TcpDiagnosis {
    /// Starts to collect the statistics of sockets that are closed, in the network namespace of the
    /// calling thread.
    pub(super) fn new() -> io::Result<Self> {
        Ok(TcpDiagnosis(sys::open_tcp_diagnosis()?))
    }

    /// Returns the limits of all connections, closed and open, whose local and remote address
    /// `select` accepts.
    pub(super) fn limits(
        mut self,
        select: impl Fn(Ipv4Addr, Ipv4Addr) -> bool,
    ) -> io::Result<TcpLimits> {
        let mut request = [0; HEADER + REQUEST];
        request[..4].copy_from_slice(&((HEADER + REQUEST) as u32).to_ne_bytes());
        request[4..6].copy_from_slice(&BY_FAMILY.to_ne_bytes());
        request[6..8].copy_from_slice(&DUMP.to_ne_bytes());
        request[HEADER] = libc::AF_INET as u8;
        request[HEADER + 1] = libc::IPPROTO_TCP as u8;
        request[HEADER + 2] = 1 << (INFO - 1);
        request[HEADER + 4..HEADER + 8].copy_from_slice(&(!(1u32 << LISTEN)).to_ne_bytes());
        self.0.write_all(&request)?;
        let (mut total, mut answer) = (TcpLimits::default(), vec![0; MAX_ANSWER]);
        // The answers follow the messages on closed sockets.
        loop {
            let length = match self.0.read(&mut answer) {
                Ok(length) => length,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                // There were more messages on closed sockets than the buffer holds.
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => continue,
                Err(error) => return Err(error),
            };
            let mut rest = &answer[..length];
            while let Some((kind, message, next)) = split_message(rest) {
                match kind {
                    BY_FAMILY => total.add(message, &select),
                    DONE | ERROR => return Ok(total),
                    _ => {}
                }
                rest = next;
            }
        }
    }
}

impl TcpLimits {
    /// Adds the connection of an `inet_diag_msg` with its attributes.
    fn add(&mut self, message: &[u8], select: impl Fn(Ipv4Addr, Ipv4Addr) -> bool) {
        let Some((fixed, mut attributes)) = message.split_at_checked(MESSAGE) else { return };
        let address = |at: usize| Ipv4Addr::from(std::array::from_fn(|k| fixed[at + k]));
        if !select(address(8), address(24)) {
            return;
        }
        while let Some((kind, value, next)) = split_attribute(attributes) {
            // Members of `tcp_info`, in microseconds.
            let seconds = |at: usize| {
                let bytes = value.get(at..at + 8).and_then(|bytes| bytes.try_into().ok());
                bytes.map_or(0.0, |bytes| u64::from_ne_bytes(bytes) as f64 * 1e-6)
            };
            if kind == INFO {
                self.busy += seconds(168);
                self.receive_window += seconds(176);
                self.send_buffer += seconds(184);
            }
            attributes = next;
        }
    }
}

/// Splits the first netlink message off: its type, its contents, and the rest.
fn split_message(bytes: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let length = u32::from_ne_bytes(bytes.get(..4)?.try_into().ok()?) as usize;
    let kind = u16::from_ne_bytes(bytes.get(4..6)?.try_into().ok()?);
    Some((kind, bytes.get(HEADER..length)?, bytes.get(length.next_multiple_of(4)..).unwrap_or(&[])))
}

/// Splits the first netlink attribute off: its type, its value, and the rest.
fn split_attribute(bytes: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let u16_at = |at: usize| Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
    let (length, kind) = (usize::from(u16_at(0)?), u16_at(2)?);
    let rest = bytes.get(length.next_multiple_of(4)..).unwrap_or(&[]);
    Some((kind, bytes.get(ATTRIBUTE..length)?, rest))
}
