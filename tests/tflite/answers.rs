//! Recorded answers of TensorFlow Lite Micro: the reader sees each model as the runtime does, and its
//! head is predicted to the byte.

use std::{fs, path::PathBuf};

use memplan::{
    Planner, Strategy,
    export::tflite::OfflinePlan,
    import::{
        ImportOptions,
        tflite::{ALIGNMENT, Arena, KernelLibrary, Runtime, Survey, survey},
    },
    lower::LoweringOptions,
    verify::{Verifier, execute, verify},
};
use rstest::rstest;
use serde_json::Value;

use crate::{
    flatbuffer::{FLOAT32, Subgraph, code, model, tensor},
    shared::shared_path,
};

/// A model with its recorded answer.
struct Case {
    name: String,
    survey: Survey,
    answer: Value,
}

fn cases() -> Vec<Case> {
    let Some(folder) = shared_path("data/tflite/answers") else { return Vec::new() };
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|f| f.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 21, "{} recorded answers", files.len());
    let case = |file: PathBuf| {
        let name = file.file_stem().unwrap().to_str().unwrap().to_owned();
        let answer = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
        let model = file.parent().unwrap().with_file_name("models").join(format!("{name}.tflite"));
        // They were recorded on a 64-bit machine.
        let options = ImportOptions::default().pointer_size(8);
        let survey = survey(&fs::read(model).unwrap(), &options).unwrap();
        Case { name, survey, answer }
    };
    files.into_iter().map(case).collect()
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap()
}

fn numbers(value: &Value) -> Vec<u64> {
    value.as_array().unwrap().iter().map(number).collect()
}

#[test]
fn tensors_scratch_and_lifetimes_are_the_runtimes() {
    for Case { name, survey, answer } in cases() {
        let subgraphs = answer["subgraphs"].as_array().unwrap();
        let arena = &survey.arena;
        assert_eq!(arena.subgraphs, subgraphs.len(), "{name}");
        assert_eq!(arena.variables, number(&answer["tflm_reference_64bit"]["variables"]), "{name}");
        assert_eq!(arena.buffers.len() as u64, number(&answer["planned_chunks"]), "{name}");
        let mut expected = Vec::new();
        let tensors = subgraphs.iter().flat_map(|of| of["tensors"].as_array().unwrap());
        for (index, tensor) in tensors.enumerate() {
            let bytes = number(&tensor["bytes"]);
            let is_left_out = ["constant", "variable"].iter().any(|key| tensor[key] == true);
            if !is_left_out && bytes > 0 {
                // Here, step 0 belongs to unused tensors.
                let step = |key: &str| tensor[key].as_u64().map_or(0, |step| step + 1);
                expected.push((Some(index), bytes, step("first"), step("last")));
            }
        }
        let is_scratch = |at: usize| arena.buffers[at].tensor.is_none();
        let found: Vec<_> = arena
            .buffers
            .iter()
            .filter(|buffer| buffer.tensor.is_some())
            .map(|buffer| (buffer.tensor, buffer.size, buffer.first, buffer.last))
            .collect();
        assert_eq!(found, expected, "{name}");
        let scratch: Vec<u64> = subgraphs
            .iter()
            .flat_map(|of| of["operators"].as_array().unwrap())
            .flat_map(|operator| numbers(&operator["reference_scratch_64bit"]))
            .collect();
        let found: Vec<u64> = (0..arena.buffers.len())
            .filter(|&at| is_scratch(at))
            .map(|at| arena.buffers[at].size)
            .collect();
        assert_eq!(found, scratch, "{name}");
    }
}

#[test]
fn the_head_is_predicted_to_the_byte() {
    for Case { name, survey, answer } in cases() {
        let head = OfflinePlan::online(&survey.arena).simulate(&survey).unwrap();
        assert_eq!(head.pool_size(), number(&answer["tflm_reference_64bit"]["head"]), "{name}");
    }
}

/// The recorded release has the structures of the one that is predicted.
#[test]
fn the_whole_arena_is_predicted_to_the_byte() {
    let mut known = 0;
    for Case { name, survey, answer } in cases() {
        let Some(tail) = survey.arena.tail else { continue };
        let head = OfflinePlan::online(&survey.arena).simulate(&survey).unwrap();
        let total = number(&answer["tflm_reference_64bit"]["total"]);
        assert_eq!(head.pool_size() + tail, total, "{name}");
        known += 1;
    }
    assert!(known == 0 || known >= 21, "{known}");
}

/// Measured in the release that is named.
#[rstest]
#[case("mobilenet_v3_se_64_i8", 14_544)]
#[case("variable_f32", 2_032)]
fn the_tail_is_predicted_to_the_byte(#[case] name: &str, #[case] tail: u64) {
    let bytes = fs::read(format!("tests/models/{name}.tflite")).unwrap();
    let options = |kernels| ImportOptions::default().library(kernels);
    let of = |kernels| survey(&bytes, &options(kernels)).unwrap().arena.tail;
    assert_eq!(of(KernelLibrary::Reference), Some(tail));
    assert_eq!(of(KernelLibrary::CmsisNn), None);
}

/// Measured in the release that is named: each subgraph has its structures.
#[rstest]
#[case(1, 752)]
#[case(4, 1_168)]
#[case(8, 1_712)]
fn the_tail_of_subgraphs_is_predicted_to_the_byte(#[case] subgraphs: usize, #[case] tail: u64) {
    let of = Subgraph {
        tensors: ["x", "y"].map(|name| tensor(name, FLOAT32, &[4])).to_vec(),
        inputs: vec![0],
        outputs: vec![1],
        operators: vec![(code::EXP, vec![0], vec![1], vec![])],
    };
    let bytes = model(&vec![of; subgraphs]);
    assert_eq!(survey(&bytes, &ImportOptions::default()).unwrap().arena.tail, Some(tail));
}

/// The head and the tail of one arena for several models.
fn shared_arena(models: &[PathBuf]) -> (u64, u64) {
    let options = ImportOptions::default();
    let read = |path: &PathBuf| {
        let bytes = fs::read(path).unwrap();
        let survey = survey(&bytes, &options).unwrap();
        let present = OfflinePlan::of_model(&bytes).unwrap();
        let offline = present.unwrap_or(OfflinePlan::online(&survey.arena));
        (offline.simulate(&survey).unwrap().pool_size(), survey.arena)
    };
    let (heads, arenas): (Vec<u64>, Vec<Arena>) = models.iter().map(read).unzip();
    let tail = Arena::shared_tail(&arenas.iter().collect::<Vec<_>>());
    (heads.into_iter().max().unwrap(), tail.unwrap())
}

/// Measured with interpreters that have one recording allocator, loaded in this order: the runtime built from
/// earlier source, with the options of a fully connected operator as large as in the release that is named.
#[rstest]
#[case(&["mobilenet_v3_se_64_i8", "variable_f32"], 32_768, 16_128)]
#[case(&["variable_f32", "mobilenet_v3_se_64_i8"], 32_768, 16_128)]
#[case(&["mobilenet_v3_se_64_i8", "mobilenet_v3_se_64_i8"], 32_768, 28_640)]
#[case(&["variable_f32", "variable_f32"], 768, 3_616)]
#[case(&["variable_f32", "mobilenet_v3_se_64_i8", "variable_f32"], 32_768, 17_712)]
fn an_arena_of_several_models_is_predicted_to_the_byte(
    #[case] models: &[&str],
    #[case] head: u64,
    #[case] tail: u64,
) {
    let models: Vec<PathBuf> =
        models.iter().map(|name| format!("tests/models/{name}.tflite").into()).collect();
    assert_eq!(shared_arena(&models), (head, tail));
}

/// Measured in the same way; the models in `planned` have an offline plan.
#[rstest]
#[case(&["models/ad_autoencoder_i8", "models/if_branches_f32"], 2_096, 18_672)]
#[case(&["models/while_loop_f32", "models/kws_ds_cnn_i8"], 16_000, 9_856)]
#[case(&["models/kws_ds_cnn_f32", "models/two_heads_inputs_i8"], 64_000, 10_976)]
#[case(&["models/scratch_heavy_i8", "models/unet_transpose_48_i8"], 320_000, 6_800)]
#[case(&["models/transformer_tiny_i8", "models/densenet_tiny_32_f32"], 557_056, 28_544)]
#[case(&["models/mobilenet_v2_035_96_i8", "models/vww_mobilenet_v1_025_i8"], 138_240, 78_512)]
#[case(&["planned/vww_mobilenet_v1_025_i8", "models/kws_ds_cnn_i8"], 55_296, 37_616)]
#[case(&["models/ic_resnet8_i8", "planned/elementwise_chain_i8"], 49_152, 10_304)]
#[case(
    &["planned/kws_ds_cnn_i8_overlap_reference", "planned/ic_resnet8_i8_overlap_reference"],
    33_312, 14_560
)]
#[case(
    &["models/if_branches_f32", "models/while_loop_f32", "models/transformer_tiny_i8"],
    10_240, 19_872
)]
#[case(
    &["planned/vww_mobilenet_v1_025_i8", "models/batch_concat_i8", "models/efficientnet_tiny_64_i8"],
    98_304, 60_400
)]
#[case(
    &["models/elementwise_chain_f32", "models/unet_tiny_64_i8", "models/ic_resnet8_i8"],
    196_608, 17_968
)]
fn an_arena_of_other_models_is_predicted_to_the_byte(
    #[case] models: &[&str],
    #[case] head: u64,
    #[case] tail: u64,
) {
    let path = |name: &&str| shared_path(&format!("data/tflite/{name}.tflite"));
    let Some(models) = models.iter().map(path).collect::<Option<Vec<PathBuf>>>() else { return };
    assert_eq!(shared_arena(&models), (head, tail));
}

/// Measured in a build with CMSIS-NN in plain C.
#[test]
fn the_head_is_predicted_for_other_kernels() {
    for (name, head) in [
        ("ic_resnet8_i8", 49_728),
        ("mobilenet_v2_035_96_i8", 138_240),
        ("unet_transpose_48_i8", 73_728),
    ] {
        let Some(path) = shared_path(&format!("data/tflite/models/{name}.tflite")) else { return };
        let options = ImportOptions::default().library(KernelLibrary::CmsisNn);
        let survey = survey(&fs::read(path).unwrap(), &options).unwrap();
        let found = OfflinePlan::online(&survey.arena).simulate(&survey).unwrap();
        assert_eq!(found.pool_size(), head, "{name}");
    }
}

/// The pools of the strict plan, with views alone, and with overwrites.
#[test]
fn plans_are_as_small_as_the_recorded_bounds() {
    for Case { name, survey, answer } in cases() {
        for (key, views, inplace) in
            [("strict", false, false), ("views", true, false), ("inplace", true, true)]
        {
            let options = LoweringOptions::default().views(views).inplace(inplace);
            let planner = Planner::new().alignment(ALIGNMENT).lowering(options);
            let plan = planner.strategy(Strategy::Best).plan(&survey.sequence).unwrap();
            let verified =
                Verifier::new().lowering(options).execute(true).verify(&survey.sequence, &plan);
            assert_eq!(verified.unwrap(), [], "{name} {key}");
            assert_eq!(execute(&survey.sequence, &plan), [], "{name} {key}");
            assert!(plan.proven_optimal(), "{name} {key}");
            // The recorder omitted the other figures for models of several subgraphs.
            if key == "strict" || survey.arena.subgraphs == 1 {
                assert_eq!(plan.pool_size(), number(&answer[key]["pool"]), "{name} {key}");
            }
            let offline = OfflinePlan::of_plan(&survey.arena, &plan);
            let head = offline.simulate(&survey).unwrap();
            assert!(
                head.pool_size() <= plan.pool_size(),
                "{name} {key}: {} {}",
                head.pool_size(),
                plan.pool_size()
            );
        }
    }
}

/// The smallest heads that a prototype reached with overlaps, and those for kernels that overlap
/// less.
#[rstest]
#[case("vww_mobilenet_v1_025_i8", KernelLibrary::Reference, 36_880)]
#[case("kws_ds_cnn_i8", KernelLibrary::Reference, 9_792)]
#[case("ic_resnet8_i8", KernelLibrary::Reference, 33_312)]
#[case("ad_autoencoder_i8", KernelLibrary::Reference, 768)]
#[case("mobilenet_v2_035_96_i8", KernelLibrary::Reference, 110_608)]
#[case("mobilenet_v3_se_64_i8", KernelLibrary::Reference, 16_400)]
#[case("efficientnet_tiny_64_i8", KernelLibrary::Reference, 65_536)]
#[case("densenet_tiny_32_i8", KernelLibrary::Reference, 90_112)]
#[case("transformer_tiny_i8", KernelLibrary::Reference, 8_192)]
#[case("unet_tiny_64_i8", KernelLibrary::Reference, 196_608)]
#[case("ic_resnet8_i8", KernelLibrary::CmsisNn, 33_888)]
#[case("mobilenet_v2_035_96_i8", KernelLibrary::CmsisNnDsp, 129_024)]
#[case("vww_mobilenet_v1_025_i8", KernelLibrary::CmsisNn, 55_296)]
fn overlaps_reach_what_a_prototype_reached(
    #[case] name: &str,
    #[case] kernels: KernelLibrary,
    #[case] least: u64,
) {
    let Some(folder) = shared_path("data/tflite/models") else { return };
    let bytes = fs::read(folder.join(format!("{name}.tflite"))).unwrap();
    let options = ImportOptions::default().pointer_size(8).library(kernels).overlap(true);
    let survey = survey(&bytes, &options).unwrap();
    let plan = Planner::new().alignment(ALIGNMENT).plan(&survey.sequence).unwrap();
    let found = (verify(&survey.sequence, &plan), execute(&survey.sequence, &plan));
    assert_eq!(found, (vec![], vec![]), "{name}");
    assert_eq!((plan.pool_size(), plan.proven_optimal()), (least, true), "{name}");
    let offline = OfflinePlan::of_plan(&survey.arena, &plan);
    let head = offline.simulate(&survey).unwrap();
    assert!(head.pool_size() <= plan.pool_size(), "{name}");
    assert_eq!(execute(&survey.sequence, &head), [], "{name}");
}

/// Measured in the interpreter without delegates, with reference kernels: the place of each tensor in
/// its arena, and the end of the last one.
#[rstest]
#[case("ad_autoencoder_i8", 1_408)]
#[case("batch_concat_i8", 14_336)]
#[case("densenet_tiny_32_f32", 372_736)]
#[case("densenet_tiny_32_i8", 93_184)]
#[case("elementwise_chain_f32", 98_560)]
#[case("elementwise_chain_i8", 46_080)]
#[case("ic_resnet8_i8", 52_224)]
#[case("kws_ds_cnn_f32", 65_984)]
#[case("kws_ds_cnn_i8", 16_512)]
#[case("mobilenet_v2_035_96_i8", 165_888)]
#[case("mobilenet_v3_se_64_i8", 45_056)]
#[case("two_heads_inputs_i8", 16_384)]
#[case("unet_tiny_64_i8", 208_896)]
#[case("vww_mobilenet_v1_025_i8", 82_944)]
fn the_arena_of_the_interpreter_is_predicted(#[case] name: &str, #[case] size: u64) {
    let Some(folder) = shared_path("data/tflite/models") else { return };
    let bytes = fs::read(folder.join(format!("{name}.tflite"))).unwrap();
    let options = ImportOptions::default().runtime(Runtime::Interpreter);
    let survey = survey(&bytes, &options).unwrap();
    assert_eq!(survey.arena.own_size(), Ok(size));
    // With the strategy of its planner, and with the best one, the plan is no larger than the arena
    // of the interpreter.
    let planner = Planner::new().alignment(Runtime::Interpreter.alignment());
    for strategy in [Strategy::TfliteCpuArena, Strategy::Best] {
        let plan = planner.clone().strategy(strategy).plan(&survey.sequence).unwrap();
        assert!(plan.pool_size() <= size, "{strategy}: {}", plan.pool_size());
        let found = (verify(&survey.sequence, &plan), execute(&survey.sequence, &plan));
        assert_eq!(found, (vec![], vec![]), "{strategy}");
    }
}
