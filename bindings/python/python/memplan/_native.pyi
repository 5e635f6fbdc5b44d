from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence as _Sequence
from os import PathLike
from typing import Any, Literal, TypeAlias, final

from typing_extensions import Self, disjoint_base

from . import Body, Tensor

__all__ = [
    "Operator",
    "Output",
    "Plan",
    "PlanCache",
    "Pool",
    "Problem",
    "STRATEGIES",
    "Sequence",
    "__version__",
    "_restored",
    "compare",
    "copied_views",
    "fit",
    "lower",
    "plan",
    "read",
    "recompute",
    "reorder",
    "verify",
]

__version__: str
STRATEGIES: list[str]

_Place: TypeAlias = str | tuple[str, int]
_Part: TypeAlias = tuple[int, int, int]
_Pin: TypeAlias = int | tuple[str, int]
_Buffer: TypeAlias = Any
_Time: TypeAlias = int | _Sequence[int]
_Progress: TypeAlias = Callable[[int, int, int], object]

@final
class Output:
    """An output of an operator: a name and a size in bytes."""
    def __new__(
        cls,
        name: str,
        size: int,
        *,
        reads: _Place | None = None,
        overwrites: _Place | list[_Place] | None = None,
        updates: _Place | None = None,
        gathers: _Place | list[_Place] | None = None,
        holds: _Place | list[_Place] | None = None,
        overlaps: _Place | list[_Place] | None = None,
        required: bool = False,
    ) -> Self:
        """A view (`reads`) may be a copy instead where that makes the pool smaller or an update would destroy its
        bytes, unless it is `required`. An input that the output `gathers` may lie inside it, and one that it `holds`
        must. `overlaps` lists pairs of an input and the least number of bytes by which the output must begin below
        it, to overlap it: the operator never writes a byte that it has yet to read.
        """

    @property
    def name(self) -> str: ...
    @property
    def size(self) -> int: ...
    @property
    def reads(self) -> tuple[str, int] | None: ...
    @property
    def required(self) -> bool: ...
    @property
    def overwrites(self) -> list[tuple[str, int]]: ...
    @property
    def updates(self) -> tuple[str, int] | None: ...
    @property
    def gathers(self) -> list[tuple[str, int]]: ...
    @property
    def holds(self) -> list[tuple[str, int]]: ...
    @property
    def overlaps(self) -> list[tuple[str, int]]: ...
    def __getnewargs_ex__(self) -> tuple[tuple[str, int], dict[str, Any]]: ...
    def __copy__(self) -> Self: ...
    def __deepcopy__(self, memo: Any, /) -> Self: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Operator:
    """An operator: the names of the tensors that it reads, and its outputs."""
    def __new__(
        cls,
        name: str,
        inputs: _Sequence[str] = (),
        outputs: _Sequence[Output] = (),
        *,
        kind: str = "",
        workspace: int = 0,
        after: _Sequence[str | int] = (),
        stream: int = 0,
        bodies: _Sequence[Sequence] = (),
        cost: int = 1,
        once: bool = False,
    ) -> Self:
        """`cost` is what running the operator costs, in any unit, and `once` states that it must not run twice; both are
        for `recompute`. `workspace` are bytes that the operator needs while it runs; they begin after the largest of its bodies.

        `bodies` are sequences that the operator runs, one at a time: the body of a loop, or the branches of a condition.
        A weight of a body with the name of a tensor around it is that tensor, which must be in `inputs`. A weight may
        also have the name of an output of the operator: a result that `updates` it is made there, so nothing is left to
        copy.
        """

    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def inputs(self) -> list[str]: ...
    @property
    def outputs(self) -> list[Output]: ...
    @property
    def workspace(self) -> int: ...
    @property
    def after(self) -> list[str | int]: ...
    @property
    def stream(self) -> int: ...
    @property
    def bodies(self) -> list[Sequence]: ...
    @property
    def cost(self) -> int: ...
    @property
    def once(self) -> bool: ...
    def __getnewargs_ex__(self) -> tuple[tuple[str, list[str], list[Output]], dict[str, Any]]: ...
    def __copy__(self) -> Self: ...
    def __deepcopy__(self, memo: Any, /) -> Self: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Sequence:
    """Operators in execution order, with the tensors between them."""
    def __new__(
        cls,
        operators: _Sequence[Operator],
        *,
        inputs: dict[str, int] | None = None,
        outputs: _Sequence[str] = (),
        weights: dict[str, int | None] | None = None,
        dims: Mapping[str, int | tuple[int, int]] | None = None,
    ) -> Self:
        """`weights` gives the sizes of the tensors that are the same in every run, None for an unknown size. Without it, all
        other tensors that no operator makes are weights, which a warning lists.

        With `dims`, the sequence is right for all of these sizes of dimensions; all tensors have their largest sizes.
        """

    @staticmethod
    def from_json(text: str) -> Sequence: ...
    def to_json(self) -> str: ...
    def permuted(self, order: _Sequence[int]) -> Sequence: ...
    def in_order_of(self, other: Sequence) -> Sequence:
        """Returns the operators in the order that they have in another sequence, such as the one that was planned for
        larger sizes."""

    @property
    def dims(self) -> dict[str, tuple[int, int]]: ...
    @property
    def operators(self) -> list[str]:
        """The names of the operators; `sequence[step]` is an operator itself."""

    @property
    def inputs(self) -> dict[str, int]: ...
    @property
    def outputs(self) -> list[str]: ...
    @property
    def weights(self) -> dict[str, int | None]: ...
    @property
    def undeclared(self) -> list[str]:
        """The names that operators read, but that are neither made by an operator nor declared: they count as weights."""

    @property
    def is_sorted(self) -> bool:
        """True if the operators were not given in execution order."""

    @property
    def streams(self) -> int: ...
    @property
    def waits(self) -> list[list[int]]:
        """By operator: the operators of other streams that a runtime must wait for before it runs."""

    def __len__(self) -> int: ...
    def __getitem__(self, step: int, /) -> Operator: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
    def __copy__(self) -> Self: ...
    def __deepcopy__(self, memo: Any, /) -> Self: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Pool:
    """A memory that chunks may lie in. List pools in order of preference, the fastest first."""
    def __new__(
        cls,
        name: str,
        *,
        capacity: int | None = None,
        alignment: int = 1,
        cost: int = 0,
        base: int = 0,
        reserved: _Sequence[tuple[int, int]] = (),
        largest: int | None = None,
    ) -> Self: ...
    @property
    def name(self) -> str: ...
    @property
    def capacity(self) -> int | None: ...
    @property
    def alignment(self) -> int: ...
    @property
    def cost(self) -> int: ...
    @property
    def base(self) -> int: ...
    @property
    def reserved(self) -> list[tuple[int, int]]: ...
    @property
    def largest(self) -> int | None: ...
    def __getnewargs_ex__(self) -> tuple[tuple[str], dict[str, Any]]: ...
    def __copy__(self) -> Self: ...
    def __deepcopy__(self, memo: Any, /) -> Self: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Problem:
    """Memory chunks with known lifetimes, each `(begin, end, size)`.

    Chunks are numbered from 0. An item of `overwrites` is `(chunk, overwritten, offset, required)`, of which the last
    two may be omitted; with a negative offset, the chunk begins below the other one. A pin is an offset, or the name
    of a pool and an offset. `holes` are steps in which a chunk needs no bytes; in the steps of a window `(begin, end,
    low, high)` it needs only the bytes from `low` to `high`. A part `(chunk, whole, offset)` lies inside a larger
    chunk, an optional part may, and chunks `apart` share no bytes of a pool. On several streams, `begin` and `end` are clocks, the number of
    steps that are over on each, and `on_stream` says which stream writes a chunk if it is not 0.
    """
    def __new__(
        cls,
        chunks: Iterable[tuple[_Time, _Time, int] | list[int]] | _Buffer,
        overwrites: Iterable[tuple[int, ...]] | None = None,
        *,
        alignment: int = 1,
        padding: int = 0,
        names: _Sequence[str] | None = None,
        pools: _Sequence[Pool] | None = None,
        pins: dict[int, _Pin] | None = None,
        only_in: dict[int, str | _Sequence[str]] | None = None,
        alignments: dict[int, int] | None = None,
        traffic: dict[int, int] | None = None,
        holes: dict[int, _Sequence[tuple[int, int]]] | None = None,
        windows: dict[int, _Sequence[tuple[int, int, int, int]]] | None = None,
        parts: Iterable[_Part] | None = None,
        optional_parts: Iterable[_Part] | None = None,
        apart: _Sequence[_Sequence[int]] | None = None,
        on_stream: dict[int, int] | None = None,
    ) -> Self: ...
    @staticmethod
    def from_arrays(
        begin: Iterable[int] | _Buffer,
        end: Iterable[int] | _Buffer,
        size: Iterable[int] | _Buffer,
        overwrites: Iterable[tuple[int, ...]] | None = None,
        *,
        alignment: int = 1,
        padding: int = 0,
        names: _Sequence[str] | None = None,
        pools: _Sequence[Pool] | None = None,
        pins: dict[int, _Pin] | None = None,
        only_in: dict[int, str | _Sequence[str]] | None = None,
        alignments: dict[int, int] | None = None,
        traffic: dict[int, int] | None = None,
        holes: dict[int, _Sequence[tuple[int, int]]] | None = None,
        windows: dict[int, _Sequence[tuple[int, int, int, int]]] | None = None,
        parts: Iterable[_Part] | None = None,
        optional_parts: Iterable[_Part] | None = None,
        apart: _Sequence[_Sequence[int]] | None = None,
    ) -> Problem: ...
    @staticmethod
    def from_json(text: str) -> Problem: ...
    def to_json(self) -> str: ...
    def gather(self, wholes: Iterable[Iterable[_Part]]) -> tuple[Problem, list[tuple[int, int, int, str]]]:
        """Puts chunks inside others, as the inputs of a concatenation are put inside its output, where that costs no memory.

        Each item lists the parts of one chunk. Returns the problem with those that are possible, and the others with the
        reasons.
        """

    def concat(self, other: Problem, *, shared: _Sequence[tuple[int, int]] = ()) -> Problem:
        """Puts the chunks of another problem behind these in time. A plan of the result holds for both, such as two models
        or phases that run in turn in one arena. `shared` lists pairs of a chunk of this problem and one of the other that
        are the same memory, such as a cache. Its chunks follow these, without the shared ones.
        """

    @property
    def parts(self) -> list[_Part]: ...
    @property
    def optional_parts(self) -> list[_Part]: ...
    @property
    def refused(self) -> list[tuple[int, int, int, str]]:
        """The requests to overwrite that are not possible, with the reasons."""

    @property
    def lower_bound(self) -> int: ...
    @property
    def naive_size(self) -> int: ...
    @property
    def steps(self) -> int: ...
    def __len__(self) -> int: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
    def __copy__(self) -> Self: ...
    def __deepcopy__(self, memo: Any, /) -> Self: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Plan:
    """The size of the pool, and a fixed offset in it for every chunk and tensor."""
    @staticmethod
    def from_json(text: str, input: Sequence | Problem) -> Plan: ...
    def to_json(self) -> str: ...
    @property
    def pool_size(self) -> int: ...
    @property
    def lower_bound(self) -> int: ...
    @property
    def proven_optimal(self) -> bool: ...
    @property
    def scope(self) -> Literal["all_choices", "these_choices"]: ...
    @property
    def naive_size(self) -> int: ...
    @property
    def alignment(self) -> int: ...
    @property
    def padding(self) -> int: ...
    @property
    def steps(self) -> int: ...
    @property
    def peak_step(self) -> int: ...
    @property
    def dims(self) -> dict[str, tuple[int, int]]:
        """The sizes of dimensions for all of which the plan holds, each a pair of the smallest and the largest."""

    @property
    def strategy(self) -> str | None: ...
    @property
    def winner(self) -> str | None: ...
    @property
    def interrupted(self) -> bool: ...
    @property
    def order(self) -> list[int]: ...
    @property
    def offsets(self) -> memoryview: ...
    @property
    def sizes(self) -> memoryview: ...
    @property
    def overwritten(self) -> list[int | None]: ...
    @property
    def parts(self) -> list[tuple[int, int, int, int, int]]: ...
    @property
    def pool_sizes(self) -> dict[str, int]: ...
    @property
    def chunk_pools(self) -> list[str]: ...
    @property
    def traffic(self) -> int: ...
    @property
    def chunk_names(self) -> list[str]: ...
    @property
    def tensors(self) -> dict[str, Tensor]:
        """The tensors of a sequence by name; empty for a problem. The dictionary is made once; do not change it."""

    @property
    def workspaces(self) -> list[int | None]:
        """The workspace of every operator, by its place among the chunks, or None. It holds the largest of the operator's
        bodies with the copies of its inputs, and after it the bytes that the operator requests for itself."""

    @property
    def bodies(self) -> list[Body]:
        """The plans of the sequences that operators run. The list is made once; do not change it."""

    @property
    def arena(self) -> dict[str, Any] | None:
        """The runtime's memory for a TensorFlow Lite model, or for an ONNX model that was read with
        `runtime="onnxruntime"`, as in the plan's JSON; None for other inputs."""

    def offset(self, name: str) -> int: ...
    def verify(self, *, execute: bool = False) -> list[str]: ...
    def explain(self) -> str: ...
    def map(self, *, width: int = 100, height: int = 24) -> str:
        """Draws the memory map as text, of at most 10 000 columns and rows."""

    def svg(self) -> str: ...
    def save_html(self, path: str | PathLike[str], *, title: str = "memplan") -> None: ...
    def _repr_html_(self) -> str: ...
    def __len__(self) -> int: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
    def __copy__(self) -> Self: ...
    def __deepcopy__(self, memo: Any, /) -> Self: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@disjoint_base
class PlanCache:
    """Plans of one model for several shapes, by the tuple of the sizes of its open dimensions. All of them use one pool,
    one at a time."""
    def __new__(cls) -> Self: ...
    def get_or_plan(self, shape: _Sequence[int], make: Callable[[], Plan]) -> Plan:
        """The plan of a shape. If there is none yet, it is `make()`, and is kept."""

    def dominating(self, shape: _Sequence[int]) -> tuple[tuple[int, ...], Plan] | None:
        """The smallest plan of a shape that is at least as large in every dimension, with that shape. It often holds for
        the smaller shape as well: `verify(sequence, plan, smaller=True)` decides."""

    @property
    def pool_size(self) -> int:
        """The bytes of a pool for all plans, one at a time."""

    def __len__(self) -> int: ...
    def __contains__(self, shape: object, /) -> bool: ...
    def __getitem__(self, shape: _Sequence[int], /) -> Plan: ...
    def __iter__(self) -> Iterator[tuple[int, ...]]: ...

def read(
    path: str | PathLike[str],
    *,
    format: Literal["onnx", "tflite", "json", "csv"] | None = None,
    dims: Mapping[str, int | tuple[int, int]] | None = None,
    default_dim: int | None = None,
    shapes: dict[str, list[int | None]] | None = None,
    inplace: Literal["none", "elementwise", "rows"] | None = None,
    trust: Literal["inference", "declared"] | None = None,
    kernels: Literal["reference", "cmsis-nn", "cmsis-nn-dsp", "cmsis-nn-mve"] | None = None,
    runtime: Literal["tflite-micro", "tflite", "onnxruntime"] | None = None,
    copies: _Sequence[str] | None = None,
    types: dict[str, str] | None = None,
    values: Mapping[str, Any] | None = None,
    states: dict[str, str] | None = None,
    keep: _Sequence[str] | None = None,
    scratch: Mapping[str | int, int | _Sequence[int]] | None = None,
) -> Sequence | Problem: ...
def plan(
    input: Sequence | Problem,
    *,
    strategy: str = "best",
    alignment: int | None = None,
    padding: int | None = None,
    effort: int | None = None,
    time_limit: float | None = None,
    threads: int = 1,
    views: bool = True,
    inplace: bool = True,
    gathers: bool = True,
    inputs_in_pool: bool = False,
    weights_in_pool: bool = False,
    pools: _Sequence[Pool] | None = None,
    pins: dict[str, _Pin] | None = None,
    progress: _Progress | None = None,
) -> Plan:
    """Plans a sequence or a problem.

    `alignment` is a power of two, by default the problem's own, 1 for a sequence. `effort` is the number of search
    nodes of "best" and "optimal", and `time_limit` the most seconds; alone, these search until it is over. `pools` are the memories of the device, the fastest
    first, and `pins` fix the places of tensors, or of chunks of a problem, by name.
    `progress(best, lower_bound, nodes)` is called some twenty times a second. Ctrl-C ends the search with the best plan
    so far, whose `interrupted` is then true. Strategies other than "best", "optimal" and "first-fit" have no plan before
    their end: they raise `KeyboardInterrupt`, or `TimeoutError` when the time is over. Any other exception of `progress`
    or of a signal handler ends planning as well, and is raised.
    """

def lower(
    sequence: Sequence,
    *,
    alignment: int | None = None,
    padding: int | None = None,
    views: bool = True,
    inplace: bool = True,
    gathers: bool = True,
    inputs_in_pool: bool = False,
    weights_in_pool: bool = False,
    pools: _Sequence[Pool] | None = None,
    pins: dict[str, _Pin] | None = None,
) -> Problem:
    """Returns the chunks of a sequence, with their lifetimes, as a planner gets them."""

def copied_views(sequence: Sequence, plan: Plan) -> list[str]:
    """Returns the outputs, by name, that the sequence makes views, and a plan for several sizes places elsewhere: for other
    sizes, they are no views, so the runtime copies them. Read the model with these `copies` to verify one size."""

def verify(
    input: Sequence | Problem,
    plan: Plan | Iterable[int] | Iterable[tuple[str, int]] | _Buffer,
    *,
    execute: bool = False,
    waits: _Sequence[_Sequence[int]] | None = None,
    smaller: bool = False,
    alignment: int | None = None,
    padding: int | None = None,
    views: bool = True,
    inplace: bool = True,
    gathers: bool = True,
    inputs_in_pool: bool = False,
    weights_in_pool: bool = False,
) -> list[str]:
    """Returns all that is wrong with a plan, or with offsets for a problem, one sentence each; empty if it is right.
    In several pools, each place is the name of a pool and an offset, and a problem must have the pools itself.

    The plan must have at least this `alignment` and `padding`, and the required tensors in the pool. `views`, `inplace`
    and `gathers` are accepted as by `plan`, but require nothing: the input determines which tensors may share memory.
    `execute` also runs the operators of a sequence on the plan. `waits` lists, by operator, those of other streams that
    the runtime waits for, where they are not `Sequence.waits`; it implies `execute`. With `smaller`, the plan is verified
    for a run with smaller sizes than planned.
    """

def _restored(text: str, input: Sequence | Problem, options: dict[str, Any], interrupted: bool) -> Plan: ...

# `memplan` makes objects of these answers.
def fit(
    input: Sequence | Problem, capacity: int, *, progress: _Progress | None = None, **options: Any
) -> tuple[Literal["yes", "no", "unknown"], Plan]: ...
def compare(
    input: Sequence | Problem, *, name: str = "input", progress: _Progress | None = None, **options: Any
) -> tuple[str, str]: ...
def reorder(sequence: Sequence, *, progress: _Progress | None = None, **options: Any) -> dict[str, Any]: ...
def recompute(
    sequence: Sequence, *, capacity: int, reorder: bool = False, progress: _Progress | None = None, **options: Any
) -> dict[str, Any]: ...
