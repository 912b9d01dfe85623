/* Columns of words, in and out of a relation, and the order in which they go out. */
#ifndef EVERLOG_COLUMNS_H
#define EVERLOG_COLUMNS_H

#include "relation.h"

/* The words of a column, one for each row.  Those of floats may be any bits. */
typedef struct {
    const char *bytes; /* eight for each word, at any address */
    int is_float;
} Column;

/* Add rows [row, end) of the columns; some wait in the batch afterwards.  DONE or a failure. */
int relation_add_columns(Relation *relation, Batch *batch, const Column *columns, uint64_t row, uint64_t end);

/* The words of a column for the rows of an order. */
void relation_column(const Relation *relation, uint32_t column, const uint32_t *order, uint64_t count, int64_t *words);

/* Row numbers in ascending order of their rows, into `order`.  `kinds` has the order of each column;
 * the words of a RANKED column are compared by their `ranks`.  NaN comes first, or last. */
enum Order { SIGNED, UNSIGNED, FLOATING, RANKED, FLOATING_NAN_LAST };
int relation_order(const Relation *relation, const int *kinds, const uint32_t *ranks, uint32_t *order);

#endif
