/* Plans buffers with known lifetimes, and verifies a plan from elsewhere. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "memplan.h"

static void check(memplan_status status) {
    if (status != MEMPLAN_STATUS_OK) {
        char words[256];
        memplan_last_error(words, sizeof words);
        fprintf(stderr, "memplan: %s\n", words);
        exit(1);
    }
}

int main(void) {
    /* Written by step begin, read for the last time by step end - 1. */
    const memplan_chunk buffers[] = {{0, 2, 4096}, {1, 3, 8192}, {2, 4, 8192}, {3, 5, 1000}};
    /* Step 2 may write its output over its input, the second buffer. */
    const memplan_overwrite in_place[] = {{2, 1, 0, 0}};
    enum { COUNT = sizeof buffers / sizeof *buffers };

    memplan_problem *problem = NULL;
    check(memplan_problem_new(buffers, COUNT, in_place, 1, &problem));
    memplan_options options;
    check(memplan_options_init(&options, sizeof options));
    options.alignment = 64;
    memplan_plan *plan = NULL;
    check(memplan_plan_problem(problem, &options, &plan));

    uint64_t offsets[COUNT];
    check(memplan_plan_offsets(plan, offsets, COUNT));
    printf("pool %" PRIu64 " bytes, every plan needs %" PRIu64 "\n", memplan_plan_pool_size(plan),
           memplan_plan_lower_bound(plan));
    for (size_t i = 0; i < COUNT; i++) printf("buffer %zu at %" PRIu64 "\n", i, offsets[i]);
    check(memplan_verify(problem, options.alignment, offsets, COUNT));

    const uint64_t from_elsewhere[COUNT] = {0, 64, 64, 0};
    if (memplan_verify(problem, 1, from_elsewhere, COUNT) != MEMPLAN_STATUS_OK) {
        char words[256];
        memplan_last_error(words, sizeof words);
        printf("%s\n", words);
    }
    memplan_plan_free(plan);
    memplan_problem_free(problem);
    return 0;
}
