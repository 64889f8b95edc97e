//! Numbers that wrap: data sequence numbers (31 bits), message numbers (29 bits) and
//! acknowledgement numbers (31 bits), draft-gg-udt-03 section 2.

use crate::cast::low32;

/// The sequence number of a data packet: 31 bits; 0 follows `2^31 - 1`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Seq(u32);

const SEQ_BITS: u32 = 31;
const SEQ_MASK: u32 = (1 << SEQ_BITS) - 1;

impl Seq {
    /// The largest sequence number.
    pub const MAX: Seq = Seq(SEQ_MASK);

    /// The sequence number of the lowest 31 bits of `value`.
    pub const fn new(value: u32) -> Self {
        Seq(value & SEQ_MASK)
    }

    /// The value, below `2^31`.
    pub const fn value(self) -> u32 {
        self.0
    }

    /// The sequence number `count` packets later.
    #[must_use]
    pub const fn plus(self, count: u64) -> Self {
        Seq::new(self.0.wrapping_add(low32(count)))
    }

    /// The distance from `self` to `other` in packets, negative if `other` precedes `self`. Of the
    /// two distances modulo `2^31`, the smaller one.
    pub const fn to(self, other: Seq) -> i32 {
        // Subtract modulo 2^31 and sign-extend the result.
        (other.0.wrapping_sub(self.0) << 1).cast_signed() >> 1
    }
}

/// The number of a message: 29 bits. UDT4 starts with 1 and never uses 0 or `2^29 - 1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MessageNo(u32);

pub(crate) const MESSAGE_MASK: u32 = (1 << 29) - 1;

impl MessageNo {
    /// The number of the first message of a connection.
    pub const FIRST: MessageNo = MessageNo(1);

    /// The message number of the lowest 29 bits of `value`.
    pub const fn new(value: u32) -> Self {
        MessageNo(value & MESSAGE_MASK)
    }

    /// The value, below `2^29`.
    pub const fn value(self) -> u32 {
        self.0
    }

    /// The number of the next message: as in UDT4, 1 follows `2^29 - 2`.
    #[must_use]
    pub const fn next(self) -> Self {
        if self.0 + 1 >= MESSAGE_MASK { MessageNo::FIRST } else { MessageNo(self.0 + 1) }
    }
}

/// The number of an acknowledgement packet: 31 bits; 0 follows `2^31 - 1`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct AckNo(u32);

impl AckNo {
    /// The acknowledgement number of the lowest 31 bits of `value`.
    pub const fn new(value: u32) -> Self {
        AckNo(value & SEQ_MASK)
    }

    /// The value, below `2^31`.
    pub const fn value(self) -> u32 {
        self.0
    }

    /// The number of the next acknowledgement.
    #[must_use]
    pub const fn next(self) -> Self {
        AckNo::new(self.0 + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_wrap() {
        assert_eq!(Seq::MAX.plus(1), Seq::new(0));
        assert_eq!(Seq::MAX.to(Seq::new(0)), 1);
        assert_eq!(Seq::new(0).to(Seq::MAX), -1);
        assert_eq!(MessageNo::new(MESSAGE_MASK - 1).next(), MessageNo::FIRST);
        assert_eq!(MessageNo::new(MESSAGE_MASK).next(), MessageNo::FIRST);
        assert_eq!(AckNo::new(SEQ_MASK).next(), AckNo::new(0));
    }

    proptest! {
        #[test]
        fn distance_and_addition_agree(from in 0..=SEQ_MASK, by in -(1i32 << 30)..(1 << 30)) {
            let from = Seq::new(from);
            let other = Seq::new(from.value().wrapping_add_signed(by));
            prop_assert_eq!(from.to(other), by);
            if by >= 0 {
                prop_assert_eq!(from.plus(u64::from(by.unsigned_abs())), other);
            }
        }
    }
}
