#include "columns.h"

#include <stdlib.h>
#include <string.h>

#include "steps.h"

/* ── in ───────────────────────────────────────────────────────────────────────────────────── */

int relation_add_columns(Relation *relation, Batch *batch, const Column *columns, uint64_t row, uint64_t end) {
    uint32_t width = relation->width;
    for (; row < end; row++) {
        int64_t *words = batch->rows + (size_t)batch->count * width;
        for (uint32_t i = 0; i < width; i++) {
            memcpy(&words[i], columns[i].bytes + row * sizeof(int64_t), sizeof(int64_t));
            if (columns[i].is_float) words[i] = float_word(as_float(words[i]));
        }
        int status = batch_put(batch, relation);
        if (status < 0) return status;
    }
    return DONE;
}

/* ── out ──────────────────────────────────────────────────────────────────────────────────── */

void relation_column(const Relation *relation, uint32_t column, const uint32_t *order, uint64_t count, int64_t *words) {
    for (uint64_t place = 0; place < count; place++) {
        if (place + AHEAD < count)
            PREFETCH((const char *)relation->words +
                     (uint64_t)order[place + AHEAD] * relation->width * (relation->narrow ? 4 : 8));
        words[place] = relation_word(relation, order[place], column);
    }
}

/* ── order ────────────────────────────────────────────────────────────────────────────────── */

static uint64_t order_key(int64_t word, int kind, const uint32_t *ranks) {
    uint64_t sign = (uint64_t)1 << 63, bits = (uint64_t)word;
    switch (kind) {
        case SIGNED: return bits ^ sign;
        case FLOATING:
        case FLOATING_NAN_LAST:
            if (bits == 0x7FF8000000000000u) return kind == FLOATING ? 0 : UINT64_MAX;
            return bits & sign ? ~bits : bits | sign;
        case RANKED: return ranks[word];
        default: return bits;
    }
}

/* The same order in 32 bits, for words that fit: those of unsigned columns may be negative as numbers,
 * which puts them last, as their 64 bits do. */
#define SIGN_32 ((uint64_t)1 << 31)
static inline uint32_t narrow_key(uint64_t key, int kind) { return (uint32_t)(kind == SIGNED ? key ^ SIGN_32 : key); }

static inline unsigned digit_of(const void *keys, int narrow, uint32_t row, int shift) {
    return (narrow ? ((const uint32_t *)keys)[row] : ((const uint64_t *)keys)[row]) >> shift & 0xFF;
}

/* A stable sort by one column: digit by digit, without digits that all keys share.  The keys have 64
 * bits, or 32 if `narrow`. */
static void sort_column(
    const void *keys, int narrow, uint32_t count, uint64_t varying, uint32_t **order, uint32_t **other) {
    for (int shift = 0; shift < (narrow ? 32 : 64); shift += 8) {
        if (!((varying >> shift) & 0xFF)) continue;
        uint32_t starts[257] = {0};
        for (uint32_t i = 0; i < count; i++) starts[digit_of(keys, narrow, i, shift) + 1]++;
        for (int digit = 0; digit < 256; digit++) starts[digit + 1] += starts[digit];
        for (uint32_t i = 0; i < count; i++) {
            uint32_t row = (*order)[i];
            (*other)[starts[digit_of(keys, narrow, row, shift)]++] = row;
        }
        uint32_t *sorted = *other;
        *other = *order;
        *order = sorted;
    }
}

int relation_order(const Relation *relation, const int *kinds, const uint32_t *ranks, uint32_t *order) {
    uint32_t count = relation->count;
    int narrow = relation->narrow; /* then the low half of a key tells its order, but for the sign */
    for (uint32_t column = 0; column < relation->width; column++)
        if (kinds[column] == FLOATING || kinds[column] == FLOATING_NAN_LAST) narrow = 0;
    void *keys = malloc(count ? count * (narrow ? sizeof(uint32_t) : sizeof(uint64_t)) : 1);
    uint32_t *spare = malloc(count ? count * sizeof *spare : 1);
    if (!keys || !spare) {
        free(keys);
        free(spare);
        return NO_MEMORY;
    }
    uint32_t *now = order, *other = spare;
    for (uint32_t row = 0; row < count; row++) order[row] = row;
    for (uint32_t column = relation->width; column-- > 0;) {
        uint64_t varying = 0, first = 0;
        for (uint32_t row = 0; row < count; row++) {
            uint64_t key = order_key(relation_word(relation, row, column), kinds[column], ranks);
            if (!row) first = key;
            varying |= key ^ first;
            if (narrow) ((uint32_t *)keys)[row] = narrow_key(key, kinds[column]);
            else ((uint64_t *)keys)[row] = key;
        }
        sort_column(keys, narrow, count, varying, &now, &other);
    }
    if (now != order) memcpy(order, now, count * sizeof *order);
    free(keys);
    free(spare);
    return DONE;
}
