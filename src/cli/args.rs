//! The arguments of the command line.

use std::{ops::Range, path::PathBuf, time::Duration};

use clap::{Args, Parser, Subcommand, ValueEnum};
use memplan::{
    Input, Limits, Planner, Step, Strategy,
    import::{Format, ImportOptions, InPlace, Trust},
    lower::LoweringOptions,
    order,
};

/// Plans the memory of a deep-learning graph before it runs: one pool, and a fixed offset in it for
/// every tensor.
#[derive(Debug, Parser)]
#[command(
    name = "memplan",
    version,
    max_term_width = 80,
    after_help = "Without a command, plans a built-in network and shows its memory map.\nExit code: 0 success, 1 the plan is wrong or does not fit, 2 bad usage or bad input."
)]
pub(crate) struct Arguments {
    /// Print only results and errors: no notes, warnings or progress and, with -o, no summary.
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Log to standard error: -v each plan, -vv each pass and every in-place request that is
    /// dropped, -vvv every event. `RUST_LOG`, if set, is used instead, and can name passes, such
    /// as `RUST_LOG=memplan::simulate=trace`.
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Plan a model: pool size, bounds and, with --table, every offset.
    Plan(PlanArgs),
    /// Check that a plan is right for its input, and list every violation.
    Verify(VerifyArgs),
    /// Compare all strategies: pool size, ratio to the lower bound, planning time.
    Compare(CompareArgs),
    /// Draw the memory map.
    Show(ShowArgs),
    /// Explain the size of the pool.
    Explain(ExplainArgs),
    /// Convert between formats.
    Convert(ConvertArgs),
    /// Look for an order of the operators that needs less memory.
    Reorder(ReorderArgs),
    /// List the operators by kind, with views, in-place outputs and new memory.
    Ops(OpsArgs),
    /// Print a completion script for a shell.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Print the manual page of memplan or of one of its commands.
    Man {
        /// The command, such as plan.
        command: Option<String>,
    },
}

/// The input, and how it is lowered.
#[derive(Debug, Args)]
#[allow(clippy::struct_excessive_bools, reason = "independent switches of the command line")]
pub(crate) struct InputArgs {
    /// Format of the input, if its name does not show it.
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<FormatName>,
    #[command(flatten)]
    pub(crate) sizes: SizeArgs,
    /// Put the model's inputs into the pool as well.
    #[arg(long)]
    inputs: bool,
    /// Put the model's weights into the pool as well.
    #[arg(long)]
    weights: bool,
    /// Give views memory of their own.
    #[arg(long)]
    no_views: bool,
    /// Outputs that the runtime's kernels can write over an input [default: rows].
    #[arg(long, value_name = "PROFILE", value_parser = profiles(), conflicts_with = "no_inplace")]
    inplace: Option<InPlace>,
    /// File with the profiles of single operators of an ONNX model, one per line, such as
    /// `Softmax none`.
    #[arg(long, value_name = "FILE")]
    pub(crate) kernels: Option<PathBuf>,
    /// Same as --inplace none: write no output over an input unless it is required.
    #[arg(long)]
    no_inplace: bool,
    /// The largest file to read.
    #[arg(long, value_name = "SIZE", value_parser = capacity, default_value = "2GiB")]
    pub(crate) max_input: u64,
}

impl InputArgs {
    /// Returns a given switch that affects only lowering.
    pub(crate) fn lowering_switch(&self) -> Option<&'static str> {
        let switches =
            [(self.inputs, "--inputs"), (self.weights, "--weights"), (self.no_views, "--no-views")];
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

    /// Returns a given switch that sets how the kernels of an ONNX model's operators work.
    pub(crate) fn kernel_switch(&self) -> Option<&'static str> {
        match self.profile() {
            _ if self.kernels.is_some() => Some("--kernels"),
            None | Some(InPlace::None) => None,
            Some(_) => Some("--inplace"),
        }
    }

    /// The given profile.
    pub(crate) fn profile(&self) -> Option<InPlace> {
        self.inplace.or(self.no_inplace.then_some(InPlace::None))
    }

    pub(crate) fn lowering(&self) -> LoweringOptions {
        LoweringOptions::default()
            .views(!self.no_views)
            // Kernels in a file may do what the profile rules out.
            .inplace(self.profile() != Some(InPlace::None) || self.kernels.is_some())
            .inputs_in_pool(self.inputs)
            .weights_in_pool(self.weights)
    }
}

/// The sizes that an ONNX model leaves open.
#[derive(Debug, Args)]
pub(crate) struct SizeArgs {
    /// Sizes of symbolic dimensions of an ONNX model, separated by commas; the largest size if it is
    /// known only in the run.
    #[arg(long = "dim", value_name = "NAME=N", value_parser = dimensions)]
    dims: Vec<Dimensions>,
    /// Size of every dimension that is neither known nor given.
    #[arg(long, value_name = "N")]
    dim_default: Option<u64>,
    /// Shape of a tensor, such as x=1x128x768, with ? for a size that is left open; the largest shape
    /// for a tensor that the model computes.
    #[arg(long = "shape", value_name = "TENSOR=SHAPE", value_parser = shape)]
    shapes: Vec<(String, Vec<Option<u64>>)>,
    /// If a tensor's declared shape differs from the inferred one, use the inferred shape.
    #[arg(long, conflicts_with = "trust_declared")]
    trust_inference: bool,
    /// If a tensor's declared shape differs from the inferred one, use the declared shape.
    #[arg(long)]
    trust_declared: bool,
}

/// The sizes in one argument, by name.
type Dimensions = Vec<(String, u64)>;

impl SizeArgs {
    /// Returns a given option that is only for ONNX models.
    pub(crate) fn given(&self) -> Option<&'static str> {
        let given = [
            (!self.dims.is_empty(), "--dim"),
            (self.dim_default.is_some(), "--dim-default"),
            (!self.shapes.is_empty(), "--shape"),
            (self.trust_inference, "--trust-inference"),
            (self.trust_declared, "--trust-declared"),
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
        options.default_dim = self.dim_default;
        options.trust = match (self.trust_inference, self.trust_declared) {
            (true, _) => Some(Trust::Inference),
            (false, true) => Some(Trust::Declared),
            (false, false) => None,
        };
        Ok(options)
    }
}

/// The planner and its options.
#[derive(Debug, Args)]
pub(crate) struct StrategyArgs {
    /// The planner.
    #[arg(long, value_name = "NAME", default_value_t, value_parser = strategies())]
    pub(crate) strategy: Strategy,
    #[command(flatten)]
    pub(crate) searching: SearchArgs,
    #[command(flatten)]
    pub(crate) placing: PlacingArgs,
}

impl StrategyArgs {
    pub(crate) fn planner(&self, reading: &InputArgs, input: &Input) -> Planner<'static> {
        self.placing
            .planner(input)
            .strategy(self.strategy)
            .lowering(reading.lowering())
            .limits(self.searching.limits())
    }
}

/// The limits of a search.
#[derive(Debug, Args)]
pub(crate) struct SearchArgs {
    /// Search nodes for best and optimal; a million takes about a second [default: 50000].
    #[arg(long, value_name = "NODES", value_parser = clap::value_parser!(u64).range(1..))]
    effort: Option<u64>,
    /// Time limit of the search, such as 2s or 500ms; the plan then depends on the machine.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    time_limit: Option<Duration>,
    /// Threads to search with, at most one per core; with several, the plan depends on the machine
    /// and is never larger than with one.
    #[arg(long, value_name = "N", default_value_t = 1,
        value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: u16,
}

impl SearchArgs {
    /// The same limits for a search for an order, whose default is larger.
    pub(crate) fn order_limits(&self) -> Limits {
        OrderArgs { effort: self.effort, time_limit: self.time_limit }.limits()
    }

    /// Limits the search by time alone if only a time is given.
    pub(crate) fn limits(&self) -> Limits {
        let unlimited = self.time_limit.map_or(Limits::default().nodes, |_| u64::MAX);
        let nodes = self.effort.unwrap_or(unlimited);
        let limits = Limits::default().nodes(nodes).threads(self.threads.into());
        self.time_limit.map_or(limits, |time| limits.time(time))
    }
}

/// The limits of a search for an order, where plans are not searched for.
#[derive(Debug, Args)]
pub(crate) struct OrderArgs {
    /// Nodes to search; a million takes a second or so [default: 6000000].
    #[arg(long, value_name = "NODES", value_parser = clap::value_parser!(u64).range(1..))]
    effort: Option<u64>,
    /// The longest time to search, such as 2s or 500ms; the order then depends on the machine.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    time_limit: Option<Duration>,
}

impl OrderArgs {
    /// With a time alone, the time is the limit.
    pub(crate) fn limits(&self) -> Limits {
        let unlimited = self.time_limit.map_or(order::default_limits().nodes, |_| u64::MAX);
        let limits = Limits::default().nodes(self.effort.unwrap_or(unlimited));
        self.time_limit.map_or(limits, |time| limits.time(time))
    }
}

/// Constraints on offsets.
#[derive(Debug, Args)]
pub(crate) struct PlacingArgs {
    /// Alignment of offsets in bytes, a power of two [default: 64 for a model, a problem's own].
    #[arg(long, value_name = "BYTES")]
    alignment: Option<u64>,
    /// Bytes to add to every chunk [default: 0 for a model, a problem's own].
    #[arg(long, value_name = "BYTES")]
    padding: Option<u64>,
}

impl PlacingArgs {
    /// Kernels need this to read and write whole vectors and cache lines.
    pub(crate) const MODEL_ALIGNMENT: u64 = 64;

    /// Creates a planner with these constraints. A problem states its own alignment; a model has none.
    pub(crate) fn planner(&self, input: &Input) -> Planner<'static> {
        let default = match input {
            Input::Sequence(_) => Some(Self::MODEL_ALIGNMENT),
            Input::Problem(_) => None,
        };
        let planner = Planner::new();
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

#[derive(Debug, Args)]
#[allow(clippy::struct_excessive_bools, reason = "independent switches of the command line")]
pub(crate) struct PlanArgs {
    /// An ONNX model, an operator sequence or problem in JSON, a problem in MiniMalloc's CSV, or `-`
    /// for standard input; without it, a built-in network.
    pub(crate) input: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) reading: InputArgs,
    #[command(flatten)]
    pub(crate) planning: StrategyArgs,
    /// Look for a better order of the operators first, and plan it; the plan, as JSON, states the
    /// order. --effort and --time-limit then say how far to look for it as well.
    #[arg(long, conflicts_with = "csv")]
    pub(crate) reorder: bool,
    /// Write the plan to a file, .json or .csv.
    #[arg(short, long, value_name = "PLAN")]
    pub(crate) output: Option<PathBuf>,
    /// Plan within a pool of this size, such as 1048576 or 1MiB. Best and optimal search for a plan
    /// that fits or a proof that none does. If no plan fits, nothing is written and the exit code is
    /// 1.
    #[arg(long, value_name = "SIZE", value_parser = capacity)]
    pub(crate) capacity: Option<u64>,
    /// Print every offset.
    #[arg(long, conflicts_with_all = ["json", "csv"])]
    pub(crate) table: bool,
    /// Print the plan as JSON.
    #[arg(long, conflicts_with = "csv")]
    pub(crate) json: bool,
    /// Print the plan as MiniMalloc's CSV.
    #[arg(long)]
    pub(crate) csv: bool,
}

#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// The input that the plan is for.
    pub(crate) input: PathBuf,
    /// The plan, .json or .csv.
    pub(crate) plan: PathBuf,
    /// Also run the operators on a shadow of the pool, and follow every byte; needs operators and a
    /// plan with tensors.
    #[arg(long)]
    pub(crate) execute: bool,
    #[command(flatten)]
    pub(crate) reading: InputArgs,
    /// Alignment in bytes that the plan must have, or a multiple of it [default: any for a model, a
    /// problem's own].
    #[arg(long, value_name = "BYTES")]
    pub(crate) alignment: Option<u64>,
    /// Bytes that the plan must add to every chunk, or more [default: none for a model, a problem's
    /// own].
    #[arg(long, value_name = "BYTES")]
    pub(crate) padding: Option<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// The inputs to plan; with several, tables have a column for each.
    #[arg(required = true, value_name = "INPUT")]
    pub(crate) paths: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) reading: InputArgs,
    #[command(flatten)]
    pub(crate) searching: SearchArgs,
    #[command(flatten)]
    pub(crate) placing: PlacingArgs,
    /// Look for a better order of the operators as well, and plan it with best.
    #[arg(long)]
    pub(crate) reorder: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// The input to plan; without it, a built-in network.
    pub(crate) input: Option<PathBuf>,
    /// Show this plan instead of making one; several, side by side, in an .html file.
    #[arg(conflicts_with_all = ["strategy", "effort", "time_limit", "threads", "alignment", "padding"])]
    pub(crate) plan: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) reading: InputArgs,
    /// The planner, or several separated by commas for an .html file.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = strategies())]
    strategy: Vec<Strategy>,
    #[command(flatten)]
    pub(crate) searching: SearchArgs,
    #[command(flatten)]
    pub(crate) placing: PlacingArgs,
    /// Width of the text map in columns [default: the terminal's, or 80].
    #[arg(long, value_name = "COLUMNS")]
    pub(crate) width: Option<usize>,
    /// Height of the text map in lines.
    #[arg(long, value_name = "LINES", default_value_t = 24)]
    pub(crate) height: usize,
    /// Look for a better order of the operators, and draw both maps on one scale, as .svg or text.
    #[arg(long, conflicts_with_all = ["plan", "simulation"])]
    pub(crate) reorder: bool,
    /// Draw both queues after each event of the simulation of pushdown, as .svg.
    #[arg(long, conflicts_with_all = ["plan", "strategy"])]
    pub(crate) simulation: bool,
    /// Draw only the events of these steps of the simulation, such as 2..4.
    #[arg(long, value_name = "FROM..TO", requires = "simulation", value_parser = steps)]
    pub(crate) steps: Option<Range<Step>>,
    /// Write the map to a file: .svg, .html (interactive), .json (for Perfetto) or .txt.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

impl ShowArgs {
    /// The strategies given, or the default one.
    pub(crate) fn strategies(&self) -> &[Strategy] {
        const DEFAULT: &[Strategy] = &[Strategy::Best];
        if self.strategy.is_empty() { DEFAULT } else { &self.strategy }
    }

    pub(crate) fn order_limits(&self) -> Limits {
        self.searching.order_limits()
    }

    pub(crate) fn planner(&self, strategy: Strategy, input: &Input) -> Planner<'static> {
        let planner = self.placing.planner(input).strategy(strategy);
        planner.lowering(self.reading.lowering()).limits(self.searching.limits())
    }
}

#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// The input to plan; without it, a built-in network.
    pub(crate) input: Option<PathBuf>,
    /// Explain this plan instead of making one.
    #[arg(conflicts_with_all = ["strategy", "effort", "time_limit", "threads", "alignment", "padding"])]
    pub(crate) plan: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) reading: InputArgs,
    #[command(flatten)]
    pub(crate) planning: StrategyArgs,
    /// Look for a better order of the operators first, and explain what it saves and its plan.
    #[arg(long, conflicts_with_all = ["plan", "capacity"])]
    pub(crate) reorder: bool,
    /// Show which chunks do not fit together into a pool of this size, such as 1048576 or 1MiB.
    #[arg(long, value_name = "SIZE", value_parser = capacity, conflicts_with = "plan")]
    pub(crate) capacity: Option<u64>,
    /// Print JSON.
    #[arg(long, conflicts_with = "capacity")]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ReorderArgs {
    /// An ONNX model, an operator sequence in JSON, or `-` for standard input.
    pub(crate) input: PathBuf,
    #[command(flatten)]
    pub(crate) reading: InputArgs,
    #[command(flatten)]
    searching: OrderArgs,
    #[command(flatten)]
    pub(crate) placing: PlacingArgs,
    /// Write the operators in the order found, or, if none is better, in the order given: .onnx for
    /// a model, of which nothing else changes, or .json.
    #[arg(short, long, value_name = "OUT")]
    pub(crate) output: Option<PathBuf>,
    /// Print JSON, with the order.
    #[arg(long)]
    pub(crate) json: bool,
}

impl ReorderArgs {
    pub(crate) fn limits(&self) -> Limits {
        self.searching.limits()
    }
}

#[derive(Debug, Args)]
pub(crate) struct OpsArgs {
    /// An ONNX model or an operator sequence; without it, a built-in network.
    pub(crate) input: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) reading: InputArgs,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ConvertArgs {
    /// The file to convert.
    pub(crate) input: PathBuf,
    #[command(flatten)]
    pub(crate) reading: InputArgs,
    /// Lower an operator sequence and write the problem.
    #[arg(long)]
    pub(crate) lower: bool,
    /// The file to write, .json or .csv.
    #[arg(short, long, value_name = "OUT")]
    pub(crate) output: PathBuf,
}

/// A format by name.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum FormatName {
    Onnx,
    Json,
    Csv,
}

impl From<FormatName> for Format {
    fn from(name: FormatName) -> Self {
        match name {
            FormatName::Onnx => Self::Onnx,
            FormatName::Json => Self::Json,
            FormatName::Csv => Self::Csv,
        }
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    let (number, scale) = match text.strip_suffix("ms") {
        Some(number) => (number, 1e-3),
        None => (text.strip_suffix('s').unwrap_or(text), 1.0),
    };
    number
        .parse::<f64>()
        .ok()
        .and_then(|number| Duration::try_from_secs_f64(number * scale).ok())
        .ok_or_else(|| "expected a time, such as 2s or 500ms".to_owned())
}

fn steps(text: &str) -> Result<Range<Step>, String> {
    let (from, to) = text.split_once("..").ok_or("expected FROM..TO, such as 2..4")?;
    let number = |text: &str| text.parse().map_err(|_| format!("'{text}' is not a step"));
    let steps = number(from)?..number(to)?;
    if steps.is_empty() {
        return Err("FROM must be less than TO".to_owned());
    }
    Ok(steps)
}

fn capacity(text: &str) -> Result<u64, String> {
    let expected = "expected a size of at least a byte, such as 1048576, 64KiB or 1.5MiB";
    size(text).filter(|&bytes| bytes > 0).ok_or_else(|| expected.to_owned())
}

/// Parses a number of bytes, with or without a unit; a fraction of a byte is dropped.
fn size(text: &str) -> Option<u64> {
    const UNITS: [(&str, u128); 10] = [
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
        ("TiB", 1 << 40),
        ("kB", 1_000),
        ("KB", 1_000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("TB", 1_000_000_000_000),
        ("B", 1),
    ];
    let unit = UNITS.iter().find_map(|&(name, unit)| Some((text.strip_suffix(name)?, unit)));
    let (number, unit) = unit.unwrap_or((text, 1));
    let number = number.trim_end_matches(' ');
    let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(part) || part.len() > 18 {
        return None;
    }
    let scale = 10_u128.pow(u32::try_from(part.len()).ok()?);
    let bytes = u128::from(whole.parse::<u64>().ok()?) * unit
        + u128::from(part.parse::<u64>().ok()?) * unit / scale;
    u64::try_from(bytes).ok()
}

/// Parses sizes such as `batch=8,sequence=128`. A name may contain commas.
fn dimensions(text: &str) -> Result<Dimensions, String> {
    let mut dimensions = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let mut ends = rest.match_indices(',').map(|(at, _)| at).chain([rest.len()]);
        let entry = |end: usize| {
            let (name, size) = rest[..end].rsplit_once('=')?;
            Some((end, (name.to_owned(), size.parse().ok()?)))
        };
        let Some((end, dimension)) = ends.find_map(entry) else {
            return Err(format!("'{rest}' is not NAME=N, such as batch=8"));
        };
        dimensions.push(dimension);
        rest = rest[end..].trim_start_matches(',');
    }
    Ok(dimensions)
}

/// Parses a shape such as `x=1x128x768`, `y=?x4`, or `z=` for a scalar.
fn shape(text: &str) -> Result<(String, Vec<Option<u64>>), String> {
    let words = "expected TENSOR=SHAPE, such as x=1x128x768, or x=?x768 to leave a size open";
    let (tensor, shape) = text.rsplit_once('=').ok_or(words)?;
    let size = |size: &str| match size {
        "?" => Ok(None),
        _ => size.parse().map(Some).map_err(|_| words.to_owned()),
    };
    let shape = shape.split('x').filter(|_| !shape.is_empty()).map(size);
    Ok((tensor.to_owned(), shape.collect::<Result<_, _>>()?))
}

/// Parses strategies, with a line of help for each.
fn strategies() -> impl clap::builder::TypedValueParser<Value = Strategy> {
    use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
    let values = Strategy::ALL.iter().map(|s| PossibleValue::new(s.name()).help(s.summary()));
    PossibleValuesParser::new(values).try_map(|name| name.parse::<Strategy>())
}

/// Parses profiles, with a line of help for each.
fn profiles() -> impl clap::builder::TypedValueParser<Value = InPlace> {
    use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
    let values = InPlace::ALL.iter().map(|p| PossibleValue::new(p.name()).help(p.summary()));
    PossibleValuesParser::new(values).try_map(|name| name.parse::<InPlace>())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::{dimensions, shape, size};

    #[rstest]
    #[case("batch=8", &[("batch", 8)])]
    #[case("a=1,b=2", &[("a", 1), ("b", 2)])]
    #[case("max(a, 1)=4,b=2", &[("max(a, 1)", 4), ("b", 2)])]
    #[case("a=b=3", &[("a=b", 3)])]
    #[case("=3", &[("", 3)])]
    fn dimensions_are_read(#[case] text: &str, #[case] expected: &[(&str, u64)]) {
        let expected: Vec<_> = expected.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect();
        assert_eq!(dimensions(text), Ok(expected));
    }

    #[rstest]
    #[case("batch")]
    #[case("batch=")]
    #[case("batch=-1")]
    #[case("a=1,b")]
    #[case("a=1,b=N")]
    fn what_is_no_dimension_is_refused(#[case] text: &str) {
        assert!(dimensions(text).is_err());
    }

    #[rstest]
    #[case("x=1x128x768", "x", &[Some(1), Some(128), Some(768)])]
    #[case("a/b=?x4", "a/b", &[None, Some(4)])]
    #[case("x=", "x", &[])]
    #[case("x=y=3", "x=y", &[Some(3)])]
    fn shapes_are_read(#[case] text: &str, #[case] tensor: &str, #[case] expected: &[Option<u64>]) {
        assert_eq!(shape(text), Ok((tensor.to_owned(), expected.to_vec())));
    }

    #[rstest]
    #[case("x")]
    #[case("x=1x")]
    #[case("x=Nx4")]
    #[case("x=1*4")]
    fn what_is_no_shape_is_refused(#[case] text: &str) {
        assert!(shape(text).is_err());
    }

    #[rstest]
    #[case("0", Some(0))]
    #[case("1048576", Some(1 << 20))]
    #[case("1MiB", Some(1 << 20))]
    #[case("1.5 KiB", Some(1536))]
    #[case("2MB", Some(2_000_000))]
    #[case("7 B", Some(7))]
    #[case("18446744073709551615", Some(u64::MAX))]
    #[case("18446744073709551616", None)]
    #[case("16777216TiB", None)]
    #[case("-1", None)]
    #[case("1e6", None)]
    #[case("1.", None)]
    #[case(".5MiB", None)]
    #[case("1.0000000000000000001MiB", None)]
    #[case("1mib", None)]
    #[case("MiB", None)]
    #[case("", None)]
    fn sizes_are_read(#[case] text: &str, #[case] bytes: Option<u64>) {
        assert_eq!(size(text), bytes);
    }
}
