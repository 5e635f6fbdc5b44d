// Plans a model whose batch differs from run to run: once for all sizes, and by size.
#include <cstdio>

#include "memplan.hpp"

static memplan::Sequence model(std::uint64_t batch) {
    memplan::Sequence sequence;
    const auto image = sequence.input(1024 * batch, "image");
    const auto a = sequence.op("conv", {image}, {memplan::Output(4096 * batch)})[0];
    const auto b = sequence.op("relu", {a}, {memplan::Output(4096 * batch).overwrites(a)})[0];
    sequence.output(sequence.op("gemm", {b}, {memplan::Output(40 * batch)}, 512)[0]);
    return sequence;
}

int main() {
    // The tensors of the sequence have their sizes for a batch of 8, and the plan holds for all from 1 to 8.
    memplan::Sequence largest = model(8);
    largest.dim("batch", 1, 8);
    const memplan::Plan for_all = largest.plan();
    const auto batches = for_all.dim("batch");
    model(3).verify_smaller(for_all);
    std::printf("batches of %llu to %llu: pool %llu bytes\n",
                static_cast<unsigned long long>(batches.first),
                static_cast<unsigned long long>(batches.second),
                static_cast<unsigned long long>(for_all.pool_size()));

    // A plan by batch, made at the first run of each. All of them use one pool in turn.
    memplan::PlanCache plans;
    for (const std::uint64_t batch : {4, 1, 4}) {
        const memplan::Plan plan = plans.get_or_plan({batch}, [&] { return model(batch).plan(); });
        std::printf("batch of %llu: pool %llu bytes\n", static_cast<unsigned long long>(batch),
                    static_cast<unsigned long long>(plan.pool_size()));
    }
    std::printf("%zu plans in one pool of %llu bytes\n", plans.size(),
                static_cast<unsigned long long>(plans.pool_size()));
    // There is none for 3; the smallest for at least as many holds for it.
    if (const auto larger = plans.dominating({3})) {
        model(3).verify_smaller(larger->plan);
        std::printf("a batch of 3 runs in the plan for %llu\n",
                    static_cast<unsigned long long>(larger->shape[0]));
    }
    try {
        model(9).verify_smaller(for_all);
    } catch (const memplan::Error &error) {
        std::printf("%s\n", error.what());
    }
}
