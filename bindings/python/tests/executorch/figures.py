"""Prints the figures of the book's chapters on ExecuTorch and PyTorch, in the environment that `install` makes, with the
packages torchvision==0.28.0 and transformers==5.23.0 as well:

    DIR/bin/pip install --no-deps torchvision==0.28.0 transformers==5.23.0 typer
    DIR/bin/python bindings/python/tests/executorch/figures.py executorch folded torch training

`executorch` prints arenas, `folded` those after ExecuTorch's constant_prop_pass, `torch` the pools of exported programs and
their core ATen, `training` those of training steps. Each takes some minutes. More words choose models by name, those above or
any other of torchvision's.
"""

import copy
import sys
import time
import warnings

import torch
from torch import nn

import memplan

warnings.simplefilter("ignore")


class Block(nn.Sequential):
    def __init__(self, inputs, outputs):
        layers = [nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU()]
        layers += [nn.Conv2d(outputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU()]
        super().__init__(*layers)


class UNet(nn.Module):
    def __init__(self, widths=(16, 32, 64, 128)):
        super().__init__()
        pairs = list(zip(widths[:-1], widths[1:]))
        self.down = nn.ModuleList(Block(a, b) for a, b in [(3, widths[0]), *pairs])
        self.up = nn.ModuleList(nn.ConvTranspose2d(b, a, 2, 2) for a, b in pairs)
        self.mix = nn.ModuleList(Block(2 * a, a) for a, _ in pairs)
        self.out = nn.Conv2d(widths[0], 2, 1)

    def forward(self, x):
        kept = []
        for level, block in enumerate(self.down):
            x = block(nn.functional.max_pool2d(x, 2) if level else x)
            kept.append(x)
        kept.pop()
        for up, mix in zip(reversed(self.up), reversed(self.mix)):
            x = mix(torch.cat([kept.pop(), up(x)], 1))
        return self.out(x)


class Decoder(nn.Module):
    """One step of a language model with caches of a fixed length, for one token."""

    class Layer(nn.Module):
        def __init__(self, width, heads, length):
            super().__init__()
            self.heads = heads
            self.q, self.k, self.v, self.out = (nn.Linear(width, width, bias=False) for _ in range(4))
            self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
            for name in ("keys", "values"):
                self.register_buffer(name, torch.zeros(1, heads, length, width // heads))

        def forward(self, x, at, mask):
            y = self.first(x)
            split = lambda z: z.view(1, 1, self.heads, -1).transpose(1, 2)  # noqa: E731
            self.keys[:, :, at], self.values[:, :, at] = split(self.k(y)), split(self.v(y))
            weights = torch.softmax(split(self.q(y)) @ self.keys.transpose(-1, -2) / 8 + mask, -1)
            x = x + self.out((weights @ self.values).transpose(1, 2).reshape(1, 1, -1))
            return x + self.down(nn.functional.gelu(self.up(self.second(x))))

    def __init__(self, layers=4, width=128, heads=4, length=256, words=500):
        super().__init__()
        self.embedding, self.last = nn.Embedding(words, width), nn.Linear(width, words, bias=False)
        self.layers = nn.ModuleList(self.Layer(width, heads, length) for _ in range(layers))
        self.register_buffer("places", torch.arange(length), persistent=False)

    def forward(self, token, at):
        x, mask = self.embedding(token), torch.where(self.places <= at, 0.0, -1e9)
        for layer in self.layers:
            x = layer(x, at, mask)
        return self.last(x)


class Only(nn.Module):
    """One result of a language model."""

    def __init__(self, model, result, **options):
        super().__init__()
        self.model, self.result, self.options = model, result, options

    def forward(self, ids):
        return getattr(self.model(input_ids=ids, **self.options), self.result)


def vision(name, size=224):
    import torchvision

    options = {"init_weights": False} if name in ("inception_v3", "googlenet") else {}
    return getattr(torchvision.models, name)(weights=None, **options), (torch.randn(1, 3, size, size),)


def language(name, layers=6, length=128, width=512):
    import transformers

    sizes = {"vocab_size": 1000, "attn_implementation": "eager"}
    if name == "bert":
        config = transformers.BertConfig(
            hidden_size=768, num_hidden_layers=layers, num_attention_heads=12, intermediate_size=3072, **sizes
        )
        model = Only(transformers.BertModel(config), "pooler_output")
    elif name == "gpt2":
        config = transformers.GPT2Config(n_embd=768, n_layer=layers, n_head=12, n_positions=256, **sizes)
        model = Only(transformers.GPT2LMHeadModel(config), "logits", use_cache=False)
    else:
        config = transformers.LlamaConfig(
            hidden_size=width, intermediate_size=43 * width // 16, num_hidden_layers=layers, num_attention_heads=width // 64, num_key_value_heads=width // 128,
            max_position_embeddings=256, **sizes,
        )  # fmt: skip
        model = Only(transformers.LlamaForCausalLM(config), "logits", use_cache=False)
    return model, (torch.randint(0, 1000, (1, length)),)


VISION = ["mobilenet_v2", "resnet50", "efficientnet_b0", "densenet121", "googlenet", "shufflenet_v2_x1_0", "convnext_tiny"]
VISION += ["vit_b_16", "swin_t"]
MODELS = {name: lambda name=name: vision(name) for name in VISION} | {
    "inception_v3": lambda: vision("inception_v3", 299),
    "bert": lambda: language("bert"),
    "gpt2": lambda: language("gpt2"),
    "llama": lambda: language("llama"),
    "small llama": lambda: language("llama", layers=1, length=96, width=128),
    "decoder": lambda: (Decoder().requires_grad_(False), (torch.tensor([[3]]), torch.tensor([0]))),
    "unet": lambda: (UNet(), (torch.randn(1, 3, 128, 128),)),
}
FOLDED = ["vit_b_16", "swin_t", "bert", "gpt2", "llama", "small llama", "decoder"]
TORCH = ["mobilenet_v2", "resnet50", "efficientnet_b0", "densenet121", "convnext_tiny", "vit_b_16", "swin_t"]
TORCH += ["bert", "gpt2", "llama", "unet"]


def row(*cells):
    print("|", " | ".join(f"{cell:,}".replace(",", " ") if isinstance(cell, int) else str(cell) for cell in cells), "|", flush=True)


def exported(name):
    torch.manual_seed(0)
    model, inputs = MODELS[name]() if name in MODELS else vision(name)
    with torch.no_grad():
        return torch.export.export(model.eval(), inputs)


def executorch(names, folded=False):
    from executorch.exir import ExecutorchBackendConfig, to_edge
    from executorch.exir.memory_planning import collect_specs_from_nodes
    from executorch.exir.passes.constant_prop_pass import constant_prop_pass

    from memplan.executorch import MemoryPlanningPass

    row("model", "tensors", "greedy", "lifetimes", "memplan", "", "bound", "in place", "copies", "cats", "s")
    for name in names:
        program = to_edge(exported(name))
        if folded:
            program._edge_programs["forward"] = constant_prop_pass(program.exported_program())
        reports, begun = [], time.monotonic()
        for settings in ({"inplace": False, "remove_copies": False}, {}):
            memory_pass = MemoryPlanningPass(report=None, **settings)
            planned = copy.deepcopy(program).to_executorch(ExecutorchBackendConfig(memory_planning_pass=memory_pass))
            reports += memory_pass.reports
        exported_program = planned.exported_program()
        nodes, signature = exported_program.graph.nodes, exported_program.graph_signature
        tensors = len(list(collect_specs_from_nodes(nodes, signature, do_assertion=False)))
        alone, report = reports
        gain = f"{100 * (report.bytes - report.greedy) / report.greedy:.1f} %"
        bound = "met" if report.proven_optimal else report.lower_bound
        row(name, tensors, report.greedy, alone.bytes, report.bytes, gain, bound, report.in_place, report.removed,
            report.concatenated, f"{time.monotonic() - begun:.0f}")  # fmt: skip


def graphs(names):
    from memplan.torch import from_exported_program

    row("graph", "operators", "one buffer each", "no views", "views", "views and in place", "bound")
    for name in names:
        program = exported(name)
        for kind, graph in (("export", program), ("core ATen", program.run_decompositions())):
            plain, both = from_exported_program(graph), from_exported_program(graph, inplace=True)
            plans = [memplan.plan(plain, alignment=64, views=False), memplan.plan(plain, alignment=64), memplan.plan(both, alignment=64)]
            row(f"{name} {kind}", len(plain), plans[0].naive_size, *(plan.pool_size for plan in plans), "met" if plans[2].proven_optimal else plans[2].lower_bound)


def training(names):
    from torch.fx.experimental.proxy_tensor import make_fx

    from memplan.torch import from_graph

    def image_model(name):
        import torchvision

        return getattr(torchvision.models, name)(weights=None).train(), torch.randn(8, 3, 96, 96), lambda y: (y * y).mean()

    def gpt2():
        model, _ = language("gpt2", layers=4)
        return model.eval(), torch.randint(0, 1000, (4, 128)), lambda y: (y * y).mean()

    steps = {"resnet18": lambda: image_model("resnet18"), "mobilenet_v2": lambda: image_model("mobilenet_v2"), "gpt2": gpt2}
    row("training step", "operators", "one buffer each", "as given", "reordered", "bound", "s")
    for name in names or steps:
        torch.manual_seed(0)
        model, x, loss_of = steps[name]()
        keys = [key for key, _ in model.named_parameters()]
        buffers = dict(model.named_buffers())

        def step(x, *parameters):
            y = torch.func.functional_call(model, dict(zip(keys, parameters)) | buffers, (x,))
            loss = loss_of(y)
            gradients = torch.autograd.grad(loss, parameters)
            for parameter, gradient in zip(parameters, gradients):
                parameter.detach().copy_(parameter.detach() - 0.1 * gradient)
            return loss

        graph = make_fx(step, tracing_mode="fake", _allow_non_fake_inputs=True)(x, *model.parameters())
        placeholders = [node.name for node in graph.graph.nodes if node.op == "placeholder"]
        sequence = from_graph(graph, weights=placeholders[1:], inplace=True)
        begun = time.monotonic()
        found = memplan.reorder(sequence, alignment=64)
        row(name, len(sequence), found.given.naive_size, found.given.pool_size, found.plan.pool_size,
            "met" if found.proven_optimal else found.lower_bound, f"{time.monotonic() - begun:.0f}")  # fmt: skip


def main(words):
    kinds = [word for word in words if word in ("executorch", "folded", "torch", "training")]
    names = [word for word in words if word not in kinds]
    print(f"{time.strftime('%Y-%m-%d')}, torch {torch.__version__}, memplan {memplan.__version__}\n")
    for kind in kinds:
        if kind == "training":
            training(names)
        elif kind == "torch":
            graphs(names or TORCH)
        else:
            executorch(names or (FOLDED if kind == "folded" else list(MODELS)), folded=kind == "folded")
        print()


if __name__ == "__main__":
    main(sys.argv[1:])
