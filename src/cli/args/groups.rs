//! Arguments that several commands share: the input, the planner and its limits.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use clap::Args;
use memplan::{
    Input, Limits, Planner, Strategy,
    import::{ImportOptions, InPlace, tflite},
    lower::LoweringOptions,
    order,
    problem::Pool,
};

use crate::{
    args::values::{
        Dimensions, FormatName, PinnedName, RuntimeName, SharedNames, capacity, dimensions,
        duration, named, nodes, pin, pool, profiles, runtimes, shape, shared, strategies,
    },
    files,
};

/// The headings of options in the help.
pub(super) const INPUT: &str = "Input";
pub(super) const SHARING: &str = "What may share memory";
pub(super) const PLANNING: &str = "Planning";
pub(super) const LIMITS: &str = "Limits";
pub(super) const OUTPUT: &str = "Output";

/// The input, and how it is lowered.
#[derive(Debug, Args)]
#[allow(clippy::struct_excessive_bools, reason = "independent switches of the command line")]
pub(crate) struct InputArgs {
    /// Format of the input, if the file extension does not show it.
    #[arg(long, value_name = "FORMAT", help_heading = INPUT)]
    pub(crate) format: Option<FormatName>,
    /// Device of a recording, such as cuda:0.
    ///
    /// By default, the device that needs the most bytes.
    #[arg(long, value_name = "NAME", help_heading = INPUT)]
    pub(crate) device: Option<String>,
    #[command(flatten)]
    pub(crate) sizes: SizeArgs,
    /// Put the model's inputs into the pool.
    #[arg(long, help_heading = SHARING)]
    inputs: bool,
    /// Put the model's weights into the pool.
    #[arg(long, help_heading = SHARING)]
    weights: bool,
    /// Give views memory of their own.
    ///
    /// A required update through a view still shares memory.
    #[arg(long, help_heading = SHARING)]
    no_views: bool,
    /// Copy the inputs of concatenations, and the optional parts of a problem.
    ///
    /// By default, they lie inside the output where possible, so that no copy is needed.
    #[arg(long, help_heading = SHARING)]
    no_gathers: bool,
    /// Kernels that may write over an input [default: rows].
    #[arg(long, value_name = "PROFILE", value_parser = profiles(), conflicts_with = "no_inplace", help_heading = SHARING)]
    inplace: Option<InPlace>,
    /// Kernels of a .tflite model, or a file of profiles for ONNX.
    ///
    /// For an ONNX model, a file with the profiles of individual operators, one per line, such as
    /// `Softmax none`. For a TensorFlow Lite model, the kernels that run it: reference, cmsis-nn,
    /// cmsis-nn-dsp or cmsis-nn-mve [default: reference].
    #[arg(long, value_name = "KERNELS", help_heading = SHARING)]
    pub(crate) kernels: Option<PathBuf>,
    /// Runtime of a model [default for .tflite: tflite-micro].
    #[arg(long, value_name = "NAME", value_parser = runtimes(), help_heading = INPUT)]
    pub(crate) runtime: Option<RuntimeName>,
    /// Scratch memory of single operators.
    ///
    /// The file gives the scratch memory of operators in bytes, one operator per line. For an ONNX model, a line has
    /// the name or type of an operator, such as `Conv 2304`. For a TensorFlow Lite model, a line is for an unknown
    /// kernel, such as `CONV_2D 2304` or, for operator 4, `4 1024 16`.
    #[arg(long, value_name = "FILE", help_heading = INPUT)]
    pub(crate) scratch: Option<PathBuf>,
    /// Let outputs of a .tflite model begin below inputs.
    ///
    /// The outputs of convolutions and pooling operators may begin below their inputs and reach over
    /// them, as far as the loops of the kernels allow. Needs --kernels, because the plan is wrong for
    /// other kernels.
    #[arg(long, requires = "kernels", conflicts_with = "no_inplace", help_heading = SHARING)]
    pub(crate) overlap: bool,
    /// Same as --inplace none.
    ///
    /// Writes no output over an input unless it is required.
    #[arg(long, help_heading = SHARING)]
    no_inplace: bool,
    /// Largest file to read.
    #[arg(long, value_name = "SIZE", value_parser = capacity, default_value = "2GiB", help_heading = INPUT)]
    pub(crate) max_input: u64,
}

impl InputArgs {
    /// Returns whether models are read for ONNX Runtime.
    pub(crate) fn is_for_onnxruntime(&self) -> bool {
        self.runtime == Some(RuntimeName::Onnxruntime)
    }

    /// Returns a given switch that affects only lowering.
    pub(crate) fn lowering_switch(&self) -> Option<&'static str> {
        let switches = [
            (self.inputs, "--inputs"),
            (self.weights, "--weights"),
            (self.no_views, "--no-views"),
            (self.no_gathers, "--no-gathers"),
        ];
        let switch = switches.into_iter().find_map(|(given, name)| given.then_some(name));
        switch.or_else(|| self.inplace_switch())
    }

    /// Returns a given switch that sets which outputs may be written over an input.
    pub(crate) fn inplace_switch(&self) -> Option<&'static str> {
        match self.profile() {
            _ if self.no_inplace => Some("--no-inplace"),
            None => self.kernels.as_ref().map(|_| "--kernels"),
            Some(_) => Some("--inplace"),
        }
    }

    /// Returns a given switch that sets how the kernels of a model's operators work.
    pub(crate) fn kernel_switch(&self) -> Option<&'static str> {
        match self.profile() {
            _ if self.kernels.is_some() => Some("--kernels"),
            _ if self.scratch.is_some() => Some("--scratch"),
            _ if self.runtime.is_some() => Some("--runtime"),
            None | Some(InPlace::None) => None,
            Some(_) => Some("--inplace"),
        }
    }

    /// The given options that decide what is right for a TensorFlow Lite model, as the command line states them.
    pub(crate) fn arena_options(&self) -> String {
        let path = |option, path: &PathBuf| format!(" {option} {}", path.display());
        let options = [
            self.kernels.as_ref().map(|kernels| path("--kernels", kernels)),
            self.scratch.as_ref().map(|scratch| path("--scratch", scratch)),
            self.profile().map(|profile| format!(" --inplace {profile}")),
            self.overlap.then(|| " --overlap".to_owned()),
        ];
        options.into_iter().flatten().collect()
    }

    /// Puts the model's inputs into the pool.
    pub(crate) fn has_inputs(&self) -> bool {
        self.inputs
    }

    /// Returns whether a TensorFlow Lite model is read for the interpreter.
    pub(crate) fn is_for_interpreter(&self) -> bool {
        self.runtime == Some(RuntimeName::Tflite(tflite::Runtime::Interpreter))
    }

    /// The given profile.
    pub(crate) fn profile(&self) -> Option<InPlace> {
        self.inplace.or(self.no_inplace.then_some(InPlace::None))
    }

    pub(crate) fn lowering(&self) -> LoweringOptions {
        LoweringOptions::default()
            .views(!self.no_views)
            .gathers(!self.no_gathers)
            // Kernels in a file may do what the profile rules out.
            .inplace(self.profile() != Some(InPlace::None) || self.kernels.is_some())
            .inputs_in_pool(self.has_inputs())
            .weights_in_pool(self.weights)
    }
}

/// Inputs that run later in the same pool.
#[derive(Debug, Args)]
pub(crate) struct LaterArgs {
    /// Another input that runs later in the same pool.
    ///
    /// May be repeated. Chunks are then named by the file and their own name, such as decode/x.
    #[arg(long, value_name = "FILE", help_heading = INPUT)]
    pub(crate) after: Vec<PathBuf>,
    /// Chunks of two inputs that are the same memory.
    ///
    /// For example prefill/kv=decode/kv. These chunks stay alive from the first step to the last. The name of the file
    /// may be omitted if only one file has a chunk of that name.
    #[arg(long, value_name = "NAME=NAME", value_parser = shared, requires = "after", help_heading = INPUT)]
    pub(crate) share: Vec<SharedNames>,
}

impl LaterArgs {
    /// The files.
    pub(crate) fn files(&self) -> impl Iterator<Item = &Path> {
        self.after.iter().map(PathBuf::as_path)
    }
}

/// The sizes that a model leaves open.
#[derive(Debug, Args)]
pub(crate) struct SizeArgs {
    /// Size of a symbolic dimension: batch=8 or batch=1..8.
    ///
    /// Several are separated by commas. For a dimension that is known only at run time, give its
    /// largest size. With a range, the plan holds for every run with its sizes, the last one included.
    #[arg(long = "dim", value_name = "NAME=N", value_parser = dimensions, help_heading = INPUT)]
    dims: Vec<Dimensions>,
    /// Size of every other unknown dimension.
    #[arg(long, value_name = "N", help_heading = INPUT)]
    dim_default: Option<u64>,
    /// Shape of a tensor, such as x=1x128x768.
    ///
    /// A ? leaves a size open. For a tensor that the model computes, give its largest shape. TensorFlow
    /// Lite Micro cannot change the shapes of inputs, so for a TensorFlow Lite model this is for
    /// --runtime tflite.
    #[arg(long = "shape", value_name = "NAME=SHAPE", value_parser = shape, help_heading = INPUT)]
    shapes: Vec<(String, Vec<Option<u64>>)>,
    /// Element type of a tensor, such as x=float.
    ///
    /// Needed if the model does not state the type.
    #[arg(long = "type", value_name = "NAME=TYPE", value_parser = named, help_heading = INPUT)]
    types: Vec<(String, String)>,
    /// Value of a tensor, such as rate=16000.
    ///
    /// For an input or another tensor whose value is the same in every run. A list is written as size=[480,640].
    #[arg(long = "value", value_name = "NAME=V", value_parser = named, help_heading = INPUT)]
    values: Vec<(String, String)>,
    /// Make a tensor in an input's memory: past=present.
    ///
    /// For a cache and its next state, which must have the same size.
    #[arg(long = "state", value_name = "INPUT=NEXT", value_parser = named, help_heading = INPUT)]
    states: Vec<(String, String)>,
    /// Keep a tensor to the end, as if it were returned.
    #[arg(long = "keep", value_name = "NAME", help_heading = INPUT)]
    kept: Vec<String>,
    /// Use the inferred shape where the two differ.
    #[arg(long, conflicts_with = "trust_declared", help_heading = INPUT)]
    trust_inference: bool,
    /// Use the declared shape where the two differ.
    #[arg(long, help_heading = INPUT)]
    trust_declared: bool,
}

impl SizeArgs {
    /// Returns a given option that is only for ONNX models.
    pub(crate) fn given_for_onnx(&self) -> Option<&'static str> {
        self.given().filter(|option| !matches!(*option, "--dim-default" | "--shape"))
    }

    /// Returns a given option that is only for models.
    pub(crate) fn given(&self) -> Option<&'static str> {
        let given = [
            (!self.dims.is_empty(), "--dim"),
            (!self.types.is_empty(), "--type"),
            (!self.values.is_empty(), "--value"),
            (!self.states.is_empty(), "--state"),
            (!self.kept.is_empty(), "--keep"),
            (self.trust_inference, "--trust-inference"),
            (self.trust_declared, "--trust-declared"),
            (self.dim_default.is_some(), "--dim-default"),
            (!self.shapes.is_empty(), "--shape"),
        ];
        given.into_iter().find_map(|(given, name)| given.then_some(name))
    }

    /// Returns the library's options, or a message that names an option given twice.
    pub(crate) fn options(&self) -> Result<ImportOptions, String> {
        let mut options = ImportOptions::default();
        for (name, size) in self.dims.iter().flatten() {
            if options.dims.insert(name.clone(), *size).is_some() {
                return Err(format!("--dim {name}=N is given twice; give it once"));
            }
        }
        for (tensor, shape) in &self.shapes {
            if options.shapes.insert(tensor.clone(), shape.clone()).is_some() {
                return Err(format!("--shape {tensor}=... is given twice; give it once"));
            }
        }
        let named = [
            ("--type", &self.types, &mut options.types),
            ("--value", &self.values, &mut options.values),
            ("--state", &self.states, &mut options.states),
        ];
        for (option, given, read) in named {
            for (tensor, value) in given {
                if read.insert(tensor.clone(), value.clone()).is_some() {
                    return Err(format!("{option} {tensor}=... is given twice; give it once"));
                }
            }
        }
        options.kept.extend(self.kept.iter().cloned());
        options.default_dim = self.dim_default;
        if self.trust_inference {
            options = options.trust_inference();
        } else if self.trust_declared {
            options = options.trust_declared();
        }
        Ok(options)
    }
}

/// The planner and its options.
#[derive(Debug, Args)]
pub(crate) struct StrategyArgs {
    /// Planner.
    #[arg(long, value_name = "NAME", default_value_t, value_parser = strategies(), help_heading = PLANNING)]
    pub(crate) strategy: Strategy,
    #[command(flatten)]
    pub(crate) searching: SearchArgs,
    #[command(flatten)]
    pub(crate) placing: PlacingArgs,
}

impl StrategyArgs {
    pub(crate) fn planner(
        &self,
        reading: &InputArgs,
        input: &Input,
        path: Option<&Path>,
    ) -> Planner<'static> {
        self.placing
            .planner(reading, input, path)
            .strategy(self.strategy)
            .lowering(reading.lowering())
            .limits(self.searching.limits())
    }
}

/// The limits of a search.
#[derive(Debug, Args)]
pub(crate) struct SearchArgs {
    /// Search nodes of best and optimal [default: adaptive].
    ///
    /// A million nodes take about a second. The default is 50000, and 75000 more for each percent above
    /// the lower bound, up to 1.5 million; 200000 more for problems of more than 1000 chains.
    #[arg(long, value_name = "NODES", value_parser = nodes, help_heading = LIMITS)]
    effort: Option<u64>,
    /// Time limit, such as 2s or 500ms.
    ///
    /// Without --effort, best and optimal search until the limit, or until the plan is proven the smallest. At the
    /// limit, best, optimal and first-fit return their best plan so far, which depends on the machine; the other
    /// strategies end with an error.
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = LIMITS)]
    time_limit: Option<Duration>,
    /// Threads to search with.
    ///
    /// At most one per core. With several, the plan depends on the machine and is never larger than
    /// with one.
    #[arg(long, value_name = "N", default_value_t = 1,
        value_parser = clap::value_parser!(u16).range(1..=1024), help_heading = LIMITS)]
    threads: u16,
}

impl SearchArgs {
    /// The same limits for a search for an order, whose default is larger.
    pub(crate) fn order_limits(&self) -> Limits {
        OrderArgs { effort: self.effort, time_limit: self.time_limit }.limits()
    }

    /// Limits the search by time alone if only a time is given.
    pub(crate) fn limits(&self) -> Limits {
        let limits = Limits::default().threads(self.threads.into());
        let limits = self.effort.map_or(limits, |nodes| limits.nodes(nodes));
        self.time_limit.map_or(limits, |time| limits.time(time))
    }
}

/// The limits of a search for an order, where plans are not searched for.
#[derive(Debug, Args)]
pub(crate) struct OrderArgs {
    /// Search nodes [default: 10000000].
    ///
    /// A million nodes of this search take about half a second.
    #[arg(long, value_name = "NODES", value_parser = nodes, help_heading = LIMITS)]
    effort: Option<u64>,
    /// Time limit, such as 2s or 500ms.
    ///
    /// The order then depends on the machine.
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = LIMITS)]
    time_limit: Option<Duration>,
}

impl OrderArgs {
    /// Limits the search by time alone if only a time is given.
    pub(crate) fn limits(&self) -> Limits {
        let limits = match (self.effort, self.time_limit) {
            (None, None) => order::default_limits(),
            (None, Some(_)) => Limits::default(),
            (Some(nodes), _) => Limits::default().nodes(nodes),
        };
        self.time_limit.map_or(limits, |time| limits.time(time))
    }
}

/// Constraints on offsets.
#[derive(Debug, Args)]
pub(crate) struct PlacingArgs {
    /// Alignment of offsets, a power of two.
    ///
    /// The default is 64 for a model or an operator sequence, 16 for TensorFlow Lite Micro, and the problem's own for a
    /// problem.
    #[arg(long, value_name = "BYTES", help_heading = PLANNING)]
    alignment: Option<u64>,
    /// Bytes to add behind every chunk.
    ///
    /// Kernels may read them, but not write. The default is 0 for a model, and the problem's own for a problem.
    #[arg(long, value_name = "BYTES", help_heading = PLANNING)]
    padding: Option<u64>,
    /// A memory: NAME[:CAPACITY[:COST[:LARGEST]]].
    ///
    /// For example sram:256KiB:1. The parts are the name, the capacity (if limited), the cost of a byte of traffic, and
    /// the largest buffer, as in --largest. May be repeated, the most preferred pool first.
    #[arg(long = "pool", value_name = "POOL", value_parser = pool, help_heading = PLANNING)]
    pools: Vec<Pool>,
    /// Largest buffer that the device allocates.
    ///
    /// For example 4MiB. Every pool becomes a row of buffers of at most this size, and no tensor crosses from one
    /// buffer into another.
    #[arg(long, value_name = "SIZE", value_parser = capacity, help_heading = PLANNING)]
    largest: Option<u64>,
    /// Fix a place: NAME=[POOL+]OFFSET.
    ///
    /// NAME is a tensor or chunk, and OFFSET counts bytes from the start of the pool. The name of the pool may be
    /// omitted if there is only one. May be repeated.
    #[arg(long = "pin", value_name = "PIN", value_parser = pin, help_heading = PLANNING)]
    pins: Vec<PinnedName>,
}

impl PlacingArgs {
    /// The default alignment of a model in bytes: kernels read and write whole vectors and cache lines.
    pub(crate) const MODEL_ALIGNMENT: u64 = 64;

    /// The alignment if none is given; a problem keeps its own.
    pub(crate) fn default_alignment(
        reading: &InputArgs,
        input: &Input,
        path: Option<&Path>,
    ) -> Option<u64> {
        let is_tflite = path.is_some_and(|path| files::is_tflite(path, reading));
        match input {
            Input::Sequence(_) if is_tflite => Some(crate::tflite::runtime(reading).alignment()),
            Input::Sequence(_) => Some(Self::MODEL_ALIGNMENT),
            Input::Problem(_) => None,
        }
    }

    /// Returns whether pools are given.
    pub(crate) fn has_pools(&self) -> bool {
        !self.pools.is_empty() || self.largest.is_some()
    }

    /// The given pools. A largest buffer applies to each that states none; without pools, it makes one pool of buffers.
    fn pools(&self) -> Vec<Pool> {
        let Some(largest) = self.largest else { return self.pools.clone() };
        if self.pools.is_empty() {
            return vec![Pool::new("pool").largest(largest)];
        }
        let mut pools = self.pools.clone();
        for pool in &mut pools {
            pool.largest.get_or_insert(largest);
        }
        pools
    }

    /// Returns whether places are given.
    pub(crate) fn has_pins(&self) -> bool {
        !self.pins.is_empty()
    }

    /// The first of its options that is given.
    pub(crate) fn switch(&self) -> Option<&'static str> {
        let padding = self.padding.map(|_| "--padding");
        let pool = self.pools.first().map(|_| "--pool");
        let largest = self.largest.map(|_| "--largest");
        let pin = self.pins.first().map(|_| "--pin");
        self.alignment.map(|_| "--alignment").or(padding).or(pool).or(largest).or(pin)
    }

    /// Creates a planner with these constraints for an input read from a file. A problem states its
    /// own alignment; a model has none.
    pub(crate) fn planner(
        &self,
        reading: &InputArgs,
        input: &Input,
        path: Option<&Path>,
    ) -> Planner<'static> {
        let default = Self::default_alignment(reading, input, path);
        let mut planner = Planner::new();
        if self.has_pools() {
            planner = planner.pools(self.pools());
        }
        for PinnedName { name, pool, offset } in &self.pins {
            planner = planner.pin(&**name, &**pool, *offset);
        }
        let planner = match self.alignment.or(default) {
            Some(alignment) => planner.alignment(alignment),
            None => planner,
        };
        match self.padding {
            Some(padding) => planner.padding(padding),
            None => planner,
        }
    }
}
