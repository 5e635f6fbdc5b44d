"""Training steps with copies of operators run in their arena with the same bits, and nothing runs twice that must not."""

import json

import pytest

torch = pytest.importorskip("torch")

from steps import MODELS  # noqa: E402
from torch import fx  # noqa: E402
from torch._dynamo.backends.common import aot_autograd  # noqa: E402
from torch._functorch.partitioners import default_partition  # noqa: E402
from torch.fx.experimental.proxy_tensor import make_fx  # noqa: E402
from torch.utils._pytree import tree_leaves  # noqa: E402

import memplan  # noqa: E402
from memplan.torch import Planned, from_graph, in_order  # noqa: E402


def joint_graph(name):
    """The forward and the backward pass of a training step in one graph."""
    kept = []

    def partition(joint, joint_inputs, **options):
        kept.append(in_order(joint, from_graph(joint)))
        return default_partition(joint, joint_inputs, **options)

    torch._dynamo.reset()
    torch.manual_seed(0)
    make, example = MODELS[name]
    model, x = make(), example()

    def boxed(module, _):
        def run(args):
            return fx.Interpreter(module).boxed_run(args)

        run._boxed_call = True
        return run

    loss = torch.compile(model, backend=aot_autograd(fw_compiler=boxed, bw_compiler=boxed, partition_fn=partition))(x)
    sum(loss if isinstance(loss, tuple) else (loss,)).backward()
    return kept[0]


def supplied(graph):
    """Values for the inputs of a graph, always the same."""
    torch.manual_seed(1)
    values = [node.meta["val"] for node in graph.graph.nodes if node.op == "placeholder"]
    of = lambda v: torch.randn(v.shape).to(v.dtype) if v.is_floating_point() else torch.randint(0, 50, v.shape, dtype=v.dtype)  # noqa: E731
    return [of(value).as_strided(value.shape, value.stride()).clone() for value in values]


def run(graph):
    """The results of a graph, and its inputs afterwards."""
    inputs = supplied(graph.module if hasattr(graph, "module") else graph)
    torch.manual_seed(2)
    with torch.no_grad():
        results = graph.run(*inputs)
    return [*tree_leaves(results), *inputs]


@pytest.mark.parametrize("name", MODELS)
def test_an_expanded_step_runs_in_its_arena(name):
    graph = joint_graph(name)
    sequence = from_graph(graph)
    full = memplan.plan(sequence, alignment=64)
    wanted = run(fx.Interpreter(graph))
    expanded = 0
    for percent in (90, 75, 60, 50):
        found = memplan.recompute(sequence, capacity=full.pool_size * percent // 100, alignment=64, effort=100_000)
        if not found.possible:
            found = memplan.recompute(sequence, capacity=found.least, alignment=64, effort=100_000)
        if not found.possible:
            continue
        assert found.plan.verify(execute=True) == []
        again = in_order(graph, found.sequence)
        copies = len(again.graph.nodes) - len(graph.graph.nodes)
        assert copies >= len(found.runs)
        again.graph.lint()
        twice = [sequence.operators[step] for step in found.runs]
        assert not any("rand" in one or "bernoulli" in one or "dropout" in one or "norm_functional" in one for one in twice)
        for a, b in zip(wanted, run(Planned(again, found.plan)), strict=True):
            assert a is b is None or torch.equal(a, b)
        expanded += bool(found.runs)
    assert expanded or name == "batch_norm"


def test_readers_read_the_copy_that_the_sequence_names():
    """Both parts of a result are made again, one of them in vain: it is a result of the graph, which stays."""

    def step(x):
        wide, index = torch.max(x, 0)
        first = wide.exp().sum()
        return first + wide.cos().sum(), index

    graph = make_fx(step, tracing_mode="fake")(torch.randn(4, 500))
    given = json.loads(from_graph(graph).to_json())
    by_kind = {one["kind"]: at for at, one in enumerate(given["operators"])}
    maximum, cosine = given["operators"][by_kind["aten.max.dim"]], given["operators"][by_kind["aten.cos.default"]]
    outputs = [{**output, "name": output["name"] + "~1"} for output in maximum["outputs"]]
    copy = {**maximum, "name": maximum["name"] + "~1", "outputs": outputs}
    cosine["inputs"] = [outputs[0]["name"]]
    given["operators"].insert(by_kind["aten.cos.default"], copy)
    expanded = memplan.Sequence.from_json(json.dumps(given))
    again = in_order(graph, expanded)
    readers = {node.target: node.all_input_nodes[0] for node in again.graph.nodes if node.all_input_nodes}
    assert readers[torch.ops.aten.cos.default].args[0] is not readers[torch.ops.aten.exp.default].args[0]
    assert again.graph.output_node().args[0][1].args[0] is readers[torch.ops.aten.exp.default].args[0]
    wanted = fx.Interpreter(graph).run(*supplied(graph))
    found = Planned(again, memplan.plan(expanded, alignment=64)).run(*supplied(graph))
    assert all(torch.equal(a, b) for a, b in zip(wanted, found, strict=True))


def test_what_writes_or_draws_random_numbers_is_once():
    def step(x, mean, var):
        y = torch.nn.functional.batch_norm(torch.rand_like(x) + x, mean, var, training=True)
        return y.relu_().sum()

    graph = make_fx(step, tracing_mode="fake")(torch.randn(4, 8), torch.zeros(8), torch.ones(8))
    operators = json.loads(from_graph(graph).to_json())["operators"]
    once = {one["kind"] for one in operators if one.get("once")}
    assert {"aten.rand_like.default", "aten.relu_.default"} <= once
    assert any("batch_norm" in kind for kind in once), once
    assert not any("sum" in kind or "add" in kind for kind in once)
