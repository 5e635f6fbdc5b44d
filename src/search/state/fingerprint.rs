//! Fingerprints: 128 bits that stand for a state of the search.

/// The two halves of a hash. Two states of one search are far less likely to share a fingerprint
/// than the machine is to fail. Both halves 0 stand for no state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fingerprint {
    pub sum: u64,
    pub xor: u64,
}

impl Fingerprint {
    /// The fingerprint of a state that consists of this one and another, in any order.
    pub fn and(self, other: Self) -> Self {
        Self { sum: self.sum.wrapping_add(other.sum), xor: self.xor ^ other.xor }
    }
}

/// A bijection of 64-bit numbers whose outputs look random: a step of splitmix64.
pub fn scramble(mut x: u64) -> u64 {
    x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The outputs of the generator splitmix64 (Steele, Lea, Flood 2014) for the seed 0.
    #[test]
    fn scrambling_is_a_step_of_splitmix64() {
        let step = 0x9e37_79b9_7f4a_7c15_u64;
        let outputs = [0, 1, 2].map(|at| scramble(step.wrapping_mul(at)));
        assert_eq!(outputs, [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4, 0x06c4_5d18_8009_454f]);
    }
}
