//! The words of the command line.

use std::{path::PathBuf, time::Duration};

use clap::{Args, Parser, Subcommand, ValueEnum};
use memplan::{Strategy, import::Format, lower::LoweringOptions, planner::search::Limits};

/// Plans the memory of a deep-learning graph before it runs: one pool, and a fixed offset in it for
/// every tensor.
#[derive(Debug, Parser)]
#[command(
    version,
    after_help = "Without a command, plans a built-in network and shows its memory map.\nRUST_LOG=memplan=debug tells the passes, RUST_LOG=memplan::simulate=trace every step of the simulation.\nExit code: 0 good, 1 the plan is wrong or does not fit, 2 bad usage or bad input."
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Plan a model: pool size, lower bound, and every offset.
    Plan(PlanArgs),
    /// Check that a plan is right for its input; lists every violation.
    Verify(VerifyArgs),
    /// Compare all strategies: pool size, ratio to the lower bound, planning time.
    Compare(CompareArgs),
    /// Draw the memory map.
    Show(ShowArgs),
    /// Say why the pool is as large as it is.
    Explain(ExplainArgs),
    /// Convert between formats.
    Convert(ConvertArgs),
}

/// What to read, and how to lower it.
#[derive(Debug, Args)]
#[allow(clippy::struct_excessive_bools, reason = "independent switches of the command line")]
pub(crate) struct InputArgs {
    /// Format of the input, where its name does not say it.
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<FormatName>,
    /// Size of a symbolic dimension of an ONNX model; may be given more than once.
    #[arg(long = "dim", value_name = "NAME=N", value_parser = dimension)]
    pub(crate) dims: Vec<(String, u64)>,
    /// Put the model's inputs into the pool, too.
    #[arg(long)]
    inputs: bool,
    /// Put the model's weights into the pool, too.
    #[arg(long)]
    weights: bool,
    /// Give views memory of their own.
    #[arg(long)]
    no_views: bool,
    /// Write no output over an input, unless it is required.
    #[arg(long)]
    no_inplace: bool,
}

impl InputArgs {
    pub(crate) fn lowering(&self) -> LoweringOptions {
        LoweringOptions {
            views: !self.no_views,
            inplace: !self.no_inplace,
            inputs_in_pool: self.inputs,
            weights_in_pool: self.weights,
        }
    }
}

/// How to plan.
#[derive(Debug, Args)]
pub(crate) struct StrategyArgs {
    /// The planner.
    #[arg(long, value_name = "NAME", default_value_t, value_parser = strategies())]
    pub(crate) strategy: Strategy,
    /// How far best and optimal search, in nodes; a million takes a second or so [default: 50000].
    #[arg(long, value_name = "NODES")]
    pub(crate) effort: Option<u64>,
    /// How long they search at most, such as 2s or 500ms; the plan then depends on the machine.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) time_limit: Option<Duration>,
    #[command(flatten)]
    pub(crate) placing: PlacingArgs,
}

impl StrategyArgs {
    /// With a time alone, the time is the limit.
    pub(crate) fn limits(&self) -> Limits {
        let unlimited = self.time_limit.map_or(Limits::default().nodes, |_| u64::MAX);
        let nodes = self.effort.unwrap_or(unlimited);
        Limits { nodes, time: self.time_limit, ..Limits::default() }
    }
}

/// What offsets must keep to.
#[derive(Debug, Args)]
pub(crate) struct PlacingArgs {
    /// Alignment of offsets in bytes, a power of two [default: the problem's, else 1].
    #[arg(long, value_name = "BYTES")]
    pub(crate) alignment: Option<u64>,
    /// Bytes to add to every chunk [default: the problem's, else 0].
    #[arg(long, value_name = "BYTES")]
    pub(crate) padding: Option<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    /// An ONNX model, an operator sequence or problem in JSON, a problem in MiniMalloc's CSV, or `-`
    /// for standard input; without it, a built-in network.
    pub(crate) input: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) reading: InputArgs,
    #[command(flatten)]
    pub(crate) planning: StrategyArgs,
    /// Write the plan to a file, .json or .csv.
    #[arg(short, long, value_name = "PLAN")]
    pub(crate) output: Option<PathBuf>,
    /// Exit with 1 if the pool is larger than this many bytes.
    #[arg(long, value_name = "BYTES")]
    pub(crate) capacity: Option<u64>,
    /// Print the plan as JSON.
    #[arg(long, conflicts_with = "csv")]
    pub(crate) json: bool,
    /// Print the plan as MiniMalloc's CSV.
    #[arg(long)]
    pub(crate) csv: bool,
}

#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// What the plan is for.
    pub(crate) input: PathBuf,
    /// The plan, .json or .csv.
    pub(crate) plan: PathBuf,
    /// Run the operators on a shadow of the pool, too, and follow every byte; needs operators and a
    /// plan with tensors.
    #[arg(long)]
    pub(crate) execute: bool,
    #[command(flatten)]
    pub(crate) reading: InputArgs,
}

#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// What to plan; several inputs give one table with a column for each.
    #[arg(required = true, value_name = "INPUT")]
    pub(crate) paths: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) reading: InputArgs,
    #[command(flatten)]
    pub(crate) placing: PlacingArgs,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// What to plan; without it, a built-in network.
    pub(crate) input: Option<PathBuf>,
    /// Show this plan instead of making one.
    pub(crate) plan: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) reading: InputArgs,
    /// The planner; several, with commas between, for an .html file.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = strategies())]
    strategy: Vec<Strategy>,
    #[command(flatten)]
    pub(crate) placing: PlacingArgs,
    /// Columns of text [default: the terminal's, else 80].
    #[arg(long, value_name = "COLUMNS")]
    pub(crate) width: Option<usize>,
    /// Lines of the map.
    #[arg(long, value_name = "LINES", default_value_t = 24)]
    pub(crate) height: usize,
    /// Draw both queues after each event of the simulation of pushdown, as .svg.
    #[arg(long, conflicts_with_all = ["plan", "strategy"])]
    pub(crate) simulation: bool,
    /// Write the map to a file: .svg, .html to explore it, .json for Perfetto, .txt.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

impl ShowArgs {
    /// The strategies asked for, or the default one.
    pub(crate) fn strategies(&self) -> &[Strategy] {
        const DEFAULT: &[Strategy] = &[Strategy::Best];
        if self.strategy.is_empty() { DEFAULT } else { &self.strategy }
    }
}

#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// What to plan; without it, a built-in network.
    pub(crate) input: Option<PathBuf>,
    /// Explain this plan instead of making one.
    pub(crate) plan: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) reading: InputArgs,
    #[command(flatten)]
    pub(crate) planning: StrategyArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ConvertArgs {
    /// What to convert.
    pub(crate) input: PathBuf,
    #[command(flatten)]
    pub(crate) reading: InputArgs,
    /// Lower an operator sequence, and write the problem.
    #[arg(long)]
    pub(crate) lower: bool,
    /// Where to write, .json or .csv.
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

fn dimension(text: &str) -> Result<(String, u64), String> {
    let (name, size) = text.split_once('=').ok_or("expected NAME=N, such as batch=8")?;
    let size = size.parse().map_err(|_| format!("'{size}' is not a whole number"))?;
    Ok((name.to_owned(), size))
}

/// The strategies with a line of help each.
fn strategies() -> impl clap::builder::TypedValueParser<Value = Strategy> {
    use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
    let values = Strategy::ALL.iter().map(|s| PossibleValue::new(s.name()).help(s.summary()));
    PossibleValuesParser::new(values).try_map(|name| name.parse::<Strategy>())
}
