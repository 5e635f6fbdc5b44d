//! Real models: sizes and bounds equal those computed independently from the same graphs.

use memplan::{
    OpSequence, Plan, Planner, Strategy,
    import::{ImportOptions, InPlace, onnx::read},
    lower::LoweringOptions,
    verify::{execute, verify},
};
use rstest::rstest;
use rten_onnx::onnx::{Dimension, ModelProto};

fn model(name: &str) -> Option<OpSequence> {
    model_for(name, InPlace::Rows)
}

/// Reads a model for kernels with this in-place profile.
fn model_for(name: &str, profile: InPlace) -> Option<OpSequence> {
    let path = crate::common::shared_path(&format!("data/models/{name}.onnx"))?;
    let bytes = std::fs::read(path).unwrap();
    let options = ImportOptions::default().inplace(profile);
    Some(read(&bytes, &options).unwrap_or_else(|error| panic!("{name}: {error}")))
}

fn plan(sequence: &OpSequence, views: bool, inplace: bool) -> Plan {
    let options = LoweringOptions::default().views(views).inplace(inplace);
    Planner::new().strategy(Strategy::Naive).lowering(options).plan(sequence).unwrap()
}

/// The rules find what the model declares: the same sequence comes out without declarations.
#[rstest]
fn declared_shapes_are_those_inferred(
    #[values(
        "bert_base_b1_s128",
        "densenet121_b1",
        "efficientnet_b0_b1",
        "gpt2_b1_s128",
        "inception_v3_b1",
        "mobilenet_v2_b128",
        "resnet50_b128",
        "vgg16_b1",
        "vit_b_16_b1"
    )]
    name: &str,
) {
    let Some(declared) = model(name) else { return };
    let path = crate::common::shared_path(&format!("data/models/{name}.onnx")).unwrap();
    let mut model = ModelProto::parse_buf(&std::fs::read(path).unwrap()).unwrap();
    let graph = model.graph.as_mut().unwrap();
    assert!(!graph.value_info.is_empty());
    graph.value_info.clear();
    for output in &mut graph.output {
        output.r#type = None;
    }
    let bytes = model.write_buf().unwrap();
    assert_eq!(read(&bytes, &ImportOptions::default()).unwrap(), declared);
}

#[test]
fn tensors_have_the_types_of_the_model() {
    let Some(sequence) = model("resnet50_b1") else { return };
    for tensor in sequence.tensors() {
        let width = if tensor.dtype() == Some("float32") { 4 } else { 8 };
        let elements: u64 = tensor.shape().unwrap().iter().product();
        assert_eq!(tensor.size, Some(width * elements), "{tensor:?}");
    }
    let output = sequence.tensor(sequence.outputs()[0]);
    assert_eq!((output.dtype(), output.shape()), (Some("float32"), Some(&[1, 1000][..])));
}

/// Shapes that were recorded for another batch size are rejected, or replaced by the given size.
#[test]
fn a_batch_size_given_reaches_every_tensor() {
    let Some(path) = crate::common::shared_path("data/models/resnet50_b1.onnx") else { return };
    let mut graph = ModelProto::parse_buf(&std::fs::read(path).unwrap()).unwrap();
    let input = &mut graph.graph.as_mut().unwrap().input[0];
    let shape = input.r#type.as_mut().unwrap().tensor_type.as_mut().unwrap().shape.as_mut();
    shape.unwrap().dim[0] = Dimension { dim_value: None, dim_param: Some("batch".to_owned()) };
    let options = ImportOptions::default().dims([("batch", 128)]);
    let bytes = graph.write_buf().unwrap();
    let error = read(&bytes, &options).unwrap_err().to_string();
    assert!(error.contains("--trust-inference"), "{error}");
    let options = options.trust_inference();
    let sequence = read(&bytes, &options).unwrap();
    assert_eq!(plan(&sequence, false, false).naive_size(), 13_541_298_176);
}

/// The bytes with one buffer per tensor, and the lower bounds without sharing, with views, and with
/// views and in-place operators.
#[rstest]
#[case("bert_base_b1_s128", 279_981_568, 5_112_320, 5_112_320, 3_539_456)]
#[case("densenet121_b1", 176_180_128, 8_429_568, 8_429_568, 7_225_344)]
#[case("efficientnet_b0_b1", 86_403_952, 14_450_688, 14_450_688, 9_633_792)]
#[case("gpt2_b1_s128", 414_230_016, 26_124_800, 26_124_800, 26_124_800)]
#[case("inception_v3_b1", 92_496_544, 11_063_808, 11_063_808, 8_297_856)]
#[case("light_inception_v1_noshapes", 36_642_368, 6_422_528, 6_422_528, 4_646_400)]
#[case("light_resnet50_noshapes", 150_251_328, 9_633_792, 9_633_792, 7_225_344)]
#[case("light_squeezenet_noshapes", 28_191_616, 6_308_352, 6_308_352, 3_928_576)]
#[case("mobilenet_v2_b1", 52_015_392, 9_633_792, 9_633_792, 6_021_120)]
#[case("mobilenet_v2_b128", 6_657_970_176, 1_233_125_376, 1_233_125_376, 770_703_360)]
#[case("resnet50_b1", 105_791_392, 9_633_792, 9_633_792, 7_225_344)]
#[case("resnet50_b128", 13_541_298_176, 1_233_125_376, 1_233_125_376, 924_844_032)]
#[case("vgg16_b1", 114_771_872, 25_690_112, 25_690_112, 25_690_112)]
#[case("vgg16_b128", 14_690_799_616, 3_288_334_336, 3_288_334_336, 3_288_334_336)]
#[case("vit_b_16_b1", 585_740_320, 7_867_392, 7_867_392, 5_446_656)]
fn bounds_are_those_recorded(
    #[case] name: &str,
    #[case] one_buffer_each: u64,
    #[case] bound: u64,
    #[case] views: u64,
    #[case] inplace: u64,
) {
    let Some(sequence) = model_for(name, InPlace::Elementwise) else { return };
    let separate = plan(&sequence, false, false);
    let viewing = plan(&sequence, true, false).lower_bound();
    let sharing = plan(&sequence, true, true).lower_bound();
    let by_rows = plan(&model(name).unwrap(), true, true).lower_bound();
    assert_eq!(separate.naive_size(), one_buffer_each, "one buffer each");
    assert_eq!(separate.lower_bound(), bound, "bound");
    assert!(viewing <= views, "with views: {viewing}, recorded {views}");
    assert!(sharing <= inplace, "in place: {sharing}, recorded {inplace}");
    // No row-wise operator is at the peak of these.
    assert_eq!(by_rows, sharing, "in place by rows");
}

/// The kernels' profile decides how much a model with attention needs: the scores of the
/// attention, and the same again where `Softmax` cannot work in place.
#[rstest]
#[case::encoder("encoder", [1_382_400, 1_382_400, 844_800])]
#[case::block_of_a_u_net("unet_block", [2_293_760, 2_293_760, 1_376_256])]
fn a_profile_of_kernels_decides_the_size(#[case] name: &str, #[case] pools: [u64; 3]) {
    let path = format!("{}/tests/models/{name}.onnx", env!("CARGO_MANIFEST_DIR"));
    let bytes = std::fs::read(path).unwrap();
    for (&profile, pool) in InPlace::ALL.iter().zip(pools) {
        let options = ImportOptions::default().inplace(profile);
        let sequence = read(&bytes, &options).unwrap();
        let plan = Planner::new().alignment(64).plan(&sequence).unwrap();
        assert_eq!((plan.pool_size(), plan.lower_bound()), (pool, pool), "{profile}");
        assert_eq!(verify(&sequence, &plan), []);
        assert_eq!(execute(&sequence, &plan), []);
    }
}
