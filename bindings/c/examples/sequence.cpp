// Plans operators: memplan derives the lifetimes, shares the memory of views, and writes in place.
#include <cstdio>

#include "memplan.hpp"

int main() {
    memplan::Sequence sequence;
    const auto image = sequence.input(602112, "image");
    const auto weight = sequence.weight();
    const auto a = sequence.op("conv", {image, weight}, {memplan::Output(1605632)}, 65536)[0];
    const auto b = sequence.op("relu", {a}, {memplan::Output(1605632).overwrites(a)})[0];
    const auto c = sequence.op("flatten", {b}, {memplan::Output(1605632).reads(b)})[0];
    const auto y = sequence.op("gemm", {c}, {memplan::Output(4000)})[0];
    sequence.output(y);

    memplan::Options options;
    options.alignment = 64;
    const memplan::Plan plan = sequence.plan(options);
    const auto places = plan.tensors();
    std::printf("pool %llu bytes, every plan needs %llu\n",
                static_cast<unsigned long long>(plan.pool_size()),
                static_cast<unsigned long long>(plan.lower_bound()));
    const bool shared = places[a].offset == places[b].offset && places[b].offset == places[c].offset;
    std::printf("conv, relu and flatten share their bytes: %s\n", shared ? "yes" : "no");

    // A pool of 1 MB is too small, and the error says by how much.
    options.capacity = 1000000;
    try {
        sequence.plan(options);
    } catch (const memplan::Error &error) {
        std::printf("%s\n", error.what());
    }
}
