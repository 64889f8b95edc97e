//! Addresses of emulated links, from 198.18.0.0/15, which RFC 2544 reserves for benchmarks of
//! network devices. Each link has a prefix that is not routed yet. The first two addresses are
//! those of its ends; the rest are for links nested inside it, so that routes to the link also lead
//! to them.

use std::fmt;
use std::net::Ipv4Addr;
use std::str::FromStr;

/// Prefix lengths of a link, of a link nested in it, and so on.
const LENGTHS: [u32; 4] = [20, 23, 26, 29];

/// An IPv4 prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Prefix {
    base: u32,
    pub length: u32,
}

const BENCHMARKING: Prefix = Prefix { base: 0xc612_0000, length: 15 };

impl Prefix {
    /// Returns the address of the outer end.
    pub(super) fn outer(self) -> Ipv4Addr {
        Ipv4Addr::from_bits(self.base + 1)
    }

    /// Returns the address of the inner end.
    pub(super) fn inner(self) -> Ipv4Addr {
        Ipv4Addr::from_bits(self.base + 2)
    }

    /// Returns the prefixes for links nested in the link `enclosing`, or for links outside of any.
    /// Empty if links are nested too deep.
    pub(super) fn candidates(enclosing: Option<Prefix>) -> Vec<Prefix> {
        let (from, first) = enclosing.map_or((BENCHMARKING, 0), |prefix| (prefix, 1));
        let Some(length) = LENGTHS.into_iter().find(|&length| length > from.length) else {
            return Vec::new();
        };
        let numbers = first..1 << (length - from.length);
        numbers.map(|n| Prefix { base: from.base + (n << (32 - length)), length }).collect()
    }

    fn overlaps(self, other: Prefix) -> bool {
        let mask = u32::MAX.checked_shl(32 - self.length.min(other.length)).unwrap_or(0);
        (self.base ^ other.base) & mask == 0
    }

    /// Whether `address` is that of the inner end, or of a link nested in this one.
    pub(super) fn is_inside(self, address: Ipv4Addr) -> bool {
        let own = Prefix { base: address.to_bits(), length: u32::BITS };
        self.overlaps(own) && address != self.outer()
    }

    /// Whether a route of `table`, in the format of `/proc/net/route`, overlaps this prefix.
    /// Default routes, and routes that contain `enclosing`, do not count.
    pub(super) fn is_routed(self, table: &str, enclosing: Option<Prefix>) -> bool {
        table.lines().skip(1).any(|line| {
            let mut columns = line.split_ascii_whitespace();
            let mut hex =
                |skip| columns.nth(skip).and_then(|word| u32::from_str_radix(word, 16).ok());
            let (Some(base), Some(mask)) = (hex(1).map(u32::from_be), hex(5).map(u32::from_be))
            else {
                return false;
            };
            let route = Prefix { base, length: mask.leading_ones() };
            let encloses =
                enclosing.is_some_and(|it| route.length <= it.length && route.overlaps(it));
            mask != 0 && !encloses && self.overlaps(route)
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

    /// Parses a prefix that a link can have.
    fn from_str(text: &str) -> Result<Self, ()> {
        let (base, length) = text.split_once('/').ok_or(())?;
        let base = base.parse::<Ipv4Addr>().map_err(drop)?.to_bits();
        let length = length.parse().map_err(drop)?;
        let prefix = Prefix { base, length };
        let valid = LENGTHS.contains(&length) && base.trailing_zeros() >= 32 - length;
        (valid && BENCHMARKING.overlaps(prefix)).then_some(prefix).ok_or(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_do_not_overlap() {
        let outermost = Prefix::candidates(None);
        assert_eq!(outermost.len(), 32);
        let mut enclosing = outermost[31];
        for _ in 1..LENGTHS.len() {
            let nested = Prefix::candidates(Some(enclosing));
            assert_eq!(nested.len(), 7);
            for (index, &prefix) in nested.iter().enumerate() {
                assert!(prefix.overlaps(enclosing));
                assert!(nested[index + 1..].iter().all(|&other| !prefix.overlaps(other)));
                let own = Prefix { base: enclosing.outer().to_bits(), length: 31 };
                assert!(!prefix.overlaps(own));
                assert!(enclosing.is_inside(prefix.outer()) && enclosing.is_inside(prefix.inner()));
            }
            assert!(enclosing.is_inside(enclosing.inner()));
            assert!(
                !enclosing.is_inside(enclosing.outer()) && !nested[0].is_inside(nested[1].inner())
            );
            enclosing = nested[6];
        }
        assert!(Prefix::candidates(Some(enclosing)).is_empty());
        assert_eq!(enclosing.to_string().parse(), Ok(enclosing));
        assert!("10.0.0.0/20".parse::<Prefix>().is_err());
        assert!("198.18.0.1/20".parse::<Prefix>().is_err());
    }

    #[test]
    fn routed_prefixes_are_avoided() {
        let head = "Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT\n";
        let line = "x 001012C6 00000000 0001 0 0 0 00F0FFFF 0 0 0\n";
        let default = "x 00000000 00000000 0001 0 0 0 00000000 0 0 0\n";
        let table = format!("{head}{default}{line}");
        let prefixes = Prefix::candidates(None);
        let routed: Vec<_> = prefixes.iter().filter(|p| p.is_routed(&table, None)).collect();
        assert_eq!(routed, [&prefixes[1]]);
        // The route of the enclosing link is no obstacle.
        let nested = Prefix::candidates(Some(prefixes[1]));
        assert!(!nested[0].is_routed(&table, Some(prefixes[1])));
        assert!(nested[0].is_routed(&table, None));
    }
}
