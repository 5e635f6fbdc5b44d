//! The arguments of the command line.

mod groups;
mod values;

use std::{
    ops::Range,
    path::{Path, PathBuf},
    time::Duration,
};

use clap::{Args, Parser, Subcommand};
use memplan::{Input, Limits, Planner, Step, Strategy};

use crate::files;

use groups::{INPUT, LIMITS, OUTPUT, PLANNING};
pub(crate) use groups::{InputArgs, LaterArgs, OrderArgs, PlacingArgs, SearchArgs, StrategyArgs};
pub(crate) use values::Emit;
pub(crate) use values::{RuntimeName, SharedNames};
use values::{capacity, from_one, steps, strategies};

/// Plans the memory of a deep-learning graph before it runs: one pool, and a fixed offset in it for
/// every tensor.
#[derive(Debug, Parser)]
#[command(
    name = "memplan",
    version,
    max_term_width = 80,
    disable_help_flag = true,
    after_help = "Without a command, plans a built-in network and shows its memory map.\n`memplan man COMMAND` says more about each option.\nExit code: 0 success, 1 the plan is wrong or does not fit, 2 bad usage or bad input."
)]
pub(crate) struct Arguments {
    /// Print only results and errors.
    ///
    /// Omits notes, warnings and progress, and with -o also the summary.
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Log: -v plans, -vv passes and decisions, -vvv events.
    ///
    /// The log goes to standard error. If `RUST_LOG` is set, it overrides this option, and can name passes, such as
    /// `RUST_LOG=memplan::simulate=trace`.
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
    /// Print help.
    #[arg(short, long, global = true, action = clap::ArgAction::HelpShort)]
    help: Option<bool>,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Plan a model: pool size, bounds and, with --table, every offset.
    Plan(PlanArgs),
    /// Check that a plan is correct for its input, and list every violation.
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
    /// Run some operators twice so that the pool fits a capacity, at the least extra cost.
    Recompute(RecomputeArgs),
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

#[derive(Debug, Args)]
#[allow(clippy::struct_excessive_bools, reason = "independent switches of the command line")]
pub(crate) struct PlanArgs {
    /// An ONNX or TensorFlow Lite model, an operator sequence or problem in JSON, a problem in
    /// MiniMalloc's CSV, a recording of allocations (.pickle, .json, .pte or
    /// -buffer-assignment.txt), or `-` for standard input; without it, a built-in network.
    pub(crate) input: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) reading: InputArgs,
    #[command(flatten)]
    pub(crate) planning: StrategyArgs,
    #[command(flatten)]
    pub(crate) later: LaterArgs,
    /// Look for a better order of the operators first.
    ///
    /// The plan, as JSON, states the order. --effort and --time-limit then also limit this search.
    #[arg(long, conflicts_with_all = ["csv", "after"], help_heading = PLANNING)]
    pub(crate) reorder: bool,
    /// Write the plan: .json, .csv or .tflite.
    ///
    /// For a TensorFlow Lite model, .tflite writes the model with the plan in its metadata, if the
    /// runtime takes less memory with it.
    #[arg(short, long, value_name = "PLAN", help_heading = OUTPUT)]
    pub(crate) output: Option<PathBuf>,
    /// With -o PLAN.tflite, replace the plan in the model.
    #[arg(long, requires = "output", conflicts_with = "after", help_heading = OUTPUT)]
    pub(crate) replace: bool,
    /// Write the plan of a .tflite model as C++ source.
    ///
    /// The source is for the planner of the runtime that takes all offsets from a struct.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["reorder", "after"], help_heading = OUTPUT)]
    pub(crate) c_struct: Option<PathBuf>,
    /// Fit the plan into this size, such as 1MiB.
    ///
    /// best and optimal search for a plan that fits, or for a proof that no plan does. If no plan fits, nothing
    /// is written and the exit code is 1.
    #[arg(long, value_name = "SIZE", value_parser = capacity, help_heading = LIMITS)]
    pub(crate) capacity: Option<u64>,
    /// Print the plan as source, or write it to -o.
    ///
    /// A C header with the size of the pool and the offset of each tensor.
    #[arg(long, value_name = "FORM", conflicts_with_all = ["json", "csv", "table"], help_heading = OUTPUT)]
    pub(crate) emit: Option<Emit>,
    /// Print every offset.
    #[arg(long, conflicts_with_all = ["json", "csv"], help_heading = OUTPUT)]
    pub(crate) table: bool,
    /// Print the plan as JSON.
    #[arg(long, conflicts_with = "csv", help_heading = OUTPUT)]
    pub(crate) json: bool,
    /// Print the plan as MiniMalloc's CSV.
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) csv: bool,
}

#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// The input that the plan is for.
    pub(crate) input: PathBuf,
    /// The plan, .json or .csv, or a TensorFlow Lite model with a plan in its metadata; without it, the
    /// plan in the input itself.
    plan: Option<PathBuf>,
    /// Audit the addresses of a run instead of a plan.
    ///
    /// The file, .json or .csv, gives the address that each tensor had in a run by another runtime. The operators
    /// are run on a shadow of that memory.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["plan", "execute", "after", "alignment", "padding"], help_heading = INPUT)]
    pub(crate) addresses: Option<PathBuf>,
    /// Also run the operators on a shadow of the pool.
    ///
    /// This follows every byte from its writer to its readers. It needs operators and a plan with tensors.
    #[arg(long, help_heading = PLANNING)]
    pub(crate) execute: bool,
    #[command(flatten)]
    pub(crate) reading: InputArgs,
    #[command(flatten)]
    pub(crate) later: LaterArgs,
    /// Alignment that the plan must have, in bytes.
    ///
    /// Multiples are accepted. By default, the plan of a model may have any alignment, and the plan of a problem must have
    /// the problem's own.
    #[arg(long, value_name = "BYTES", help_heading = PLANNING)]
    pub(crate) alignment: Option<u64>,
    /// Least padding that the plan must have, in bytes.
    ///
    /// The default is 0 for a model, and the problem's own for a problem.
    #[arg(long, value_name = "BYTES", help_heading = PLANNING)]
    pub(crate) padding: Option<u64>,
}

impl VerifyArgs {
    /// The plan, which may lie in the input.
    pub(crate) fn plan(&self) -> &Path {
        self.plan.as_deref().unwrap_or(&self.input)
    }

    /// Returns whether a plan is given, or lies in the input.
    pub(crate) fn has_plan(&self) -> bool {
        self.plan.is_some() || files::is_named_tflite(&self.input)
    }
}

#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// The inputs to plan; with several, the tables have a column for each.
    #[arg(required = true, value_name = "INPUT")]
    pub(crate) paths: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) reading: InputArgs,
    #[command(flatten)]
    pub(crate) searching: SearchArgs,
    #[command(flatten)]
    pub(crate) placing: PlacingArgs,
    /// Also plan a better order of the operators with best.
    #[arg(long, help_heading = PLANNING)]
    pub(crate) reorder: bool,
    /// Print JSON.
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// The input to plan; without it, a built-in network.
    pub(crate) input: Option<PathBuf>,
    /// Show this plan instead of making one. Several plans are shown side by side in an .html file. For a recording
    /// of allocations, give other recordings instead.
    #[arg(conflicts_with_all = ["strategy", "effort", "time_limit", "threads", "alignment", "padding"])]
    pub(crate) plan: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) reading: InputArgs,
    /// Planner; for .html, several separated by commas.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = strategies(), help_heading = PLANNING)]
    strategy: Vec<Strategy>,
    #[command(flatten)]
    pub(crate) searching: SearchArgs,
    #[command(flatten)]
    pub(crate) placing: PlacingArgs,
    #[command(flatten)]
    pub(crate) later: LaterArgs,
    /// Width of the map in columns, or of an .svg in pixels.
    ///
    /// The default is the width of the terminal, or 80 columns. If too many
    /// chunks share a column, the map shows only the steps around the peak.
    #[arg(long, value_name = "N", value_parser = from_one(), help_heading = OUTPUT)]
    pub(crate) width: Option<usize>,
    /// Height of the text map in lines.
    #[arg(long, value_name = "LINES", default_value_t = 24, value_parser = from_one(), help_heading = OUTPUT)]
    pub(crate) height: usize,
    /// Least number of bytes on the address axis of an .svg.
    ///
    /// Draws several maps on one scale.
    #[arg(long, value_name = "SIZE", value_parser = capacity, conflicts_with = "simulation", help_heading = OUTPUT)]
    pub(crate) scale: Option<u64>,
    /// Draw a better order of the operators as well.
    ///
    /// Both maps are drawn on one scale, as .svg, .html or text.
    #[arg(long, conflicts_with_all = ["plan", "simulation", "after"], help_heading = PLANNING)]
    pub(crate) reorder: bool,
    /// Draw the queues of pushdown after each event, as .svg.
    #[arg(long, conflicts_with_all = ["plan", "strategy"], help_heading = OUTPUT)]
    pub(crate) simulation: bool,
    /// Only these steps of the simulation, such as 2..4.
    ///
    /// Half-open: 2..4 draws steps 2 and 3.
    #[arg(long, value_name = "FROM..TO", requires = "simulation", value_parser = steps, help_heading = OUTPUT)]
    pub(crate) steps: Option<Range<Step>>,
    /// Write .svg, .html, .json (for Perfetto) or .txt.
    #[arg(short, long, value_name = "FILE", help_heading = OUTPUT)]
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
        let path = self.input.as_deref();
        let planner = self.placing.planner(&self.reading, input, path).strategy(strategy);
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
    #[command(flatten)]
    pub(crate) later: LaterArgs,
    /// Look for a better order of the operators first.
    ///
    /// Explains what it saves, and its plan.
    #[arg(long, conflicts_with_all = ["plan", "capacity", "after"], help_heading = PLANNING)]
    pub(crate) reorder: bool,
    /// Show which chunks do not fit into this size.
    #[arg(long, value_name = "SIZE", value_parser = capacity, conflicts_with = "plan", help_heading = LIMITS)]
    pub(crate) capacity: Option<u64>,
    /// Print JSON.
    #[arg(long, conflicts_with = "capacity", help_heading = OUTPUT)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ReorderArgs {
    /// A model, an operator sequence in JSON, or `-` for standard input.
    pub(crate) input: PathBuf,
    #[command(flatten)]
    pub(crate) reading: InputArgs,
    #[command(flatten)]
    searching: OrderArgs,
    #[command(flatten)]
    pub(crate) placing: PlacingArgs,
    /// Write the operators in the new order.
    ///
    /// Writes the order found or, if no order is better, the given one. For a model, .onnx or .tflite keeps the format
    /// and changes nothing else; .json writes the operator sequence.
    #[arg(short, long, value_name = "OUT", help_heading = OUTPUT)]
    pub(crate) output: Option<PathBuf>,
    /// Print JSON, with the order.
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) json: bool,
}

impl ReorderArgs {
    pub(crate) fn limits(&self) -> Limits {
        self.searching.limits()
    }
}

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("question").required(true).args(["capacity", "curve"]))]
pub(crate) struct RecomputeArgs {
    /// A model, an operator sequence in JSON, or `-` for standard input. The file states the costs; for a model, they
    /// follow from its shapes.
    pub(crate) input: PathBuf,
    #[command(flatten)]
    pub(crate) reading: InputArgs,
    /// The size that the pool must not exceed, such as 1048576 or 40MiB. If nothing fits, nothing is
    /// written and the exit code is 1.
    #[arg(long, value_name = "SIZE", value_parser = capacity)]
    pub(crate) capacity: Option<u64>,
    /// Print a table of the extra cost at this many sizes, from the least peak that is found to the
    /// peak without recomputation; with -o, draw it as .svg.
    #[arg(long, value_name = "POINTS", conflicts_with_all = ["capacity", "reorder"], value_parser = clap::value_parser!(u16).range(2..=200))]
    pub(crate) curve: Option<u16>,
    /// Search nodes; a million nodes of this search take about a second [default: 4000 for each operator, at
    /// least 1250000; 8000000 more if nothing fits].
    #[arg(long, value_name = "NODES", value_parser = values::nodes)]
    effort: Option<u64>,
    /// Time limit of the search, such as 2s or 500ms; the answer then depends on the machine.
    #[arg(long, value_name = "TIME", value_parser = values::duration)]
    time_limit: Option<Duration>,
    #[command(flatten)]
    pub(crate) placing: PlacingArgs,
    /// Look for a better order of the operators and their copies as well.
    #[arg(long)]
    pub(crate) reorder: bool,
    /// Write the operators with their copies as .json, or as .onnx if the input is an ONNX model; with
    /// --curve, the picture as .svg.
    #[arg(short, long, value_name = "OUT")]
    pub(crate) output: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

impl RecomputeArgs {
    /// Limits the search by time alone if only a time is given.
    pub(crate) fn limits(&self) -> Limits {
        let limits = Limits::default();
        let limits = self.effort.map_or(limits, |nodes| limits.nodes(nodes));
        self.time_limit.map_or(limits, |time| limits.time(time))
    }
}

#[derive(Debug, Args)]
pub(crate) struct OpsArgs {
    /// A model or an operator sequence; without it, a built-in network.
    pub(crate) input: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) reading: InputArgs,
    /// Print JSON.
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ConvertArgs {
    /// The file to convert.
    pub(crate) input: PathBuf,
    #[command(flatten)]
    pub(crate) reading: InputArgs,
    #[command(flatten)]
    pub(crate) placing: PlacingArgs,
    #[command(flatten)]
    pub(crate) later: LaterArgs,
    /// Lower an operator sequence and write the problem.
    ///
    /// In the problem, concatenations copy their inputs.
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) lower: bool,
    /// The file to write, .json or .csv.
    #[arg(short, long, value_name = "OUT", help_heading = OUTPUT)]
    pub(crate) output: PathBuf,
}
