// Plans operators on two streams, and lists the waits that a runtime needs.
#include <cstdio>

#include "memplan.hpp"

static unsigned long long pool(bool waits) {
    memplan::Sequence sequence;
    const auto x = sequence.op("make", {}, {memplan::Output(64)})[0];
    sequence.output(sequence.op("read", {x}, {memplan::Output(8)})[0]);
    sequence.on_stream(1);
    if (waits) sequence.after(1);
    sequence.output(sequence.op("last", {}, {memplan::Output(64)})[0]);

    const memplan::Plan plan = sequence.plan();
    for (const memplan::Wait &wait : plan.waits()) {
        std::printf("operator %u waits for operator %u\n", wait.waiting, wait.earlier);
    }
    return plan.pool_size();
}

int main() {
    std::printf("pool %llu bytes\n", pool(false));
    std::printf("pool %llu bytes\n", pool(true));
    try {
        memplan::Sequence().after(0);
    } catch (const memplan::Error &error) {
        std::printf("%s\n", error.what());
    }
}
