/* Maps to a best value, settled in the order of their values.
 *
 * A rule of a map derives rows (key…, value): offers.  They are not kept.  The best offer of each
 * key is its value, and waits in a heap until it is the best of all that wait.  Then the fact is
 * added to `facts`, and rules read it as their change Δ.  Facts of one value are passed on together,
 * in the order of their depth: the number of steps since that value was reached.
 *
 * A rule may offer a better value than the one that it came from.  Then there is no such order
 * (`in_order` is 0), and whatever waits is passed on together, round by round.
 *
 * Invariants:
 *   B1  row n of `keys` has the best offer so far in values[n], and its depth in depths[n];
 *   B2  each of them that was not passed on is in the heap; what else is in the heap is out of date;
 *   B3  while `in_order`, a key is passed on once, and `facts` has each key once.
 */
#ifndef EVERLOG_BEST_H
#define EVERLOG_BEST_H

#include "columns.h"
#include "plan.h"

typedef struct {
    uint64_t place; /* of the value in the order: the best one is the least */
    uint32_t depth, map, key;
} Pending;

typedef struct Best Best;

typedef struct {
    Best **maps;
    uint32_t map_count;
    Pending *heap;
    uint32_t count, capacity;
    Pending now; /* what is passed on */
    int is_passing, in_order;
} Settling;

struct Best {
    Settling *settling;
    uint32_t number; /* among the maps that are settled together */
    Relation *keys, *facts;
    uint32_t column; /* of the value, in `facts` */
    enum Order order;
    int greatest;
    int64_t *values;
    uint32_t *depths, capacity;
    Plan **plans; /* those that read its facts as Δ */
    uint32_t plan_count;
    int64_t *row; /* room for a row of `facts` */
    uint32_t taken; /* rows that the present batch has added to `facts` */
};

Settling *settling_new(void);
void settling_free(Settling *settling);

/* Another map: offers to `keys` are for it.  NULL without memory. */
Best *settling_map(Settling *settling, Relation *keys, Relation *facts, uint32_t column, enum Order order, int greatest);
int best_follow(Best *best, Plan *plan);

/* An offer, with the hash of its key.  ADDED, KNOWN or a failure: NaN is UNDEFINED, it has no place. */
int best_offer(Best *best, const int64_t *row, uint64_t hash);

/* Pass on about `most` facts in order; their number, or a failure.  0: nothing waits, or order is lost. */
int64_t settling_run(Settling *settling, uint64_t most);

/* Pass on all that waits, once; the number of facts, or a failure. */
int64_t settling_round(Settling *settling);

#endif
