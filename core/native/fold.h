/* What an aggregate takes in, and its results so far, one for each value of its outer variables. */
#ifndef EVERLOG_FOLD_H
#define EVERLOG_FOLD_H

#include "relation.h"

enum FoldKind {
    COUNTED, SUM,
    MIN, MAX, UNSIGNED_MIN, UNSIGNED_MAX, FLOAT_MIN, FLOAT_MAX, SYMBOL_MIN, SYMBOL_MAX,
    NUMBERS, UNSIGNED_NUMBERS, FLOATS, /* values that are kept, since their sum is rounded once */
    KEPT /* words that are kept, for a function of the user */
};

typedef struct {
    enum FoldKind kind;
    uint64_t count;  /* values so far */
    int64_t word;    /* their sum, the least, the greatest */
    double *values;  /* those that are kept; of KEPT the bits are words */
    uint64_t capacity;
    Relation *known; /* outer values with a result; row n has results[n] */
    int64_t *results;
    uint8_t *has_result;
    uint32_t result_capacity;
} Fold;

Fold *fold_new(enum FoldKind kind, uint32_t outer);
void fold_free(Fold *fold);

/* Forget all results. */
int fold_restart(Fold *fold);

/* 1: there is a result, now in `word`; 0: there is none for these values; NO_ROW: not computed yet. */
uint32_t fold_known(const Fold *fold, const int64_t *outer, int64_t *word);

/* Take in one value.  Of symbols, the caller gives only those that replace the one that is kept. */
void fold_begin(Fold *fold);
int fold_take(Fold *fold, int64_t word);
int fold_is_ordered_by_text(const Fold *fold);

/* Remember the result; DONE or a failure. */
int fold_end(Fold *fold, const int64_t *outer, int has_result, int64_t word);

#endif
