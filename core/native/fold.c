#include "fold.h"

#include <stdlib.h>

#include "steps.h"

#define MOST_RESULTS (1u << 20) /* then all are forgotten */

Fold *fold_new(enum FoldKind kind, uint32_t outer) {
    Fold *fold = calloc(1, sizeof *fold);
    if (!fold) return NULL;
    fold->kind = kind;
    fold->known = relation_new(outer);
    if (fold->known) return fold;
    free(fold);
    return NULL;
}

void fold_free(Fold *fold) {
    if (!fold) return;
    relation_free(fold->known);
    free(fold->values);
    free(fold->results);
    free(fold->has_result);
    free(fold);
}

int fold_restart(Fold *fold) {
    if (!fold->known->count) return DONE;
    Relation *empty = relation_new(fold->known->width);
    if (!empty) return NO_MEMORY;
    relation_free(fold->known);
    fold->known = empty;
    return DONE;
}

uint32_t fold_known(const Fold *fold, const int64_t *outer, int64_t *word) {
    uint32_t row = relation_find(fold->known, outer);
    if (row == NO_ROW) return NO_ROW;
    *word = fold->results[row];
    return fold->has_result[row];
}

void fold_begin(Fold *fold) {
    fold->count = 0;
    fold->word = 0;
}

static int keep(Fold *fold, double value) {
    if (fold->count == fold->capacity) {
        uint64_t capacity = fold->capacity < 16 ? 16 : 2 * fold->capacity;
        double *values = realloc(fold->values, capacity * sizeof *values);
        if (!values) return NO_MEMORY;
        fold->values = values;
        fold->capacity = capacity;
    }
    fold->values[fold->count++] = value;
    return DONE;
}

/* Whether a value takes the place of the one that is kept.  NaN comes after all others. */
static int replaces(enum FoldKind kind, int64_t new, int64_t old) {
    double a, b;
    switch (kind) {
        case MIN: return new < old;
        case MAX: return new > old;
        case UNSIGNED_MIN: return (uint64_t)new < (uint64_t)old;
        case UNSIGNED_MAX: return (uint64_t)new > (uint64_t)old;
        default:
            a = as_float(new);
            b = as_float(old);
            if (kind == FLOAT_MIN) return a < b || (b != b && a == a);
            return a > b || (a != a && b == b);
    }
}

int fold_take(Fold *fold, int64_t word) {
    switch (fold->kind) {
        case COUNTED: break;
        case SUM: fold->word = (int64_t)((uint64_t)fold->word + (uint64_t)word); break;
        case NUMBERS: return keep(fold, (double)word);
        case UNSIGNED_NUMBERS: return keep(fold, (double)(uint64_t)word);
        case FLOATS:
        case KEPT: return keep(fold, as_float(word));
        case SYMBOL_MIN:
        case SYMBOL_MAX: fold->word = word; break; /* the caller has compared the texts */
        default:
            if (!fold->count || replaces(fold->kind, word, fold->word)) fold->word = word;
    }
    fold->count++;
    return DONE;
}

int fold_is_ordered_by_text(const Fold *fold) { return fold->kind == SYMBOL_MIN || fold->kind == SYMBOL_MAX; }

int fold_end(Fold *fold, const int64_t *outer, int has_result, int64_t word) {
    int status = fold->known->count >= MOST_RESULTS ? fold_restart(fold) : DONE;
    if (status == DONE && fold->known->count == fold->result_capacity) {
        uint32_t capacity = fold->result_capacity < 16 ? 16 : 2 * fold->result_capacity;
        int64_t *results = realloc(fold->results, capacity * sizeof *results);
        if (results) fold->results = results;
        uint8_t *has = realloc(fold->has_result, capacity);
        if (has) fold->has_result = has;
        if (!results || !has) return NO_MEMORY;
        fold->result_capacity = capacity;
    }
    if (status < 0) return status;
    uint32_t row = fold->known->count;
    status = relation_add(fold->known, outer);
    if (status < 0) return status;
    fold->results[row] = word;
    fold->has_result[row] = (uint8_t)has_result;
    return DONE;
}
