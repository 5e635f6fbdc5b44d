//! Shows all about one graph: `MEMPLAN_SHOW='TwoPools 330'`, or `MEMPLAN_SHOW='file.json 64'` with an alignment.

use std::fs;

use memplan::OpSequence;

use super::{
    claims::{Claim, Truth, check},
    draw::{Case, World, case},
    model::Setting,
    plans::{objective, planner},
    truth::Best,
};

const WORLDS: [World; 4] = [World::OneStream, World::Orders, World::TwoStreams, World::TwoPools];

fn wanted(text: &str) -> (Case, World) {
    let (first, second) = text.split_once(' ').unwrap_or((text, "1"));
    let number: u64 = second.parse().unwrap();
    if let Some(world) = WORLDS.into_iter().find(|world| format!("{world:?}") == first) {
        return (case(world, number), world);
    }
    let sequence: OpSequence = serde_json::from_str(&fs::read_to_string(first).unwrap()).unwrap();
    let world = if sequence.streams() > 1 { World::TwoStreams } else { World::Orders };
    let setting = Setting { alignment: number, inputs_in_pool: false, pools: None };
    (Case { sequence, setting }, world)
}

fn show(case: &Case, best: &Best) {
    let name = |tensor: usize| match case.sequence.tensors().get(tensor) {
        Some(tensor) => tensor.name.to_string(),
        None => format!("workspace {tensor}"),
    };
    println!("  best: {:?}", best.objective);
    for link in &best.links {
        let (tensor, to) = (name(link.tensor), name(link.to));
        println!("    {:?}: {tensor} at {to} + {}", link.kind, link.distance);
    }
    for (tensor, place) in best.places.iter().enumerate() {
        if let Some((pool, address)) = place {
            println!("    {} at {address} of pool {pool}", name(tensor));
        }
    }
}

#[test]
#[ignore = "a report"]
fn graph() {
    let Ok(text) = std::env::var("MEMPLAN_SHOW") else { return };
    let (case, world) = wanted(&text);
    println!(
        "{}\noptions: {}",
        serde_json::to_string(&case.sequence).unwrap(),
        case.setting.options()
    );
    let truth = Truth::of(&case, world).unwrap();
    match &truth.best {
        Some(best) => show(&case, best),
        None => println!("  no plan exists"),
    }
    if let Some(order) = &truth.order {
        println!("  in the order {:?}", order.order);
        show(&case, &order.best);
    }
    let plan = planner(&case).plan(&case.sequence);
    let text = plan.map_or_else(
        |error| error.to_string(),
        |plan| format!("{:?}, bound {}", objective(&case, &plan), plan.lower_bound()),
    );
    println!("  memplan: {text}");
    for claim in Claim::ALL {
        let finding = check(claim, &case, &truth).unwrap();
        for (_, text) in finding.wrong {
            println!("  {claim:?} is wrong: {text}");
        }
    }
}
