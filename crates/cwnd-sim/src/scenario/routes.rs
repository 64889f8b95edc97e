//! Shortest paths by the number of links.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use crate::network::Link;

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
