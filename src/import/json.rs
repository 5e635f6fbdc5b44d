//! memplan's own JSON. The file forms are defined beside the types that they hold.

use serde::Deserialize;

use crate::{
    Input, OpSequence, Plan, Problem, import::ImportError, problem::ProblemFile,
    sequence::SequenceFile,
};

/// The key that identifies every file.
#[derive(Deserialize)]
#[serde(expecting = "an object with the key `format`")]
struct Head {
    #[serde(default)]
    format: Option<String>,
}

fn format(bytes: &[u8]) -> Result<Option<String>, ImportError> {
    match bytes.iter().find(|byte| !byte.is_ascii_whitespace()) {
        None => return Err(ImportError::Empty),
        Some(b'{' | b'[' | b'"') => {}
        Some(_) => return Err(ImportError::NotJson),
    }
    Ok(serde_json::from_slice::<Head>(bytes)?.format)
}

pub(super) fn read_input(bytes: &[u8]) -> Result<Input, ImportError> {
    match format(bytes)?.as_deref() {
        Some("memplan-sequence/1" | "memplan-sequence/2") => {
            let file: SequenceFile = serde_json::from_slice(bytes)?;
            Ok(OpSequence::try_from(file)?.into())
        }
        Some("memplan-problem/1" | "memplan-problem/2") => {
            let file: ProblemFile = serde_json::from_slice(bytes)?;
            Ok(Problem::try_from(file)?.into())
        }
        Some("memplan-plan/1" | "memplan-plan/2") => Err(ImportError::IsAPlan),
        found => Err(unknown(found)),
    }
}

pub(super) fn read_plan(bytes: &[u8]) -> Result<Plan, ImportError> {
    match format(bytes)?.as_deref() {
        Some("memplan-plan/1" | "memplan-plan/2") => Ok(serde_json::from_slice(bytes)?),
        Some(
            "memplan-sequence/1" | "memplan-sequence/2" | "memplan-problem/1" | "memplan-problem/2",
        ) => Err(ImportError::NotAPlan),
        found => Err(unknown(found)),
    }
}

fn unknown(found: Option<&str>) -> ImportError {
    ImportError::UnknownFormat {
        found: found.map_or_else(|| "none".to_owned(), |found| format!("\"{found}\"")),
    }
}
