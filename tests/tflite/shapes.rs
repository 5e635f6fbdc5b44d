//! Shapes of TensorFlow Lite models: they follow from the inputs, whatever the file states.

use memplan::{
    Planner,
    import::{
        ImportOptions,
        tflite::{Runtime, Survey, TfliteError, survey},
    },
    sequence::SizeBasis,
    verify::verify,
};
use rstest::rstest;

use crate::flatbuffer::{
    FLOAT32, Field, INT32, Subgraph, Tensor, code, constant, model, open, tensor,
};
use Field::{Absent, Byte, Int, Ints};

fn interpreter() -> ImportOptions {
    ImportOptions::default().runtime(Runtime::Interpreter)
}

fn micro() -> ImportOptions {
    ImportOptions::default()
}

/// The shape of a tensor and the basis of its size.
fn shape_of(survey: &Survey, name: &str) -> (Vec<u64>, SizeBasis) {
    let sequence = &survey.sequence;
    let tensor = sequence.tensor(sequence.tensor_id(name).expect(name));
    (tensor.shape().expect(name).to_vec(), tensor.basis)
}

mod kind {
    pub const BATCH_MATMUL: i32 = 126;
    pub const CONCATENATION: i32 = 2;
    pub const FULLY_CONNECTED: i32 = 9;
    pub const NEG: i32 = 59;
    pub const PACK: i32 = 83;
    pub const SHAPE: i32 = 77;
    pub const SUB: i32 = 41;
    pub const TRANSPOSE: i32 = 39;
    pub const WHERE: i32 = 109;
    pub const WHILE: i32 = 119;
}

fn scalar(name: &'static str, number: i32) -> Tensor {
    Tensor { shape: vec![], ..constant(name, &[number]) }
}

fn float(name: &'static str, shape: &[i32]) -> Tensor {
    tensor(name, FLOAT32, shape)
}

/// Weights, whose data is too short, which nobody reads here.
fn weights(shape: &[i32]) -> Tensor {
    Tensor { data: vec![0; 4], ..float("w", shape) }
}

/// One operator, whose output the file states wrongly.
#[rstest]
#[case::add(code::ADD, vec![float("x", &[4, 1, 3]), float("z", &[5, 1])], vec![], &[4, 5, 3])]
#[case::convolution_same(code::CONV_2D, vec![float("x", &[1, 9, 8, 3]), weights(&[7, 3, 3, 3])], vec![Byte(0), Int(2), Int(2)], &[1, 5, 4, 7])]
#[case::convolution_valid(code::CONV_2D, vec![float("x", &[1, 9, 8, 3]), weights(&[7, 3, 3, 3])], vec![Byte(1), Int(2), Int(2)], &[1, 4, 3, 7])]
#[case::convolution_dilated(code::CONV_2D, vec![float("x", &[1, 9, 9, 3]), weights(&[7, 3, 3, 3])], vec![Byte(1), Int(1), Int(1), Byte(0), Int(2), Int(3)], &[1, 3, 5, 7])]
#[case::depthwise(4, vec![float("x", &[1, 9, 9, 3]), weights(&[1, 3, 3, 6])], vec![Byte(1), Int(1), Int(2), Int(2)], &[1, 4, 7, 6])]
#[case::pool(17, vec![float("x", &[1, 9, 8, 3])], vec![Byte(1), Int(2), Int(3), Int(2), Int(3)], &[1, 3, 4, 3])]
#[case::transposed(67, vec![constant("to", &[1, 4, 5, 6]), weights(&[6, 2, 2, 3]), float("x", &[1, 2, 2, 3])], vec![Byte(0), Int(2), Int(2)], &[1, 4, 5, 6])]
#[case::fully_connected(kind::FULLY_CONNECTED, vec![float("x", &[2, 3, 4]), weights(&[5, 4])], vec![], &[6, 5])]
#[case::fully_connected_kept(kind::FULLY_CONNECTED, vec![float("x", &[2, 3, 4]), weights(&[5, 4])], vec![Byte(0), Byte(0), Byte(1)], &[2, 3, 5])]
#[case::matmul(kind::BATCH_MATMUL, vec![float("x", &[3, 1, 2, 4]), float("z", &[5, 4, 6])], vec![], &[3, 5, 2, 6])]
#[case::matmul_turned(kind::BATCH_MATMUL, vec![float("x", &[4, 2]), float("z", &[6, 4])], vec![Byte(1), Byte(1)], &[2, 6])]
#[case::concatenation(kind::CONCATENATION, vec![float("x", &[2, 3]), float("z", &[2, 5])], vec![Int(-1)], &[2, 8])]
#[case::reshape(code::RESHAPE, vec![float("x", &[2, 3, 4]), constant("to", &[-1, 6])], vec![], &[4, 6])]
#[case::reshape_by_option(code::RESHAPE, vec![float("x", &[2, 3, 4])], vec![Ints(vec![3, -1])], &[3, 8])]
#[case::squeeze(43, vec![float("x", &[1, 3, 1])], vec![Ints(vec![-1])], &[1, 3])]
#[case::expand_dims(70, vec![float("x", &[2, 3]), scalar("axis", -1)], vec![], &[2, 3, 1])]
#[case::pack(kind::PACK, vec![float("x", &[2, 3]), float("z", &[2, 3])], vec![Int(2), Int(1)], &[2, 2, 3])]
#[case::transpose(kind::TRANSPOSE, vec![float("x", &[2, 3, 4]), constant("order", &[2, 0, 1])], vec![], &[4, 2, 3])]
#[case::pad(34, vec![float("x", &[2, 3]), constant("by", &[1, 0, 2, 2])], vec![], &[3, 7])]
#[case::slice(65, vec![float("x", &[6, 7]), constant("at", &[1, 2]), constant("size", &[3, -1])], vec![], &[3, 5])]
#[case::strided(code::STRIDED_SLICE, vec![float("x", &[9, 5, 4]), constant("a", &[-1, 0]), constant("b", &[0, 9]), constant("by", &[-3, 2])], vec![], &[3, 3, 4])]
#[case::strided_masks(code::STRIDED_SLICE, vec![float("x", &[9, 5, 4]), constant("a", &[2, 1, 0]), constant("b", &[3, 0, 0]), constant("by", &[1, 1, 1])], vec![Int(0), Int(2), Int(0), Int(4), Int(1)], &[4, 1, 4])]
#[case::strided_ellipsis(code::STRIDED_SLICE, vec![float("x", &[9, 5, 4]), constant("a", &[0, 1]), constant("b", &[0, 2]), constant("by", &[1, 1])], vec![Int(0), Int(0), Int(1)], &[9, 5, 1])]
#[case::gather(36, vec![float("x", &[2, 9, 4]), tensor("at", INT32, &[5, 6])], vec![Int(1)], &[2, 5, 6, 4])]
#[case::gather_batches(36, vec![float("x", &[2, 9, 4]), tensor("at", INT32, &[2, 6])], vec![Int(1), Int(1)], &[2, 6, 4])]
#[case::gather_nd(107, vec![float("x", &[2, 9, 4]), tensor("at", INT32, &[5, 2])], vec![], &[5, 4])]
#[case::mean(40, vec![float("x", &[2, 3, 4]), constant("axes", &[-1, 0])], vec![], &[3])]
#[case::mean_kept(40, vec![float("x", &[2, 3, 4]), constant("axes", &[1])], vec![Byte(1)], &[2, 1, 4])]
#[case::arg_max(56, vec![float("x", &[2, 3, 4]), scalar("axis", 1)], vec![], &[2, 4])]
#[case::one_hot(85, vec![tensor("x", INT32, &[2, 3]), scalar("depth", 9), scalar("on", 1), scalar("off", 0)], vec![Int(-1)], &[2, 3, 9])]
#[case::resize(23, vec![float("x", &[1, 4, 4, 3]), constant("to", &[6, 9])], vec![], &[1, 6, 9, 3])]
#[case::depth_to_space(5, vec![float("x", &[1, 4, 5, 12])], vec![Int(2)], &[1, 8, 10, 3])]
#[case::space_to_depth(26, vec![float("x", &[1, 4, 6, 3])], vec![Int(2)], &[1, 2, 3, 12])]
#[case::space_to_batch(38, vec![float("x", &[1, 5, 3]), constant("block", &[2]), constant("by", &[0, 1])], vec![], &[2, 3, 3])]
#[case::batch_to_space(37, vec![float("x", &[2, 3, 3]), constant("block", &[2]), constant("by", &[0, 1])], vec![], &[1, 5, 3])]
#[case::tile(69, vec![float("x", &[2, 3]), constant("times", &[2, 3])], vec![], &[4, 9])]
#[case::fill(94, vec![constant("to", &[2, 3]), scalar("v", 1)], vec![], &[2, 3])]
#[case::range(96, vec![scalar("a", 2), scalar("b", 9), scalar("by", 3)], vec![], &[3])]
#[case::top_k(48, vec![float("x", &[2, 9]), scalar("k", 4)], vec![], &[2, 4])]
#[case::rfft(131, vec![float("x", &[2, 1, 16]), constant("length", &[1, 16])], vec![], &[2, 1, 9])]
#[case::broadcast_to(130, vec![float("x", &[3, 1]), constant("to", &[2, 3, 4])], vec![], &[2, 3, 4])]
fn an_operator_makes_its_shape(
    #[case] code: i32,
    #[case] mut tensors: Vec<Tensor>,
    #[case] options: Vec<Field>,
    #[case] expected: &[u64],
) {
    let last = i32::try_from(tensors.len()).unwrap();
    let supplied = |at: &i32| tensors[usize::try_from(*at).unwrap()].data.is_empty();
    let inputs = (0..last).filter(supplied).collect();
    tensors.push(float("y", &[1, 1, 1]));
    let operators = vec![(code, (0..last).collect(), vec![last], options)];
    let bytes = model(&[Subgraph { inputs, outputs: vec![last], operators, tensors }]);
    let found = survey(&bytes, &interpreter()).unwrap();
    assert_eq!(shape_of(&found, "y"), (expected.to_vec(), SizeBasis::Exact));
    // The runtime of microcontrollers takes the shape in the file.
    let error = survey(&bytes, &micro()).unwrap_err().to_string();
    assert!(error.contains("the file states the shape 1x1x1"), "{error}");
}

/// A slice whose end is 24 less than the length of the input, in a file that states placeholders.
fn sliced(signature: &[i32]) -> Subgraph {
    Subgraph {
        tensors: vec![
            float("x", &[1, 1024]),
            tensor("shape", INT32, &[2]),
            tensor("end", INT32, &[2]),
            constant("begin", &[0, 0]),
            constant("strides", &[1, 1]),
            constant("less", &[0, 24]),
            open("y", &[1, 1], signature),
            open("z", &[1, 1], signature),
        ],
        inputs: vec![0],
        outputs: vec![7],
        operators: vec![
            (kind::SHAPE, vec![0], vec![1], vec![Byte(2)]),
            (kind::SUB, vec![1, 5], vec![2], vec![]),
            (code::STRIDED_SLICE, vec![0, 3, 2, 4], vec![6], vec![]),
            (kind::NEG, vec![6], vec![7], vec![]),
        ],
    }
}

#[rstest]
#[case(&[-1, -1])]
#[case(&[])]
fn placeholders_are_not_believed(#[case] signature: &[i32]) {
    let bytes = model(&[sliced(signature)]);
    let found = survey(&bytes, &interpreter()).unwrap();
    for name in ["y", "z"] {
        assert_eq!(shape_of(&found, name), (vec![1, 1000], SizeBasis::Exact));
    }
    let error = survey(&bytes, &micro()).unwrap_err().to_string();
    assert!(error.contains("('y'): the file states the shape 1x1, but its operator makes 1x1000"));
    assert!(error.ends_with("--runtime tflite"), "{error}");
}

/// Measured in the interpreter after a run: the slice lies on the heap, as does the shape, and the tensor
/// after the slice in the arena, which has grown.
#[test]
fn a_tensor_whose_size_its_operator_finds_lies_on_the_heap() {
    let arena = survey(&model(&[sliced(&[-1, -1])]), &interpreter()).unwrap().arena;
    let names: Vec<_> = arena.buffers.iter().map(|buffer| &*buffer.name).collect();
    assert_eq!(names, ["x", "end", "z"]);
    assert_eq!((arena.heap, arena.persistent), (4000 + 8, 0));
    assert_eq!(arena.own_size(), Ok(4096 + 4032));
}

/// Measured in the interpreter after a run: the reshaped slice lies on the heap as well, but the interpreter has placed
/// it in the arena before, beside the tensor behind it.
#[test]
fn a_reshaped_tensor_of_the_heap_keeps_room_in_the_arena() {
    let mut main = sliced(&[-1, -1]);
    main.tensors.push(open("r", &[1, 1], &[-1, -1]));
    main.operators.pop();
    main.operators.push((code::RESHAPE, vec![6, 2], vec![8], vec![]));
    main.operators.push((kind::NEG, vec![8], vec![7], vec![]));
    let arena = survey(&model(&[main]), &interpreter()).unwrap().arena;
    let names: Vec<_> = arena.buffers.iter().map(|buffer| &*buffer.name).collect();
    assert_eq!(names, ["x", "end", "z", "r"]);
    assert_eq!((arena.heap, arena.own_size()), (2 * 4000 + 8, Ok(4096 + 64 + 2 * 4032)));
}

/// A shape that follows from shapes: `kind` of the shape of x and a constant.
fn reshaped(kind: i32, number: i32) -> Survey {
    let main = Subgraph {
        tensors: vec![
            float("x", &[1, 1024]),
            float("a", &[1, 1024]),
            tensor("shape", INT32, &[2]),
            constant("number", &[number, number]),
            tensor("asked", INT32, &[2]),
            float("r", &[1, 1024]),
            float("y", &[1, 1024]),
        ],
        inputs: vec![0],
        outputs: vec![6],
        operators: vec![
            (kind::NEG, vec![0], vec![1], vec![]),
            (kind::SHAPE, vec![0], vec![2], vec![Byte(2)]),
            (kind, vec![2, 3], vec![4], vec![]),
            (code::RESHAPE, vec![1, 4], vec![5], vec![]),
            (kind::NEG, vec![5], vec![6], vec![]),
        ],
    };
    survey(&model(&[main]), &interpreter()).unwrap()
}

/// As the interpreter's kernels do: a product of known shapes is computed before the run. Otherwise the shape is
/// found in a run, but the bytes are those of the input anyway.
#[rstest]
#[case((code::MUL, 1), &["x", "a", "r", "y"], 8 + 8, &[])]
#[case((kind::SUB, 0), &["x", "a", "asked", "r", "y"], 8, &[4])]
fn a_computed_shape_leaves_the_bytes_where_they_are(
    #[case] (kind, number): (i32, i32),
    #[case] names: &[&str],
    #[case] heap: u64,
    #[case] stops: &[u64],
) {
    let arena = reshaped(kind, number).arena;
    let found: Vec<_> = arena.buffers.iter().map(|buffer| &*buffer.name).collect();
    assert_eq!((&*found, arena.heap, &*arena.stops), (names, heap, stops));
    let shown = arena.buffers.iter().find(|buffer| &*buffer.name == "r").unwrap();
    assert_eq!(shown.shares.map(|at| &*arena.buffers[at].name), Some("a"));
}

/// Weights of 16 bits are widened when the model is loaded, and kept.
#[test]
fn constants_that_are_widened_are_persistent() {
    let half = |name| Tensor { element: 1, data: vec![0; 2 * 100], ..float(name, &[10, 10]) };
    let wide = |name| float(name, &[10, 10]);
    let main = Subgraph {
        tensors: vec![
            float("x", &[1, 10]),
            half("h"),
            wide("w"),
            float("y", &[1, 10]),
            half("g"),
            wide("v"),
            float("z", &[1, 10]),
        ],
        inputs: vec![0],
        outputs: vec![6],
        operators: vec![
            (6, vec![1], vec![2], vec![]),
            (kind::FULLY_CONNECTED, vec![0, 2, -1], vec![3], vec![]),
            (6, vec![4], vec![5], vec![]),
            (kind::FULLY_CONNECTED, vec![3, 5, -1], vec![6], vec![]),
        ],
    };
    let found = survey(&model(&[main]), &interpreter()).unwrap();
    let names: Vec<_> = found.arena.buffers.iter().map(|buffer| &*buffer.name).collect();
    assert_eq!(names, ["x", "y", "z"]);
    assert_eq!((found.arena.heap, found.arena.persistent), (0, 2 * 448));
    let plan = Planner::new().alignment(64).plan(&found.sequence).unwrap();
    assert_eq!((plan.pool_size(), verify(&found.sequence, &plan)), (192, vec![]));
}

/// The end of the slice is an input of the model.
fn cut_at_run_time() -> Vec<u8> {
    let mut main = sliced(&[-1, -1]);
    main.operators.drain(..2);
    main.inputs.push(2);
    model(&[main])
}

#[test]
fn a_shape_that_values_decide_is_stated_or_refused() {
    let bytes = cut_at_run_time();
    for options in [interpreter(), micro()] {
        let error = survey(&bytes, &options).unwrap_err();
        let TfliteError::OpenSizes { open } = &error else { panic!("{error}") };
        // The tensor after it follows from it.
        let sizes: Vec<_> = open.iter().map(|open| (&*open.tensor, open.axis)).collect();
        assert_eq!(sizes, [("y", Some(0)), ("y", Some(1))]);
        assert!(open.iter().all(|open| open.shape == Some(vec![None, None])));
        let message = error.to_string();
        assert!(
            message.contains("'y', of subgraph 0, operator 0 (STRIDED_SLICE): ?x?"),
            "{message}"
        );
        assert!(message.contains("--shape"), "{message}");
    }
    let given = |shape: &[Option<u64>]| survey(&bytes, &interpreter().shape("y", shape));
    let found = given(&[Some(1), Some(900)]).unwrap();
    assert_eq!(shape_of(&found, "z"), (vec![1, 900], SizeBasis::AtMost));
    assert_eq!((shape_of(&found, "y").0, found.arena.heap), (vec![1, 900], 3600));
    let error = given(&[Some(1), None]).unwrap_err().to_string();
    assert!(error.ends_with("the shape given does not fit: it has ?x?"), "{error}");
    let unknown = survey(&bytes, &interpreter().shape("nobody", [Some(1)])).unwrap_err();
    assert_eq!(unknown.to_string(), "--shape nobody: the model has no tensor of this name");
}

#[test]
fn a_stated_shape_cannot_contradict_the_operator() {
    let options = interpreter().shape("y", [Some(1), Some(999)]);
    let error = survey(&model(&[sliced(&[-1, -1])]), &options).unwrap_err().to_string();
    assert!(error.ends_with("the shape given does not fit: it has 1x1000"), "{error}");
}

/// A model of one element-wise operator with an open input.
fn open_input(shape: &[i32], signature: &[i32]) -> Vec<u8> {
    let tensors = vec![open("x", shape, signature), open("y", shape, signature)];
    let operators = vec![(kind::NEG, vec![0], vec![1], vec![])];
    model(&[Subgraph { tensors, inputs: vec![0], outputs: vec![1], operators }])
}

#[test]
fn a_batch_of_one_is_taken_and_another_one_stated() {
    let bytes = open_input(&[1, 8], &[-1, 8]);
    for options in [micro(), interpreter()] {
        let found = survey(&bytes, &options).unwrap();
        assert_eq!(shape_of(&found, "y"), (vec![1, 8], SizeBasis::Exact));
        assert_eq!(found.taken_inputs, ["'x' as 1x8"]);
    }
    for options in [interpreter().shape("x", [Some(5), None]), interpreter().default_dim(5)] {
        let found = survey(&bytes, &options).unwrap();
        assert_eq!(shape_of(&found, "y").0, [5, 8]);
        assert_eq!(found.taken_inputs, [""; 0]);
    }
    let fixed = survey(&bytes, &interpreter().shape("x", [Some(5), Some(9)])).unwrap_err();
    assert!(fixed.to_string().ends_with("does not fit the file, which has ?x8"), "{fixed}");
    let resized = survey(&bytes, &micro().shape("x", [Some(5), None])).unwrap_err().to_string();
    assert!(resized.contains("TensorFlow Lite Micro runs it with the shape in the file, 1x8"));
}

#[rstest]
#[case(&[1, 1], &[-1, -1])]
#[case(&[1], &[-1])]
fn an_open_length_of_one_is_a_placeholder(#[case] shape: &[i32], #[case] signature: &[i32]) {
    let bytes = open_input(shape, signature);
    let error = survey(&bytes, &interpreter()).unwrap_err().to_string();
    assert!(error.contains("'x', an input: ?"), "{error}");
    // It may be meant.
    let ones: Vec<Option<u64>> = shape.iter().map(|_| Some(1)).collect();
    assert!(survey(&bytes, &micro().shape("x", ones)).is_ok());
}

#[test]
fn places_of_a_condition_are_bounded() {
    let tensors = vec![
        Tensor { element: 6, ..float("x", &[3, 4]) },
        Tensor { element: 4, ..open("y", &[1, 2], &[-1, 2]) },
        Tensor { element: 4, ..open("z", &[1, 2], &[-1, 2]) },
    ];
    let operators =
        vec![(kind::WHERE, vec![0], vec![1], vec![]), (kind::NEG, vec![1], vec![2], vec![])];
    let bytes = model(&[Subgraph { tensors, inputs: vec![0], outputs: vec![2], operators }]);
    let found = survey(&bytes, &interpreter()).unwrap();
    assert_eq!(shape_of(&found, "z"), (vec![12, 2], SizeBasis::AtMost));
    assert_eq!((shape_of(&found, "y").0, found.arena.heap), (vec![12, 2], 12 * 2 * 8));
}

#[test]
fn sizes_that_exclude_each_other_are_an_error() {
    let tensors = vec![open("x", &[1, 3], &[-1, 3]), float("z", &[4]), float("y", &[1, 4])];
    let operators = vec![(code::ADD, vec![0, 1], vec![2], vec![])];
    let bytes = model(&[Subgraph { tensors, inputs: vec![0, 1], outputs: vec![2], operators }]);
    let error = survey(&bytes, &micro()).unwrap_err().to_string();
    let expected = "subgraph 0, operator 0 (ADD): the shapes 1x3 and 4 do not broadcast; the file leaves \
        sizes open, and they are taken as it states them: 'x' as 1x3";
    assert_eq!(error, expected);
}

/// A loop keeps the shapes of its inputs, and its subgraphs have them as well.
#[test]
fn subgraphs_get_the_shapes_of_their_caller() {
    let main = Subgraph {
        tensors: vec![
            float("x", &[1, 8]),
            constant("order", &[1, 0]),
            open("t", &[1, 1], &[-1, -1]),
            open("y", &[1, 1], &[-1, -1]),
        ],
        inputs: vec![0],
        outputs: vec![3],
        operators: vec![
            (kind::TRANSPOSE, vec![0, 1], vec![2], vec![]),
            (kind::WHILE, vec![2], vec![3], vec![Int(1), Int(2)]),
        ],
    };
    let condition = Subgraph {
        tensors: vec![open("a", &[1, 1], &[-1, -1]), Tensor { element: 6, ..float("go", &[]) }],
        inputs: vec![0],
        outputs: vec![1],
        operators: vec![(72, vec![0, 0], vec![1], vec![])],
    };
    let body = Subgraph {
        tensors: vec![open("a", &[1, 1], &[-1, -1]), open("b", &[1, 1], &[-1, -1])],
        inputs: vec![0],
        outputs: vec![1],
        operators: vec![(kind::NEG, vec![0], vec![1], vec![])],
    };
    let found = survey(&model(&[main, condition, body]), &interpreter()).unwrap();
    assert_eq!(shape_of(&found, "y"), (vec![8, 1], SizeBasis::Exact));
    assert!(found.arena.called >= 2 * 32, "{}", found.arena.called);
}

/// Nothing gives the shape of an operator that memplan does not know; the file is the only source.
#[rstest]
#[case(&[], true)]
#[case(&[-1, 6], true)]
#[case(&[1, -1], false)]
fn unknown_operators_are_as_the_file_states(#[case] signature: &[i32], #[case] is_taken: bool) {
    let tensors = vec![float("x", &[1, 8]), open("y", &[1, 6], signature)];
    let operators = vec![(code::CUSTOM, vec![0], vec![1], vec![Absent])];
    let bytes = model(&[Subgraph { tensors, inputs: vec![0], outputs: vec![1], operators }]);
    match survey(&bytes, &interpreter()) {
        Ok(found) => assert_eq!(shape_of(&found, "y"), (vec![1, 6], SizeBasis::Declared)),
        Err(error) => assert!(error.to_string().contains("'y'"), "{error}"),
    }
    assert_eq!(survey(&bytes, &interpreter()).is_ok(), is_taken);
}
