//! Shortest paths by the number of links, and equal-cost multipath.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use crate::cast::to_index;
use crate::network::Link;
use crate::rng::Rng;

/// The largest number of cached distances between two nodes: 40 MB.
const MAX_CACHED: usize = 10_000_000;
/// The distance of a node from which a target cannot be reached.
const UNREACHED: u32 = u32::MAX;

/// Finds shortest paths by the number of links: at each node a flow takes one of the links that
/// begin a shortest path.
///
/// Without equal-cost multipath it is the first one in the order of the file. With it, the hash of
/// the flow selects the link, by the hash-threshold method (RFC 2992): the hash space is divided
/// into regions of equal size, one for each link. The nodes' hash functions are independent of each
/// other, so that the flows that a node receives are distributed over all of its links.
pub(super) struct Routes {
    /// For each node its outgoing links in order, with the nodes at their ends.
    leaving: Vec<Vec<(usize, usize)>>,
    /// For each node the nodes at the beginnings of its incoming links.
    entering: Vec<Vec<usize>>,
    /// The seed of the hashes; `None` without multipath.
    multipath: Option<u64>,
    /// Without multipath the known paths, because many flows share few pairs of nodes.
    paths: HashMap<(usize, usize), Option<Arc<[usize]>>>,
    /// With multipath, for each target the number of links from each node.
    distances: HashMap<usize, Arc<[u32]>>,
}

impl Routes {
    /// Creates an empty cache for `nodes` nodes and their links.
    pub(super) fn new(nodes: usize, links: &[Link], multipath: Option<u64>) -> Self {
        let (mut leaving, mut entering) = (vec![Vec::new(); nodes], vec![Vec::new(); nodes]);
        for (index, link) in links.iter().enumerate() {
            leaving[link.from].push((index, link.to));
            entering[link.to].push(link.from);
        }
        let (paths, distances) = (HashMap::new(), HashMap::new());
        Routes { leaving, entering, multipath, paths, distances }
    }

    /// Whether all flows between two nodes take the same route.
    pub(super) fn are_single(&self) -> bool {
        self.multipath.is_none()
    }

    /// Returns the links of the routes of flow number `flow` from one node to another and back;
    /// `None` if there is none. They are independent of each other: the two directions of a
    /// connection have different hashes.
    pub(super) fn find(
        &mut self,
        from: usize,
        to: usize,
        flow: usize,
    ) -> [Option<Arc<[usize]>>; 2] {
        let Some(seed) = self.multipath else {
            return [self.first(from, to), self.first(to, from)];
        };
        let mut hash = Rng::new(seed, "ecmp", flow as u64);
        let mut region = |count| if count > 1 { hash.below(count) } else { 0 };
        [(from, to), (to, from)].map(|(from, to)| {
            let distances = self.distances(to);
            self.walk(from, to, &distances, &mut region)
        })
    }

    /// Returns the links of all routes that flows may take from one node to another.
    pub(super) fn links(&mut self, from: usize, to: usize) -> Option<Arc<[usize]>> {
        if self.are_single() {
            return self.first(from, to);
        }
        let distances = self.distances(to);
        if distances[from] == UNREACHED {
            return None;
        }
        let mut links = Vec::new();
        let mut nodes = vec![from];
        let mut seen = vec![false; self.leaving.len()];
        while let Some(node) = nodes.pop() {
            for (link, next) in self.closer(&distances, node) {
                links.push(link);
                if !std::mem::replace(&mut seen[next], true) {
                    nodes.push(next);
                }
            }
        }
        Some(links.into())
    }

    /// Returns the links of the first shortest path.
    fn first(&mut self, from: usize, to: usize) -> Option<Arc<[usize]>> {
        if let Some(path) = self.paths.get(&(from, to)) {
            return path.clone();
        }
        let path = self.walk(from, to, &self.search(Some(from), to), |_| 0);
        self.paths.insert((from, to), path.clone());
        path
    }

    /// Returns the links of a shortest path. `select` returns the number of the link to take, of
    /// this many.
    fn walk(
        &self,
        from: usize,
        to: usize,
        distances: &[u32],
        mut select: impl FnMut(u64) -> u64,
    ) -> Option<Arc<[usize]>> {
        if distances[from] == UNREACHED {
            return None;
        }
        let (mut node, mut path) = (from, Vec::new());
        while node != to {
            let number = select(self.closer(distances, node).count() as u64);
            let (link, next) = self.closer(distances, node).nth(to_index(number))?;
            path.push(link);
            node = next;
        }
        Some(path.into())
    }

    /// Lists the links of a node that begin a shortest path, with the nodes at their ends.
    fn closer(&self, distances: &[u32], node: usize) -> impl Iterator<Item = (usize, usize)> {
        let links = self.leaving[node].iter().copied();
        links.filter(move |&(_, next)| {
            distances[next] != UNREACHED && distances[next] < distances[node]
        })
    }

    /// Returns the number of links from each node to a target.
    fn distances(&mut self, to: usize) -> Arc<[u32]> {
        if let Some(known) = self.distances.get(&to) {
            return known.clone();
        }
        let distances: Arc<[u32]> = self.search(None, to).into();
        if self.distances.len() * distances.len() > MAX_CACHED {
            self.distances.clear();
        }
        self.distances.insert(to, distances.clone());
        distances
    }

    /// Returns the number of links from each node to a target, or only from the nodes that are
    /// closer to it than `from`, and from that.
    fn search(&self, from: Option<usize>, to: usize) -> Vec<u32> {
        let mut distances = vec![UNREACHED; self.leaving.len()];
        distances[to] = 0;
        let mut queue = VecDeque::from([to]);
        while let Some(node) = queue.pop_front()
            && from != Some(node)
        {
            for &previous in &self.entering[node] {
                if distances[previous] == UNREACHED {
                    distances[previous] = distances[node] + 1;
                    queue.push_back(previous);
                }
            }
        }
        distances
    }
}
