//! Logs the decisions of a plan: each overwrite and each copy, once and by name. Attempts before that are
//! logged where they are made, at level `trace`.

use tracing::{Level, debug, enabled};

use crate::Plan;

impl Plan {
    /// Logs the overwrites and copies of the plan.
    pub(crate) fn log_decisions(&self) {
        if !enabled!(target: "memplan::links", Level::DEBUG) {
            return;
        }
        for chunk in &self.chunks {
            let Some(link) = chunk.overwrites else { continue };
            let over = self.chunks.get(link.chunk).map_or("", |old| &*old.name);
            debug!(target: "memplan::links", chunk = &*chunk.name, over, offset = link.offset, "written over");
        }
        for copy in &self.copies.list {
            let (output, input) = (&*copy.output, &*copy.input);
            debug!(target: "memplan::links", output, input, size = copy.size, "copied");
        }
    }
}
