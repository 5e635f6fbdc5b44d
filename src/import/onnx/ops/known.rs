//! The table of operators as text, for the book and for `memplan ops`.

use std::fmt;

use crate::import::onnx::ops::{
    row::{InPlace, Kernel, Row, Size, View},
    table,
};

/// An operator that memplan knows, with the facts about it as text.
#[derive(Clone, Copy)]
pub struct KnownOperator {
    row: &'static Row,
}

impl fmt::Debug for KnownOperator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("KnownOperator").field(&self.row.name).finish()
    }
}

/// All operators that memplan knows, by kind.
pub fn operators() -> impl Iterator<Item = KnownOperator> {
    table::all().map(|row| KnownOperator { row })
}

impl KnownOperator {
    /// The operator's type, such as `Conv`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.row.name
    }

    /// The domains that have the operator, such as `ai.onnx`.
    pub fn domains(&self) -> impl Iterator<Item = &'static str> {
        self.row.domains.iter().map(|domain| domain.name())
    }

    /// The reason why the operator cannot be planned, if it cannot.
    #[must_use]
    pub fn refused(&self) -> Option<&'static str> {
        match self.row.shapes {
            Size::Refused(what) => Some(what),
            _ => None,
        }
    }

    /// The source of the outputs' shapes.
    #[must_use]
    pub fn shape(&self) -> &'static str {
        match (self.row.shapes, self.row.most) {
            (Size::Rule(_) | Size::Stored | Size::List(_), _) => "known",
            (Size::Run(_), None) => "known only at run time",
            (Size::Run(_), Some(_)) => "at most",
            (Size::Body(_), _) => "from its sub-graphs",
            (Size::Refused(_), _) => "refused",
        }
    }

    /// The condition under which an output is a view of the first input, if it can be one.
    #[must_use]
    pub fn view(&self) -> Option<&'static str> {
        self.row.view.map(|view| match view {
            View::Bits => "always",
            View::Whole => "if the element type stays",
            View::SameShape => "if nothing is repeated",
            View::Passed => "unless it trains",
            View::Element => "if it is known which tensor it is",
            View::KeptOrder => "if only dimensions of size 1 move",
            View::Run => "if the part is one run of bytes",
            View::Runs => "if each part is one run of bytes",
        })
    }

    /// The inputs that an output may be written over, and the kernels that allow it; otherwise the
    /// reason why it may not.
    #[must_use]
    pub fn in_place(&self) -> String {
        let operands = match self.row.in_place {
            InPlace::Never(why) => return format!("no: {why}"),
            InPlace::Over(operands) => operands,
        };
        let inputs = match operands.inputs {
            None => "any input".to_owned(),
            Some([0]) => "the first input".to_owned(),
            Some([0, 1]) => "the first two inputs".to_owned(),
            Some([input]) => format!("input {}", input + 1),
            Some(inputs) => {
                let inputs: Vec<String> = inputs.iter().map(|i| (i + 1).to_string()).collect();
                format!("inputs {}", inputs.join(" and "))
            }
        };
        let kernel = match operands.kernel {
            Kernel::Elementwise => "element by element",
            Kernel::Rows => "row by row",
        };
        format!("{inputs}, {kernel}")
    }
}
