//! Maximum flows and minimum cuts; Dinic's algorithm (1970).

use crate::lists::narrow;

/// The node where the flow begins.
pub(crate) const SOURCE: u32 = 0;

/// The node where it ends.
pub(crate) const SINK: u32 = 1;

/// Stands for no node, or no edge.
pub(crate) const NONE: u32 = u32::MAX;

/// A capacity that no cut includes: all others together are smaller.
pub(crate) const UNCUT: u64 = u64::MAX;

/// A flow network.
#[derive(Default)]
pub(crate) struct Network {
    /// The first edge of each node.
    first: Vec<u32>,
    /// The next edge of the same node, for each edge. An edge and its reverse are neighbours.
    next: Vec<u32>,
    head: Vec<u32>,
    room: Vec<u64>,
    level: Vec<u32>,
    at: Vec<u32>,
    queue: Vec<u32>,
    /// The number of edges and nodes visited, for the effort.
    pub(crate) work: u64,
}

impl Network {
    pub(crate) fn clear(&mut self) {
        self.first.clear();
        self.next.clear();
        self.head.clear();
        self.room.clear();
        self.work = 0;
        self.add_node();
        self.add_node();
    }

    pub(crate) fn add_node(&mut self) -> u32 {
        self.first.push(NONE);
        narrow(self.first.len() - 1)
    }

    pub(crate) fn add_edge(&mut self, from: u32, to: u32, room: u64) {
        for (from, to, room) in [(from, to, room), (to, from, 0)] {
            let edge = narrow(self.head.len());
            self.head.push(to);
            self.room.push(room);
            self.next.push(self.first[from as usize]);
            self.first[from as usize] = edge;
        }
    }

    /// Finds a maximum flow. Returns its size, or 2^64 - 1 if that is larger.
    pub(crate) fn max_flow(&mut self) -> u64 {
        let mut flow: u64 = 0;
        while self.find_levels() {
            self.at.clone_from(&self.first);
            flow = flow.saturating_add(self.blocking_flow());
        }
        flow
    }

    /// Finds the levels by distance from the source; returns whether the sink is reached.
    fn find_levels(&mut self) -> bool {
        self.level.clear();
        self.level.resize(self.first.len(), NONE);
        self.level[SOURCE as usize] = 0;
        self.queue.clear();
        self.queue.push(SOURCE);
        let mut at = 0;
        while let Some(&node) = self.queue.get(at) {
            at += 1;
            let mut edge = self.first[node as usize];
            while edge != NONE {
                self.work += 1;
                let head = self.head[edge as usize];
                if self.room[edge as usize] > 0 && self.level[head as usize] == NONE {
                    self.level[head as usize] = self.level[node as usize] + 1;
                    self.queue.push(head);
                }
                edge = self.next[edge as usize];
            }
        }
        self.level[SINK as usize] != NONE
    }

    /// Fills all shortest paths, without recursion.
    fn blocking_flow(&mut self) -> u64 {
        let mut total: u64 = 0;
        let mut path: Vec<u32> = Vec::new();
        let mut node = SOURCE;
        loop {
            self.work += 1;
            if node == SINK {
                let room = |&edge: &u32| self.room[edge as usize];
                let flow = path.iter().map(room).min().unwrap_or(0);
                total = total.saturating_add(flow);
                for &edge in &path {
                    if self.room[edge as usize] != UNCUT {
                        self.room[edge as usize] -= flow;
                    }
                    if self.room[edge as usize ^ 1] != UNCUT {
                        self.room[edge as usize ^ 1] += flow;
                    }
                }
                // Go back to where the first edge is full.
                let full = path.iter().position(|&edge| self.room[edge as usize] == 0);
                path.truncate(full.unwrap_or(0));
                node = path.last().map_or(SOURCE, |&edge| self.head[edge as usize]);
                continue;
            }
            let edge = self.at[node as usize];
            if edge == NONE {
                let Some(back) = path.pop() else { return total };
                node = self.head[back as usize ^ 1];
                self.at[node as usize] = self.next[self.at[node as usize] as usize];
                continue;
            }
            let head = self.head[edge as usize];
            if self.room[edge as usize] > 0
                && self.level[head as usize] == self.level[node as usize] + 1
            {
                path.push(edge);
                node = head;
            } else {
                self.at[node as usize] = self.next[edge as usize];
            }
        }
    }

    /// Returns the nodes on the source's side of the cut with the fewest nodes there.
    pub(crate) fn reached(&self) -> Vec<bool> {
        // The last search for levels found no path to the sink.
        self.level.iter().map(|&level| level != NONE).collect()
    }
}
