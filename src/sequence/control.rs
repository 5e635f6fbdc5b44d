//! Control edges: operators that must run after others, although they need not read their outputs.

use std::collections::HashMap;

use crate::sequence::{SequenceError, after::OperatorRef, declare::Operator};

/// Returns, for each operator, the indices of the operators that it must run after, ascending and
/// without repeats.
pub(super) fn resolve(operators: &[Operator]) -> Result<Vec<Vec<usize>>, SequenceError> {
    if operators.iter().all(|operator| operator.after.is_empty()) {
        return Ok(vec![Vec::new(); operators.len()]);
    }
    // `None` for a name that several operators have.
    let mut places: HashMap<&str, Option<usize>> = HashMap::new();
    for (place, operator) in operators.iter().enumerate() {
        places.entry(&operator.name).and_modify(|first| *first = None).or_insert(Some(place));
    }
    let find = |wanted: &OperatorRef, user: usize| {
        let operator = || operators[user].display_name(user);
        match wanted {
            OperatorRef::Place(place) if *place < operators.len() => Ok(*place),
            OperatorRef::Place(place) => Err(SequenceError::UnknownOperator {
                operator: operator(),
                after: place.to_string(),
            }),
            OperatorRef::Name(name) => match places.get(&**name) {
                Some(Some(place)) => Ok(*place),
                Some(None) => Err(SequenceError::AmbiguousOperator {
                    operator: operator(),
                    after: name.to_string(),
                }),
                None => Err(SequenceError::UnknownOperator {
                    operator: operator(),
                    after: format!("'{name}'"),
                }),
            },
        }
    };
    operators
        .iter()
        .enumerate()
        .map(|(user, operator)| {
            let mut after = operator
                .after
                .iter()
                .map(|wanted| find(wanted, user))
                .collect::<Result<Vec<usize>, _>>()?;
            after.sort_unstable();
            after.dedup();
            Ok(after)
        })
        .collect()
}
