#include <cstdio>
#include "memplan.hpp"
int main() {
    // Each buffer: the step that writes it, the last step that reads it plus 1, and its bytes.
    const memplan::Problem problem({{0, 2, 4096}, {1, 3, 8192}, {2, 4, 8192}, {3, 5, 1000}});
    const memplan::Plan plan = problem.plan();
    std::vector<char> pool(plan.pool_size());
    for (std::uint64_t offset : plan.offsets())
        std::printf("byte %zu of %zu\n", static_cast<std::size_t>(offset), pool.size());
}
