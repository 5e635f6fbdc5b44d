//! Naive: an object for every record.
//!
//! **Idea.** No sharing at all.
//!
//! **Cost.** O(n).
//!
//! **When.** To see what sharing saves.
//!
//! **Source.** TFLite GPU delegate, `NAIVE` (2019).

use crate::{
    Problem,
    planner::{
        Layout,
        records::{Boxes, Size},
        tflite::{Objects, Records},
    },
};

/// Object i for record i.
#[must_use]
pub fn objects<S: Size>(records: &Records<S>) -> Objects<S> {
    let mut objects = Objects::for_records(records.len());
    for (index, record) in records.iter().enumerate() {
        let object = objects.add(record.size.clone());
        objects.assign(index, object);
    }
    objects
}

/// Plans a problem, every chain a box.
#[must_use]
pub fn layout(problem: &Problem) -> Layout {
    let boxes = Boxes::of(problem);
    boxes.share(problem, objects(&boxes.records))
}
