//! Smaller graphs with the same fault.

use memplan::{
    OpSequence,
    sequence::{OutputEntry, SequenceFile},
};

use super::{
    draw::Case,
    model::{Memory, Setting},
};

/// Drops operators, ties and everything else that the fault does not need.
pub fn shrunk(case: &Case, is_wrong: &dyn Fn(&Case) -> bool) -> Case {
    let mut file = SequenceFile::from(case.sequence.clone());
    let mut setting = case.setting.clone();
    loop {
        let settings =
            smaller_settings(&setting).into_iter().map(|setting| (file.clone(), setting));
        let files = smaller_files(&file).into_iter().map(|file| (file, setting.clone()));
        let found = files.chain(settings).find(|(file, setting)| {
            OpSequence::try_from(file.clone())
                .is_ok_and(|sequence| is_wrong(&Case { sequence, setting: setting.clone() }))
        });
        match found {
            Some(found) => (file, setting) = found,
            None => break,
        }
    }
    Case { sequence: OpSequence::try_from(file).unwrap(), setting }
}

fn smaller_settings(setting: &Setting) -> Vec<Setting> {
    let mut all = Vec::new();
    if setting.inputs_in_pool {
        all.push(Setting { inputs_in_pool: false, ..setting.clone() });
    }
    if setting.alignment > 1 {
        all.push(Setting { alignment: 1, ..setting.clone() });
    }
    if let Some([fast, slow]) = setting.pools {
        let capacity = fast.capacity.unwrap_or(0);
        let pools = [
            [fast, Memory { capacity: None, ..slow }],
            [fast, Memory { capacity: slow.capacity.map(|bytes| bytes - 1), ..slow }],
            [Memory { capacity: Some(capacity / 2), ..fast }, slow],
            [Memory { capacity: Some(capacity.saturating_sub(1)), ..fast }, slow],
            [Memory { cost: 1, ..fast }, slow],
        ];
        let is_smaller = |pools: &[Memory; 2]| {
            Some(*pools) != setting.pools && pools.iter().all(|one| one.capacity != Some(0))
        };
        let smaller = pools.into_iter().filter(is_smaller);
        all.extend(smaller.map(|pools| Setting { pools: Some(pools), ..setting.clone() }));
    }
    all
}

/// The file with one thing less, the largest things first.
fn smaller_files(file: &SequenceFile) -> Vec<SequenceFile> {
    let mut all = Vec::new();
    let mut add = |change: &dyn Fn(&mut SequenceFile)| {
        let mut smaller = file.clone();
        change(&mut smaller);
        clean(&mut smaller);
        all.push(smaller);
    };
    if let Some(unit) = unit(file) {
        add(&|file| sizes(file).into_iter().for_each(|size| *size /= unit));
    }
    for at in (0..file.operators.len()).rev() {
        add(&|file| {
            drop(file.operators.remove(at));
            file.operators.iter_mut().for_each(|operator| operator.after.clear());
        });
    }
    for at in 0..file.outputs.len() {
        add(&|file| drop(file.outputs.remove(at)));
    }
    for at in 0..file.inputs.len() {
        add(&|file| drop(file.inputs.remove(at)));
    }
    for at in 0..file.operators.len() {
        let operator = &file.operators[at];
        for output in 0..operator.outputs.len() {
            add(&|file| drop(file.operators[at].outputs.remove(output)));
            let change = |file: &mut SequenceFile, change: &dyn Fn(&mut OutputEntry)| {
                change(&mut file.operators[at].outputs[output]);
            };
            let entry = &operator.outputs[output];
            if entry.reads.is_some() {
                add(&|file| change(file, &|entry| entry.reads = None));
            }
            for one in 0..entry.overwrites.as_ref().map_or(0, |all| all.0.len()) {
                add(&|file| {
                    change(file, &|entry| drop(entry.overwrites.as_mut().unwrap().0.remove(one)));
                });
                if entry.overwrites.as_ref().is_some_and(|all| all.0[one].required) {
                    add(&|file| {
                        change(file, &|entry| {
                            entry.overwrites.as_mut().unwrap().0[one].required = false;
                        });
                    });
                }
            }
            for one in 0..entry.gathers.as_ref().map_or(0, Vec::len) {
                add(&|file| {
                    change(file, &|entry| drop(entry.gathers.as_mut().unwrap().remove(one)));
                });
                if entry.gathers.as_ref().is_some_and(|all| all[one].required) {
                    add(&|file| {
                        change(file, &|entry| {
                            entry.gathers.as_mut().unwrap()[one].required = false;
                        });
                    });
                }
            }
        }
        for input in 0..operator.inputs.len() {
            add(&|file| drop(file.operators[at].inputs.remove(input)));
        }
        if operator.workspace > 0 {
            add(&|file| file.operators[at].workspace = 0);
        }
        if !operator.after.is_empty() {
            add(&|file| file.operators[at].after.clear());
        }
        if operator.stream > 0 {
            add(&|file| file.operators[at].stream = 0);
        }
    }
    let count = sizes(&mut file.clone()).len();
    for at in 0..count {
        add(&|file| *sizes(file)[at] /= 2);
        add(&|file| *sizes(file)[at] -= 1);
    }
    all.retain(|smaller| smaller != file && is_sized(smaller));
    all
}

/// All sizes and distances.
fn sizes(file: &mut SequenceFile) -> Vec<&mut u64> {
    let mut all: Vec<&mut u64> = file.inputs.iter_mut().map(|input| &mut input.size).collect();
    for operator in &mut file.operators {
        all.push(&mut operator.workspace);
        for output in &mut operator.outputs {
            all.push(&mut output.size);
            all.extend(output.reads.as_mut().map(|one| &mut one.offset));
            for one in output.overwrites.iter_mut().flat_map(|all| &mut all.0) {
                all.push(&mut one.offset);
                all.push(&mut one.below);
            }
            let gathers = output.gathers.iter_mut().flatten();
            all.extend(gathers.map(|one| &mut one.offset));
        }
    }
    all.retain(|size| **size > 0);
    all
}

/// The greatest common divisor of all sizes and distances, if it is more than one.
fn unit(file: &SequenceFile) -> Option<u64> {
    let mut unit = 0;
    for &mut mut size in sizes(&mut file.clone()) {
        while size != 0 {
            (unit, size) = (size, unit % size);
        }
    }
    Some(unit).filter(|&unit| unit > 1)
}

fn is_sized(file: &SequenceFile) -> bool {
    let outputs = file.operators.iter().flat_map(|operator| &operator.outputs);
    file.inputs.iter().all(|input| input.size > 0)
        && outputs.into_iter().all(|output| output.size > 0)
}

/// Removes what refers to tensors and inputs that are gone.
fn clean(file: &mut SequenceFile) {
    loop {
        let made = file.operators.iter().flat_map(|operator| &operator.outputs);
        let made: Vec<Box<str>> = made.map(|output| output.name.clone()).collect();
        let supplied = file.inputs.iter().map(|input| input.name.clone());
        let known: Vec<Box<str>> = made.into_iter().chain(supplied).collect();
        file.outputs.retain(|output| known.contains(output));
        for operator in &mut file.operators {
            operator.inputs.retain(|input| known.contains(input));
            let inputs = operator.inputs.clone();
            for output in &mut operator.outputs {
                output.reads = output.reads.take().filter(|read| inputs.contains(&read.input));
                if let Some(all) = &mut output.overwrites {
                    all.0.retain(|one| inputs.contains(&one.input));
                }
                output.overwrites = output.overwrites.take().filter(|all| !all.0.is_empty());
                if let Some(all) = &mut output.gathers {
                    all.retain(|one| inputs.contains(&one.input));
                }
                output.gathers = output.gathers.take().filter(|all| !all.is_empty());
            }
        }
        let count = file.operators.len();
        file.operators.retain(|operator| !operator.outputs.is_empty());
        if file.operators.len() == count {
            return;
        }
        // They are listed by their places.
        file.operators.iter_mut().for_each(|operator| operator.after.clear());
    }
}
