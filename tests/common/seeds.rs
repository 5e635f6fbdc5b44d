//! Bytes to draw from, shared with the unit tests.

/// Pseudo-random bytes (xorshift), the same for each seed.
pub fn bytes_of(mut seed: u64) -> Vec<u8> {
    seed = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d;
    let next = move |_| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed.to_le_bytes()[3]
    };
    (0..4096).map(next).collect()
}
