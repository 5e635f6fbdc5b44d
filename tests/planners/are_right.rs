//! Every strategy's layout of random problems is correct.

use crate::common::{
    problems::{as_laid_out, layout, wrong},
    seeds::times,
};
use arbitrary::{Arbitrary, Unstructured};
use memplan::{
    OpSequence, Operator, Output, Planner, Problem, Strategy, problem::ChunkId, search::Layout,
};
use rstest::rstest;

/// A few dozen chunks, some of them long chains, in few steps, so that many are alive at once.
fn problem(bytes: &mut Unstructured) -> arbitrary::Result<Problem> {
    let alignment = 1 << bytes.int_in_range(0..=6)?;
    let padding = bytes.int_in_range(0..=20)?;
    let mut problem =
        Problem::builder().alignment(alignment).padding(if padding > 10 { padding } else { 0 });
    let mut chunks: Vec<(ChunkId, u64, u64)> = Vec::new();
    let mut requests = Vec::new();
    for _ in 0..bytes.int_in_range(0..=40)? {
        let overwritten = bytes
            .choose_iter(chunks.iter().copied())
            .ok()
            .filter(|&(_, _, size)| size > 0)
            .filter(|_| bool::arbitrary(bytes).unwrap_or(false));
        let begin = match overwritten {
            Some((_, end, _)) => end - 1,
            None => bytes.int_in_range(0..=30)?,
        };
        let end = begin + bytes.int_in_range(1..=12)?;
        let size = match overwritten {
            Some((_, _, room)) => bytes.int_in_range(1..=room)?,
            None => bytes.int_in_range(0..=300)?,
        };
        let chunk = problem.chunk(begin..end, size);
        if let Some((overwritten, _, room)) = overwritten {
            requests.push((chunk, overwritten, bytes.int_in_range(0..=room - size)?));
        }
        chunks.push((chunk, end, size));
    }
    for (overwriter, overwritten, offset) in requests {
        problem.overwrite(overwriter, overwritten, offset);
    }
    Ok(problem.build().unwrap())
}

fn fault(problem: &Problem, layout: &Layout) -> Option<String> {
    wrong(problem, layout.pool_size(problem), |chunk| layout.offset(chunk))
}

#[test]
fn random_problems_are_planned_rightly_by_all() {
    let mut linked = 0;
    times(40, |bytes| {
        let problem = problem(bytes)?;
        linked += problem.links_taken();
        for &strategy in Strategy::ALL {
            let layout = layout(strategy, &problem);
            let laid_out = as_laid_out(&problem, strategy, &layout);
            assert_eq!(fault(&laid_out, &layout), None, "{strategy}");
            if !layout.object_of.is_empty() {
                let total: u64 = layout.objects.iter().sum();
                assert_eq!(layout.pool_size(&problem), total, "{strategy}");
            }
        }
        Ok(())
    });
    assert!(linked > 0);
}

#[test]
fn best_is_as_small_as_the_smallest_candidate_and_names_it() {
    times(20, |bytes| {
        let problem = problem(bytes)?;
        let best = layout(Strategy::Best, &problem);
        let winner = best.winner.unwrap();
        let pools = || {
            let candidates = memplan::search::best::CANDIDATES.iter();
            candidates.map(|strategy| (layout(*strategy, &problem).pool_size(&problem), *strategy))
        };
        let smallest = pools().map(|(pool, _)| pool).min().unwrap();
        let pool = best.pool_size(&problem);
        if winner == Strategy::Optimal {
            // The search improves on all of them.
            assert!(pool < smallest);
        } else {
            assert_eq!(best.offsets, layout(winner, &problem).offsets);
            assert_eq!(pools().find(|&(pool, _)| pool == smallest), Some((pool, winner)));
        }
        Ok(())
    });
}

#[rstest]
fn nothing_is_planned_as_nothing(#[values(false, true)] empty_chunk: bool) {
    let mut problem = Problem::builder();
    if empty_chunk {
        problem.chunk(3..4, 0);
    }
    let problem = problem.build().unwrap();
    for &strategy in Strategy::ALL {
        let plan = Planner::new().strategy(strategy).plan(&problem).unwrap();
        assert_eq!(plan.pool_size(), 0, "{strategy}");
    }
}

/// The last step and the largest size that fit into 64 bits.
#[test]
fn the_largest_numbers_do_not_wrap() {
    let mut problem = Problem::builder().alignment(1 << 20);
    problem.chunk(u64::MAX - 3..u64::MAX, 1 << 62);
    problem.chunk(0..u64::MAX, 1 << 62);
    problem.chunk(0..1, (1 << 62) + 5);
    problem.chunk(u64::MAX - 1..u64::MAX, 3);
    let problem = problem.build().unwrap();
    for &strategy in Strategy::ALL {
        assert_eq!(fault(&problem, &layout(strategy, &problem)), None, "{strategy}");
    }
}

#[test]
fn names_lead_to_their_strategies() {
    let names = [
        "best",
        "optimal",
        "pushdown",
        "best-fit",
        "interval-move",
        "free-list",
        "nnvm",
        "tflite-equality",
        "tflite-greedy-in-order",
        "tflite-greedy-by-breadth",
        "tflite-greedy-by-size",
        "tflite-greedy-best",
        "tflite-min-cost-flow",
        "tflite-offsets-by-size",
        "tflite-cpu-arena",
        "tflite-micro",
        "naive",
        "first-fit",
    ];
    let all: Vec<&str> = Strategy::ALL.iter().map(|strategy| strategy.name()).collect();
    assert_eq!(all, names);
    for &strategy in Strategy::ALL {
        assert_eq!(strategy.name().parse(), Ok(strategy));
        assert!(!strategy.summary().is_empty());
    }
    assert!("no-such".parse::<Strategy>().is_err());
}

/// x -> reshape -> reshape -> in place, and x is read once more: the view of a view counts as a
/// reader of x, which some frameworks overlook.
#[rstest]
#[case::read_later(true)]
#[case::read_no_more(false)]
fn no_output_overwrites_a_tensor_that_a_view_of_a_view_still_reads(#[case] read_later: bool) {
    let operator = |input: &str, output| Operator::new(input).inputs([input]).output(output);
    let mut sequence = OpSequence::builder();
    sequence.input("image", 64);
    sequence.operator(operator("image", Output::new("x", 64)));
    sequence.operator(operator("x", Output::new("flat", 64).reads("x")));
    sequence.operator(operator("flat", Output::new("square", 64).reads("flat")));
    sequence.operator(operator("square", Output::new("y", 64).overwrites("square")));
    let last = if read_later { ["y", "x"].as_slice() } else { &["y"] };
    let last = Operator::new("last").inputs(last.iter().copied()).output(Output::new("z", 64));
    sequence.operator(last).output("z");
    let sequence = sequence.build().unwrap();
    for &strategy in Strategy::ALL {
        let plan = Planner::new().strategy(strategy).plan(&sequence).unwrap();
        assert_eq!(plan.offset("x"), plan.offset("square"), "{strategy}");
        assert_eq!(plan.offset("y") == plan.offset("x"), !read_later, "{strategy}");
    }
}
