//! Routes with metrics, over rtnetlink.

use std::io;

use ipnet::Ipv4Net;
use rustix::net::netdevice::name_to_index;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, socket_with};

/// Metrics of a route, which TCP applies to its connections.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Metric {
    /// Initial window in packets.
    InitialWindow(u32),
    /// Minimum retransmission timeout in milliseconds.
    MinRto(u32),
    /// Acknowledge every packet at once.
    QuickAck,
}

impl Metric {
    /// Returns the number of the metric (`RTAX_…` of `linux/rtnetlink.h`) and its value.
    fn pair(self) -> (u16, u32) {
        match self {
            Metric::InitialWindow(packets) => (11, packets),
            Metric::MinRto(millis) => (13, millis),
            Metric::QuickAck => (15, 1),
        }
    }
}

/// Returns an attribute of a netlink message. All contents are multiples of four bytes, so no
/// padding is needed.
fn attribute(kind: u16, content: &[u8]) -> Vec<u8> {
    let length = (content.len() + 4) as u16;
    [&length.to_ne_bytes(), &kind.to_ne_bytes(), content].concat()
}

/// Adds a route through `device` in the network namespace of the calling thread.
pub(crate) fn add_route(to: Ipv4Net, device: &str, metrics: &[Metric]) -> io::Result<()> {
    const DST: u16 = 1;
    const OIF: u16 = 4;
    const METRICS: u16 = 8;
    let (kind, flags) = (SocketType::RAW, SocketFlags::CLOEXEC);
    // The default protocol of netlink is that of routes.
    let socket = socket_with(AddressFamily::NETLINK, kind, flags, None)?;
    let index = name_to_index(&socket, device)?;
    let metrics = metrics.iter().map(|metric| metric.pair());
    let metrics: Vec<_> =
        metrics.flat_map(|(kind, value)| attribute(kind, &value.to_ne_bytes())).collect();
    let flags = libc::NLM_F_REQUEST | libc::NLM_F_ACK | libc::NLM_F_CREATE | libc::NLM_F_REPLACE;
    // `struct rtmsg`: family, bits of the prefix, …, table, protocol, scope and type.
    let kind = [
        libc::AF_INET as u8,
        to.prefix_len(),
        0,
        0,
        libc::RT_TABLE_MAIN,
        libc::RTPROT_STATIC,
        libc::RT_SCOPE_LINK,
        libc::RTN_UNICAST,
    ];
    let mut body = [kind.as_slice(), &[0; 4]].concat();
    body.extend(attribute(DST, &to.addr().octets()));
    body.extend(attribute(OIF, &index.to_ne_bytes()));
    body.extend(attribute(METRICS, &metrics));
    let length = (body.len() + 16) as u32;
    let mut message = length.to_ne_bytes().to_vec();
    message.extend(libc::RTM_NEWROUTE.to_ne_bytes());
    message.extend((flags as u16).to_ne_bytes());
    message.extend([0; 8]);
    message.extend(body);
    rustix::net::send(&socket, &message, SendFlags::empty())?;
    let mut answer = [0; 512];
    let (length, _) = rustix::net::recv(&socket, &mut answer, RecvFlags::empty())?;
    let error = i32::from_ne_bytes(std::array::from_fn(|k| answer[16 + k]));
    match (length, error) {
        (20.., 0) => Ok(()),
        (20.., error) => Err(io::Error::from_raw_os_error(-error)),
        _ => Err(io::Error::other("invalid answer of rtnetlink")),
    }
}
