//! Checks that every target allocates memory in proportion to its input, besides its own property.

use peak_alloc::PeakAlloc;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// The bytes that a run may allocate in addition to ten times its input: the tables that do not
/// grow with the input, and the search with its default effort.
pub const BESIDES: usize = 32 << 20;

/// Runs the body on the input.
///
/// # Panics
///
/// If more than [`BESIDES`] plus ten times the input was allocated at once.
pub fn within_memory(input: &[u8], body: impl FnOnce(&[u8])) {
    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    body(input);
    let taken = MEMORY.peak_usage().saturating_sub(before);
    let limit = input.len().saturating_mul(10).saturating_add(BESIDES);
    assert!(taken <= limit, "{} bytes of input took {taken} bytes of memory", input.len());
}
