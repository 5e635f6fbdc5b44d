//! Problems that the default effort does not solve.

#![allow(dead_code, reason = "each test file uses its own part")]

use memplan::Problem;

/// Returns begin, end and size of chunks that fill every step to the same height: when one ends,
/// others of random size and lifetime take its bytes. To meet the bound a plan may waste nothing,
/// which is most likely impossible.
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

/// Returns begin, end and size of chunks whose sizes have no common divisor.
pub fn uneven(chunks: u64) -> Vec<(u64, u64, u64)> {
    let chunk = |i| {
        let begin = i * 7919 % 211;
        (begin, begin + 1 + i * 104_729 % 23, 1 + i * 15_485_863 % 10_007)
    };
    (0..chunks).map(chunk).collect()
}

/// Returns begin, end and size of chunks with short lifetimes, about twelve at once.
pub fn short_lives(chunks: u64) -> Vec<(u64, u64, u64)> {
    let mut state = 1_u64;
    let mut next = |below: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let mut chunk = || {
        let begin = next(chunks);
        (begin, begin + 1 + next(24), 64 * (1 + next(4096)))
    };
    (0..chunks).map(|_| chunk()).collect()
}

/// Creates chunks that begin and end everywhere, with overwriters of whole and half chunks.
pub fn scattered(chunks: u32) -> Problem {
    let mut state = u64::from(chunks);
    let mut next = |below: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let mut problem = Problem::builder().alignment(1 << (chunks % 7));
    for at in 0..u64::from(chunks) {
        let begin = at / 2 + next(4);
        let (end, size) = (begin + 1 + next(12), 1 + next(1 << 16));
        let chunk = problem.chunk(begin..end, size);
        if next(3) == 0 {
            let over = problem.chunk(end - 1..end + next(5), 1 + size / 2);
            problem.overwrite(over, chunk, size - 1 - size / 2);
        }
    }
    problem.build().unwrap()
}
