/* Progress and cancellation, and the plan of a sequence verified and explained. */
#include <stdlib.h>

#include "expect.h"

#define CHUNKS 400

struct watcher {
    memplan_cancel *cancel;
    unsigned calls;
    uint64_t nodes;
};

static void watch(const memplan_progress *progress, void *context) {
    struct watcher *watcher = context;
    EXPECT(progress->lower_bound <= progress->best && progress->nodes >= watcher->nodes);
    watcher->nodes = progress->nodes;
    watcher->calls++;
    if (watcher->cancel) memplan_cancel_set(watcher->cancel, 1);
}

/* Chunks that no fast planner packs tightly. */
static memplan_problem *hard(void) {
    static memplan_chunk chunks[CHUNKS];
    uint32_t state = 7;
    for (int at = 0; at < CHUNKS; at++) {
        uint32_t draw[3];
        for (int part = 0; part < 3; part++) draw[part] = (state = state * 1664525u + 1013904223u) >> 8;
        chunks[at].begin = draw[0] % 300;
        chunks[at].end = chunks[at].begin + 1 + draw[1] % 90;
        chunks[at].size = 1 + draw[2] % 1000003;
    }
    memplan_problem *problem = NULL;
    EXPECT(memplan_problem_new(chunks, CHUNKS, NULL, 0, &problem) == MEMPLAN_STATUS_OK);
    return problem;
}

static void searches(void) {
    memplan_problem *problem = hard();
    struct watcher watcher = {NULL, 0, 0};
    memplan_plan *plan = NULL;
    memplan_options options;
    EXPECT(memplan_options_init(&options, sizeof options) == MEMPLAN_STATUS_OK);
    options.strategy = MEMPLAN_STRATEGY_OPTIMAL;
    options.progress = watch;
    options.progress_context = &watcher;
    options.effort = 50000;
    EXPECT(memplan_plan_problem(problem, &options, &plan) == MEMPLAN_STATUS_OK);
    EXPECT(watcher.calls > 0 && watcher.nodes > 0);
    EXPECT(memplan_plan_pool_size(plan) >= memplan_plan_lower_bound(plan));
    memplan_plan_free(plan);

    /* The first report ends a search that would take for ever. */
    EXPECT(memplan_cancel_new(NULL) == MEMPLAN_STATUS_NULL);
    EXPECT(memplan_cancel_new(&watcher.cancel) == MEMPLAN_STATUS_OK);
    watcher.nodes = 0;
    options.effort = UINT64_MAX;
    options.cancel = watcher.cancel;
    EXPECT(memplan_plan_problem(problem, &options, &plan) == MEMPLAN_STATUS_OK);
    memplan_plan_free(plan);

    /* So does a request that is made already; one that is taken back ends nothing. */
    options.progress = NULL;
    EXPECT(memplan_plan_problem(problem, &options, &plan) == MEMPLAN_STATUS_OK);
    memplan_plan_free(plan);
    memplan_cancel_set(watcher.cancel, 0);
    options.strategy = MEMPLAN_STRATEGY_PUSHDOWN;
    EXPECT(memplan_plan_problem(problem, &options, &plan) == MEMPLAN_STATUS_OK);
    memplan_plan_free(plan);
    memplan_cancel_set(NULL, 1);
    memplan_cancel_free(NULL);
    memplan_cancel_free(watcher.cancel);
    memplan_problem_free(problem);
}

/* A program of the first header has no hooks, and nothing behind its struct is read or written. */
static void older_options(void) {
    const uint32_t first = offsetof(memplan_options, cancel);
    memplan_options *options = malloc(first);
    if (!options) abort();
    EXPECT(memplan_options_init(options, first) == MEMPLAN_STATUS_OK);
    EXPECT(options->struct_size == first && options->threads == 1);
    memplan_chunk chunk = {0, 1, 100};
    memplan_problem *problem = NULL;
    memplan_plan *plan = NULL;
    EXPECT(memplan_problem_new(&chunk, 1, NULL, 0, &problem) == MEMPLAN_STATUS_OK);
    options->alignment = 64;
    EXPECT(memplan_plan_problem(problem, options, &plan) == MEMPLAN_STATUS_OK);
    EXPECT(memplan_plan_pool_size(plan) == 128);
    memplan_plan_free(plan);
    memplan_problem_free(problem);
    free(options);
}

static void sequences(void) {
    memplan_sequence *sequence = NULL, *other = NULL;
    uint32_t x, a, y;
    memplan_output output = {"a", 96, NULL, 0}, last = {"y", 64, NULL, 0};
    EXPECT(memplan_sequence_new(&sequence) == MEMPLAN_STATUS_OK);
    EXPECT(memplan_sequence_input(sequence, "x", 32, &x) == MEMPLAN_STATUS_OK);
    EXPECT(memplan_sequence_operator(sequence, "widen", NULL, &x, 1, &output, 1, 0, &a) == MEMPLAN_STATUS_OK);
    EXPECT(memplan_sequence_operator(sequence, "sum", NULL, &a, 1, &last, 1, 16, &y) == MEMPLAN_STATUS_OK);
    EXPECT(memplan_sequence_output(sequence, y) == MEMPLAN_STATUS_OK);
    memplan_plan *plan = NULL;
    EXPECT(memplan_plan_sequence(sequence, NULL, &plan) == MEMPLAN_STATUS_OK);
    EXPECT(memplan_verify_sequence(sequence, plan) == MEMPLAN_STATUS_OK);
    EXPECT(memplan_verify_sequence(NULL, plan) == MEMPLAN_STATUS_NULL);
    EXPECT(memplan_verify_sequence(sequence, NULL) == MEMPLAN_STATUS_NULL);

    /* The plan of another sequence is wrong for this one. */
    output.size = 128;
    EXPECT(memplan_sequence_new(&other) == MEMPLAN_STATUS_OK);
    EXPECT(memplan_sequence_input(other, "x", 32, &x) == MEMPLAN_STATUS_OK);
    EXPECT(memplan_sequence_operator(other, "widen", NULL, &x, 1, &output, 1, 0, &a) == MEMPLAN_STATUS_OK);
    EXPECT(memplan_sequence_output(other, a) == MEMPLAN_STATUS_OK);
    EXPECT(memplan_verify_sequence(other, plan) == MEMPLAN_STATUS_INVALID);
    EXPECT(said("the plan is wrong: "));
    memplan_sequence_free(other);

    char text[4096], part[8];
    size_t length = 0, whole = 0;
    EXPECT(memplan_plan_explain(plan, sequence, NULL, 0, &whole) == MEMPLAN_STATUS_OK);
    EXPECT(memplan_plan_explain(plan, sequence, text, sizeof text, &length) == MEMPLAN_STATUS_OK);
    EXPECT(length == whole && length == strlen(text) && strstr(text, "(sum)") != NULL);
    EXPECT(memplan_plan_explain(plan, NULL, part, sizeof part, &length) == MEMPLAN_STATUS_OK);
    EXPECT(strlen(part) == sizeof part - 1 && strncmp(part, text, 4) == 0);
    EXPECT(memplan_plan_explain(plan, sequence, NULL, 5, &length) == MEMPLAN_STATUS_NULL);
    EXPECT(memplan_plan_explain(plan, sequence, text, sizeof text, NULL) == MEMPLAN_STATUS_NULL);
    memplan_plan_free(plan);

    /* A plan with an order of its own is checked in that order. */
    uint32_t order[2];
    EXPECT(memplan_plan_reordered(sequence, NULL, order, 2, &plan) == MEMPLAN_STATUS_OK);
    EXPECT(memplan_verify_sequence(sequence, plan) == MEMPLAN_STATUS_OK);
    memplan_plan_free(plan);
    memplan_sequence_free(sequence);
}

int main(void) {
    searches();
    older_options();
    sequences();
    return finish();
}
