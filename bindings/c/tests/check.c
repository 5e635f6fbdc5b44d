/* What the functions promise about wrong arguments. */
#include <string.h>

#include "expect.h"

static void problems(void) {
    memplan_chunk chunks[] = {{0, 2, 10}, {1, 3, 20}, {2, 4, 20}};
    memplan_overwrite request = {2, 1, 0, 0};
    memplan_problem *problem = NULL;

    EXPECT(memplan_problem_new(NULL, 3, NULL, 0, &problem) == MEMPLAN_STATUS_NULL);
    EXPECT(said("'chunks' is null"));
    EXPECT(memplan_problem_new(chunks, 3, NULL, 1, &problem) == MEMPLAN_STATUS_NULL);
    EXPECT(memplan_problem_new(chunks, 3, NULL, 0, NULL) == MEMPLAN_STATUS_NULL);
    EXPECT(memplan_problem_new(chunks, SIZE_MAX, NULL, 0, &problem) == MEMPLAN_STATUS_INVALID);
    EXPECT(said("'chunks' cannot have"));
    const memplan_chunk *crooked = (const memplan_chunk *)(const void *)((const char *)chunks + 1);
    EXPECT(memplan_problem_new(crooked, 1, NULL, 0, &problem) == MEMPLAN_STATUS_INVALID);
    EXPECT(said("not aligned"));
    memplan_chunk backwards = {3, 3, 8};
    EXPECT(memplan_problem_new(&backwards, 1, NULL, 0, &problem) == MEMPLAN_STATUS_INVALID);
    memplan_chunk huge[] = {{0, 1, UINT64_MAX}, {0, 1, 2}};
    EXPECT(memplan_problem_new(huge, 2, NULL, 0, &problem) == MEMPLAN_STATUS_OVERFLOW);
    memplan_overwrite unknown = {2, 7, 0, 0};
    EXPECT(memplan_problem_new(chunks, 3, &unknown, 1, &problem) == MEMPLAN_STATUS_INVALID);
    EXPECT(problem == NULL);

    /* No chunks at all make a problem as well, and its plan is empty. */
    memplan_plan *plan = NULL;
    EXPECT(memplan_problem_new(NULL, 0, NULL, 0, &problem) == MEMPLAN_STATUS_OK);
    EXPECT(memplan_plan_problem(problem, NULL, &plan) == MEMPLAN_STATUS_OK);
    EXPECT(memplan_plan_pool_size(plan) == 0);
    EXPECT(memplan_plan_offsets(plan, NULL, 0) == MEMPLAN_STATUS_OK);
    memplan_plan_free(plan);
    memplan_problem_free(problem);

    EXPECT(memplan_problem_new(chunks, 3, &request, 1, &problem) == MEMPLAN_STATUS_OK);
    EXPECT(memplan_plan_problem(NULL, NULL, &plan) == MEMPLAN_STATUS_NULL);
    EXPECT(memplan_plan_problem(problem, NULL, NULL) == MEMPLAN_STATUS_NULL);
    EXPECT(memplan_plan_problem(problem, NULL, &plan) == MEMPLAN_STATUS_OK);
    EXPECT(memplan_plan_pool_size(plan) == 30 && memplan_plan_lower_bound(plan) == 30);
    EXPECT(memplan_plan_bound_is_of_all_choices(NULL) == 0);
    uint64_t offsets[4] = {7, 7, 7, 7};
    EXPECT(memplan_plan_offsets(plan, offsets, 4) == MEMPLAN_STATUS_INVALID);
    EXPECT(said("'n' is 4, but there are 3 chunks"));
    EXPECT(memplan_plan_offsets(plan, NULL, 3) == MEMPLAN_STATUS_NULL);
    EXPECT(offsets[0] == 7);
    EXPECT(memplan_plan_offsets(plan, offsets, 3) == MEMPLAN_STATUS_OK);
    EXPECT(offsets[1] == offsets[2] && offsets[3] == 7);
    uint32_t overwritten[3];
    EXPECT(memplan_plan_overwritten(plan, overwritten, 3) == MEMPLAN_STATUS_OK);
    EXPECT(overwritten[0] == MEMPLAN_NONE && overwritten[2] == 1);
    EXPECT(memplan_plan_tensors(plan, NULL, 0) == MEMPLAN_STATUS_OK);
    memplan_place place;
    EXPECT(memplan_plan_tensors(plan, &place, 1) == MEMPLAN_STATUS_INVALID);

    EXPECT(memplan_verify(problem, 1, offsets, 3) == MEMPLAN_STATUS_OK);
    EXPECT(memplan_verify(problem, 1, offsets, 2) == MEMPLAN_STATUS_INVALID);
    EXPECT(memplan_verify(problem, 48, offsets, 3) == MEMPLAN_STATUS_INVALID);
    EXPECT(said("alignment 48 is not a power of two"));
    EXPECT(memplan_verify(problem, 1, NULL, 3) == MEMPLAN_STATUS_NULL);
    uint64_t far_away[] = {0, UINT64_MAX, 0};
    EXPECT(memplan_verify(problem, 1, far_away, 3) == MEMPLAN_STATUS_INVALID);
    uint64_t overlapping[] = {0, 5, 5};
    EXPECT(memplan_verify(problem, 1, overlapping, 3) == MEMPLAN_STATUS_INVALID);
    EXPECT(said("share the bytes"));
    memplan_plan_free(plan);

    memplan_options options;
    memset(&options, 0, sizeof options);
    EXPECT(memplan_plan_problem(problem, &options, &plan) == MEMPLAN_STATUS_INVALID);
    EXPECT(said("call memplan_options_init"));
    EXPECT(memplan_options_init(NULL, sizeof options) == MEMPLAN_STATUS_NULL);
    EXPECT(memplan_options_init(&options, 4) == MEMPLAN_STATUS_INVALID);
    EXPECT(memplan_options_init(&options, sizeof options) == MEMPLAN_STATUS_OK);
    options.alignment = 48;
    EXPECT(memplan_plan_problem(problem, &options, &plan) == MEMPLAN_STATUS_INVALID);
    options.alignment = 64;
    options.strategy = 99;
    EXPECT(memplan_plan_problem(problem, &options, &plan) == MEMPLAN_STATUS_INVALID);
    EXPECT(said("no strategy has number 99"));
    options.strategy = MEMPLAN_STRATEGY_NAIVE;
    options.threads = UINT32_MAX;
    options.padding = UINT64_MAX;
    EXPECT(memplan_plan_problem(problem, &options, &plan) == MEMPLAN_STATUS_OVERFLOW);
    options.padding = 0;
    options.capacity = 127;
    options.strategy = MEMPLAN_STRATEGY_BEST;
    plan = NULL;
    EXPECT(memplan_plan_problem(problem, &options, &plan) == MEMPLAN_STATUS_DOES_NOT_FIT);
    EXPECT(plan != NULL && memplan_plan_lower_bound(plan) == 128);
    memplan_plan_free(plan);
    options.capacity = 128;
    EXPECT(memplan_plan_problem(problem, &options, &plan) == MEMPLAN_STATUS_OK);
    memplan_plan_free(plan);
    memplan_problem_free(problem);
}

static void pools(void) {
    const memplan_chunk chunks[] = {{0, 2, 64}, {1, 3, 128}, {2, 4, 64}};
    const memplan_pool pools[] = {{128, 1, 1}, {UINT64_MAX, 256, 20}};
    const memplan_pin pins[] = {{1, 1, 512}}, unknown[] = {{3, 0, 0}}, nowhere[] = {{0, 2, 0}};
    memplan_problem *problem = NULL;
    EXPECT(memplan_problem_new_in_pools(chunks, 3, NULL, 0, NULL, 2, NULL, 0, &problem) ==
           MEMPLAN_STATUS_NULL);
    EXPECT(memplan_problem_new_in_pools(chunks, 3, NULL, 0, pools, 2, NULL, 1, &problem) ==
           MEMPLAN_STATUS_NULL);
    EXPECT(memplan_problem_new_in_pools(chunks, 3, NULL, 0, pools, 2, unknown, 1, &problem) ==
           MEMPLAN_STATUS_INVALID);
    EXPECT(said("a pin names chunk 3"));
    EXPECT(memplan_problem_new_in_pools(chunks, 3, NULL, 0, pools, 2, nowhere, 1, &problem) ==
           MEMPLAN_STATUS_INVALID);
    EXPECT(said("there is no pool 2") && problem == NULL);
    EXPECT(memplan_problem_new_in_pools(chunks, 3, NULL, 0, pools, 2, pins, 1, &problem) ==
           MEMPLAN_STATUS_OK);
    memplan_plan *plan = NULL;
    EXPECT(memplan_plan_problem(problem, NULL, &plan) == MEMPLAN_STATUS_OK);
    uint32_t in[3];
    uint64_t offsets[3], sizes[2];
    EXPECT(memplan_plan_pools(plan, in, 2) == MEMPLAN_STATUS_INVALID);
    EXPECT(memplan_plan_pools(plan, in, 3) == MEMPLAN_STATUS_OK);
    EXPECT(in[0] == 0 && in[1] == 1 && in[2] == 0);
    EXPECT(memplan_plan_offsets(plan, offsets, 3) == MEMPLAN_STATUS_OK && offsets[1] == 512);
    EXPECT(memplan_plan_pool_sizes(plan, sizes, 1) == MEMPLAN_STATUS_INVALID);
    EXPECT(memplan_plan_pool_sizes(plan, sizes, 2) == MEMPLAN_STATUS_OK);
    EXPECT(sizes[0] == 64 || sizes[0] == 128);
    EXPECT(sizes[1] >= 640);
    EXPECT(memplan_verify_in_pools(problem, 1, in, offsets, 3) == MEMPLAN_STATUS_OK);
    in[1] = 0;
    EXPECT(memplan_verify_in_pools(problem, 1, in, offsets, 3) == MEMPLAN_STATUS_INVALID);
    in[1] = 2;
    EXPECT(memplan_verify_in_pools(problem, 1, in, offsets, 3) == MEMPLAN_STATUS_INVALID);
    EXPECT(memplan_verify_in_pools(problem, 1, NULL, offsets, 3) == MEMPLAN_STATUS_NULL);
    memplan_plan_free(plan);
    memplan_problem_free(problem);

    /* Without pools, there is one. */
    EXPECT(memplan_problem_new_in_pools(chunks, 3, NULL, 0, NULL, 0, NULL, 0, &problem) ==
           MEMPLAN_STATUS_OK);
    EXPECT(memplan_plan_problem(problem, NULL, &plan) == MEMPLAN_STATUS_OK);
    EXPECT(memplan_plan_pool_sizes(plan, sizes, 1) == MEMPLAN_STATUS_OK && sizes[0] == 192);
    memplan_plan_free(plan);
    memplan_problem_free(problem);
}

static void parts(void) {
    const memplan_chunk chunks[] = {{0, 3, 64}, {1, 3, 32}, {2, 4, 96}};
    memplan_problem *problem = NULL, *with = NULL;
    EXPECT(memplan_problem_new(chunks, 3, NULL, 0, &problem) == MEMPLAN_STATUS_OK);
    memplan_part parts[] = {{0, 2, 0, 0}, {1, 2, 64, 1}}, large[] = {{2, 0, 0, 0}};
    EXPECT(memplan_problem_with_parts(problem, large, 1, &with) == MEMPLAN_STATUS_INVALID);
    EXPECT(said("does not fit") && with == NULL);
    EXPECT(memplan_problem_with_parts(problem, NULL, 1, &with) == MEMPLAN_STATUS_NULL);
    EXPECT(memplan_problem_with_parts(problem, parts, 2, &with) == MEMPLAN_STATUS_OK);
    memplan_plan *plan = NULL;
    uint64_t offsets[3];
    EXPECT(memplan_plan_problem(with, NULL, &plan) == MEMPLAN_STATUS_OK);
    EXPECT(memplan_plan_offsets(plan, offsets, 3) == MEMPLAN_STATUS_OK);
    EXPECT(offsets[0] == offsets[2] && offsets[1] == offsets[2] + 64);
    EXPECT(memplan_plan_pool_size(plan) == 96);
    EXPECT(memplan_verify(with, 1, offsets, 3) == MEMPLAN_STATUS_OK);
    EXPECT(memplan_verify(problem, 1, offsets, 3) == MEMPLAN_STATUS_INVALID);
    /* The first may lie elsewhere, the second must not. */
    offsets[0] = 96;
    EXPECT(memplan_verify(with, 1, offsets, 3) == MEMPLAN_STATUS_OK);
    offsets[1] = 160;
    EXPECT(memplan_verify(with, 1, offsets, 3) == MEMPLAN_STATUS_INVALID);
    memplan_plan_free(plan);
    memplan_problem_free(with);
    memplan_problem_free(problem);
}

static void sequences(void) {
    memplan_sequence *sequence = NULL;
    EXPECT(memplan_sequence_new(NULL) == MEMPLAN_STATUS_NULL);
    EXPECT(memplan_sequence_new(&sequence) == MEMPLAN_STATUS_OK);
    uint32_t x = 9, w = 9, outputs[2] = {9, 9};
    EXPECT(memplan_sequence_input(NULL, "x", 64, &x) == MEMPLAN_STATUS_NULL);
    EXPECT(memplan_sequence_input(sequence, "\xff", 64, &x) == MEMPLAN_STATUS_INVALID);
    EXPECT(said("'name' is not UTF-8") && x == 9);
    EXPECT(memplan_sequence_input(sequence, "x", 64, &x) == MEMPLAN_STATUS_OK && x == 0);
    EXPECT(memplan_sequence_weight(sequence, NULL, MEMPLAN_UNKNOWN_SIZE, &w) == MEMPLAN_STATUS_OK);
    const uint32_t inputs[] = {x, w}, missing[] = {5};
    const memplan_output fresh[] = {{"a", 64, NULL, 0}, {NULL, 0, NULL, 0}};
    EXPECT(memplan_sequence_operator(sequence, "mul", NULL, missing, 1, fresh, 2, 0, outputs) ==
           MEMPLAN_STATUS_INVALID);
    EXPECT(said("there is no tensor 5 yet") && outputs[0] == 9);
    EXPECT(memplan_sequence_operator(sequence, "mul", NULL, inputs, 2, NULL, 2, 0, outputs) ==
           MEMPLAN_STATUS_NULL);
    EXPECT(memplan_sequence_operator(sequence, "mul", "Mul", inputs, 2, fresh, 2, 32, outputs) ==
           MEMPLAN_STATUS_OK);
    EXPECT(w == 1 && outputs[0] == 2 && outputs[1] == 3);
    const memplan_dependency view[] = {{MEMPLAN_DEPENDENCY_KIND_READS, 2, 32}};
    const memplan_dependency strange[] = {{17, 2, 0}};
    const memplan_dependency both[] = {{MEMPLAN_DEPENDENCY_KIND_READS, 2, 0},
                                       {MEMPLAN_DEPENDENCY_KIND_OVERWRITES, 2, 0}};
    const memplan_dependency below[] = {{MEMPLAN_DEPENDENCY_KIND_OVERLAPS, 2, 16}};
    const memplan_output blur = {"blur", 64, below, 1};
    memplan_sequence *rows = NULL;
    memplan_plan *overlap = NULL;
    memplan_place at[5];
    EXPECT(memplan_sequence_new(&rows) == MEMPLAN_STATUS_OK);
    for (int i = 0; i < 2; i++) memplan_sequence_input(rows, NULL, 8, NULL);
    uint32_t made = 9;
    EXPECT(memplan_sequence_operator(rows, NULL, NULL, NULL, 0, fresh, 2, 0, NULL) ==
           MEMPLAN_STATUS_OK);
    const uint32_t read[] = {2};
    EXPECT(memplan_sequence_operator(rows, NULL, NULL, read, 1, &blur, 1, 0, &made) ==
           MEMPLAN_STATUS_OK);
    EXPECT(memplan_sequence_output(rows, made) == MEMPLAN_STATUS_OK);
    EXPECT(memplan_plan_sequence(rows, NULL, &overlap) == MEMPLAN_STATUS_OK);
    EXPECT(memplan_plan_pool_size(overlap) == 64 + 16);
    EXPECT(memplan_plan_tensors(overlap, at, 5) == MEMPLAN_STATUS_OK);
    EXPECT(at[2].offset == at[4].offset + 16);
    memplan_plan_free(overlap);
    memplan_sequence_free(rows);
    const memplan_output half = {"half", 32, view, 1}, odd = {"odd", 32, strange, 1};
    const memplan_output torn = {"torn", 32, both, 2}, holes = {"holes", 32, NULL, 1};
    const memplan_output *wrong[] = {&odd, &torn, &holes};
    for (size_t i = 0; i < 3; i++)
        EXPECT(memplan_sequence_operator(sequence, NULL, NULL, outputs, 1, wrong[i], 1, 0, NULL) !=
               MEMPLAN_STATUS_OK);
    uint32_t last = 9;
    EXPECT(memplan_sequence_operator(sequence, NULL, NULL, outputs, 1, &half, 1, 0, &last) ==
           MEMPLAN_STATUS_OK);
    const memplan_dependency own[] = {{MEMPLAN_DEPENDENCY_KIND_OVERWRITES, 0, 0}};
    const memplan_output state = {"state", 64, own, 1};
    const uint32_t both_inputs[] = {last, x};
    EXPECT(memplan_sequence_operator(sequence, NULL, NULL, both_inputs, 2, &state, 1, 0, &last) ==
           MEMPLAN_STATUS_OK);
    EXPECT(memplan_sequence_stream(NULL, 0) == MEMPLAN_STATUS_NULL);
    EXPECT(memplan_sequence_stream(sequence, 64) == MEMPLAN_STATUS_INVALID);
    EXPECT(memplan_sequence_after(sequence, 99) == MEMPLAN_STATUS_INVALID);
    EXPECT(memplan_plan_wait_count(NULL) == 0);
    EXPECT(memplan_sequence_output(sequence, 99) == MEMPLAN_STATUS_INVALID);
    EXPECT(memplan_sequence_output(sequence, last) == MEMPLAN_STATUS_OK);

    memplan_plan *plan = NULL;
    EXPECT(memplan_plan_sequence(NULL, NULL, &plan) == MEMPLAN_STATUS_NULL);
    EXPECT(memplan_plan_sequence(sequence, NULL, &plan) == MEMPLAN_STATUS_OK);
    memplan_place places[6], workspaces[3];
    EXPECT(memplan_plan_tensors(plan, places, 5) == MEMPLAN_STATUS_INVALID);
    EXPECT(memplan_plan_tensors(plan, places, 6) == MEMPLAN_STATUS_OK);
    EXPECT(places[0].kind == MEMPLAN_PLACE_KIND_SUPPLIED && places[0].tensor == 0);
    EXPECT(places[2].kind == MEMPLAN_PLACE_KIND_POOL && places[3].kind == MEMPLAN_PLACE_KIND_NOWHERE);
    EXPECT(places[4].offset == places[2].offset + 32 && places[4].size == 32);
    EXPECT(memplan_plan_workspaces(plan, workspaces, 3) == MEMPLAN_STATUS_OK);
    EXPECT(workspaces[0].size == 32 && workspaces[1].kind == MEMPLAN_PLACE_KIND_NOWHERE);
    memplan_plan_free(plan);

    memplan_options options;
    memplan_options_init(&options, sizeof options);
    options.lowering = 64;
    EXPECT(memplan_plan_sequence(sequence, &options, &plan) == MEMPLAN_STATUS_INVALID);
    options.lowering = MEMPLAN_LOWERING_INPUTS_IN_POOL;
    EXPECT(memplan_plan_sequence(sequence, &options, &plan) == MEMPLAN_STATUS_OK);
    EXPECT(memplan_plan_tensors(plan, places, 6) == MEMPLAN_STATUS_OK);
    EXPECT(places[0].kind == MEMPLAN_PLACE_KIND_POOL);
    memplan_plan_free(plan);
    EXPECT(memplan_sequence_input(sequence, "x", 64, NULL) == MEMPLAN_STATUS_INVALID);
    EXPECT(said("two tensors are called 'x'"));
    EXPECT(memplan_sequence_after(sequence, 0) == MEMPLAN_STATUS_OK);
    EXPECT(memplan_plan_sequence(sequence, &options, &plan) == MEMPLAN_STATUS_INVALID);
    EXPECT(said("memplan_sequence_after was called for a next operator, but none was added"));
    memplan_sequence_free(sequence);
}

static void bodies(void) {
    memplan_sequence *body = NULL, *sequence = NULL, *unnamed = NULL;
    memplan_plan *plan = NULL, *inner = NULL;
    uint32_t state = 9, next = 9, x = 9, y = 9;
    uint64_t offset = 9;
    /* The body of a loop: its input, the state, is copied before its pool. */
    EXPECT(memplan_sequence_new(&body) == MEMPLAN_STATUS_OK);
    EXPECT(memplan_sequence_input(body, "state", 60, &state) == MEMPLAN_STATUS_OK);
    const memplan_output made = {"next", 60, NULL, 0};
    EXPECT(memplan_sequence_operator(body, "exp", NULL, &state, 1, &made, 1, 0, &next) ==
           MEMPLAN_STATUS_OK);
    EXPECT(memplan_sequence_output(body, next) == MEMPLAN_STATUS_OK);

    EXPECT(memplan_sequence_new(&sequence) == MEMPLAN_STATUS_OK);
    EXPECT(memplan_sequence_body(NULL, body) == MEMPLAN_STATUS_NULL);
    EXPECT(memplan_sequence_body(sequence, NULL) == MEMPLAN_STATUS_NULL && said("'body' is null"));
    EXPECT(memplan_sequence_new(&unnamed) == MEMPLAN_STATUS_OK);
    EXPECT(memplan_sequence_weight(unnamed, NULL, 8, NULL) == MEMPLAN_STATUS_OK);
    EXPECT(memplan_sequence_body(sequence, unnamed) == MEMPLAN_STATUS_INVALID);
    EXPECT(said("weight 0 of the body has no name"));
    memplan_sequence_free(unnamed);

    EXPECT(memplan_sequence_input(sequence, NULL, 60, &x) == MEMPLAN_STATUS_OK);
    EXPECT(memplan_sequence_body(sequence, body) == MEMPLAN_STATUS_OK);
    memplan_sequence_free(body);
    const memplan_output output = {NULL, 100, NULL, 0};
    EXPECT(memplan_sequence_operator(sequence, "loop", NULL, &x, 1, &output, 1, 8, &y) ==
           MEMPLAN_STATUS_OK);
    /* The body belongs to one operator. */
    EXPECT(memplan_sequence_operator(sequence, "end", NULL, &y, 1, NULL, 0, 0, NULL) ==
           MEMPLAN_STATUS_OK);
    memplan_options options;
    memplan_options_init(&options, sizeof options);
    options.alignment = 64;
    EXPECT(memplan_plan_sequence(sequence, &options, &plan) == MEMPLAN_STATUS_OK);
    memplan_place workspaces[2], places[2];
    EXPECT(memplan_plan_workspaces(plan, workspaces, 2) == MEMPLAN_STATUS_OK);
    /* The copy of the state, the pool of the body, and the 8 bytes of the loop itself behind them. */
    EXPECT(workspaces[0].size == 64 + 64 + 8 && workspaces[1].size == 0);
    EXPECT(memplan_plan_body(NULL, 0, 0, &offset, &inner) == MEMPLAN_STATUS_NULL);
    EXPECT(memplan_plan_body(plan, 0, 0, &offset, NULL) == MEMPLAN_STATUS_NULL && offset == 9);
    EXPECT(memplan_plan_body(plan, 0, 1, &offset, &inner) == MEMPLAN_STATUS_INVALID);
    EXPECT(said("operator 0 has no body 1"));
    EXPECT(memplan_plan_body(plan, 1, 0, &offset, &inner) == MEMPLAN_STATUS_INVALID);
    EXPECT(inner == NULL && offset == 9);
    EXPECT(memplan_plan_body(plan, 0, 0, NULL, &inner) == MEMPLAN_STATUS_OK);
    memplan_plan_free(inner);
    EXPECT(memplan_plan_body(plan, 0, 0, &offset, &inner) == MEMPLAN_STATUS_OK);
    memplan_plan_free(plan);
    EXPECT(offset == workspaces[0].offset + 64);
    EXPECT(memplan_plan_tensors(inner, places, 2) == MEMPLAN_STATUS_OK);
    EXPECT(places[0].kind == MEMPLAN_PLACE_KIND_SUPPLIED && places[0].tensor == 0);
    EXPECT(places[1].kind == MEMPLAN_PLACE_KIND_POOL && places[1].offset == 0);
    memplan_plan_free(inner);

    uint32_t order[2] = {9, 9};
    plan = NULL;
    EXPECT(memplan_plan_reordered(NULL, NULL, order, 2, &plan) == MEMPLAN_STATUS_NULL);
    EXPECT(memplan_plan_reordered(sequence, NULL, NULL, 2, &plan) == MEMPLAN_STATUS_NULL);
    EXPECT(memplan_plan_reordered(sequence, NULL, order, 2, NULL) == MEMPLAN_STATUS_NULL);
    EXPECT(memplan_plan_reordered(sequence, NULL, order, 3, &plan) == MEMPLAN_STATUS_INVALID);
    EXPECT(plan == NULL && order[0] == 9);
    EXPECT(memplan_plan_reordered(sequence, &options, order, 2, &plan) == MEMPLAN_STATUS_OK);
    EXPECT(order[0] == 0 && order[1] == 1);
    EXPECT(memplan_plan_body(plan, 0, 0, NULL, &inner) == MEMPLAN_STATUS_OK);
    memplan_plan_free(inner);
    memplan_plan_free(plan);

    /* A sequence may be a body of its own next operator: it is copied as it is. */
    EXPECT(memplan_sequence_body(sequence, sequence) == MEMPLAN_STATUS_OK);
    /* Without that operator, nothing would run the body. */
    plan = NULL;
    EXPECT(memplan_plan_sequence(sequence, NULL, &plan) == MEMPLAN_STATUS_INVALID && plan == NULL);
    EXPECT(said("memplan_sequence_body was called for a next operator, but none was added"));
    EXPECT(memplan_plan_reordered(sequence, NULL, order, 2, &plan) == MEMPLAN_STATUS_INVALID);
    EXPECT(memplan_sequence_body(sequence, sequence) == MEMPLAN_STATUS_INVALID);
    /* An operator that fails takes the body with it, so that the next one does not run it. */
    const uint32_t unknown = 99;
    EXPECT(memplan_sequence_operator(sequence, "bad", NULL, &unknown, 1, NULL, 0, 0, NULL) ==
           MEMPLAN_STATUS_INVALID);
    EXPECT(memplan_plan_sequence(sequence, NULL, &plan) == MEMPLAN_STATUS_OK);
    memplan_plan_free(plan);
    EXPECT(memplan_sequence_body(sequence, sequence) == MEMPLAN_STATUS_OK);
    EXPECT(memplan_sequence_operator(sequence, "again", NULL, NULL, 0, NULL, 0, 0, NULL) ==
           MEMPLAN_STATUS_OK);
    EXPECT(memplan_plan_sequence(sequence, NULL, &plan) == MEMPLAN_STATUS_OK);
    memplan_plan_free(plan);
    memplan_status status = MEMPLAN_STATUS_OK;
    for (int level = 0; level < 40 && status == MEMPLAN_STATUS_OK; level++) {
        memplan_sequence *outer = NULL;
        EXPECT(memplan_sequence_new(&outer) == MEMPLAN_STATUS_OK);
        status = memplan_sequence_body(outer, sequence);
        EXPECT(memplan_sequence_operator(outer, NULL, NULL, NULL, 0, NULL, 0, 0, NULL) ==
               MEMPLAN_STATUS_OK);
        memplan_sequence_free(sequence);
        sequence = outer;
    }
    EXPECT(status == MEMPLAN_STATUS_INVALID && said("24 levels"));
    memplan_sequence_free(sequence);
}

int main(void) {
    EXPECT(memplan_abi_version() == MEMPLAN_ABI_VERSION);
    memplan_plan_free(NULL);
    memplan_problem_free(NULL);
    memplan_sequence_free(NULL);
    EXPECT(memplan_plan_pool_size(NULL) == 0);
    problems();
    pools();
    parts();
    sequences();
    bodies();
    return finish();
}
