//! Addresses of emulated links: from 198.18.0.0/15, which is reserved for tests of network devices
//! (RFC 2544). A link takes a prefix of which nothing else is in use. Its first addresses are those
//! of its ends; the rest is for links of which it is the way out, so that routes lead to those too.

use std::fmt;
use std::net::Ipv4Addr;
use std::str::FromStr;

/// Lengths of the prefixes of a link, of a link inside it, and so on.
const LENGTHS: [u32; 4] = [20, 23, 26, 29];

/// The addresses that begin with the same `length` bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Prefix {
    base: u32,
    pub length: u32,
}

const ALL: Prefix = Prefix { base: 0xc612_0000, length: 15 };

impl Prefix {
    /// The address of the outer end.
    pub(super) fn outer(self) -> Ipv4Addr {
        Ipv4Addr::from_bits(self.base + 1)
    }

    /// The address of the inner end.
    pub(super) fn inner(self) -> Ipv4Addr {
        Ipv4Addr::from_bits(self.base + 2)
    }

    /// Prefixes for links whose outer ends are behind a link with this one; for links that are behind
    /// none without it. None where links are nested too deep.
    pub(super) fn inside(within: Option<Prefix>) -> Vec<Prefix> {
        let (from, first) = within.map_or((ALL, 0), |prefix| (prefix, 1));
        let Some(length) = LENGTHS.into_iter().find(|&length| length > from.length) else {
            return Vec::new();
        };
        let made = first..1 << (length - from.length);
        made.map(|n| Prefix { base: from.base + (n << (32 - length)), length }).collect()
    }

    fn overlaps(self, other: Prefix) -> bool {
        let mask = u32::MAX.checked_shl(32 - self.length.min(other.length)).unwrap_or(0);
        (self.base ^ other.base) & mask == 0
    }

    /// Whether a route of a table as in `/proc/net/route` leads to some of these addresses, other
    /// than one to a prefix that `within` is part of.
    pub(super) fn is_routed(self, table: &str, within: Option<Prefix>) -> bool {
        table.lines().skip(1).any(|line| {
            let mut columns = line.split_ascii_whitespace();
            let mut hex =
                |skip| columns.nth(skip).and_then(|word| u32::from_str_radix(word, 16).ok());
            let (Some(base), Some(mask)) = (hex(1).map(u32::from_be), hex(5).map(u32::from_be))
            else {
                return false;
            };
            let route = Prefix { base, length: mask.leading_ones() };
            let surrounds = within.is_some_and(|w| route.length <= w.length && route.overlaps(w));
            mask != 0 && !surrounds && self.overlaps(route)
        })
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", Ipv4Addr::from_bits(self.base), self.length)
    }
}

impl FromStr for Prefix {
    type Err = ();

    /// One that a link can have.
    fn from_str(text: &str) -> Result<Self, ()> {
        let (base, length) = text.split_once('/').ok_or(())?;
        let base = base.parse::<Ipv4Addr>().map_err(drop)?.to_bits();
        let length = length.parse().map_err(drop)?;
        let prefix = Prefix { base, length };
        let proper = LENGTHS.contains(&length) && base.trailing_zeros() >= 32 - length;
        (proper && ALL.overlaps(prefix)).then_some(prefix).ok_or(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_share_no_address() {
        let outermost = Prefix::inside(None);
        assert_eq!(outermost.len(), 32);
        let mut within = outermost[31];
        for _ in 1..LENGTHS.len() {
            let nested = Prefix::inside(Some(within));
            assert_eq!(nested.len(), 7);
            for (at, &one) in nested.iter().enumerate() {
                assert!(one.overlaps(within));
                assert!(nested[at + 1..].iter().all(|&other| !one.overlaps(other)));
                let own = Prefix { base: within.outer().to_bits(), length: 31 };
                assert!(!one.overlaps(own));
            }
            within = nested[6];
        }
        assert!(Prefix::inside(Some(within)).is_empty());
        assert_eq!(within.to_string().parse(), Ok(within));
        assert!("10.0.0.0/20".parse::<Prefix>().is_err());
        assert!("198.18.0.1/20".parse::<Prefix>().is_err());
    }

    #[test]
    fn routes_are_avoided() {
        let head = "Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT\n";
        let line = "x 001012C6 00000000 0001 0 0 0 00F0FFFF 0 0 0\n";
        let all = "x 00000000 00000000 0001 0 0 0 00000000 0 0 0\n";
        let table = format!("{head}{all}{line}");
        let prefixes = Prefix::inside(None);
        let taken: Vec<_> = prefixes.iter().filter(|p| p.is_routed(&table, None)).collect();
        assert_eq!(taken, [&prefixes[1]]);
        // The way out of a nested link is no obstacle to it.
        let nested = Prefix::inside(Some(prefixes[1]));
        assert!(!nested[0].is_routed(&table, Some(prefixes[1])));
        assert!(nested[0].is_routed(&table, None));
    }
}
