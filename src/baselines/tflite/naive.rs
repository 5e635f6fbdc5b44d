//! Naive: an object for every record.
//!
//! **Idea.** No object is shared.
//!
//! **Cost.** O(n).
//!
//! **When.** It shows what sharing saves.
//!
//! **Source.** TFLite GPU delegate, `NAIVE` (2019).

use crate::{
    Problem,
    baselines::{
        boxes::Boxes,
        records::RecordSize,
        tflite::{Objects, Records},
    },
    plan::Layout,
};

/// Gives record i object i.
#[must_use]
pub fn objects<S: RecordSize>(records: &Records<S>) -> Objects<S> {
    let mut objects = Objects::for_records(records.len());
    for (index, record) in records.iter().enumerate() {
        let object = objects.add(record.size.clone());
        objects.assign(index, object);
    }
    objects
}

/// Plans a problem with every chain as a box.
pub(crate) fn layout(problem: &Problem) -> Layout {
    let boxes = Boxes::of(problem);
    boxes.share(problem, objects(&boxes.records))
}
