//! Numbers that wrap around: data sequences (31 bits), message numbers (29 bits) and acknowledgement
//! numbers (31 bits), draft-gg-udt-03 section 2.

use crate::cast::low32;

/// A data packet's number on the wire: 31 bits, the next after `2^31 - 1` is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Seq(u32);

const SEQ_BITS: u32 = 31;
const SEQ_MASK: u32 = (1 << SEQ_BITS) - 1;

impl Seq {
    /// The largest number.
    pub const MAX: Seq = Seq(SEQ_MASK);

    /// A number from its lowest 31 bits.
    pub const fn new(value: u32) -> Self {
        Seq(value & SEQ_MASK)
    }

    /// The number, below `2^31`.
    pub const fn value(self) -> u32 {
        self.0
    }

    /// The number `count` packets later.
    #[must_use]
    pub const fn plus(self, count: u64) -> Self {
        Seq::new(self.0.wrapping_add(low32(count)))
    }

    /// Packets from `self` to `other`, negative where `other` is older: the shorter way round.
    pub const fn to(self, other: Seq) -> i32 {
        // The subtraction in 31 bits, its sign bit moved to where i32 has one.
        (other.0.wrapping_sub(self.0) << 1).cast_signed() >> 1
    }
}

/// A message's number: 29 bits. UDT4 begins with 1 and never uses 0 or `2^29 - 1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MessageNo(u32);

pub(crate) const MESSAGE_MASK: u32 = (1 << 29) - 1;

impl MessageNo {
    /// The first message of a connection.
    pub const FIRST: MessageNo = MessageNo(1);

    /// A number from its lowest 29 bits.
    pub const fn new(value: u32) -> Self {
        MessageNo(value & MESSAGE_MASK)
    }

    /// The number, below `2^29`.
    pub const fn value(self) -> u32 {
        self.0
    }

    /// The number of the next message, as UDT4 counts: 1 follows `2^29 - 2`.
    #[must_use]
    pub const fn next(self) -> Self {
        if self.0 + 1 >= MESSAGE_MASK { MessageNo::FIRST } else { MessageNo(self.0 + 1) }
    }
}

/// An acknowledgement's own number: 31 bits, the next after `2^31 - 1` is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct AckNo(u32);

impl AckNo {
    /// A number from its lowest 31 bits.
    pub const fn new(value: u32) -> Self {
        AckNo(value & SEQ_MASK)
    }

    /// The number, below `2^31`.
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
        fn a_distance_leads_back(from in 0..=SEQ_MASK, by in -(1i32 << 30)..(1 << 30)) {
            let from = Seq::new(from);
            let other = Seq::new(from.value().wrapping_add_signed(by));
            prop_assert_eq!(from.to(other), by);
            if by >= 0 {
                prop_assert_eq!(from.plus(u64::from(by.unsigned_abs())), other);
            }
        }
    }
}
