"""Audits of ExecuTorch programs: right plans have no fault, and planted faults are named with both tensors."""

import pytest

torch = pytest.importorskip("torch", reason="torch and ExecuTorch are in an environment of their own: see install")
pytest.importorskip("executorch.exir", reason="ExecuTorch is in an environment of its own: see install")

from executorch.exir import ExecutorchBackendConfig  # noqa: E402
from executorch.exir.memory_planning import MemoryPlanningAlgorithmSuite, greedy, naive  # noqa: E402
from executorch.exir.passes import MemoryPlanningPass as GreedyPass  # noqa: E402
from programs import Net, edge, image, planned  # noqa: E402
from test_arenas import CONTROL, RESULTS, map_rows, scan  # noqa: E402
from test_executorch import MODELS  # noqa: E402
from test_state import IN_PLACE, Stateful, rows  # noqa: E402

from memplan._executorch_line import lay_in, specs_of  # noqa: E402
from memplan.executorch import MemoryPlanningPass, algorithm, audit  # noqa: E402

PASSES = {
    "memplan": lambda: MemoryPlanningPass(report=None),
    "lifetimes": lambda: MemoryPlanningPass(report=None, inplace=False, remove_copies=False),
    "greedy": GreedyPass,
    "naive": lambda: GreedyPass(memory_planning_algo=MemoryPlanningAlgorithmSuite([naive])),
    "suite": lambda: GreedyPass(memory_planning_algo=MemoryPlanningAlgorithmSuite([greedy, algorithm()])),
}


@pytest.mark.parametrize("planner", PASSES)
def test_right_plans_have_no_fault(planner):
    for model, x in (make() for make in MODELS.values()):
        (found,) = audit(planned(edge(model, x), PASSES[planner]())).values()
        assert found and not found.faults and found.tensors > 4, str(found)
        assert str(found).splitlines()[0].endswith("no fault") and "scratch memory of kernels" in str(found)


@pytest.mark.parametrize("planner", ["memplan", "greedy"])
@pytest.mark.parametrize("name", IN_PLACE)
def test_caches_are_kept_between_calls(name, planner):
    program = planned(edge(Stateful(IN_PLACE[name], 16, 8), *rows(1)[0], strict=False), PASSES[planner]())
    assert audit(program)["forward"], str(audit(program)["forward"])


@pytest.mark.parametrize("function", [*CONTROL.values(), *RESULTS])
def test_branches_and_loops_that_greedy_plans_wrongly(function):
    # ExecuTorch returns wrong values for these functions (see test_arenas).
    wrong = function.__name__ == "two_results" or function in RESULTS
    program = edge(Net(function), image(64, 64) + 0.5)
    ours, theirs = (audit(planned(program, PASSES[planner]()))["forward"] for planner in ("memplan", "greedy"))
    assert ours, str(ours)
    assert bool(theirs) != wrong, str(theirs)


def test_methods_are_audited_one_by_one():
    methods = {name: torch.export.export(model.eval(), (x,)) for name, (model, x) in (("a", MODELS["residual"]()), ("b", MODELS["chain"]()))}
    from executorch.exir import to_edge

    found = audit(to_edge(methods).to_executorch(ExecutorchBackendConfig(memory_planning_pass=GreedyPass())))
    assert list(found) == ["a", "b"] and all(found.values())


def found(program, name):
    """The spec of what a node makes, in one of the program's graphs; the last one of several."""
    modules = [module for module in program.exported_program().graph_module.modules() if isinstance(module, torch.fx.GraphModule)]
    (node,) = [node for module in modules for node in module.graph.nodes if node.name == name]
    return specs_of(node)[-1]


def moved(program, name, offset):
    """An audit of the program with a tensor at another place."""
    found(program, name).mem_offset = offset
    return audit(program)["forward"]


def branching(_, x):
    a = x.exp()
    b = a.tanh()
    return a @ b, b @ a


def place(program, name):
    return found(program, name).mem_offset


@pytest.mark.parametrize("planner", ["memplan", "greedy"])
def test_a_tensor_over_one_that_is_still_read_is_named(planner):
    program = planned(edge(Net(branching), image(8, 8)), PASSES[planner]())
    assert audit(program)["forward"]
    wrong = moved(program, "aten_tanh_default", place(program, "aten_exp_default") + 16)
    assert not wrong
    overwritten, lost = [fault for fault in wrong.faults if "ends at byte" not in fault.text][:2]
    assert overwritten.text.endswith("(aten_tanh_default) writes 'aten_tanh_default' over 'aten_exp_default' while it reads it")
    assert (lost.operator, lost.tensor, lost.other) == ("aten_mm_default", "aten_exp_default", "aten_tanh_default")
    assert "reads bytes 16 to 255 of 'aten_exp_default' (256 B), but step" in lost.text


def mapped(_, x):
    return map_rows(lambda row, other: row.exp() - other, x.sin(), x[0].cos()) + x


def scanned(_, x):
    def step(state, row):
        return state * row.exp(), (state + row).tanh()

    last, rows = scan(step, x[0].cos(), x.sin())
    return rows + last


def read_in_two_branches(_, x):
    inner = lambda t: torch.cond(t.max() > 1, lambda t: t.exp() - t, lambda t: t - 1, (t,))  # noqa: E731
    return torch.cond(x.sum() > 0, inner, lambda t: t + 1, (x.sin(),))


def read_through_a_view(_, x):
    return torch.cond(x.sum() > 0, lambda t: t.exp() * t.view(4, 16).sum(), lambda t: t + 1, (x.sin(),))


def read_behind_a_branch(_, x):
    y = x.sin()
    return torch.cond(x.sum() > 0, lambda t: t.exp() * 2, lambda t: t + 1, (x,)) + y


def returned(_, x):
    a, b = torch.cond(x.sum() > 0, lambda t: (t.sin(), t.exp()), lambda t: (t + 1, t + 2), (x,))
    return a - b


def multiplied(_, x):
    return torch.cond(x.sum() > 0, lambda t: t @ t, lambda t: t + 1, (x.sin(),))


def updated(_, x):
    y = x.sin()
    return torch.index_put(y, (torch.arange(7, -1, -1),), y)


@pytest.mark.parametrize("planner", ["memplan", "greedy"])
@pytest.mark.parametrize(
    ("function", "name", "over", "operator"),
    [
        (mapped, "aten_exp_default", "aten_sin_default", "map_impl"),  # The next iteration reads another row.
        (mapped, "aten_exp_default", "aten_cos_default", "aten_sub_tensor"),
        (mapped, "aten_exp_default", "map_impl", "map_impl"),  # The row of the iteration before is lost.
        (scanned, "aten_exp_default", "aten_sin_default", "scan"),
        (scanned, "aten_exp_default", "scan", "scan"),
        (read_in_two_branches, "aten_exp_default", "aten_sin_default", "aten_sub_tensor"),
        (read_through_a_view, "aten_exp_default", "aten_sin_default", "aten_sum_dim_int_list"),
        (read_behind_a_branch, "aten_exp_default", "aten_sin_default", "aten_add_tensor"),
        (returned, "aten_exp_default", "aten_sin_default", "output"),
        (multiplied, "aten_mm_default", "aten_sin_default", "aten_mm_default"),
        (updated, "aten_index_put_default", "aten_sin_default", "aten_index_put_default"),
    ],
)
def test_a_tensor_of_a_branch_or_a_loop_over_one_that_is_needed_is_named(function, name, over, operator, planner):
    program = planned(edge(Net(function), image(8, 8) + 0.5), PASSES[planner]())
    assert (right := audit(program)["forward"]), str(right)
    wrong = moved(program, name, place(program, over))
    assert any((fault.operator, fault.tensor) == (operator, over) for fault in wrong.faults), str(wrong)


def test_a_branch_may_return_its_result_over_what_another_branch_reads():
    def forward(_, x):
        return torch.cond(x.sum() > 0, lambda t: t.exp().tanh(), lambda t: t.cos() + t, (x.sin(),)) * 2

    program = planned(edge(Net(forward), image(8, 8)), GreedyPass())
    right = moved(program, "aten_tanh_default", place(program, "aten_sin_default"))
    assert right, str(right)


def test_a_view_of_a_result_that_one_branch_makes_elsewhere_is_named():
    def forward(_, x):
        z = torch.cond(x.sum() > 0, lambda t: t.exp() + 1, lambda t: t.sin(), (x * 2,))
        return z.reshape(-1) * 3, z + 1

    program = planned(edge(Net(forward), image(8, 8)), PASSES["memplan"]())
    assert (right := audit(program)["forward"]), str(right)
    sizes = program.exported_program().graph_module.meta["non_const_buffer_sizes"]
    sizes[1] += 256
    (fault,) = moved(program, "aten_sin_default", sizes[1] - 256).faults
    # What reads the result itself finds it where the branch has made it.
    assert (fault.operator, fault.tensor) == ("aten_mul_tensor_1", "cond"), str(fault)
    assert "has written 'the result of some branches of cond' there" in fault.text


def test_an_output_over_another_one_is_named():
    program = planned(edge(Net(branching), image(8, 8)), GreedyPass())
    (fault,) = moved(program, "aten_mm_default_1", place(program, "aten_mm_default")).faults
    assert (fault.operator, fault.tensor, fault.other) == ("output", "aten_mm_default", "aten_mm_default_1")


def test_a_kernel_that_may_not_work_in_place_is_named():
    program = planned(edge(*MODELS["chain"]()), PASSES["memplan"]())
    (wrong,) = audit(program, kernels={"aten::exp": (0,)}).values()
    assert [fault.operator for fault in wrong.faults] == ["aten_sigmoid_default", "aten_tanh_default", "aten_neg_default", "aten_abs_default"]


def test_a_cache_that_activations_overwrite_is_named():
    program = planned(edge(Stateful(IN_PLACE["put"], 16, 8), *rows(1)[0]), GreedyPass())
    wrong = moved(program, "b_cache", place(program, "aten_relu_default"))
    assert any(fault.tensor == "b_cache" or fault.other == "b_cache" for fault in wrong.faults), str(wrong)


def test_a_cache_that_an_output_overwrites_is_lost_to_the_next_run():
    program = planned(edge(Stateful(IN_PLACE["put"], 16, 8), *rows(1)[0]), PASSES["memplan"]())
    (fault,) = moved(program, "aten_mul_tensor", place(program, "b_cache")).faults
    assert (fault.operator, fault.tensor, fault.other) == ("the next run", "b_cache", "aten_mul_tensor")


def test_a_value_half_over_the_cache_that_it_is_copied_to_is_named():
    program = planned(edge(Stateful(IN_PLACE["replaced"], 16, 8), *rows(1)[0]), GreedyPass())
    wrong = moved(program, "aten_mul_tensor", place(program, "b_cache") + 16)
    assert any(fault.text.endswith("writes 'b_cache' over 'aten_mul_tensor' while it reads it") for fault in wrong.faults), str(wrong)


@pytest.mark.parametrize("declared", [False, True])
def test_a_removed_copy_whose_bytes_change_is_named(declared):
    # A copy of `a` is read after the bytes of `a` are written again, by a tensor that may be declared to lie in `a`.
    def forward(_, x):
        a = x.exp()
        b = a.unsqueeze(0).clone()
        c = x.sin()
        return b * 2, c @ c

    program = planned(edge(Net(forward), image(8, 8)), PASSES["memplan"]())
    assert audit(program)["forward"]
    if declared:
        lay_in(found(program, "aten_sin_default"), found(program, "aten_exp_default"), 0)
    wrong = moved(program, "aten_sin_default", place(program, "aten_exp_default"))
    assert any((fault.operator, fault.other) == ("aten_mul_tensor", "aten_sin_default") for fault in wrong.faults), str(wrong)


def test_a_tensor_outside_its_arena_is_named():
    program = planned(edge(*MODELS["residual"]()), GreedyPass())
    texts = [fault.text for fault in moved(program, "aten_relu_default", 13_824 - 4608 + 16).faults]
    assert texts.count("'aten_relu_default' ends at byte 13840 of arena 1, which has 13824 B") == 1


def test_a_tensor_without_bytes_may_lie_anywhere():
    program = planned(edge(*MODELS["residual"]()), GreedyPass())
    name = "aten__native_batch_norm_legit_no_training_default"
    assert found(program, name).nbytes() == 0 and moved(program, name, place(program, "aten_convolution_default") + 64)
