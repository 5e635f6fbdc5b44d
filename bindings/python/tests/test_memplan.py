"""The package covers the library, and passes its errors on with the same words."""

import array
import errno
import inspect
import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import pytest

import memplan

CHUNKS = [(0, 2, 4096), (1, 3, 8192), (2, 4, 8192)]
PACKAGE = Path(__file__).parents[1]


def test_a_sequence_is_planned(sequence):
    plan = memplan.plan(sequence, alignment=64)
    assert (plan.pool_size, plan.lower_bound, plan.proven_optimal) == (1_609_664, 1_609_664, True)
    assert plan.offset("a") == plan.offset("b") == plan.offset("c")
    assert plan.tensors["y"] == memplan.Tensor("y", 4_000, "pool", plan.offset("y"))
    assert (plan.strategy, plan.alignment, plan.steps, plan.interrupted) == ("best", 64, 4, False)
    assert plan.verify(execute=True) == memplan.verify(sequence, plan, alignment=64) == []
    assert "rules in-place as declared, alignment 64 B" in " ".join(str(plan).split())


def test_lowering_is_a_choice(sequence):
    pools = [memplan.plan(sequence, **options).pool_size for options in ({}, {"views": False}, {"views": False, "inplace": False})]
    assert pools[0] < pools[1] == pools[2]
    with_inputs = memplan.plan(sequence, inputs_in_pool=True)
    assert with_inputs.tensors["image"].place == "pool"


def test_a_view_of_an_input_lies_in_it():
    sequence = memplan.Sequence(
        [memplan.Operator("slice", ["x"], [memplan.Output("v", 16, reads=("x", 48)), memplan.Output("e", 0)])],
        inputs={"x": 64},
        outputs=["v"],
    )
    plan = memplan.plan(sequence)
    assert plan.tensors["v"] == memplan.Tensor("v", 16, "supplied", 48, "x")
    assert plan.tensors["e"].place == "nowhere"
    with pytest.raises(KeyError, match="does not lie in the pool"):
        plan.offset("v")
    with pytest.raises(KeyError, match="no tensor 'w'"):
        plan.offset("w")


def test_a_concatenation_needs_no_copy():
    concat = memplan.Output("c", 24, gathers=["a", ("b", 16)])
    sequence = memplan.Sequence(
        [
            memplan.Operator("conv", [], [memplan.Output("a", 16)]),
            memplan.Operator("conv", [], [memplan.Output("b", 8)]),
            memplan.Operator("concat", ["a", "b"], [concat]),
        ],
        outputs=["c"],
    )
    plan = memplan.plan(sequence)
    assert (plan.pool_size, plan.offset("b"), plan.parts) == (24, 16, [(0, 2, 0, 0, 16), (1, 2, 16, 0, 8)])
    assert plan.verify(execute=True) == []
    copied = memplan.plan(sequence, gathers=False)
    assert (copied.pool_size, copied.parts) == (48, [])


def test_a_concatenation_without_a_kernel_is_never_copied():
    def sequence(**concat):
        outputs = [memplan.Output("a", 16), memplan.Output("b", 8)]
        concat = memplan.Operator("concat", ["a", "b"], [memplan.Output("c", 24, **concat)])
        return memplan.Sequence([memplan.Operator("conv", [], outputs), concat], outputs=["c"])

    plan = memplan.plan(sequence(holds=["a", ("b", 16)]), gathers=False)
    assert (plan.pool_size, plan.offset("b") - plan.offset("c")) == (24, 16) and plan.verify(execute=True) == []
    copied = memplan.plan(sequence(gathers=["a", ("b", 16)]), gathers=False)
    assert memplan.verify(sequence(holds=("b", 16)), copied) == ["'b' must lie inside 'c', but is copied"]
    with pytest.raises(ValueError, match="operator 'concat': 'x' must lie inside 'c', but"):
        memplan.plan(memplan.Sequence([memplan.Operator("concat", ["x"], [memplan.Output("c", 8, holds="x")])], inputs={"x": 8}, outputs=["c"]))


def test_an_output_may_overlap_its_input():
    blur = memplan.Operator("blur", ["x"], [memplan.Output("y", 9216, overlaps=("x", 112))])
    load = memplan.Operator("load", [], [memplan.Output("x", 9216)])
    plan = memplan.plan(memplan.Sequence([load, blur], outputs=["y"]))
    assert plan.pool_size == 9216 + 112 and plan.offset("x") - plan.offset("y") == 112 and plan.verify(execute=True) == []
    both = memplan.Output("y", 9216, overwrites="x", overlaps=[("x", 64)])
    # `overwrites` comes first, and is possible.
    plan = memplan.plan(memplan.Sequence([load, memplan.Operator("a", ["x"], [both])], outputs=["y"]))
    assert plan.pool_size == 9216 and plan.offset("x") == plan.offset("y") == 0


def test_a_sequence_is_lowered_to_its_chunks(sequence):
    problem = memplan.lower(sequence, alignment=64)
    assert problem.lower_bound == memplan.plan(sequence, alignment=64).lower_bound and len(problem) == 4
    assert len(memplan.lower(sequence, views=False)) == 5
    two = [memplan.Pool("sram", capacity=4096, cost=1), memplan.Pool("psram", cost=9)]
    plan = memplan.plan(memplan.lower(sequence, pools=two, pins={"y": ("psram", 64)}))
    assert plan.offsets[plan.chunk_names.index("y")] == 64
    with pytest.raises(TypeError, match="memplan.lower has no use for the option 'strategy'"):
        memplan.lower(sequence, strategy="naive")


@pytest.mark.parametrize("code", ["q", "Q", "i", "I", "l", "L"])
def test_arrays_are_as_good_as_lists(code):
    lists = memplan.plan(memplan.Problem(CHUNKS, [(2, 1)]))
    columns = [array.array(code, column) for column in zip(*CHUNKS)]
    arrays = memplan.plan(memplan.Problem.from_arrays(*columns, [(2, 1, 0, False)]))
    assert list(lists.offsets) == list(arrays.offsets)
    assert arrays.offsets.format == "Q" and arrays.overwritten == [None, None, 1]


def test_numpy_arrays():
    numpy = pytest.importorskip("numpy")
    for dtype in ("int64", "uint64", "int32", "uint32"):
        table = numpy.array(CHUNKS, dtype=dtype)
        assert list(memplan.plan(memplan.Problem(table)).offsets) == list(memplan.plan(memplan.Problem(CHUNKS)).offsets)
        # Columns of a table are not contiguous.
        columns = memplan.Problem.from_arrays(table[:, 0], table[:, 1], table[:, 2])
        assert columns.to_json() == memplan.Problem(CHUNKS).to_json()
    offsets = numpy.asarray(memplan.plan(memplan.Problem(CHUNKS)).offsets)
    assert offsets.dtype == numpy.uint64 and offsets.shape == (3,)
    assert memplan.verify(memplan.Problem(CHUNKS), offsets) == []
    with pytest.raises(TypeError, match="integers are needed"):
        memplan.Problem(numpy.zeros((2, 3)))
    with pytest.raises(ValueError, match=r"shape must be \(n, 3\)"):
        memplan.Problem(numpy.zeros((2, 4), dtype="int64"))


def test_a_million_chunks_come_as_arrays():
    count = 1_000_000

    class Whole(array.array):
        """Copied as a whole, and never element by element."""

        def __iter__(self):
            raise AssertionError("the elements are asked for one by one")

    begin = Whole("Q", array.array("Q", range(count)))
    end = Whole("Q", array.array("Q", range(2, count + 2)))
    size = Whole("Q", array.array("Q", [64]) * count)
    with pytest.raises(AssertionError):
        list(begin)
    problem = memplan.Problem.from_arrays(begin, end, size)
    assert len(problem) == count and problem.lower_bound == 128


WRONG = [
    (lambda: memplan.Problem([(3, 3, 8)]), "empty lifetime"),
    (lambda: memplan.Problem([(0, 1, -8)]), "chunk 0: size must be an integer from 0"),
    (lambda: memplan.Problem([(0, 1, 2**64)]), "size must be an integer from 0"),
    (lambda: memplan.Problem([(0, 1)]), r"chunk 0 must be \(begin, end, size\)"),
    (lambda: memplan.Problem([(0, 1, 2**63), (0, 1, 2**63)]), "add up to 2"),
    (lambda: memplan.Problem(CHUNKS, [(2, 9)]), "9"),
    (lambda: memplan.Problem(CHUNKS, [(2,)]), "overwrite 0 must be"),
    (lambda: memplan.Problem(CHUNKS, names=["a"]), "1 names, but 3 chunks"),
    (lambda: memplan.Problem(CHUNKS, alignment=48), "alignment 48 is not a power of two"),
    (lambda: memplan.Problem.from_arrays([0], [1, 2], [3]), "1, 2 and 1 elements"),
    (lambda: memplan.Problem.from_arrays(array.array("i", [-1]), [1], [3]), "begin: element 0 is -1"),
    (lambda: memplan.plan(memplan.Problem(CHUNKS), alignment=48), "alignment 48 is not a power of two"),
    (lambda: memplan.plan(memplan.Problem(CHUNKS), strategy="bset"), "no strategy is called 'bset'"),
    (lambda: memplan.plan(memplan.Problem(CHUNKS), time_limit=-1), "time_limit is -1"),
    (lambda: memplan.plan(memplan.Problem(CHUNKS), effort=-1), "effort must be an integer"),
    (lambda: memplan.Problem.from_json("{"), "EOF"),
    (lambda: memplan.Problem.from_json('{"format": "memplan-sequence/1", "operators": [], "outputs": []}'), "a sequence, not a problem"),
    (lambda: memplan.Sequence([memplan.Operator("a", [], [memplan.Output("x", 1), memplan.Output("x", 1)])]), "'x'"),
    (lambda: memplan.Sequence([], outputs=["y"]), "'y'"),
    (lambda: memplan.read("model.pb"), "does not end in .onnx, .tflite, .json, .csv, .pickle or .pte"),
    (lambda: memplan.read(__file__, format="onnx"), "test_memplan.py"),
    (lambda: memplan.read(__file__, format="json", trust="me"), "trust is 'inference' or 'declared'"),
    (lambda: memplan.Output("x", -1), "size must be an integer from 0 to .*, not -1"),
    (lambda: memplan.Output("x", 2**64), "size must be an integer from 0"),
    (lambda: memplan.Output("x", 8, reads=("y", -8)), "the offset in 'y' must be an integer from 0 to .*, not -8"),
    (lambda: memplan.Output("x", 8, overwrites=("y", -8)), "the offset in 'y' must be an integer"),
    (lambda: memplan.Output("x", 8, overwrites=["z", ("y", 2**64)]), "the offset in 'y' must be an integer"),
    (lambda: memplan.Output("x", 8, updates=("y", -8)), "the offset in 'y' must be an integer"),
    (lambda: memplan.Operator("a", workspace=-1), "^workspace must be an integer from 0"),
    (lambda: memplan.Operator("a", stream=-1), "^stream must be an integer from 0 to .*, not -1"),
    (lambda: memplan.Pool("a", capacity=-1), "^capacity must be an integer from 0"),
    (lambda: memplan.Pool("a", largest=-8), "^largest must be an integer from 0 to .*, not -8"),
    (lambda: memplan.Pool("a", alignment=-1), "^alignment must be an integer from 0"),
    (lambda: memplan.Problem(CHUNKS, alignment=-1), "^alignment must be an integer from 0"),
    (lambda: memplan.Problem(CHUNKS, padding=2**64), "^padding must be an integer from 0"),
    (lambda: memplan.Problem(CHUNKS, [(2, -1)]), "overwrite 0 must be"),
    (lambda: memplan.Sequence([], inputs={"x": -8}), "the size of input 'x' must be an integer"),
    (lambda: memplan.Sequence([], weights={"w": -8}), "must be an integer from 0"),
    (lambda: memplan.Sequence([memplan.Operator("a")]).permuted([-1]), "must be an integer from 0"),
    (lambda: memplan.Sequence([memplan.Operator("a")]).permuted([2**64 - 1]), "order"),
    (lambda: memplan.Output("x", 8, overlaps=("y", -8)), "the offset in 'y' must be an integer"),
    (lambda: memplan.Sequence([memplan.Operator("a", ["y"], [memplan.Output("x", 8, overlaps=("y", 8), reads="y")])]), "'x' can have one of"),
    (lambda: memplan.Problem(CHUNKS).concat(memplan.Problem(CHUNKS), shared=[(0, 9)]), "9"),
    (lambda: memplan.Problem(CHUNKS).concat(memplan.Problem(CHUNKS), shared=[(0, 2**32)]), "there is no chunk 4294967296"),
    (lambda: memplan.Problem(CHUNKS).concat(memplan.Problem(CHUNKS), shared=[(0, 1)]), "4096 and 8192 B"),
    (lambda: memplan.Sequence([], dims={"n": (8, 1)}), "give the smaller one first"),
    (lambda: memplan.Sequence([], dims={"n": -1}), "must be an integer from 0"),
    (lambda: memplan.read("model.onnx", dims={"n": -1}), "must be an integer from 0"),
    (lambda: memplan.read("model.onnx", default_dim=-1), "must be an integer from 0"),
    (lambda: memplan.read("model.onnx", shapes={"x": [None, -1]}), "must be an integer from 0"),
    (lambda: memplan.plan(memplan.Problem(CHUNKS)).map(width=-1), "must be an integer from 0"),
    (lambda: memplan.verify(memplan.Problem(CHUNKS), [0, 0]), "2 offsets, but the problem has 3 chunks"),
    (lambda: memplan.verify(memplan.Problem(CHUNKS), [0, 2**64 - 1, 0]), "does not end below"),
]


@pytest.mark.parametrize(("call", "words"), WRONG)
def test_wrong_input_is_a_value_error(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def mistyped(**declared):
    """The third operator reads `faet` instead of `feat`."""
    operators = [
        memplan.Operator("conv", ["image"], [memplan.Output("feat", 1000)]),
        memplan.Operator("big", [], [memplan.Output("t", 1000)]),
        memplan.Operator("relu", ["faet", "t"], [memplan.Output("y", 10)]),
    ]
    return memplan.Sequence(operators, inputs={"image": 10}, outputs=["y"], **declared)


def test_names_that_nobody_makes_or_declares_are_reported():
    with pytest.warns(UserWarning, match="neither made by an operator nor declared: 'faet'; taken as weights"):
        sequence = mistyped()
    assert sequence.undeclared == ["faet"]
    plan = memplan.plan(sequence)
    assert json.loads(plan.to_json())["undeclared"] == ["faet"]
    assert "neither made by an operator nor declared (taken as weights, outside the pool): faet" in " ".join(str(plan).split())
    with pytest.warns(UserWarning, match="'faet'"):
        assert memplan.Sequence.from_json(sequence.to_json()).undeclared == ["faet"]
    for weights in ({}, {"w": 8}):
        with pytest.raises(ValueError, match="'faet'"):
            mistyped(weights=weights)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sequence = mistyped(weights={"faet": None})
    assert sequence.undeclared == [] and "undeclared" not in json.loads(memplan.plan(sequence).to_json())


def test_operators_that_are_sorted_are_reported():
    operators = [memplan.Operator("a", ["y"], [memplan.Output("z", 8)]), memplan.Operator("b", [], [memplan.Output("y", 8)])]
    with pytest.warns(UserWarning, match="the operators were not in execution order; steps count in the sorted order"):
        sequence = memplan.Sequence(operators, outputs=["z"], weights={})
    assert sequence.is_sorted and sequence.operators == ["b", "a"]
    plan = memplan.plan(sequence)
    assert json.loads(plan.to_json())["sorted"] is True
    assert "steps are numbered in the order of execution" in " ".join(str(plan).split())
    assert not memplan.Sequence(operators[::-1], outputs=["z"], weights={}).is_sorted


def test_signatures_list_all_options():
    for function in (memplan.plan, memplan.fit, memplan.explain, memplan.compare, memplan.reorder):
        names = set(inspect.signature(function).parameters)
        assert {"alignment", "effort", "time_limit", "threads", "pools", "pins", "gathers"} <= names, function
        assert ("strategy" in names) == (function is not memplan.compare) and "options" not in names


def test_other_errors_are_pythons_own(tmp_path):
    with pytest.raises(FileNotFoundError) as missing:
        memplan.read(tmp_path / "missing.onnx")
    assert missing.value.strerror == os.strerror(errno.ENOENT) and missing.value.filename == str(tmp_path / "missing.onnx")
    problem = memplan.Problem(CHUNKS)
    for call in (memplan.plan, memplan.compare, lambda input, **options: memplan.fit(input, 8, **options)):
        with pytest.raises(TypeError, match="progress must be a function, not 8"):
            call(problem, progress=8)
    for value in (64, None):
        with pytest.raises(TypeError, match="no option 'algnment'"):
            memplan.plan(problem, algnment=value)
    plan = memplan.plan(problem, alignment=None, effort=None)
    with pytest.raises(TypeError, match="memplan.explain has no use for the option 'alignment'"):
        memplan.explain(plan, alignment=64)
    with pytest.raises(TypeError, match="memplan.compare has no use for the option 'strategy'"):
        memplan.compare(problem, strategy="naive")
    for option in ("strategy", "effort", "threads", "time_limit"):
        with pytest.raises(TypeError, match=f"memplan.verify has no use for the option '{option}'"):
            memplan.verify(problem, plan, **{option: None})
    for places in (("y", "z"), ["y", "z"], (("y", 8), "z"), [("y", 8)], ("y", 8), "y"):
        memplan.Output("x", 8, overwrites=places)
    with pytest.raises(TypeError):
        memplan.Output("x", 8, overwrites=8)
    with pytest.raises(TypeError):
        memplan.plan("resnet50.onnx")


def test_plans_of_models_state_the_arena(sequence):
    path = PACKAGE.parents[1] / "tests" / "models" / "mobilenet_v3_se_64_i8.tflite"
    model = memplan.read(path)
    plan = memplan.plan(model, alignment=16)
    assert (plan.arena["own"], plan.arena["planned"], plan.arena["kernels"]) == (32768, 24576, "reference")
    assert json.loads(plan.to_json())["arena"] == plan.arena
    assert memplan.Plan.from_json(plan.to_json(), model).arena == plan.arena
    assert memplan.plan(sequence).arena is None
    other = memplan.plan(memplan.read(path, runtime="tflite"), alignment=64)
    assert (other.arena["runtime"], other.arena["own"]) == ("tflite", 45056)
    with pytest.raises(ValueError, match="'micro' is not one of tflite-micro, tflite"):
        memplan.read(path, runtime="micro")


def test_plans_of_models_state_the_memory_pattern_of_onnx_runtime():
    path = PACKAGE.parents[1] / "tests" / "models" / "encoder.onnx"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = memplan.read(path, runtime="onnxruntime")
    plan = memplan.plan(model, alignment=64)
    arena = plan.arena
    assert (arena["runtime"], arena["own"], arena["planned"]) == ("onnxruntime", 1536000 + 51200, 1382400)
    assert json.loads(plan.to_json())["arena"] == arena
    assert memplan.plan(memplan.read(path)).arena is None
    with pytest.raises(TypeError, match="read for a runtime"):
        pickle.dumps(model)
    with pytest.raises(ValueError, match="omit inplace"):
        memplan.read(path, runtime="onnxruntime", inplace="rows")
    with pytest.raises(ValueError, match="is for ONNX models"):
        memplan.read(path.with_name("variable_f32.tflite"), runtime="onnxruntime")


def test_files_are_read(tmp_path, sequence):
    models = PACKAGE.parents[1] / "tests" / "models"
    model = memplan.read(models / "encoder.onnx")
    assert memplan.plan(model).proven_optimal
    assert memplan.plan(memplan.read(models / "encoder.onnx", inplace="none")).pool_size >= memplan.plan(model).pool_size
    path = tmp_path / "sequence.json"
    path.write_text(sequence.to_json())
    assert memplan.read(path).operators == sequence.operators == ["conv", "relu", "flatten", "gemm"]
    assert memplan.Sequence.from_json(sequence.to_json()).to_json() == sequence.to_json()
    plan = memplan.plan(sequence)
    assert memplan.Plan.from_json(plan.to_json(), sequence).tensors == plan.tensors
    assert json.loads(plan.to_json())["format"] == "memplan-plan/1"


def test_a_plan_holds_for_a_range_of_sizes():
    path = PACKAGE.parents[1] / "tests" / "models" / "heads.onnx"
    plan = memplan.plan(memplan.read(path, dims={"batch": (1, 3)}))
    assert plan.verify() == [] and json.loads(plan.to_json())["dims"] == {"batch": [1, 3]}
    assert plan.pool_size == memplan.plan(memplan.read(path, dims={"batch": 3})).pool_size
    with pytest.raises(ValueError, match="give the smaller one first, as in batch=1..3"):
        memplan.read(path, dims={"batch": (3, 1)})


def test_a_plan_is_verified_as_it_was_asked_for():
    problem = memplan.Problem([(begin, end, size + 4) for begin, end, size in CHUNKS], alignment=64, padding=32)
    plan = memplan.plan(problem, alignment=8, padding=0)
    assert plan.alignment == 8 and plan.verify() == []
    assert memplan.verify(problem, plan, alignment=8, padding=0) == []
    assert "alignment" in memplan.verify(problem, plan)[0]


def test_offsets_are_verified_with_another_alignment_and_padding():
    problem = memplan.Problem(CHUNKS)
    wide = memplan.plan(problem, padding=64)
    assert memplan.verify(problem, wide.offsets, padding=64) == memplan.verify(problem, wide.offsets, alignment=64) == []
    tight = memplan.plan(problem)
    assert any("share the bytes" in words for words in memplan.verify(problem, tight.offsets, padding=64))


LISTS = [
    lambda items: memplan.Operator("a", items),
    lambda items: memplan.Operator("a", outputs=items),
    lambda items: memplan.Operator("a", bodies=items),
    lambda items: memplan.Output("a", 8, overwrites=items),
    lambda items: memplan.Sequence(items),
    lambda items: memplan.Sequence([], outputs=items),
    lambda items: memplan.Pool("fast", reserved=items),
    lambda items: memplan.Problem([(0, 1, 8)], names=items),
    lambda items: memplan.Problem([(0, 1, 8)], pools=items),
    lambda items: memplan.Problem([(0, 1, 8)], apart=items),
    lambda items: memplan.Problem([(0, 1, 8)], holes={0: items}),
    lambda items: memplan.plan(memplan.Problem([(0, 1, 8)]), pools=items),
]


@pytest.mark.parametrize("call", LISTS)
def test_lists_have_an_order_and_no_room_is_made_for_what_they_claim_to_hold(call):
    # Few of these could be made in any memory.
    for items in (range(2**60), {1, 2}, {1: 2}, iter([1]), 5):
        with pytest.raises(TypeError):
            call(items)


def test_a_wrong_plan_is_found(sequence):
    problem = memplan.Problem(CHUNKS, names=["a", "b", "c"])
    assert any("share the bytes" in words for words in memplan.verify(problem, [0, 0, 8192]))
    plan = json.loads(memplan.plan(sequence).to_json())
    plan["tensors"][0]["offset"] += 1
    assert memplan.Plan.from_json(json.dumps(plan), sequence).verify() != []


def test_fit(sequence):
    assert not memplan.fit(sequence, 1_000_000)
    fits = memplan.fit(sequence, 2_000_000)
    assert fits and fits.answer == "yes" and fits.plan.pool_size <= 2_000_000
    assert memplan.fit(sequence, 1_000_000).answer == "no"


def test_compare_and_explain(sequence):
    compared = memplan.compare(sequence, name="net")
    assert "pushdown" in str(compared) and "net" in json.dumps(compared.figures)
    assert compared.figures["lower_bound"] == memplan.plan(sequence).lower_bound
    assert "step" in memplan.explain(sequence) == memplan.plan(sequence).explain()


def test_reorder():
    operators = [memplan.Operator(f"wide{i}", ["x"], [memplan.Output(f"w{i}", 1000)]) for i in range(4)]
    operators += [memplan.Operator(f"sum{i}", [f"w{i}"], [memplan.Output(f"s{i}", 10)]) for i in range(4)]
    operators.append(memplan.Operator("join", [f"s{i}" for i in range(4)], [memplan.Output("y", 10)]))
    sequence = memplan.Sequence(operators, inputs={"x": 8}, outputs=["y"])
    found = memplan.reorder(sequence)
    assert found.plan.pool_size < found.given.pool_size and found.proven_optimal
    assert found.sequence.operators == sequence.permuted(found.order).operators
    assert memplan.verify(found.sequence, found.plan) == [] and "smaller" in str(found)


def test_a_notebook_shows_the_map(sequence, tmp_path):
    plan = memplan.plan(sequence)
    html = plan._repr_html_()
    assert html.startswith("<pre>") and "<svg" in html and "gemm" in html
    path = tmp_path / "map.html"
    plan.save_html(path, title="net")
    assert "<title>net: memory map</title>" in path.read_text()
    assert "gemm" in plan.svg() and plan.map(width=60)
    assert plan.map(width=2**64 - 1) == plan.map(width=10_000) and plan.map(height=2**64 - 1) == plan.map(height=10_000)
    assert repr(plan).startswith("<memplan.Plan: 4 chunks in ")


LONG = {"strategy": "optimal", "effort": 2**60, "time_limit": 60}


def test_progress_is_called_and_may_fail(hard):
    seen = []
    memplan.plan(hard, **LONG | {"time_limit": 0.5}, progress=lambda *figures: seen.append(figures))
    assert seen and all(best >= bound for best, bound, _ in seen)

    def fail(*_):
        raise RuntimeError("enough")

    start = time.monotonic()
    with pytest.raises(RuntimeError, match="enough"):
        memplan.plan(hard, **LONG, progress=fail)
    assert time.monotonic() - start < 30


def test_the_interpreter_lock_is_released(hard):
    ticks = []

    def tick():
        while not done.is_set():
            ticks.append(time.monotonic())
            time.sleep(0.01)

    done = threading.Event()
    thread = threading.Thread(target=tick)
    thread.start()
    memplan.plan(hard, **LONG | {"time_limit": 0.5})
    done.set()
    thread.join()
    assert len(ticks) > 5


@pytest.fixture
def ctrl_c():
    """Python's own handler, which is missing where a shell started the tests in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_ends_a_search_with_the_best_so_far(hard, ctrl_c):
    timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    plan = memplan.plan(hard, **LONG)
    assert plan.interrupted and not plan.proven_optimal and plan.verify() == []


def test_ctrl_c_inside_the_progress_function_does_the_same(hard):
    def interrupt(*_):
        raise KeyboardInterrupt

    plan = memplan.plan(hard, **LONG, progress=interrupt)
    assert plan.interrupted and plan.verify() == []
    with pytest.raises(KeyboardInterrupt):
        memplan.compare(hard, effort=2**60, time_limit=1, progress=interrupt)


@pytest.fixture
def large():
    """For which the strategies that compare all pairs take many seconds."""
    chunks = ((at * 7919 % 2000, at * 104_729 % 1000, at * 15_485_863 % 10**6) for at in range(20_000))
    return memplan.Problem([(begin, begin + 1 + life, 1 + size) for begin, life, size in chunks])


@pytest.mark.parametrize("strategy", ["tflite-greedy-best", "interval-move", "tflite-min-cost-flow"])
def test_ctrl_c_ends_a_strategy_without_a_plan_before_its_end(large, ctrl_c, strategy):
    timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        memplan.plan(large, strategy=strategy)
    timer.join()
    # Unoptimised and undisturbed, it takes minutes.
    assert time.monotonic() - start < 30
    with pytest.raises(TimeoutError, match=f"strategy {strategy} had no plan when the time limit was over"):
        memplan.plan(large, strategy=strategy, time_limit=0.1)


def test_ctrl_c_ends_a_comparison(large, ctrl_c):
    threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        memplan.compare(large)
    assert time.monotonic() - start < 30


def test_tensors_and_bodies_are_made_once(sequence):
    plan = memplan.plan(sequence)
    assert plan.tensors is plan.tensors and plan.bodies is plan.bodies
    assert all(plan.tensors[name].name == name for name in plan.tensors)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no alarm")
def test_an_exception_of_a_signal_handler_is_raised(hard):
    class Late(Exception):
        pass

    def alarm(*_):
        raise Late

    before = signal.signal(signal.SIGALRM, alarm)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with pytest.raises(Late):
            memplan.plan(hard, **LONG)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


DOCUMENTS = [PACKAGE / "README.md", PACKAGE.parents[1] / "README.md", PACKAGE.parents[1] / "book/src/python.md"]


@pytest.mark.parametrize("document", DOCUMENTS, ids=["package", "project", "book"])
def test_the_snippets_of_the_documents_run(document):
    snippets = document.read_text().split("```python\n")[1:]
    assert snippets
    for snippet in snippets:
        subprocess.run([sys.executable, "-c", snippet.split("```")[0]], check=True, stdout=subprocess.DEVNULL)


def test_the_stubs_name_what_there_is():
    import ast

    stubs = ast.parse((Path(memplan.__file__).parent / "_native.pyi").read_text())
    for node in stubs.body:
        if isinstance(node, ast.ClassDef):
            there = {name for name in dir(getattr(memplan._native, node.name)) if not name.startswith("__")}
            named = {item.name for item in node.body if isinstance(item, ast.FunctionDef) and not item.name.startswith("__")}
            assert named == there - {"_arena", "_bodies", "_tensors"}, node.name
        elif isinstance(node, ast.FunctionDef):
            assert callable(getattr(memplan._native, node.name))
    assert (Path(memplan.__file__).parent / "py.typed").exists()
