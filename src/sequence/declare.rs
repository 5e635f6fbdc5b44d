//! Operators as a caller declares them, before they are checked.

use crate::{Bytes, OpSequence, sequence::after::OperatorRef};

/// The dependency of an output's memory on the inputs of its operator. `T` identifies an input: a name
/// while a sequence is declared, a [`TensorId`](super::TensorId) once it is checked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Dependency<T> {
    /// New memory.
    #[default]
    Fresh,
    /// A read dependency: the output is a view of an input, `offset` bytes from its start.
    Reads {
        /// The viewed input.
        input: T,
        /// Bytes from the input's start.
        offset: Bytes,
        /// True if the output must lie there, because its operator makes no copy; false if it may.
        required: bool,
    },
    /// Write dependencies: the output is written over one of these inputs, the first that can be
    /// accepted.
    Overwrites(Vec<Overwrite<T>>),
    /// The output holds the bytes of these inputs, as a concatenation does. Where an input already lies at its
    /// place, nothing needs to be copied.
    Gathers(Vec<Gather<T>>),
}

/// An input whose bytes an output holds.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Gather<T> {
    /// The input.
    pub input: T,
    /// Bytes from the output's start.
    pub offset: Bytes,
    /// True if the input must lie there, because the operator makes no copy; false if it may.
    pub required: bool,
}

/// One way for an output to be written over an input.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Overwrite<T> {
    /// The overwritten input.
    pub input: T,
    /// Bytes from the input's start; 0 if the output begins below it.
    pub offset: Bytes,
    /// The least number of bytes by which the output must begin below the input; 0 if it lies inside the
    /// input's chunk.
    pub below: Bytes,
    /// True if the output must land there (a state update), false if it may.
    pub required: bool,
}

/// The basis of a tensor's size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "snake_case")
)]
#[non_exhaustive]
pub enum SizeBasis {
    /// The size is the same in every run.
    #[default]
    Exact,
    /// The size is known only at run time; this is its maximum.
    AtMost,
    /// The model declares the size, and nothing confirms it.
    Declared,
}

impl SizeBasis {
    #[cfg(feature = "serde")]
    #[allow(clippy::trivially_copy_pass_by_ref, reason = "as serde asks")]
    pub(crate) fn is_exact(&self) -> bool {
        *self == Self::Exact
    }
}

/// The element type and the shape of a tensor, for display: plans depend on sizes in bytes alone, and only the
/// [memory pattern](crate::baselines::onnxruntime) of ONNX Runtime compares shapes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields)
)]
pub(crate) struct TensorType {
    /// The type of the elements, by its name in `NumPy` if it has one there, such as `float32`.
    pub(crate) dtype: Box<str>,
    /// The elements along each dimension; the largest shape if it differs from run to run.
    pub(crate) shape: Vec<u64>,
}

impl TensorType {
    pub(crate) fn new(dtype: impl Into<Box<str>>, shape: impl Into<Vec<u64>>) -> Self {
        Self { dtype: dtype.into(), shape: shape.into() }
    }
}

/// An output of an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    pub(crate) name: Box<str>,
    pub(crate) size: Bytes,
    pub(crate) basis: SizeBasis,
    pub(crate) dependency: Dependency<Box<str>>,
    /// True if dependencies of two kinds were declared, which is an error when the sequence is
    /// built.
    pub(crate) is_mixed: bool,
}

impl Output {
    /// Creates an output in fresh memory, with a name and a size in bytes.
    pub fn new(name: impl Into<Box<str>>, size: Bytes) -> Self {
        let basis = SizeBasis::Exact;
        Self { name: name.into(), size, basis, dependency: Dependency::Fresh, is_mixed: false }
    }

    /// Sets the basis of the size.
    #[must_use]
    pub fn basis(mut self, basis: SizeBasis) -> Self {
        self.basis = basis;
        self
    }

    /// Lets the output be a view of the whole input, such as a reshape. Unless the view is
    /// [required](Self::required), a planner may make it a copy instead: where that makes the pool smaller, or where
    /// a required overwrite would destroy bytes of the view that are still read. A view cannot also overwrite or
    /// gather.
    #[must_use]
    pub fn reads(self, input: impl Into<Box<str>>) -> Self {
        self.reads_at(input, 0)
    }

    /// Lets the output be a view of the input from `offset` bytes on, such as a contiguous slice.
    #[must_use]
    pub fn reads_at(mut self, input: impl Into<Box<str>>, offset: Bytes) -> Self {
        self.is_mixed |=
            matches!(self.dependency, Dependency::Overwrites(_) | Dependency::Gathers(_));
        self.dependency = Dependency::Reads { input: input.into(), offset, required: false };
        self
    }

    /// Requires the dependencies that were declared so far. A view is then never a copy, because its operator
    /// moves no bytes; an output that overwrites must be written over its input, as with
    /// [`updates`](Self::updates); and gathered inputs must lie inside the output, as with
    /// [`holds`](Self::holds).
    ///
    /// ```
    /// use memplan::{OpSequence, Operator, Output, Planner};
    ///
    /// let sequence = |slice: Output| {
    ///     OpSequence::builder()
    ///         .operator(Operator::new("embed").output(Output::new("x", 4096)))
    ///         .operator(Operator::new("slice").inputs(["x"]).output(slice))
    ///         .operator(Operator::new("mlp").output(Output::new("y", 4096)))
    ///         .operator(Operator::new("add").inputs(["y", "first"]).output(Output::new("z", 64)))
    ///         .output("z")
    ///         .build()
    /// };
    /// let view = Output::new("first", 64).reads("x");
    /// let pool_size = |slice| Ok::<_, memplan::PlanError>(Planner::new().plan(&sequence(slice)?)?.pool_size());
    /// assert_eq!(pool_size(view.clone())?, 4224);
    /// assert_eq!(pool_size(view.required())?, 4224);
    /// # Ok::<(), memplan::PlanError>(())
    /// ```
    #[must_use]
    pub fn required(mut self) -> Self {
        match &mut self.dependency {
            Dependency::Reads { required, .. } => *required = true,
            Dependency::Overwrites(overwrites) => {
                for overwrite in overwrites {
                    overwrite.required = true;
                }
            }
            Dependency::Gathers(gathers) => {
                for gather in gathers {
                    gather.required = true;
                }
            }
            Dependency::Fresh => {}
        }
        self
    }

    /// Makes the output hold a copy of the whole input, `offset` bytes from the output's own start, as a
    /// concatenation does. Where it can, the planner puts the input there from the beginning, so that nothing
    /// is left to copy.
    ///
    /// ```
    /// use memplan::{OpSequence, Operator, Output, Planner};
    ///
    /// let concat = Output::new("c", 96).gathers("a", 0).gathers("b", 64);
    /// let sequence = OpSequence::builder()
    ///     .operator(Operator::new("conv").output(Output::new("a", 64)))
    ///     .operator(Operator::new("conv").output(Output::new("b", 32)))
    ///     .operator(Operator::new("concat").inputs(["a", "b"]).output(concat))
    ///     .output("c")
    ///     .build()?;
    /// let plan = Planner::new().plan(&sequence)?;
    /// assert_eq!((plan.pool_size(), plan.offset("b")), (96, Some(64)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn gathers(self, input: impl Into<Box<str>>, offset: Bytes) -> Self {
        self.gather(input.into(), offset, false)
    }

    /// Requires the whole input to lie inside the output from the beginning, `offset` bytes from the output's
    /// own start: a concatenation whose operator moves no bytes. Planning fails if that is impossible, for example
    /// if an input lies outside the pool or would have to lie in two outputs, unless the input has no bytes.
    ///
    /// ```
    /// use memplan::{OpSequence, Operator, Output, Planner};
    ///
    /// let concat = Output::new("c", 96).holds("a", 0).holds("b", 64);
    /// let sequence = OpSequence::builder()
    ///     .operator(Operator::new("conv").output(Output::new("a", 64)))
    ///     .operator(Operator::new("conv").output(Output::new("b", 32)))
    ///     .operator(Operator::new("join").inputs(["a", "b"]).output(concat))
    ///     .output("c")
    ///     .build()?;
    /// let plan = Planner::new().plan(&sequence)?;
    /// let [a, b, c] = ["a", "b", "c"].map(|name| plan.offset(name));
    /// assert!(a == c && b == c.map(|c| c + 64));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn holds(self, input: impl Into<Box<str>>, offset: Bytes) -> Self {
        self.gather(input.into(), offset, true)
    }

    fn gather(mut self, input: Box<str>, offset: Bytes, required: bool) -> Self {
        self.is_mixed |=
            matches!(self.dependency, Dependency::Overwrites(_) | Dependency::Reads { .. });
        let gather = Gather { input, offset, required };
        match &mut self.dependency {
            Dependency::Gathers(gathers) => gathers.push(gather),
            dependency => *dependency = Dependency::Gathers(vec![gather]),
        }
        self
    }

    /// Lets the output be written over the input. If this is called for several inputs, the output
    /// is written over the first one that allows it. If another input of the operator shares some
    /// of the bytes, that is possible only if both inputs have exactly the bytes that are
    /// overwritten.
    #[must_use]
    pub fn overwrites(self, input: impl Into<Box<str>>) -> Self {
        self.overwrites_at(input, 0)
    }

    /// Lets the output be written over the input from `offset` bytes on.
    #[must_use]
    pub fn overwrites_at(self, input: impl Into<Box<str>>, offset: Bytes) -> Self {
        self.overwrite(input.into(), offset, 0, false)
    }

    /// Lets the output begin `below` bytes or more below the input and overlap it. At that distance, the operator
    /// must never write a byte of the input that it has yet to read; the least safe distance follows from the
    /// order in which the kernel reads and writes. No other input may share bytes with the output. With 0
    /// bytes, this is [`overwrites`](Self::overwrites).
    ///
    /// ```
    /// use memplan::{OpSequence, Operator, Output, Planner};
    ///
    /// // Each row is computed from three: itself and its two neighbours.
    /// let sequence = OpSequence::builder()
    ///     .operator(Operator::new("load").output(Output::new("x", 9216)))
    ///     .operator(Operator::new("blur").inputs(["x"]).output(Output::new("y", 9216).overlaps("x", 112)))
    ///     .output("y")
    ///     .build()?;
    /// assert_eq!(Planner::new().plan(&sequence)?.pool_size(), 9216 + 112);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn overlaps(self, input: impl Into<Box<str>>, below: Bytes) -> Self {
        self.overwrite(input.into(), 0, below, false)
    }

    /// Requires the output to be written over the input from `offset` bytes on: a state update that
    /// lands in the variable's memory. Planning fails if that is impossible, unless the update has
    /// no bytes.
    #[must_use]
    pub fn updates(self, input: impl Into<Box<str>>, offset: Bytes) -> Self {
        self.overwrite(input.into(), offset, 0, true)
    }

    fn overwrite(mut self, input: Box<str>, offset: Bytes, below: Bytes, required: bool) -> Self {
        self.is_mixed |=
            matches!(self.dependency, Dependency::Reads { .. } | Dependency::Gathers(_));
        let overwrite = Overwrite { input, offset, below, required };
        match &mut self.dependency {
            Dependency::Overwrites(overwrites) => overwrites.push(overwrite),
            dependency => *dependency = Dependency::Overwrites(vec![overwrite]),
        }
        self
    }
}

/// An operator with its inputs and outputs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Operator {
    pub(crate) name: Box<str>,
    pub(crate) kind: Box<str>,
    pub(crate) inputs: Vec<Box<str>>,
    pub(crate) outputs: Vec<Output>,
    pub(crate) after: Vec<OperatorRef>,
    pub(crate) stream: usize,
    pub(crate) workspace: Bytes,
    pub(crate) cost: Option<u64>,
    pub(crate) once: bool,
    pub(crate) bodies: Vec<OpSequence>,
}

impl Operator {
    /// Creates an operator without inputs and outputs. The name appears in messages and need not be
    /// unique.
    pub fn new(name: impl Into<Box<str>>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// Sets the kind of operator, such as `Conv`, for messages and reports.
    #[must_use]
    pub fn kind(mut self, kind: impl Into<Box<str>>) -> Self {
        self.kind = kind.into();
        self
    }

    /// Adds tensors that the operator reads.
    #[must_use]
    pub fn inputs<T: Into<Box<str>>>(mut self, inputs: impl IntoIterator<Item = T>) -> Self {
        self.inputs.extend(inputs.into_iter().map(Into::into));
        self
    }

    /// Adds a tensor that the operator produces.
    #[must_use]
    pub fn output(mut self, output: Output) -> Self {
        self.outputs.push(output);
        self
    }

    /// Makes the operator run after another one even if it reads none of its outputs: because of a
    /// side effect, or the state of a random number generator. No other operator may have this name.
    ///
    /// ```
    /// use memplan::{OpSequence, Operator};
    ///
    /// let sequence = OpSequence::builder()
    ///     .operator(Operator::new("seed"))
    ///     .operator(Operator::new("draw").after("seed"))
    ///     .operator(Operator::new("draw").after_place(1))
    ///     .build()?;
    /// assert!(sequence.permuted(&[0, 2, 1]).is_err());
    /// # Ok::<(), memplan::SequenceError>(())
    /// ```
    #[must_use]
    pub fn after(mut self, name: impl Into<Box<str>>) -> Self {
        self.after.push(OperatorRef::Name(name.into()));
        self
    }

    /// Makes the operator run after another one, as [`after`](Self::after), by the index of that one in the list of
    /// operators as given, from 0.
    #[must_use]
    pub fn after_place(mut self, place: usize) -> Self {
        self.after.push(OperatorRef::Place(place));
        self
    }

    /// Runs the operator on this stream; streams count from 0, which is the default. The operators of one
    /// stream run one after another. Operators of different streams may run at the same time, unless one
    /// reads an output of the other or is declared to run [after](Self::after) it, directly or through
    /// others. [`OpSequence::waits`] lists the waits that a runtime needs. In a plan, operators that may run
    /// at the same time never use the same bytes, unless both only read them.
    ///
    /// ```
    /// use memplan::{OpSequence, Operator, Output, Planner};
    ///
    /// let two_branches = |stream| {
    ///     OpSequence::builder()
    ///         .operator(Operator::new("a").output(Output::new("x", 64)))
    ///         .operator(Operator::new("b").inputs(["x"]).output(Output::new("y", 8)))
    ///         .operator(Operator::new("c").on_stream(stream).output(Output::new("z", 64)))
    ///         .operator(Operator::new("d").on_stream(stream).inputs(["z"]).output(Output::new("w", 8)))
    ///         .output("y")
    ///         .output("w")
    ///         .build()
    /// };
    /// let pool_size = |stream| Ok::<_, memplan::PlanError>(Planner::new().plan(&two_branches(stream)?)?.pool_size());
    /// assert_eq!((pool_size(0)?, pool_size(1)?), (80, 144));
    /// # Ok::<(), memplan::PlanError>(())
    /// ```
    #[must_use]
    pub fn on_stream(mut self, stream: usize) -> Self {
        self.stream = stream;
        self
    }

    /// Sets the scratch memory, in bytes, that the operator needs while it runs. It begins after the largest of its
    /// [bodies](Self::body).
    #[must_use]
    pub fn workspace(mut self, bytes: Bytes) -> Self {
        self.workspace = bytes;
        self
    }

    /// Sets the cost of running the operator once, for [`recompute`](crate::recompute), in any unit that is the same in
    /// the whole sequence: nanoseconds, operations, bytes moved. The default is 1.
    #[must_use]
    pub fn cost(mut self, cost: u64) -> Self {
        self.cost = Some(cost);
        self
    }

    /// States that the operator must not run twice, for [`recompute`](crate::recompute): because it draws random
    /// numbers, has a side effect, communicates with other machines, or calls the host.
    #[must_use]
    pub fn once(mut self) -> Self {
        self.once = true;
        self
    }

    /// Adds a sequence that the operator runs, once or many times: the body of a loop, or one of the branches
    /// of a condition. Only one body runs at a time. A [`Planner`](crate::Planner) plans each body by itself,
    /// with the planner's options. The operator's workspace has room for the body that needs most: its pool,
    /// after a copy of its inputs. The copy is needed because the state of the next iteration is written while
    /// the state of this one may still be read. The outputs of a body live to its end.
    ///
    /// A weight of a body that has the name of a tensor around the body is that tensor. The tensor must be among
    /// the inputs of the operator, so that nothing lies over it while the body runs. A body may update it only if
    /// an output of the operator does so too. Other weights are constants of the body.
    ///
    /// A weight may also be an output of the operator itself, if the output has memory of its own. A result that
    /// [updates](Output::updates) the weight is made directly in the output: it takes no bytes of the workspace,
    /// and nothing is left to copy. So the branches of a condition make one value, whichever runs. Such a weight
    /// must state a size of at most the output's size, and only outputs of the body's own operators may update it,
    /// not through views.
    ///
    /// ```
    /// use memplan::{OpSequence, Operator, Output, Planner};
    ///
    /// let body = OpSequence::builder()
    ///     .input("state", 64)
    ///     .operator(Operator::new("exp").inputs(["state"]).output(Output::new("t", 64)))
    ///     .operator(Operator::new("abs").inputs(["t"]).output(Output::new("next", 64).overwrites("t")))
    ///     .output("next")
    ///     .build()?;
    /// let sequence = OpSequence::builder()
    ///     .input("x", 64)
    ///     .operator(Operator::new("loop").inputs(["x"]).output(Output::new("y", 64)).body(body))
    ///     .output("y")
    ///     .build()?;
    /// let plan = Planner::new().plan(&sequence)?;
    /// // The copy of the state, and the pool of the body.
    /// assert_eq!(plan.workspace(0).map(|chunk| chunk.size), Some(64 + 64));
    /// assert_eq!(plan.bodies()[0].plan.pool_size(), 64);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn body(mut self, body: OpSequence) -> Self {
        self.bodies.push(body);
        self
    }

    /// The name in messages: its own or, without one, its kind and place.
    pub(super) fn display_name(&self, place: usize) -> String {
        display_name(&self.name, &self.kind, place)
    }
}

pub(super) fn display_name(name: &str, kind: &str, place: usize) -> String {
    match (name, kind) {
        ("", "") => format!("operator {place}"),
        ("", kind) => format!("{kind} (operator {place})"),
        (name, _) => name.to_owned(),
    }
}
