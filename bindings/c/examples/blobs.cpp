// A small inference engine of the kind that keeps a list of layers and a list of blobs, each blob with
// one producer and a number of readers. It plans its blobs in one pool, runs there, and compares every
// byte of the result with a run in which each blob has memory of its own.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "memplan.hpp"

namespace {

struct Blob {
    std::size_t elements = 0;
    int producer = -1;
    int last_reader = -1;
};

struct Layer {
    enum Kind { Convolution, Relu, Add, Split, Pooling } kind;
    std::vector<int> bottoms, tops;
    bool supports_inplace;
};

struct Net {
    std::vector<Blob> blobs;
    std::vector<Layer> layers;

    int blob(std::size_t elements) {
        blobs.push_back({elements, -1, -1});
        return static_cast<int>(blobs.size()) - 1;
    }

    int layer(Layer::Kind kind, std::vector<int> bottoms, std::size_t elements) {
        const int top = blob(elements);
        const int at = static_cast<int>(layers.size());
        for (int bottom : bottoms) blobs[bottom].last_reader = at;
        blobs[top].producer = at;
        const bool inplace = kind == Layer::Relu || kind == Layer::Add;
        layers.push_back({kind, std::move(bottoms), {top}, inplace});
        return top;
    }
};

// Residual blocks whose width changes on the way.
Net network(int &input, int &output) {
    Net net;
    input = net.blob(3 * 1024);
    int x = net.layer(Layer::Convolution, {input}, 4096);
    for (int block = 0; block < 12; ++block) {
        const std::size_t size = block < 6 ? 4096 : 1536;
        if (block == 6) x = net.layer(Layer::Pooling, {x}, size);
        int y = net.layer(Layer::Convolution, {x}, 2 * size);
        y = net.layer(Layer::Relu, {y}, 2 * size);
        y = net.layer(Layer::Convolution, {y}, size);
        x = net.layer(Layer::Add, {y, x}, size);
        x = net.layer(Layer::Relu, {x}, size);
    }
    output = net.layer(Layer::Pooling, {x}, 10);
    return net;
}

void run(const Layer &layer, const Net &net, const std::vector<float *> &memory) {
    float *out = memory[layer.tops[0]];
    const std::size_t n = net.blobs[layer.tops[0]].elements;
    const float *in = memory[layer.bottoms[0]];
    const std::size_t m = net.blobs[layer.bottoms[0]].elements;
    switch (layer.kind) {
    case Layer::Convolution:
        for (std::size_t i = 0; i < n; ++i) {
            float sum = 0;
            for (std::size_t k = 0; k < 9; ++k)
                sum += in[(i * 7 + k * 131) % m] * std::cos(float(i % 13 + k));
            out[i] = sum / 3;
        }
        break;
    case Layer::Relu:
        for (std::size_t i = 0; i < n; ++i) out[i] = in[i] > 0 ? in[i] : 0.01f * in[i];
        break;
    case Layer::Add:
        for (std::size_t i = 0; i < n; ++i) out[i] = in[i] + memory[layer.bottoms[1]][i];
        break;
    case Layer::Split:
    case Layer::Pooling:
        for (std::size_t i = 0; i < n; ++i) out[i] = in[i * m / n];
        break;
    }
}

void run(const Net &net, int input, const std::vector<float *> &memory) {
    for (std::size_t i = 0; i < net.blobs[input].elements; ++i)
        memory[input][i] = std::sin(float(i) * 0.37f);
    for (const Layer &layer : net.layers) run(layer, net, memory);
}

}  // namespace

int main() {
    int input = 0, output = 0;
    const Net net = network(input, output);
    const auto layers = static_cast<std::uint64_t>(net.layers.size());

    // Lifetimes: from the layer that writes a blob to the last one that reads it. The input is alive from the
    // start, and the output to the end.
    std::vector<memplan::Chunk> chunks;
    std::uint64_t separate = 0;
    for (const Blob &blob : net.blobs) {
        const std::uint64_t size = blob.elements * sizeof(float);
        const std::uint64_t begin = blob.producer < 0 ? 0 : static_cast<std::uint64_t>(blob.producer);
        const std::uint64_t end = blob.last_reader < 0 ? layers : blob.last_reader + std::uint64_t(1);
        chunks.push_back({begin, end, size});
        separate += size;
    }
    // A layer that supports in-place may write over the bottom that it reads for the last time.
    std::vector<memplan::Overwrite> overwrites;
    for (const Layer &layer : net.layers) {
        if (!layer.supports_inplace) continue;
        for (int bottom : layer.bottoms)
            overwrites.push_back({static_cast<std::uint32_t>(layer.tops[0]),
                                  static_cast<std::uint32_t>(bottom), 0, 0});
    }
    const memplan::Problem problem(chunks, overwrites);
    memplan::Options options;
    options.alignment = 64;
    const memplan::Plan plan = problem.plan(options);
    const std::vector<std::uint64_t> offsets = plan.offsets();
    problem.verify(offsets, options.alignment);

    // One allocation for the whole run.
    std::vector<float> pool(plan.pool_size() / sizeof(float), -1e30f);
    std::vector<float *> places;
    for (std::uint64_t offset : offsets) places.push_back(pool.data() + offset / sizeof(float));
    run(net, input, places);

    // The same run with separate memory for each blob.
    std::vector<std::vector<float>> own;
    std::vector<float *> apart;
    for (const Blob &blob : net.blobs) own.emplace_back(blob.elements);
    for (std::vector<float> &memory : own) apart.push_back(memory.data());
    run(net, input, apart);

    const std::size_t bytes = net.blobs[output].elements * sizeof(float);
    const bool equal = std::memcmp(places[output], apart[output], bytes) == 0;
    std::printf("%zu blobs: %llu bytes apart, %llu in one pool%s\n", net.blobs.size(),
                static_cast<unsigned long long>(separate),
                static_cast<unsigned long long>(plan.pool_size()),
                plan.proven_optimal() ? ", and no pool is smaller" : "");
    std::printf("equal outputs: %s\n", equal ? "yes" : "no");
    return equal ? 0 : 1;
}
