//! Models with the operators of subgraph 0 in another order, and nothing else touched.
//!
//! A subgraph lists its operators as references to their tables. The references change places; the tables,
//! weights and everything else stay where they are.

use crate::{
    export::tflite::{OfflinePlan, write::refused},
    import::tflite::{
        TfliteError,
        flat::File,
        model::{Model, slot, wrong},
    },
};

/// The name of the metadata entry that orders operators by their places, beside what they read.
const CONTROL_DEPENDENCIES: &str = "model_control_dependencies";

/// Returns the model with the operators of subgraph 0 in another order: `order` lists their places in
/// the file in the order in which they are to run. [`Survey::operators`] gives the operator of each
/// step; this function does not check that the order can run.
///
/// # Errors
///
/// If the bytes are not a TensorFlow Lite model, `order` does not name every operator of subgraph 0 once,
/// or the metadata of the model is for the order that it has: an offline plan with offsets, or dependencies
/// between operators.
///
/// [`Survey::operators`]: crate::import::tflite::Survey::operators
pub fn permuted(model: &[u8], order: &[usize]) -> Result<Vec<u8>, TfliteError> {
    let file = File::new(model)?;
    let tables = Model::read(&file)?;
    check_metadata(model, &tables)?;
    let subgraphs = tables.root.tables(slot::SUBGRAPHS, "a subgraph")?;
    let main = subgraphs.first().ok_or_else(|| wrong("the model", "it has no subgraph"))?;
    let what = "the list of operators";
    let list = main.vector(slot::OPERATORS, 4, what)?;
    let targets = file.targets(list, what)?;
    let mut seen = vec![false; targets.len()];
    let is_new =
        |&place: &usize| seen.get_mut(place).is_some_and(|seen| !std::mem::replace(seen, true));
    if order.len() != targets.len() || !order.iter().all(is_new) {
        let reason = format!("the order does not name each of {} operators once", targets.len());
        return Err(wrong("subgraph 0", reason));
    }
    let mut bytes = model.to_vec();
    for (index, &place) in order.iter().enumerate() {
        let at = list.at + 4 * index;
        let distance = targets[place].checked_sub(at).filter(|&distance| distance > 0);
        let distance = distance.and_then(|distance| u32::try_from(distance).ok());
        let damaged = TfliteError::Damaged { at, what };
        let distance = distance.ok_or_else(|| damaged.clone())?;
        let reference = bytes.get_mut(at..at + 4).ok_or(damaged)?;
        reference.copy_from_slice(&distance.to_le_bytes());
    }
    Ok(bytes)
}

/// Refuses metadata that is for the present order.
fn check_metadata(model: &[u8], tables: &Model) -> Result<(), TfliteError> {
    let plan = OfflinePlan::of_model(model);
    if plan.map_or(true, |plan| plan.is_some_and(|plan| plan.offsets.iter().any(Option::is_some))) {
        let what = "the model has an offline plan, which is for the order that it has";
        return refused(
            "the model",
            what,
            "take the model without it, and plan it in the new order",
        );
    }
    if tables.metadata.iter().any(|entry| entry.name == CONTROL_DEPENDENCIES) {
        let what = "its metadata orders operators by their places in the file";
        return refused(
            "the model",
            what,
            "write it with a converter that adds no control dependencies",
        );
    }
    Ok(())
}
