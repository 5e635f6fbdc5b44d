//! Offline plans in TensorFlow Lite models: written, read back, simulated, checked.

use memplan::{
    Planner, Strategy,
    export::tflite::{ENTRY, OfflinePlan, c_struct},
    import::{
        ImportOptions, InPlace,
        tflite::{ALIGNMENT, Survey, TfliteError, survey},
    },
    verify::execute,
};
use rstest::rstest;

use crate::flatbuffer::{Field, Subgraph, Tensor, chain, code, file, model, model_fields, tensor};

fn surveyed(bytes: &[u8]) -> Survey {
    survey(bytes, &ImportOptions::default()).unwrap()
}

/// The offsets of the best plan.
fn planned(survey: &Survey) -> OfflinePlan {
    let plan = Planner::new().alignment(ALIGNMENT).plan(&survey.sequence).unwrap();
    OfflinePlan::of_plan(&survey.arena, &plan)
}

/// The data of an entry with these offsets.
fn entry(offsets: &[i32]) -> Vec<u8> {
    let count = i32::try_from(offsets.len()).unwrap();
    [1, 1, count].iter().chain(offsets).flat_map(|number| number.to_le_bytes()).collect()
}

/// The chain with metadata entries.
fn with_entries(metadata: &[(&str, Vec<u8>)]) -> Vec<u8> {
    file(&model_fields(&[chain()], metadata))
}

#[test]
fn a_plan_goes_in_front_of_the_file_and_is_read_back() {
    let bytes = with_entries(&[("theirs", b"data".to_vec())]);
    let survey = surveyed(&bytes);
    let plan = planned(&survey);
    let written = plan.write(&bytes, &survey.arena, false).unwrap();
    assert!(written.ends_with(&bytes));
    let added = written.len() - bytes.len();
    assert!(added.is_multiple_of(16) && added < 400, "{added}");
    assert_eq!(surveyed(&written), survey);
    assert_eq!(OfflinePlan::of_model(&bytes).unwrap(), None);
    assert_eq!(OfflinePlan::of_model(&written).unwrap(), Some(plan.clone()));
    assert!(plan.offsets.iter().flatten().all(|offset| offset.is_multiple_of(16)));
    // The weights have no offset.
    assert_eq!(plan.offsets[1], None);
    let head = plan.simulate(&survey).unwrap();
    assert_eq!((head.pool_size(), execute(&survey.sequence, &head)), (512, vec![]));
    let own = OfflinePlan::online(&survey.arena).simulate(&survey).unwrap();
    assert_eq!(own.pool_size(), 768);
    // A plan in the file is replaced only on request, and then in place.
    assert!(matches!(
        OfflinePlan::online(&survey.arena).write(&written, &survey.arena, false),
        Err(TfliteError::Unsupported { .. })
    ));
    let online = OfflinePlan::online(&survey.arena);
    let replaced = online.write(&written, &survey.arena, true).unwrap();
    assert_eq!(replaced.len(), written.len());
    assert_eq!(OfflinePlan::of_model(&replaced).unwrap(), Some(online));
    assert_eq!(surveyed(&replaced), survey);
}

#[test]
fn no_cut_or_flip_of_a_planned_file_panics() {
    let bytes = model(&[chain()]);
    let survey = surveyed(&bytes);
    let plan = planned(&survey);
    let written = plan.write(&bytes, &survey.arena, false).unwrap();
    let mut again = 0;
    for at in 0..written.len() {
        let _ = OfflinePlan::of_model(&written[..at]);
        for flip in [0x01, 0x80, 0xff] {
            let mut damaged = written.clone();
            damaged[at] ^= flip;
            if let Ok(Some(found)) = OfflinePlan::of_model(&damaged) {
                let _ = found.simulate(&survey);
            }
            if let Ok(written) = plan.write(&damaged, &survey.arena, true) {
                assert_eq!(OfflinePlan::of_model(&written).unwrap().as_ref(), Some(&plan));
                again += 1;
            }
        }
    }
    assert!(again > 100, "{again}");
}

#[rstest]
#[case::too_few(entry(&[0; 6]), "it states 6 offsets, but there are 7 tensors")]
#[case::cut_short(entry(&[0; 7])[..36].to_vec(), "its data ends before the 7 offsets that it states")]
#[case::in_front(entry(&[-64; 7]), "tensor 0 has the offset -64, in front of the arena")]
#[case::empty(vec![], "it states 0 offsets, but there are 7 tensors")]
fn a_plan_that_makes_no_sense_is_refused(#[case] data: Vec<u8>, #[case] message: &str) {
    let error = OfflinePlan::of_model(&with_entries(&[(ENTRY, data)])).unwrap_err().to_string();
    assert_eq!(error, format!("metadata entry '{ENTRY}': {message}"));
}

#[test]
fn of_two_plans_the_last_counts() {
    let bytes = with_entries(&[(ENTRY, entry(&[16; 7])), (ENTRY, entry(&[-1; 7]))]);
    let found = OfflinePlan::of_model(&bytes).unwrap().unwrap();
    assert_eq!(found.offsets, [None; 7]);
    // It holds no offset, so nothing is lost.
    let survey = surveyed(&bytes);
    let written = planned(&survey).write(&bytes, &survey.arena, false).unwrap();
    assert_eq!(OfflinePlan::of_model(&written).unwrap(), Some(planned(&survey)));
}

#[test]
fn a_plan_that_would_run_wrongly_is_not_written() {
    let refused = |subgraphs: &[Subgraph]| {
        let bytes = model(subgraphs);
        let survey = surveyed(&bytes);
        planned(&survey).write(&bytes, &survey.arena, true).unwrap_err().to_string()
    };
    let state = Tensor { is_variable: true, ..tensor("state", 9, &[4]) };
    let called = Subgraph { tensors: vec![state], ..Subgraph::default() };
    let error = refused(&[chain(), called]);
    assert!(
        error.starts_with("subgraph 1, tensor 'state': the runtime takes the offset of another"),
        "{error}"
    );
    let bytes = model(&[chain()]);
    let survey = surveyed(&bytes);
    let write = |change: &dyn Fn(&mut OfflinePlan)| {
        let mut plan = planned(&survey);
        change(&mut plan);
        plan.write(&bytes, &survey.arena, false).unwrap_err().to_string()
    };
    assert!(
        write(&|plan| plan.offsets[0] = Some(8)).ends_with("the offset 8 is no multiple of 16")
    );
    assert!(write(&|plan| plan.offsets[0] = Some(1 << 31)).ends_with("does not fit in 31 bits"));
    assert!(write(&|plan| plan.offsets[1] = Some(0)).contains("'weights' lies outside the head"));
    assert!(write(&|plan| plan.offsets.truncate(3)).contains("it has 3 offsets, but there are 7"));
    let mut fields = model_fields(&[chain()], &[]);
    fields.resize(11, Field::Absent);
    fields[10] = Field::Int(1);
    let strange = file(&fields);
    let error = planned(&survey).write(&strange, &survey.arena, false).unwrap_err().to_string();
    assert!(
        error.starts_with("the model: its table has fields that memplan does not know"),
        "{error}"
    );
}

#[test]
fn a_model_compiled_by_vela_is_not_planned_again() {
    let mut main = chain();
    main.operators[1].0 = code::CUSTOM;
    let bytes = model(&[main]);
    let mut compiled = bytes.clone();
    let at = compiled.windows(13).position(|window| window == b"TheirOperator").unwrap();
    compiled[at..at + 7].copy_from_slice(b"ethos-u");
    compiled[at - 4] = 7;
    let survey = surveyed(&compiled);
    assert_eq!(survey.arena.unknown_scratch, ["1 (ethos-u)"]);
    let error = planned(&survey).write(&compiled, &survey.arena, false).unwrap_err().to_string();
    assert!(error.contains("Vela has compiled this model"), "{error}");
}

/// A tensor over another that is still needed is found, and so is one over an input whose operator
/// does not allow it.
#[test]
fn wrong_offsets_are_found() {
    let bytes = model(&[chain()]);
    let survey = surveyed(&bytes);
    let violations = |offsets: [u64; 6]| {
        let mut offsets = offsets.map(Some).to_vec();
        // The weights, which must not have an offset.
        offsets.insert(1, None);
        let plan = OfflinePlan::new(offsets);
        execute(&survey.sequence, &plan.simulate(&survey).unwrap()).len()
    };
    assert_eq!(violations([0, 256, 0, 0, 256, 0]), 0);
    assert_eq!(violations([0, 256, 512, 256, 256, 256]), 0);
    // The convolution writes over its input.
    assert_eq!(violations([0, 0, 256, 256, 256, 0]), 1);
    // The addition reads `a` again.
    assert_eq!(violations([0, 256, 256, 0, 0, 0]), 1);
    let strict = ImportOptions::default().inplace(InPlace::None);
    let strict = memplan::import::tflite::survey(&bytes, &strict).unwrap();
    let plan = planned(&survey);
    assert_ne!(execute(&strict.sequence, &plan.simulate(&strict).unwrap()), []);
}

#[test]
fn the_struct_lists_all_buffers() {
    let bytes = model(&[chain()]);
    let survey = surveyed(&bytes);
    let plan = Planner::new().alignment(ALIGNMENT).plan(&survey.sequence).unwrap();
    let text = c_struct("my model-1", &survey.arena, &plan).unwrap();
    assert!(text.contains("#define MY_MODEL_1_HEAD_BYTES 512\n"), "{text}");
    for (name, valid) in [("1st", "plan_1st_offsets = {"), ("", "plan__offsets = {")] {
        assert!(c_struct(name, &survey.arena, &plan).unwrap().contains(valid));
    }
    // The runtime's kernels fault at other addresses.
    let unaligned = Planner::new().alignment(4).strategy(Strategy::Naive).padding(4);
    let unaligned = unaligned.plan(&survey.sequence).unwrap();
    assert_eq!(c_struct("p", &survey.arena, &unaligned), None);
    assert!(text.contains("  int32_t offsets[6];\n} my_model_1_offsets = {\n  6,\n"), "{text}");
    let offsets: Vec<u64> = text
        .lines()
        .filter_map(|line| {
            line.split_once(",  // ").and_then(|(number, _)| number.trim().parse().ok())
        })
        .collect();
    let expected: Vec<_> =
        survey.arena.buffers.iter().map(|b| plan.offset(&b.name).unwrap()).collect();
    assert_eq!(offsets, expected);
}
