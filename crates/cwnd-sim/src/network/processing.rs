//! Random processing times of sending hosts, against phase effects.
//!
//! Without them the packets of several flows reach a DropTail queue in a fixed order, and always
//! the same flow loses (Floyd and Jacobson, "On traffic phase effects in packet-switched gateways",
//! 1992). A uniform processing time between zero and the transmission time of a packet at the
//! bottleneck removes the effect; ns-2's `overhead_` is this processing time.

use super::{Impairments, Jitter, Link, Network, Queue, QueueLimit, Tcp, Traffic};
use cwnd::Dur;
use std::sync::Arc;

impl Network {
    /// Returns the network with a link in front of the path of each TCP flow whose host processes
    /// packets one by one: the link delays each packet by a random time, in order. The links of the
    /// network keep their indices.
    pub(crate) fn with_processing(self: Arc<Self>) -> Arc<Self> {
        let times: Vec<Dur> = (0..self.flows.len()).map(|flow| self.processing(flow)).collect();
        if times.iter().all(|time| time.is_zero()) {
            return self;
        }
        let mut network = Arc::unwrap_or_clone(self);
        let mut last = (Dur::ZERO, None);
        for (flow, most) in network.flows.iter_mut().zip(times) {
            if most.is_zero() {
                continue;
            }
            // The flows of a group mostly share a time.
            if last.0 != most {
                let jitter = Some(Jitter::Uniform(most));
                last = (most, Some(Arc::new(Impairments { jitter, ..Impairments::default() })));
            }
            let host = network.nodes.len();
            network.nodes.push(String::new());
            let to = flow.path.first().map_or(host, |&link| network.links[link].from);
            flow.path = [&[network.links.len()], &*flow.path].concat().into();
            network.links.push(Link {
                name: String::new(),
                from: host,
                to,
                rate: None,
                // A link without any delay would not permit lookahead.
                delay: Dur::from_nanos(1),
                queue: Queue::DropTail { limit: QueueLimit::Packets(u32::MAX) },
                loss: 0.0,
                loss_of_acks: false,
                impairments: last.1.clone(),
            });
        }
        Arc::new(network)
    }

    /// Returns the largest processing time of a packet at the source of flow number `flow`; zero if
    /// its host processes bursts or none.
    fn processing(&self, flow: usize) -> Dur {
        let flow = &self.flows[flow];
        match &*flow.traffic {
            Traffic::Tcp(tcp) if tcp.conventions.is_ns2() => Dur::ZERO,
            Traffic::Tcp(tcp) => {
                tcp.overhead.unwrap_or_else(|| self.transmission_time(tcp, &flow.path))
            }
            _ => Dur::ZERO,
        }
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

    /// Returns the processing times of the links that are added to a scenario of two TCP flows and
    /// one without feedback, and the paths.
    fn added(tcp: &str) -> (Vec<Option<Jitter>>, Vec<Vec<usize>>) {
        let text = format!(
            "duration = \"1s\"\n[dumbbell]\nrate = \"12mbit\"\ndelay = \"1ms\"\n[tcp]\n{tcp}\n\
             [[flow]]\ncontroller = \"reno\"\n[[flow]]\ncontroller = \"reno\"\naccess = {{ rate = \"6mbit\" }}\n\
             [[cbr]]\nrate = \"1mbit\""
        );
        let network = Scenario::from_toml(&text, "test").unwrap().network(1).unwrap();
        let links = network.links.len();
        let network = Arc::new(network).with_processing();
        let jitter = |link: &Link| link.impairments.as_ref().and_then(|own| own.jitter);
        let paths = network.flows.iter().map(|flow| flow.path.to_vec()).collect();
        (network.links[links..].iter().map(jitter).collect(), paths)
    }

    #[test]
    fn a_packet_takes_up_to_its_transmission_time_on_the_slowest_link() {
        let (jitter, paths) = added("");
        let most = |millis| Some(Jitter::Uniform(Dur::from_millis(millis)));
        assert_eq!(jitter, [most(1), most(2)]);
        assert_eq!(paths, [vec![6, 0], vec![7, 2, 0, 5], vec![0]]);
    }

    #[test]
    fn a_given_time_precedes_and_zero_needs_no_link() {
        let five = Some(Jitter::Uniform(Dur::from_millis(5)));
        assert_eq!(added("overhead = \"5ms\"").0, [five, five]);
        assert_eq!(added("overhead = \"0s\"").0, []);
    }

    /// The hosts of ns-2 delay bursts, by default none.
    #[test]
    fn the_conventions_of_ns2_have_no_such_links() {
        assert_eq!(added("conventions = \"ns2\"").0, []);
        assert_eq!(added("conventions = \"ns2-2001\"\noverhead = \"5ms\"").0, []);
    }
}
