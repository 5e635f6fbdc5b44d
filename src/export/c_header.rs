//! A plan as a C header, for generators of code: the size of the arena, and a constant for the place and the size of each
//! tensor.

use std::{collections::BTreeSet, fmt::Write};

use crate::{
    Bytes, Plan, PlanError, TensorPlace,
    export::c_names::{identifier, in_comment},
};

/// A constant place in the arena.
struct Constant<'a> {
    name: &'a str,
    offset: Bytes,
    size: Bytes,
    /// The chunk, for its lifetime.
    chunk: usize,
}

/// Writes a plan as a C header, also for C++: `NAME_ARENA_SIZE`, `NAME_ARENA_ALIGNMENT` and, for each tensor in the pool,
/// `NAME_TENSOR_OFFSET` and `NAME_TENSOR_SIZE`, in bytes, all with upper-case letters. Chunks without a tensor, such as
/// workspaces, and the chunks of a problem follow. Characters that C does not allow in a name are replaced, and names
/// that are equal then are numbered. Static assertions check that all lies in the arena and that the compiler's
/// `size_t` holds its size.
///
/// ```
/// use memplan::{Planner, export::c_header, networks};
///
/// let plan = Planner::new().alignment(64).plan(&networks::mobilenet_v2(1)?)?;
/// let header = c_header("net", &plan)?;
/// assert!(header.contains("#define NET_ARENA_SIZE "));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// If the plan has several pools.
pub fn c_header(name: &str, plan: &Plan) -> Result<String, PlanError> {
    if plan.pools.len() > 1 {
        return Err(PlanError::PoolsOfHeader { pools: plan.pools.len() });
    }
    let prefix = identifier(name, "PLAN_").to_ascii_uppercase();
    let alignment = plan.alignment.max(1);
    let mut text = format!(
        "/* The memory of {}, planned by memplan {}: {}.\n   All numbers are bytes; offsets count from the start of the arena. */\n",
        in_comment(name),
        env!("CARGO_PKG_VERSION"),
        plan.strategy_name(),
    );
    let _ = write!(
        text,
        "#ifndef {prefix}_PLAN_H\n#define {prefix}_PLAN_H\n\n#include <assert.h>\n#include <stdint.h>\n\n\
         #define {prefix}_ARENA_SIZE {}\n#define {prefix}_ARENA_ALIGNMENT {}\n\n\
         static_assert({prefix}_ARENA_SIZE <= SIZE_MAX, \"the arena is too large for this target\");\n",
        number(plan.pool_size),
        number(alignment),
    );
    let mut taken = BTreeSet::from([format!("{prefix}_ARENA")]);
    for Constant { name, offset, size, chunk } in constants(plan) {
        let plain = format!("{prefix}_{}", identifier(name, "T_").to_ascii_uppercase());
        let numbered = (2_u64..).map(|count| format!("{plain}_{count}"));
        let free =
            std::iter::once(plain.clone()).chain(numbered).find(|name| !taken.contains(name));
        let constant = free.unwrap_or(plain);
        let steps = plan.chunks.get(chunk).map_or_else(String::new, |chunk| {
            match chunk.end.saturating_sub(chunk.begin) {
                1 => format!(", step {}", chunk.begin),
                _ => format!(", steps {}..{}", chunk.begin, chunk.end),
            }
        });
        let _ = write!(
            text,
            "\n/* {}{steps} */\n#define {constant}_OFFSET {}\n#define {constant}_SIZE {}\n\
             static_assert({constant}_OFFSET + {constant}_SIZE <= {prefix}_ARENA_SIZE, \"{constant}\");\n",
            in_comment(name),
            number(offset),
            number(size),
        );
        taken.insert(constant);
    }
    let _ = write!(text, "\n#endif\n");
    Ok(text)
}

/// The tensors in the pool, and the chunks that no tensor names.
fn constants(plan: &Plan) -> Vec<Constant<'_>> {
    let mut named = vec![false; plan.chunks.len()];
    let mut constants = Vec::with_capacity(plan.tensors.len());
    for tensor in &plan.tensors {
        if let TensorPlace::Pool { chunk, offset } = tensor.place {
            constants.push(Constant { name: &tensor.name, offset, size: tensor.size, chunk });
            if let Some(named) = named.get_mut(chunk) {
                *named = true;
            }
        }
    }
    let unnamed = plan.chunks.iter().enumerate().zip(named).filter(|(_, named)| !named);
    constants.extend(unnamed.map(|((at, chunk), _)| Constant {
        name: &chunk.name,
        offset: chunk.offset,
        size: chunk.size,
        chunk: at,
    }));
    constants
}

/// Writes a number as an unsigned constant that the preprocessor understands.
fn number(bytes: Bytes) -> String {
    if u32::try_from(bytes).is_ok() { format!("{bytes}u") } else { format!("{bytes}ull") }
}
