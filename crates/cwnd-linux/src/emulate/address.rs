//! Addresses of emulated links, from 198.18.0.0/15, which RFC 2544 reserves for benchmarks of
//! network devices. Each link has a prefix that is not routed yet. The first two addresses are
//! those of its ends; the rest are for links nested inside it, so that routes to the link also lead
//! to them.

use std::net::Ipv4Addr;

use ipnet::Ipv4Net;

/// Prefix lengths of a link, of a link nested in it, and so on.
const LENGTHS: [u8; 4] = [20, 23, 26, 29];

const BENCHMARKING: Ipv4Net = Ipv4Net::new_assert(Ipv4Addr::new(198, 18, 0, 0), 15);

/// Returns the address of the outer end of a link.
pub(super) fn outer(link: Ipv4Net) -> Ipv4Addr {
    Ipv4Addr::from_bits(link.addr().to_bits() + 1)
}

/// Returns the address of the inner end of a link.
pub(super) fn inner(link: Ipv4Net) -> Ipv4Addr {
    Ipv4Addr::from_bits(link.addr().to_bits() + 2)
}

/// Returns the prefixes for links nested in the link `enclosing`, or for links outside of any.
/// Empty if links are nested too deep.
pub(super) fn candidates(enclosing: Option<Ipv4Net>) -> Vec<Ipv4Net> {
    let (from, first) = enclosing.map_or((BENCHMARKING, 0), |link| (link, 1));
    let length = LENGTHS.into_iter().find(|&length| length > from.prefix_len());
    let subnets = length.and_then(|length| from.subnets(length).ok());
    subnets.into_iter().flatten().skip(first).collect()
}

fn overlaps(one: Ipv4Net, other: Ipv4Net) -> bool {
    one.contains(&other) || other.contains(&one)
}

/// Whether `address` is that of the inner end of a link, or of a link nested in it.
pub(super) fn is_inside(link: Ipv4Net, address: Ipv4Addr) -> bool {
    link.contains(&address) && address != outer(link)
}

/// Whether a route of `table`, in the format of `/proc/net/route`, overlaps the prefix of a link.
/// Default routes, and routes that contain `enclosing`, do not count.
pub(super) fn is_routed(link: Ipv4Net, table: &str, enclosing: Option<Ipv4Net>) -> bool {
    table.lines().skip(1).any(|line| {
        let mut columns = line.split_ascii_whitespace();
        let mut hex = |skip| {
            let word = columns.nth(skip)?;
            Some(Ipv4Addr::from_bits(u32::from_be(u32::from_str_radix(word, 16).ok()?)))
        };
        let (Some(base), Some(mask)) = (hex(1), hex(5)) else { return false };
        let Ok(route) = Ipv4Net::with_netmask(base, mask) else { return false };
        let encloses = enclosing.is_some_and(|it| route.contains(&it));
        route.prefix_len() > 0 && !encloses && overlaps(link, route)
    })
}

/// Parses a prefix that a link can have.
pub(super) fn parse(text: &str) -> Option<Ipv4Net> {
    let prefix: Ipv4Net = text.parse().ok()?;
    let valid = LENGTHS.contains(&prefix.prefix_len()) && prefix == prefix.trunc();
    (valid && BENCHMARKING.contains(&prefix)).then_some(prefix)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_do_not_overlap() {
        let outermost = candidates(None);
        assert_eq!(outermost.len(), 32);
        let mut enclosing = outermost[31];
        for _ in 1..LENGTHS.len() {
            let nested = candidates(Some(enclosing));
            assert_eq!(nested.len(), 7);
            for (index, &prefix) in nested.iter().enumerate() {
                assert!(overlaps(prefix, enclosing));
                assert!(nested[index + 1..].iter().all(|&other| !overlaps(prefix, other)));
                let own = Ipv4Net::new_assert(outer(enclosing), 31);
                assert!(!overlaps(prefix, own));
                assert!(is_inside(enclosing, outer(prefix)) && is_inside(enclosing, inner(prefix)));
            }
            assert!(is_inside(enclosing, inner(enclosing)));
            assert!(
                !is_inside(enclosing, outer(enclosing)) && !is_inside(nested[0], inner(nested[1]))
            );
            enclosing = nested[6];
        }
        assert!(candidates(Some(enclosing)).is_empty());
        assert_eq!(parse(&enclosing.to_string()), Some(enclosing));
        assert_eq!(parse("10.0.0.0/20"), None);
        assert_eq!(parse("198.18.0.1/20"), None);
    }

    #[test]
    fn routed_prefixes_are_avoided() {
        let head = "Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT\n";
        let line = "x 001012C6 00000000 0001 0 0 0 00F0FFFF 0 0 0\n";
        let default = "x 00000000 00000000 0001 0 0 0 00000000 0 0 0\n";
        let table = format!("{head}{default}{line}");
        let prefixes = candidates(None);
        let routed: Vec<_> = prefixes.iter().filter(|p| is_routed(**p, &table, None)).collect();
        assert_eq!(routed, [&prefixes[1]]);
        // The route of the enclosing link is no obstacle.
        let nested = candidates(Some(prefixes[1]));
        assert!(!is_routed(nested[0], &table, Some(prefixes[1])));
        assert!(is_routed(nested[0], &table, None));
    }
}
