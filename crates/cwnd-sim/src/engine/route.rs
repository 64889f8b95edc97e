//! Routes: for each flow the steps of its packets and those of the packets in the reverse
//! direction.

use super::flow_order::FlowOrder;
use crate::network::Network;

/// One step of a route, packed into a word: a link, a host, or the flow whose end is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step(u32);

impl Step {
    /// The route ends here; the index is a flow's.
    const END: u32 = 1 << 31;
    /// The lookahead may let the link or the endpoint process packets ahead of the clock.
    const AHEAD: u32 = 1 << 30;
    const INDEX: u32 = Self::AHEAD - 1;

    /// Returns a step; `None` if the index is too large.
    fn new(index: usize, end: bool) -> Option<Self> {
        let index = u32::try_from(index).ok().filter(|&index| index <= Self::INDEX)?;
        Some(Step(if end { index | Self::END } else { index }))
    }

    /// The link or the host, unless the route ends here.
    #[inline(always)]
    pub(crate) fn link(self) -> usize {
        debug_assert!(!self.is_end());
        (self.0 & Self::INDEX) as usize
    }

    /// The flow, if the route ends here.
    #[inline(always)]
    pub(crate) fn flow(self) -> u32 {
        debug_assert!(self.is_end());
        self.0 & Self::INDEX
    }

    #[inline(always)]
    pub(crate) fn is_end(self) -> bool {
        self.0 & Self::END != 0
    }

    /// Whether a link may receive packets ahead of the clock here.
    #[inline(always)]
    pub(crate) fn is_link_ahead(self) -> bool {
        self.0 & (Self::AHEAD | Self::END) == Self::AHEAD
    }

    /// Whether an endpoint may process packets ahead of the clock here.
    #[inline(always)]
    pub(crate) fn is_end_ahead(self) -> bool {
        self.0 & (Self::AHEAD | Self::END) == Self::AHEAD | Self::END
    }

    /// Whether packets arrive here by events only: neither ahead of the clock nor at an end.
    #[inline(always)]
    pub(crate) fn is_plain(self) -> bool {
        self.0 <= Self::INDEX
    }

    fn set(&mut self, flag: u32, on: bool) {
        self.0 |= if on { flag } else { 0 };
    }
}

/// The routes of all flows.
#[derive(Clone)]
pub(crate) struct Routes {
    steps: Vec<Step>,
}

impl Routes {
    /// Returns the routes, and for each flow, numbered by `order`, its first hops in both
    /// directions. `host_of` is the number of each flow's host. `ahead` says whether a link or a
    /// host may receive packets ahead of the clock. `None` if there are too many steps, links or
    /// flows.
    pub(crate) fn new(
        network: &Network,
        order: &FlowOrder,
        host_of: &[Option<usize>],
        ahead: impl Fn(usize) -> bool,
    ) -> Option<(Self, Vec<[u32; 2]>)> {
        let lengths = network.flows.iter().map(|flow| flow.path.len() + flow.back.len() + 3);
        let mut steps = Vec::with_capacity(lengths.sum());
        let mut add = |host: Option<usize>, path: &[usize], flow| {
            let first = u32::try_from(steps.len()).ok()?;
            for link in host.into_iter().chain(path.iter().copied()) {
                let mut step = Step::new(link, false)?;
                step.set(Step::AHEAD, ahead(link));
                steps.push(step);
            }
            steps.push(Step::new(flow, true)?);
            Some(first)
        };
        let hops = (0..network.flows.len())
            .map(|number| {
                let index = order.index(number);
                let flow = &network.flows[index];
                Some([add(host_of[index], &flow.path, number)?, add(None, &flow.back, number)?])
            })
            .collect::<Option<_>>()?;
        Some((Routes { steps }, hops))
    }

    /// Lets the endpoint at the end of the route that begins at `first` process packets ahead of
    /// the clock.
    pub(crate) fn permit_end_ahead(&mut self, first: u32) {
        let end = self.steps[first as usize..].iter_mut().find(|step| step.is_end());
        if let Some(end) = end {
            end.set(Step::AHEAD, true);
        }
    }

    #[inline(always)]
    pub(crate) fn step(&self, hop: u32) -> Step {
        self.steps[hop as usize]
    }

    /// The links and the host from `hop` to the end of the route.
    pub(crate) fn links_from(&self, hop: u32) -> impl Iterator<Item = usize> {
        self.steps[hop as usize..].iter().take_while(|step| !step.is_end()).map(|step| step.link())
    }

    /// The flow of the route that contains `hop`.
    pub(crate) fn flow(&self, hop: u32) -> u32 {
        let end = self.steps[hop as usize..].iter().find(|step| step.is_end());
        end.map_or(0, |step| step.flow())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_have_room_for_their_flags() {
        let largest = Step::INDEX as usize;
        assert_eq!(Step::new(largest + 1, false), None);
        let mut step = Step::new(largest, false).unwrap();
        assert!(step.is_plain() && !step.is_end());
        step.set(Step::AHEAD, true);
        assert!(step.is_link_ahead() && !step.is_plain() && step.link() == largest);
        let end = Step::new(7, true).unwrap();
        assert!(end.is_end() && end.flow() == 7 && !end.is_plain());
    }
}
