//! Accurate ECN feedback (AccECN, RFC 9768): the counters of the receiver, its feedback in the ACE
//! field and the AccECN option, and the decoding by the sender.
//!
//! A flow sends data in one direction, and its acknowledgements are not ECN-capable. Not modelled:
//! tests of the path and fallbacks (sections 3.2.2.3, 3.2.2.4 and 3.2.3.2), and the AccECN option
//! of the SYN/ACK.

use crate::packet::{AccEcnOption, Feedback, Packet, flags};

/// The number of values of the ACE field.
const DIVACE: u32 = 1 << 3;
/// The number of values of a field of the AccECN option.
const DIVOPT: u32 = 1 << 24;
/// CE-marked packets since the last acknowledgement that are acknowledged at once: `n` in section
/// 3.2.2.5.1.
const MARKS_PER_ACK: u32 = 2;
/// A packet smaller than the maximum segment size by this factor is unlikely (appendix A.2.2).
const SAFETY_FACTOR: u64 = 2;
/// Initial values of the counters `cep`, `e0b`, `e1b` and `ceb` (section 3.2.1).
const INITIAL: Counters = Counters { cep: 5, e0b: 1, e1b: 1, ceb: 0 };

/// Counters of a receiver: CE-marked packets, and payload bytes with ECT(0), with ECT(1) and with
/// CE (section 3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Counters {
    cep: u32,
    e0b: u32,
    e1b: u32,
    ceb: u32,
}

impl AccEcnOption {
    /// EE0B, ECEB, EE1B.
    const ORDER_0: u8 = 172;
    /// EE1B, ECEB, EE0B.
    const ORDER_1: u8 = 174;

    /// Returns the option with the counters up to the last one that has changed during the
    /// connection.
    fn new(counters: &Counters) -> Self {
        let Counters { e0b, e1b, ceb, .. } = *counters;
        let (kind, fields, initial) = if e0b == INITIAL.e0b && e1b != INITIAL.e1b {
            (AccEcnOption::ORDER_1, [e1b, ceb, e0b], [INITIAL.e1b, INITIAL.ceb, INITIAL.e0b])
        } else {
            (AccEcnOption::ORDER_0, [e0b, ceb, e1b], [INITIAL.e0b, INITIAL.ceb, INITIAL.e1b])
        };
        let count = (1..=3u8).rev().find(|&count| {
            let last = usize::from(count) - 1;
            fields[last] != initial[last]
        });
        AccEcnOption { kind, fields: fields.map(|field| field % DIVOPT), count: count.unwrap_or(0) }
    }

    /// The field ECEB, if it is present.
    fn eceb(&self) -> Option<u32> {
        (self.count >= 2).then_some(self.fields[1])
    }

    /// Size in bytes, padded to a multiple of four.
    pub(crate) fn size(&self) -> u16 {
        (2 + 3 * u16::from(self.count)).next_multiple_of(4)
    }

    /// The option as on the wire, behind padding (No-Operation).
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let length = 2 + 3 * self.count;
        let mut bytes = vec![1; usize::from(self.size() - u16::from(length))];
        bytes.extend([self.kind, length]);
        for field in &self.fields[..usize::from(self.count)] {
            bytes.extend(&field.to_be_bytes()[1..]);
        }
        bytes
    }
}

/// The ACE field of data packets: their receiver counts no marks on acknowledgements.
pub(crate) const ACE_OF_DATA: u8 = (INITIAL.cep % DIVACE) as u8;

/// The state of a receiver.
#[derive(Clone, Debug)]
pub(super) struct Marks {
    counters: Counters,
    /// Headers of a data packet in bytes.
    header: u16,
    /// CE-marked packets since the last acknowledgement.
    unacked: u32,
    /// Whether the last packet was CE-marked.
    marked: bool,
    /// Whether the last packet was a SYN.
    syn: bool,
    /// Whether a byte counter has changed since the last acknowledgement.
    changed: bool,
}

impl Marks {
    pub(super) fn new(header: u16) -> Self {
        let (unacked, marked, syn, changed) = (0, false, false, false);
        Marks { counters: INITIAL, header, unacked, marked, syn, changed }
    }

    /// Counts a packet that arrives. Returns whether it is acknowledged at once (section
    /// 3.2.2.5.1): the first CE-marked packet after an unmarked one, and every second CE-marked
    /// packet.
    pub(super) fn received(&mut self, packet: Packet) -> bool {
        let bits = packet.flags();
        let before = std::mem::replace(&mut self.marked, bits & flags::CE != 0);
        self.syn = bits & flags::SYN != 0;
        if self.syn {
            return false;
        }
        let payload = u32::from(packet.size().saturating_sub(self.header));
        let counter = if self.marked {
            self.counters.cep = self.counters.cep.wrapping_add(1);
            self.unacked += 1;
            &mut self.counters.ceb
        } else if bits & flags::ECT1 != 0 {
            &mut self.counters.e1b
        } else if bits & flags::ECT != 0 {
            &mut self.counters.e0b
        } else {
            return false;
        };
        *counter = counter.wrapping_add(payload);
        self.changed |= payload > 0;
        self.marked && (!before || self.unacked >= MARKS_PER_ACK)
    }

    /// Returns the feedback of an acknowledgement, with an option if a byte counter has changed
    /// since the last one (section 3.2.3.3). A SYN/ACK has none: its flags are those of the
    /// negotiation (section 3.1.1).
    pub(super) fn feedback(&mut self) -> Option<Feedback> {
        if self.syn {
            return None;
        }
        self.unacked = 0;
        let option = std::mem::take(&mut self.changed).then(|| AccEcnOption::new(&self.counters));
        Some(Feedback { ace: (self.counters.cep % DIVACE) as u8, option })
    }
}

/// The decoder of a sender: its counters follow those of the receiver.
#[derive(Clone, Debug)]
pub(super) struct Decoder {
    cep: u32,
    ceb: u32,
    /// Maximum segment size in bytes.
    pub mss: u32,
    /// The newest timestamp echoed.
    echo: u32,
}

impl Decoder {
    pub(super) fn new(mss: u32) -> Self {
        Decoder { cep: INITIAL.cep, ceb: INITIAL.ceb, mss, echo: 0 }
    }

    /// Returns the number of newly reported CE marks. `newly` is the number of packets that the
    /// acknowledgement newly covers, and `changed` whether it covers any. `echo` is the timestamp
    /// that it echoes, 0 without timestamps. An acknowledgement that covers neither new data nor
    /// new time may have been superseded and is ignored (appendix A.1).
    pub(super) fn decode(
        &mut self,
        feedback: Feedback,
        newly: u32,
        changed: bool,
        echo: u32,
    ) -> u32 {
        let newer = echo.wrapping_sub(self.echo).cast_signed() > 0;
        if newer {
            self.echo = echo;
        }
        if !changed && !newer {
            return 0;
        }
        let least = u32::from(feedback.ace).wrapping_sub(self.cep) % DIVACE;
        let bytes = feedback
            .option
            .map(|option| option.eceb().map_or(0, |eceb| eceb.wrapping_sub(self.ceb) % DIVOPT));
        let marks = increment(least, newly, bytes, self.mss);
        self.cep = self.cep.wrapping_add(marks);
        self.ceb = self.ceb.wrapping_add(bytes.unwrap_or(0));
        marks
    }
}

/// Returns the safe increment of `s.cep` (appendix A.2): `least` or more by a multiple of eight, up
/// to the number of newly acknowledged packets, `newly`. `bytes` is the increment of `s.ceb` if the
/// acknowledgement has an option.
fn increment(least: u32, newly: u32, bytes: Option<u32>, mss: u32) -> u32 {
    // More marks than acknowledged packets: the field is correct (section 3.2.2.5.2).
    let safer = newly - newly.saturating_sub(least) % DIVACE;
    if safer <= least {
        return least;
    }
    let Some(bytes) = bytes else { return safer };
    let [bytes, mss] = [bytes, mss].map(u64::from);
    let fits = bytes <= mss * u64::from(least);
    let unlikely = SAFETY_FACTOR * bytes < mss * u64::from(safer);
    if fits && unlikely { least } else { safer }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MSS: u32 = 1460;
    const HEADER: u16 = 40;

    fn packet(bits: u16) -> Packet {
        Packet::new(0, 0, 0, 1500, bits)
    }

    const ECT0: u16 = flags::ECT;
    const ECT1: u16 = flags::ECT | flags::ECT1;
    const CE: u16 = flags::ECT | flags::CE;

    /// RFC 9768 appendix A.1.
    #[test]
    fn the_example_of_the_byte_counter() {
        let mut decoder = Decoder::new(MSS);
        decoder.ceb = 33_554_433;
        let fields = [1, 1461, 1];
        let option = Some(AccEcnOption { kind: AccEcnOption::ORDER_0, fields, count: 2 });
        assert_eq!(decoder.decode(Feedback { ace: 6, option }, 1, true, 0), 1);
        assert_eq!(decoder.ceb, 33_555_893);
    }

    /// RFC 9768 appendix A.2.1.
    #[test]
    fn the_examples_without_the_option() {
        assert_eq!(increment(2, 9, None, MSS), 2);
        assert_eq!(increment(2, 10, None, MSS), 10);
        // More marks than packets.
        assert_eq!(increment(3, 1, None, MSS), 3);
    }

    /// RFC 9768 appendix A.2.2. As many packets are acknowledged as the safest increment.
    #[test]
    fn the_examples_with_the_option() {
        assert_eq!(increment(0, 8, Some(1460), 1460), 8);
        assert_eq!(increment(2, 10, Some(1460), 1460), 2);
        assert_eq!(increment(7, 15, Some(10_200), 1460), 7);
    }

    /// RFC 9768 section 3.2.3.3, the examples of the recommended scheme; lengths of table 5.
    #[test]
    fn the_option_has_the_fields_that_have_changed() {
        let mut marks = Marks::new(HEADER);
        assert!(!marks.received(packet(ECT0)));
        let first = marks.feedback().unwrap();
        assert_eq!(first.ace, 5);
        assert_eq!(first.option.unwrap().bytes(), [1, 1, 1, 172, 5, 0, 5, 181]);
        // Nothing has changed since.
        assert_eq!(marks.feedback().unwrap().option, None);
        assert!(marks.received(packet(CE)));
        let second = marks.feedback().unwrap();
        assert_eq!(second.ace, 6);
        assert_eq!(second.option.unwrap().bytes(), [172, 8, 0, 5, 181, 0, 5, 180]);
        // ECT(1) as well: all fields.
        marks.received(packet(ECT1));
        let third = marks.feedback().unwrap().option.unwrap();
        assert_eq!(third.bytes(), [1, 172, 11, 0, 5, 181, 0, 5, 180, 0, 5, 181]);
    }

    #[test]
    fn the_order_follows_the_codepoint() {
        let mut marks = Marks::new(HEADER);
        marks.received(packet(CE));
        let option = marks.feedback().unwrap().option.unwrap();
        assert_eq!(option.bytes(), [172, 8, 0, 0, 1, 0, 5, 180]);
        marks.received(packet(ECT1));
        let option = marks.feedback().unwrap().option.unwrap();
        assert_eq!(option.bytes(), [174, 8, 0, 5, 181, 0, 5, 180]);
    }

    /// RFC 9768 section 3.2.2.5.1.
    #[test]
    fn marks_are_acknowledged_at_once() {
        let mut marks = Marks::new(HEADER);
        assert!(!marks.received(packet(ECT0)));
        // A change.
        assert!(marks.received(packet(CE)));
        marks.feedback();
        // The second mark since the last acknowledgement.
        assert!(!marks.received(packet(CE)));
        assert!(marks.received(packet(CE)));
        marks.feedback();
        assert!(!marks.received(packet(ECT0)));
    }

    /// RFC 9768 sections 3.1.1 and 3.2.2.2.
    #[test]
    fn a_syn_is_neither_counted_nor_answered_with_the_field() {
        let mut marks = Marks::new(HEADER);
        assert!(!marks.received(packet(flags::SYN | CE)));
        assert_eq!(marks.feedback(), None);
        assert_eq!(marks.counters, INITIAL);
    }

    #[test]
    fn superseded_acknowledgements_are_ignored() {
        let mut decoder = Decoder::new(MSS);
        let feedback = |ace| Feedback { ace, option: None };
        assert_eq!(decoder.decode(feedback(6), 1, true, 10), 1);
        assert_eq!(decoder.decode(feedback(5), 0, false, 10), 0);
        // New time without new data: a duplicate was marked.
        assert_eq!(decoder.decode(feedback(7), 0, false, 11), 1);
        assert_eq!(decoder.cep, 7);
    }

    proptest! {
        /// Full-sized packets, each marked or not, acknowledged in blocks of `every` packets or at
        /// once; some acknowledgements are lost. The sender never counts fewer marks than were
        /// received, and exactly these if no acknowledgement is lost. With options a loss of
        /// acknowledgements of fewer than eight marks is harmless.
        #[test]
        fn decoded_marks_are_safe(
            packets in prop::collection::vec((any::<bool>(), any::<bool>()), 1..400),
            every in 1u32..5,
            loses in any::<bool>(),
            options in any::<bool>(),
        ) {
            let mut marks = Marks::new(HEADER);
            let mut decoder = Decoder::new(MSS);
            let (mut received, mut since, mut newly, mut reported) = (0, 0, 0, 0);
            let (mut exact, mut unreported) = (true, 0);
            for (marked, lost) in packets {
                received += u32::from(marked);
                unreported += u32::from(marked);
                since += 1;
                newly += 1;
                if !marks.received(packet(if marked { CE } else { ECT1 })) && since < every {
                    continue;
                }
                since = 0;
                let mut feedback = marks.feedback().unwrap();
                if !options {
                    feedback.option = None;
                }
                if loses && lost {
                    continue;
                }
                exact &= unreported < 8 && (options || newly < 8);
                reported += decoder.decode(feedback, newly, true, 0);
                prop_assert!(reported >= received);
                if exact {
                    prop_assert_eq!(reported, received);
                }
                (newly, unreported) = (0, 0);
            }
            prop_assert!(loses || exact);
        }
    }
}
