//! The table of operators as text, for the book.

use crate::import::onnx::ops::{
    row::{InPlace, Kernel, Row, Size, View},
    table,
};

/// All operators that memplan knows, as the rows of a table for people: the operator's type, such as `Conv`; its
/// domains, such as `ai.onnx`; the source of the outputs' shapes; the condition under which an output is a view of the
/// first input; and the inputs that an output may be written over, with the kernels that allow it, or the reason why it
/// may not.
pub fn operators() -> impl Iterator<Item = [String; 5]> {
    table::all().map(|row| {
        let domains: Vec<&str> = row.domains.iter().map(|domain| domain.name()).collect();
        let (shape, in_place) = match (row.shapes, row.most) {
            (Size::Refused(what), _) => (&*format!("refused: it makes {what}"), String::new()),
            (Size::Rule(_) | Size::Stored | Size::List(_), _) => ("known", in_place(row)),
            (Size::Run(_), None) => ("known only at run time", in_place(row)),
            (Size::Run(_), Some(_)) => ("at most", in_place(row)),
            (Size::Body(_), _) => ("from its sub-graphs", in_place(row)),
        };
        [row.name, &domains.join(", "), shape, view(row), &in_place].map(str::to_owned)
    })
}

fn view(row: &Row) -> &'static str {
    row.view.map_or("no", |view| match view {
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

fn in_place(row: &Row) -> String {
    let operands = match row.in_place {
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
