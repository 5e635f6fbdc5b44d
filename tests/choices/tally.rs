//! Each claim on many graphs, as a test, and all of them as a table.

use std::{collections::BTreeMap, sync::OnceLock};

use super::{
    claims::{Claim, Truth, check},
    common::seeds::seeds,
    draw::{Case, Mix, World, case},
    packing::TooMany,
    shrink::shrunk,
};

/// What was found out about a claim.
#[derive(Default)]
struct Tally {
    graphs: u64,
    asked: u64,
    wrong: u64,
    by: f64,
    too_many: u64,
    /// The graph with the fewest operators, by its number, and what is wrong with it.
    smallest: Option<(usize, u64, String)>,
}

impl Tally {
    fn add(&mut self, claim: Claim, number: u64, case: &Case, truth: &Truth) {
        match check(claim, case, truth) {
            Ok(finding) => {
                self.graphs += 1;
                self.asked += finding.asked;
                for (by, text) in finding.wrong {
                    self.wrong += 1;
                    self.by = self.by.max(by);
                    let operators = case.sequence.operators().len();
                    if self.smallest.as_ref().is_none_or(|smallest| operators < smallest.0) {
                        self.smallest = Some((operators, number, text));
                    }
                }
            }
            Err(_) => self.too_many += 1,
        }
    }

    fn row(&self, name: &str) -> String {
        let Self { graphs, asked, wrong, by, too_many, .. } = self;
        let share = 100.0 * *wrong as f64 / (*asked).max(1) as f64;
        format!("| {name} | {graphs} | {wrong} of {asked} | {share:.2} % | {by:.2}x | {too_many} |")
    }
}

/// Returns whether a claim is wrong on a graph, with the reason.
fn fault(claim: Claim, world: World, case: &Case) -> Option<String> {
    let truth = Truth::of(case, world).ok()?;
    let finding = check(claim, case, &truth).ok()?;
    finding.wrong.into_iter().next().map(|(_, text)| text)
}

/// Shrinks a graph, and describes it as a sequence file.
fn described(claim: Claim, world: World, number: u64) -> String {
    let small = shrunk(&case(world, number), &|case| fault(claim, world, case).is_some());
    let text = fault(claim, world, &small).unwrap_or_default();
    let sequence = serde_json::to_string(&small.sequence).unwrap();
    let options = small.setting.options();
    format!("graph {number} of {world:?}: {text}\noptions: {options}\n{sequence}")
}

/// A graph, and the truth about it.
type Known = (Case, Result<Truth, TooMany>);

/// The first graphs of each kind, which many claims are checked on: finding out the truth takes longest.
static KNOWN: [[OnceLock<Known>; 1000]; 4] = [const { [const { OnceLock::new() }; 1000] }; 4];

fn find_out(world: World, number: u64) -> Known {
    let case = case(world, number);
    let truth = Truth::of(&case, world);
    (case, truth)
}

/// Checks a claim on a fixed number of graphs, or as long as there is time.
fn hold(claim: Claim, world: World, count: u64) {
    let mut tally = Tally::default();
    for number in seeds(count) {
        let new = OnceLock::new();
        let known = KNOWN[world as usize].get(number as usize).unwrap_or(&new);
        let (case, truth) = known.get_or_init(|| find_out(world, number));
        match truth {
            Ok(truth) => tally.add(claim, number, case, truth),
            Err(_) => tally.too_many += 1,
        }
    }
    eprintln!("{}", tally.row(&format!("{claim:?} | {world:?}")));
    assert!(tally.asked > 0 && tally.too_many * 10 <= tally.graphs, "too few graphs");
    if tally.wrong * 100 > tally.asked * claim.allowed() {
        let (_, number, _) = tally.smallest.unwrap();
        panic!("{claim:?} is wrong\n{}", described(claim, world, number));
    }
}

/// Declares a test for each claim and kind of graph.
macro_rules! claims {
    ($($(#[$attribute:meta])* $name:ident: $claim:ident, $world:ident, $count:expr;)*) => {
        $(
            #[test]
            $(#[$attribute])*
            fn $name() {
                hold(Claim::$claim, World::$world, $count);
            }
        )*
    };
}

claims! {
    the_oracle_is_right: OracleIsRight, OneStream, 250;
    the_oracle_is_right_on_streams: OracleIsRight, TwoStreams, 125;
    the_oracle_is_right_in_pools: OracleIsRight, TwoPools, 100;
    plans_run: Runs, OneStream, 75;
    plans_run_on_streams: Runs, TwoStreams, 75;
    plans_run_in_pools: Runs, TwoPools, 75;
    what_has_a_plan_is_planned: Planned, OneStream, 250;
    what_has_a_plan_is_planned_on_streams: Planned, TwoStreams, 100;
    what_has_a_plan_is_planned_in_pools: Planned, TwoPools, 100;
    what_has_no_plan: NoPlan, TwoPools, 250;
    bounds: Bound, OneStream, 250;
    bounds_on_streams: Bound, TwoStreams, 125;
    bounds_in_pools: Bound, TwoPools, 125;
    bounds_of_these_choices: BoundOfTheseChoices, OneStream, 125;
    bounds_of_these_choices_on_streams: BoundOfTheseChoices, TwoStreams, 125;
    bounds_of_these_choices_in_pools: BoundOfTheseChoices, TwoPools, 125;
    no_that_fits_not: Fit, OneStream, 75;
    no_that_fits_not_on_streams: Fit, TwoStreams, 75;
    proofs_of_strategies: Strategies, OneStream, 37;
    no_order_is_better: OrderBound, Orders, 50;
    no_pool_is_below_the_bytes_alive: PoolBelowAlive, Orders, 50;
    pools_are_small: Quality, OneStream, 250;
    pools_are_small_on_streams: Quality, TwoStreams, 125;
    traffic_is_little: Quality, TwoPools, 150;
    pools_of_orders_are_small: OrderQuality, Orders, 400;
}

/// All claims on the same graphs. `MEMPLAN_SHRINK` also prints the smallest graph of each kind on which one is wrong.
#[test]
#[ignore = "a report"]
fn table() {
    let mut tallies: BTreeMap<(Claim, World, Option<Mix>), Tally> = BTreeMap::new();
    let worlds = [World::OneStream, World::Orders, World::TwoStreams, World::TwoPools];
    for number in seeds(140) {
        for world in worlds {
            let case = case(world, number);
            let truth = Truth::of(&case, world);
            for claim in Claim::ALL.into_iter().filter(|claim| claim.is_about(world)) {
                for mix in [None, Some(Mix::of(number))] {
                    let tally = tallies.entry((claim, world, mix)).or_default();
                    match &truth {
                        Ok(truth) => tally.add(claim, number, &case, truth),
                        Err(_) => tally.too_many += 1,
                    }
                }
            }
        }
    }
    println!("| claim | graphs | ties | tried | wrong in | share | by up to | too large |");
    println!("| --- | --- | --- | ---: | ---: | ---: | ---: | ---: |");
    let is_shown = |mix: Option<Mix>, tally: &Tally| mix.is_none() || tally.wrong > 0;
    for (&(claim, world, mix), tally) in
        tallies.iter().filter(|(key, tally)| is_shown(key.2, tally))
    {
        let mix = mix.map_or_else(|| "every graph".to_owned(), |mix| format!("{mix:?}"));
        println!("{}", tally.row(&format!("{claim:?} | {world:?} | {mix}")));
    }
    if std::env::var_os("MEMPLAN_SHRINK").is_some() {
        for (&(claim, world, mix), tally) in &tallies {
            if let (Some(mix), Some((_, number, _))) = (mix, &tally.smallest) {
                println!("\n{claim:?} {mix:?}: {}", described(claim, world, *number));
            }
        }
    }
}
