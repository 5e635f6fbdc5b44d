//! The most memory that every way to run holds, counted by the allocator.

use memplan::Planner;
use peak_alloc::PeakAlloc;
use rten::{Value, ValueType};
use rten_tensor::Layout;

use crate::{Network, Pool};

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// The seed of the random inputs.
const SEED: u64 = 2;

/// Bytes on top of weights and graph inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peaks {
    /// The runtime's own run of the graph as it is in the file.
    pub own: usize,
    /// The runtime's own run of the graph that it has optimized.
    pub own_optimized: usize,
    /// The pool.
    pub pool: usize,
    /// The run in the pool: the pool, and what the runtime holds while it computes one operator.
    pub in_pool: usize,
    /// The same without the outputs of the operator at work, which lie in the runtime's memory before they
    /// are copied into the pool. This is what a runtime would hold that wrote them into the pool itself,
    /// except for scratch memory that is freed before the outputs are allocated.
    pub in_pool_without_copies: usize,
}

impl Peaks {
    /// The heading of a table in Markdown whose rows are [`Peaks::row`].
    pub const HEADER: &str = "\
        | model | rten | rten, optimized graph | pool | rten in the pool | without copies |\n\
        | --- | ---: | ---: | ---: | ---: | ---: |";

    /// The row of a model, in MiB.
    #[must_use]
    pub fn row(&self, title: &str) -> String {
        #[allow(clippy::cast_precision_loss, reason = "figures for people")]
        let mib = |bytes: usize| format!(" {:.2} |", bytes as f64 / f64::from(1 << 20));
        let figures =
            [self.own, self.own_optimized, self.pool, self.in_pool, self.in_pool_without_copies];
        format!("| {title} |{}", figures.map(mib).concat())
    }
}

/// Runs a model in all ways. Nothing else may run in this process meanwhile.
///
/// # Panics
///
/// If the outputs differ.
#[must_use]
pub fn peaks(onnx: &[u8]) -> Peaks {
    let (own_optimized, _) = run(&mut Network::load_optimized(onnx));
    let mut network = Network::load(onnx);
    let (own, values) = run(&mut network);
    let outputs = network.outputs(&values);
    drop(values);
    Peaks { own, own_optimized, ..run_in_pool(&mut network, &outputs) }
}

/// The runtime's own run: its peak, and the graph outputs.
fn run(network: &mut Network) -> (usize, Vec<Value>) {
    let inputs = network.inputs(SEED);
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    network.renew_thread();
    let values = network.run(&inputs);
    (ALLOCATOR.peak_usage() - before, values)
}

/// The run in a pool, which must give these outputs.
fn run_in_pool(network: &mut Network, outputs: &[Vec<u8>]) -> Peaks {
    let plan = Planner::new().alignment(64).plan(network.sequence()).expect("a plan");
    let inputs = network.inputs(SEED);
    let size = usize::try_from(plan.pool_size()).expect("a pool that fits in memory");
    let mut peaks =
        Peaks { own: 0, own_optimized: 0, pool: size, in_pool: 0, in_pool_without_copies: 0 };
    let before = ALLOCATOR.current_usage();
    network.renew_thread();
    let mut pool = Pool::new(size);
    network.run_observed(&plan, &inputs, &mut pool, |operator| {
        ALLOCATOR.reset_peak_usage();
        let values = operator();
        let held = ALLOCATOR.peak_usage() - before;
        let copies: usize = values.iter().map(bytes).sum();
        peaks.in_pool = peaks.in_pool.max(held);
        peaks.in_pool_without_copies = peaks.in_pool_without_copies.max(held - copies);
        values
    });
    assert!(network.outputs_in_pool(&plan, &inputs, &pool) == outputs, "the outputs differ");
    peaks
}

/// The bytes that a value takes in the runtime's memory.
fn bytes(value: &Value) -> usize {
    let ValueType::Tensor(of) = value.dtype() else { panic!("no tensor: {:?}", value.dtype()) };
    value.len() * usize::from(of.size())
}
