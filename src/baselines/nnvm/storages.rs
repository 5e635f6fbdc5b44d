//! Storages: buffers that entries use in turn.

use std::collections::BTreeMap;

use crate::Bytes;

struct Storage {
    bytes: Bytes,
    device: u32,
    /// The colour of the operator that released it.
    colour: usize,
}

/// All storages, with an index of the free ones.
pub(super) struct Storages {
    /// A storage of b bytes is reused for sizes from b / range to b * range; 0 for no reuse.
    match_range: u64,
    all: Vec<Storage>,
    /// The free storages by size; of equal ones, the one released first comes first.
    free: BTreeMap<(Bytes, u64), usize>,
    /// The number of releases so far.
    releases: u64,
}

impl Storages {
    pub(super) fn new(match_range: u64) -> Self {
        Self { match_range, all: Vec::new(), free: BTreeMap::new(), releases: 0 }
    }

    /// Takes a free storage of about this size and grows it if necessary: the smallest that is
    /// large enough, otherwise the largest. Adds a storage if none matches.
    pub(super) fn request(&mut self, bytes: Bytes, device: u32, colour: usize) -> usize {
        let found = bytes.checked_div(self.match_range).and_then(|least| {
            let most = bytes.saturating_mul(self.match_range);
            let large = self.free.range((bytes, 0)..=(most, u64::MAX));
            let small = self.free.range((least, 0)..(bytes, 0)).rev();
            let suits = |storage: &Storage| (storage.device, storage.colour) == (device, colour);
            large
                .chain(small)
                .find(|&(_, &storage)| suits(&self.all[storage]))
                .map(|(&key, &storage)| (key, storage))
        });
        if let Some((key, storage)) = found {
            self.free.remove(&key);
            let grown = self.all[storage].bytes.max(bytes);
            self.all[storage].bytes = grown;
            storage
        } else {
            self.all.push(Storage { bytes, device, colour });
            self.all.len() - 1
        }
    }

    /// Frees a storage after an operator of this colour has run.
    pub(super) fn release(&mut self, storage: usize, colour: usize) {
        self.all[storage].colour = colour;
        self.free.insert((self.all[storage].bytes, self.releases), storage);
        self.releases += 1;
    }

    pub(super) fn into_sizes(self) -> Vec<Bytes> {
        self.all.into_iter().map(|storage| storage.bytes).collect()
    }
}
