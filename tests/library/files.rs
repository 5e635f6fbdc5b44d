//! Reading and writing files: everything written is read back unchanged; unsupported content is
//! rejected with its line.

use crate::common::{
    constraints::{Dice, random_problem as random_constraints, recorded},
    random::{Wild, random_problem},
    seeds::times,
};
use memplan::{
    Input, OpSequence, Operator, Output, Plan, Planner, Problem, Strategy,
    import::{Format, ImportOptions, read_input, read_plan},
    problem::{ChunkId, PoolId},
    report::{
        not_in_csv, write_plan_csv, write_plan_json, write_problem_csv, write_problem_json,
        write_sequence_json,
    },
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
    times(300, |random| {
        let wild = Wild { chunks: 12, steps: 9, size: 30, alignment: true };
        let problem = random_problem(random, wild)?;
        let json = written(|out| write_problem_json(out, &problem));
        assert_eq!(read(&json, Format::Json), Ok(Input::Problem(problem.clone())));

        let plan = Planner::new().strategy(Strategy::Pushdown).plan(&problem).unwrap();
        let json = written(|out| write_plan_json(out, &plan, None));
        assert_eq!(read_plan(json.as_bytes(), Format::Json, &problem).unwrap(), plan);
        let csv = written(|out| write_plan_csv(out, &plan, Some(&problem)));
        let read = read_plan(csv.as_bytes(), Format::Csv, &problem).unwrap();
        assert_eq!(verify(&problem, &read), []);
        assert_eq!(read.pool_size(), plan.pool_size());
        let figures =
            |plan: &Plan| (plan.lower_bound(), plan.naive_size(), plan.steps(), plan.peak_step());
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
        .tensor_type("x", "int8", [2, 4])
        .tensor_type("w", "float64", [])
        .tensor_type("v", "float32", [1])
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
    "id,lower,upper,size,alignment,hint,gaps,offset,kind\nb1,0,3,4,1,-1,,-1,INPUT\nb2,3,9,4,1,8,,,\n"
)]
#[case::comments("# pool_offset=64\r\nid,lower,upper,size\n# first\nb1,0,3,4\n\n#\nb2,3,9,4\n#")]
fn every_dialect_says_the_same(#[case] text: &str) {
    let problem = read_csv(text);
    let chunks: Vec<_> = problem.chunks().iter().map(|c| (c.begin, c.end, c.size)).collect();
    assert_eq!(chunks, [(0, 3, 4), (3, 9, 4)]);
    assert_eq!(problem.id(ChunkId(1)), "b2");
    assert_eq!(problem.alignment(), 1);
}

/// The text of a problem in format 2, even if it is unconstrained.
fn as_full(problem: &Problem) -> String {
    let text = written(|out| write_problem_json(out, problem));
    text.replace("memplan-problem/1", "memplan-problem/2")
}

/// Reads a problem in memplan's format 2, from its chunks.
fn full(rest: &str) -> Problem {
    let text = format!("{{\"format\": \"memplan-problem/2\", {rest}}}");
    serde_json::from_str(&text).unwrap()
}

#[rstest]
#[case::equal_alignments(
    "id,lower,upper,size,alignment\n0,0,3,4,8\n1,3,9,4,8\n",
    r#""alignment": 8, "chunks": [{"id": 0, "begin": 0, "end": 3, "size": 4},
       {"id": 1, "begin": 3, "end": 9, "size": 4}]"#
)]
#[case::other_alignments(
    "id,lower,upper,size,alignment\n0,0,3,4,2\n1,3,9,4,8\n2,0,9,4,4\n",
    r#""alignment": 2, "chunks": [{"id": 0, "begin": 0, "end": 3, "size": 4},
       {"id": 1, "begin": 3, "end": 9, "size": 4, "alignment": 8},
       {"id": 2, "begin": 0, "end": 9, "size": 4, "alignment": 4}]"#
)]
#[case::gaps(
    "id,lower,upper,size,gaps\n0,0,11,20,7-8 9-10@1:17\n1,0,3,4,\n",
    r#""chunks": [{"id": 0, "begin": 0, "end": 11, "size": 20, "holes": [[7, 8]],
       "windows": [{"begin": 9, "end": 10, "low": 1, "high": 17}]},
       {"id": 1, "begin": 0, "end": 3, "size": 4}]"#
)]
#[case::pins(
    "id,lower,upper,size,offset\n0,0,3,4,12\n1,0,9,4,\n",
    r#""chunks": [{"id": 0, "begin": 0, "end": 3, "size": 4, "pin": {"offset": 12}},
       {"id": 1, "begin": 0, "end": 9, "size": 4}]"#
)]
#[case::clocks(
    "id,lower,upper,size\n0,0:0,1:0,4\n1,0:0,0:2,4\n",
    r#""streams": 2, "chunks": [{"id": 0, "begin": [0, 0], "end": [1, 0], "size": 4},
       {"id": 1, "begin": [0, 0], "end": [0, 2], "size": 4}]"#
)]
#[case::quoted_id(
    "id,lower,upper,size\n\"#1\",0,1,4\n",
    r##""chunks": [{"id": 0, "name": "#1", "begin": 0, "end": 1, "size": 4}]"##
)]
fn every_column_is_read_and_written(#[case] csv: &str, #[case] problem: &str) {
    let (read, stated) = (read_csv(csv), full(problem));
    assert_eq!(written(|out| write_problem_csv(out, &read)), csv);
    assert_eq!(as_full(&read), as_full(&stated));
}

/// The ids of a file keep their spelling, so an id that no number is written as makes all of them texts.
#[rstest]
#[case::numbers(["7", "0", "12"], true)]
#[case::a_leading_zero(["7", "07", "12"], false)]
#[case::a_sign(["7", "0", "+12"], false)]
#[case::a_name_between_numbers(["7", "b", "12"], false)]
#[case::too_large_for_a_number(["7", "0", "18446744073709551616"], false)]
fn ids_are_numbers_if_all_are_written_as_numbers(#[case] ids: [&str; 3], #[case] numbers: bool) {
    let lines = ids.map(|id| format!("{id},0,1,1\n")).concat();
    let problem = read_csv(&format!("id,lower,upper,size\n{lines}"));
    // Texts have their positions as numbers.
    let numbered = |id| problem.number(id).to_string() == problem.id(id);
    assert_eq!(problem.ids().all(numbered), numbers);
    assert_eq!(problem.ids().map(|id| problem.id(id)).collect::<Vec<_>>(), ids);
}

#[test]
fn the_ends_of_gaps_are_inclusive_as_those_of_lives() {
    let inclusive = read_csv("id,start,end,size,gaps\n0,0,10,20,7-7 9-10@1:17\n");
    assert_eq!(inclusive, read_csv("id,lower,upper,size,gaps\n0,0,11,20,7-8 9-11@1:17\n"));
}

/// A problem and what CSV says of it ask for the same plans.
#[test]
fn a_problem_that_is_not_plain_survives_csv() {
    let mut dice = Dice(7);
    let mut counts = [0; 4];
    for _ in 0..6000 {
        let Ok(problem) = serde_json::from_value::<Problem>(random_constraints(&mut dice)) else {
            continue;
        };
        if not_in_csv(&problem).is_some() || problem.has_links() || problem.padding() > 0 {
            continue;
        }
        let csv = written(|out| write_problem_csv(out, &problem));
        let again = read_csv(&csv);
        assert_eq!(written(|out| write_problem_csv(out, &again)), csv);
        for (planned, other) in [(&problem, &again), (&again, &problem)] {
            let Ok(plan) = Planner::new().strategy(Strategy::FirstFit).plan(planned) else {
                continue;
            };
            let places: Vec<(PoolId, u64)> =
                plan.chunks().iter().map(|chunk| (PoolId(0), chunk.offset)).collect();
            assert_eq!(verify(other, &Plan::from_places(other, &places).unwrap()), [], "{csv}");
        }
        let headings = csv.lines().next().unwrap();
        let used = [
            headings.contains("alignment"),
            headings.contains("gaps"),
            headings.contains("offset"),
            csv.contains(":0") && !csv.contains('@'),
        ];
        for (count, used) in counts.iter_mut().zip(used) {
            *count += usize::from(used);
        }
    }
    assert!(counts.iter().all(|&count| count > 10), "{counts:?}");
}

#[test]
fn files_of_minimalloc_are_read_as_recorded() {
    for case in recorded("minimalloc_gaps") {
        let (name, csv) = (&case["name"], case["csv"].as_str().unwrap());
        let read = read_csv(csv);
        let recorded: Problem = serde_json::from_value(case["problem"].clone()).unwrap();
        if read.alignment() == 1 {
            assert_eq!(as_full(&read), as_full(&recorded), "{name}");
        }
        assert_eq!(
            written(|out| write_problem_csv(out, &read)),
            with_needed_columns(csv),
            "{name}"
        );
        let plan = Planner::new().strategy(Strategy::Optimal).plan(&read).unwrap();
        let optimum = case["optimum"].as_u64().unwrap();
        assert_eq!(plan.pool_size(), read.align_up(optimum), "{name}");
    }
}

/// The text without the columns that no line fills.
fn with_needed_columns(csv: &str) -> String {
    let rows: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    let is_needed = |at: &usize| rows[1..].iter().any(|row| !matches!(row[*at], "" | "1"));
    let needed: Vec<usize> = (0..rows[0].len()).filter(|at| *at < 4 || is_needed(at)).collect();
    let row = |row: &Vec<&str>| {
        let fields: Vec<&str> = needed.iter().map(|&at| row[at]).collect();
        fields.join(",") + "\n"
    };
    rows.iter().map(row).collect()
}

/// OmniMalloc writes clocks with colons, and leaves the offset of a chunk without a place empty.
#[test]
fn files_of_omnimalloc_are_read_as_recorded() {
    for mut case in recorded("omnimalloc") {
        let mut rows = vec!["id,lower,upper,size,offset".to_owned()];
        for chunk in case["problem"]["chunks"].as_array_mut().unwrap() {
            // Without overwrites, the stream of a producer has no meaning.
            chunk.as_object_mut().unwrap().remove("stream");
            let time = |key: &str| match &chunk[key] {
                serde_json::Value::Array(clock) => {
                    clock.iter().map(ToString::to_string).collect::<Vec<_>>().join(":")
                }
                step => step.to_string(),
            };
            let pin = chunk["pin"]["offset"].as_u64().map(|offset| offset.to_string());
            let times = format!("{},{}", time("begin"), time("end"));
            let pin = pin.unwrap_or_default();
            rows.push(format!("{},{times},{},{pin}", chunk["id"], chunk["size"]));
        }
        let stated = serde_json::from_value::<Problem>(case["problem"].clone());
        match (read(&(rows.join("\n") + "\n"), Format::Csv), stated) {
            (Ok(Input::Problem(read)), Ok(stated)) => {
                assert_eq!(as_full(&read), as_full(&stated), "{}", case["name"]);
            }
            (Err(error), Err(stated)) => {
                assert!(error.contains(&stated.to_string()), "{error}, {stated}");
            }
            (read, stated) => panic!("{read:?}, {stated:?}"),
        }
    }
}

#[rstest]
#[case::comment_goes_on(
    "id,lower,upper,size\r# first\ra,0,3,4\r",
    "line 1: a comment has a carriage return in it; end the lines with a newline"
)]
#[case::unknown_column("id,lower,upper,size,colour\n", "line 1: unknown column 'colour'")]
#[case::missing_column("id,lower,size\n", "line 1: no column 'upper'; needed are id")]
#[case::repeated_column(
    "id,lower,upper,end,size\n",
    "line 1: columns 'upper' and 'end' have the same meaning"
)]
#[case::no_text("", "line 1: no column 'id'")]
#[case::negative(
    "id,lower,upper,size\na,0,3,4\nb,-1,3,4\n",
    "line 3, column 'lower': '-1' is not a whole number from 0 to 2^64 - 1"
)]
#[case::too_large(
    "id,lower,upper,size\na,0,3,18446744073709551616\n",
    "line 2, column 'size': '18446744073709551616' is not"
)]
#[case::not_a_number("id,lower,upper,size\na,0,3,NaN\n", "line 2, column 'size': 'NaN' is not")]
#[case::last_step("id,start,end,size\na,0,18446744073709551615,1\n", "line 2, column 'end'")]
#[case::alignment(
    "id,lower,upper,size,alignment\na,0,3,4,3\n",
    "line 2, column 'alignment': '3' is not a power of two"
)]
#[case::gaps(
    "id,lower,upper,size,gaps\na,0,9,4,\nb,0,9,4,2-4 5\n",
    "line 3, column 'gaps': '2-4 5' is not a list of gaps such as '7-8 9-10@1:17', the steps"
)]
#[case::window(
    "id,lower,upper,size,gaps\na,0,9,4,2-4@1\n",
    "line 2, column 'gaps': '2-4@1' is not"
)]
#[case::endless_gap(
    "id,lower,end,size,gaps\na,0,9,4,2-18446744073709551615\n",
    "line 2, column 'gaps': '2-18446744073709551615' is not"
)]
#[case::gap_outside(
    "id,lower,upper,size,gaps\na,0,9,4,\nb,2,9,4,1-4\n",
    "line 3: chunk 'b' has a hole or window [1, 4) that is empty or outside its lifetime"
)]
#[case::overlapping_gaps(
    "id,lower,upper,size,gaps\nb,0,9,4,1-4 3-5@0:1\n",
    "line 2: two holes or windows of chunk 'b' overlap"
)]
#[case::window_outside(
    "id,lower,upper,size,gaps\nb,0,9,4,1-4@0:5\n",
    "line 2: chunk 'b' has a window of the bytes [0, 5), which is empty or outside its 4 B"
)]
#[case::nothing_but_gaps(
    "id,lower,upper,size,gaps\nb,0,9,4,0-4 4-9\n",
    "line 2: chunk 'b' has an empty lifetime: its holes leave nothing of [0, 9)"
)]
#[case::gaps_on_streams(
    "id,lower,upper,size,gaps\nb,0:0,9:9,4,0-4\n",
    "line 2: chunk 'b' has holes or windows, which exist only with one stream"
)]
#[case::offset(
    "id,lower,upper,size,offset\na,0,9,4,-2\n",
    "line 2, column 'offset': '-2' is not an offset in bytes; leave it empty, or write -1, for a chunk to be placed"
)]
#[case::pins(
    "id,lower,upper,size,offset\na,0,9,4,0\nb,8,9,4,2\n",
    "line 3: the pins of 'a' and 'b' put them on the same bytes"
)]
#[case::misaligned_pin(
    "id,lower,upper,size,alignment,offset\na,0,9,4,1,0\nb,9,10,4,8,12\n",
    "line 3: chunk 'b' cannot lie where it is pinned"
)]
#[case::empty_pin(
    "id,lower,upper,size,offset\n# none\na,0,9,0,4\n",
    "line 3: chunk 'a' has no bytes, so it cannot be pinned"
)]
#[case::clock("id,lower,upper,size\na,0:x,9:1,4\n", "line 2, column 'lower': '0:x' is not a clock")]
#[case::inclusive_clock(
    "id,lower,end,size\na,0:0,9:1,4\n",
    "line 2, column 'lower': '0:0' is not a step; clocks such as 1:0:3 need the column 'upper'"
)]
#[case::fewer_streams(
    "id,lower,upper,size\na,0:0,9:1,4\nb,0:0,9,4\n",
    "line 3, column 'upper': '9' is not a time on as many streams as those before"
)]
#[case::backward_clock(
    "id,lower,upper,size\na,0:0,9:1,4\nb,1:0,0:5,4\n",
    "line 3: chunk 'b' has an empty lifetime: it begins at [1, 0] and ends at [0, 5]"
)]
#[case::late_headings("# made by hand\n\nid,lower,upper\n", "line 3: no column 'size'")]
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
#[case::name_as_an_id(
    r#"{"format": "memplan-problem/1", "chunks": [{"id": "kv", "begin": 0, "end": 1, "size": 1}]}"#,
    "invalid type: string \"kv\", expected a whole number of at least 0 at line 1 column 54"
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
#[case::overwriter_over_before_its_step(
    r#"{"format": "memplan-problem/2", "streams": 2, "chunks": [{"id": 0, "begin": [0, 0], "end": [1, 0], "size": 100}, {"id": 1, "begin": [0, 0], "end": [0, 1], "size": 100}], "overwrites": [{"chunk": 1, "overwritten": 0, "below": 10, "offset": 0}]}"#,
    "chunk '1' has an empty lifetime: it begins at [0, 0] and ends at [0, 1], before the step of stream 0 that writes it"
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

/// A plan has sums of clocks, so a clock with the same sum is noticed only here.
#[rstest]
#[case::right("0,0:1,2:1,4,0", None)]
#[case::begin("0,1:0,2:1,4,0", Some("line 2, column 'lower': '1:0'"))]
#[case::end("0,0:1,1:2,4,0", Some("line 2, column 'upper': '1:2'"))]
#[case::streams("0,0:1:0,2:1:0,4,0", Some("line 2, column 'lower': '0:1:0'"))]
fn a_csv_plan_with_other_clocks_is_refused(#[case] line: &str, #[case] message: Option<&str>) {
    let problem = read_csv("id,lower,upper,size\n0,0:1,2:1,4\n");
    let text = format!("id,lower,upper,size,offset\n{line}\n");
    match (read_plan(text.as_bytes(), Format::Csv, &problem), message) {
        (Ok(plan), None) => assert_eq!(verify(&problem, &plan), []),
        (Err(error), Some(message)) => {
            assert_eq!(
                error.to_string(),
                format!("{message} is not the clock of this chunk in the problem")
            );
        }
        (read, _) => panic!("{read:?}"),
    }
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
    assert_eq!((apart.pool_size(), apart.lower_bound(), apart.peak_step()), (200, 100, 0));
    assert_eq!((apart.proven_optimal(), apart.strategy()), (false, None));
    assert_eq!(&*apart.chunks()[1].name, "relu");
    let over = read(0);
    assert_eq!((over.pool_size(), over.proven_optimal()), (100, true));
    assert_eq!(over.chunks()[1].overwrites, Some(memplan::PlannedLink::new(0, 0)));
}

/// A file has no links, so an overwriter in its place counts as written over the chunk there.
#[rstest]
#[case::below(r#"{"format": "memplan-problem/2",
    "chunks": [{"id": 0, "begin": 0, "end": 2, "size": 64}, {"id": 1, "begin": 1, "end": 3, "size": 64}],
    "overwrites": [{"chunk": 1, "overwritten": 0, "below": 8}]}"#, 72)]
#[case::the_second_of_two(r#"{"format": "memplan-problem/2",
    "chunks": [{"id": 0, "begin": 0, "end": 2, "size": 8, "pin": {"offset": 0}},
               {"id": 1, "begin": 0, "end": 2, "size": 8}, {"id": 2, "begin": 1, "end": 9, "size": 8},
               {"id": 3, "begin": 2, "end": 9, "size": 8, "pin": {"offset": 0}}],
    "overwrites": [{"chunk": 2, "overwritten": 0}, {"chunk": 2, "overwritten": 1}]}"#, 16)]
#[case::up_to_the_last_byte(r#"{"format": "memplan-problem/2",
    "chunks": [{"id": 0, "begin": 0, "end": 2, "size": 7, "pin": {"offset": 18446744073709551608}}]}"#, u64::MAX)]
fn a_plan_of_a_problem_survives_csv(#[case] text: &str, #[case] pool: u64) {
    let problem: Problem = serde_json::from_str(text).unwrap();
    let plan = Planner::new().plan(&problem).unwrap();
    let csv = written(|out| write_plan_csv(out, &plan, Some(&problem)));
    let read = read_plan(csv.as_bytes(), Format::Csv, &problem).unwrap();
    assert_eq!((verify(&problem, &read), read.pool_size()), (vec![], pool));
    assert_eq!(read.chunks(), plan.chunks());
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
  "scope": "all_choices",
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
