// Looks for a better order of the operators: first all wide tensors are made, and then each is reduced.
#include <cstdio>

#include "memplan.hpp"

int main() {
    memplan::Sequence sequence;
    const auto x = sequence.input(8, "x");
    std::vector<std::uint32_t> wide, sums;
    for (int at = 0; at < 4; ++at) wide.push_back(sequence.op("wide", {x}, {memplan::Output(1000)})[0]);
    for (const auto w : wide) sums.push_back(sequence.op("sum", {w}, {memplan::Output(8)}, 16)[0]);
    sequence.output(sequence.op("join", sums, {memplan::Output(8)})[0]);

    const memplan::Reordered better = sequence.plan_reordered();
    std::printf("pool %llu bytes instead of %llu; the operators run in the order",
                static_cast<unsigned long long>(better.plan.pool_size()),
                static_cast<unsigned long long>(sequence.plan().pool_size()));
    for (const auto number : better.order) std::printf(" %u", number);
    std::printf("\n");
    // Tensors and workspaces have the numbers of the order given.
    std::printf("tensor %u has %llu bytes\n", wide.back(),
                static_cast<unsigned long long>(better.plan.tensors()[wide.back()].size));
    for (const unsigned number : {4U, 8U}) {
        const memplan::Place workspace = better.plan.workspaces()[number];
        std::printf("operator %u: workspace of %llu bytes\n", number,
                    static_cast<unsigned long long>(workspace.size));
    }

    memplan::Options options;
    options.capacity = 1000;
    try {
        sequence.plan_reordered(options);
    } catch (const memplan::Error &error) {
        std::printf("%s\n", error.what());
    }
}
