//! An offline plan as C source, for the runtime's planner that takes offsets from a struct.

use std::fmt::Write;

use crate::{
    Plan, TensorPlace,
    export::c_names::{identifier, in_comment},
    import::tflite::{ALIGNMENT, Arena},
};

/// Writes the offsets of all buffers of the head as C++ source: a `tflite::BufferPlan` for
/// `tflite::NonPersistentMemoryPlannerShim`. The buffers stand in the order in which the runtime adds them,
/// scratch buffers last. `name` names the plan; characters that C does not allow in a name are replaced.
///
/// Returns `None` if the plan lacks a buffer, or if an offset is not a multiple of 16 or takes more than 31
/// bits.
#[must_use]
pub fn c_struct(name: &str, arena: &Arena, plan: &Plan) -> Option<String> {
    let offsets: std::collections::HashMap<&str, u64> = plan
        .tensors
        .iter()
        .map(|tensor| match tensor.place {
            TensorPlace::Pool { offset, .. } => (&*tensor.name, offset),
            _ => (&*tensor.name, 0),
        })
        .collect();
    let name = identifier(name, "plan_");
    let upper = name.to_ascii_uppercase();
    let (count, head) = (arena.buffers.len(), plan.pool_size);
    let mut text = String::new();
    let _ = write!(
        text,
        "// A plan by memplan for tflite::NonPersistentMemoryPlannerShim.\n\
         // The planner reports a head of 0 bytes: the arena must have {upper}_HEAD_BYTES more.\n\
         #include <stdint.h>\n\
         #include \"tensorflow/lite/micro/memory_planner/memory_plan_struct.h\"\n\n\
         #define {upper}_HEAD_BYTES {head}\n\n\
         static const struct {{\n  int32_t buffer_count;\n  int32_t offsets[{}];\n}} {name}_offsets = {{\n  {count},\n  {{\n",
        count.max(1)
    );
    for buffer in &arena.buffers {
        let offset = i32::try_from(*offsets.get(&*buffer.name)?).ok()?;
        if u64::from(offset.cast_unsigned()) % ALIGNMENT != 0 {
            return None;
        }
        let kind = if buffer.tensor.is_some() { "" } else { ", scratch" };
        let label = in_comment(&buffer.name);
        let _ = writeln!(text, "    {offset},  // {label}, {} bytes{kind}", buffer.size);
    }
    if count == 0 {
        text.push_str("    0,\n");
    }
    let _ = write!(
        text,
        "  }},\n}};\n\n\
         static const tflite::BufferPlan* const {name}_plan =\n    \
         reinterpret_cast<const tflite::BufferPlan*>(&{name}_offsets);\n"
    );
    Some(text)
}
