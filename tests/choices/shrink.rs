//! Smaller graphs with the same fault.

use memplan::sequence::{Dependency, Origin, Tensor};
use serde_json::{Value, json};

use super::{
    draw::{Case, World, case},
    model::{Memory, Setting},
};

/// Drops operators, ties and everything else that the fault does not need.
pub fn shrunk(case: &Case, is_wrong: &dyn Fn(&Case) -> bool) -> Case {
    let mut file = serde_json::to_value(&case.sequence).unwrap();
    let mut setting = case.setting.clone();
    loop {
        let settings =
            smaller_settings(&setting).into_iter().map(|setting| (file.clone(), setting));
        let files = smaller_files(&file).into_iter().map(|file| (file, setting.clone()));
        let found = files.chain(settings).find(|(file, setting)| {
            serde_json::from_value(file.clone())
                .is_ok_and(|sequence| is_wrong(&Case { sequence, setting: setting.clone() }))
        });
        match found {
            Some(found) => (file, setting) = found,
            None => break,
        }
    }
    Case { sequence: serde_json::from_value(file).unwrap(), setting }
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

/// The items of a list; of one that is not there, none.
fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// The places of the items of a list, and of what stands in an output's list of one.
fn list<'a>(value: &'a mut Value, key: &str) -> &'a mut Vec<Value> {
    let one = value.get_mut(key).map(Value::take).unwrap_or_default();
    value[key] = match one {
        Value::Array(_) => one,
        Value::Null => json!([]),
        one => json!([one]),
    };
    value[key].as_array_mut().unwrap()
}

/// The file with one thing less, the largest things first.
fn smaller_files(file: &Value) -> Vec<Value> {
    let mut all = Vec::new();
    let mut add = |change: &dyn Fn(&mut Value)| {
        let mut smaller = file.clone();
        change(&mut smaller);
        clean(&mut smaller);
        all.push(smaller);
    };
    if let Some(unit) = unit(file) {
        add(&|file| each_size(file, &mut |size| *size = json!(size.as_u64().unwrap() / unit)));
    }
    let operators = items(&file["operators"]);
    for at in (0..operators.len()).rev() {
        add(&|file| {
            drop(list(file, "operators").remove(at));
            without_precedence(file);
        });
    }
    for key in ["outputs", "inputs"] {
        for at in 0..items(&file[key]).len() {
            add(&|file| drop(list(file, key).remove(at)));
        }
    }
    for (at, operator) in operators.iter().enumerate() {
        for (output, entry) in items(&operator["outputs"]).iter().enumerate() {
            add(&|file| drop(list(&mut file["operators"][at], "outputs").remove(output)));
            let change = |file: &mut Value, change: &dyn Fn(&mut Value)| {
                change(&mut file["operators"][at]["outputs"][output]);
            };
            if !entry["reads"].is_null() {
                add(&|file| change(file, &|entry| entry["reads"] = Value::Null));
            }
            for key in ["overwrites", "gathers"] {
                for (one, tie) in list(&mut entry.clone(), key).iter().enumerate() {
                    add(&|file| change(file, &|entry| drop(list(entry, key).remove(one))));
                    if tie["required"] == true {
                        let optional = |entry: &mut Value| {
                            list(entry, key)[one]["required"] = false.into();
                        };
                        add(&|file| change(file, &optional));
                    }
                }
            }
        }
        for input in 0..items(&operator["inputs"]).len() {
            add(&|file| drop(list(&mut file["operators"][at], "inputs").remove(input)));
        }
        for key in ["workspace", "after", "stream"] {
            if operator.get(key).is_some() {
                let drop_key = |file: &mut Value| {
                    drop(file["operators"][at].as_object_mut().unwrap().remove(key));
                };
                add(&drop_key);
            }
        }
    }
    let mut count = 0;
    each_size(&mut file.clone(), &mut |_| count += 1);
    for changed in 0..count {
        for change in [|size: u64| size / 2, |size: u64| size - 1] {
            add(&|file| {
                let mut at = 0..;
                each_size(file, &mut |size| {
                    if at.next() == Some(changed) {
                        *size = json!(change(size.as_u64().unwrap()));
                    }
                });
            });
        }
    }
    all.retain(|smaller| smaller != file && is_sized(smaller));
    all
}

/// Visits all sizes and distances that are not 0.
fn each_size(file: &mut Value, visit: &mut dyn FnMut(&mut Value)) {
    match file {
        Value::Array(items) => items.iter_mut().for_each(|item| each_size(item, visit)),
        Value::Object(fields) => {
            for (key, value) in fields.iter_mut() {
                if !["size", "workspace", "offset", "below"].contains(&&**key) {
                    each_size(value, visit);
                } else if value.as_u64().is_some_and(|size| size > 0) {
                    visit(value);
                }
            }
        }
        _ => {}
    }
}

/// The greatest common divisor of all sizes and distances, if it is more than one.
fn unit(file: &Value) -> Option<u64> {
    let mut unit = 0;
    each_size(&mut file.clone(), &mut |size| {
        let mut size = size.as_u64().unwrap();
        while size != 0 {
            (unit, size) = (size, unit % size);
        }
    });
    Some(unit).filter(|&unit| unit > 1)
}

fn is_sized(file: &Value) -> bool {
    let outputs = items(&file["operators"]).iter().flat_map(|operator| items(&operator["outputs"]));
    items(&file["inputs"]).iter().chain(outputs).all(|tensor| tensor["size"] != 0)
}

/// Operators are listed there by their places, which are others when one is gone.
fn without_precedence(file: &mut Value) {
    for operator in list(file, "operators") {
        operator.as_object_mut().unwrap().remove("after");
    }
}

/// Removes what refers to tensors and inputs that are gone.
fn clean(file: &mut Value) {
    loop {
        let made = items(&file["operators"]).iter().flat_map(|one| items(&one["outputs"]));
        let known = made.chain(items(&file["inputs"])).map(|tensor| tensor["name"].clone());
        let known: Vec<Value> = known.collect();
        list(file, "outputs").retain(|output| known.contains(output));
        let operators = list(file, "operators");
        for operator in &mut *operators {
            list(operator, "inputs").retain(|input| known.contains(input));
            let inputs = operator["inputs"].as_array().unwrap().clone();
            for output in list(operator, "outputs") {
                for key in ["reads", "overwrites", "gathers"] {
                    let ties = list(output, key);
                    ties.retain(|tie| inputs.contains(&tie["input"]));
                    let is_empty = ties.is_empty();
                    match output.as_object_mut().unwrap() {
                        output if is_empty => drop(output.remove(key)),
                        output if key == "reads" => output[key] = output[key][0].take(),
                        _ => {}
                    }
                }
            }
        }
        let count = operators.len();
        operators.retain(|operator| !items(&operator["outputs"]).is_empty());
        if operators.len() == count {
            return;
        }
        without_precedence(file);
    }
}

/// What three operators show is shown by three, without ties and with the least sizes.
#[test]
fn nothing_stays_that_the_fault_does_not_need() {
    for number in 0..20 {
        let case = case(World::OneStream, number);
        let is_wrong = |case: &Case| case.sequence.operators().len() >= 3;
        if !is_wrong(&case) {
            continue;
        }
        let small = shrunk(&case, &is_wrong).sequence;
        assert_eq!(small.operators().len(), 3, "{number}");
        let is_small = |tensor: &Tensor| {
            tensor.size == Some(1)
                && matches!(&tensor.origin, Origin::Output { dependency: Dependency::Fresh, .. })
        };
        assert!(small.tensors().iter().all(is_small), "{number}: {small:?}");
    }
}
