//! The first layout of a search, which it improves: that of pushdown, if there is time.

use crate::{
    Problem, Strategy,
    planner::{Layout, chunk_order::ChunkOrder, pushdown, size_classes},
};

/// Plans a problem with pushdown, or in size classes if `stop` returns true before that ends.
pub(super) fn layout_until(problem: &Problem, stop: &mut dyn FnMut() -> bool) -> Layout {
    let order = ChunkOrder::new(problem);
    match pushdown::layout_until(&order, stop) {
        Some(layout) => Layout { winner: Some(Strategy::Pushdown), ..layout },
        None => size_classes::layout(&order),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Plan, planner::best_fit, verify::verify};

    /// Wherever pushdown and best fit are stopped, there is a right plan.
    #[test]
    fn a_first_plan_comes_out_whenever_it_is_stopped() {
        let mut problem = Problem::builder().alignment(16);
        for step in 0..4000 {
            let end = step + 2 + step % 5;
            let size = 10 + step * 7919 % 4096;
            let chunk = problem.chunk(step..end, size);
            if step % 3 == 0 {
                let overwriter = problem.chunk(end - 1..end + 4, size - 5);
                problem.overwrite(overwriter, chunk, 5);
            }
        }
        let problem = problem.build().unwrap();
        let mut stops = 0;
        for last in 1.. {
            let mut asked = 0;
            let layout = layout_until(&problem, &mut || {
                asked += 1;
                asked == last
            });
            let plan = Plan::from_offsets(&problem, &layout.offsets).unwrap();
            assert_eq!(verify(&problem, &plan), []);
            if asked < last {
                let winner = Some(Strategy::Pushdown);
                assert_eq!(layout, Layout { winner, ..pushdown::layout(&problem) });
                break;
            }
            assert_eq!(layout, size_classes::layout(&ChunkOrder::new(&problem)));
            stops += 1;
        }
        assert!(stops > 4, "both passes ask: {stops}");
        let mut stop = || true;
        assert_eq!(best_fit::layout_until(&problem, &mut stop), None);
        let whole = best_fit::layout_until(&problem, &mut || false);
        assert_eq!(whole, Some(best_fit::layout(&problem)));
    }
}
