"""Models with copies of nodes, as `memplan recompute` writes them, against ONNX Runtime: the same bits.

Usage: python copies.py MEMPLAN

Networks with long skip connections, with shapes that are computed, nodes without names, several outputs, sub-graphs and
weights of equal names in them, are written with less memory than they need as given. The checker of the package `onnx`
must accept each, the initializers must be untouched, and the outputs must have the same bits.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

import numpy
import onnx
import onnxruntime
from onnx import TensorProto, numpy_helper, parser

PARTS = (0.9, 0.8, 0.7, 0.6)

RESIDUAL = """<ir_version: 8, opset_import: ["" : 17]>
residual (float[1,8,32,32] x) => (float[1,8,32,32] y, float[1,8,1,1] m) <float[1] two = {2.0}> {
    a = Conv <pads = [1, 1, 1, 1]> (x, w8)
    b = Relu(a)
    c = Sigmoid(b)
    d = MaxPool <kernel_shape = [4, 4], strides = [4, 4]> (c)
    e = Conv <pads = [1, 1, 1, 1]> (d, w64)
    f = Relu(e)
    s = Shape(f)
    g = Reshape(f, s)
    h = ConvTranspose <kernel_shape = [4, 4], strides = [4, 4]> (g, t64)
    i = Mul(h, two)
    m = ReduceMean <axes = [2, 3]> (i)
    j = Exp(m)
    k = Mul(c, j)
    l = Conv <pads = [1, 1, 1, 1]> (k, w8)
    y = Add(l, b)
}"""

BRANCHES = """<ir_version: 8, opset_import: ["" : 17]>
branches (float[512] x, bool c) => (float[512] y) {
    a = Tanh(x)
    p = Sin(a)
    k = ReduceMax(p)
    q = Expand(k, wide)
    n = ReduceMin(q)
    r = If (c) <
        then_branch = yes () => (float[1] t) { t = Neg(n) },
        else_branch = no () => (float[1] u) { u = Abs(n) }
    >
    z = Expand(r, narrow)
    v = Mul(z, p)
    y = Add(v, a)
}"""

PARTS_OF_A_RESULT = """<ir_version: 8, opset_import: ["" : 17]>
parts (float[16,64] x) => (float[8,64] y, int64[8,64] index) {
    values, index = TopK <axis = 0> (x, eight)
    a = Exp(values)
    b = ReduceSum(a)
    c = Expand(b, wide)
    d = ReduceMax(c)
    e = Mul(a, d)
    y = Add(e, values)
}"""


def array(shape, seed):
    return numpy.random.default_rng(seed).standard_normal(shape).astype(numpy.float32)


def model(text, **weights):
    made = parser.parse_model(text)
    for name, value in weights.items():
        made.graph.initializer.append(numpy_helper.from_array(numpy.asarray(value), name))
    return onnx.shape_inference.infer_shapes(made)


def named(made):
    """The same model, in which all nodes have names."""
    for at, node in enumerate(made.graph.node):
        node.name = f"{node.op_type}_{at}"
    return made


def models():
    residual = {"w8": array((8, 8, 3, 3), 1), "w64": array((64, 8, 3, 3), 2), "t64": array((64, 8, 4, 4), 3)}
    size = lambda *sizes: numpy.array(sizes, numpy.int64)  # noqa: E731
    yield "residual", model(RESIDUAL, **residual)
    yield "residual, named", named(model(RESIDUAL, **residual))
    yield "branches", named(model(BRANCHES, wide=size(1000), narrow=size(512)))
    yield "parts", model(PARTS_OF_A_RESULT, eight=size(8), wide=size(1, 1500))


def run(path, inputs):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return session.run(None, inputs)


def supplied(graph):
    values = {}
    for at, value in enumerate(graph.input):
        tensor = value.type.tensor_type
        shape = [dim.dim_value for dim in tensor.shape.dim]
        values[value.name] = numpy.array(True) if tensor.elem_type == TensorProto.BOOL else array(shape, 10 + at)
    return values


def weights(graph):
    return [weight.SerializeToString() for weight in graph.initializer]


def check(memplan, folder, name, given):
    """Writes a model with copies at several capacities; returns the number of copies."""
    source = folder / "given.onnx"
    onnx.save(given, source)
    inputs = supplied(given.graph)
    wanted = run(source, inputs)
    pool = json.loads(subprocess.check_output([memplan, "plan", source, "--json"]))["pool_size"]
    copies = 0
    for part in PARTS:
        target = folder / "smaller.onnx"
        capacity = int(pool * part)
        command = [memplan, "recompute", source, "--capacity", str(capacity), "-o", target, "--quiet"]
        found = subprocess.run(command, capture_output=True, text=True)
        if found.returncode == 1:
            continue
        assert found.returncode == 0, f"{name}: {found.stderr}"
        written = onnx.load(target)
        onnx.checker.check_model(written, full_check=True)
        assert weights(written.graph) == weights(given.graph), f"{name}: initializers"
        for a, b in zip(wanted, run(target, inputs), strict=True):
            assert a.tobytes() == b.tobytes(), f"{name} at {capacity}: other bits"
        planned = json.loads(subprocess.check_output([memplan, "plan", target, "--json"]))["pool_size"]
        assert planned <= capacity, f"{name}: {planned} > {capacity}"
        copies += len(written.graph.node) - len(given.graph.node)
    return copies


def main():
    memplan = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as folder:
        for name, given in models():
            copies = check(memplan, pathlib.Path(folder), name, given)
            print(f"{name}: {copies} copies")
            assert copies, f"{name}: nothing runs twice at any capacity"


main()
