// memplan for C++17: the functions of memplan.h as types that free their memory. A failure throws
// memplan::Error; programs without exceptions use the C functions.
#ifndef MEMPLAN_HPP
#define MEMPLAN_HPP

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "memplan.h"

namespace memplan {

// A failure, with the library's message.
class Error : public std::runtime_error {
public:
    Error(memplan_status status, const std::string &words)
        : std::runtime_error(words), status_(status) {}
    memplan_status status() const noexcept { return status_; }

private:
    memplan_status status_;
};

namespace detail {

inline std::string last_error() {
    std::string words(memplan_last_error(nullptr, 0) + 1, '\0');
    memplan_last_error(&words[0], words.size());
    words.pop_back();
    return words;
}

inline void check(memplan_status status) {
    if (status != MEMPLAN_STATUS_OK) throw Error(status, last_error());
}

struct Free {
    void operator()(memplan_plan *plan) const noexcept { memplan_plan_free(plan); }
    void operator()(memplan_problem *problem) const noexcept { memplan_problem_free(problem); }
    void operator()(memplan_sequence *sequence) const noexcept { memplan_sequence_free(sequence); }
    void operator()(memplan_plan_cache *cache) const noexcept { memplan_plan_cache_free(cache); }
    void operator()(memplan_cancel *cancel) const noexcept { memplan_cancel_free(cancel); }
};

}  // namespace detail

using Chunk = memplan_chunk;
using Overwrite = memplan_overwrite;
using Pool = memplan_pool;
using Pin = memplan_pin;
using Part = memplan_part;
using Place = memplan_place;
using Wait = memplan_wait;
using Dependency = memplan_dependency;

// A request to end planning early. Any thread may make it, and a signal handler as well.
class Cancel {
public:
    Cancel() {
        memplan_cancel *cancel = nullptr;
        detail::check(memplan_cancel_new(&cancel));
        cancel_.reset(cancel);
    }
    void set(bool is_made = true) noexcept { memplan_cancel_set(cancel_.get(), is_made ? 1 : 0); }

private:
    friend struct Options;
    std::unique_ptr<memplan_cancel, detail::Free> cancel_;
};

// The options, filled with the defaults.
struct Options : memplan_options {
    Options() : memplan_options() {
        detail::check(memplan_options_init(this, sizeof(memplan_options)));
    }
    // Ends planning soon after the request is made. It must live as long as the options are used.
    Options &ended_by(const Cancel &request) noexcept {
        cancel = request.cancel_.get();
        return *this;
    }
    // Calls `report` with a `const memplan_progress &` every few hundred nodes of a search. It must live as long as the
    // options are used; if it throws, the program ends.
    template <class Report>
    Options &watched_by(Report &report) noexcept {
        progress = [](const memplan_progress *now, void *context) noexcept {
            (*static_cast<Report *>(context))(*now);
        };
        progress_context = &report;
        return *this;
    }
};

struct Body;

// A plan. It may be moved, and any thread may read it.
class Plan {
public:
    // Takes ownership of a plan of the C interface.
    explicit Plan(memplan_plan *plan) : plan_(plan) {}

    // The bytes to reserve.
    std::uint64_t pool_size() const noexcept { return memplan_plan_pool_size(plan_.get()); }
    // The bytes that every plan with the same views, overwrites and copies needs.
    std::uint64_t lower_bound() const noexcept { return memplan_plan_lower_bound(plan_.get()); }
    // True if the lower bound holds for all plans, because there was nothing to choose but places.
    bool bound_is_of_all_choices() const noexcept {
        return memplan_plan_bound_is_of_all_choices(plan_.get()) != 0;
    }
    // True if no plan within that scope is smaller.
    bool proven_optimal() const noexcept { return pool_size() == lower_bound(); }

    // The offset of every chunk.
    std::vector<std::uint64_t> offsets() const {
        std::vector<std::uint64_t> offsets(memplan_plan_chunk_count(plan_.get()));
        detail::check(memplan_plan_offsets(plan_.get(), offsets.data(), offsets.size()));
        return offsets;
    }

    // The chunk that each one is written over, or MEMPLAN_NONE.
    std::vector<std::uint32_t> overwritten() const {
        std::vector<std::uint32_t> overwritten(memplan_plan_chunk_count(plan_.get()));
        detail::check(memplan_plan_overwritten(plan_.get(), overwritten.data(), overwritten.size()));
        return overwritten;
    }

    // The pool of every chunk, by its place in the list of pools.
    std::vector<std::uint32_t> pools() const {
        std::vector<std::uint32_t> pools(memplan_plan_chunk_count(plan_.get()));
        detail::check(memplan_plan_pools(plan_.get(), pools.data(), pools.size()));
        return pools;
    }

    // The bytes to reserve in every pool.
    std::vector<std::uint64_t> pool_sizes() const {
        std::vector<std::uint64_t> sizes(memplan_plan_pool_count(plan_.get()));
        detail::check(memplan_plan_pool_sizes(plan_.get(), sizes.data(), sizes.size()));
        return sizes;
    }

    // The place of every tensor of a sequence.
    std::vector<Place> tensors() const {
        std::vector<Place> places(memplan_plan_tensor_count(plan_.get()));
        detail::check(memplan_plan_tensors(plan_.get(), places.data(), places.size()));
        return places;
    }

    // The workspace of every operator of a sequence: first the largest of its bodies with the copies of its
    // inputs, and after it the bytes that the operator requests for itself.
    std::vector<Place> workspaces() const {
        std::vector<Place> places(memplan_plan_operator_count(plan_.get()));
        detail::check(memplan_plan_workspaces(plan_.get(), places.data(), places.size()));
        return places;
    }

    // The waits between streams that a runtime of the sequence needs.
    std::vector<Wait> waits() const {
        std::vector<Wait> waits(memplan_plan_wait_count(plan_.get()));
        detail::check(memplan_plan_waits(plan_.get(), waits.data(), waits.size()));
        return waits;
    }

    // The size of the plan of a problem, explained. Sequence::explain does so with the names of operators.
    std::string explain() const { return explain(nullptr); }

    // The plan of a sequence that an operator runs; `index` counts its bodies from 0.
    inline Body body(std::uint32_t step, std::uint32_t index) const;

    // The smallest and the largest size of a dimension for which the plan holds, as its sequence states them.
    std::pair<std::uint64_t, std::uint64_t> dim(const std::string &name) const {
        std::uint64_t least = 0, most = 0;
        detail::check(memplan_plan_dim(plan_.get(), name.c_str(), &least, &most));
        return {least, most};
    }

private:
    friend class Sequence;
    friend class PlanCache;

    std::string explain(const memplan_sequence *sequence) const {
        std::size_t length = 0;
        detail::check(memplan_plan_explain(plan_.get(), sequence, nullptr, 0, &length));
        std::string text(length + 1, '\0');
        detail::check(memplan_plan_explain(plan_.get(), sequence, &text[0], text.size(), &length));
        text.pop_back();
        return text;
    }

    std::unique_ptr<memplan_plan, detail::Free> plan_;
};

// The plan of a sequence that an operator runs.
struct Body {
    // Bytes from the start of the pool around it to its own.
    std::uint64_t offset;
    Plan plan;
};

inline Body Plan::body(std::uint32_t step, std::uint32_t index) const {
    std::uint64_t offset = 0;
    memplan_plan *plan = nullptr;
    detail::check(memplan_plan_body(plan_.get(), step, index, &offset, &plan));
    return {offset, Plan(plan)};
}

// An order of the operators of a sequence, by their numbers, and its plan.
struct Reordered {
    std::vector<std::uint32_t> order;
    Plan plan;
};

// Buffers with known lifetimes.
class Problem {
public:
    explicit Problem(const std::vector<Chunk> &chunks, const std::vector<Overwrite> &overwrites = {}) {
        memplan_problem *problem = nullptr;
        detail::check(memplan_problem_new(chunks.data(), chunks.size(), overwrites.data(),
                                          overwrites.size(), &problem));
        problem_.reset(problem);
    }

    // For a device with several memories, the fastest first, and chunks with fixed places.
    Problem(const std::vector<Chunk> &chunks, const std::vector<Overwrite> &overwrites,
            const std::vector<Pool> &pools, const std::vector<Pin> &pins = {}) {
        memplan_problem *problem = nullptr;
        detail::check(memplan_problem_new_in_pools(
            chunks.data(), chunks.size(), overwrites.data(), overwrites.size(), pools.data(),
            pools.size(), pins.data(), pins.size(), &problem));
        problem_.reset(problem);
    }

    // The same chunks, of which some lie, or may lie, inside others.
    Problem with_parts(const std::vector<Part> &parts) const {
        memplan_problem *problem = nullptr;
        detail::check(memplan_problem_with_parts(problem_.get(), parts.data(), parts.size(), &problem));
        Problem with(std::vector<Chunk>{});
        with.problem_.reset(problem);
        return with;
    }

    // Throws with MEMPLAN_STATUS_DOES_NOT_FIT if the options have a capacity and the plan is larger.
    Plan plan(const Options &options = Options()) const {
        memplan_plan *plan = nullptr;
        const memplan_status status = memplan_plan_problem(problem_.get(), &options, &plan);
        Plan owned(plan);
        detail::check(status);
        return owned;
    }

    // Throws if the offsets are not a right plan.
    void verify(const std::vector<std::uint64_t> &offsets, std::uint64_t alignment = 1) const {
        detail::check(memplan_verify(problem_.get(), alignment, offsets.data(), offsets.size()));
    }

    // Throws if the pools and offsets of the chunks are not a right plan.
    void verify_in_pools(const std::vector<std::uint32_t> &pools, const std::vector<std::uint64_t> &offsets,
                         std::uint64_t alignment = 1) const {
        if (pools.size() != offsets.size()) {
            throw std::invalid_argument("a plan has as many pools as offsets");
        }
        detail::check(memplan_verify_in_pools(problem_.get(), alignment, pools.data(), offsets.data(),
                                              offsets.size()));
    }

private:
    std::unique_ptr<memplan_problem, detail::Free> problem_;
};

// An output of an operator: a size, and the inputs whose memory it may share.
class Output {
public:
    explicit Output(std::uint64_t size, std::string name = {}) : size_(size), name_(std::move(name)) {}

    // It is a view of the input.
    Output &reads(std::uint32_t tensor, std::uint64_t offset = 0) {
        dependencies_.push_back({MEMPLAN_DEPENDENCY_KIND_READS, tensor, offset});
        return *this;
    }
    // It may be written over the input. If this is called for several inputs, it is written over
    // the first possible one.
    Output &overwrites(std::uint32_t tensor, std::uint64_t offset = 0) {
        dependencies_.push_back({MEMPLAN_DEPENDENCY_KIND_OVERWRITES, tensor, offset});
        return *this;
    }
    // It must be written over the input: a state that is updated.
    Output &updates(std::uint32_t tensor, std::uint64_t offset = 0) {
        dependencies_.push_back({MEMPLAN_DEPENDENCY_KIND_UPDATES, tensor, offset});
        return *this;
    }
    // It holds a copy of the input, at an offset from its own start.
    Output &gathers(std::uint32_t tensor, std::uint64_t offset) {
        dependencies_.push_back({MEMPLAN_DEPENDENCY_KIND_GATHERS, tensor, offset});
        return *this;
    }
    // The input lies inside it, at an offset from its own start, and is never copied.
    Output &holds(std::uint32_t tensor, std::uint64_t offset) {
        dependencies_.push_back({MEMPLAN_DEPENDENCY_KIND_HOLDS, tensor, offset});
        return *this;
    }
    // It is a view of the input, never a copy.
    Output &views(std::uint32_t tensor, std::uint64_t offset = 0) {
        dependencies_.push_back({MEMPLAN_DEPENDENCY_KIND_VIEWS, tensor, offset});
        return *this;
    }
    // It may begin this many bytes below the input, or more, and overlap it.
    Output &overlaps(std::uint32_t tensor, std::uint64_t below) {
        dependencies_.push_back({MEMPLAN_DEPENDENCY_KIND_OVERLAPS, tensor, below});
        return *this;
    }

private:
    friend class Sequence;
    memplan_output raw() const {
        return {name_.empty() ? nullptr : name_.c_str(), size_, dependencies_.data(),
                dependencies_.size()};
    }

    std::uint64_t size_;
    std::string name_;
    std::vector<Dependency> dependencies_;
};

// Operators in execution order. Tensors are numbered as they are declared.
class Sequence {
public:
    Sequence() {
        memplan_sequence *sequence = nullptr;
        detail::check(memplan_sequence_new(&sequence));
        sequence_.reset(sequence);
    }

    std::uint32_t input(std::uint64_t size, const std::string &name = {}) {
        return supplied(memplan_sequence_input, size, name);
    }

    std::uint32_t weight(std::uint64_t size = MEMPLAN_UNKNOWN_SIZE, const std::string &name = {}) {
        return supplied(memplan_sequence_weight, size, name);
    }

    // Adds the next operator and returns the numbers of its outputs.
    std::vector<std::uint32_t> op(const std::string &name, const std::vector<std::uint32_t> &inputs,
                                  const std::vector<Output> &outputs, std::uint64_t workspace = 0) {
        std::vector<memplan_output> raw;
        raw.reserve(outputs.size());
        for (const Output &output : outputs) raw.push_back(output.raw());
        std::vector<std::uint32_t> numbers(outputs.size());
        detail::check(memplan_sequence_operator(sequence_.get(), name.c_str(), nullptr,
                                                inputs.data(), inputs.size(), raw.data(),
                                                raw.size(), workspace, numbers.data()));
        ++operators_;
        return numbers;
    }

    // Adds the operators from now on to this stream. Those of different streams may run at the same time.
    void on_stream(std::uint32_t stream) {
        detail::check(memplan_sequence_stream(sequence_.get(), stream));
    }

    // Makes the next operator run after this earlier one; operators are numbered from 0.
    void after(std::uint32_t earlier) {
        detail::check(memplan_sequence_after(sequence_.get(), earlier));
    }

    // Makes the next operator run this sequence: the body of a loop, or one of the branches of a condition. Its
    // weights are tensors of this sequence, or outputs of the operator, with the same names.
    void body(const Sequence &body) {
        detail::check(memplan_sequence_body(sequence_.get(), body.sequence_.get()));
    }

    // Marks a tensor as an output of the graph, which lives to the end.
    void output(std::uint32_t tensor) {
        detail::check(memplan_sequence_output(sequence_.get(), tensor));
    }

    // States that the sequence is right for all sizes of this dimension from `least` to `most`. All tensors have
    // their sizes for the largest.
    void dim(const std::string &name, std::uint64_t least, std::uint64_t most) {
        detail::check(memplan_sequence_dim(sequence_.get(), name.c_str(), least, most));
    }

    Plan plan(const Options &options = Options()) const {
        memplan_plan *plan = nullptr;
        const memplan_status status = memplan_plan_sequence(sequence_.get(), &options, &plan);
        Plan owned(plan);
        detail::check(status);
        return owned;
    }

    // Looks for the order of the operators that needs the least memory, and plans it.
    Reordered plan_reordered(const Options &options = Options()) const {
        std::vector<std::uint32_t> order(operators_);
        memplan_plan *plan = nullptr;
        const memplan_status status =
            memplan_plan_reordered(sequence_.get(), &options, order.data(), order.size(), &plan);
        Plan owned(plan);
        detail::check(status);
        return {std::move(order), std::move(owned)};
    }

    // Throws unless the plan of this sequence is right.
    void verify(const Plan &plan) const {
        detail::check(memplan_verify_sequence(sequence_.get(), plan.plan_.get()));
    }

    // The size of a plan of this sequence, explained.
    std::string explain(const Plan &plan) const { return plan.explain(sequence_.get()); }

    // Throws unless the plan, made for the same operators with larger sizes, holds for these sizes as well.
    void verify_smaller(const Plan &plan) const {
        detail::check(memplan_verify_smaller(sequence_.get(), plan.plan_.get()));
    }

private:
    template <class Declare>
    std::uint32_t supplied(Declare declare, std::uint64_t size, const std::string &name) {
        std::uint32_t number = 0;
        detail::check(declare(sequence_.get(), name.empty() ? nullptr : name.c_str(), size, &number));
        return number;
    }

    std::unique_ptr<memplan_sequence, detail::Free> sequence_;
    std::size_t operators_ = 0;
};

// A plan of a larger shape.
struct Larger {
    std::vector<std::uint64_t> shape;
    Plan plan;
};

// Plans of one model for several shapes, by the sizes of its open dimensions. All of them use one pool, one at a
// time. Any thread may use the cache.
class PlanCache {
public:
    PlanCache() {
        memplan_plan_cache *cache = nullptr;
        detail::check(memplan_plan_cache_new(&cache));
        cache_.reset(cache);
    }

    // The plan of a shape. If there is none yet, it is what `make` returns, and is kept.
    template <class Make>
    Plan get_or_plan(const std::vector<std::uint64_t> &shape, Make &&make) {
        if (std::optional<Plan> known = get(shape)) return std::move(*known);
        const Plan planned = std::forward<Make>(make)();
        memplan_plan *kept = nullptr;
        detail::check(memplan_plan_cache_keep(cache_.get(), shape.data(), shape.size(),
                                              planned.plan_.get(), &kept));
        return Plan(kept);
    }

    // The plan of a shape, if there is one.
    std::optional<Plan> get(const std::vector<std::uint64_t> &shape) const {
        memplan_plan *plan = nullptr;
        detail::check(memplan_plan_cache_get(cache_.get(), shape.data(), shape.size(), &plan));
        if (plan == nullptr) return std::nullopt;
        return Plan(plan);
    }

    // The plan with the smallest pool of all shapes that are at least as large in every dimension. It often holds
    // for the smaller shape as well: Sequence::verify_smaller and Problem::verify decide.
    std::optional<Larger> dominating(const std::vector<std::uint64_t> &shape) const {
        std::vector<std::uint64_t> larger(shape.size());
        memplan_plan *plan = nullptr;
        detail::check(memplan_plan_cache_dominating(cache_.get(), shape.data(), shape.size(),
                                                    larger.data(), &plan));
        if (plan == nullptr) return std::nullopt;
        return Larger{std::move(larger), Plan(plan)};
    }

    // The bytes of a pool for all plans, one at a time.
    std::uint64_t pool_size() const noexcept { return memplan_plan_cache_pool_size(cache_.get()); }
    // The number of shapes.
    std::size_t size() const noexcept { return memplan_plan_cache_count(cache_.get()); }

private:
    std::unique_ptr<memplan_plan_cache, detail::Free> cache_;
};

}  // namespace memplan

#endif  // MEMPLAN_HPP
