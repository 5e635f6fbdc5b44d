//! memplan's plans beside those of the oracle: the choice that a plan has made, whether it runs, and the oracle's own
//! plan in memplan's form.

use std::collections::HashMap;

use arbitrary::Unstructured;
use memplan::{
    Plan, Planner, Strategy, TensorPlace,
    lower::LoweringOptions,
    problem::Pool,
    verify::{execute, verify},
};

use crate::common::{machine, seeds::bytes_of};

use super::{
    draw::Case,
    model::{Memory, Model, Steps},
    ties::{Link, Questions, choices},
    truth::Best,
};

fn lowering(case: &Case) -> LoweringOptions {
    LoweringOptions::default().inputs_in_pool(case.setting.inputs_in_pool)
}

/// The planner for the setting of a case.
pub fn planner(case: &Case) -> Planner<'static> {
    let planner = Planner::new().alignment(case.setting.alignment).lowering(lowering(case));
    match case.setting.pools {
        Some([fast, slow]) => {
            let pool = |name: &str, memory: Memory| {
                let pool = Pool::new(name).cost(memory.cost);
                memory.capacity.into_iter().fold(pool, Pool::capacity)
            };
            planner.pools([pool("fast", fast), pool("slow", slow)])
        }
        None => planner,
    }
}

/// The objective of a plan, as the oracle counts it.
pub fn objective(case: &Case, plan: &Plan) -> Vec<u128> {
    if case.setting.pools.is_some() { plan.objective() } else { vec![plan.pool_size().into()] }
}

/// Returns the first reason why a plan does not work.
pub fn fault(case: &Case, plan: &Plan) -> Option<String> {
    let ordered;
    let sequence = if plan.order().is_empty() {
        &case.sequence
    } else {
        ordered = case.sequence.permuted(plan.order()).unwrap();
        &ordered
    };
    for seed in 0..if sequence.streams() > 1 { 3 } else { 1 } {
        let bytes = bytes_of(seed);
        let run = machine::run(sequence, plan, &mut Unstructured::new(&bytes));
        if let Ok(Err(fault)) = run {
            return Some(fault);
        }
    }
    let found = verify(sequence, plan).into_iter().chain(execute(sequence, plan)).next();
    found.map(|violation| violation.to_string())
}

/// By tensor: the steps in which it is kept because a plan keeps its chunk as a whole. A chunk with windows is needed
/// byte by byte, and so is one that is written over in part, itself or as a part of another, although some of it is
/// still to be used.
pub fn kept(case: &Case, model: &Model, plan: &Plan) -> Vec<Steps> {
    let mut of_chunks = vec![0; plan.chunks().len()];
    let mut places = vec![None; model.tensors.len()];
    for tensor in plan.tensors() {
        if let TensorPlace::Pool { chunk, .. } = tensor.place {
            let id = case.sequence.tensor_id(&tensor.name).unwrap().index();
            places[id] = Some(chunk);
            of_chunks[chunk] |= model.or_first(model.uses(id, |_| false), id);
        }
    }
    for (at, of_chunk) in of_chunks.iter_mut().enumerate() {
        if plan.windows(at).next().is_some() {
            *of_chunk = 0;
        }
    }
    for chunk in plan.chunks() {
        let step = chunk.begin as usize;
        let mut written: Vec<usize> = chunk.overwrites.iter().map(|link| link.chunk).collect();
        while let Some(one) = written.pop() {
            if !model.are_over(of_chunks[one] & !(1 << step), Some(step)) {
                of_chunks[one] = 0;
            }
            written.extend(
                plan.parts().iter().filter(|part| part.whole == one).map(|part| part.chunk),
            );
        }
    }
    places.into_iter().map(|chunk| chunk.map_or(0, |chunk| of_chunks[chunk])).collect()
}

/// The ties that a plan has taken: several choices where an output lies as two of its ties say.
pub fn choices_of(case: &Case, questions: &Questions, plan: &Plan) -> Vec<Vec<Link>> {
    let mut places: HashMap<usize, (usize, i64)> = HashMap::new();
    for tensor in plan.tensors() {
        let id = |name: &str| case.sequence.tensor_id(name).unwrap().index();
        let place = match &tensor.place {
            TensorPlace::Pool { chunk, offset } => (plan.chunks()[*chunk].pool, *offset as i64),
            TensorPlace::Supplied { tensor, offset } => (usize::MAX - id(tensor), *offset as i64),
            _ => continue,
        };
        places.insert(id(&tensor.name), place);
    }
    let is_taken = |link: &Link| {
        let apart = |tensor: usize| (usize::MAX - tensor, 0);
        let place = |tensor: usize| places.get(&tensor).copied().unwrap_or(apart(tensor));
        let (one, other) = (place(link.tensor), place(link.to));
        one == (other.0, other.1 + link.distance)
    };
    let answers = |answers: &Vec<Option<Link>>| {
        let taken = |answer: &&Option<Link>| answer.is_some_and(|link| is_taken(&link));
        let taken: Vec<Option<Link>> = answers.iter().filter(taken).copied().collect();
        match &taken[..] {
            [] if answers.contains(&None) => vec![None],
            [] => vec![answers[0]],
            _ => taken,
        }
    };
    let taken: Questions = questions.iter().map(answers).collect();
    choices(&taken).expect("a choice of all choices")
}

/// The oracle's plan as memplan's, with the places of tensors and workspaces; its chunks and figures mean nothing.
/// `None` if memplan has no plan of the sequence at all.
pub fn plan_of(case: &Case, model: &Model, best: &Best) -> Option<Plan> {
    let apart = lowering(case).inplace(false).gathers(false);
    let strategy = if case.setting.pools.is_some() { Strategy::Best } else { Strategy::Naive };
    let mut plan = planner(case).lowering(apart).strategy(strategy).plan(&case.sequence).ok()?;
    let name = |tensor: usize| case.sequence.tensors()[tensor].name.clone();
    let is_of_tensor = |chunk: usize| {
        let places = plan.tensors().iter().map(|tensor| &tensor.place);
        places
            .into_iter()
            .any(|place| matches!(place, TensorPlace::Pool { chunk: of, .. } if *of == chunk))
    };
    let mut chunks = Vec::new();
    for chunk in (0..plan.chunks().len()).filter(|&chunk| !is_of_tensor(chunk)) {
        let mut chunk = plan.chunks()[chunk].clone();
        let outputs = &model.operators[chunk.begin as usize].outputs;
        let (pool, address) = best.places[*outputs.iter().find(|&&one| one >= model.named)?]?;
        (chunk.pool, chunk.offset) = (pool, address as u64);
        chunks.push(chunk);
    }
    let (any, count) = (plan.chunks().first().cloned(), plan.chunks().len());
    for tensor in plan.tensors_mut() {
        let at = case.sequence.tensor_id(&tensor.name)?.index();
        tensor.place = match (best.places[at], best.outside[at]) {
            (Some((pool, address)), _) => {
                // Every tensor has a chunk of its own.
                let mut chunk = any.clone()?;
                (chunk.pool, chunk.offset) = (pool, address as u64);
                (chunk.name, chunk.size, chunk.id) =
                    (tensor.name.clone(), tensor.size, (count + at) as u64);
                chunks.push(chunk);
                TensorPlace::Pool { chunk: chunks.len() - 1, offset: address as u64 }
            }
            (_, Some((outside, address))) => {
                TensorPlace::Supplied { tensor: name(outside), offset: address as u64 }
            }
            _ => return None,
        };
    }
    *plan.chunks_mut() = chunks;
    // Nothing is lost if operators write the bytes that their inputs have there already.
    plan.parts_mut().clear();
    match &mut plan.pools_mut()[..] {
        [fast, slow] => {
            (fast.size, slow.size) = (best.objective[2] as u64, best.objective[1] as u64);
            *plan.pool_size_mut() = fast.size + slow.size;
        }
        _ => *plan.pool_size_mut() = best.pool(),
    }
    Some(plan)
}

/// Returns the first reason why the places of the oracle's plan do not work.
pub fn fault_of_places(case: &Case, plan: &Plan) -> Option<String> {
    for seed in 0..if case.sequence.streams() > 1 { 5 } else { 1 } {
        let bytes = bytes_of(seed);
        let run = machine::run(&case.sequence, plan, &mut Unstructured::new(&bytes));
        if let Ok(Err(fault)) = run {
            return Some(fault);
        }
    }
    // The pools of a plan are compared with its chunks.
    if plan.pools().is_empty() {
        return execute(&case.sequence, plan).first().map(ToString::to_string);
    }
    None
}
