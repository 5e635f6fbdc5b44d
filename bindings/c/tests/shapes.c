/* What the functions promise about sizes that differ from run to run, and about plans by shape. */
#include <pthread.h>

#include "expect.h"

/* Operators for n rows. The second one may write over its input. */
static memplan_sequence *rows(uint64_t n) {
    memplan_sequence *sequence = NULL;
    uint32_t x = 0, a = 0, b = 0;
    EXPECT(memplan_sequence_new(&sequence) == MEMPLAN_STATUS_OK);
    EXPECT(memplan_sequence_input(sequence, "x", 8 * n, &x) == MEMPLAN_STATUS_OK);
    const memplan_output first = {NULL, 64 * n, NULL, 0};
    EXPECT(memplan_sequence_operator(sequence, "a", NULL, &x, 1, &first, 1, 16, &a) ==
           MEMPLAN_STATUS_OK);
    const memplan_dependency in_place = {MEMPLAN_DEPENDENCY_KIND_OVERWRITES, a, 0};
    const memplan_output second = {NULL, 64 * n, &in_place, 1};
    EXPECT(memplan_sequence_operator(sequence, "b", NULL, &a, 1, &second, 1, 0, &b) ==
           MEMPLAN_STATUS_OK);
    EXPECT(memplan_sequence_output(sequence, b) == MEMPLAN_STATUS_OK);
    return sequence;
}

static memplan_plan *planned(uint64_t n) {
    memplan_sequence *sequence = rows(n);
    memplan_plan *plan = NULL;
    EXPECT(memplan_plan_sequence(sequence, NULL, &plan) == MEMPLAN_STATUS_OK);
    memplan_sequence_free(sequence);
    return plan;
}

static memplan_status verify(uint64_t n, const memplan_plan *plan) {
    memplan_sequence *sequence = rows(n);
    const memplan_status status = memplan_verify_smaller(sequence, plan);
    memplan_sequence_free(sequence);
    return status;
}

static void dims(void) {
    memplan_sequence *sequence = rows(8);
    memplan_plan *plan = NULL;
    uint64_t least = 7, most = 7;
    EXPECT(memplan_sequence_dim(NULL, "n", 1, 8) == MEMPLAN_STATUS_NULL);
    EXPECT(memplan_sequence_dim(sequence, NULL, 1, 8) == MEMPLAN_STATUS_NULL);
    EXPECT(said("'name' is null"));
    EXPECT(memplan_sequence_dim(sequence, "\xff", 1, 8) == MEMPLAN_STATUS_INVALID);
    const uint64_t wrong[][2] = {{8, 1}, {UINT64_MAX, 0}};
    for (size_t i = 0; i < 2; i++) {
        EXPECT(memplan_sequence_dim(sequence, "n", wrong[i][0], wrong[i][1]) == MEMPLAN_STATUS_OK);
        EXPECT(memplan_plan_sequence(sequence, NULL, &plan) == MEMPLAN_STATUS_INVALID);
        EXPECT(said("'n'") && plan == NULL);
    }
    EXPECT(memplan_sequence_dim(sequence, "n", 1, 8) == MEMPLAN_STATUS_OK);
    EXPECT(memplan_sequence_dim(sequence, "m", 3, 3) == MEMPLAN_STATUS_OK);
    EXPECT(memplan_plan_sequence(sequence, NULL, &plan) == MEMPLAN_STATUS_OK);
    memplan_sequence_free(sequence);

    EXPECT(memplan_plan_dim(NULL, "n", &least, &most) == MEMPLAN_STATUS_NULL);
    EXPECT(memplan_plan_dim(plan, NULL, &least, &most) == MEMPLAN_STATUS_NULL);
    EXPECT(memplan_plan_dim(plan, "n", NULL, &most) == MEMPLAN_STATUS_NULL);
    EXPECT(memplan_plan_dim(plan, "n", &least, NULL) == MEMPLAN_STATUS_NULL);
    EXPECT(said("'most' is null"));
    EXPECT(memplan_plan_dim(plan, "k", &least, &most) == MEMPLAN_STATUS_INVALID);
    EXPECT(said("the plan states no dimension 'k'") && least == 7 && most == 7);
    EXPECT(memplan_plan_dim(plan, "n", &least, &most) == MEMPLAN_STATUS_OK);
    EXPECT(least == 1 && most == 8);
    EXPECT(memplan_plan_dim(plan, "m", &least, &most) == MEMPLAN_STATUS_OK);
    EXPECT(least == 3 && most == 3);

    EXPECT(memplan_plan_chunk_count(plan) == 3 && memplan_plan_tensor_count(plan) == 3);
    EXPECT(memplan_plan_operator_count(plan) == 2 && memplan_plan_pool_count(plan) == 1);
    EXPECT(memplan_plan_chunk_count(NULL) == 0 && memplan_plan_tensor_count(NULL) == 0);
    EXPECT(memplan_plan_operator_count(NULL) == 0 && memplan_plan_pool_count(NULL) == 0);

    for (uint64_t n = 1; n <= 8; n++) EXPECT(verify(n, plan) == MEMPLAN_STATUS_OK);
    EXPECT(verify(9, plan) == MEMPLAN_STATUS_INVALID);
    EXPECT(said("the plan is wrong"));
    EXPECT(memplan_verify_smaller(NULL, plan) == MEMPLAN_STATUS_NULL);
    EXPECT(verify(8, NULL) == MEMPLAN_STATUS_NULL);
    memplan_plan_free(plan);

    /* A plan of chunks knows no tensors. */
    const memplan_chunk chunk = {0, 1, 4096};
    memplan_problem *problem = NULL;
    EXPECT(memplan_problem_new(&chunk, 1, NULL, 0, &problem) == MEMPLAN_STATUS_OK);
    EXPECT(memplan_plan_problem(problem, NULL, &plan) == MEMPLAN_STATUS_OK);
    EXPECT(memplan_plan_chunk_count(plan) == 1 && memplan_plan_tensor_count(plan) == 0);
    EXPECT(verify(1, plan) == MEMPLAN_STATUS_INVALID);
    EXPECT(memplan_plan_dim(plan, "n", &least, &most) == MEMPLAN_STATUS_INVALID);
    memplan_plan_free(plan);
    memplan_problem_free(problem);
}

/* Two wide tensors, each reduced by itself: better one after the other. */
static memplan_sequence *wide(uint64_t n) {
    memplan_sequence *sequence = NULL;
    uint32_t made[2], sums[2];
    EXPECT(memplan_sequence_new(&sequence) == MEMPLAN_STATUS_OK);
    const memplan_output large = {NULL, 64 * n, NULL, 0}, small = {NULL, n, NULL, 0};
    for (int i = 0; i < 2; i++)
        EXPECT(memplan_sequence_operator(sequence, NULL, NULL, NULL, 0, &large, 1, 0, &made[i]) ==
               MEMPLAN_STATUS_OK);
    for (int i = 0; i < 2; i++)
        EXPECT(memplan_sequence_operator(sequence, NULL, NULL, &made[i], 1, &small, 1, 0,
                                         &sums[i]) == MEMPLAN_STATUS_OK);
    for (int i = 0; i < 2; i++) EXPECT(memplan_sequence_output(sequence, sums[i]) == MEMPLAN_STATUS_OK);
    return sequence;
}

/* A plan with an order of its own is followed in that order. */
static void reordered(void) {
    memplan_sequence *sequence = wide(8), *small = wide(3), *large = wide(9), *other = rows(1);
    memplan_plan *plan = NULL;
    uint32_t order[4];
    EXPECT(memplan_sequence_dim(sequence, "n", 2, 8) == MEMPLAN_STATUS_OK);
    EXPECT(memplan_plan_reordered(sequence, NULL, order, 4, &plan) == MEMPLAN_STATUS_OK);
    EXPECT(order[1] >= 2 && memplan_plan_pool_size(plan) == 64 * 8 + 2 * 8);
    uint64_t least = 0, most = 0;
    EXPECT(memplan_plan_dim(plan, "n", &least, &most) == MEMPLAN_STATUS_OK);
    EXPECT(least == 2 && most == 8);
    EXPECT(memplan_verify_smaller(sequence, plan) == MEMPLAN_STATUS_OK);
    EXPECT(memplan_verify_smaller(small, plan) == MEMPLAN_STATUS_OK);
    EXPECT(memplan_verify_smaller(large, plan) == MEMPLAN_STATUS_INVALID);
    EXPECT(memplan_verify_smaller(other, plan) == MEMPLAN_STATUS_INVALID);
    memplan_plan_free(plan);
    memplan_sequence_free(sequence);
    memplan_sequence_free(small);
    memplan_sequence_free(large);
    memplan_sequence_free(other);
}

static void caches(void) {
    memplan_plan_cache *cache = NULL;
    memplan_plan *two = planned(2), *eight = planned(8), *plan = two, *kept = NULL;
    const uint64_t small[] = {2, 1}, large[] = {8, 3}, between[] = {3, 1}, over[] = {9, 1};
    const uint64_t turned[] = {1, 2};
    uint64_t shape[2] = {7, 7};
    EXPECT(memplan_plan_cache_new(NULL) == MEMPLAN_STATUS_NULL);
    EXPECT(memplan_plan_cache_new(&cache) == MEMPLAN_STATUS_OK);
    EXPECT(memplan_plan_cache_count(cache) == 0 && memplan_plan_cache_pool_size(cache) == 0);
    EXPECT(memplan_plan_cache_count(NULL) == 0 && memplan_plan_cache_pool_size(NULL) == 0);

    EXPECT(memplan_plan_cache_get(NULL, small, 2, &plan) == MEMPLAN_STATUS_NULL);
    EXPECT(memplan_plan_cache_get(cache, NULL, 2, &plan) == MEMPLAN_STATUS_NULL);
    EXPECT(said("'shape' is null"));
    EXPECT(memplan_plan_cache_get(cache, small, SIZE_MAX, &plan) == MEMPLAN_STATUS_INVALID);
    EXPECT(memplan_plan_cache_get(cache, small, 2, NULL) == MEMPLAN_STATUS_NULL);
    EXPECT(plan == two);
    EXPECT(memplan_plan_cache_keep(NULL, small, 2, two, NULL) == MEMPLAN_STATUS_NULL);
    EXPECT(memplan_plan_cache_keep(cache, NULL, 2, two, NULL) == MEMPLAN_STATUS_NULL);
    EXPECT(memplan_plan_cache_keep(cache, small, 2, NULL, NULL) == MEMPLAN_STATUS_NULL);
    memplan_plan **crooked = (memplan_plan **)(void *)((char *)&kept + 1);
    EXPECT(memplan_plan_cache_keep(cache, small, 2, two, crooked) == MEMPLAN_STATUS_INVALID);
    EXPECT(memplan_plan_cache_count(cache) == 0);

    /* What is not kept is no failure. */
    EXPECT(memplan_plan_cache_get(cache, small, 2, &plan) == MEMPLAN_STATUS_OK && plan == NULL);
    EXPECT(memplan_plan_cache_keep(cache, small, 2, two, &kept) == MEMPLAN_STATUS_OK && kept == two);
    memplan_plan_free(kept);
    EXPECT(memplan_plan_cache_keep(cache, large, 2, eight, NULL) == MEMPLAN_STATUS_OK);
    /* A shape keeps its first plan. */
    EXPECT(memplan_plan_cache_keep(cache, small, 2, eight, &kept) == MEMPLAN_STATUS_OK && kept == two);
    memplan_plan_free(kept);
    /* The cache and what it gave hold a plan, whoever frees it first. */
    memplan_plan_free(two);
    memplan_plan_free(eight);
    EXPECT(memplan_plan_cache_get(cache, small, 2, &plan) == MEMPLAN_STATUS_OK);
    EXPECT(memplan_plan_pool_size(plan) == 64 * 2 + 16 && verify(2, plan) == MEMPLAN_STATUS_OK);
    memplan_plan_free(plan);
    EXPECT(memplan_plan_cache_count(cache) == 2);
    EXPECT(memplan_plan_cache_pool_size(cache) == 64 * 8 + 16);
    /* The sizes are the key: neither their order nor their number is forgotten. */
    EXPECT(memplan_plan_cache_get(cache, turned, 2, &plan) == MEMPLAN_STATUS_OK && plan == NULL);
    EXPECT(memplan_plan_cache_get(cache, small, 1, &plan) == MEMPLAN_STATUS_OK && plan == NULL);

    EXPECT(memplan_plan_cache_dominating(NULL, small, 2, shape, &plan) == MEMPLAN_STATUS_NULL);
    EXPECT(memplan_plan_cache_dominating(cache, NULL, 2, shape, &plan) == MEMPLAN_STATUS_NULL);
    EXPECT(memplan_plan_cache_dominating(cache, between, 2, shape, NULL) == MEMPLAN_STATUS_NULL);
    EXPECT(memplan_plan_cache_dominating(cache, over, 2, shape, &plan) == MEMPLAN_STATUS_OK);
    EXPECT(plan == NULL && shape[0] == 7);
    EXPECT(memplan_plan_cache_dominating(cache, turned, 2, NULL, &plan) == MEMPLAN_STATUS_OK);
    EXPECT(memplan_plan_pool_size(plan) == 64 * 8 + 16);
    memplan_plan_free(plan);
    EXPECT(memplan_plan_cache_dominating(cache, between, 1, shape, &plan) == MEMPLAN_STATUS_OK);
    EXPECT(plan == NULL);
    EXPECT(memplan_plan_cache_dominating(cache, between, 2, shape, &plan) == MEMPLAN_STATUS_OK);
    EXPECT(shape[0] == 8 && shape[1] == 3);
    /* The shape asked for may be written over. */
    memplan_plan_free(plan);
    shape[0] = 2;
    shape[1] = 1;
    EXPECT(memplan_plan_cache_dominating(cache, shape, 2, shape, &plan) == MEMPLAN_STATUS_OK);
    EXPECT(shape[0] == 2 && shape[1] == 1);
    memplan_plan_free(plan);
    shape[0] = 3;
    EXPECT(memplan_plan_cache_dominating(cache, shape, 2, shape, &plan) == MEMPLAN_STATUS_OK);
    EXPECT(shape[0] == 8 && shape[1] == 3);

    /* A model without open dimensions has one shape. */
    EXPECT(memplan_plan_cache_keep(cache, NULL, 0, plan, NULL) == MEMPLAN_STATUS_OK);
    EXPECT(memplan_plan_cache_get(cache, NULL, 0, &kept) == MEMPLAN_STATUS_OK && kept == plan);
    memplan_plan_cache_free(cache);
    EXPECT(verify(8, plan) == MEMPLAN_STATUS_OK && verify(3, kept) == MEMPLAN_STATUS_OK);
    memplan_plan_free(plan);
    EXPECT(memplan_plan_pool_size(kept) == 64 * 8 + 16);
    memplan_plan_free(kept);
}

static memplan_plan_cache *of_all;

/* Returns the number of calls that went wrong. */
static void *serve(void *unused) {
    size_t wrong = 0;
    (void)unused;
    for (uint64_t at = 0; at < 200; at++) {
        const uint64_t shape = at % 5;
        memplan_plan *plan = NULL, *kept = NULL;
        wrong += memplan_plan_cache_get(of_all, &shape, 1, &plan) != MEMPLAN_STATUS_OK;
        if (plan == NULL) {
            const memplan_chunk chunk = {0, 1, shape + 1};
            memplan_problem *problem = NULL;
            wrong += memplan_problem_new(&chunk, 1, NULL, 0, &problem) != MEMPLAN_STATUS_OK;
            wrong += memplan_plan_problem(problem, NULL, &plan) != MEMPLAN_STATUS_OK;
            memplan_problem_free(problem);
            wrong += memplan_plan_cache_keep(of_all, &shape, 1, plan, &kept) != MEMPLAN_STATUS_OK;
            memplan_plan_free(plan);
            plan = kept;
        }
        wrong += memplan_plan_pool_size(plan) != shape + 1;
        memplan_plan_free(plan);
    }
    return (void *)(uintptr_t)wrong;
}

static void threads(void) {
    pthread_t running[4];
    EXPECT(memplan_plan_cache_new(&of_all) == MEMPLAN_STATUS_OK);
    for (size_t i = 0; i < 4; i++) EXPECT(pthread_create(&running[i], NULL, serve, NULL) == 0);
    for (size_t i = 0; i < 4; i++) {
        void *wrong = NULL;
        EXPECT(pthread_join(running[i], &wrong) == 0 && wrong == NULL);
    }
    EXPECT(memplan_plan_cache_count(of_all) == 5 && memplan_plan_cache_pool_size(of_all) == 5);
    memplan_plan_cache_free(of_all);
}

int main(void) {
    memplan_plan_cache_free(NULL);
    dims();
    reordered();
    caches();
    threads();
    return finish();
}
