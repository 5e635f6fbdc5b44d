//! A runtime for plans in which every byte of every memory is a value.
//!
//! Each operator makes bytes that no other operator has made. The machine keeps the values that every tensor
//! must have, whatever its place, and looks each of them up in the memory at the place that the plan gives.
//! It reads the operators and the offsets of tensors, workspaces and bodies, and nothing else: no lifetimes,
//! no links, and none of memplan's own checks.
//!
//! An operator reads all of its inputs. Only if it has no workspace and all of its outputs are views in place, it reads
//! no more of the inputs that these show than they show. It has two phases. In the first it reads its inputs, fills its
//! workspace, runs its bodies and writes its outputs; in the second all of these must still be there, and it writes its
//! outputs again. Other streams take turns with it between the two.

mod frame;

use std::collections::{BTreeSet, HashMap};

use arbitrary::{Result, Unstructured};
use frame::{
    Frame, Memory, Place, Value, around, check_required, may_destroy, only_shown, unwritten,
    update_states,
};
use memplan::{
    OpSequence, Plan, TensorPlace,
    sequence::{Dependency, Origin, TensorId},
};

/// A reason why a plan does not work.
pub type Fault = String;

/// Whether a plan has worked so far.
pub type Outcome = std::result::Result<(), Fault>;

/// Runs a plan on random bodies and in a random order of the streams.
pub fn run(sequence: &OpSequence, plan: &Plan, random: &mut Unstructured<'_>) -> Result<Outcome> {
    let mut memory = Memory { bytes: Vec::new(), sizes: Vec::new(), last: 0 };
    let mut pools: Vec<Place> = Vec::new();
    for pool in plan.pools() {
        // The buffers of a row lie at multiples of their size.
        pools.push((memory.add(pool.largest.is_none().then_some(pool.size)), 0));
    }
    if pools.is_empty() {
        pools.push((memory.add(Some(plan.pool_size())), 0));
    }
    let mut machine = Machine { memory, updated: BTreeSet::new(), random };
    let mut frames = Vec::new();
    match machine.frame(sequence, plan, &pools, Vec::new()) {
        Ok(frame) => frames.push(frame),
        Err(fault) => return Ok(Err(fault)),
    }
    machine.run(&mut frames)
}

struct Machine<'m, 'r> {
    memory: Memory,
    /// The bytes around bodies that they have updated since the operator of the outermost began.
    updated: BTreeSet<Place>,
    random: &'m mut Unstructured<'r>,
}

impl Machine<'_, '_> {
    /// Supplies the inputs and weights of a sequence. `given` are those that have a place and values already.
    fn frame<'s>(
        &mut self,
        sequence: &'s OpSequence,
        plan: &'s Plan,
        pools: &[Place],
        given: Vec<(usize, Place, Vec<Value>)>,
    ) -> std::result::Result<Frame<'s>, Fault> {
        let count = sequence.tensors().len();
        let mut frame = Frame {
            sequence,
            plan,
            places: vec![None; count],
            values: vec![Vec::new(); count],
            states: HashMap::new(),
            workspaces: HashMap::new(),
            updated: BTreeSet::new(),
        };
        let at = |pool: usize, offset: u64| {
            let (memory, base) = pools[pool];
            (memory, base + offset)
        };
        let is_supplied =
            |tensor: usize| !matches!(sequence.tensors()[tensor].origin, Origin::Output { .. });
        let mut planned = HashMap::new();
        for tensor in plan.tensors() {
            planned.insert(&*tensor.name, &tensor.place);
        }
        let given: HashMap<usize, (Place, Vec<Value>)> =
            given.into_iter().map(|(tensor, place, values)| (tensor, (place, values))).collect();
        for tensor in (0..count).filter(|&tensor| is_supplied(tensor)) {
            let (size, name) = (frame.size(tensor), &*sequence.tensors()[tensor].name);
            let (place, values) = match (given.get(&tensor), planned.get(name)) {
                (Some((place, values)), _) => (*place, values.clone()),
                (None, Some(&&TensorPlace::Pool { chunk, offset })) => {
                    (at(plan.chunks()[chunk].pool, offset), self.memory.fresh(size))
                }
                (None, _) => ((self.memory.add(Some(size)), 0), self.memory.fresh(size)),
            };
            let is_input = sequence.tensors()[tensor].origin == Origin::Input;
            if is_input || !given.contains_key(&tensor) {
                self.memory.store(place, &values)?;
            }
            frame.places[tensor] = Some(place);
            let is_in_pool = matches!(planned.get(name), Some(TensorPlace::Pool { .. }));
            // An input in the pool is not kept.
            if !is_in_pool || !is_input {
                frame.states.insert(tensor, values.clone());
            }
            frame.values[tensor] = values;
        }
        for tensor in (0..count).filter(|&tensor| !is_supplied(tensor)) {
            let name = &*sequence.tensors()[tensor].name;
            let place = match planned.get(name) {
                Some(&&TensorPlace::Pool { chunk, offset }) => {
                    Some(at(plan.chunks()[chunk].pool, offset))
                }
                Some(TensorPlace::Supplied { tensor, offset }) => {
                    let supplied = sequence.tensor_id(tensor).ok_or("no such supplied tensor")?;
                    frame.places[supplied.index()].map(|(memory, low)| (memory, low + offset))
                }
                _ if frame.size(tensor) == 0 => None,
                _ => return Err(format!("'{name}' has no place")),
            };
            frame.places[tensor] = place;
        }
        // A chunk without tensors is the workspace of the operator that runs when it begins.
        let mut is_workspace = vec![true; plan.chunks().len()];
        for tensor in plan.tensors().iter().filter(|tensor| tensor.size > 0) {
            if let TensorPlace::Pool { chunk, .. } = tensor.place {
                is_workspace[chunk] = false;
            }
        }
        for (chunk, _) in plan.chunks().iter().zip(is_workspace).filter(|(_, is_it)| *is_it) {
            let (place, step) = (at(chunk.pool, chunk.offset), usize::try_from(chunk.begin));
            let old =
                frame.workspaces.insert(step.unwrap(), (place, vec![0; chunk_size(chunk.size)]));
            if old.is_some() {
                return Err(format!("two workspaces in step {}", chunk.begin));
            }
        }
        Ok(frame)
    }

    /// Runs the last of some frames; those before it are the sequences around it.
    fn run(&mut self, frames: &mut Vec<Frame<'_>>) -> Result<Outcome> {
        let frame = frames.last().unwrap();
        let sequence = frame.sequence;
        let count = sequence.operators().len();
        let waits = sequence.waits();
        let (mut is_begun, mut is_over) = (vec![false; count], vec![false; count]);
        while let Some(first) = is_over.iter().position(|is_over| !is_over) {
            let stream = |step: usize| sequence.operators()[step].stream;
            let can_begin = |step: usize| {
                !is_begun[step]
                    && waits[step].iter().all(|&before| is_over[before])
                    && (first..step).all(|before| stream(before) != stream(step) || is_over[before])
            };
            let can_end = |step: usize| is_begun[step] && !is_over[step];
            let ready: Vec<usize> =
                (first..count).filter(|&step| can_begin(step) || can_end(step)).collect();
            let step = *self.random.choose(&ready)?;
            let fault = if is_begun[step] {
                is_over[step] = true;
                self.end(frames.last().unwrap(), step)
            } else {
                is_begun[step] = true;
                self.begin(frames, step)?
            };
            if let Err(fault) = fault {
                return Ok(Err(format!("{}: {fault}", sequence.operator_name(step))));
            }
        }
        let frame = frames.last().unwrap();
        for output in sequence.outputs() {
            if let Err(fault) = self.is_whole(frame, output.index()) {
                return Ok(Err(format!("in the end: {fault}")));
            }
        }
        for (&tensor, state) in &frame.states {
            let place = frame.places[tensor].unwrap();
            // A body keeps what it has updated; it may not even read the rest.
            if frames.len() > 1 && !frame.updated.iter().any(|&(home, _)| home == tensor) {
                continue;
            }
            if self.memory.load(place, state.len() as u64) != *state {
                return Ok(Err(format!(
                    "in the end: an update of '{}' is lost",
                    frame.name(tensor)
                )));
            }
        }
        Ok(Ok(()))
    }

    fn is_whole(&self, frame: &Frame<'_>, tensor: usize) -> Outcome {
        match self.damage(frame, tensor).first() {
            None => Ok(()),
            Some(at) => Err(format!("byte {at} of '{}' is destroyed", frame.name(tensor))),
        }
    }

    /// The bytes of a tensor, counted from its start, that do not have their values.
    fn damage(&self, frame: &Frame<'_>, tensor: usize) -> Vec<u64> {
        let Some(place) = frame.places[tensor] else { return Vec::new() };
        let values = &frame.values[tensor];
        let found = self.memory.load(place, values.len() as u64);
        let pairs = (0..).zip(found.iter().zip(values));
        pairs.filter(|(_, (found, value))| found != value).map(|(at, _)| at).collect()
    }

    fn begin(&mut self, frames: &mut Vec<Frame<'_>>, step: usize) -> Result<Outcome> {
        let frame = frames.last().unwrap();
        let operator = &frame.sequence.operators()[step];
        let only_shown = only_shown(frame, operator);
        for input in operator.inputs.iter().map(|input| input.index()) {
            if !only_shown.contains(&input)
                && let Err(fault) = self.is_whole(frame, input)
            {
                return Ok(Err(fault));
            }
        }
        let room = frame.workspaces.get(&step).map(|(place, values)| (*place, values.len() as u64));
        if operator.workspace > room.map_or(0, |room| room.1) {
            return Ok(Err("too little workspace".to_owned()));
        }
        if let Some((place, size)) = room {
            let garbage = self.memory.fresh(size);
            if let Err(fault) = self.memory.store(place, &garbage) {
                return Ok(Err(fault));
            }
        }
        if let Err(fault) = self.run_bodies(frames, step, room.map(|room| room.0))? {
            return Ok(Err(format!("in a body: {fault}")));
        }
        let frame = frames.last_mut().unwrap();
        if let Some((place, size)) = room {
            let values = self.memory.load(place, size);
            frame.workspaces.insert(step, (place, values));
        }
        let operator = &frame.sequence.operators()[step];
        for &output in &operator.outputs {
            let values = self.values(frame, output);
            frame.values[output.index()] = values;
        }
        Ok(self.write(frame, step, true).and_then(|()| {
            update_states(frame, operator)?;
            check_required(frame, operator)?;
            self.holds(frame, step)
        }))
    }

    fn end(&mut self, frame: &Frame<'_>, step: usize) -> Outcome {
        self.holds(frame, step)?;
        self.write(frame, step, false)?;
        self.holds(frame, step)
    }

    /// The values of an output.
    fn values(&mut self, frame: &Frame<'_>, output: TensorId) -> Vec<Value> {
        let size = frame.size(output.index());
        let Origin::Output { dependency, .. } = &frame.sequence.tensor(output).origin else {
            unreachable!("an output has an operator")
        };
        match dependency {
            Dependency::Reads { input, offset, .. } => {
                let from = usize::try_from(*offset).unwrap();
                frame.values[input.index()][from..from + usize::try_from(size).unwrap()].to_vec()
            }
            Dependency::Gathers(gathers) => {
                let mut values = self.memory.fresh(size);
                for gather in gathers {
                    let (part, from) = (
                        &frame.values[gather.input.index()],
                        usize::try_from(gather.offset).unwrap(),
                    );
                    values[from..from + part.len()].copy_from_slice(part);
                }
                values
            }
            _ => self.memory.fresh(size),
        }
    }

    /// Writes the outputs of an operator. In the first phase, inputs may be destroyed only as declared.
    fn write(&mut self, frame: &Frame<'_>, step: usize, is_first: bool) -> Outcome {
        let operator = &frame.sequence.operators()[step];
        let mut writers: HashMap<Place, usize> = HashMap::new();
        for output in operator.outputs.iter().map(|output| output.index()) {
            let Some((memory, low)) = frame.places[output] else { continue };
            let kept = unwritten(frame, output);
            let bytes = (0..).zip(&frame.values[output]).filter(|(at, _)| !kept.contains(at));
            for (at, &value) in bytes {
                self.memory.store((memory, low + at), &[value])?;
                writers.insert((memory, low + at), output);
            }
        }
        let inputs: BTreeSet<usize> = operator.inputs.iter().map(|input| input.index()).collect();
        let inputs = inputs.difference(&only_shown(frame, operator)).copied().collect::<Vec<_>>();
        let mut destroyed: HashMap<usize, usize> = HashMap::new();
        for input in inputs {
            let damage = self.damage(frame, input);
            let Some((memory, low)) = frame.places[input] else { continue };
            for at in damage {
                let Some(&writer) = writers.get(&(memory, low + at)) else {
                    return Err(format!("byte {at} of the input '{}' is lost", frame.name(input)));
                };
                if is_first && !may_destroy(frame, writer, input, &mut destroyed) {
                    let (writer, input) = (frame.name(writer), frame.name(input));
                    return Err(format!("'{writer}' destroys byte {at} of the input '{input}'"));
                }
            }
        }
        Ok(())
    }

    /// Checks that the outputs and the workspace of an operator are there while it runs.
    fn holds(&self, frame: &Frame<'_>, step: usize) -> Outcome {
        let operator = &frame.sequence.operators()[step];
        for output in &operator.outputs {
            self.is_whole(frame, output.index())?;
        }
        match frame.workspaces.get(&step) {
            Some((place, values)) if self.memory.load(*place, values.len() as u64) != *values => {
                Err("the workspace is destroyed".to_owned())
            }
            _ => Ok(()),
        }
    }

    /// Runs bodies of an operator, each once or several times, in any order.
    fn run_bodies(
        &mut self,
        frames: &mut Vec<Frame<'_>>,
        step: usize,
        room: Option<Place>,
    ) -> Result<Outcome> {
        let frame = frames.last().unwrap();
        let (sequence, plan) = (frame.sequence, frame.plan);
        let bodies = &sequence.operators()[step].bodies;
        if bodies.is_empty() {
            return Ok(Ok(()));
        }
        if frames.len() == 1 {
            self.updated.clear();
        }
        let is_of = |body: usize| {
            move |planned: &&memplan::PlannedBody| {
                (planned.step, planned.body) == (step as u64, body)
            }
        };
        for _ in 0..self.random.int_in_range(1..=3)? {
            let body = self.random.choose_index(bodies.len())?;
            let Some(planned) = plan.bodies().iter().find(is_of(body)) else {
                return Ok(Err(format!("body {body} has no plan")));
            };
            let body = &bodies[body];
            let (memory, start) = room.unwrap_or((0, 0));
            let mut given = Vec::new();
            let mut at = start;
            for (tensor, one) in body.tensors().iter().enumerate() {
                let size = one.size.unwrap();
                if one.origin == Origin::Input && size > 0 {
                    given.push((tensor, (memory, at), self.memory.fresh(size)));
                    at +=
                        (size + planned.plan.padding()).next_multiple_of(planned.plan.alignment());
                } else if one.origin == Origin::Weight
                    && let Some((level, around)) = around(frames, &one.name)
                {
                    let Some(place) = frames[level].places[around] else { continue };
                    let mut values = self.memory.load(place, size);
                    // An output has no values yet, and bodies may have updated others.
                    for ((at, value), &outer) in
                        (0..).zip(&mut values).zip(&frames[level].values[around])
                    {
                        if !self.updated.contains(&(place.0, place.1 + at)) {
                            *value = outer;
                        }
                    }
                    given.push((tensor, place, values));
                }
            }
            if at - start != planned.inputs {
                return Ok(Err(format!("the inputs of a body take {}", at - start)));
            }
            if room.is_none() && planned.inputs + planned.plan.pool_size() > 0 {
                return Ok(Err("a body has no room".to_owned()));
            }
            if let Some((_, size)) = room.zip(frames.last().unwrap().workspaces.get(&step))
                && planned.inputs + planned.plan.pool_size() > size.1.len() as u64
            {
                return Ok(Err("a body has too little room".to_owned()));
            }
            let inner = match self.frame(body, &planned.plan, &[(memory, at)], given) {
                Ok(inner) => inner,
                Err(fault) => return Ok(Err(fault)),
            };
            frames.push(inner);
            let outcome = self.run(frames)?;
            let inner = frames.pop().unwrap();
            if outcome.is_err() {
                return Ok(outcome);
            }
            self.updated.extend(inner.updated.into_iter().map(|(_, byte)| byte));
        }
        Ok(Ok(()))
    }
}

fn chunk_size(size: u64) -> usize {
    usize::try_from(size).unwrap()
}
