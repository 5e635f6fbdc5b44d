//! A network that the runtime has loaded, and its own run.

mod in_pool;

use std::{
    collections::{HashMap, HashSet},
    mem,
    sync::Arc,
};

pub use in_pool::Pool;
use memplan::{
    OpSequence,
    import::{ImportOptions, onnx::read},
    sequence::{Origin, Tensor, TensorId},
};
use rten::{Dimension, Model, ModelOptions, NodeId, RunOptions, ThreadPool, Value, ValueOrView};
use rten_onnx::onnx::ModelProto;
use rten_tensor::Layout;

use crate::{
    tensor::{Element, Form},
    weights,
};

/// A model with random weights.
pub struct Network {
    model: Model,
    sequence: OpSequence,
    run_options: RunOptions,
    /// The runtime's name of every tensor that it knows, by [`TensorId`].
    nodes: Vec<Option<NodeId>>,
    /// The weights that the runtime holds.
    held: HashSet<TensorId>,
    /// By [`TensorId`]; `None` for tensors that only the runtime holds.
    forms: Vec<Option<Form>>,
    /// Tensors that are the same in every run but are not weights.
    constants: HashMap<TensorId, Value>,
}

/// Graph inputs, each in memory of its own.
pub struct Inputs(HashMap<TensorId, Pool>);

impl Network {
    /// Loads an ONNX model and gives it random weights.
    ///
    /// # Panics
    ///
    /// If memplan or the runtime cannot read it, or the runtime cannot run it.
    #[must_use]
    pub fn load(onnx: &[u8]) -> Self {
        let mut network = Self::read(onnx, false);
        network.learn();
        network
    }

    /// As [`Network::load`], with the runtime's optimizations. The optimized graph is not the one
    /// that memplan sees, so this network supports only [`run`](Network::run).
    ///
    /// # Panics
    ///
    /// If memplan or the runtime cannot read it.
    #[must_use]
    pub fn load_optimized(onnx: &[u8]) -> Self {
        Self::read(onnx, true)
    }

    fn read(onnx: &[u8], optimize: bool) -> Self {
        let mut proto = ModelProto::parse_buf(onnx).expect("an ONNX model");
        let file = weights::fill(&mut proto, 1);
        let graph = proto.graph.as_ref().expect("a model holds a graph");
        let initializers: HashSet<&str> =
            graph.initializer.iter().filter_map(|weight| weight.name.as_deref()).collect();
        let onnx = proto.write_buf().expect("a model that can be written");
        let sequence = read(&onnx, &ImportOptions::default()).expect("memplan reads the model");
        let mut options = ModelOptions::with_all_ops();
        options.enable_optimization(optimize).external_data(weights::FILE, file);
        let model = options.load(onnx).expect("the runtime reads the model");
        let tensors = || (0..).map(TensorId).zip(sequence.tensors());
        let is_held = |tensor: &Tensor| initializers.contains(&*tensor.name);
        let mut network = Self {
            run_options: one_thread(),
            nodes: tensors().map(|(_, tensor)| model.find_node(&tensor.name)).collect(),
            held: tensors().filter(|(_, tensor)| is_held(tensor)).map(|(id, _)| id).collect(),
            forms: vec![None; sequence.tensors().len()],
            constants: HashMap::new(),
            model,
            sequence,
        };
        network.know_inputs();
        network
    }

    /// The operators, as memplan sees them.
    #[must_use]
    pub fn sequence(&self) -> &OpSequence {
        &self.sequence
    }

    /// Makes the runtime compute in a new thread, which has not yet reserved memory for itself.
    pub(crate) fn renew_thread(&mut self) {
        // If the old thread ended, it would free its memory during a measurement.
        mem::forget(mem::replace(&mut self.run_options, one_thread()));
    }

    fn know_inputs(&mut self) {
        for id in self.input_ids() {
            let input = self.model.node_info(self.node(id)).expect("an input");
            let size = |dim: &Dimension| match dim {
                Dimension::Fixed(size) => *size,
                Dimension::Symbolic(name) => panic!("dimension '{name}' has no size"),
            };
            let shape = input.shape().expect("an input has a shape").iter().map(size).collect();
            let form = self.form(id, shape, input.dtype().expect("an input has a type"));
            self.forms[id.index()] = Some(form);
        }
    }

    /// Runs the network on zeros to learn the shapes of all tensors, and the constants.
    fn learn(&mut self) {
        let is_known = |id: &TensorId| self.held.contains(id) || self.forms[id.index()].is_some();
        let wanted: Vec<TensorId> = self.ids().filter(|id| !is_known(id)).collect();
        let zeros = self.inputs_of(|_, bytes| bytes.fill(0));
        let values = self.compute(self.given(&zeros), &wanted);
        for (id, value) in wanted.into_iter().zip(values) {
            if self.tensor(id).origin == Origin::Weight {
                self.constants.insert(id, value);
            } else {
                let form = self.form(id, value.shape().to_vec(), value.dtype());
                self.forms[id.index()] = Some(form);
            }
        }
    }

    fn form(&self, id: TensorId, shape: Vec<usize>, of: rten::ValueType) -> Form {
        let elements: usize = shape.iter().product();
        // A tensor without elements is never read.
        let width = self.size(id).checked_div(elements).unwrap_or(4);
        Form { shape, element: Element::new(of, width) }
    }

    /// Random graph inputs.
    ///
    /// # Panics
    ///
    /// If an input is neither of floats nor of `int64`.
    #[must_use]
    pub fn inputs(&self, seed: u64) -> Inputs {
        let mut random = fastrand::Rng::with_seed(seed);
        self.inputs_of(|id, bytes| {
            // Integers are indices of words, or a mask of words.
            let most = if self.tensor(id).name.contains("mask") { 1 } else { 1000 };
            match self.forms[id.index()].as_ref().map(|form| form.element) {
                Some(Element::Float) => {
                    bytemuck::cast_slice_mut(bytes).fill_with(|| random.f32() * 4.0 - 2.0);
                }
                Some(Element::Int64) => {
                    bytemuck::cast_slice_mut(bytes).fill_with(|| random.i64(0..=most));
                }
                other => panic!("no random input of {other:?}"),
            }
        })
    }

    fn inputs_of(&self, mut fill: impl FnMut(TensorId, &mut [u8])) -> Inputs {
        let memory = |id| {
            let mut memory = Pool::new(self.size(id));
            fill(id, memory.bytes_mut());
            (id, memory)
        };
        Inputs(self.input_ids().into_iter().map(memory).collect())
    }

    /// The runtime's own run, with its own memory: the graph outputs.
    #[must_use]
    pub fn run(&self, inputs: &Inputs) -> Vec<Value> {
        self.compute(self.given(inputs), self.sequence.outputs())
    }

    /// The bytes of the graph outputs of [`Network::run`].
    #[must_use]
    pub fn outputs(&self, values: &[Value]) -> Vec<Vec<u8>> {
        let outputs = self.sequence.outputs().iter().zip(values);
        outputs
            .map(|(&id, value)| {
                let mut bytes = vec![0; self.size(id)];
                self.form_of(id).store(value, &mut bytes);
                bytes
            })
            .collect()
    }

    fn compute(&self, given: Vec<(NodeId, ValueOrView)>, wanted: &[TensorId]) -> Vec<Value> {
        if wanted.is_empty() {
            return Vec::new();
        }
        let wanted: Vec<NodeId> = wanted.iter().map(|&id| self.node(id)).collect();
        let options = Some(self.run_options.clone());
        self.model.run(given, &wanted, options).unwrap_or_else(|error| panic!("{error}"))
    }

    fn given<'i>(&self, inputs: &'i Inputs) -> Vec<(NodeId, ValueOrView<'i>)> {
        let view = |(id, memory): (&TensorId, &'i Pool)| {
            (self.node(*id), self.form_of(*id).view(memory.bytes()))
        };
        inputs.0.iter().map(view).collect()
    }

    fn ids(&self) -> impl Iterator<Item = TensorId> + use<> {
        (0..).map(TensorId).take(self.sequence.tensors().len())
    }

    fn input_ids(&self) -> Vec<TensorId> {
        self.ids().filter(|&id| self.tensor(id).origin == Origin::Input).collect()
    }

    fn tensor(&self, id: TensorId) -> &Tensor {
        self.sequence.tensor(id)
    }

    fn node(&self, id: TensorId) -> NodeId {
        self.nodes[id.index()].expect("the runtime knows the tensor")
    }

    fn size(&self, id: TensorId) -> usize {
        index(self.tensor(id).size.expect("only weights have no size"))
    }

    fn form_of(&self, id: TensorId) -> &Form {
        self.forms[id.index()].as_ref().expect("no weight is written or supplied")
    }
}

fn one_thread() -> RunOptions {
    RunOptions::default().with_thread_pool(Some(Arc::new(ThreadPool::with_num_threads(1))))
}

fn index(bytes: u64) -> usize {
    usize::try_from(bytes).expect("fits the memory of this machine")
}
