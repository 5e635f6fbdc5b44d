"""memplan in ExecuTorch: smaller arenas, accepted by its verifier, with equal bits in its runtime."""

import dataclasses
import logging
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="torch and ExecuTorch are in an environment of their own: see install")
pytest.importorskip("executorch.exir", reason="ExecuTorch is in an environment of its own: see install")

from executorch.exir import ExecutorchBackendConfig, to_edge  # noqa: E402
from executorch.exir.memory_planning import (  # noqa: E402
    MemoryPlanningAlgorithmSuite,
    collect_specs_from_nodes,
    greedy,
    naive,
)
from executorch.exir.passes import MemoryPlanningPass as GreedyPass  # noqa: E402
from executorch.exir.passes.constant_prop_pass import constant_prop_pass  # noqa: E402
from executorch.exir.tensor import TensorSpec  # noqa: E402
from executorch.extension.pybindings.portable_lib import _load_for_executorch_from_buffer as load  # noqa: E402
from programs import Net, accepted, arenas, edge, equal, image, planned, targets  # noqa: E402
from torch import nn  # noqa: E402

import memplan as memplan_package  # noqa: E402
from memplan._executorch_line import lay_in  # noqa: E402
from memplan.torch import from_exported_program  # noqa: E402
from memplan.executorch import MemoryPlanningPass, algorithm, audit, memplan, portable_kernels  # noqa: E402


def residual(net, x):
    for _ in range(3):
        x = torch.relu(net.norm(net.conv(x)) + x)
    return x


def attention(net, x):
    q, k, v = net.qkv(net.norm(x)).chunk(3, dim=-1)
    weights = torch.softmax(q @ k.transpose(-1, -2) / 4, dim=-1)
    return x + net.out(weights @ v)


def unet(net, x):
    down = torch.relu(net.first(x))
    low = torch.relu(net.conv(nn.functional.avg_pool2d(down, 2)))
    up = nn.functional.interpolate(low, scale_factor=2)
    return net.last(torch.cat([down, up], dim=1))


def chain(_, x):
    for function in (torch.exp, torch.sigmoid, torch.tanh, torch.neg, torch.abs):
        x = function(x)
    return x


def copies(_, x):
    y = (x * 2).clone().unsqueeze(0)
    head, tail = y[:, :1], y[:, 1:]
    return head.squeeze(0) + 1, tail.clone().permute(1, 0, 2) * 3, y.sum()


MODELS = {
    "residual": lambda: (Net(residual, conv=nn.Conv2d(8, 8, 3, padding=1), norm=nn.BatchNorm2d(8)), image(1, 8, 12, 12)),
    "attention": lambda: (
        Net(attention, qkv=nn.Linear(16, 48), norm=nn.LayerNorm(16), out=nn.Linear(16, 16)),
        image(1, 9, 16),
    ),
    "unet": lambda: (
        Net(unet, first=nn.Conv2d(3, 8, 1), conv=nn.Conv2d(8, 8, 3, padding=1), last=nn.Conv2d(16, 4, 1)),
        image(1, 3, 8, 8),
    ),
    "chain": lambda: (Net(chain), image(16, 16)),
    "copies": lambda: (Net(copies), image(4, 32)),
}


@pytest.mark.parametrize("settings", [{}, {"remove_copies": False}, {"inplace": False, "remove_copies": False}], ids=str)
@pytest.mark.parametrize("name", MODELS)
def test_smaller_or_equal_with_equal_bits(name, settings):
    torch.manual_seed(0)
    model, x = MODELS[name]()
    program = edge(model, x)
    theirs = planned(program, GreedyPass())
    memory_pass = MemoryPlanningPass(report=None, **settings)
    ours = planned(program, memory_pass)
    (report,) = memory_pass.reports
    assert [0, report.bytes] == arenas(ours) and [0, report.greedy] == arenas(theirs)
    assert report.bytes <= report.greedy and report.proven_optimal
    accepted(ours)
    outputs = load(ours.buffer).forward((x,))
    assert equal(outputs, load(theirs.buffer).forward((x,)))
    expected = model(x)
    for output, wanted in zip(outputs, expected if isinstance(expected, tuple) else (expected,)):
        assert torch.allclose(output, wanted, atol=1e-5)


def test_requests_are_honoured_and_reported():
    # With raw node numbers, an output never begins in its argument's last step, and nothing would be in place.
    memory_pass = MemoryPlanningPass(report=None)
    ours = planned(edge(*MODELS["chain"]()), memory_pass)
    (report,) = memory_pass.reports
    assert arenas(ours) == [0, 1024] and report.greedy == 2048
    assert (report.in_place, report.requests) == (5, 5)
    assert str(report) == "forward: arena 1 024 B = the lower bound, proven; greedy 2 048 B (-50.0 %); 5 in place"


def test_copies_are_removed():
    memory_pass = MemoryPlanningPass(report=None)
    program = edge(*MODELS["copies"]())
    ours, theirs = planned(program, memory_pass), planned(program, GreedyPass())
    calls = lambda p: sum(n.op == "call_function" for n in p.exported_program().graph.nodes)  # noqa: E731
    (report,) = memory_pass.reports
    assert report.removed == calls(theirs) - calls(ours) >= 3
    assert str(report).endswith(f", {report.removed} copies removed")
    assert str(dataclasses.replace(report, removed=1)).endswith(", 1 copy removed")


def test_inputs_of_a_concatenation_lie_in_its_output():
    def dense(net, x):
        parts = [torch.relu(net.first(x))]
        for conv in (net.second, net.third, net.fourth):
            parts.append(torch.relu(conv(torch.cat(parts, 1) if len(parts) > 1 else parts[0])))
        return torch.cat(parts, 1).sum(1)

    convs = {name: nn.Conv2d(inputs, 8, 1) for name, inputs in (("first", 3), ("second", 8), ("third", 16), ("fourth", 24))}
    # A part may lie in several outputs, each one part longer than the last.
    for model, x, removed in ((*MODELS["unet"](), 1), (Net(dense, **convs), image(1, 3, 16, 16), 3)):
        program = edge(model, x)
        memory_pass = MemoryPlanningPass(report=None)
        ours, theirs = planned(program, memory_pass), planned(program, GreedyPass())
        (report,) = memory_pass.reports
        assert report.concatenated == removed and not any(".cat." in name for name in targets(ours))
        assert report.proven_optimal and 10 * report.bytes <= 7 * report.greedy
        assert str(report).endswith(f"{report.concatenated} concatenation{'s' if removed > 1 else ''} removed")
        accepted(ours)
        assert equal(load(ours.buffer).forward((x,)), load(theirs.buffer).forward((x,)))


def test_a_concatenation_that_is_not_whole_stays():
    def forward(_, x, y):
        a, b = torch.exp(x), torch.tanh(x)
        rows = torch.cat([a[:1], b]) * 2  # A slice of a larger tensor.
        columns = torch.cat([a, b], dim=1) * 3  # Rows of both take turns.
        short = torch.cat([a[0, :3] + 1, b[0] + 1]) * 4  # The second part is not aligned.
        given = torch.cat([x, a + 2]) * 5  # A graph input.
        outputs = torch.relu(y), torch.neg(y)
        return rows, columns, short, given, torch.cat(outputs), *outputs

    inputs = image(4, 8), image(4, 4) * 2
    program = edge(Net(forward), *inputs)
    memory_pass = MemoryPlanningPass(report=None)
    ours, theirs = planned(program, memory_pass), planned(program, GreedyPass())
    assert sum(".cat." in name for name in targets(ours)) == 5 and memory_pass.reports[0].concatenated == 0
    accepted(ours)
    assert equal(load(ours.buffer).forward(inputs), load(theirs.buffer).forward(inputs))


def test_slices_of_one_tensor_that_an_operator_reads_together():
    # The output may lie over the first slice only, and would change rows of the other one before they are read.
    def forward(_, x):
        a, b = torch.exp(x), torch.tanh(x)
        return a[1:] - a[:-1], torch.where(x[1:] > 100, b[1:], b[:-1]), torch.neg(x * 3)[1:].sigmoid()

    x = image(4, 64)
    kernels = {"aten::sub": (0,), "aten::where": (1,), "aten::sigmoid": (0,)}
    memory_pass = MemoryPlanningPass(report=None, kernels=kernels)
    ours = planned(edge(Net(forward), x), memory_pass)
    accepted(ours)
    assert (found := audit(ours, kernels=kernels)["forward"]), str(found)
    # The slice that is read alone is written over where it lies.
    assert memory_pass.reports[0].in_place == 1 and memory_pass.reports[0].removed >= 5
    for found, right in zip(load(ours.buffer).forward((x,)), forward(None, x), strict=True):
        assert torch.allclose(found, right, atol=1e-5)


def test_a_concatenation_stays_whole_if_one_of_its_inputs_lies_in_another():
    def forward(_, x):
        a, b, c, d = torch.exp(x), torch.tanh(x), torch.sin(x), torch.cos(x)
        wholes = torch.cat([a, b, d]), torch.cat([b, c]), torch.cat([c, a])
        return tuple(whole @ whole.T for whole in wholes)

    x = image(4, 64)
    memory_pass = MemoryPlanningPass(report=None)
    ours = planned(edge(Net(forward), x), memory_pass)
    accepted(ours)
    assert (found := audit(ours)["forward"]), str(found)
    assert memory_pass.reports[0].concatenated == 2 and sum(".cat." in name for name in targets(ours)) == 1
    for found, right in zip(load(ours.buffer).forward((x,)), forward(None, x), strict=True):
        assert torch.allclose(found, right, atol=1e-3)


def test_a_report_is_logged(caplog, capsys):
    with caplog.at_level(logging.INFO, logger="memplan.executorch"):
        planned(edge(*MODELS["chain"]()), MemoryPlanningPass())
    (record,) = [record for record in caplog.records if record.name == "memplan.executorch"]
    assert record.message == "memplan: forward: arena 1 024 B = the lower bound, proven; greedy 2 048 B (-50.0 %); 5 in place"
    assert "memplan" not in capsys.readouterr().err


def test_weights_that_operators_transpose_at_the_peak_are_named():
    x = image(1, 4, 64)
    program = edge(Net(lambda net, x: net.linear(x), linear=nn.Linear(64, 256)), x)
    memory_pass = MemoryPlanningPass(report=None)
    planned(program, memory_pass)
    words = "the peak holds 65 536 B that operators make of weights alone, such as aten_permute_copy_default: fold them with constant_prop_pass"
    assert memory_pass.reports[0].advice == words and str(memory_pass.reports[0]).endswith(words)
    program._edge_programs["forward"] = constant_prop_pass(program.exported_program())
    planned(program, memory_pass := MemoryPlanningPass(report=None))
    assert not memory_pass.reports[0].advice


def test_a_proof_says_over_which_choices_it_holds():
    # A small slice keeps a large tensor alive, so some plans keep the copy.
    def forward(_, x):
        y = (x * 2).reshape(1, -1)
        return y[:, :64] + 1, (y.sum() + x).sin()

    scopes = {}
    for name, model in (("chain", MODELS["chain"]()), ("slice", (Net(forward), image(16, 64)))):
        memory_pass = MemoryPlanningPass(report=None)
        planned(edge(*model), memory_pass)
        (report,) = memory_pass.reports
        scopes[name] = report.scope
        assert report.proven_optimal and ("proven for these choices" in str(report)) == (report.scope == "these_choices")
    assert scopes["chain"] == "all_choices", scopes


def test_greedys_plan_is_used_where_it_is_smaller():
    program = edge(*MODELS["residual"]())
    memory_pass = MemoryPlanningPass(report=None, strategy="naive", inplace=False, remove_copies=False)
    ours = planned(program, memory_pass)
    (report,) = memory_pass.reports
    assert arenas(ours) == arenas(planned(program, GreedyPass())) and report.is_greedys
    assert "greedy 13 824 B, whose plan is used" in str(report)
    accepted(ours)


def siblings(_, x):
    # Two copies of one tensor lie in the same bytes.
    a = x * 2
    b, c = a.unsqueeze(0).clone(), a.clone()
    return b + 1, c * 3, a.sum()


@pytest.mark.parametrize("model", [MODELS["residual"], lambda: (Net(siblings), image(4, 32))])
def test_the_root_logger_at_debug_accepts_the_plan(model):
    # ExecuTorch then verifies every plan, while the pass runs.
    logger = logging.getLogger()
    level = logger.level
    logger.setLevel(logging.DEBUG)
    try:
        planned(edge(*model()), MemoryPlanningPass(report=None))
    finally:
        logger.setLevel(level)


def test_members_of_a_suite():
    program = edge(*MODELS["residual"]())
    calls = []

    def counted(name, **options):
        inner = algorithm(name=name, **options)

        def member(*arguments):
            calls.append(name)
            return inner(*arguments)

        member.__name__ = name
        return member

    suite = MemoryPlanningAlgorithmSuite([greedy, memplan, counted("memplan_naive", strategy="naive"), counted("memplan_small", effort=1)])
    ours = planned(program, GreedyPass(memory_planning_algo=suite))
    assert arenas(ours)[1] <= arenas(planned(program, GreedyPass()))[1]
    assert calls == ["memplan_naive", "memplan_small"]
    accepted(ours)
    assert algorithm(name="a").__name__ == "a" and memplan.__name__ == "memplan"


def test_a_member_is_no_algorithm_of_a_pass():
    with pytest.raises(Exception, match="memplan is an algorithm for MemoryPlanningAlgorithmSuite.*MemoryPlanningPass"):
        planned(edge(*MODELS["chain"]()), GreedyPass(memory_planning_algo=memplan))


def test_a_member_changes_nothing():
    # What an algorithm of a suite sets on specs, the next one sees. `naive` writes into the list of reserved sizes.
    seen = {}

    def spy(alignment, specs, graph_module, *rest):
        graph_module.input_mem_buffer_sizes = [0, 48]
        before = [(spec.mem_id, spec.mem_offset, spec.mem_obj_id, spec.storage_base) for spec in specs]
        result = algorithm(kernels=portable_kernels())(alignment, specs, graph_module, *rest)
        assert before == [(spec.mem_id, spec.mem_offset, spec.mem_obj_id, spec.storage_base) for spec in specs]
        assert graph_module.input_mem_buffer_sizes == [0, 48]
        seen["lowest"] = min(place.mem_offset for place in result.spec_dict.values())
        graph_module.input_mem_buffer_sizes = []
        return result

    planned(edge(*MODELS["residual"]()), GreedyPass(memory_planning_algo=MemoryPlanningAlgorithmSuite([spy, naive])))
    assert seen["lowest"] == 48


@pytest.mark.parametrize("alignment", [1, 16, 64, 128])
def test_alignments(alignment):
    program = edge(*MODELS["attention"]())
    memory_pass = MemoryPlanningPass(alignment=alignment, report=None)
    ours = planned(program, memory_pass)
    assert arenas(ours)[1] <= arenas(planned(program, GreedyPass(alignment=alignment)))[1]
    specs = list(collect_specs_from_nodes(ours.exported_program().graph.nodes, ours.exported_program().graph_signature, do_assertion=False))
    assert specs and all(spec.mem_offset % alignment == 0 for spec in specs)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"alignment": 48}, ValueError, "alignment 48 is not a power of two"),
        ({"efort": 3}, TypeError, "unexpected keyword argument 'efort'"),
        ({"effort": "much"}, TypeError, "effort must be an integer"),
        ({"strategy": "bset"}, ValueError, "no strategy is called 'bset'"),
        ({"time_limit": -1}, ValueError, "time_limit is -1"),
        ({"memory_planning_algo": None}, TypeError, "unexpected keyword argument"),
        ({"kernels": "aten::relu 0"}, TypeError, "kernels is a table such as read_kernels returns, not 'aten::relu 0'"),
    ],
)
def test_wrong_options_are_errors_where_the_pass_is_made(options, error, words):
    with pytest.raises(error, match=words):
        MemoryPlanningPass(**options)
    if "alignment" not in options:
        with pytest.raises(error, match=words):
            algorithm(**options)


def test_graph_inputs_and_outputs_outside_the_arena():
    model, x = MODELS["residual"]()
    program, flags = edge(model, x), {"alloc_graph_input": False, "alloc_graph_output": False}
    ours, theirs = planned(program, MemoryPlanningPass(report=None, **flags)), planned(program, GreedyPass(**flags))
    assert arenas(ours)[1] <= arenas(theirs)[1]
    accepted(ours, **flags)
    assert equal(load(ours.buffer).forward((x,)), load(theirs.buffer).forward((x,)))


@pytest.mark.parametrize("inside", [False, True])
def test_an_arena_is_as_large_as_the_plan_of_the_exported_program(inside):
    exported = torch.export.export(Net(lambda _, x: torch.tanh(torch.exp(x) + x)).eval(), (image(16, 16),))
    plan = memplan_package.plan(from_exported_program(exported, inplace=False), alignment=16, inputs_in_pool=inside)
    settings = {"inplace": False, "remove_copies": False, "alloc_graph_input": inside}
    ours = planned(to_edge(exported), MemoryPlanningPass(report=None, **settings))
    assert arenas(ours)[1] == plan.pool_size == (3072 if inside else 2048)


def test_the_same_program_has_the_same_plan():
    program = edge(*MODELS["attention"]())
    assert planned(program, MemoryPlanningPass(report=None)).buffer == planned(program, MemoryPlanningPass(report=None)).buffer


def test_parts_of_several_cats_and_slices():
    def forward(_, x):
        a, b = torch.exp(x), torch.tanh(x)
        twice, both = torch.cat([a, a]), torch.cat([b, a, b[:1]])
        # The rows of a slice of columns lie apart, and that of three columns begins at no multiple of 16 bytes.
        flat = (b * 2).reshape(1, -1)
        return twice * 2, both + 1, a[:, 1:3] * 3, flat[:, 3:9] - 1, flat[:, 4:8] - 1, b[1:]

    x = image(4, 6)
    program = edge(Net(forward), x)
    memory_pass = MemoryPlanningPass(report=None)
    ours, theirs = planned(program, memory_pass), planned(program, GreedyPass())
    accepted(ours)
    names = [str(node.target) for node in ours.exported_program().graph.nodes]
    assert sum(".cat." in name for name in names) == 2 and sum("slice_copy" in name for name in names) == 3, names
    assert arenas(ours)[1] <= arenas(theirs)[1] and equal(load(ours.buffer).forward((x,)), load(theirs.buffer).forward((x,)))


def strided(_, x):
    y = torch.exp(x)
    return y[:, ::2].sin() * 2, (y * 3)[:, -2:] - 1


def columns(_, x):
    return (x * 5)[..., 4:8] + 1


def reordered(_, x):
    return x.exp().clone(memory_format=torch.channels_last)


@pytest.mark.parametrize("function", [strided, columns, reordered])
def test_copies_of_bytes_that_lie_elsewhere_or_apart(function):
    x = image(1, 4, 8, 16)
    ours = planned(edge(Net(function), x), MemoryPlanningPass(report=None))
    right = function(None, x)
    for found, wanted in zip(load(ours.buffer).forward((x,)), right if isinstance(right, tuple) else (right,), strict=True):
        assert torch.allclose(found, wanted, atol=1e-5)


def test_sizes_that_only_the_run_knows():
    def forward(_, x, y):
        # Two sizes with the same largest value are not equal.
        return torch.relu(x * 2) + 1, torch.sigmoid(y * 3), torch.cat([x, y]) * 2

    rows, others = torch.export.Dim("rows", min=2, max=100), torch.export.Dim("others", min=2, max=100)
    program = edge(Net(forward), image(7, 9), image(5, 9), dynamic_shapes={"inputs": ({0: rows}, {0: others})})
    memory_pass = MemoryPlanningPass(report=None)
    ours, theirs = planned(program, memory_pass), planned(program, GreedyPass())
    assert arenas(ours)[1] <= arenas(theirs)[1] and memory_pass.reports[0].in_place >= 2
    for a, b in ((2, 3), (33, 64), (100, 100)):
        inputs = (image(a, 9), image(b, 9))
        assert equal(load(ours.buffer).forward(inputs), load(theirs.buffer).forward(inputs))


def test_several_methods():
    methods = {
        name: torch.export.export(model.eval(), (x,))
        for name, (model, x) in (("forward", MODELS["residual"]()), ("encode", MODELS["chain"]()))
    }
    memory_pass = MemoryPlanningPass(report=None)
    program = to_edge(methods).to_executorch(ExecutorchBackendConfig(memory_planning_pass=memory_pass))
    assert [report.method for report in memory_pass.reports] == ["forward", "encode"]
    loaded, x = load(program.buffer), image(16, 16)
    assert torch.allclose(loaded.run_method("encode", (x,))[0], chain(None, x))


def test_small_graphs():
    for forward in (lambda _, x: x, lambda _, x: (x, x), lambda _, x: x[:0] + 1, lambda _, x: (torch.relu(x), None)):
        program = edge(Net(forward), image(4, 4))
        ours = planned(program, MemoryPlanningPass(report=None))
        assert sum(arenas(ours)) <= sum(arenas(planned(program, GreedyPass())))
        load(ours.buffer).forward((image(4, 4),))


def test_no_spec_at_all():
    memory_pass = MemoryPlanningPass(report=None)
    assert memory_pass.memory_planning_algo(16, [], torch.fx.GraphModule({}, torch.fx.Graph()), None, 0) == [0, 0]


def test_a_part_of_another_tensor_lies_in_it():
    graph = torch.fx.Graph()
    nodes = [graph.placeholder(name) for name in "abc"]
    graph.output(tuple(nodes))
    whole, part, other = (TensorSpec(torch.float32, torch.Size([size])) for size in (64, 16, 8))
    part.storage_base, part.storage_base_offset = whole, 32
    for spec, node in zip((whole, part, other), nodes):
        node.meta["spec"] = spec
    # All of it is alive as long as a part is.
    for lifetimes in ([0, 3], [0, 3], [0, 3]), ([2, 3], [0, 1], [0, 1]), ([0, 1], [2, 3], [2, 3]):
        for spec, lifetime in zip((whole, part, other), lifetimes):
            spec.lifetime = lifetime
        result = memplan(16, [whole, part, other], torch.fx.GraphModule({}, graph), None, 64)
        places = [result.spec_dict[spec].mem_offset for spec in (whole, part, other)]
        assert places[1] == places[0] + 32 and result.bufsizes == [0, 256 + 32 + 64]


def copied(_, x):
    copy = x.exp().unsqueeze(0).clone()
    other = x.sin()
    return copy * 2, other @ other


def joined(_, x):
    whole = torch.cat([x.exp(), x.tanh()])
    other = x.sin()
    return whole * 2, other @ other


@pytest.mark.parametrize("forward", [copied, joined])
def test_a_tensor_that_another_one_is_declared_to_lie_in_is_copied(forward):
    class Declared(MemoryPlanningPass):
        def run(self, graph_module, graph_signature=None):
            specs = {node.name: node.meta.get("spec") for node in graph_module.graph.nodes}
            # It is written before the copy is read.
            lay_in(specs["aten_sin_default"], specs["aten_exp_default"], 0)
            return super().run(graph_module, graph_signature)

    x = image(8, 8)
    program = edge(Net(forward), x)
    ours, theirs = planned(program, Declared(report=None)), planned(program, GreedyPass())
    accepted(ours)
    assert audit(ours)["forward"], str(audit(ours)["forward"])
    assert equal(load(ours.buffer).forward((x,)), load(theirs.buffer).forward((x,)))


def test_a_version_that_has_other_words_for_parts():
    # ExecuTorch's main branch of 2026-08-22 has `inplace_base` in place of `storage_base`, without an offset.
    class Other(TensorSpec):
        inplace_base = None

    specs = [Other(torch.float32, torch.Size([16])) for _ in range(3)]
    for spec in specs:
        for name in ("storage_base", "storage_base_offset"):
            vars(spec).pop(name, None)
        spec.lifetime = [0, 3]
    specs[1].inplace_base = specs[0]
    result = memplan(16, specs, torch.fx.GraphModule({}, torch.fx.Graph()), None, 0)
    places = [result.spec_dict[spec].mem_offset for spec in specs]
    assert places[0] == places[1] != places[2] and result.bufsizes == [0, 128]
    lay_in(specs[2], specs[0], 0)
    assert specs[2].inplace_base is specs[0] and not hasattr(specs[2], "storage_base")
    # It has no word for a part that begins elsewhere.
    lay_in(specs[0], specs[2], 16)
    assert specs[0].inplace_base is None


def test_lifetimes_may_count_nodes_that_the_graph_does_not_have():
    specs = [TensorSpec(torch.float32, torch.Size([16])) for _ in range(3)]
    for spec, lifetime in zip(specs, ([0, 4], [3, 8], [6, 9])):
        spec.lifetime = lifetime
    result = memplan(16, specs, torch.fx.GraphModule({}, torch.fx.Graph()), None, 0)
    a, b, c = (result.spec_dict[spec].mem_offset for spec in specs)
    assert result.bufsizes == [0, 128] and a == c != b


def test_xnnpack_keeps_its_padding():
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
    from executorch.exir import to_edge_transform_and_lower

    model, x = MODELS["residual"]()
    program = to_edge_transform_and_lower(torch.export.export(model.eval(), (x,)), partitioner=[XnnpackPartitioner()])
    ours, theirs = planned(program, MemoryPlanningPass(report=None)), planned(program, GreedyPass())
    assert arenas(ours)[1] <= arenas(theirs)[1] and arenas(ours)[1] % 16 == 0
    assert arenas(ours)[1] >= 2 * x.numel() * 4 + 64
    found = audit(ours)["forward"]
    assert found and "not seen: the memory of delegates" in str(found), str(found)
    assert equal(load(ours.buffer).forward((x,)), load(theirs.buffer).forward((x,)))


def test_the_snippets_of_the_chapter_run():
    book = Path(__file__).parents[4] / "book" / "src" / "executorch.md"
    first, pools = (book.read_text().split(f"```python {name}\n")[1].split("```")[0] for name in ("executorch", "executorch-pools"))
    names = {}
    exec(first, names)
    assert sum(arenas(names["program"])) > 0
    exec(book.read_text().split("```python executorch-audit\n")[1].split("```")[0], names)
    exec(pools, {})
