//! The reader of TensorFlow Lite models, on small models made here.

use memplan::{
    OpSequence, Planner, Strategy,
    import::{
        ImportOptions, InPlace,
        tflite::{ALIGNMENT, KernelLibrary, Runtime, Survey, TfliteError, read, survey},
    },
    sequence::{Dependency, Origin, Overwrite},
    verify::{execute, verify},
};
use rstest::rstest;

use crate::flatbuffer::{
    FLOAT32, Field, INT8, STRING, Subgraph, Tensor, chain, code, constant, convolution, file,
    model, model_fields, tensor,
};

fn surveyed(bytes: &[u8]) -> Survey {
    survey(bytes, &ImportOptions::default()).unwrap()
}

/// The tensors that an output may share memory with: `view of x at 16`, `over a, b`, or none.
fn shares(sequence: &OpSequence, name: &str) -> String {
    let tensor = sequence.tensors().iter().find(|tensor| &*tensor.name == name).unwrap();
    let name_of = |id| &sequence.tensor(id).name;
    match &tensor.origin {
        Origin::Output { dependency: Dependency::Reads { input, offset, .. }, .. } => {
            format!("view of {} at {offset}", name_of(*input))
        }
        Origin::Output { dependency: Dependency::Overwrites(overwrites), .. } => {
            let name = |over: &Overwrite<_>| match over.below {
                0 => name_of(over.input).to_string(),
                below => format!("{} from {below} below", name_of(over.input)),
            };
            format!("over {}", overwrites.iter().map(name).collect::<Vec<_>>().join(", "))
        }
        _ => String::new(),
    }
}

#[test]
fn a_model_becomes_a_sequence() {
    let Survey { sequence, arena, not_in_place, .. } = surveyed(&model(&[chain()]));
    let steps: Vec<_> = sequence.operators().iter().map(|operator| &*operator.name).collect();
    assert_eq!(steps, ["inputs", "CONV_2D 0", "RELU 1", "ADD 2", "RESHAPE 3", "SOFTMAX 4"]);
    let shared = ["a", "b", "c", "d", "y"].map(|name| shares(&sequence, name));
    assert_eq!(shared, ["", "over a", "over b, a", "view of c at 0", "over d"]);
    for name in ["x", "a"] {
        let tensor = sequence.tensor(sequence.tensor_id(name).unwrap());
        assert_eq!((tensor.dtype(), tensor.shape()), (Some("int8"), Some(&[1, 8, 8, 4][..])));
    }
    let lives: Vec<_> = arena.buffers.iter().map(|b| (&*b.name, b.size, b.first, b.last)).collect();
    let expected = [
        ("x", 256, 1, 2),
        ("a", 256, 2, 4),
        ("b", 256, 3, 4),
        ("c", 256, 4, 5),
        ("d", 256, 5, 6),
        ("y", 256, 6, 6),
    ];
    assert_eq!(lives, expected);
    assert_eq!((arena.tensors, arena.subgraphs, arena.variables), (7, 1, 0));
    assert_eq!(not_in_place.keys().map(|name| &**name).collect::<Vec<_>>(), ["a", "x"]);
    let plan = Planner::new().alignment(ALIGNMENT).plan(&sequence).unwrap();
    assert_eq!((plan.pool_size(), plan.proven_optimal()), (512, true));
    assert_eq!(execute(&sequence, &plan), []);
}

fn for_interpreter(subgraphs: &[Subgraph]) -> Survey {
    let options = ImportOptions::default().runtime(Runtime::Interpreter);
    survey(&model(subgraphs), &options).unwrap()
}

#[test]
fn the_interpreter_keeps_inputs_and_shares_what_its_planner_shares() {
    let Survey { sequence, arena, .. } = for_interpreter(&[chain()]);
    // RELU never shares; of ADD's operands, the first is read once; the graph's output never shares.
    let shared = ["a", "b", "c", "d", "y"].map(|name| shares(&sequence, name));
    assert_eq!(shared, ["", "", "over b", "view of c at 0", ""]);
    let outputs: Vec<_> = sequence.outputs().iter().map(|&id| &*sequence.tensor(id).name).collect();
    assert_eq!(outputs, ["y", "x"]);
    let lives: Vec<_> =
        arena.buffers.iter().map(|b| (&*b.name, b.first, b.last, b.shares)).collect();
    let expected = [
        ("x", 1, 6, None),
        ("a", 1, 3, None),
        ("b", 2, 5, None),
        ("c", 3, 5, Some(2)),
        ("d", 4, 5, Some(2)),
        ("y", 5, 6, None),
    ];
    assert_eq!(lives, expected);
    let plan = Planner::new().alignment(64).plan(&sequence).unwrap();
    assert_eq!((plan.pool_size(), arena.own_size()), (768, Ok(768)));
    assert_eq!(execute(&sequence, &plan), []);
}

/// An operand that is read twice, a scalar, an input or output of the graph, and the smaller
/// operand of a broadcast are not overwritten.
#[rstest]
#[case::last_reader(&[8], &[8], false, "over a")]
#[case::scalar(&[1], &[1], false, "")]
#[case::broadcast(&[8], &[2, 8], false, "")]
#[case::read_again(&[8], &[8], true, "")]
fn the_interpreter_writes_over_an_operand_that_nobody_else_reads(
    #[case] a: &[i32],
    #[case] b: &[i32],
    #[case] is_read_again: bool,
    #[case] expected: &str,
) {
    let tensors = vec![
        tensor("x", FLOAT32, a),
        tensor("a", FLOAT32, a),
        tensor("b", FLOAT32, b),
        tensor("y", FLOAT32, b),
        tensor("z", FLOAT32, a),
        tensor("w", FLOAT32, b),
    ];
    let mut operators = vec![
        (code::RELU, vec![0], vec![1], vec![]),
        (code::ADD, vec![1, 5], vec![2], vec![]),
        (code::RELU, vec![2], vec![3], vec![]),
    ];
    let mut outputs = vec![3];
    if is_read_again {
        // This RELU comes before the addition, so that the addition is still the last reader.
        operators.insert(1, (code::RELU, vec![1], vec![4], vec![]));
        outputs.push(4);
    }
    let found = for_interpreter(&[Subgraph { tensors, inputs: vec![0, 5], outputs, operators }]);
    assert_eq!(shares(&found.sequence, "b"), expected);
    assert_eq!(verify(&found.sequence, &Planner::new().plan(&found.sequence).unwrap()), []);
}

#[test]
fn the_interpreter_keeps_what_nobody_reads() {
    let names = ["x", "a", "unread", "b", "y"];
    let unary = |from, to| (code::RELU, vec![from], vec![to], vec![]);
    let Survey { sequence, arena, .. } = for_interpreter(&[Subgraph {
        tensors: names.map(|name| tensor(name, FLOAT32, &[16])).into(),
        inputs: vec![0],
        outputs: vec![4],
        operators: vec![unary(0, 1), unary(0, 2), unary(1, 3), unary(3, 4)],
    }]);
    let kept: Vec<_> = sequence.outputs().iter().map(|&id| &*sequence.tensor(id).name).collect();
    assert_eq!(kept, ["y", "x", "unread"]);
    let planner = Planner::new().alignment(64).strategy(Strategy::TfliteCpuArena);
    let plan = planner.plan(&sequence).unwrap();
    assert_eq!((plan.pool_size(), arena.own_size()), (256, Ok(256)));
}

#[test]
fn a_called_subgraph_that_reads_a_tensor_before_it_is_made_is_an_error() {
    let tensors = |names: [&'static str; 3]| names.map(|name| tensor(name, FLOAT32, &[16])).into();
    let called = Subgraph {
        tensors: tensors(["p", "q", "r"]),
        inputs: vec![0],
        outputs: vec![2],
        operators: vec![
            (code::ADD, vec![0, 1], vec![2], vec![]),
            (code::RELU, vec![0], vec![1], vec![]),
        ],
    };
    let main = Subgraph {
        tensors: tensors(["condition", "x", "y"]),
        inputs: vec![0, 1],
        outputs: vec![2],
        operators: vec![(code::IF, vec![0, 1], vec![2], vec![Field::Int(1), Field::Int(1)])],
    };
    let options = ImportOptions::default().runtime(Runtime::Interpreter);
    let error = survey(&model(&[main, called]), &options).unwrap_err();
    assert!(error.to_string().contains("subgraph 1"), "{error}");
}

#[test]
fn called_subgraphs_have_arenas_of_their_own_in_the_interpreter() {
    let called = Subgraph {
        tensors: vec![tensor("p", FLOAT32, &[100]), tensor("q", FLOAT32, &[100])],
        inputs: vec![0],
        outputs: vec![1],
        operators: vec![(code::RELU, vec![0], vec![1], vec![])],
    };
    let branch = |index| Field::Int(index);
    let main = Subgraph {
        tensors: vec![
            tensor("condition", INT8, &[1]),
            tensor("x", FLOAT32, &[100]),
            tensor("y", FLOAT32, &[100]),
        ],
        inputs: vec![0, 1],
        outputs: vec![2],
        operators: vec![(code::IF, vec![0, 1], vec![2], vec![branch(1), branch(1)])],
    };
    let Survey { sequence, arena, .. } = for_interpreter(&[main, called]);
    assert_eq!(sequence.operators().len(), 2);
    // Two tensors of 400 bytes, at multiples of 64, in each; and the condition.
    assert_eq!((arena.own_size(), arena.called), (Ok(64 + 2 * 448), 448 + 448));
}

/// An operator on these tensors, the last of which is its output.
fn single(code: i32, tensors: Vec<Tensor>, options: Vec<Field>) -> Subgraph {
    let last = i32::try_from(tensors.len()).unwrap() - 1;
    let supplied = |at: &i32| tensors[usize::try_from(*at).unwrap()].data.is_empty();
    Subgraph {
        inputs: (0..last).filter(supplied).collect(),
        // No output of the model, so that it may share memory.
        outputs: vec![],
        operators: vec![(code, (0..last).collect(), vec![last], options)],
        tensors,
    }
}

/// What the runtime itself refuses when it loads such a model, or when it runs it.
#[rstest]
#[case::half(6, vec![Tensor { data: vec![0; 8], ..tensor("x", 1, &[4]) }], tensor("y", FLOAT32, &[4]), "DEQUANTIZE: no kernel for FLOAT16 to FLOAT32 (operator 0)")]
#[case::type_of_input(59, vec![tensor("x", INT8, &[4])], tensor("y", INT8, &[4]), "NEG: no kernel for INT8 (operator 0)")]
#[case::no_kernel(69, vec![tensor("x", INT8, &[4]), constant("n", &[2])], tensor("y", INT8, &[8]), "TILE: no kernel (operator 0)")]
#[case::hybrid(9, vec![tensor("x", FLOAT32, &[1, 4]), Tensor { data: vec![0; 8], ..tensor("w", INT8, &[2, 4]) }], tensor("y", FLOAT32, &[1, 2]), "FULLY_CONNECTED: no kernel for FLOAT32 with weights of INT8 (operator 0)")]
#[case::constant(34, vec![tensor("x", INT8, &[4]), tensor("by", 2, &[1, 2])], tensor("y", INT8, &[6]), "PAD: 'by' must be a constant (operator 0)")]
#[case::known(0, vec![tensor("x", INT8, &[4]), tensor("z", INT8, &[4])], tensor("y", INT8, &[4]), "")]
fn operators_that_the_runtime_lacks_are_named(
    #[case] code: i32,
    #[case] mut tensors: Vec<Tensor>,
    #[case] output: Tensor,
    #[case] expected: &str,
) {
    tensors.push(output);
    let bytes = model(&[single(code, tensors, vec![])]);
    assert_eq!(surveyed(&bytes).unsupported.join(", "), expected);
    let interpreter = ImportOptions::default().runtime(Runtime::Interpreter);
    let found = survey(&bytes, &interpreter).unwrap();
    assert_eq!(found.unsupported, [""; 0]);
}

#[test]
fn operators_that_the_runtime_lacks_are_counted() {
    let mut main = chain();
    main.operators[1].0 = 59;
    main.operators.push((59, vec![6], vec![7], vec![]));
    main.tensors.push(tensor("z", INT8, &[1, 256]));
    let found = surveyed(&model(&[main]));
    assert_eq!(found.unsupported, ["NEG: no kernel for INT8 (2 operators, from 1)"]);
}

fn with_flag(slot: usize, value: i32) -> Vec<Field> {
    let mut options = vec![Field::Absent; slot];
    options.push(Field::Int(value));
    options
}

#[rstest]
#[case::element_by_element(code::RELU, vec![tensor("x", INT8, &[4])], tensor("y", INT8, &[4]), vec![], "over x")]
#[case::narrower(114, vec![tensor("x", FLOAT32, &[4])], tensor("y", INT8, &[4]), vec![], "over x")]
#[case::wider(53, vec![tensor("x", INT8, &[4])], tensor("y", FLOAT32, &[4]), vec![], "")]
#[case::broadcast(code::ADD, vec![tensor("x", INT8, &[1]), tensor("z", INT8, &[4])], tensor("y", INT8, &[4]), vec![], "over z")]
#[case::sum(code::CUMSUM, vec![tensor("x", INT8, &[4]), constant("axis", &[0])], tensor("y", INT8, &[4]), vec![], "over x")]
#[case::exclusive_sum(code::CUMSUM, vec![tensor("x", INT8, &[4]), constant("axis", &[0])], tensor("y", INT8, &[4]), vec![Field::Byte(1)], "")]
#[case::reshape(code::RESHAPE, vec![tensor("x", INT8, &[4])], tensor("y", INT8, &[2, 2]), vec![], "view of x at 0")]
#[case::larger_than_its_input(code::RESHAPE, vec![tensor("x", INT8, &[4])], tensor("y", INT8, &[8]), vec![], "")]
#[case::slice_of_rows(65, vec![tensor("x", INT8, &[4, 16]), constant("begin", &[1, 0]), constant("size", &[2, 16])], tensor("y", INT8, &[2, 16]), vec![], "view of x at 16")]
#[case::slice_of_columns(65, vec![tensor("x", INT8, &[4, 32]), constant("begin", &[0, 16]), constant("size", &[4, 16])], tensor("y", INT8, &[4, 16]), vec![], "")]
#[case::slice_at_an_odd_place(65, vec![tensor("x", INT8, &[4, 8]), constant("begin", &[1, 0]), constant("size", &[2, 8])], tensor("y", INT8, &[2, 8]), vec![], "")]
#[case::strided_slice(code::STRIDED_SLICE, vec![tensor("x", INT8, &[4, 16]), constant("begin", &[2, 0]), constant("end", &[4, 16]), constant("strides", &[1, 1])], tensor("y", INT8, &[2, 16]), vec![], "view of x at 32")]
#[case::every_second_row(code::STRIDED_SLICE, vec![tensor("x", INT8, &[4, 16]), constant("begin", &[0, 0]), constant("end", &[4, 16]), constant("strides", &[2, 1])], tensor("y", INT8, &[2, 16]), vec![], "")]
#[case::one_row(code::STRIDED_SLICE, vec![tensor("x", INT8, &[4, 16]), constant("begin", &[-1, 0]), constant("end", &[4, 16]), constant("strides", &[1, 1])], tensor("y", INT8, &[16]), with_flag(4, 1), "view of x at 48")]
#[case::one_column_of_a_cube(code::STRIDED_SLICE, vec![tensor("x", INT8, &[16, 16, 16]), constant("begin", &[0, 0, 0]), constant("end", &[16, 1, 16]), constant("strides", &[1, 1, 1])], tensor("y", INT8, &[16, 16]), with_flag(4, 2), "")]
#[case::unknown_operator(code::CUSTOM, vec![tensor("x", INT8, &[4])], tensor("y", INT8, &[4]), vec![], "")]
fn an_output_shares_memory_where_the_kernel_allows_it(
    #[case] code: i32,
    #[case] mut tensors: Vec<Tensor>,
    #[case] output: Tensor,
    #[case] options: Vec<Field>,
    #[case] expected: &str,
) {
    tensors.push(output);
    let found = surveyed(&model(&[single(code, tensors, options)]));
    assert_eq!(shares(&found.sequence, "y"), expected);
    assert_eq!(found.not_in_place.contains_key("y"), expected.is_empty());
}

#[test]
fn parts_of_a_split_lie_one_after_another() {
    let part = |name| tensor(name, INT8, &[1, 16]);
    let split = Subgraph {
        tensors: vec![
            constant("axis", &[1]),
            tensor("x", INT8, &[1, 48]),
            part("a"),
            part("b"),
            part("c"),
        ],
        inputs: vec![1],
        outputs: vec![],
        operators: vec![(code::SPLIT, vec![0, 1], vec![2, 3, 4], vec![Field::Int(3)])],
    };
    let sequence = surveyed(&model(&[split])).sequence;
    let shared = ["a", "b", "c"].map(|name| shares(&sequence, name));
    assert_eq!(shared, ["view of x at 0", "view of x at 16", "view of x at 32"]);
}

#[test]
fn parts_that_are_larger_than_the_whole_are_refused() {
    let names = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
    let mut tensors = vec![constant("axis", &[0]), tensor("x", INT8, &[1, 48])];
    tensors.extend(names.map(|name| tensor(name, INT8, &[i32::MAX, 1 << 30])));
    let split = Subgraph {
        tensors,
        inputs: vec![1],
        outputs: vec![],
        operators: vec![(code::SPLIT, vec![0, 1], (2..12).collect(), vec![Field::Int(10)])],
    };
    let error = read(&model(&[split]), &ImportOptions::default()).unwrap_err().to_string();
    assert!(error.contains("1x48 is not split into 10 equal parts"), "{error}");
}

/// Every operator gets a copy of the name of its kind.
#[test]
fn a_long_kind_cannot_be_copied_without_limit() {
    let kind = Field::Bytes(vec![b'k'; 20_000]);
    let code = vec![Field::Byte(32), kind, Field::Absent, Field::Int(32)];
    let operators = Field::Repeated(10_000, vec![Field::Int(0)]);
    let subgraph = vec![Field::Absent, Field::Absent, Field::Absent, operators];
    let root = [Field::Int(3), Field::Tables(vec![code]), Field::Tables(vec![subgraph])];
    let error = read(&file(&root), &ImportOptions::default()).unwrap_err();
    assert_eq!(error, TfliteError::TooMuch);
}

#[test]
fn the_kernels_decide_what_works_in_place() {
    let bytes = model(&[chain()]);
    let over = |options: ImportOptions| {
        let sequence = read(&bytes, &options).unwrap();
        ["b", "y"].map(|name| shares(&sequence, name))
    };
    let profile = |profile| ImportOptions::default().inplace(profile);
    let library = |kernels| ImportOptions::default().library(kernels);
    assert_eq!(over(profile(InPlace::Elementwise)), ["over a", ""]);
    assert_eq!(over(profile(InPlace::None)), ["", ""]);
    assert_eq!(over(library(KernelLibrary::CmsisNn)), ["over a", "over d"]);
    assert_eq!(over(library(KernelLibrary::CmsisNnMve)), ["", ""]);
}

/// A branch and its condition: subgraph 0 calls 1 or 2.
fn branches() -> [Subgraph; 3] {
    let row = |name| tensor(name, INT8, &[64]);
    let body = |code| Subgraph {
        tensors: vec![row("in"), row("out")],
        inputs: vec![0],
        outputs: vec![1],
        operators: vec![(code, vec![0], vec![1], vec![])],
    };
    let main = Subgraph {
        tensors: vec![tensor("if", 6, &[1]), row("x"), row("y"), row("z")],
        inputs: vec![0, 1],
        outputs: vec![3],
        operators: vec![
            (code::IF, vec![0, 1], vec![2], vec![Field::Int(1), Field::Int(2)]),
            (code::RELU, vec![2], vec![3], vec![]),
        ],
    };
    [main, body(code::EXP), body(code::RELU)]
}

#[test]
fn called_subgraphs_follow_their_caller() {
    let Survey { sequence, arena, .. } = surveyed(&model(&branches()));
    let steps: Vec<_> = sequence.operators().iter().map(|operator| &*operator.name).collect();
    let expected = [
        "inputs",
        "IF 0",
        "IF 0 calls subgraph 1",
        "EXP 1:0",
        "subgraph 1 returns",
        "IF 0 calls subgraph 2",
        "RELU 2:0",
        "subgraph 2 returns",
        "RELU 1",
    ];
    assert_eq!(steps, expected);
    let lives: Vec<_> = arena.buffers.iter().map(|b| (&*b.name, b.first, b.last)).collect();
    let expected = [
        ("if", 1, 6),
        ("x", 1, 6),
        ("y", 2, 7),
        ("z", 7, 7),
        ("1: in", 3, 4),
        ("1: out", 4, 4),
        ("2: in", 5, 6),
        ("2: out", 6, 6),
    ];
    assert_eq!(lives, expected);
    let plan = Planner::new().alignment(ALIGNMENT).plan(&sequence).unwrap();
    assert_eq!(execute(&sequence, &plan), []);
}

#[test]
fn a_subgraph_that_is_called_twice_keeps_its_tensors() {
    let [mut main, body, _] = branches();
    main.operators[0].3 = vec![Field::Int(1), Field::Int(1)];
    let Survey { sequence, arena, .. } = surveyed(&model(&[main, body]));
    let of = |name: &str| arena.buffers.iter().find(|buffer| &*buffer.name == name).unwrap();
    assert_eq!((of("1: in").first, of("1: in").last), (3, 6));
    assert_eq!((of("1: out").first, of("1: out").last), (4, 6));
    let plan = Planner::new().alignment(ALIGNMENT).plan(&sequence).unwrap();
    assert_eq!(execute(&sequence, &plan), []);
}

#[test]
fn names_are_unique_and_unused_tensors_take_room() {
    let mut main = chain();
    main.tensors[3].name = "a";
    main.tensors[4].name = "";
    main.tensors.push(tensor("idle", INT8, &[999]));
    main.tensors.push(Tensor { is_variable: true, ..tensor("state", INT8, &[10]) });
    let Survey { sequence, arena, .. } = surveyed(&model(&[main]));
    let names: Vec<_> = arena.buffers.iter().map(|buffer| &*buffer.name).collect();
    assert_eq!(names, ["x", "a", "a #3", "tensor 4", "d", "y", "idle"]);
    assert_eq!((arena.variables, arena.buffers[6].first, arena.buffers[6].last), (10, 0, 0));
    let plan = Planner::new().alignment(ALIGNMENT).plan(&sequence).unwrap();
    assert_eq!((plan.pool_size(), plan.proven_optimal()), (1008, true));
}

#[test]
fn scratch_memory_can_be_stated() {
    let scratch = |text: &str| ImportOptions::default().read_scratch(text).unwrap();
    let bytes = model(&[chain()]);
    let sizes = |text: &str| -> Vec<(String, u64)> {
        let arena = survey(&bytes, &scratch(text)).unwrap().arena;
        let scratch = arena.buffers.iter().filter(|buffer| buffer.tensor.is_none());
        scratch.map(|buffer| (buffer.name.to_string(), buffer.size)).collect()
    };
    assert_eq!(sizes(""), []);
    let expected = [("CONV_2D 0 scratch 0", 100), ("RELU 1 scratch 0", 8), ("RELU 1 scratch 1", 9)];
    let expected = expected.map(|(name, size)| (name.to_owned(), size));
    assert_eq!(sizes("CONV_2D 100\n1 8 9"), expected);
    let error = |text: &str| survey(&bytes, &scratch(text)).unwrap_err().to_string();
    assert_eq!(
        error("7 1"),
        "subgraph 0, operator 7: sizes of scratch memory are given for it, but it does not exist"
    );
    assert!(error("TANH 1").starts_with("kind 'TANH': sizes of scratch memory are given for it"));
    let malformed =
        |text: &str| ImportOptions::default().read_scratch(text).unwrap_err().to_string();
    assert!(
        malformed("\nCONV_2D").starts_with("line 2: 'CONV_2D' is not an operator with the bytes")
    );
    assert_eq!(malformed("4 1\n4 2"), "line 2: '4' has a line already; keep one of the two");
}

/// The scratch buffers of one convolution or the like, computed by hand from CMSIS-NN's sources.
#[rstest]
#[case::conv_3x3(KernelLibrary::CmsisNn, code::CONV_2D, [[1, 8, 8, 3], [4, 3, 3, 3], [1, 6, 6, 4]], convolution(), vec![4 * 28])]
#[case::conv_3x3_mve(KernelLibrary::CmsisNnMve, code::CONV_2D, [[1, 8, 8, 3], [4, 3, 3, 3], [1, 6, 6, 4]], convolution(), vec![4 * 32])]
#[case::conv_1x1(KernelLibrary::CmsisNn, code::CONV_2D, [[1, 8, 8, 4], [4, 1, 1, 4], [1, 8, 8, 4]], convolution(), vec![])]
#[case::conv_reference(KernelLibrary::Reference, code::CONV_2D, [[1, 8, 8, 3], [4, 3, 3, 3], [1, 6, 6, 4]], convolution(), vec![])]
#[case::depthwise_5x5_dsp(KernelLibrary::CmsisNnDsp, 4, [[1, 8, 8, 4], [1, 5, 5, 4], [1, 4, 4, 4]], convolution(), vec![2 * 100])]
#[case::depthwise_3x3_dsp(KernelLibrary::CmsisNnDsp, 4, [[1, 8, 8, 4], [1, 3, 3, 4], [1, 6, 6, 4]], convolution(), vec![])]
#[case::depthwise_5x5(KernelLibrary::CmsisNn, 4, [[1, 8, 8, 4], [1, 5, 5, 4], [1, 4, 4, 4]], convolution(), vec![])]
#[case::depthwise_5x5_mve(KernelLibrary::CmsisNnMve, 4, [[1, 8, 8, 4], [1, 5, 5, 4], [1, 4, 4, 4]], convolution(), vec![4 * 124 * 25])]
#[case::average_dsp(KernelLibrary::CmsisNnDsp, 1, [[1, 8, 8, 4], [1, 1, 1, 1], [1, 4, 4, 4]], convolution(), vec![16])]
fn kernels_take_scratch_memory(
    #[case] kernels: KernelLibrary,
    #[case] code: i32,
    #[case] shapes: [[i32; 4]; 3],
    #[case] options: Vec<Field>,
    #[case] expected: Vec<u64>,
) {
    let [input, weights, output] = shapes;
    let weights = Tensor { data: vec![1; 4], ..tensor("w", INT8, &weights) };
    let tensors = vec![tensor("x", INT8, &input), weights, tensor("y", INT8, &output)];
    let bytes = model(&[single(code, tensors, options)]);
    let options = ImportOptions::default().library(kernels);
    let arena = survey(&bytes, &options).unwrap().arena;
    let scratch = arena.buffers.iter().filter(|buffer| buffer.tensor.is_none());
    assert_eq!(scratch.map(|buffer| buffer.size).collect::<Vec<_>>(), expected);
}

/// The least distance of a convolution or pool, computed by a program that walks over all reads and writes,
/// rounded up to multiples of 16.
#[rstest]
#[case::conv_3x3(KernelLibrary::Reference, code::CONV_2D, [16, 8, 3, 14, 8], 1, "over x from 16 below")]
#[case::conv_3x3_padded(KernelLibrary::Reference, code::CONV_2D, [16, 8, 3, 16, 8], 0, "over x from 144 below")]
#[case::conv_1x1(KernelLibrary::Reference, code::CONV_2D, [16, 32, 1, 16, 8], 1, "over x from 16 below")]
#[case::depthwise(KernelLibrary::Reference, 4, [16, 8, 3, 14, 8], 1, "over x")]
#[case::depthwise_padded(KernelLibrary::Reference, 4, [16, 8, 3, 16, 8], 0, "over x from 144 below")]
#[case::depthwise_twice_as_many(KernelLibrary::Reference, 4, [16, 8, 3, 14, 16], 1, "over x from 1360 below")]
#[case::conv_3x3_cmsis(KernelLibrary::CmsisNn, code::CONV_2D, [16, 8, 3, 14, 8], 1, "over x from 16 below")]
#[case::conv_1x1_cmsis(KernelLibrary::CmsisNn, code::CONV_2D, [16, 32, 1, 16, 8], 1, "")]
#[case::conv_1x1_dsp(KernelLibrary::CmsisNnDsp, code::CONV_2D, [16, 32, 1, 16, 8], 1, "")]
#[case::depthwise_cmsis(KernelLibrary::CmsisNn, 4, [16, 8, 3, 16, 8], 0, "over x from 144 below")]
#[case::conv_mve(KernelLibrary::CmsisNnMve, code::CONV_2D, [16, 8, 3, 14, 8], 1, "")]
#[case::depthwise_mve(KernelLibrary::CmsisNnMve, 4, [16, 8, 3, 14, 8], 1, "")]
fn kernels_allow_overlaps(
    #[case] kernels: KernelLibrary,
    #[case] code: i32,
    #[case] sizes: [i32; 5],
    #[case] padding: u8,
    #[case] expected: &str,
) {
    let [size, channels, kernel, made, outputs] = sizes;
    let weights =
        if code == 4 { [1, kernel, kernel, outputs] } else { [outputs, kernel, kernel, channels] };
    let weights = Tensor { data: vec![1; 4], ..tensor("w", INT8, &weights) };
    let output = tensor("y", INT8, &[1, made, made, outputs]);
    let tensors = vec![tensor("x", INT8, &[1, size, size, channels]), weights, output];
    let mut options = convolution();
    options[0] = Field::Byte(padding);
    let bytes = model(&[single(code, tensors, options)]);
    let found = |overlap: bool| {
        let options = ImportOptions::default().library(kernels).overlap(overlap);
        let sequence = read(&bytes, &options).unwrap();
        let shared = shares(&sequence, "y");
        let plan = Planner::new().alignment(ALIGNMENT).plan(&sequence).unwrap();
        assert_eq!((verify(&sequence, &plan), execute(&sequence, &plan)), (vec![], vec![]));
        shared
    };
    assert_eq!(found(true), expected);
    assert_eq!(found(false), "");
}

#[rstest]
#[case::average(KernelLibrary::Reference, 1, "over x")]
#[case::maximum(KernelLibrary::Reference, 17, "over x")]
#[case::maximum_in_the_output(KernelLibrary::CmsisNn, 17, "over x from 16 below")]
#[case::vectors(KernelLibrary::CmsisNnMve, 17, "")]
fn pools_overlap(#[case] kernels: KernelLibrary, #[case] code: i32, #[case] expected: &str) {
    let tensors = vec![tensor("x", INT8, &[1, 16, 16, 8]), tensor("y", INT8, &[1, 8, 8, 8])];
    let int = Field::Int;
    let options = vec![Field::Byte(1), int(2), int(2), int(2), int(2)];
    let bytes = model(&[single(code, tensors, options)]);
    let options = ImportOptions::default().library(kernels).overlap(true);
    let sequence = read(&bytes, &options).unwrap();
    assert_eq!(shares(&sequence, "y"), expected);
}

fn changed(change: impl FnOnce(&mut Subgraph)) -> Vec<u8> {
    let mut main = chain();
    change(&mut main);
    model(&[main])
}

#[rstest]
#[case(changed(|main| main.tensors[2].shape[0] = -1), "subgraph 0, tensor 2 ('a'): a dimension is -1, which leaves its size open; convert the model with fixed shapes")]
#[case(changed(|main| main.tensors[2].element = STRING), "subgraph 0, tensor 2 ('a'): its elements, STRING, have no size in bytes")]
#[case(changed(|main| main.tensors[2].shape = vec![i32::MAX; 9]), "subgraph 0, tensor 2 ('a'): its size does not fit in 64 bits")]
#[case(changed(|main| main.operators[1].1 = vec![9]), "subgraph 0, operator 1 (RELU): there is no tensor 9")]
#[case(changed(|main| main.operators[1].2 = vec![-1]), "subgraph 0, operator 1 (RELU): there is no tensor -1")]
#[case(changed(|main| main.operators[1].1 = vec![4]), "subgraph 0, operator 1 (RELU): it reads 'c', which no earlier operator makes")]
#[case(changed(|main| main.operators[1].2 = vec![2]), "subgraph 0, operator 1 (RELU): 'a' is made twice, or is an input")]
#[case(changed(|main| main.inputs = vec![70]), "subgraph 0, its list of inputs: there is no tensor 70")]
#[case(changed(|main| main.operators.truncate(2)), "subgraph 0, tensor 6 ('y'): it is an output, but no operator makes it")]
#[case(changed(|main| main.operators[1].0 = code::CALL_ONCE), "subgraph 0: it calls itself, or calls are nested more than 64 deep")]
#[case(changed(|main| { main.operators[1].0 = code::IF; main.operators[1].3 = vec![Field::Int(7)]; }), "subgraph 0, operator 1 (IF): it calls subgraph 7, which does not exist")]
#[case(model(&[]), "the model: it has no subgraph")]
#[case(file(&[]), "the model: it has no subgraph")]
#[case(b"TFL3".to_vec(), "this is not a TensorFlow Lite model: bytes 4 to 7 are not 'TFL3'")]
fn a_model_that_makes_no_sense_is_refused(#[case] bytes: Vec<u8>, #[case] message: &str) {
    let error = read(&bytes, &ImportOptions::default()).unwrap_err().to_string();
    assert!(error.starts_with(message), "{error}");
}

/// Reads bytes; what can be read is planned and right.
fn is_survived(bytes: &[u8]) -> bool {
    let Ok(survey) = survey(bytes, &ImportOptions::default()) else { return false };
    // The sum of the sizes may exceed 64 bits.
    if let Ok(plan) = Planner::new().strategy(memplan::Strategy::Naive).plan(&survey.sequence) {
        assert_eq!(execute(&survey.sequence, &plan), []);
    }
    true
}

#[test]
fn truncated_and_damaged_files_do_not_panic() {
    let bytes = model(&branches());
    assert!(is_survived(&bytes));
    for end in 0..bytes.len() {
        // Bytes that the model does not refer to may be missing.
        is_survived(&bytes[..end]);
    }
    assert!(!is_survived(&bytes[..bytes.len() / 2]));
    let mut survived = 0;
    for at in 0..bytes.len() {
        for flip in [0x01, 0x80, 0xff] {
            let mut damaged = bytes.clone();
            damaged[at] ^= flip;
            survived += usize::from(is_survived(&damaged));
        }
        for word in [0_u32, u32::MAX, 1 << 31, 0x7fff_ffff] {
            let mut damaged = bytes.clone();
            let end = damaged.len().min(at + 4);
            damaged[at..end].copy_from_slice(&word.to_le_bytes()[..end - at]);
            survived += usize::from(is_survived(&damaged));
        }
    }
    assert!(survived > 100, "{survived}");
}

/// References to one table from many places describe more than the file holds.
#[test]
fn a_file_cannot_describe_much_more_than_it_holds() {
    let tensor = vec![Field::Ints(vec![1; 10_000]), Field::Byte(INT8), Field::Int(0)];
    let subgraph = vec![Field::Repeated(10_000, tensor)];
    let root = [Field::Int(3), Field::Absent, Field::Tables(vec![subgraph])];
    let error = read(&file(&root), &ImportOptions::default()).unwrap_err();
    assert_eq!(error, TfliteError::TooMuch);
}

#[test]
fn calls_without_end_are_refused() {
    // Each subgraph calls the next one twice.
    let call = |next: i32| Subgraph {
        operators: vec![(code::IF, vec![], vec![], vec![Field::Int(next), Field::Int(next)])],
        ..Subgraph::default()
    };
    let mut subgraphs: Vec<_> = (1..40).map(call).collect();
    subgraphs.push(Subgraph::default());
    let error = read(&model(&subgraphs), &ImportOptions::default()).unwrap_err().to_string();
    assert!(error.contains("called so often that the walk over them does not end"), "{error}");
}

#[test]
fn external_buffers_are_refused() {
    let mut fields = model_fields(&[chain()], &[]);
    fields.resize(9, Field::Absent);
    fields.push(Field::Tables(vec![vec![]]));
    let error = read(&file(&fields), &ImportOptions::default()).unwrap_err().to_string();
    let expected =
        "the model: its data lies outside the tables of the file; store the model in one";
    assert!(error.starts_with(expected), "{error}");
}

/// A model that adds to a variable in each run; `CALL_ONCE` sets it to zero before the first. In the
/// runtime, the head takes as many bytes.
#[test]
fn handles_of_variables_take_no_memory() {
    let bytes = std::fs::read("tests/models/variable_f32.tflite").unwrap();
    let Survey { sequence, arena, .. } = surveyed(&bytes);
    let names: Vec<_> = arena.buffers.iter().map(|buffer| &*buffer.name).collect();
    assert_eq!((names, arena.tensors), (vec!["x", "v", "a", "b", "y"], 8));
    assert_eq!(arena.own_size(), Ok(768));
    let plan = Planner::new().alignment(ALIGNMENT).plan(&sequence).unwrap();
    assert_eq!((plan.pool_size(), plan.proven_optimal()), (512, true));
    assert_eq!(execute(&sequence, &plan), []);
}
