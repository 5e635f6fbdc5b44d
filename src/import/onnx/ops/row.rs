//! The facts about one operator: a row of the table.

use crate::import::{
    InPlace as Profile,
    onnx::{
        ops::{
            checks::Check,
            fold::Fold,
            op::{Op, Reason, Shapes},
            types::{FIRST, TypeRule},
        },
        read::fact::List,
    },
};

/// A rule for the shapes of the outputs.
pub(crate) type ShapeRule = fn(&Op) -> Shapes;

/// All facts about an operator. Rules see the operator's attributes and the known facts about its
/// inputs.
#[derive(Clone, Copy)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) domains: &'static [Domain],
    pub(crate) shapes: Size,
    /// The comparison of sizes that must agree.
    pub(crate) check: Option<Check>,
    /// The rule for the largest outputs, where the shape depends on values known only at run time.
    pub(crate) most: Option<ShapeRule>,
    /// The type of each output. The last rule applies to all further outputs.
    pub(crate) types: &'static [TypeRule],
    pub(crate) fold: Option<Fold>,
    pub(crate) view: Option<View>,
    pub(crate) in_place: InPlace,
    /// True if the output holds the inputs one after another along an axis.
    pub(crate) gathers: bool,
    /// Returns whether outputs after the first are computed only if they are read.
    pub(crate) skips_unread: Option<fn(&Op) -> bool>,
    /// Returns whether the outputs differ from run to run even for the same inputs.
    pub(crate) random: Option<fn(&Op) -> bool>,
}

/// The domain of an operator.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Domain {
    /// ONNX's own operators: `ai.onnx`, which models write as an empty string.
    Onnx,
    /// `ai.onnx.ml`.
    Ml,
    /// `com.microsoft`, the extensions of ONNX Runtime.
    Microsoft,
    /// `com.microsoft.nchwc`, the operators that ONNX Runtime runs on channels in blocks.
    Nchwc,
}

impl Domain {
    /// The name in models.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Onnx => "ai.onnx",
            Self::Ml => "ai.onnx.ml",
            Self::Microsoft => "com.microsoft",
            Self::Nchwc => "com.microsoft.nchwc",
        }
    }

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        match name {
            "" | "ai.onnx" => Some(Self::Onnx),
            "ai.onnx.ml" => Some(Self::Ml),
            "com.microsoft" => Some(Self::Microsoft),
            "com.microsoft.nchwc" => Some(Self::Nchwc),
            _ => None,
        }
    }
}

/// The source of the outputs' shapes.
#[derive(Clone, Copy)]
pub(crate) enum Size {
    /// A rule.
    Rule(ShapeRule),
    /// A rule, except for sizes that depend on values known only at run time.
    Run(ShapeRule),
    /// The value in the attributes: `Constant`.
    Stored,
    /// The operator's sub-graphs.
    Body(Body),
    /// A rule for the tensors in an output that is a sequence.
    List(fn(&Op) -> Result<List, Reason>),
    /// The output is this, not a tensor, and cannot be planned.
    Refused(&'static str),
}

/// The way in which an operator runs its sub-graphs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Body {
    If,
    Loop,
    Scan,
}

/// The condition under which an output is a view of the first input.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum View {
    /// Always: the same bytes with another type.
    Bits,
    /// If the type and the size in bytes stay the same.
    Whole,
    /// If nothing is repeated.
    SameShape,
    /// If no element is dropped.
    Passed,
    /// If it is known which tensor of a sequence it is.
    Element,
    /// If only dimensions of size 1 move.
    KeptOrder,
    /// If the part is one run of bytes.
    Run,
    /// If the parts are runs of bytes, each output one.
    Runs,
}

/// The condition under which an output may be written over an input.
#[derive(Clone, Copy)]
pub(crate) enum InPlace {
    /// Never, for this reason.
    Never(&'static str),
    /// If the input has the output's shape and element width, and the kernels work in this way.
    Over(Operands),
}

/// The outputs that may be written over inputs, and these inputs.
#[derive(Clone, Copy)]
pub(crate) struct Operands {
    pub(crate) kernel: Kernel,
    pub(crate) outputs: &'static [usize],
    /// The inputs; `None` for all.
    pub(crate) inputs: Option<&'static [usize]>,
    /// The condition under which the kernels read again what they have overwritten.
    pub(crate) unless: Option<Unless>,
}

/// A condition under which an operator cannot work in place, with the reason.
#[derive(Clone, Copy)]
pub(crate) struct Unless {
    pub(crate) when: fn(&Op) -> bool,
    pub(crate) reason: &'static str,
}

impl Operands {
    /// Returns the assumption for an operator whose kernel the caller describes.
    pub(crate) const fn of_kernel(kernel: Kernel) -> Self {
        let inputs: Option<&[usize]> = match kernel {
            Kernel::Elementwise => None,
            Kernel::Rows => Some(&[0]),
        };
        Self { kernel, outputs: &[0], inputs, unless: None }
    }

    pub(crate) fn may_lie_over(&self, input: usize) -> bool {
        self.inputs.is_none_or(|inputs| inputs.contains(&input))
    }
}

/// The order in which a kernel reads and writes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kernel {
    /// It reads an element for the last time before it writes the one at the same place.
    Elementwise,
    /// It reads a row for the last time before it overwrites the row. A row holds all inputs of an
    /// output element.
    Rows,
}

impl Kernel {
    /// Returns the kernel for a profile that a caller gives, if it can work in place.
    pub(crate) fn of(named: Profile) -> Option<Self> {
        match named {
            Profile::None => None,
            Profile::Elementwise => Some(Self::Elementwise),
            Profile::Rows => Some(Self::Rows),
        }
    }

    /// The least profile that allows such kernels to work in place.
    pub(crate) const fn profile(self) -> Profile {
        match self {
            Self::Elementwise => Profile::Elementwise,
            Self::Rows => Profile::Rows,
        }
    }
}

/// The reason why most operators cannot work in place.
pub(crate) const READS_AHEAD: &str = "an output element depends on several input elements";

impl Row {
    /// Returns whether the operator runs one of its sub-graphs, which make its outputs.
    pub(crate) const fn is_condition(&self) -> bool {
        matches!(self.shapes, Size::Body(Body::If))
    }

    /// Returns whether the outputs differ from run to run even for the same inputs.
    pub(crate) fn is_random(&self, op: &Op) -> bool {
        self.random.is_some_and(|random| random(op))
    }

    /// Creates an operator with this rule for its shapes. Its outputs have the type of the first
    /// input and memory of their own.
    pub(crate) const fn new(name: &'static str, rule: ShapeRule) -> Self {
        Self::sized(name, Size::Rule(rule))
    }

    pub(crate) const fn sized(name: &'static str, shapes: Size) -> Self {
        Self {
            name,
            domains: &[Domain::Onnx],
            shapes,
            check: None,
            most: None,
            types: &[FIRST],
            fold: None,
            view: None,
            gathers: false,
            in_place: InPlace::Never(READS_AHEAD),
            skips_unread: None,
            random: None,
        }
    }

    /// Makes it an operator of `com.microsoft`.
    pub(crate) const fn microsoft(self) -> Self {
        Self { domains: &[Domain::Microsoft], ..self }
    }

    /// Adds the domain `com.microsoft` to an operator of ONNX.
    pub(crate) const fn also_microsoft(self) -> Self {
        Self { domains: &[Domain::Onnx, Domain::Microsoft], ..self }
    }

    /// Makes it an operator of `com.microsoft.nchwc`.
    pub(crate) const fn nchwc(self) -> Self {
        Self { domains: &[Domain::Nchwc], ..self }
    }

    pub(crate) const fn ml(self) -> Self {
        Self { domains: &[Domain::Ml], ..self }
    }

    pub(crate) const fn types(self, types: &'static [TypeRule]) -> Self {
        Self { types, ..self }
    }

    pub(crate) const fn fold(self, fold: Fold) -> Self {
        Self { fold: Some(fold), ..self }
    }

    /// Sets the comparison of sizes that must agree.
    pub(crate) const fn checks(self, check: Check) -> Self {
        Self { check: Some(check), ..self }
    }

    /// Sets the rule for the largest outputs.
    pub(crate) const fn most(self, most: ShapeRule) -> Self {
        Self { most: Some(most), ..self }
    }

    pub(crate) const fn view(self, view: View) -> Self {
        Self { view: Some(view), ..self }
    }

    /// Marks the output as holding its inputs one after another.
    pub(crate) const fn gathers(self) -> Self {
        Self { gathers: true, ..self }
    }

    const fn over(self, kernel: Kernel, inputs: Option<&'static [usize]>) -> Self {
        let operands = Operands { kernel, outputs: &[0], inputs, unless: None };
        Self { in_place: InPlace::Over(operands), ..self }
    }

    /// Lets the output be written over these inputs, element by element.
    pub(crate) const fn elementwise(self, inputs: &'static [usize]) -> Self {
        self.over(Kernel::Elementwise, Some(inputs))
    }

    /// Lets the output be written over any input, element by element.
    pub(crate) const fn elementwise_over_any(self) -> Self {
        self.over(Kernel::Elementwise, None)
    }

    /// Lets the output be written over the first input, row by row.
    pub(crate) const fn rows(self) -> Self {
        self.over(Kernel::Rows, Some(&[0]))
    }

    pub(crate) const fn operands(self, operands: Operands) -> Self {
        Self { in_place: InPlace::Over(operands), ..self }
    }

    pub(crate) const fn never(self, why: &'static str) -> Self {
        Self { in_place: InPlace::Never(why), ..self }
    }

    pub(crate) const fn skips_unread(self, when: fn(&Op) -> bool) -> Self {
        Self { skips_unread: Some(when), ..self }
    }

    pub(crate) const fn random(self, when: fn(&Op) -> bool) -> Self {
        Self { random: Some(when), ..self }
    }
}
