//! Shortest paths by the number of links, and equal-cost multipath.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use crate::cast::to_index;
use crate::network::Link;
use crate::rng::Rng;

/// Finds shortest paths and caches them, because many flows share few pairs of nodes.
///
/// Breadth-first search visits the links of a node in the order of the file; the first path found
/// is used.
pub(super) struct Routes {
    /// For each node its outgoing links in order, with the nodes at their ends.
    leaving: Vec<Vec<(usize, usize)>>,
    cache: HashMap<(usize, usize), Option<Arc<[usize]>>>,
    /// For each node the number of the last search that reached it, and the link and the node
    /// before it.
    reached: Vec<(u64, usize, usize)>,
    searches: u64,
}

impl Routes {
    /// Creates an empty cache for `nodes` nodes and their links.
    pub(super) fn new(nodes: usize, links: &[Link]) -> Self {
        let mut leaving = vec![Vec::new(); nodes];
        for (index, link) in links.iter().enumerate() {
            leaving[link.from].push((index, link.to));
        }
        Routes { leaving, cache: HashMap::new(), reached: vec![(0, 0, 0); nodes], searches: 0 }
    }

    /// Returns the links of the path between two nodes; `None` if there is none.
    pub(super) fn find(&mut self, from: usize, to: usize) -> Option<Arc<[usize]>> {
        if let Some(path) = self.cache.get(&(from, to)) {
            return path.clone();
        }
        let path = self.search(from, to).map(Arc::from);
        self.cache.insert((from, to), path.clone());
        path
    }

    /// Searches breadth-first, up to the target.
    fn search(&mut self, from: usize, to: usize) -> Option<Vec<usize>> {
        self.searches += 1;
        let search = self.searches;
        let mut queue = VecDeque::from([from]);
        self.reached[from] = (search, 0, from);
        while let Some(node) = queue.pop_front() {
            if node == to {
                return Some(self.walk_back(from, to));
            }
            for &(link, next) in &self.leaving[node] {
                if self.reached[next].0 != search {
                    self.reached[next] = (search, link, node);
                    queue.push_back(next);
                }
            }
        }
        None
    }

    /// Returns the links of the path that the last search found.
    fn walk_back(&self, from: usize, to: usize) -> Vec<usize> {
        let mut path = Vec::new();
        let mut node = to;
        while node != from {
            let (_, link, previous) = self.reached[node];
            path.push(link);
            node = previous;
        }
        path.reverse();
        path
    }
}

/// The largest number of cached distances between two nodes: 40 MB.
const MAX_CACHED: usize = 10_000_000;
/// The distance of a node from which a target cannot be reached.
const UNREACHED: u32 = u32::MAX;

/// Equal-cost multipath: the shortest paths by the number of links, of which a flow takes one.
///
/// At each node, the hash of the flow selects one of the links that begin a shortest path, by the
/// hash-threshold method (RFC 2992): the hash space is divided into regions of equal size, one for
/// each link. The nodes' hash functions are independent of each other, so that the flows that a
/// node receives are distributed over all of its links.
pub(super) struct Multipath {
    /// For each node its outgoing links in order, with the nodes at their ends.
    leaving: Vec<Vec<(usize, usize)>>,
    /// For each node the nodes at the beginnings of its incoming links.
    entering: Vec<Vec<usize>>,
    /// For each target the number of links from each node.
    distances: HashMap<usize, Arc<[u32]>>,
}

impl Multipath {
    /// Creates an empty cache for `nodes` nodes and their links.
    pub(super) fn new(nodes: usize, links: &[Link]) -> Self {
        let (mut leaving, mut entering) = (vec![Vec::new(); nodes], vec![Vec::new(); nodes]);
        for (index, link) in links.iter().enumerate() {
            leaving[link.from].push((index, link.to));
            entering[link.to].push(link.from);
        }
        Multipath { leaving, entering, distances: HashMap::new() }
    }

    /// Returns the links of a flow's path between two nodes; `None` if there is none. `hash` draws
    /// the hash of the flow at each node that has several links.
    pub(super) fn find(&mut self, from: usize, to: usize, hash: &mut Rng) -> Option<Arc<[usize]>> {
        let distances = self.distances(to);
        if distances[from] == UNREACHED {
            return None;
        }
        let (mut node, mut path) = (from, Vec::new());
        while node != to {
            let count = self.closer(&distances, node).count() as u64;
            let region = if count > 1 { hash.below(count) } else { 0 };
            let (link, next) = self.closer(&distances, node).nth(to_index(region))?;
            path.push(link);
            node = next;
        }
        Some(path.into())
    }

    /// Returns the links of all shortest paths between two nodes; `None` if there is none.
    pub(super) fn links(&mut self, from: usize, to: usize) -> Option<Arc<[usize]>> {
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
        let mut distances = vec![UNREACHED; self.leaving.len()];
        distances[to] = 0;
        let mut queue = VecDeque::from([to]);
        while let Some(node) = queue.pop_front() {
            for &previous in &self.entering[node] {
                if distances[previous] == UNREACHED {
                    distances[previous] = distances[node] + 1;
                    queue.push_back(previous);
                }
            }
        }
        if self.distances.len() * distances.len() > MAX_CACHED {
            self.distances.clear();
        }
        let distances: Arc<[u32]> = distances.into();
        self.distances.insert(to, distances.clone());
        distances
    }
}
