//! The optimal planner.
#![allow(missing_docs, clippy::pedantic)]

mod instance;
mod skyline;
mod tree;

use crate::Problem;
use instance::Instance;

pub fn lab(problem: &Problem) {
    let boxes: Vec<_> = problem.roots().map(|r| { let b = problem.bounding_box(r); (b.begin, b.end, b.high, r) }).collect();
    let inst = Instance::new(&boxes);
    let env = |k: &str, d: u64| std::env::var(k).ok().map_or(d, |x| x.parse().unwrap());
    let limit = env("LIMIT", inst.bound());
    let budget = env("BUDGET", 1_000_000);
    let unit = env("UNIT", 1000);
    println!("  items {} sections {} bound {} limit {}", inst.items.len(), inst.sections, inst.bound(), limit);
    let width = |i: &instance::Item| f64::from(i.end - i.first);
    let keys: [&dyn Fn(&instance::Item) -> f64; 6] = [
        &|i| i.size as f64,
        &|i| width(i) * 1e6 + i.size as f64,
        &|i| -width(i) * 1e6 + i.size as f64,
        &|i| width(i) * i.size as f64,
        &|i| width(i).sqrt() * i.size as f64,
        &|i| i.size as f64 / width(i),
    ];
    let t = std::time::Instant::now();
    let mut table = tree::Table::default();
    let mut nodes = 0;
    let mut weight = vec![0; inst.sections];
    let mut round = 0u64;
    let mut rng = env("SEED", 1);
    let mut next = move || { rng ^= rng << 13; rng ^= rng >> 7; rng ^= rng << 17; (rng >> 11) as f64 / (1u64 << 53) as f64 };
    while nodes < budget {
        let k = (round % 6) as usize;
        let lap = round / 6;
        let noise = if lap == 0 && env("SEED", 1) == 1 { 0.0 } else { env("NOISE", 60) as f64 / 100.0 };
        let mut order: Vec<(f64, usize)> = (0..inst.items.len()).map(|i| {
            let key = keys[k](&inst.items[i]);
            let u = next();
            (key + noise * key.abs() * (u - 0.5), i)
        }).collect();
        order.sort_by(|a, b| b.0.total_cmp(&a.0));
        let mut rank = vec![0u32; order.len()];
        for (j, &(_, i)) in order.iter().enumerate() { rank[i] = j as u32; }
        let mut sky = skyline::Skyline::new(&inst, limit);
        sky.wmode = env("WMODE", 0);
        std::mem::swap(&mut sky.weight, &mut weight);
        sky.climb = env("CLIMB", 0);
        sky.dom = env("DOM", 0) > 0;
        sky.mode = env("MODE", 0);
        let luby = { let mut i = lap + 1; loop { let mut p = 1; while p - 1 < i { p *= 2; } if p - 1 == i { break p / 2; } i -= p / 2 - 1; } };
        let b = unit * luby;
        let (end, stats) = tree::run(&inst, &mut sky, &rank, b, &mut table);
        std::mem::swap(&mut sky.weight, &mut weight);
        nodes += stats.nodes;
        if end != tree::End::Unknown {
            if end == tree::End::Yes {
                for (i, a) in inst.items.iter().enumerate() {
                    assert!(sky.placed[i] + a.size <= limit);
                    for (j, b) in inst.items.iter().enumerate().skip(i + 1) {
                        assert!(a.end <= b.first || b.end <= a.first || sky.placed[i] + a.size <= sky.placed[j] || sky.placed[j] + b.size <= sky.placed[i]);
                    }
                }
            }
            println!("   {end:?} in round {round} (key {k}, budget {b}) nodes {nodes} table {} {:.3}s", table.len(), t.elapsed().as_secs_f64());
            return;
        }
        round += 1;
    }
    println!("   unknown in {round} rounds nodes {nodes} table {} {:.3}s", table.len(), t.elapsed().as_secs_f64());
}
