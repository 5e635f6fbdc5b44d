//! The book states the peaks that are measured here. This test has its own file, so that nothing else runs
//! in the process.

use memplan_runtime::{MODELS, Peaks, model, peaks};

/// The tolerance for other processors, in MiB and as a fraction of the figure: scratch memory
/// depends on the widths of its vectors.
const TOLERANCE: (f64, f64) = (1.0, 0.1);

/// The column of the pool, which is the same on every machine.
const POOL: usize = 2;

fn figures(row: &str) -> Vec<f64> {
    row.split('|').filter_map(|cell| cell.trim().parse().ok()).collect()
}

#[test]
fn the_book_states_the_measured_peaks() {
    let chapter = include_str!("../../../book/src/savings.md");
    assert!(chapter.contains(Peaks::HEADER), "the chapter has no table\n{}", Peaks::HEADER);
    for (title, name) in MODELS {
        let Some(onnx) = model(name) else {
            eprintln!("skipped: {name} is not there");
            continue;
        };
        let row = peaks(&onnx).row(title);
        let (measured, start) = (figures(&row), format!("| {title} | "));
        let told = |line: &&str| line.starts_with(&start) && figures(line).len() == measured.len();
        let told = figures(chapter.lines().find(told).unwrap_or_else(|| panic!("no row\n{row}")));
        let is_near = |(told, measured): (&f64, &f64)| {
            (told - measured).abs() <= TOLERANCE.0 + told * TOLERANCE.1
        };
        assert!(told.iter().zip(&measured).all(is_near), "the chapter tells {told:?} for\n{row}");
        assert!((told[POOL] - measured[POOL]).abs() < 0.005, "{told:?} for\n{row}");
    }
}
