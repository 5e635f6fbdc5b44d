//! The order in which TensorFlow Lite Micro plans a model: subgraph 0 from its start, and the
//! subgraphs that an operator calls where it calls them.

use crate::import::tflite::{
    TfliteError,
    model::{Model, OperatorAt, wrong},
};

/// An event of the walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A subgraph is entered and gets its inputs. It takes a step.
    Enter(Call),
    /// An operator runs. It takes a step.
    Operator(OperatorAt),
    /// A subgraph ends, and its caller takes its outputs. It takes no step.
    Leave(Call),
}

impl Event {
    /// Returns whether it belongs to subgraph 0 itself.
    pub(crate) fn is_main(&self) -> bool {
        match self {
            Self::Enter(call) | Self::Leave(call) => call.caller.is_none(),
            Self::Operator(at) => at.subgraph == 0,
        }
    }
}

/// A call of a subgraph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) subgraph: usize,
    /// The operator that calls it; `None` for subgraph 0.
    pub(crate) caller: Option<OperatorAt>,
    /// True if it is the last call of its caller.
    pub(crate) is_last: bool,
}

/// Calls nested deeper than this are refused, as are subgraphs that call themselves.
const DEPTH: usize = 64;

/// The most operators and operands in calls that a walk may meet: a few subgraphs that call each other twice
/// would make it endless.
const WORK: usize = 1 << 16;

/// All events, in order.
///
/// # Errors
///
/// If a subgraph that is called does not exist, calls are nested too deep, or there are too many.
pub(crate) fn events(model: &Model) -> Result<Vec<Event>, TfliteError> {
    let mut walk = Walk { model, events: Vec::new(), work: 0 };
    walk.enter(Call { subgraph: 0, caller: None, is_last: true }, 0)?;
    Ok(walk.events)
}

struct Walk<'m, 'a> {
    model: &'m Model<'a>,
    events: Vec<Event>,
    work: usize,
}

impl Walk<'_, '_> {
    /// Counts work in calls. Subgraph 0 is walked over once.
    fn count(&mut self, depth: usize, work: usize) {
        self.work += if depth > 0 { work } else { 0 };
    }

    fn enter(&mut self, call: Call, depth: usize) -> Result<(), TfliteError> {
        let place = || format!("subgraph {}", call.subgraph);
        if depth > DEPTH {
            let reason = format!("it calls itself, or calls are nested more than {DEPTH} deep");
            return Err(wrong(place(), reason));
        }
        let subgraph = &self.model.subgraphs[call.subgraph];
        self.count(depth, subgraph.inputs.len() + subgraph.outputs.len());
        self.events.push(Event::Enter(call));
        for (operator, of) in subgraph.operators.iter().enumerate() {
            let at = OperatorAt { subgraph: call.subgraph, operator };
            self.events.push(Event::Operator(at));
            let called = called(self.model, at)?;
            let operands = of.inputs.len() + of.outputs.len();
            let kind = self.model.kind(of).len();
            self.count(depth, 1 + kind / 16 + (1 + called.len()) * operands);
            if self.work > WORK {
                let reason = "subgraphs are called so often that the walk over them does not end";
                return Err(wrong(place(), reason));
            }
            for (index, &subgraph) in called.iter().enumerate() {
                let is_last = index + 1 == called.len();
                self.enter(Call { subgraph, caller: Some(at), is_last }, depth + 1)?;
            }
        }
        self.events.push(Event::Leave(call));
        Ok(())
    }
}

/// The subgraphs that an operator calls, in order.
pub(super) fn called(model: &Model, at: OperatorAt) -> Result<Vec<usize>, TfliteError> {
    let operator = model.operator(at);
    let slots = match model.kind(operator) {
        _ if model.is_custom(operator) => 0,
        "IF" | "WHILE" => 2,
        "CALL_ONCE" => 1,
        _ => 0,
    };
    let called = (0..slots).map(|slot| {
        let number = operator.option(slot, 0)?;
        let known = usize::try_from(number).ok().filter(|&index| index < model.subgraphs.len());
        known.ok_or_else(|| {
            wrong(
                model.operator_place(at),
                format!("it calls subgraph {number}, which does not exist"),
            )
        })
    });
    called.collect()
}
