//! Growth by whole packets, as in Linux (`tcp_cong_avoid_ai` in net/ipv4/tcp_cong.c).

/// Acknowledged packets that the window has not grown for yet (`snd_cwnd_cnt`).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Credit(u32);

impl Credit {
    /// The window in packets after `acked` packets, which grows by one for each `per` packets
    /// acknowledged.
    pub(crate) fn grow(&mut self, w: u32, acked: u32, per: u32) -> u32 {
        let per = per.max(1);
        // A credit that was collected for a larger `per` counts for one packet at most.
        let due = u32::from(self.0 >= per);
        let total = if due == 1 { acked } else { self.0.saturating_add(acked) };
        self.0 = total % per;
        w.saturating_add(due).saturating_add(total / per)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_grows_by_one_packet_for_each_window_of_packets() {
        let mut credit = Credit::default();
        let mut w = 10;
        // 10 packets at a window of 10, and 11 at a window of 11.
        for acked in 1..=21 {
            w = credit.grow(w, 1, w);
            assert_eq!(w, 10 + u32::from(acked >= 10) + u32::from(acked >= 21), "{acked}");
        }
    }

    /// An acknowledgement of 25 packets at one growth for 10 packets: two growths, and 5 packets
    /// remain.
    #[test]
    fn an_acknowledgement_may_stand_for_several_growths() {
        let mut credit = Credit::default();
        assert_eq!(credit.grow(10, 25, 10), 12);
        assert_eq!(credit.grow(12, 5, 10), 13);
    }

    #[test]
    fn credit_for_a_larger_number_of_packets_counts_once() {
        let mut credit = Credit::default();
        assert_eq!(credit.grow(10, 90, 100), 10);
        assert_eq!(credit.grow(10, 1, 5), 11);
        assert_eq!(credit.grow(11, 4, 5), 12);
    }
}
