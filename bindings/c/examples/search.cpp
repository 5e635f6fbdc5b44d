// Watches a search for the smallest pool, and ends it early.
#include <cstdio>

#include "memplan.hpp"

int main() {
    // Chunks that no fast planner packs tightly.
    std::vector<memplan::Chunk> chunks(400);
    std::uint32_t state = 7;
    const auto draw = [&] { return (state = state * 1664525U + 1013904223U) >> 8; };
    for (auto &chunk : chunks) {
        chunk.begin = draw() % 300;
        chunk.end = chunk.begin + 1 + draw() % 90;
        chunk.size = 1 + draw() % 1000003;
    }
    memplan::Cancel cancel;
    auto watch = [&](const memplan_progress &now) {
        if (now.nodes > 2000) cancel.set();
    };
    memplan::Options options;
    options.strategy = MEMPLAN_STRATEGY_OPTIMAL;
    options.effort = UINT64_MAX;
    options.ended_by(cancel).watched_by(watch);
    const memplan::Problem problem(chunks);
    const memplan::Plan plan = problem.plan(options);
    problem.verify(plan.offsets());
    std::printf("the best pool so far is right%s\n", plan.proven_optimal() ? ", and none is smaller" : "");
}
