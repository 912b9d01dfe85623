#include "best.h"

#include <stdlib.h>
#include <string.h>

#include "steps.h"

/* ── maps ─────────────────────────────────────────────────────────────────────────────────── */

Settling *settling_new(void) {
    Settling *settling = calloc(1, sizeof *settling);
    if (settling) settling->in_order = 1;
    return settling;
}

static void best_free(Best *best) {
    if (!best) return;
    if (best->keys) best->keys->best = NULL;
    free(best->values);
    free(best->depths);
    free(best->plans);
    free(best->row);
    free(best);
}

void settling_free(Settling *settling) {
    if (!settling) return;
    for (uint32_t i = 0; i < settling->map_count; i++) best_free(settling->maps[i]);
    free(settling->maps);
    free(settling->heap);
    free(settling);
}

Best *settling_map(Settling *settling, Relation *keys, Relation *facts, uint32_t column, enum Order order, int greatest) {
    Best **maps = realloc(settling->maps, ((size_t)settling->map_count + 1) * sizeof *maps);
    if (!maps) return NULL;
    settling->maps = maps;
    Best *best = calloc(1, sizeof *best);
    if (!best) return NULL;
    best->row = calloc((size_t)facts->width + 1, sizeof *best->row);
    if (!best->row) {
        free(best);
        return NULL;
    }
    best->settling = settling;
    best->number = settling->map_count;
    best->keys = keys;
    best->facts = facts;
    best->column = column;
    best->order = order;
    best->greatest = greatest;
    keys->best = best;
    maps[settling->map_count++] = best;
    return best;
}

int best_follow(Best *best, Plan *plan) {
    Plan **plans = realloc(best->plans, ((size_t)best->plan_count + 1) * sizeof *plans);
    if (!plans) return NO_MEMORY;
    best->plans = plans;
    plans[best->plan_count++] = plan;
    return DONE;
}

static int make_room_for_key(Best *best) {
    if (best->keys->count <= best->capacity) return DONE;
    uint64_t capacity = best->capacity < 8 ? 8 : best->capacity + (uint64_t)best->capacity / 2;
    int64_t *values = realloc(best->values, capacity * sizeof *values);
    if (!values) return NO_MEMORY;
    best->values = values;
    uint32_t *depths = realloc(best->depths, capacity * sizeof *depths);
    if (!depths) return NO_MEMORY;
    best->depths = depths;
    best->capacity = (uint32_t)capacity;
    return DONE;
}

/* ── the order ────────────────────────────────────────────────────────────────────────────── */

#define SIGN ((uint64_t)1 << 63)

/* Where a value stands: numbers that compare as the values do. */
static inline uint64_t place_of(const Best *best, int64_t word) {
    uint64_t place = (uint64_t)word;
    if (best->order == SIGNED) place ^= SIGN;
    else if (best->order == FLOATING) place = place & SIGN ? ~place : place | SIGN;
    return best->greatest ? ~place : place;
}

static inline int precedes(const Pending *one, const Pending *other) {
    if (one->place != other->place) return one->place < other->place;
    if (one->depth != other->depth) return one->depth < other->depth;
    return one->map < other->map;
}

static inline int is_beside(const Pending *one, const Pending *other) {
    return one->place == other->place && one->depth == other->depth && one->map == other->map;
}

static int push(Settling *settling, Pending one) {
    if (settling->count == settling->capacity) {
        uint64_t capacity = settling->capacity < 16 ? 16 : settling->capacity + (uint64_t)settling->capacity / 2;
        if (capacity > UINT32_MAX) return TOO_MANY_ROWS;
        Pending *heap = realloc(settling->heap, capacity * sizeof *heap);
        if (!heap) return NO_MEMORY;
        settling->heap = heap;
        settling->capacity = (uint32_t)capacity;
    }
    Pending *heap = settling->heap;
    uint32_t at = settling->count++;
    while (at) {
        uint32_t above = (at - 1) / 2;
        if (!precedes(&one, &heap[above])) break;
        heap[at] = heap[above];
        at = above;
    }
    heap[at] = one;
    return DONE;
}

static Pending pop(Settling *settling) {
    Pending *heap = settling->heap, first = heap[0];
    uint64_t at = 0, below, count = --settling->count;
    Pending one = heap[count];
    while ((below = 2 * at + 1) < count) {
        if (below + 1 < count && precedes(&heap[below + 1], &heap[below])) below++;
        if (!precedes(&heap[below], &one)) break;
        heap[at] = heap[below];
        at = below;
    }
    if (count) heap[at] = one;
    return first;
}

/* ── offers ───────────────────────────────────────────────────────────────────────────────── */

int best_offer(Best *best, const int64_t *row, uint64_t hash) {
    Settling *settling = best->settling;
    int64_t word = row[best->keys->width];
    uint64_t place = place_of(best, word);
    uint32_t key;
    if (best->order == FLOATING && (uint64_t)word == NAN_BITS) return UNDEFINED;
    int status = relation_put(best->keys, row, hash, &key);
    if (status < 0) return status;
    if (status == KNOWN && place_of(best, best->values[key]) <= place) return KNOWN;
    if (status == ADDED && make_room_for_key(best) < 0) return NO_MEMORY;
    Pending one = {place, 0, best->number, key};
    if (settling->is_passing) {
        if (place < settling->now.place) settling->in_order = 0;
        if (place == settling->now.place) one.depth = settling->now.depth + 1;
    }
    best->values[key] = word;
    best->depths[key] = one.depth;
    return push(settling, one) < 0 ? NO_MEMORY : ADDED;
}

/* ── settling ─────────────────────────────────────────────────────────────────────────────── */

/* Add the fact of what waited, unless its key has a better value by now. */
static int take(Settling *settling, Pending one) {
    Best *best = settling->maps[one.map];
    if (place_of(best, best->values[one.key]) != one.place || best->depths[one.key] != one.depth) return DONE;
    uint32_t width = best->facts->width, from = 0;
    for (uint32_t i = 0; i < width; i++)
        best->row[i] = i == best->column ? best->values[one.key] : relation_word(best->keys, one.key, from++);
    int status = relation_add(best->facts, best->row);
    if (status == ADDED) best->taken++;
    return status < 0 ? status : DONE;
}

/* Run what reads the facts that a map has taken; their number, or a failure. */
static int64_t pass_on(Best *best) {
    uint32_t taken = best->taken;
    int status = DONE;
    best->taken = 0;
    if (!taken) return 0;
    if (relation_advance(best->facts) < 0) return NO_MEMORY;
    for (uint32_t i = 0; i < best->plan_count && status == DONE; i++) status = plan_run_again(best->plans[i]);
    return status < 0 ? status : (int64_t)taken;
}

int64_t settling_run(Settling *settling, uint64_t most) {
    int64_t settled = 0, passed;
    settling->is_passing = 1;
    while (settling->count && settling->in_order && (uint64_t)settled < most) {
        settling->now = settling->heap[0];
        while (settling->count && is_beside(&settling->heap[0], &settling->now)) {
            int status = take(settling, pop(settling));
            if (status < 0) return status;
        }
        passed = pass_on(settling->maps[settling->now.map]);
        if (passed < 0) return passed;
        settled += passed;
    }
    settling->is_passing = 0;
    return settled;
}

int64_t settling_round(Settling *settling) {
    int64_t settled = 0, passed;
    settling->is_passing = 0;
    for (uint32_t i = 0; i < settling->map_count; i++) {
        Best *best = settling->maps[i];
        memset(best->depths, 0, best->keys->count * sizeof *best->depths);
    }
    for (uint32_t i = 0; i < settling->count; i++) {
        settling->heap[i].depth = 0;
        int status = take(settling, settling->heap[i]);
        if (status < 0) return status;
    }
    settling->count = 0;
    for (uint32_t i = 0; i < settling->map_count; i++) {
        passed = pass_on(settling->maps[i]);
        if (passed < 0) return passed;
        settled += passed;
    }
    return settled;
}
