//! Number conversions for which `as` would hide a truncation.

/// Returns the lower 32 bits. Sequence numbers and timestamps wrap, and packed fields are cut out
/// of a word.
#[inline(always)]
pub(crate) const fn low32(word: u64) -> u32 {
    (word & 0xffff_ffff) as u32
}

/// Converts a count or an index, saturating.
#[inline(always)]
pub(crate) fn saturate32(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// Converts a size in bytes, saturating.
#[inline(always)]
pub(crate) fn saturate16(size: usize) -> u16 {
    u16::try_from(size).unwrap_or(u16::MAX)
}

/// Converts an index, saturating where an address has 32 bits.
#[inline(always)]
pub(crate) fn to_index(index: u64) -> usize {
    usize::try_from(index).unwrap_or(usize::MAX)
}

/// Returns the whole part of a number, saturating: 0 for negative numbers and NaN.
#[inline(always)]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a float-to-integer cast saturates"
)]
pub(crate) const fn whole(number: f64) -> u64 {
    number as u64
}

/// Returns the whole part of a number of packets, saturating: 0 for negative numbers and NaN.
#[inline(always)]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a float-to-integer cast saturates"
)]
pub(crate) const fn whole32(packets: f64) -> u32 {
    packets as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conversions_keep_their_range() {
        assert_eq!(low32(0x1_0000_0002), 2);
        assert_eq!(saturate32(7), 7);
        assert_eq!(saturate32(usize::MAX), u32::MAX);
        assert_eq!([saturate16(7), saturate16(1 << 16)], [7, u16::MAX]);
        assert_eq!(to_index(7), 7);
        assert_eq!([whole(-1.5), whole(1.9), whole(f64::NAN)], [0, 1, 0]);
        assert_eq!(whole(f64::INFINITY), u64::MAX);
        assert_eq!([whole32(-1.5), whole32(1.9), whole32(f64::NAN)], [0, 1, 0]);
        assert_eq!(whole32(f64::INFINITY), u32::MAX);
    }
}
