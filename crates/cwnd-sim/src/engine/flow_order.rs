//! The order of flows in memory.

use crate::cast::saturate32;
use crate::network::Network;

/// The engine numbers flows in the order of their starts, so that the state of those that are
/// active at the same time is adjacent in memory. With a million short flows a packet then takes
/// less than half of the time.
#[derive(Clone)]
pub(crate) struct FlowOrder {
    /// For each flow of the engine its index in the network, and the reverse.
    indices: Vec<u32>,
    numbers: Vec<u32>,
}

impl FlowOrder {
    pub(crate) fn of(network: &Network) -> Self {
        let mut indices: Vec<_> = (0..saturate32(network.flows.len())).collect();
        indices.sort_by_key(|&index| network.flows[index as usize].start);
        let mut numbers = vec![0; indices.len()];
        for (number, &index) in indices.iter().enumerate() {
            numbers[index as usize] = saturate32(number);
        }
        FlowOrder { indices, numbers }
    }

    /// The index in the network of the engine's flow `number`.
    #[inline]
    pub(crate) fn index(&self, number: usize) -> usize {
        self.indices[number] as usize
    }

    /// The engine's number of the network's flow `index`.
    #[inline]
    pub(crate) fn number(&self, index: usize) -> usize {
        self.numbers[index] as usize
    }
}
