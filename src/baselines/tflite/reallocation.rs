//! The reallocation graph: the records that may take over each other's memory when operators run in
//! parallel.
//!
//! **Idea.** If every consumer of tensor r must have run before tensor v is produced, v can safely
//! take the memory of r, whatever else runs in parallel.
//!
//! **Cost.** A breadth-first search from every use of a tensor: O(uses x uses).
//!
//! **Source.** TFLite GPU delegate, `ReallocationGraph` (2019).

use std::collections::VecDeque;

use crate::baselines::tflite::RecordError;

/// The records, ascending, with which each record may exchange its object in either direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReallocationGraph(Vec<Vec<usize>>);

impl ReallocationGraph {
    /// Creates a graph from the list of neighbours of each record.
    ///
    /// # Errors
    ///
    /// If a list refers to a record that does not exist.
    pub fn new(mut neighbours: Vec<Vec<usize>>) -> Result<Self, RecordError> {
        check_records(&neighbours)?;
        for list in &mut neighbours {
            list.sort_unstable();
            list.dedup();
        }
        Ok(Self(neighbours))
    }

    /// Derives the graph from dependencies: `consumers[r]` are the records whose producer reads r.
    /// Record v is a neighbour of r if it can be reached from every consumer of r and is not one of
    /// them; a record without consumers does not pass on its memory.
    ///
    /// # Errors
    ///
    /// If a list refers to a record that does not exist.
    pub fn from_dependencies(consumers: &[Vec<usize>]) -> Result<Self, RecordError> {
        check_records(consumers)?;
        let mut neighbours = vec![Vec::new(); consumers.len()];
        let mut visits = vec![0_usize; consumers.len()];
        let mut seen_by = vec![usize::MAX; consumers.len()];
        let mut searches = 0;
        let mut queue = VecDeque::new();
        for (record, starts) in consumers.iter().enumerate() {
            visits.fill(0);
            for &start in starts {
                seen_by[start] = searches;
                queue.push_back(start);
                while let Some(at) = queue.pop_front() {
                    for &next in &consumers[at] {
                        if seen_by[next] != searches {
                            seen_by[next] = searches;
                            visits[next] += 1;
                            queue.push_back(next);
                        }
                    }
                }
                searches += 1;
            }
            if starts.is_empty() {
                continue;
            }
            for (reached, _) in visits.iter().enumerate().filter(|&(_, &n)| n == starts.len()) {
                neighbours[record].push(reached);
                neighbours[reached].push(record);
            }
        }
        Self::new(neighbours)
    }

    /// The neighbours of each record, ascending.
    #[must_use]
    pub fn neighbours(&self) -> &[Vec<usize>] {
        &self.0
    }

    /// Returns whether `next` may take the object of `last`.
    pub(super) fn allows(&self, last: usize, next: usize) -> bool {
        self.0[last].binary_search(&next).is_ok()
    }

    pub(super) fn check(&self, records: usize) -> Result<(), RecordError> {
        if self.0.len() == records {
            return Ok(());
        }
        Err(RecordError::Count { records, entries: self.0.len() })
    }
}

fn check_records(lists: &[Vec<usize>]) -> Result<(), RecordError> {
    match lists.iter().flatten().find(|&&record| record >= lists.len()) {
        Some(&record) => Err(RecordError::UnknownRecord { record }),
        None => Ok(()),
    }
}
