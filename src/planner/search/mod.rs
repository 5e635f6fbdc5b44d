//! The optimal planner.
#![allow(missing_docs, clippy::pedantic, dead_code)]

mod instance;
mod refuted;
mod rounds;
mod skyline;
mod tree;
mod valley;

use crate::Problem;
use instance::Instance;

pub fn lab(problem: &Problem) {
    let roots: Vec<_> = problem.roots().collect();
    let inst = Instance::new(problem, &roots);
    let env = |k: &str, d: u64| std::env::var(k).ok().map_or(d, |x| x.parse().unwrap());
    let limit = env("LIMIT", inst.bound());
    println!("  items {} sections {} bound {} limit {}", inst.items.len(), inst.sections, inst.bound(), limit);
    let t = std::time::Instant::now();
    let mut rounds = rounds::Rounds::new(&inst);
    rounds.skip(env("SEED", 0));
    let end = rounds.decide(limit, env("BUDGET", 4_000_000), &mut || false);
    let dt = t.elapsed().as_secs_f64();
    println!("   {end:?} nodes {} table {} {:.4}s  {:.0} knodes/s", rounds.nodes(), 0, dt, rounds.nodes() as f64 / dt / 1e3);
    if end == tree::End::Packed {
        let at = rounds.offsets();
        for (i, a) in inst.items.iter().enumerate() {
            assert!(at[i] + a.size <= limit);
            for (j, b) in inst.items.iter().enumerate().skip(i + 1) {
                assert!(a.end <= b.first || b.end <= a.first || at[i] + a.size <= at[j] || at[j] + b.size <= at[i]);
            }
        }
    }
}
