//! What is known of one operator: a row of the table.

use crate::import::{
    InPlace as Profile,
    onnx::ops::{
        fold::Fold,
        op::{Op, Shapes},
        types::{FIRST, TypeRule},
    },
};

/// A rule for the shapes of the outputs.
pub(crate) type ShapeRule = fn(&Op) -> Shapes;

/// All that is known of an operator. Rules see the operator's attributes and what is known of its
/// inputs.
#[derive(Clone, Copy)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) domains: &'static [Domain],
    pub(crate) shapes: Size,
    /// The most that the outputs can be, where the shape depends on values that only the run knows.
    pub(crate) most: Option<ShapeRule>,
    /// The type of each output. The last rule holds for all further outputs.
    pub(crate) types: &'static [TypeRule],
    pub(crate) fold: Option<Fold>,
    pub(crate) view: Option<View>,
    pub(crate) in_place: InPlace,
    /// Whether outputs after the first are computed only if somebody reads them.
    pub(crate) skips_unread: Option<fn(&Op) -> bool>,
    /// Whether the outputs differ from run to run even for the same inputs.
    pub(crate) random: Option<fn(&Op) -> bool>,
}

/// Where an operator comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Domain {
    /// ONNX's own operators: `ai.onnx`, which models write as nothing.
    Onnx,
    /// `ai.onnx.ml`.
    Ml,
    /// `com.microsoft`, the extensions of ONNX Runtime.
    Microsoft,
}

impl Domain {
    /// The name in models.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Onnx => "ai.onnx",
            Self::Ml => "ai.onnx.ml",
            Self::Microsoft => "com.microsoft",
        }
    }

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        match name {
            "" | "ai.onnx" => Some(Self::Onnx),
            "ai.onnx.ml" => Some(Self::Ml),
            "com.microsoft" => Some(Self::Microsoft),
            _ => None,
        }
    }
}

/// How the shapes of the outputs are known.
#[derive(Clone, Copy)]
pub(crate) enum Size {
    /// By a rule.
    Rule(ShapeRule),
    /// By a rule, but for sizes that depend on values that only the run knows.
    Run(ShapeRule),
    /// From the value in the attributes: `Constant`.
    Stored,
    /// From the operator's sub-graphs.
    Body(Body),
    /// Not at all: the output is no tensor, but this.
    Refused(&'static str),
}

/// How an operator runs its sub-graphs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Body {
    If,
    Loop,
    Scan,
}

/// When an output is a view of the first input.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum View {
    /// Always: the same bytes, as another type.
    Bits,
    /// Whenever the type stays the same and the size in bytes as well.
    Whole,
    /// If nothing is repeated.
    SameShape,
    /// If nothing is dropped.
    Passed,
    /// If only dimensions of size 1 move.
    KeptOrder,
    /// If the part is one run of bytes.
    Run,
    /// If the parts are runs of bytes, each output one.
    Runs,
}

/// Whether an output may be written over an input.
#[derive(Clone, Copy)]
pub(crate) enum InPlace {
    /// Never, because.
    Never(&'static str),
    /// If the input has the output's shape and element width, and kernels work like this.
    Over(Operands),
}

/// Which outputs may be written over which inputs.
#[derive(Clone, Copy)]
pub(crate) struct Operands {
    pub(crate) kernel: Kernel,
    pub(crate) outputs: &'static [usize],
    /// `None` for all.
    pub(crate) inputs: Option<&'static [usize]>,
    /// When the kernels read again what they would have written over.
    pub(crate) unless: Option<Unless>,
}

/// A condition under which an operator cannot work in place, and why.
#[derive(Clone, Copy)]
pub(crate) struct Unless {
    pub(crate) when: fn(&Op) -> bool,
    pub(crate) reason: &'static str,
}

impl Operands {
    /// What is assumed of an operator whose kernel the caller describes.
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

/// How far a kernel reads before it writes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kernel {
    /// It reads an element for the last time before it writes the one at the same place.
    Elementwise,
    /// It reads a row for the last time before it writes over it. A row is all that an element of
    /// the output is computed from.
    Rows,
}

impl Kernel {
    /// The kernel that a caller names, if it can work in place.
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

/// Why most operators cannot work in place.
pub(crate) const READS_AHEAD: &str = "an output element depends on several input elements";

impl Row {
    /// Whether the outputs differ from run to run even for the same inputs.
    pub(crate) fn is_random(&self, op: &Op) -> bool {
        self.random.is_some_and(|random| random(op))
    }

    /// An operator with the given rule for its shapes. Its outputs have the type of the first
    /// input, and lie in memory of their own.
    pub(crate) const fn new(name: &'static str, rule: ShapeRule) -> Self {
        Self::sized(name, Size::Rule(rule))
    }

    pub(crate) const fn sized(name: &'static str, shapes: Size) -> Self {
        Self {
            name,
            domains: &[Domain::Onnx],
            shapes,
            most: None,
            types: &[FIRST],
            fold: None,
            view: None,
            in_place: InPlace::Never(READS_AHEAD),
            skips_unread: None,
            random: None,
        }
    }

    /// An operator of `com.microsoft`.
    pub(crate) const fn microsoft(self) -> Self {
        Self { domains: &[Domain::Microsoft], ..self }
    }

    /// An operator of ONNX that `com.microsoft` has as well.
    pub(crate) const fn also_microsoft(self) -> Self {
        Self { domains: &[Domain::Onnx, Domain::Microsoft], ..self }
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

    /// The rule for the most that the outputs can be.
    pub(crate) const fn most(self, most: ShapeRule) -> Self {
        Self { most: Some(most), ..self }
    }

    pub(crate) const fn view(self, view: View) -> Self {
        Self { view: Some(view), ..self }
    }

    /// Kernels read all of the input, or of a row, before they write.
    const fn over(self, kernel: Kernel, inputs: Option<&'static [usize]>) -> Self {
        let operands = Operands { kernel, outputs: &[0], inputs, unless: None };
        Self { in_place: InPlace::Over(operands), ..self }
    }

    /// The output may be written over these inputs: its kernels work element by element.
    pub(crate) const fn elementwise(self, inputs: &'static [usize]) -> Self {
        self.over(Kernel::Elementwise, Some(inputs))
    }

    /// The output may be written over any input: its kernels work element by element.
    pub(crate) const fn elementwise_over_any(self) -> Self {
        self.over(Kernel::Elementwise, None)
    }

    /// The output may be written over the first input: its kernels work row by row.
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
