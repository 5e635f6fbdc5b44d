//! Several pools on the command line.

use rstest::rstest;

use crate::command::{Run, memplan};

const POOLS: &str = "book/src/figures/pools.json";
const EXAMPLE: &str = "book/src/figures/example.json";
const HEADS: &str = "tests/models/heads.onnx";
const SLICES: &str = "tests/choices/graphs/slice_right_before_its_use.json";
const MICRO: &str = "tests/models/mobilenet_v3_se_64_i8.tflite";

#[test]
fn operators_are_planned_and_verified_in_two_pools() {
    let folder = tempfile::tempdir().unwrap();
    let plan = folder.path().join("plan.json").display().to_string();
    let pools = ["--pool", "fast:12KiB:1", "--pool", "slow::9"];
    let planned = memplan(&[&["plan", EXAMPLE, "-o", &plan], &pools[..]].concat());
    assert_eq!(planned.code, 0, "{}", planned.err);
    assert!(planned.out.contains("of 12.0 KiB"), "{}", planned.out);
    assert!(planned.out.contains("traffic times cost: "), "{}", planned.out);
    let verified = memplan(&["verify", EXAMPLE, &plan, "--execute"]);
    assert_eq!((verified.code, &*verified.err), (0, ""), "{}", verified.out);
    for command in ["show", "explain"] {
        let shown = memplan(&[command, EXAMPLE, &plan]);
        assert!(shown.out.contains("pool fast") && shown.out.contains("pool slow:"), "{shown:?}");
    }
    let table = memplan(&[&["plan", EXAMPLE, "--table"], &pools[..]].concat());
    assert!(table.out.contains("fast+0") && table.out.contains("slow+0"), "{}", table.out);
}

#[rstest]
#[case::pools_of_a_file(&["plan", POOLS, "--pool", "x"], 2, "the problem lists its pools")]
#[case::pin_of_a_file(&["plan", POOLS, "--pin", "kv=psram+64"], 2, "the problem pins 'kv' itself")]
#[case::unknown_pool(&["plan", POOLS, "--pin", "dma=x+64"], 2, "the pools are sram, psram")]
#[case::unknown_name(&["plan", POOLS, "--pin", "x=sram+64"], 2, "no tensor or chunk 'x'")]
#[case::csv(&["plan", POOLS, "--csv"], 2, "cannot state the pool")]
#[case::no_cost(&["plan", EXAMPLE, "--pool", "x:1:y"], 2, "expected NAME[:CAPACITY[:COST[:LARGEST]]]")]
#[case::no_largest(&["plan", EXAMPLE, "--pool", "x:1:2:0"], 2, "expected NAME[:CAPACITY[:COST[:LARGEST]]]")]
#[case::five_fields(&["plan", EXAMPLE, "--pool", "x:1:2:3:4"], 2, "expected NAME[:CAPACITY[:COST[:LARGEST]]]")]
#[case::largest_of_nothing(&["plan", EXAMPLE, "--largest", "0"], 2, "expected a size")]
#[case::largest_off_the_alignment(&["plan", EXAMPLE, "--largest", "8200"], 2, "a positive multiple of the alignment, 64 B")]
#[case::largest_below_a_tensor(&["plan", EXAMPLE, "--largest", "128"], 1, "no pool where they may lie has room")]
#[case::largest_of_a_file(&["plan", POOLS, "--largest", "4KiB"], 2, "the problem lists its pools")]
#[case::micro_buffers(&["plan", MICRO, "--largest", "1MiB"], 2, "one arena")]
#[case::csv_of_pools(&["convert", POOLS, "-o", "x.csv"], 2, "x.csv: CSV cannot express several pools, which the problem has; use .json")]
#[case::no_offset(&["plan", EXAMPLE, "--pin", "x=sram"], 2, "expected NAME=[POOL+]OFFSET")]
#[case::two_pins(&["plan", EXAMPLE, "--pin", "a=0", "--pin", "a=64"], 2, "pins put 'a' in two places")]
#[case::two_pins_of_a_chunk(&["plan", EXAMPLE, "--pin", "b=0", "--pin", "v=4096"], 2, "in two places")]
#[case::pins_of_other_choices(&["explain", SLICES, "--capacity", "100", "--pin", "t=0", "--pin", "e=512"], 1, "every plan needs at least 576 B")]
#[case::csv_of_windows(&["plan", "book/src/figures/glu.json", "--csv"], 2, "cannot state the bytes")]
#[case::too_small(&["plan", EXAMPLE, "--pool", "x:64"], 1, "no pool where they may lie has room")]
#[case::order(&["plan", EXAMPLE, "--reorder", "--pool", "x"], 2, "give no pools")]
#[case::micro(&["plan", MICRO, "--pool", "x"], 2, "one arena")]
#[case::plain_planner(&["plan", POOLS, "--strategy", "nnvm"], 2, "nnvm does not support several pools")]
fn impossible_plans_and_wrong_pools_are_reported(
    #[case] args: &[&str],
    #[case] code: i32,
    #[case] words: &str,
) {
    let Run { code: found, out, err } = memplan(args);
    assert_eq!(found, code, "{out}{err}");
    assert!(err.contains(words), "{err}");
}

/// The example needs 15 KiB, and its largest body 8 KiB: a row of such buffers takes more, and nothing lies
/// across two of them.
#[rstest]
#[case::one_pool(&["--largest", "8KiB"])]
#[case::each_pool(&["--pool", "fast:4KiB:1", "--pool", "slow::9", "--largest", "8KiB"])]
#[case::last_pool(&["--pool", "fast:4KiB:1", "--pool", "slow::9:8KiB"])]
fn no_tensor_lies_across_two_buffers(#[case] pools: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let plan = folder.path().join("plan.json").display().to_string();
    let planned = memplan(&[&["plan", EXAMPLE, "-o", &plan], pools].concat());
    assert_eq!(planned.code, 0, "{}", planned.err);
    let verified = memplan(&["verify", EXAMPLE, &plan, "--execute"]);
    assert_eq!((verified.code, &*verified.err), (0, ""), "{}", verified.out);
    let text = std::fs::read_to_string(&plan).unwrap();
    let mut stated: serde_json::Value = serde_json::from_str(&text).unwrap();
    let buffer = stated["pools"].as_array().unwrap().last().unwrap()["largest"].as_u64();
    assert_eq!(buffer, Some(8192), "{}", stated["pools"]);
    for chunk in stated["chunks"].as_array().unwrap() {
        let (low, size) = (chunk["offset"].as_u64().unwrap(), chunk["size"].as_u64().unwrap());
        assert!(size == 0 || low / 8192 == (low + size - 1) / 8192, "{chunk}");
    }
    for command in ["show", "explain"] {
        let shown = memplan(&[command, EXAMPLE, &plan]);
        assert_eq!(shown.code, 0, "{shown:?}");
        // Addresses begin anew in each buffer.
        assert!(shown.out.contains(", buffer 1"), "{}", shown.out);
        assert!(!shown.out.contains("16384"), "{}", shown.out);
    }
    // Smaller buffers would not hold all chunks.
    stated["pools"].as_array_mut().unwrap().last_mut().unwrap()["largest"] = 64.into();
    std::fs::write(&plan, stated.to_string()).unwrap();
    let verified = memplan(&["verify", EXAMPLE, &plan]);
    assert_eq!(verified.code, 1, "{}{}", verified.out, verified.err);
    assert!(verified.out.contains("across two of its buffers of 64 B"), "{}", verified.out);
}

/// A plan in CSV is refused where it could not state what `verify` needs, and nothing is written.
#[rstest]
#[case::buffers(&[EXAMPLE, "--largest", "8KiB"], "cannot state the buffers of the pool; use .json")]
#[case::pools(&[POOLS], "cannot state the pool of a chunk; use .json")]
#[case::streams(&["STREAMS"], "cannot state times on streams; use .json")]
#[case::parts(&["PARTS"], "cannot state the chunks that lie inside others; use .json")]
#[case::sizes(&[HEADS, "--dim", "batch=1..3"], "cannot state the sizes that it holds for; use .json")]
#[case::bodies(&["BODIES", "--alignment", "1"], "cannot state how bodies are planned; use .json")]
#[case::overwrites(&["OVERWRITES", "--alignment", "1"], "cannot state which overwrites it takes; use .json")]
fn a_plan_that_csv_cannot_state_is_refused(#[case] args: &[&'static str], #[case] words: &str) {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (streams, parts, plan) = (path("streams.json"), path("parts.json"), path("plan.csv"));
    let (bodies, overwrites) = (path("bodies.json"), path("overwrites.json"));
    let text = r#"{"format": "memplan-sequence/2", "outputs": ["y", "z"], "operators": [
        {"name": "a", "inputs": [], "outputs": [{"name": "y", "size": 64}]},
        {"name": "b", "inputs": [], "outputs": [{"name": "z", "size": 64}], "stream": 1}]}"#;
    std::fs::write(&streams, text).unwrap();
    let text = r#"{"format": "memplan-problem/2", "parts": [{"chunk": 0, "whole": 1, "offset": 0, "required": false}],
        "chunks": [{"id": 0, "begin": 0, "end": 2, "size": 6}, {"id": 1, "begin": 1, "end": 3, "size": 8}]}"#;
    std::fs::write(&parts, text).unwrap();
    let text = r#"{"format": "memplan-sequence/2", "outputs": ["y"], "operators": [
        {"name": "a", "inputs": [], "outputs": [{"name": "y", "size": 64}], "bodies": [
            {"inputs": [], "outputs": ["c"], "operators": [
                {"name": "b", "inputs": [], "outputs": [{"name": "c", "size": 8}, {"name": "d", "size": 8}]}]}]}]}"#;
    std::fs::write(&bodies, text).unwrap();
    let text = r#"{"format": "memplan-sequence/2", "outputs": ["y"], "operators": [
        {"name": "a", "inputs": [], "outputs": [{"name": "x", "size": 8}]},
        {"name": "b", "inputs": ["x"], "outputs": [
            {"name": "y", "size": 8, "overwrites": {"input": "x", "below": 1}},
            {"name": "z", "size": 8, "overwrites": {"input": "x"}}]}]}"#;
    std::fs::write(&overwrites, text).unwrap();
    let named = |arg: &&'static str| match *arg {
        "STREAMS" => streams.clone(),
        "PARTS" => parts.clone(),
        "BODIES" => bodies.clone(),
        "OVERWRITES" => overwrites.clone(),
        arg => arg.to_owned(),
    };
    let args: Vec<String> = args.iter().map(named).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    for output in [&["-o", &plan][..], &["--csv"]] {
        let Run { code, out, err } = memplan(&[&["plan"], &*args, output].concat());
        assert_eq!((code, &*out), (2, ""), "{err}");
        assert!(err.contains(words), "{err}");
        assert!(!folder.path().join("plan.csv").exists());
    }
}

/// A plan of a problem on streams states its clocks, and can be verified.
#[test]
fn a_plan_on_streams_goes_to_csv_with_its_clocks() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (problem, plan) = (path("p.csv"), path("plan.csv"));
    std::fs::write(&problem, "id,lower,upper,size\n7,0:0,1:1,64\n8,0:0,0:1,32\n9,1:0,2:0,32\n")
        .unwrap();
    let planned = memplan(&["plan", &problem, "-o", &plan]);
    assert_eq!(planned.code, 0, "{}", planned.err);
    let written = std::fs::read_to_string(&plan).unwrap();
    let times: Vec<&str> =
        written.lines().map(|line| line.rsplitn(3, ',').last().unwrap()).collect();
    assert_eq!(times, ["id,lower,upper", "7,0:0,1:1", "8,0:0,0:1", "9,1:0,2:0"]);
    assert_eq!(memplan(&["verify", &problem, &plan]).code, 0);
    // The last two may run at the same time.
    let wrong = written.replace(",32,96", ",32,64");
    assert_ne!(wrong, written);
    std::fs::write(&plan, wrong).unwrap();
    assert_eq!(memplan(&["verify", &problem, &plan]).code, 1);
}

/// A problem with alignments, gaps and pins goes to CSV and back, and its plan is right for both.
#[test]
fn a_problem_with_gaps_and_pins_is_converted_to_csv() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (json, csv, plan) = (path("p.json"), path("p.csv"), path("plan.csv"));
    let text = r#"{"format": "memplan-problem/2", "chunks": [
        {"id": 0, "begin": 0, "end": 9, "size": 64, "holes": [[2, 4]],
         "windows": [{"begin": 6, "end": 8, "low": 0, "high": 8}]},
        {"id": 1, "begin": 2, "end": 4, "size": 64, "alignment": 16},
        {"id": 2, "begin": 1, "end": 3, "size": 4, "pin": {"offset": 3}}]}"#;
    std::fs::write(&json, text).unwrap();
    let converted = memplan(&["convert", &json, "-o", &csv]);
    assert_eq!(converted.code, 0, "{}", converted.err);
    let written = "id,lower,upper,size,alignment,gaps,offset\n0,0,9,64,1,2-4 6-8@0:8,\n1,2,4,64,16,,\n2,1,3,4,1,,3\n";
    assert_eq!(std::fs::read_to_string(&csv).unwrap(), written);
    let planned = memplan(&["plan", &csv, "-o", &plan]);
    assert_eq!(planned.code, 0, "{}", planned.err);
    for input in [&json, &csv] {
        let verified = memplan(&["verify", input, &plan]);
        assert_eq!((verified.code, &*verified.err), (0, ""), "{}", verified.out);
    }
    let wrong = std::fs::read_to_string(&csv).unwrap().replace("2-4 6", "2-40 6");
    std::fs::write(&csv, wrong).unwrap();
    let refused = memplan(&["plan", &csv]);
    assert_eq!(refused.code, 2);
    let words = "p.csv: line 2: chunk '0' has a hole or window [2, 40) that is empty or outside";
    assert!(refused.err.contains(words), "{}", refused.err);
}

/// Two chunks of one step do not fit into one pool of their size.
#[test]
fn a_problem_without_a_plan_is_not_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("full.json");
    let text = r#"{"format": "memplan-problem/2", "pools": [{"name": "a", "capacity": 12}], "chunks": [
        {"id": 0, "name": "x", "begin": 0, "end": 2, "size": 8},
        {"id": 1, "name": "y", "begin": 1, "end": 3, "size": 8}]}"#;
    std::fs::write(&path, text).unwrap();
    let path = path.display().to_string();
    let Run { code, out, err } = memplan(&["plan", &path]);
    assert_eq!((code, &*out), (1, ""));
    assert!(
        err.ends_with("no plan exists: the pools are too small for these chunks (proven)\n"),
        "{err}"
    );
    assert_eq!(memplan(&["plan", &path, "--capacity", "99"]).code, 1);
    let Run { code, err, .. } = memplan(&["plan", &path, "--strategy", "first-fit"]);
    assert_eq!(code, 1);
    assert!(
        err.contains("no pool had room left for 'y'")
            || err.contains("no pool had room left for 'x'"),
        "{err}"
    );
}

/// `x` lives through both phases, in one place, and `y` of one phase has the bytes of `y` of the other.
#[test]
fn inputs_that_run_later_share_the_pool() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let phase = |name: &str, size: u64| {
        let text = format!(
            r#"{{"format": "memplan-problem/1", "alignment": 8, "chunks": [
            {{"id": 7, "name": "x", "begin": 0, "end": 2, "size": 64}},
            {{"id": 9, "name": "y", "begin": 1, "end": 3, "size": {size}}}]}}"#
        );
        std::fs::write(path(name), text).unwrap();
    };
    phase("prefill.json", 800);
    phase("decode.json", 80);
    let (prefill, decode) = (path("prefill.json"), path("decode.json"));
    let (both, plan) = (path("both.json"), path("plan.json"));
    let inputs = ["--after", &decode, "--share", "prefill/x=decode/x"];
    let written = memplan(&[&["convert", &prefill, "-o", &both], &inputs[..]].concat());
    assert_eq!(written.code, 0, "{}", written.err);
    let planned = memplan(&[&["plan", &prefill, "-o", &plan, "--table"], &inputs[..]].concat());
    assert_eq!(planned.code, 0, "{}", planned.err);
    assert!(planned.out.contains("864 B") && planned.out.contains("decode/y"), "{}", planned.out);
    let verified = memplan(&["verify", &both, &plan]);
    assert_eq!((verified.code, &*verified.err), (0, ""), "{}", verified.out);
    let both = |command: &[&str]| memplan(&[command, &inputs[..]].concat());
    let verified = both(&["verify", &prefill, &plan]);
    assert_eq!((verified.code, &*verified.err), (0, ""), "{}", verified.out);
    // The plan of both is wrong for another second input.
    let other = ["verify", &prefill, &plan, "--after", &prefill];
    assert_eq!(memplan(&other).code, 1);
    for command in ["explain", "show"] {
        for words in [&[command, &*prefill][..], &[command, &*prefill, &*plan]] {
            let run = both(words);
            assert_eq!(run.code, 0, "{words:?}: {}", run.err);
            assert!(run.out.contains("decode/y") || run.out.contains("864"), "{}", run.out);
        }
    }
    // An input is never written over.
    for command in [&["plan", &*prefill][..], &["convert", &prefill]] {
        let run = both(&[command, &["-o", &decode]].concat());
        assert_eq!(run.code, 2, "{}", run.err);
        assert!(run.err.contains("-o names a file that is read"), "{}", run.err);
    }
    // The file comes twice, and each time has names of its own.
    let twice = memplan(&["plan", &prefill, "--after", &prefill, "--table"]);
    assert!(twice.out.contains("prefill.2/x"), "{}{}", twice.out, twice.err);
    let micro = memplan(&["plan", MICRO, "--after", "tests/models/variable_f32.tflite"]);
    assert!(micro.out.contains("alignment 16 B"), "{}", micro.out);
    let models = memplan(&["plan", EXAMPLE, "--after", EXAMPLE, "--after", &decode]);
    assert_eq!(models.code, 0, "{}", models.err);
    // A problem has no ranges of sizes.
    let range = memplan(&["plan", HEADS, "--after", HEADS, "--dim", "batch=1..3"]);
    assert_eq!(range.code, 2, "{}", range.out);
    let words = "is for one size, not for batch=1..3; give one, as in --dim batch=3";
    assert!(range.err.contains(words), "{}", range.err);
}

#[rstest]
#[case::unknown(&["--after", EXAMPLE, "--share", "a=nothing"], "--share a=nothing: no two inputs")]
#[case::sizes(&["--after", POOLS, "--share", "example/a=kv"], "cannot be shared: they have")]
#[case::no_later(&["--share", "a=b"], "--after")]
#[case::no_pair(&["--after", EXAMPLE, "--share", "a"], "expected NAME=NAME")]
#[case::order(&["--after", EXAMPLE, "--reorder"], "cannot be used with")]
#[case::missing(&["--after", "nowhere.json"], "nowhere.json")]
fn later_inputs_that_cannot_be_planned_are_refused(#[case] args: &[&str], #[case] words: &str) {
    let Run { code, err, .. } = memplan(&[&["plan", EXAMPLE], args].concat());
    assert_eq!(code, 2, "{err}");
    assert!(err.contains(words), "{err}");
}

#[test]
fn the_traffic_is_explained_beside_that_of_simple_rules() {
    let pools = ["--pool", "fast:12KiB:1", "--pool", "slow::9"];
    let explained = memplan(&[&["explain", EXAMPLE], &pools[..]].concat());
    assert_eq!(explained.code, 0, "{}", explained.err);
    assert!(explained.out.contains("Traffic times cost is "), "{}", explained.out);
    let json = memplan(&[&["explain", EXAMPLE, "--json"], &pools[..]].concat());
    let json: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    let of = |key: &str| json["traffic"][key].as_u64().unwrap();
    assert!(of("plan") <= of("banked_greedy") && of("banked_greedy") <= of("all_slow"), "{json}");
}

/// Changes of the operators are measured in one pool without limits only.
#[rstest]
#[case(&["--largest", "1MiB"])]
#[case(&["--pool", "x:1MiB"])]
fn one_pool_with_limits_is_explained_without_advice(#[case] options: &[&str]) {
    let explained = memplan(&[&["explain", EXAMPLE, "--json"], options].concat());
    assert_eq!(explained.code, 0, "{}", explained.err);
    let json: serde_json::Value = serde_json::from_str(&explained.out).unwrap();
    assert_eq!(json["advice"], serde_json::json!([]), "{json}");
}
