/* What plans that run in blocks have in common: block.c for whole evaluation, live_run.c for relations
 * that live. */
#ifndef EVERLOG_STAGES_H
#define EVERLOG_STAGES_H

#include "plan.h"

/* One loop of a plan: the rows that it makes wait in `store` until there are BLOCK of them. */
struct Stage {
    int64_t *store;
    int64_t *rows[BLOCK];         /* those of the store that tests have left */
    const uint32_t *lists[BLOCK]; /* the matches of each row that comes in */
    uint32_t counts[BLOCK];
    uint32_t *live, live_count; /* registers that come in and are still needed */
};

/* The stages of a plan that has none yet: all or, after a failure, none. */
int plan_make_stages(Plan *plan);

/* Write what an operation reads of each row to `plan->keys`. */
static inline void gather_many(Plan *plan, const Op *op, int64_t **rows, uint32_t count) {
    uint32_t width = op->from_count;
    for (uint32_t k = 0; k < count; k++)
        for (uint32_t i = 0; i < width; i++) plan->keys[(size_t)k * width + i] = rows[k][op->from[i]];
}

/* A test or a functor; the number of rows that are left, or a failure. */
int plan_apply_many(Plan *plan, int at, int64_t **rows, uint32_t count);

#endif
