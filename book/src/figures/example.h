/* The memory of example, planned by memplan 0.1.0: pushdown.
   All numbers are bytes; offsets count from the start of the arena. */
#ifndef EXAMPLE_PLAN_H
#define EXAMPLE_PLAN_H

#include <assert.h>
#include <stdint.h>

#define EXAMPLE_ARENA_SIZE 15360u
#define EXAMPLE_ARENA_ALIGNMENT 64u

static_assert(EXAMPLE_ARENA_SIZE <= SIZE_MAX, "the arena is too large for this target");

/* a, steps 0..2 */
#define EXAMPLE_A_OFFSET 0u
#define EXAMPLE_A_SIZE 4096u
static_assert(EXAMPLE_A_OFFSET + EXAMPLE_A_SIZE <= EXAMPLE_ARENA_SIZE, "EXAMPLE_A");

/* b, steps 1..5 */
#define EXAMPLE_B_OFFSET 9216u
#define EXAMPLE_B_SIZE 6144u
static_assert(EXAMPLE_B_OFFSET + EXAMPLE_B_SIZE <= EXAMPLE_ARENA_SIZE, "EXAMPLE_B");

/* v, steps 1..5 */
#define EXAMPLE_V_OFFSET 11264u
#define EXAMPLE_V_SIZE 3072u
static_assert(EXAMPLE_V_OFFSET + EXAMPLE_V_SIZE <= EXAMPLE_ARENA_SIZE, "EXAMPLE_V");

/* c, steps 3..6 */
#define EXAMPLE_C_OFFSET 0u
#define EXAMPLE_C_SIZE 3072u
static_assert(EXAMPLE_C_OFFSET + EXAMPLE_C_SIZE <= EXAMPLE_ARENA_SIZE, "EXAMPLE_C");

/* d, steps 4..6 */
#define EXAMPLE_D_OFFSET 11264u
#define EXAMPLE_D_SIZE 3072u
static_assert(EXAMPLE_D_OFFSET + EXAMPLE_D_SIZE <= EXAMPLE_ARENA_SIZE, "EXAMPLE_D");

/* e, step 5 */
#define EXAMPLE_E_OFFSET 3072u
#define EXAMPLE_E_SIZE 8192u
static_assert(EXAMPLE_E_OFFSET + EXAMPLE_E_SIZE <= EXAMPLE_ARENA_SIZE, "EXAMPLE_E");

#endif
