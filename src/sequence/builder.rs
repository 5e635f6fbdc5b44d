//! Building and checking a sequence.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    convert::Infallible,
};

use crate::{
    Bytes, Operator,
    sequence::{
        Dependency, DimRange, Gather, OpSequence, OperatorNode, Origin, Overwrite, SequenceError,
        SizeBasis, Tensor, TensorId, TensorType, captured, check, control, given::Given, order,
    },
};

/// Collects tensors and operators; [`build`](Self::build) checks them.
///
/// ```
/// use memplan::{OpSequence, Operator, Output};
///
/// let sequence = OpSequence::builder()
///     .input("x", 4096)
///     .operator(Operator::new("conv").inputs(["x"]).output(Output::new("y", 8192)))
///     .output("y")
///     .build()?;
/// # assert_eq!(sequence.operators().len(), 1);
/// # Ok::<(), memplan::SequenceError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct SequenceBuilder {
    inputs: Vec<(Box<str>, Bytes)>,
    weights: Vec<(Box<str>, Option<Bytes>)>,
    operators: Vec<Operator>,
    outputs: Vec<Box<str>>,
    types: HashMap<Box<str>, TensorType>,
    undeclared_are_weights: bool,
    /// The ids handed out, from 0.
    ids: HashMap<Box<str>, TensorId>,
    dims: BTreeMap<Box<str>, DimRange>,
}

impl SequenceBuilder {
    /// Returns the id that a tensor has in the built sequence. The tensor may be declared before or after
    /// this call. Requested ids count up from 0 in the order of the requests; all other tensors come after
    /// them. Permuting a sequence, or writing it to a file and reading it again, changes its ids.
    ///
    /// ```
    /// use memplan::{OpSequence, Operator, Output};
    ///
    /// let mut builder = OpSequence::builder();
    /// let x = builder.input("x", 4096).id("x");
    /// let y = builder.id("y");
    /// builder.operator(Operator::new("relu").inputs(["x"]).output(Output::new("y", 4096)));
    /// let sequence = builder.output("y").build()?;
    /// assert_eq!(sequence.operators()[0].inputs, [x]);
    /// assert_eq!(sequence.outputs(), [y]);
    /// # Ok::<(), memplan::SequenceError>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If 2^32 ids have been handed out already.
    pub fn id(&mut self, name: impl Into<Box<str>>) -> TensorId {
        let next = TensorId::from_index(self.ids.len());
        *self.ids.entry(name.into()).or_insert(next)
    }

    /// Declares a tensor that is supplied for each run, with its size in bytes.
    pub fn input(&mut self, name: impl Into<Box<str>>, size: Bytes) -> &mut Self {
        self.inputs.push((name.into(), size));
        self
    }

    /// Declares a tensor that is supplied once and is the same in every run. Its size in bytes may
    /// be `None` if weights stay outside the pool.
    pub fn weight(&mut self, name: impl Into<Box<str>>, size: Option<Bytes>) -> &mut Self {
        self.weights.push((name.into(), size));
        self
    }

    /// Adds the next operator.
    pub fn operator(&mut self, operator: Operator) -> &mut Self {
        self.operators.push(operator);
        self
    }

    /// Names a graph output: a tensor that lives to the end of the sequence.
    pub fn output(&mut self, name: impl Into<Box<str>>) -> &mut Self {
        self.outputs.push(name.into());
        self
    }

    /// States the element type and shape of a tensor of any origin, before it is declared or after. They
    /// are not compared with its size.
    ///
    /// ```
    /// use memplan::{OpSequence, Operator, Output};
    ///
    /// let mut builder = OpSequence::builder();
    /// builder.input("x", 4096).tensor_type("x", "float32", [1, 1024]);
    /// builder.operator(Operator::new("relu").inputs(["x"]).output(Output::new("y", 4096)));
    /// let sequence = builder.output("y").build()?;
    /// let x = &sequence.tensors()[0];
    /// assert_eq!((x.dtype(), x.shape()), (Some("float32"), Some(&[1, 1024][..])));
    /// # Ok::<(), memplan::SequenceError>(())
    /// ```
    pub fn tensor_type(
        &mut self,
        name: impl Into<Box<str>>,
        dtype: impl Into<Box<str>>,
        shape: impl Into<Vec<u64>>,
    ) -> &mut Self {
        self.typed(name, TensorType::new(dtype, shape));
        self
    }

    /// As [`tensor_type`](Self::tensor_type).
    pub(crate) fn typed(&mut self, name: impl Into<Box<str>>, of: TensorType) {
        self.types.insert(name.into(), of);
    }

    /// States that the sequence is valid for all of these sizes of a dimension. Every tensor must be declared
    /// with its size at the largest dimensions; see [`OpSequence::dims`].
    pub fn dim(&mut self, name: impl Into<Box<str>>, sizes: impl Into<DimRange>) -> &mut Self {
        self.dims.insert(name.into(), sizes.into());
        self
    }

    /// Accepts inputs of operators that are neither declared nor produced, and makes them weights,
    /// as sequence files do.
    pub fn undeclared_are_weights(&mut self) -> &mut Self {
        self.undeclared_are_weights = true;
        self
    }

    /// Checks everything and puts the operators into execution order: the order given if every operator comes
    /// after those that it reads from or is declared to run after, otherwise a stable topological sort. The
    /// builder keeps its contents and can be built again.
    ///
    /// # Errors
    ///
    /// If a tensor or an operator to run after is unknown, a tensor is defined twice, an output has
    /// dependencies of two kinds, a dependency names a tensor that is not an input of its operator,
    /// a view, an overwriter or a gathered input does not fit, operators form a cycle, a body uses a tensor
    /// around it in a way that its operator does not declare, bodies are nested more than
    /// [`OpSequence::MAX_DEPTH`] levels deep, a range of sizes is empty, or the sum of the sizes
    /// exceeds 64 bits.
    pub fn build(&self) -> Result<OpSequence, SequenceError> {
        self.check_outputs()?;
        let names = Names::collect(self)?;
        let after = control::resolve(&self.operators)?;
        let producer = |name: &str| names.producer(name);
        let Some(order) = order::execution_order(&self.operators, &producer, &after)? else {
            return self.resolve(names, after);
        };
        let sorted = Self {
            inputs: self.inputs.clone(),
            weights: self.weights.clone(),
            operators: order.iter().map(|&at| self.operators[at].clone()).collect(),
            outputs: self.outputs.clone(),
            types: self.types.clone(),
            undeclared_are_weights: self.undeclared_are_weights,
            ids: self.ids.clone(),
            dims: self.dims.clone(),
        };
        let mut sequence =
            sorted.resolve(Names::collect(&sorted)?, order::renumbered(&after, &order))?;
        sequence.set_given_order(order);
        Ok(sequence)
    }

    fn resolve(&self, names: Names, after: Vec<Vec<usize>>) -> Result<OpSequence, SequenceError> {
        let sequence = names.resolve(self, after)?;
        check::views(&sequence)?;
        check::overwriters(&sequence)?;
        check::gathers(&sequence)?;
        captured::captured(&sequence)?;
        check::streams(&sequence)?;
        check::sizes(&sequence)?;
        check::depth(&sequence)?;
        check::dims(&sequence)?;
        Ok(sequence)
    }

    fn check_outputs(&self) -> Result<(), SequenceError> {
        let mut outputs = self.operators.iter().flat_map(|operator| &operator.outputs);
        match outputs.find(|output| output.is_mixed) {
            Some(output) => {
                Err(SequenceError::SeveralDependencies { output: output.name.to_string() })
            }
            None => Ok(()),
        }
    }
}

/// All tensors of a sequence by name.
struct Names {
    ids: HashMap<Box<str>, TensorId>,
    /// Tensors whose ids were requested, then inputs, weights of known size, outputs in operator order, and
    /// other weights in the order of their first use. So a sequence whose ids were not requested gets the
    /// same ids when it is written and read again. Weights of unknown size that no operator reads come last.
    tensors: Vec<Tensor>,
    /// The weights that were not declared.
    undeclared: Vec<Box<str>>,
}

impl Names {
    fn collect(builder: &SequenceBuilder) -> Result<Self, SequenceError> {
        let mut names =
            Self { ids: HashMap::new(), tensors: asked_for(&builder.ids), undeclared: Vec::new() };
        for (name, size) in &builder.inputs {
            names.define(builder, name, Some(*size), Origin::Input)?;
        }
        for (name, size) in builder.weights.iter().filter(|(_, size)| size.is_some()) {
            names.define(builder, name, *size, Origin::Weight)?;
        }
        for (step, operator) in builder.operators.iter().enumerate() {
            for output in &operator.outputs {
                let origin = Origin::Output { step, dependency: Dependency::Fresh };
                let id = names.define(builder, &output.name, Some(output.size), origin)?;
                names.tensors[id.index()].basis = output.basis;
            }
        }
        let weights = builder.weights.iter().filter(|(_, size)| size.is_none());
        let mut unread = HashSet::new();
        for (name, _) in weights.clone() {
            if !unread.insert(name) {
                return Err(twice(builder, name, &Origin::Weight, &Origin::Weight));
            }
        }
        for name in builder.operators.iter().flat_map(|operator| &operator.inputs) {
            let undeclared = builder.undeclared_are_weights && !names.ids.contains_key(name);
            if unread.remove(name) {
                names.define(builder, name, None, Origin::Weight)?;
            } else if undeclared {
                names.define(builder, name, None, Origin::Weight)?;
                names.undeclared.push(name.clone());
            }
        }
        for (name, _) in weights.filter(|(name, _)| unread.contains(name)) {
            names.define(builder, name, None, Origin::Weight)?;
        }
        for tensor in &names.tensors[..builder.ids.len()] {
            names.find(&tensor.name, || "the list of ids asked for".to_owned())?;
        }
        Ok(names)
    }

    /// The operator that produces a tensor, by its place in the list given.
    fn producer(&self, name: &str) -> Option<usize> {
        self.tensors[self.ids.get(name)?.index()].producer()
    }

    fn define(
        &mut self,
        builder: &SequenceBuilder,
        name: &str,
        size: Option<Bytes>,
        origin: Origin,
    ) -> Result<TensorId, SequenceError> {
        if self.tensors.len() >= u32::MAX as usize {
            return Err(SequenceError::TooManyTensors);
        }
        let asked_for = builder.ids.get(name).copied();
        let id = asked_for.unwrap_or_else(|| TensorId::from_index(self.tensors.len()));
        if let Some(first) = self.ids.insert(name.into(), id) {
            return Err(twice(builder, name, &self.tensors[first.index()].origin, &origin));
        }
        let elements = builder.types.get(name).cloned();
        let basis = SizeBasis::Exact;
        let tensor = Tensor { name: name.into(), size, basis, elements, origin };
        match self.tensors.get_mut(id.index()) {
            Some(place) => *place = tensor,
            None => self.tensors.push(tensor),
        }
        Ok(id)
    }

    fn find(&self, name: &str, user: impl FnOnce() -> String) -> Result<TensorId, SequenceError> {
        self.ids
            .get(name)
            .copied()
            .ok_or_else(|| SequenceError::UnknownTensor { user: user(), tensor: name.to_owned() })
    }

    /// Replaces names by ids everywhere.
    fn resolve(
        mut self,
        builder: &SequenceBuilder,
        after: Vec<Vec<usize>>,
    ) -> Result<OpSequence, SequenceError> {
        let mut operators = Vec::with_capacity(builder.operators.len());
        for ((step, declared), after) in builder.operators.iter().enumerate().zip(after) {
            let user = || format!("operator '{}'", declared.display_name(step));
            let inputs = declared
                .inputs
                .iter()
                .map(|name| self.find(name, user))
                .collect::<Result<Vec<TensorId>, _>>()?;
            // With many inputs, a list would make this quadratic in inputs and outputs.
            let many: HashSet<TensorId> =
                if inputs.len() > 16 { inputs.iter().copied().collect() } else { HashSet::new() };
            let is_input = |id: &TensorId| {
                if many.is_empty() { inputs.contains(id) } else { many.contains(id) }
            };
            let mut outputs = Vec::with_capacity(declared.outputs.len());
            for output in &declared.outputs {
                let id = self.find(&output.name, user)?;
                let input = |name: &str| match self.ids.get(name) {
                    Some(id) if is_input(id) => Ok(*id),
                    _ => Err(SequenceError::NotAnInput {
                        operator: declared.display_name(step),
                        output: output.name.to_string(),
                        tensor: name.to_string(),
                    }),
                };
                let dependency = output.dependency.try_map(|name| input(name))?;
                self.tensors[id.index()].origin = Origin::Output { step, dependency };
                outputs.push(id);
            }
            operators.push(OperatorNode {
                name: declared.name.clone(),
                kind: declared.kind.clone(),
                inputs,
                outputs,
                after,
                stream: declared.stream,
                workspace: declared.workspace,
                cost: declared.cost.unwrap_or(1),
                once: declared.once,
                bodies: declared.bodies.clone(),
                runs_bodies: false,
            });
        }
        let mut outputs = Vec::with_capacity(builder.outputs.len());
        let mut listed = HashSet::new();
        for name in &builder.outputs {
            let id = self.find(name, || "the list of graph outputs".to_owned())?;
            if listed.insert(id) {
                outputs.push(id);
            }
        }
        let inner = operators.iter().flat_map(|operator| &operator.bodies);
        let depth = inner.map(|body| body.depth + 1).max().unwrap_or(0);
        let dims = builder.dims.clone();
        let updated_in_bodies = Vec::new();
        let Self { ids, tensors, undeclared } = self;
        let given = Given { undeclared, ..Given::default() };
        Ok(OpSequence { operators, tensors, outputs, ids, depth, updated_in_bodies, dims, given })
    }
}

/// Places for the tensors whose ids were requested, until they are defined.
fn asked_for(ids: &HashMap<Box<str>, TensorId>) -> Vec<Tensor> {
    let mut names: Vec<(&str, TensorId)> = ids.iter().map(|(name, &id)| (&**name, id)).collect();
    names.sort_unstable_by_key(|&(_, id)| id);
    let place = |(name, _): (&str, TensorId)| Tensor {
        name: name.into(),
        size: None,
        basis: SizeBasis::Exact,
        elements: None,
        origin: Origin::Weight,
    };
    names.into_iter().map(place).collect()
}

fn twice(builder: &SequenceBuilder, name: &str, first: &Origin, second: &Origin) -> SequenceError {
    let definer = |origin: &Origin| match origin {
        Origin::Input => "the list of inputs".to_owned(),
        Origin::Weight => "the list of weights".to_owned(),
        Origin::Output { step, .. } => {
            format!("operator '{}'", builder.operators[*step].display_name(*step))
        }
    };
    SequenceError::DefinedTwice {
        tensor: name.to_owned(),
        first: definer(first),
        second: definer(second),
    }
}

impl<T> Dependency<T> {
    pub(crate) fn map<U>(&self, map: impl Fn(&T) -> U) -> Dependency<U> {
        let Ok(mapped) = self.try_map(|input| Ok::<U, Infallible>(map(input)));
        mapped
    }

    pub(super) fn try_map<U, E>(
        &self,
        mut map: impl FnMut(&T) -> Result<U, E>,
    ) -> Result<Dependency<U>, E> {
        Ok(match self {
            Self::Fresh => Dependency::Fresh,
            Self::Reads { input, offset, required } => {
                Dependency::Reads { input: map(input)?, offset: *offset, required: *required }
            }
            Self::Overwrites(overwrites) => Dependency::Overwrites(
                overwrites
                    .iter()
                    .map(|overwrite| {
                        Ok(Overwrite {
                            input: map(&overwrite.input)?,
                            offset: overwrite.offset,
                            below: overwrite.below,
                            required: overwrite.required,
                        })
                    })
                    .collect::<Result<_, E>>()?,
            ),
            Self::Gathers(gathers) => Dependency::Gathers(
                gathers
                    .iter()
                    .map(|&Gather { ref input, offset, required }| {
                        Ok(Gather { input: map(input)?, offset, required })
                    })
                    .collect::<Result<_, E>>()?,
            ),
        })
    }
}
