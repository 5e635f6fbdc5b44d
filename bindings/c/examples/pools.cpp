// Plans buffers for a device with a small fast memory and a large slow one.
#include <cstdio>

#include "memplan.hpp"

int main() {
    // Each buffer: the step that writes it, the last step that reads it plus 1, and its bytes.
    const std::vector<memplan::Chunk> buffers = {{0, 2, 4096}, {1, 3, 8192}, {2, 4, 8192}, {3, 5, 1000}};
    // Capacity, alignment and the cost of a byte of traffic, the fastest memory first.
    const std::vector<memplan::Pool> memories = {{8192, 16, 1}, {UINT64_MAX, 64, 20}};
    // Buffer 3 is where the next device expects it.
    const memplan::Problem problem(buffers, {}, memories, {{3, 1, 64}});
    const memplan::Plan plan = problem.plan();
    const std::vector<std::uint32_t> pools = plan.pools();
    const std::vector<std::uint64_t> offsets = plan.offsets(), sizes = plan.pool_sizes();
    for (std::size_t at = 0; at < sizes.size(); ++at) {
        std::printf("memory %zu takes %llu bytes\n", at, static_cast<unsigned long long>(sizes[at]));
    }
    for (std::size_t at = 0; at < pools.size(); ++at) {
        std::printf("buffer %zu in memory %u at %llu\n", at, static_cast<unsigned>(pools[at]),
                    static_cast<unsigned long long>(offsets[at]));
    }
    problem.verify_in_pools(pools, offsets);
}
