//! Shortest paths by number of links.

use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

use crate::network::Link;

/// Finds paths and remembers them: many flows share few pairs of ends.
///
/// Among paths of the same length the one found first wins, where each node tries its links in the
/// order of the file.
pub(super) struct Routes {
    /// The links that leave each node, in order, with the nodes they reach.
    leaving: Vec<Vec<(usize, usize)>>,
    known: HashMap<(usize, usize), Option<Rc<[usize]>>>,
    /// The search in which a node was last reached, and by which link and node.
    reached: Vec<(u64, usize, usize)>,
    searches: u64,
}

impl Routes {
    /// Paths over these links, among `nodes` nodes.
    pub(super) fn new(nodes: usize, links: &[Link]) -> Self {
        let mut leaving = vec![Vec::new(); nodes];
        for (index, link) in links.iter().enumerate() {
            leaving[link.from].push((index, link.to));
        }
        Routes { leaving, known: HashMap::new(), reached: vec![(0, 0, 0); nodes], searches: 0 }
    }

    /// The links from one node to another; `None` when there is no way.
    pub(super) fn find(&mut self, from: usize, to: usize) -> Option<Rc<[usize]>> {
        if let Some(path) = self.known.get(&(from, to)) {
            return path.clone();
        }
        let path = self.search(from, to).map(Rc::from);
        self.known.insert((from, to), path.clone());
        path
    }

    /// Breadth first, no further than the target.
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
