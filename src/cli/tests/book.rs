//! The book's figures equal the tool's output, and its links have targets. `SNAPSHOTS=overwrite
//! cargo test --test book` generates the figures again.

mod command;
#[path = "../../../tests/common/shared.rs"]
mod shared;

use std::{collections::BTreeSet, fs, path::PathBuf};

use command::{memplan, memplan_with, project};
use rstest::rstest;
use shared::shared_path;

const EXAMPLE: &str = "book/src/figures/example.json";
const BRANCHES: &str = "book/src/figures/branches.json";
const POOLS: &str = "book/src/figures/pools.json";
const STEP: &str = "book/src/figures/step.json";
const GLU: &str = "book/src/figures/glu.json";
const OVERWRITE: &str = "book/src/figures/overwrite.json";

#[rstest]
#[case("example.map.txt", &["show", EXAMPLE, "--strategy", "pushdown"], None)]
#[case("example.explain.txt", &["explain", EXAMPLE, "--strategy", "pushdown"], None)]
#[case("example.debug.txt", &["plan", EXAMPLE, "--strategy", "pushdown"], Some("memplan=debug"))]
#[case("example.trace.txt", &["plan", EXAMPLE, "--strategy", "pushdown"], Some("off,memplan::simulate=trace"))]
#[case("overwrite.trace.txt", &["plan", OVERWRITE, "--strategy", "pushdown"], Some("off,memplan::simulate=trace"))]
#[case("branches.map.txt", &["show", BRANCHES, "--reorder", "--alignment", "1", "--height", "12"], None)]
#[case("branches.explain.txt", &["explain", BRANCHES, "--reorder", "--alignment", "1"], None)]
#[case("pools.map.txt", &["show", POOLS, "--height", "8"], None)]
#[case("verify.txt", &["verify", OVERWRITE, "book/src/figures/wrong.plan.json"], None)]
#[case("step.curve.txt", &["recompute", STEP, "--curve", "8"], None)]
#[case("step.recompute.txt", &["recompute", STEP, "--capacity", "160KiB"], None)]
#[case("example.h", &["plan", EXAMPLE, "--strategy", "pushdown", "--emit", "c-header"], None)]
#[case("help.txt", &["--help"], None)]
#[case("ops.txt", &["ops", "tests/models/encoder.onnx", "--inplace", "elementwise"], None)]
fn the_figure_is_what_the_tool_prints(
    #[case] figure: &str,
    #[case] args: &[&str],
    #[case] log: Option<&str>,
) {
    let run = memplan_with(args, log, "");
    let printed = if log.is_some() { run.err } else { run.out };
    // The lines of a trace are wider than a page: the book breaks them before the queues.
    compare_figure(figure, &printed.replace(" memory=[", "\n    memory=["));
}

/// Each planner's page shows the same eight chunks.
#[test]
fn every_planner_has_a_page_with_its_map() {
    for strategy in memplan::Strategy::ALL.iter().map(|strategy| strategy.name()) {
        let figure = format!("planner-{strategy}.txt");
        let args =
            ["show", "book/src/figures/eight.json", "--strategy", strategy, "--height", "40"];
        compare_figure(&figure, &command::memplan(&args).out);
        let page = if strategy.starts_with("tflite-") { "tflite" } else { strategy };
        let page = fs::read_to_string(book().join(format!("planner-{page}.md"))).unwrap();
        assert!(page.contains(&format!("`--strategy {strategy}`")) && page.contains(&figure));
    }
}

/// Times differ from run to run.
#[test]
fn the_small_problem_is_compared_as_the_tool_does() {
    let run = memplan(&["compare", "book/src/figures/eight.json"]);
    let header = run.out.lines().find(|line| line.contains("time")).unwrap();
    let until = header.find("time").unwrap() + "time".len();
    let from = header.find("ratio").unwrap() + "ratio".len();
    let without_times: String = run
        .out
        .lines()
        .map(|line| line.chars().take(from).chain(line.chars().skip(until)).collect::<String>())
        .map(|line| line.trim_end().replace("book/src/figures/", "") + "\n")
        .collect();
    compare_figure("eight.compare.txt", &without_times);
}

/// The first chapter plans a model of the repository's own.
#[test]
fn the_first_model_is_planned_as_the_tool_does() {
    let model = "tests/models/encoder.onnx";
    let folder = tempfile::tempdir().unwrap();
    let plan = folder.path().join("plan.json");
    let plan = plan.to_str().unwrap();
    assert_eq!(memplan(&["plan", model, "-o", plan]).code, 0);
    // The first line ends with the time that planning took.
    let printed = memplan(&["plan", model]).out;
    let (_, summary) = printed.split_once('\n').unwrap();
    compare_figure("first.plan.txt", summary);
    // It begins with the same summary.
    let explanation = memplan(&["explain", model]).out;
    compare_figure("first.explain.txt", explanation.split_once("\n\n").unwrap().1);
    compare_figure("first.verify.txt", &memplan(&["verify", model, plan]).out);
}

/// Behind it comes the usual explanation of a plan.
#[test]
fn the_recording_is_explained_as_the_tool_does() {
    let printed = memplan(&["explain", "tests/recordings/step.pickle"]).out;
    let (answers, _) = printed.split_once("\nPeak, at step ").unwrap();
    compare_figure("recording.explain.txt", answers);
}

/// Multiple memories, pins and more.
#[test]
fn the_problem_in_two_pools_is_planned_as_the_tool_does() {
    let printed = memplan(&["plan", POOLS]).out;
    let (_, summary) = printed.split_once('\n').unwrap();
    compare_figure("pools.plan.txt", summary);
}

/// The model with a plan is smaller in memory.
#[test]
fn the_small_model_is_planned_as_the_tool_does() {
    let printed = memplan(&["plan", "tests/models/mobilenet_v3_se_64_i8.tflite"]).out;
    let (_, summary) = printed.split_once('\n').unwrap();
    compare_figure("micro.plan.txt", summary);
}

#[test]
fn the_memory_of_onnx_runtime_is_printed_as_the_tool_does() {
    let args = ["plan", "tests/models/encoder.onnx", "--runtime", "onnxruntime"];
    let printed = memplan(&args).out;
    let (_, summary) = printed.split_once('\n').unwrap();
    compare_figure("onnxruntime.plan.txt", summary);
}

/// Two of the models are not the project's own.
#[test]
fn the_table_of_planners_is_what_the_tool_prints() {
    if shared_path("data/models").is_none() {
        return;
    }
    let model = |name: &str| format!("../shared/data/models/{name}.onnx");
    let (resnet, vit) = (model("resnet50_b1"), model("vit_b_16_b1"));
    let run = command::memplan(&[
        "compare",
        &resnet,
        &vit,
        "book/src/figures/tiling.csv",
        "book/src/figures/crowd.csv",
    ]);
    // Times differ from run to run.
    let (ratios, _) = run.out.split_once("\npool  ").unwrap();
    let names =
        |text: &str| text.replace("../shared/data/models/", "").replace("book/src/figures/", "");
    compare_figure("compare.txt", &names(ratios));
}

fn compare_figure(figure: &str, printed: &str) {
    assert!(!printed.is_empty());
    let path = book().join("figures").join(figure);
    snapbox::Assert::new()
        .action_env(snapbox::assert::DEFAULT_ACTION_ENV)
        .eq(printed, snapbox::Data::read_from(&path, Some(snapbox::data::DataFormat::Text)).raw());
}

#[test]
fn the_curve_is_drawn_as_the_tool_does() {
    let folder = tempfile::tempdir().unwrap();
    let drawn = folder.path().join("step.curve.svg");
    let run = memplan(&["recompute", STEP, "--curve", "8", "-o", drawn.to_str().unwrap()]);
    assert_eq!(run.code, 0);
    compare_figure("step.curve.svg", &fs::read_to_string(drawn).unwrap());
}

/// Draws a figure and compares it with the one in the book.
fn compare_drawn(figure: &str, args: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let drawn = folder.path().join(figure);
    let run = memplan(&[&["show"], args, &["-o", drawn.to_str().unwrap()]].concat());
    assert_eq!(
        (run.code, run.out.as_str(), run.err.as_str()),
        (0, "", format!("memplan: wrote {}\n", drawn.display()).as_str())
    );
    let path = book().join("figures").join(figure);
    snapbox::Assert::new().action_env(snapbox::assert::DEFAULT_ACTION_ENV).eq(
        fs::read_to_string(drawn).unwrap(),
        snapbox::Data::read_from(&path, Some(snapbox::data::DataFormat::Text)).raw(),
    );
}

/// Pictures are drawn as wide as a page of the book and as a phone.
#[rstest]
#[case("lowering.before", &[EXAMPLE, "--strategy", "naive", "--no-views", "--inplace", "none"])]
#[case("lowering.after", &[EXAMPLE, "--strategy", "naive"])]
#[case("example.map", &[EXAMPLE, "--strategy", "pushdown"])]
#[case("example.simulation", &[EXAMPLE, "--simulation"])]
#[case("example.end", &[EXAMPLE, "--simulation", "--steps", "5..6"])]
#[case("lowering.before.queues", &[EXAMPLE, "--simulation", "--no-views", "--inplace", "none"])]
#[case("first.map", &["tests/models/encoder.onnx"])]
#[case("glu.map", &[GLU])]
#[case("free.simulation", &["book/src/figures/free.json", "--simulation", "--steps", "5..10"])]
#[case("alloc.simulation", &["book/src/figures/alloc.json", "--simulation", "--steps", "0..4"])]
#[case("splits.simulation", &["book/src/figures/splits.json", "--simulation", "--steps", "1..4"])]
#[case("chain.map", &["book/src/figures/chain.json", "--strategy", "pushdown"])]
#[case("overwrite.map", &[OVERWRITE, "--strategy", "pushdown"])]
#[case("overwrite.simulation", &[OVERWRITE, "--simulation"])]
fn the_picture_is_what_the_tool_draws(#[case] figure: &str, #[case] args: &[&str]) {
    compare_drawn(&format!("{figure}.svg"), &[args, &["--width", "720"]].concat());
    compare_drawn(&format!("{figure}.narrow.svg"), &[args, &["--width", "360"]].concat());
}

#[test]
fn the_page_is_what_the_tool_writes() {
    compare_drawn("example.page.html", &[EXAMPLE, "--strategy", "pushdown,best,naive"]);
}

/// The README's two pictures are on one scale.
#[rstest]
#[case("encoder.before.svg", &["--strategy", "naive", "--no-views", "--inplace", "none"])]
#[case("encoder.after.svg", &["--scale", "5452800"])]
fn the_pictures_of_the_readme_are_what_the_tool_draws(#[case] figure: &str, #[case] args: &[&str]) {
    compare_drawn(figure, &[&["tests/models/encoder.onnx"], args].concat());
}

fn book() -> PathBuf {
    project().join("book/src")
}

/// The files of the book with their texts.
fn chapters() -> impl Iterator<Item = (PathBuf, String)> {
    let paths = fs::read_dir(book()).unwrap().map(|entry| entry.unwrap().path());
    let chapters = paths.filter(|path| path.extension().is_some_and(|extension| extension == "md"));
    chapters.map(|path| {
        let text = fs::read_to_string(&path).unwrap();
        (path, text)
    })
}

/// Returns the texts between two marks.
fn between<'a>(text: &'a str, open: &'a str, close: &'a str) -> impl Iterator<Item = &'a str> {
    text.split(open).skip(1).filter_map(move |rest| Some(rest.split_once(close)?.0))
}

/// The default strategy draws other figures than those in the book.
#[test]
fn every_command_on_the_example_names_its_strategy() {
    for (path, text) in chapters() {
        for command in text.split('`').filter(|words| words.contains("memplan ")) {
            let on_example = command.contains("example.json") || command.contains("eight.json");
            let says = command.contains("--strategy ") || command.contains("--simulation");
            assert!(says || !on_example, "{}: {command}", path.display());
        }
    }
}

#[test]
fn every_link_and_every_figure_of_the_book_exists() {
    let summary = fs::read_to_string(book().join("SUMMARY.md")).unwrap();
    let listed: BTreeSet<&str> = between(&summary, "](", ")").collect();
    let mut count = 0;
    for (path, text) in chapters() {
        let name = path.file_name().unwrap().to_str().unwrap();
        assert!(name == "SUMMARY.md" || listed.contains(name), "{name} is not in the summary");
        let links = between(&text, "](", ")").filter(|link| !link.contains("://"));
        let embedded = between(&text, " src=\"", "\"");
        for link in links.chain(between(&text, "{{#include ", "}}")).chain(embedded) {
            let file = link.split(['#', ':']).next().unwrap();
            assert!(book().join(file).exists(), "{name} leads to {link}, which does not exist");
        }
        count += 1;
    }
    assert_eq!(count, listed.len() + 1);
}

/// Markdown takes a line that begins with "1. " for a list, even within a sentence.
#[test]
fn no_sentence_is_broken_before_a_one_that_ends_it() {
    for (path, text) in chapters() {
        let lines: Vec<&str> = text.lines().collect();
        for (at, pair) in lines.windows(2).enumerate() {
            let is_sentence = pair[0].starts_with(char::is_alphabetic);
            let place = format!("{}:{}", path.display(), at + 2);
            assert!(!(is_sentence && pair[1].starts_with("1. ")), "{place}: {}", pair[1]);
        }
    }
}
