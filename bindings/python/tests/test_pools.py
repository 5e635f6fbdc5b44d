"""Pools, fixed places and parts in problems and plans."""

import json

import pytest

import memplan
from memplan import Pool, Problem

CHUNKS = [(0, 2, 64), (1, 3, 128), (2, 4, 64)]


def test_a_chunk_that_does_not_fit_lies_in_the_next_pool():
    pools = [Pool("sram", capacity=128, cost=1), Pool("psram", cost=20)]
    problem = Problem(CHUNKS, pools=pools, traffic={0: 1000, 1: 10, 2: 1000})
    plan = memplan.plan(problem)
    assert plan.pool_sizes == {"sram": 64, "psram": 128} and plan.chunk_pools == ["sram", "psram", "sram"]
    assert plan.traffic == 1000 + 1000 + 20 * 10 and plan.verify() == []
    places = list(zip(plan.chunk_pools, plan.offsets))
    assert memplan.verify(problem, places) == []
    assert memplan.verify(problem, [("sram", 0), ("sram", 64), ("sram", 0)]) != []
    assert memplan.plan(Problem(CHUNKS)).pool_sizes == {} and memplan.plan(Problem(CHUNKS)).chunk_pools == []


def test_places_may_be_fixed():
    pinned = memplan.plan(Problem(CHUNKS, pins={1: 256}))
    assert pinned.offsets[1] == 256 and pinned.verify() == []
    pools = [Pool("a", reserved=[(0, 64)]), Pool("b", alignment=256, base=4096)]
    plan = memplan.plan(Problem(CHUNKS, pools=pools, pins={0: ("b", 512)}, only_in={1: "a", 2: ["a", "b"]}))
    assert plan.chunk_pools[:2] == ["b", "a"] and plan.offsets[0] == 512 and plan.offsets[1] >= 64
    named = memplan.plan(Problem(CHUNKS, names=["x", "y", "z"]), pools=[Pool("a"), Pool("b")], pins={"y": ("b", 8)})
    assert named.chunk_pools == ["a", "b", "a"] and named.offsets[1] == 8 and named.verify() == []
    spilled = memplan.plan(Problem(CHUNKS), pools=[Pool("a", capacity=128, cost=1), Pool("b", cost=9)])
    assert set(spilled.chunk_pools) == {"a", "b"} and spilled.verify() == []
    assert (Pool("a").name, Pool("a", capacity=4).capacity, repr(Pool("a", capacity=4))) == ("a", 4, "memplan.Pool('a', capacity=4)")


def test_tensors_of_a_sequence_lie_in_pools(sequence):
    plan = memplan.plan(sequence, pools=[Pool("fast", capacity=8192, cost=1), Pool("slow", cost=9)], pins={"y": ("fast", 64)})
    assert plan.tensors["y"] == memplan.Tensor("y", 4_000, "pool", 64, pool="fast") and plan.tensors["a"].pool == "slow"
    assert plan.verify() == []
    fits = memplan.fit(sequence, 2_000_000, pools=[Pool("only")])
    assert fits and fits.plan.pool_sizes == {"only": fits.plan.pool_size}


def test_compare_plans_as_plan_does():
    # Gathered in place, the inputs keep the output alive longer than their copies would.
    def layer(name, inputs, size, **more):
        return memplan.Operator(name, inputs, [memplan.Output(name, size, **more)])

    operators = [layer("a", [], 64), layer("b", [], 64), layer("t", ["b"], 96), layer("u", ["t", "a"], 16)]
    operators += [layer("c", ["a", "b"], 128, gathers=[("a", 0), ("b", 64)]), layer("d", ["c", "u"], 8)]
    sequence = memplan.Sequence(operators, outputs=["d"])
    compared = memplan.compare(sequence, alignment=1)
    best = next(row for row in compared.figures["strategies"] if row["strategy"] == "best")
    assert best["pool_size"] == memplan.plan(sequence, alignment=1).pool_size
    assert all("pool_size" in row for row in compared.figures["strategies"]), compared


def test_constraints_on_chunks():
    plan = memplan.plan(Problem([(0, 2, 4), (0, 2, 4), (0, 2, 4)], alignments={1: 64, 2: 32}))
    assert plan.offsets[1] % 64 == plan.offsets[2] % 32 == 0 and plan.verify() == []
    assert memplan.plan(Problem([(0, 4, 8), (1, 3, 8)], holes={0: [(1, 3)]})).pool_size == 8
    assert memplan.plan(Problem([(0, 4, 8), (1, 3, 4)], windows={0: [(1, 3, 0, 4)]})).pool_size == 8
    assert memplan.plan(Problem([(0, 1, 8), (1, 2, 8)], apart=[[0, 1]])).pool_size == 16
    # A negative offset begins below the other chunk.
    overlap = Problem([(0, 2, 96), (1, 3, 96)], [(1, 0, -16)])
    assert memplan.plan(overlap).pool_size == 112 and overlap.refused == []


def test_inputs_lie_inside_the_output_that_gathers_them():
    chunks = [(0, 3, 64), (1, 3, 32), (2, 4, 96)]
    problem = Problem(chunks)
    gathered, refused = problem.gather([[(0, 2, 0), (1, 2, 64)]])
    assert (gathered.parts, problem.parts, refused) == ([(0, 2, 0), (1, 2, 64)], [], [])
    plan = memplan.plan(gathered)
    assert [part[:3] for part in plan.parts] == gathered.parts and plan.offsets[1] == plan.offsets[0] + 64 and plan.verify() == []
    assert plan.pool_size == 96 < memplan.plan(problem).pool_size
    assert memplan.plan(Problem(chunks, parts=gathered.parts)).pool_size == 96
    optional = Problem(chunks, optional_parts=gathered.parts)
    assert optional.optional_parts == gathered.parts and Problem.from_json(optional.to_json()).optional_parts == gathered.parts
    plan = memplan.plan(optional)
    assert (plan.pool_size, plan.proven_optimal, len(plan.parts)) == (96, True, 2) and plan.verify() == []
    assert memplan.plan(optional, gathers=False).parts == []
    # Both are alive, and would share bytes.
    gathered, refused = problem.gather([[(0, 2, 0), (1, 2, 32)]])
    assert gathered.parts == [(0, 2, 0)] and [part[:3] for part in refused] == [(1, 2, 32)] and "bytes" in refused[0][3]


def test_requests_that_are_not_possible_are_listed():
    problem = Problem([(0, 3, 8), (1, 3, 8), (2, 4, 8)], [(1, 0), (2, 0), (2, 1, 0)])
    assert [request[:3] for request in problem.refused] == [(1, 0, 0), (2, 1, 0)] and "read" in problem.refused[0][3]


def test_the_file_says_the_same():
    pools = [Pool("a", capacity=256, alignment=64, cost=2, base=4096, reserved=[(0, 64)]), Pool("b", largest=512)]
    problem = Problem(CHUNKS, pools=pools, pins={0: ("a", 64)}, only_in={2: "b"}, alignments={1: 8}, traffic={1: 5}, apart=[[0, 1]])
    file = json.loads(problem.to_json())
    assert file["format"] == "memplan-problem/2" and [pool["name"] for pool in file["pools"]] == ["a", "b"]
    assert Problem.from_json(problem.to_json()).to_json() == problem.to_json()
    columns = list(zip(*CHUNKS))
    assert Problem.from_arrays(*columns, pins={0: 8}).to_json() == Problem(CHUNKS, pins={0: 8}).to_json()
    assert Problem(CHUNKS, pools=None, pins=None).to_json() == Problem(CHUNKS).to_json()


WRONG = [
    (lambda: Problem(CHUNKS, pins={9: 0}), "pins names chunk 9, but there are 3 chunks"),
    (lambda: Problem(CHUNKS, pins={-1: 0}), "pins: a chunk must be an integer from 0"),
    (lambda: Problem(CHUNKS, pins={0: -8}), "the offset of a pin must be an integer from 0"),
    (lambda: Problem(CHUNKS, pins=[0]), "pins must be a dictionary by chunk"),
    (lambda: Problem(CHUNKS, pins={0: ("b", 8)}), "there is no pool 'b'"),
    (lambda: Problem(CHUNKS, pins={0: 8}, pools=[Pool("a"), Pool("b")]), "the pin of chunk '0' must name one of the pools"),
    (lambda: Problem(CHUNKS, only_in={0: "b"}), "there is no pool 'b'"),
    (lambda: Problem(CHUNKS, pools=[Pool("a"), Pool("a")]), "two pools are called 'a'"),
    (lambda: Problem(CHUNKS, alignments={0: 48}), "48"),
    (lambda: Problem(CHUNKS, apart=[[0, 7]]), "names chunk 7"),
    (lambda: Problem(CHUNKS, apart=[[0, 2**40]]), "there is no chunk 1099511627776"),
    (lambda: Problem(CHUNKS, parts=[(0, 1)]), r"a part must be \(chunk, whole, offset\), not \(0, 1\)"),
    (lambda: Problem(CHUNKS, parts=[(0, 1, 65)]), "does not fit"),
    (lambda: Problem(CHUNKS, holes={0: [(5, 6)]}), "hole"),
    (lambda: Problem(CHUNKS, [(1, 0, -(2**70))]), "overwrite 0 must be"),
    (lambda: Pool("a", capacity=-1), "must be an integer from 0"),
    (lambda: memplan.plan(Problem(CHUNKS, pools=[Pool("a")]), pools=[Pool("b")]), "pools"),
    (lambda: memplan.plan(Problem(CHUNKS, pools=[Pool("a", capacity=100)])), "'1'"),
    (lambda: memplan.verify(Problem(CHUNKS, pools=[Pool("a"), Pool("b")]), [0, 0, 0]), r"a place must be \(pool, offset\)"),
    (lambda: memplan.verify(Problem(CHUNKS, pools=[Pool("a"), Pool("b")]), [("c", 0)] * 3), "there is no pool 'c'"),
]


@pytest.mark.parametrize(("call", "words"), WRONG)
def test_wrong_constraints_are_a_value_error(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_an_unknown_argument_is_a_type_error():
    with pytest.raises(TypeError, match="memplan.Problem has no argument 'pool'"):
        Problem(CHUNKS, pool=[])
    with pytest.raises(TypeError, match="memplan.verify has no use for the option 'pools'"):
        memplan.verify(Problem(CHUNKS), [0, 64, 0], pools=[])


def two_streams(after):
    operators = [
        memplan.Operator("make", [], [memplan.Output("x", 64)]),
        memplan.Operator("read", ["x"], [memplan.Output("y", 8)]),
        memplan.Operator("last", [], [memplan.Output("z", 64)], stream=1, after=after),
    ]
    return memplan.Sequence(operators, outputs=["y", "z"])


def test_operators_run_on_several_streams():
    apart, waiting = two_streams([]), two_streams(["read"])
    assert apart.streams == 2 and apart.waits == [[], [], []] and waiting.waits == [[], [], [1]]
    assert two_streams([1]).to_json() == waiting.to_json()
    assert (memplan.plan(apart).pool_size, memplan.plan(waiting).pool_size) == (136, 72)
    plan = memplan.plan(waiting)
    assert memplan.verify(waiting, plan, execute=True) == [] == memplan.verify(waiting, plan, waits=waiting.waits)
    races = memplan.verify(waiting, plan, waits=[[], [], []])
    assert len(races) == 2 and all("may run at the same time" in race for race in races), races
    for wrong, words in [([[], []], "waits has 2 lists"), ([[2], [], []], "operator 0 cannot wait for 2")]:
        with pytest.raises(ValueError, match=words):
            memplan.verify(waiting, plan, waits=wrong)
    with pytest.raises(TypeError, match="waits are those of a sequence"):
        memplan.verify(Problem(CHUNKS), [0, 64, 0], waits=[])
    with pytest.raises(ValueError, match="from 0 to 63"):
        memplan.Sequence([memplan.Operator("far", stream=64)])


def test_chunks_live_by_clocks():
    # The third chunk begins when the first stream has run one step, and the second stream none.
    lives = [((0, 0), (1, 0), 64), ((0, 0), (0, 1), 64), ((1, 0), (2, 0), 64)]
    problem = Problem(lives, on_stream={1: 1})
    plan = memplan.plan(problem)
    assert plan.pool_size == 128 and plan.offsets[0] == plan.offsets[2] != plan.offsets[1] and plan.verify() == []
    assert json.loads(problem.to_json())["streams"] == 2
    assert memplan.verify(problem, [0, 0, 0]) != []
    assert Problem.from_json(problem.to_json()).to_json() == problem.to_json()
    assert memplan.plan(Problem([((0,), (2,), 8), ((1,), (3,), 8)])).pool_size == 16
    for chunks, keywords, words in [
        ([((0, 0), 3, 8)], {}, "both be clocks or both steps"),
        ([((0, 0), (0, 1), 8), (0, 1, 8)], {}, "needs one time for each of the 2 streams"),
        ([((0, 0), (0, 1, 0), 8)], {}, "needs one time for each of the 2 streams"),
        ([((0, 0), (0, -1), 8)], {}, "chunk 0: end: element 1 must be an integer"),
        ([((), (), 8)], {}, "empty lifetime"),
        ([(0, 1, 8)], {"on_stream": {0: 1}}, "on_stream is for chunks"),
        ([((0, 0), (0, 1), 8)], {"on_stream": {0: 2}}, "a stream below 2"),
        ([((0, 0), (0, 1), 8)], {"on_stream": {1: 1}}, "on_stream names chunk 1"),
    ]:
        with pytest.raises(ValueError, match=words):
            Problem(chunks, **keywords)


def test_problems_follow_each_other_in_one_arena():
    prefill = memplan.Problem([(0, 1, 64), (1, 2, 400)], names=["cache", "scores"])
    decode = memplan.Problem([(0, 1, 100), (1, 2, 64)])
    both = prefill.concat(decode, shared=[(0, 1)])
    assert (len(both), both.steps) == (3, 4)
    plan = memplan.plan(both)
    assert plan.pool_size == 464 and plan.verify() == []
    # Two chunks that are not shared need no bytes between their lives.
    assert memplan.plan(prefill.concat(decode)).pool_size == 400
    assert list(plan.sizes) == [64, 400, 100] and plan.chunk_names[0] == "cache"
