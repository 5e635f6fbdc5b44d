//! Reading and writing files: everything written is read back unchanged; unsupported content is
//! rejected with its line.

use crate::common::random::{Wild, random_problem};
use memplan::{
    Input, OpSequence, Operator, Output, Plan, Planner, Problem, Strategy,
    import::{Format, ImportOptions, read_input, read_plan},
    problem::ChunkId,
    report::{
        write_plan_csv, write_plan_json, write_problem_csv, write_problem_json, write_sequence_json,
    },
    sequence::TensorType,
    verify::verify,
};
use rstest::rstest;

fn read(text: &str, format: Format) -> Result<Input, String> {
    read_input(text.as_bytes(), format, &ImportOptions::default())
        .map_err(|error| error.to_string())
}

fn read_csv(text: &str) -> Problem {
    match read(text, Format::Csv).unwrap() {
        Input::Problem(problem) => problem,
        Input::Sequence(_) => panic!("CSV holds problems"),
    }
}

fn written(write: impl FnOnce(&mut Vec<u8>) -> std::io::Result<()>) -> String {
    let mut text = Vec::new();
    write(&mut text).unwrap();
    String::from_utf8(text).unwrap()
}

#[test]
fn a_problem_survives_json_and_its_plan_survives_json_and_csv() {
    arbtest::arbtest(|random| {
        let wild = Wild { chunks: 12, steps: 9, size: 30, alignment: true };
        let problem = random_problem(random, wild)?;
        let json = written(|out| write_problem_json(out, &problem));
        assert_eq!(read(&json, Format::Json), Ok(Input::Problem(problem.clone())));

        let plan = Planner::new().strategy(Strategy::Pushdown).plan(&problem).unwrap();
        let json = written(|out| write_plan_json(out, &plan, None));
        assert_eq!(read_plan(json.as_bytes(), Format::Json, &problem).unwrap(), plan);
        let csv = written(|out| write_plan_csv(out, &plan, Some(problem.labels())));
        let read = read_plan(csv.as_bytes(), Format::Csv, &problem).unwrap();
        assert_eq!(verify(&problem, &read), []);
        assert_eq!(read.pool_size, plan.pool_size);
        let figures = |plan: &Plan| (plan.lower_bound, plan.naive_size, plan.steps, plan.peak_step);
        assert_eq!(figures(&read), figures(&plan));
        Ok(())
    });
}

#[test]
fn a_sequence_survives_json() {
    let mut sequence = OpSequence::builder();
    sequence
        .weight("w", Some(8))
        .weight("unsized", None)
        .input("x", 8)
        .tensor_type("x", TensorType::new("int8", [2, 4]))
        .tensor_type("w", TensorType::new("float64", []))
        .tensor_type("v", TensorType::new("float32", [1]))
        .operator(Operator::new("late").inputs(["v"]).output(Output::new("t", 4).updates("v", 0)))
        .operator(
            Operator::new("a")
                .kind("Conv")
                .inputs(["x", "w", "unsized"])
                .output(Output::new("y", 8).overwrites("x").overwrites_at("w", 0))
                .workspace(3),
        )
        .operator(Operator::new("").inputs(["y"]).output(Output::new("v", 4).reads_at("y", 4)))
        .output("t");
    let sequence = sequence.build().unwrap();
    let json = written(|out| write_sequence_json(out, &sequence));
    assert!(json.replace([' ', '\n'], "").contains(r#""type":{"dtype":"int8","shape":[2,4]}"#));
    assert_eq!(read(&json, Format::Json), Ok(Input::Sequence(sequence)));
}

#[rstest]
#[case::canonical("id,lower,upper,size\nb1,0,3,4\nb2,3,9,4\n")]
#[case::inclusive("id,start,end,size\nb1,0,2,4\nb2,3,8,4\n")]
#[case::inclusive_buffers("buffer_id,begin,end,size\nb1,0,2,4\nb2,3,8,4\n")]
#[case::other_order("size,upper,lower,buffer\n4,3,0,b1\n4,9,3,b2\n")]
#[case::spaces_and_crlf("id, lower, upper, size\r\nb1, 0, 3, 4\r\n\r\nb2, 3, 9, 4\r\n")]
#[case::byte_order_mark("\u{feff}id,lower,upper,size\nb1,0,3,4\nb2,3,9,4\n")]
#[case::optional_columns_without_effect(
    "id,lower,upper,size,alignment,hint,gaps\nb1,0,3,4,1,-1,\nb2,3,9,4,1,8,\n"
)]
fn every_dialect_says_the_same(#[case] text: &str) {
    let problem = read_csv(text);
    let chunks: Vec<_> = problem.chunks().iter().map(|c| (c.begin, c.end, c.size)).collect();
    assert_eq!(chunks, [(0, 3, 4), (3, 9, 4)]);
    assert_eq!(problem.labels().id(ChunkId(1)), "b2");
    assert_eq!(problem.alignment(), 1);
}

#[test]
fn the_largest_alignment_is_honoured() {
    let problem = read_csv("id,lower,upper,size,alignment\n0,0,3,4,1\n1,3,9,4,8\n2,0,9,4,2\n");
    assert_eq!(problem.alignment(), 8);
    let csv = written(|out| write_problem_csv(out, &problem));
    assert_eq!(csv.lines().next(), Some("id,lower,upper,size,alignment"));
    assert_eq!(read_csv(&csv), problem);
}

#[rstest]
#[case::unknown_column("id,lower,upper,size,colour\n", "line 1: unknown column 'colour'")]
#[case::missing_column("id,lower,size\n", "line 1: no column gives the last step")]
#[case::repeated_column("id,lower,upper,end,size\n", "line 1: two columns give the last step")]
#[case::no_text("", "line 1: no column gives the id")]
#[case::negative(
    "id,lower,upper,size\na,0,3,4\nb,-1,3,4\n",
    "line 3, column 'first step': '-1' is not a whole number from 0 to 2^64 - 1"
)]
#[case::too_large(
    "id,lower,upper,size\na,0,3,18446744073709551616\n",
    "line 2, column 'size': '18446744073709551616' is not"
)]
#[case::not_a_number("id,lower,upper,size\na,0,3,NaN\n", "line 2, column 'size': 'NaN' is not")]
#[case::last_step("id,start,end,size\na,0,18446744073709551615,1\n", "line 2, column 'last step'")]
#[case::alignment(
    "id,lower,upper,size,alignment\na,0,3,4,3\n",
    "line 2, column 'alignment': '3' is not a power of two"
)]
#[case::gaps(
    "id,lower,upper,size,gaps\na,0,9,4,\nb,0,9,4,2-4\n",
    "line 3: chunk 'b' has gaps in its lifetime, which memplan does not support"
)]
#[case::fixed(
    "id,lower,upper,size,offset\na,0,9,4,0\n",
    "line 2: chunk 'a' has a fixed offset, which memplan does not support"
)]
#[case::fields(
    "id,lower,upper,size\na,0,9\n",
    "CSV error: record 1 (line: 2, byte: 20): found record with 3 fields, but the previous record has 4 fields"
)]
#[case::empty_lifetime(
    "id,lower,upper,size\na,3,3,4\n",
    "line 2: chunk 'a' has an empty lifetime: it begins in step 3, and 'upper', the step after its last, is 3"
)]
#[case::empty_inclusive_lifetime(
    "id,begin,end,size\na,2,2,6\nb,3,2,6\n",
    "line 3: chunk 'b' has an empty lifetime: it begins in step 3, and 'end', its last step, is 2"
)]
#[case::duplicate(
    "id,lower,upper,size\na,0,3,4\n\na,0,3,4\nb,0,3,4\n",
    "line 4: two chunks have the id 'a'"
)]
#[case::sum(
    "id,lower,upper,size\na,0,3,9223372036854775808\nb,0,3,9223372036854775808\n",
    "line 3: the sizes of all chunks and an alignment add up to 2^64 bytes or more (at chunk 'b'"
)]
fn bad_csv_is_refused(#[case] text: &str, #[case] message: &str) {
    let error = read(text, Format::Csv).unwrap_err();
    assert!(error.starts_with(message), "{error}");
}

#[rstest]
#[case::not_json("{\"format\": \"memplan-problem/1\",", "EOF while parsing")]
#[case::no_format("{\"chunks\": []}", "no \"format\" that memplan supports (found none)")]
#[case::other_format(
    "{\"format\": \"other/1\"}",
    "no \"format\" that memplan supports (found \"other/1\")"
)]
#[case::a_plan(
    "{\"format\": \"memplan-plan/1\"}",
    "this is a plan, not an operator sequence or a problem"
)]
#[case::unknown_key(
    "{\"format\": \"memplan-problem/1\", \"chunks\": [], \"colour\": 1}",
    "unknown field `colour`"
)]
#[case::negative(
    "{\"format\": \"memplan-problem/1\", \"chunks\": [\n{\"id\": 0, \"begin\": -1, \"end\": 1, \"size\": 1}]}",
    "invalid type: integer `-1`, expected a step from 0, or a list of one per stream at line 2 column 21"
)]
#[case::fraction(
    "{\"format\": \"memplan-problem/1\", \"chunks\": [{\"id\": 0, \"begin\": 0, \"end\": 1.5, \"size\": 1}]}",
    "invalid type: floating point `1.5`, expected a step from 0, or a list of one per stream"
)]
#[case::unknown_chunk(
    "{\"format\": \"memplan-problem/1\", \"chunks\": [], \"overwrites\": [{\"chunk\": 3, \"overwritten\": 4, \"offset\": 0}]}",
    "an overwrite request names chunk 3, which does not exist"
)]
#[case::unknown_part(
    r#"{"format": "memplan-problem/2", "chunks": [{"id": 5, "name": "a", "begin": 0, "end": 4, "size": 8}], "parts": [{"chunk": 9, "whole": 5, "offset": 0}]}"#,
    "a part names chunk 9, which does not exist"
)]
#[case::unknown_apart(
    r#"{"format": "memplan-problem/2", "chunks": [{"id": 5, "name": "a", "begin": 0, "end": 4, "size": 8}], "apart": [[5, 9]]}"#,
    "a list of chunks kept apart names chunk 9, which does not exist"
)]
#[case::backward_clock(
    r#"{"format": "memplan-problem/2", "streams": 2, "chunks": [{"id": 0, "begin": [1, 0], "end": [0, 5], "size": 1}]}"#,
    "chunk '0' has an empty lifetime: it begins at [1, 0] and ends at [0, 5]; no stream may end before it begins"
)]
#[case::nothing_but_a_hole(
    r#"{"format": "memplan-problem/2", "chunks": [{"id": 5, "name": "a", "begin": 0, "end": 4, "size": 8, "holes": [[0, 4]]}]}"#,
    "chunk 'a' has an empty lifetime: its holes leave nothing of [0, 4)"
)]
#[case::pin_in_reserved_bytes(
    r#"{"format": "memplan-problem/2", "pools": [{"name": "m", "capacity": 64, "alignment": 16, "reserved": [[0, 32]]}], "chunks": [{"id": 5, "name": "a", "begin": 0, "end": 4, "size": 8, "pin": {"pool": "m", "offset": 16}}]}"#,
    "chunk 'a' cannot lie where it is pinned: with all that is joined to it, it would reach into the reserved bytes [0, 32)"
)]
#[case::pin_above_the_capacity(
    r#"{"format": "memplan-problem/2", "pools": [{"name": "m", "capacity": 64, "alignment": 16, "reserved": [[0, 32]]}], "chunks": [{"id": 5, "name": "a", "begin": 0, "end": 4, "size": 8, "pin": {"pool": "m", "offset": 64}}]}"#,
    "chunk 'a' cannot lie where it is pinned: with all that is joined to it, it would end above the capacity of the pool, 64 B"
)]
#[case::pin_off_the_alignment(
    r#"{"format": "memplan-problem/2", "pools": [{"name": "m", "capacity": 64, "alignment": 16, "reserved": [[0, 32]]}], "chunks": [{"id": 5, "name": "a", "begin": 0, "end": 4, "size": 8, "pin": {"pool": "m", "offset": 40}}]}"#,
    "chunk 'a' cannot lie where it is pinned: with all that is joined to it, it would begin at 40, which does not suit the alignment 16"
)]
#[case::pin_across_buffers(
    r#"{"format": "memplan-problem/2", "pools": [{"name": "m", "largest": 16}], "chunks": [{"id": 5, "name": "a", "begin": 0, "end": 4, "size": 8, "pin": {"pool": "m", "offset": 12}}]}"#,
    "chunk 'a' cannot lie where it is pinned: with all that is joined to it, it would lie across two of the pool's buffers of 16 B"
)]
#[case::body_too_large(
    r#"{"format": "memplan-problem/2", "pools": [{"name": "m", "capacity": 4}], "chunks": [{"id": 5, "name": "a", "begin": 0, "end": 4, "size": 8}]}"#,
    "chunk 'a' and all that is joined to it take 8 B, and no pool where they may lie has room for them"
)]
#[case::itself(
    "{\"format\": \"memplan-problem/1\", \"chunks\": [{\"id\": 5, \"begin\": 0, \"end\": 1, \"size\": 1}], \"overwrites\": [{\"chunk\": 5, \"overwritten\": 5, \"offset\": 0}]}",
    "chunk '5' requests to overwrite itself"
)]
#[case::both(
    "{\"format\": \"memplan-sequence/1\", \"operators\": [{\"inputs\": [\"x\"], \"outputs\": [{\"name\": \"y\", \"size\": 1, \"reads\": {\"input\": \"x\"}, \"overwrites\": {\"input\": \"x\"}}]}]}",
    "output 'y' can have one of 'reads', 'overwrites' and 'gathers'"
)]
#[case::typo_in_an_overwrite(
    "{\"format\": \"memplan-sequence/1\", \"operators\": [{\"inputs\": [\"x\"], \"outputs\": [{\"name\": \"y\", \"size\": 1, \"overwrites\": {\"inputs\": \"x\"}}]}]}",
    "unknown field `inputs`, expected one of `input`, `offset`, `below`, `required` at line 1"
)]
#[case::typo_in_a_list_of_overwrites(
    "{\"format\": \"memplan-sequence/1\", \"operators\": [{\"inputs\": [\"x\"], \"outputs\": [{\"name\": \"y\", \"size\": 1, \"overwrites\": [{\"input\": \"x\", \"ofset\": 1}]}]}]}",
    "unknown field `ofset`, expected one of `input`, `offset`, `below`, `required` at line 1"
)]
#[case::no_overwrite(
    "{\"format\": \"memplan-sequence/1\", \"operators\": [{\"inputs\": [\"x\"], \"outputs\": [{\"name\": \"y\", \"size\": 1, \"overwrites\": \"x\"}]}]}",
    "invalid type: string \"x\", expected an overwrite, or a list of them"
)]
fn bad_json_is_refused(#[case] text: &str, #[case] message: &str) {
    let error = read(text, Format::Json).unwrap_err();
    assert!(error.starts_with(message), "{error}");
}

#[rstest]
#[case::without_offsets("id,lower,upper,size\n0,0,3,4\n", "this is not a plan")]
#[case::text_ids("id,lower,upper,size,offset\na,0,3,4,0\n", "line 2, column 'id': 'a' is not")]
#[case::beyond(
    "id,lower,upper,size,offset\n0,0,3,4,18446744073709551615\n",
    "line 2, column 'offset'"
)]
fn a_bad_csv_plan_is_refused(#[case] text: &str, #[case] message: &str) {
    let problem = read_csv("id,lower,upper,size\n0,0,3,4\n");
    let error = read_plan(text.as_bytes(), Format::Csv, &problem).unwrap_err().to_string();
    assert!(error.starts_with(message), "{error}");
}

/// A CSV plan has only offsets: everything else comes from the problem, and the strategy is
/// unknown.
#[test]
fn the_figures_and_names_of_a_csv_plan_are_those_of_its_problem() {
    let mut problem = Problem::builder();
    let act = problem.named_chunk("act", 0..2, 100);
    let relu = problem.named_chunk("relu", 1..3, 100);
    problem.overwrite(relu, act, 0);
    let problem = problem.build().unwrap();
    let read = |offset: u64| {
        let text = format!("id,lower,upper,size,offset\n0,0,2,100,0\n1,1,3,100,{offset}\n");
        read_plan(text.as_bytes(), Format::Csv, &problem).unwrap()
    };
    let apart = read(100);
    assert_eq!(verify(&problem, &apart), []);
    assert_eq!((apart.pool_size, apart.lower_bound, apart.peak_step), (200, 100, 0));
    assert_eq!((apart.proven_optimal, apart.strategy), (false, None));
    assert_eq!(&*apart.chunks[1].name, "relu");
    let over = read(0);
    assert_eq!((over.pool_size, over.proven_optimal), (100, true));
    assert_eq!(over.chunks[1].overwrites, Some(memplan::PlannedLink::new(0, 0)));
}

/// The reader accepts a wrong plan; `verify` lists all of its faults at once.
#[test]
fn a_wrong_csv_plan_is_read() {
    let problem = read_csv("id,lower,upper,size\n0,0,3,4\n1,0,3,4\n");
    let text = "id,lower,upper,size,offset\n0,3,3,4,0\n0,0,3,4,0\n7,0,3,4,4\n";
    let plan = read_plan(text.as_bytes(), Format::Csv, &problem).unwrap();
    let violations: Vec<String> = verify(&problem, &plan).iter().map(ToString::to_string).collect();
    for expected in [
        "the begin of '0' is 0, but the plan says 3",
        "'0' is in the plan twice",
        "'7' is in the plan, but not in the input",
        "'1' is missing from the plan",
    ] {
        assert!(violations.iter().any(|violation| violation == expected), "{violations:#?}");
    }
}

#[test]
fn a_sequence_is_not_a_plan() {
    let text = "{\"format\": \"memplan-sequence/1\", \"operators\": []}";
    let problem = Problem::builder().build().unwrap();
    let error = read_plan(text.as_bytes(), Format::Json, &problem).unwrap_err().to_string();
    assert!(error.starts_with("this is not a plan"), "{error}");
}

/// Scripts depend on the names and the order of the keys.
#[test]
fn the_plan_file_has_the_keys_of_the_contract() {
    let mut problem = Problem::builder();
    let a = problem.named_chunk("a", 0..2, 20);
    let b = problem.named_chunk("b", 1..3, 10);
    problem.overwrite(b, a, 6);
    let plan: Plan =
        Planner::new().strategy(Strategy::Pushdown).plan(&problem.build().unwrap()).unwrap();
    let took = Some(std::time::Duration::from_millis(250));
    snapbox::assert_data_eq!(
        written(|out| write_plan_json(out, &plan, took)),
        snapbox::str![[r#"
{
  "format": "memplan-plan/1",
  "strategy": "pushdown",
  "pool_size": 20,
  "lower_bound": 20,
  "proven_optimal": true,
  "naive_size": 30,
  "alignment": 1,
  "steps": 3,
  "peak_step": 0,
  "seconds": 0.25,
  "chunks": [
    {
      "id": 0,
      "name": "a",
      "size": 20,
      "begin": 0,
      "end": 2,
      "offset": 0,
      "overwrites": null
    },
    {
      "id": 1,
      "name": "b",
      "size": 10,
      "begin": 1,
      "end": 3,
      "offset": 6,
      "overwrites": {
        "chunk": 0,
        "offset": 6
      }
    }
  ],
  "tensors": []
}

"#]]
    );
}
