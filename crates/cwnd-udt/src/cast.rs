//! Integer conversions with explicit truncation or saturation.

/// The low 32 bits, for sequence numbers and timestamps, which wrap.
#[inline(always)]
pub(crate) const fn low32(word: u64) -> u32 {
    (word & 0xffff_ffff) as u32
}

/// Converts a count, saturating.
#[inline(always)]
pub(crate) fn saturate32(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// Converts the length of a datagram or of a part of one, saturating.
#[inline(always)]
pub(crate) fn saturate16(length: usize) -> u16 {
    u16::try_from(length).unwrap_or(u16::MAX)
}

/// Converts an index or a size in memory, saturating on 32-bit platforms.
#[inline(always)]
pub(crate) fn to_index(index: u64) -> usize {
    usize::try_from(index).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conversions_truncate_or_saturate() {
        assert_eq!(low32(0x1_0000_0002), 2);
        assert_eq!([saturate32(7), saturate32(1 << 32)], [7, u32::MAX]);
        assert_eq!([saturate16(7), saturate16(1 << 16)], [7, u16::MAX]);
        assert_eq!(to_index(7), 7);
    }
}
