//! Plans of sequences in which each byte lives until its own last reader: an output may be written over a part of a
//! buffer while another part is still read.

#![cfg(feature = "files")]

use crate::common::placed::Placed;
use memplan::verify::{execute, verify};

/// The time for which a test draws sequences, in milliseconds.
fn budget() -> u64 {
    std::env::var("MEMPLAN_MUTATION_MS").map_or(4_000, |text| text.parse().unwrap())
}

/// Counting from the operators and running them agree on every placement, byte by byte.
#[test]
fn verify_accepts_exactly_the_placements_that_run() {
    let (mut right, mut split, mut wrong) = (0, 0, 0);
    arbtest::arbtest(|random| {
        let mut placed = Placed::random(random)?;
        let Some(sequence) = placed.sequence() else { return Ok(()) };
        for _ in 0..12 {
            let plan = placed.plan(Some(0));
            let (verified, executed) = (verify(&sequence, &plan), execute(&sequence, &plan));
            assert!(
                verified.is_empty() == executed.is_empty()
                    || !verified.is_empty() && placed.gathers_a_part(),
                "{verified:#?}\n{executed:#?}\n{sequence:#?}\n{plan:#?}"
            );
            right += usize::from(verified.is_empty());
            wrong += usize::from(!verified.is_empty());
            split += usize::from(verified.is_empty() && !plan.windows.is_empty());
            // Larger windows, or none, can only be harder to meet.
            let wider = if random.ratio(1, 2)? { Some(random.int_in_range(0..=3)?) } else { None };
            let found = verify(&sequence, &placed.plan(wider));
            assert!(
                !found.is_empty() || executed.is_empty(),
                "{executed:#?}\n{sequence:#?}\n{plan:#?}"
            );
            placed.place(random)?;
        }
        Ok(())
    })
    .budget_ms(budget());
    eprintln!("{right} placements are right, {split} of them by byte, and {wrong} are wrong");
    assert!(right.min(wrong) > 100 && split > 20, "{right} right, {split} by byte, {wrong} wrong");
}
