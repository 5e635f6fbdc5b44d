//! TensorFlow Lite models, as TensorFlow Lite Micro or TensorFlow Lite's interpreter plans them. The
//! reader needs the graph, shapes and types; of the weights, only whether they exist.
//!
//! [`read`] turns a model into an [`OpSequence`] in these passes:
//!
//! 1. `flat`, `model`: the tables of the file, each reference checked, become subgraphs, tensors and
//!    operators;
//! 2. `walk`: the order in which the runtime's planner sees operators and called subgraphs;
//! 3. `shapes`: the shape of each tensor, inferred from those of the inputs;
//! 4. `ops`: which outputs are views of an input or may be written over one, and the scratch memory
//!    of each operator;
//! 5. `arena`: the buffers of the head, with their lifetimes as the runtime counts them;
//! 6. `emit`: the sequence. Its first operator makes the inputs of the model, because the runtime
//!    keeps them in the head as well; operators of called subgraphs follow their caller; scratch
//!    buffers are outputs that no operator reads. Constants and variables lie outside.
//!
//! For [TensorFlow Lite's interpreter](Runtime::Interpreter), subgraph 0 is read as that runtime plans
//! it: `interpreter` holds its rules.
//!
//! Offsets must be multiples of [`Runtime::alignment`]: plan with
//! [`Planner::alignment`](crate::Planner::alignment).
//!
//! ```
//! use memplan::import::{ImportOptions, tflite::{TfliteError, read}};
//!
//! let error = read(b"not a model", &ImportOptions::default()).unwrap_err();
//! assert_eq!(error, TfliteError::NotTflite);
//! ```

mod arena;
mod element;
mod emit;
mod error;
pub(crate) mod flat;
mod interpreter;
pub(crate) mod model;
mod names;
mod ops;
mod options;
mod shapes;
mod tail;
mod walk;

pub use arena::{Arena, ArenaBuffer};
pub use error::TfliteError;
pub(super) use options::ScratchSizes;
pub use options::{ALIGNMENT, KernelLibrary, Runtime};
pub use tail::TAIL_RELEASE;

use std::collections::BTreeMap;

use tracing::debug;

use crate::{OpSequence, import::ImportOptions, printable::printable};
use {
    arena::{Names, Scratch},
    flat::File,
    model::Model,
};

/// A model as a sequence, with facts that the sequence does not hold.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Survey {
    /// The operators.
    pub sequence: OpSequence,
    /// The outputs that are not views and may not be written over an input, by name, with the
    /// reason.
    pub not_in_place: BTreeMap<Box<str>, &'static str>,
    /// The buffers that the runtime's own planner places.
    pub arena: Arena,
    /// The operator of subgraph 0 that runs in each step, by its place in the file; `None` for other steps.
    pub operators: Vec<Option<usize>>,
    /// The inputs whose sizes the file leaves open, with the shapes that are taken: those that the file
    /// states, which the runtime uses unless the application resizes them.
    pub taken_inputs: Vec<String>,
    /// The operators that TensorFlow Lite Micro cannot load or run, with the reasons: it then has no arena, and
    /// a plan for it is of no use. An operator whose scratch memory is stated counts as one that the
    /// caller's build has.
    pub unsupported: Vec<String>,
}

/// The operators that the runtime cannot load or run.
fn unsupported(model: &Model, options: &ImportOptions) -> Vec<String> {
    if options.runtime != Runtime::Micro {
        return Vec::new();
    }
    let operators = model.subgraphs.iter().enumerate().flat_map(|(subgraph, of)| {
        (0..of.operators.len()).map(move |operator| model::OperatorAt { subgraph, operator })
    });
    // By reason: the first operator, and how many there are.
    let mut found: Vec<(String, String, usize)> = Vec::new();
    for at in operators {
        let op = ops::Op::new(model, at);
        let kind = model.kind(op.operator);
        let is_stated = options.scratch.of(kind, at.subgraph, at.operator).is_some();
        let Some(reason) = ops::unsupported(&op).filter(|_| !is_stated) else { continue };
        let reason = format!("{}: {reason}", printable(kind));
        if let Some((.., times)) = found.iter_mut().find(|(known, ..)| *known == reason) {
            *times += 1;
        } else if found.len() < MAX_REASONS {
            found.push((reason, at.written(), 1));
        }
    }
    let text = |(reason, first, times): (String, String, usize)| match times {
        1 => format!("{reason} (operator {first})"),
        times => format!("{reason} ({times} operators, from {first})"),
    };
    found.into_iter().map(text).collect()
}

/// The most reasons that are listed.
const MAX_REASONS: usize = 16;

/// Reads a TensorFlow Lite model.
///
/// # Errors
///
/// If the bytes are not a TensorFlow Lite model, the size of a tensor in bytes is unknown, or the
/// graph is not a valid sequence.
pub fn read(bytes: &[u8], options: &ImportOptions) -> Result<OpSequence, TfliteError> {
    survey(bytes, options).map(|survey| survey.sequence)
}

/// Reads a TensorFlow Lite model, together with the buffers that the runtime places in its arena.
///
/// # Errors
///
/// As [`read`].
pub fn survey(bytes: &[u8], options: &ImportOptions) -> Result<Survey, TfliteError> {
    let file = File::new(bytes)?;
    let mut model = Model::read(&file)?;
    if model.has_data_behind && options.runtime == Runtime::Micro {
        return Err(TfliteError::Unsupported {
            place: "the model".to_owned(),
            what: "its weights lie behind the tables of the file, where TensorFlow Lite Micro reads none".to_owned(),
            remedy: "plan it for TensorFlow Lite's interpreter with --runtime tflite, or write a file below 2 GB",
        });
    }
    let events = walk::events(&model)?;
    let mut names = Names::of(&model);
    let taken_inputs = shapes::infer(&mut model, &names, options)?;
    if options.runtime == Runtime::Interpreter {
        interpreter::set_apart(&mut model);
    }
    let unsupported = unsupported(&model, options);
    let scratch = Scratch::of(&model, options)?;
    let runtime = options.runtime;
    let (arena, shares) = match runtime {
        Runtime::Micro => {
            let mut arena = Arena::of(&model, &events, &scratch, &mut names)?;
            arena.set_tail(tail::tail(&model, &scratch, options));
            (arena, None)
        }
        Runtime::Interpreter => (
            Arena::of_interpreter(&model, &events, &scratch, &mut names)?,
            Some(interpreter::shares(&model, &model.subgraphs[0])),
        ),
    };
    let events = events.into_iter().filter(|event| runtime == Runtime::Micro || event.is_main());
    let events: Vec<walk::Event> = events.collect();
    let emitter = emit::Emitter {
        model: &model,
        names: &names,
        library: options.library,
        kernels: &options.kernels,
        overlap: options.overlap,
        shares,
        builder: OpSequence::builder(),
        reasons: BTreeMap::new(),
        defined: vec![false; arena.tensors],
        steps: emit::Steps::default(),
    };
    let emit::Emitted { sequence, reasons, operators } = emitter.emit(&arena, &events)?;
    let not_in_place = reasons.into_iter().map(|(name, why)| (name, why.reason())).collect();
    debug!(
        target: "memplan::import",
        subgraphs = arena.subgraphs,
        operators = sequence.operators().len(),
        buffers = arena.buffers.len(),
        "read a TensorFlow Lite model",
    );
    Ok(Survey { sequence, not_in_place, arena, operators, taken_inputs, unsupported })
}
