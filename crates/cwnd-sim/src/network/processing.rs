//! Random processing times of sending hosts, against phase effects.
//!
//! Without them the packets of several flows reach a DropTail queue in a fixed order, and always
//! the same flow loses (Floyd and Jacobson, "On traffic phase effects in packet-switched gateways",
//! 1992). A uniform processing time between zero and the transmission time of a packet at the
//! bottleneck removes the effect; ns-2's `overhead_` is this processing time.

use super::{Flow, Network, Tcp, Traffic};
use cwnd::Dur;

impl Network {
    /// Returns the largest processing time of a packet in the host of a flow's source; `None` if it
    /// processes bursts, or takes no time.
    pub(crate) fn processing_time(&self, flow: &Flow) -> Option<Dur> {
        let Traffic::Tcp(tcp) = &*flow.traffic else { return None };
        let time = tcp.overhead.unwrap_or_else(|| self.transmission_time(tcp, &flow.path));
        (!tcp.conventions.is_ns2() && !time.is_zero()).then_some(time)
    }

    /// Returns the transmission time of a full-sized packet on the slowest link of a path; zero if
    /// all rates are infinite.
    fn transmission_time(&self, tcp: &Tcp, path: &[usize]) -> Dur {
        let rates = path.iter().filter_map(|&link| self.links[link].rate);
        let bits = 8.0 * f64::from(tcp.largest_packet());
        Dur::from_secs(bits / rates.fold(f64::INFINITY, f64::min))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;

    /// Returns the processing times of two TCP flows and one without feedback.
    fn times(tcp: &str) -> Vec<Option<Dur>> {
        let text = format!(
            "duration = \"1s\"\n[dumbbell]\nrate = \"12mbit\"\ndelay = \"1ms\"\n[tcp]\n{tcp}\n\
             [[flow]]\ncontroller = \"reno\"\n[[flow]]\ncontroller = \"reno\"\naccess = {{ rate = \"6mbit\" }}\n\
             [[cbr]]\nrate = \"1mbit\""
        );
        let network = Scenario::from_toml(&text, "test").unwrap().network(1).unwrap();
        network.flows.iter().map(|flow| network.processing_time(flow)).collect()
    }

    #[test]
    fn a_packet_takes_up_to_its_transmission_time_on_the_slowest_link() {
        assert_eq!(times(""), [Some(Dur::from_millis(1)), Some(Dur::from_millis(2)), None]);
    }

    #[test]
    fn a_given_time_precedes_and_zero_is_none() {
        let five = Some(Dur::from_millis(5));
        assert_eq!(times("overhead = \"5ms\""), [five, five, None]);
        assert_eq!(times("overhead = \"0s\""), [None; 3]);
    }

    /// The hosts of ns-2 delay bursts, by default none.
    #[test]
    fn the_hosts_of_ns2_process_no_single_packets() {
        assert_eq!(times("conventions = \"ns2\""), [None; 3]);
        assert_eq!(times("conventions = \"ns2-2001\"\noverhead = \"5ms\""), [None; 3]);
    }
}
