"""Programs for the tests of ExecuTorch."""

import copy

import torch
from executorch.exir import ExecutorchBackendConfig, to_edge
from executorch.exir.memory_planning import Verifier
from torch import nn

from memplan._executorch_line import specs_of


def edge(model, *inputs, **options):
    return to_edge(torch.export.export(model.eval(), inputs, **options))


def planned(program, memory_pass):
    """The program with a plan of this pass; the edge program stays as it is."""
    return copy.deepcopy(program).to_executorch(ExecutorchBackendConfig(memory_planning_pass=memory_pass))


def arenas(program):
    return program.exported_program().graph_module.meta["non_const_buffer_sizes"]


def accepted(program, **flags):
    exported = program.exported_program()
    flags = {"alloc_graph_input": True, "alloc_graph_output": True, "alloc_mutable_buffers": True} | flags
    Verifier(exported.graph_module, **flags, graph_signature=exported.graph_signature).verify_storage_reuse()
    for spec in (spec for node in exported.graph.nodes for spec in specs_of(node) if spec.storage_base is not None):
        base, begin = spec.storage_base, spec.storage_base.mem_offset + spec.storage_base_offset
        assert (spec.mem_id, spec.mem_offset) == (base.mem_id, begin) and spec.allocated_memory <= base.allocated_memory


def equal(ours, theirs):
    return len(ours) == len(theirs) and all(torch.equal(a, b) for a, b in zip(ours, theirs))


class Net(nn.Module):
    """A module of a function."""

    def __init__(self, function, **parts):
        super().__init__()
        self.function = function
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, *inputs):
        return self.function(self, *inputs)


def image(*shape):
    return torch.linspace(-2, 2, int(torch.Size(shape).numel())).reshape(shape)


def targets(program):
    return [str(node.target) for node in program.exported_program().graph.nodes if node.op == "call_function"]
