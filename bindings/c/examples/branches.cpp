// Plans a condition: its branches share memory, and both make their result in the output of the condition.
#include <cstdio>

#include "memplan.hpp"

// `t` is a tensor of the branch; `x` and `y` are tensors around it.
static memplan::Sequence branch(std::uint64_t size) {
    memplan::Sequence branch;
    const auto x = branch.weight(32, "x");
    const auto y = branch.weight(16, "y");
    const auto t = branch.op("first", {x}, {memplan::Output(size, "t")})[0];
    branch.output(branch.op("last", {t, y}, {memplan::Output(16, "result").updates(y)})[0]);
    return branch;
}

int main() {
    const memplan::Sequence branches[] = {branch(64), branch(40)};
    memplan::Sequence sequence;
    const auto x = sequence.input(32, "x");
    for (const memplan::Sequence &branch : branches) sequence.body(branch);
    const auto y = sequence.op("if", {x}, {memplan::Output(16, "y")})[0];
    sequence.output(y);

    const memplan::Plan plan = sequence.plan();
    const unsigned long long pool = plan.pool_size(), result = plan.tensors()[y].offset;
    std::printf("pool %llu bytes, y at %llu\n", pool, result);
    for (unsigned at = 0; at < 2; ++at) {
        const memplan::Body body = plan.body(0, at);
        const memplan::Place t = body.plan.tensors()[2], made = body.plan.tensors()[3];
        const unsigned long long begin = body.offset + t.offset, end = begin + t.size;
        std::printf("branch %u: t from %llu to %llu, the result is made in %s\n", at, begin, end,
                    made.kind == MEMPLAN_PLACE_KIND_SUPPLIED && made.tensor == 1 ? "y" : "the pool");
    }

    // The weights of a body are known by their names.
    memplan::Sequence unnamed;
    unnamed.weight(16);
    try {
        sequence.body(unnamed);
    } catch (const memplan::Error &error) {
        std::printf("%s\n", error.what());
    }
}
