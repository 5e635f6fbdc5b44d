//! A problem too hard to be solved on the way.

/// Begin, end and size of chunks that fill every step to the same height: whatever ends, others of
/// random size and life take its bytes. Nothing may be wasted, and most likely something must.
pub fn flat() -> Vec<(u64, u64, u64)> {
    let mut state = 1_u64;
    let mut next = |below: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let mut ending = std::collections::BTreeMap::from([(0, 1000)]);
    let mut chunks = Vec::new();
    while chunks.len() < 400 {
        let Some((step, mut free)) = ending.pop_first() else { break };
        while free > 0 {
            let size = free.min(1 + next(100));
            let end = step + 1 + next(40);
            chunks.push((step, end, size));
            *ending.entry(end).or_insert(0) += size;
            free -= size;
        }
    }
    chunks
}
