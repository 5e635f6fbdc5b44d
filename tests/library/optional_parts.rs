//! Chunks that may lie inside others: what a planner chooses, against all choices.

use memplan::{
    Limits, Plan, Planner, Problem, Strategy,
    lower::LoweringOptions,
    plan::Scope,
    problem::{ChunkId, PoolId, ProblemBuilder, Request},
    verify::verify,
};
use rstest::rstest;
use serde_json::json;

use crate::common::constraints::Dice;

/// A random problem with optional parts and requests.
struct Case {
    builder: ProblemBuilder,
    parts: Vec<(ChunkId, ChunkId, u64)>,
    requests: Vec<Request>,
}

impl Case {
    fn random(dice: &mut Dice) -> Self {
        let count = 3 + dice.roll(5);
        let alignment = 1 << (dice.roll(4) / 2);
        let padding = dice.roll(3) / 2;
        let mut builder = Problem::builder().alignment(alignment).padding(padding);
        let mut chunks = Vec::new();
        for _ in 0..count {
            let (begin, size) = (dice.roll(6), 1 + dice.roll(9));
            let end = begin + 1 + dice.roll(5);
            chunks.push((builder.chunk(begin..end, size), begin, end, size));
        }
        let (mut parts, mut requests): (Vec<_>, Vec<_>) = (Vec::new(), Vec::new());
        let mut used = vec![0; chunks.len()];
        // The parts of a whole lie beside each other, and no chunk is a part of one that comes before it.
        for at in 1..chunks.len() {
            for other in 0..at {
                let low = used[at] + dice.roll(2);
                let is_read = (chunks[other].1..chunks[other].2).contains(&chunks[at].1);
                let fits = is_read && low + chunks[other].3 <= chunks[at].3;
                if parts.len() < 4 && fits && dice.roll(4) > 0 {
                    used[at] = low + chunks[other].3;
                    parts.push((chunks[other].0, chunks[at].0, low));
                }
                let (new, old) = (chunks[at], chunks[other]);
                if requests.len() < 2 && new.1 + 1 == old.2 && new.3 <= old.3 && dice.roll(2) == 0 {
                    requests.push(Request::new(new.0, old.0, dice.roll(old.3 - new.3 + 1)));
                }
            }
        }
        Self { builder, parts, requests }
    }

    fn problem(&self) -> Problem {
        let mut builder = self.builder.clone();
        for &(part, whole, offset) in &self.parts {
            builder.optional_part(part, whole, offset);
        }
        for &request in &self.requests {
            builder.request(request);
        }
        builder.build().unwrap()
    }

    /// The smallest pool of all choices.
    fn smallest(&self) -> u64 {
        let sets = |count: usize| 0..1_u32 << count;
        let mut smallest = u64::MAX;
        for chosen in sets(self.parts.len()) {
            for taken in sets(self.requests.len()) {
                let mut builder = self.builder.clone();
                for (_, &(part, whole, offset)) in members(chosen, &self.parts) {
                    builder.part(part, whole, offset);
                }
                for (_, &request) in members(taken, &self.requests) {
                    builder.request(request.required(true));
                }
                let Ok(problem) = builder.build() else { continue };
                let plan = Planner::new().strategy(Strategy::Optimal).plan(&problem).unwrap();
                assert!(plan.proven_optimal());
                smallest = smallest.min(plan.pool_size());
            }
        }
        smallest
    }
}

fn members<T>(set: u32, all: &[T]) -> impl Iterator<Item = (usize, &T)> {
    all.iter().enumerate().filter(move |(at, _)| set >> at & 1 == 1)
}

#[test]
fn the_pool_is_the_smallest_of_all_choices() {
    let mut dice = Dice(20_261_128);
    let (mut bounds, mut inside, mut copied) = (0, 0, 0);
    for number in 0..400 {
        let case = Case::random(&mut dice);
        let problem = case.problem();
        let smallest = case.smallest();
        let text = || serde_json::to_string(&problem).unwrap();
        let bound = Planner::new().content_bound(&problem).unwrap().unwrap();
        assert!(bound <= smallest, "{number}: {bound}, not {smallest}\n{}", text());
        bounds += u32::from(bound == smallest);
        let plan = Planner::new().plan(&problem).unwrap();
        assert_eq!(verify(&problem, &plan), [], "{number}\n{}", text());
        let found = (plan.pool_size(), plan.proven_optimal(), plan.scope());
        assert_eq!(found, (smallest, true, Scope::AllChoices), "{number}\n{}", text());
        inside += plan.parts().len();
        copied += plan.copies().len();
        let places: Vec<_> = plan.chunks().iter().map(|chunk| (PoolId(0), chunk.offset)).collect();
        let placed = Plan::from_places(&problem, &places).unwrap();
        // With requests, places alone do not say which of both an offset stands for.
        if problem.requests().is_empty() {
            assert_eq!(verify(&problem, &placed), [], "{number}\n{}", text());
        }
        for strategy in [Strategy::FirstFit, Strategy::Pushdown, Strategy::Naive] {
            let plan = Planner::new().strategy(strategy).plan(&problem).unwrap();
            assert_eq!(verify(&problem, &plan), [], "{number}, {strategy}\n{}", text());
            assert!(plan.parts().is_empty() || strategy.supports_parts(), "{number}, {strategy}");
            let is_proven = plan.proven_optimal() && plan.scope() == Scope::AllChoices;
            assert!(plan.pool_size() >= smallest, "{number}, {strategy}\n{}", text());
            assert!(!is_proven || plan.pool_size() == smallest, "{number}, {strategy}\n{}", text());
        }
    }
    assert!(bounds > 200 && inside > 200 && copied > 5, "{bounds}, {inside}, {copied}");
}

/// `a` and `b` in `c`, and `a` in `d`.
fn concat() -> (Problem, [ChunkId; 4]) {
    let mut problem = Problem::builder();
    let (a, b) = (problem.named_chunk("a", 0..3, 64), problem.named_chunk("b", 1..3, 32));
    let c = problem.named_chunk("c", 2..4, 96);
    let d = problem.named_chunk("d", 2..4, 96);
    problem.optional_part(a, c, 0).optional_part(b, c, 64).optional_part(a, d, 32);
    (problem.build().unwrap(), [a, b, c, d])
}

/// `top` can be written over `base` only if `inner`, a part of `base`, is written over `top` in the same step. Requests
/// are accepted one by one, so the plan needs 16 bytes, not 12, and must not claim that no plan is smaller.
#[test]
fn requests_that_are_possible_only_together_leave_the_smallest_pool_open() {
    let mut problem = Problem::builder();
    let (top, base) = (problem.chunk(5..6, 4), problem.chunk(2..6, 12));
    let inner = problem.chunk(5..6, 2);
    problem.part(inner, base, 2).overwrite(top, base, 2).overwrite(inner, top, 0);
    let problem = problem.build().unwrap();
    let plan = Planner::new().plan(&problem).unwrap();
    assert_eq!(verify(&problem, &plan), []);
    let is_proven = plan.proven_optimal() && plan.scope() == Scope::AllChoices;
    assert!(!is_proven || plan.pool_size() == 12, "{}", plan.pool_size());
}

#[test]
fn files_say_which_parts_are_optional() {
    let (problem, [a, b, c, _]) = concat();
    let mut file = serde_json::to_value(&problem).unwrap();
    assert_eq!(file["format"], "memplan-problem/2");
    let part = json!({"chunk": 1, "whole": 2, "offset": 64, "required": false});
    assert_eq!(file["parts"][1], part);
    assert_eq!(serde_json::from_value::<Problem>(file.clone()).unwrap(), problem);
    file["parts"][1]["required"] = true.into();
    let mixed: Problem = serde_json::from_value(file).unwrap();
    assert_eq!((mixed.parts().len(), mixed.optional_parts().len()), (1, 2));
    let both = problem.clone().concat(&problem, &[]).unwrap();
    let parts: Vec<_> = both.optional_parts().iter().map(|p| (p.part, p.whole, p.offset)).collect();
    let later = |chunk: ChunkId| ChunkId(chunk.0 + 4);
    assert_eq!(parts[..2], [(a, c, 0), (b, c, 64)]);
    assert_eq!(parts[3..5], [(later(a), later(c), 0), (later(b), later(c), 64)]);
}

/// A plan without them is one of the same problem without optional parts.
#[test]
fn options_and_strategies_copy_all() {
    let (problem, _) = concat();
    let copies = Planner::new().lowering(LoweringOptions::default().gathers(false));
    let plan = copies.plan(&problem).unwrap();
    assert_eq!((plan.pool_size(), plan.parts().len(), plan.scope()), (288, 0, Scope::AllChoices));
    let plan = Planner::new().plan(&problem).unwrap();
    assert_eq!((plan.pool_size(), plan.parts().len(), plan.proven_optimal()), (128, 3, true));
    let naive = Planner::new().strategy(Strategy::Naive).plan(&problem).unwrap();
    assert_eq!(
        (naive.pool_size(), naive.proven_optimal(), naive.scope()),
        (288, false, Scope::TheseChoices)
    );
}

/// What a plan lists must lie inside, and nothing else may.
#[rstest]
#[case::unlisted(|plan: &mut Plan| _ = plan.parts_mut().pop())]
#[case::elsewhere(|plan: &mut Plan| plan.parts_mut()[0].offset += 1)]
#[case::twice(|plan: &mut Plan| { let part = plan.parts()[0]; plan.parts_mut().push(part); })]
#[case::not_there(|plan: &mut Plan| { let at = plan.parts()[0].chunk; plan.chunks_mut()[at].offset += 1; })]
#[case::a_copy_of_nothing(|plan: &mut Plan| {
    let mut file = serde_json::to_value(&*plan).unwrap();
    file["copies"] = json!({"list": [{"output": "d", "input": "b", "size": 32}], "saved": 0});
    *plan = serde_json::from_value(file).unwrap();
})]
fn wrong_parts_are_found(#[case] spoil: fn(&mut Plan)) {
    let (problem, _) = concat();
    let mut plan = Planner::new().plan(&problem).unwrap();
    assert_eq!(verify(&problem, &plan), []);
    spoil(&mut plan);
    assert_ne!(verify(&problem, &plan), []);
}

#[rstest]
#[case::too_large(&[(2, 0, 0)], "part 'c' does not fit in 'a' at offset 0")]
#[case::itself(&[(0, 0, 0)], "chunk 'a' is a part of itself")]
#[case::twice(&[(0, 2, 0), (0, 2, 4)], "chunk 'a' is listed twice as a part of 'c'")]
#[case::overlap(&[(1, 2, 4), (0, 2, 0)], "optional parts 'a' and 'b' of 'c' overlap")]
#[case::dead(&[(0, 3, 0)], "optional part 'a' of 'd' is not alive when 'd' begins, so it could not be copied")]
#[case::unknown(&[(0, 9, 0)], "a part names chunk 9, which does not exist")]
#[case::ring(&[(0, 1, 0), (1, 0, 0)], "chunk 'a' is a part of itself")]
fn wrong_statements_are_named(#[case] parts: &[(u32, u32, u64)], #[case] expected: &str) {
    let mut problem = Problem::builder();
    problem.named_chunk("a", 0..3, 8);
    problem.named_chunk("b", 1..3, 8);
    problem.named_chunk("c", 2..4, 24);
    problem.named_chunk("d", 3..4, 8);
    for &(part, whole, offset) in parts {
        problem.optional_part(ChunkId(part), ChunkId(whole), offset);
    }
    assert_eq!(problem.build().unwrap_err().to_string(), expected);
}

/// Each output lies in the next one, so that nothing is copied.
#[test]
fn a_long_chain_of_concatenations_is_planned() {
    let mut problem = Problem::builder();
    let mut last = problem.chunk(0..3, 8);
    for layer in 1..300 {
        let new = problem.chunk(layer..layer + 2, 8);
        let whole = problem.chunk(layer + 1..layer + 3, 8 * (layer + 1));
        problem.optional_part(last, whole, 0).optional_part(new, whole, 8 * layer);
        last = whole;
    }
    let problem = problem.build().unwrap();
    let plan = Planner::new().limits(Limits::default().nodes(10_000)).plan(&problem).unwrap();
    assert_eq!(verify(&problem, &plan), []);
    assert_eq!((plan.pool_size(), plan.proven_optimal()), (8 * 300, true));
}

/// A shared chunk keeps its content all the time, so nothing else can lie inside it.
#[test]
fn optional_parts_of_shared_chunks_are_copied() {
    let (problem, [a, b, c, d]) = concat();
    let shared = [(c, c)];
    let both = problem.clone().concat(&problem, &shared).unwrap();
    let parts: Vec<_> = both.optional_parts().iter().map(|p| (p.part, p.whole)).collect();
    let later = |chunk: ChunkId| ChunkId(chunk.0 + if chunk > c { 3 } else { 4 });
    assert_eq!(parts, [(a, d), (later(a), later(d))]);
    let plan = Planner::new().plan(&both).unwrap();
    assert_eq!(verify(&both, &plan), []);
    assert!(both.optional_parts().iter().all(|part| part.part != b));
}
