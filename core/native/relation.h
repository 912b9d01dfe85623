/* Relations of the compiled machine: rows of words, a hash set over them, indexes.
 *
 * A row is `width` words of 64 bits.  Rows are stored in order of arrival and are never removed, so
 * a version of a relation is a range of row numbers: old is [0, lo), the change is [lo, hi), all is
 * [0, hi).  Rows from `hi` on were derived in the present round, and nobody reads them before
 * `relation_advance`.
 *
 * Invariants, checked by `relation_check`:
 *   R1  no two rows are equal, and the hash set, unless it is sealed, finds each row under its number;
 *   R2  while `narrow`, every word is stored in 32 bits; the first word that does not fit widens all;
 *   R3  an index holds the rows [0, covered), each in the group of its key, in ascending order.
 *
 * Every function that allocates returns a status; after a failure the relation can still be freed.
 */
#ifndef EVERLOG_RELATION_H
#define EVERLOG_RELATION_H

#include <stddef.h>
#include <stdint.h>

enum Status { KNOWN = 0, ADDED = 1, DONE = 0, NO_MEMORY = -1, TOO_MANY_ROWS = -2, STOPPED = -3, UNDEFINED = -4 };

#define MOST_ROWS 0x7FFFFFFFu /* a slot of the hash set has 32 bits */
#define SIZES 32

typedef struct {
    uint32_t first; /* a row with this key; the only one if count is 1 */
    uint32_t count;
    uint64_t at; /* where the row numbers are, if count is above 1 */
} Group;

typedef struct {
    uint32_t *slots; /* see `slot_of` in relation.c; a number is that of a row or of a group */
    int bits;        /* there are 2^bits slots */
} Hash;

typedef struct Relation Relation;

typedef struct {
    const Relation *relation;
    uint32_t *columns; /* the columns of the key */
    uint32_t width;
    uint32_t covered; /* rows [0, covered) are in the index */
    Hash hash;
    Group *groups;
    uint32_t group_count, group_capacity;
    uint32_t *rows; /* the row numbers of groups, one after the other */
    uint64_t used, capacity;
    uint64_t packed;      /* groups that begin below have no room to grow */
    uint64_t free[SIZES]; /* lists of abandoned places of 2^n numbers; UINT64_MAX ends a list */
} Index;

struct Relation {
    uint32_t width;
    int narrow;
    uint32_t count, capacity;
    uint32_t lo, hi;
    void *words;
    Hash hash;
    Index **indexes;
    uint32_t index_count;
    struct Live *live; /* of a unit that is maintained: see live.h */
    struct Best *best; /* of the keys of a map, to which rules offer (key…, value): see best.h */
};

Relation *relation_new(uint32_t width);
void relation_free(Relation *relation);

/* Exchange the rows of two relations of one width that have no indexes. */
void relation_swap(Relation *one, Relation *other);

/* Free what only look-ups need, the hash set and the indexes.  Until `relation_open`, nothing is
 * added to the relation or looked up in it.  DONE or a failure. */
void relation_seal(Relation *relation);
int relation_open(Relation *relation);

/* Room for so many rows, in their array and in the hash set; words of 64 bits.  DONE or a failure. */
int relation_reserve(Relation *relation, uint32_t rows);
int relation_widen(Relation *relation);

/* ADDED, KNOWN, or a failure. */
int relation_add(Relation *relation, const int64_t *row);

/* The same with the hash of the row; `number` gets the row's number. */
int relation_put(Relation *relation, const int64_t *row, uint64_t hash, uint32_t *number);

/* Rows that wait to be added.  Most of the time of an addition is spent waiting for memory: the
 * slots and rows of a batch are prefetched first, and read when they have arrived. */
#define BATCH 32
typedef struct {
    int64_t *rows; /* BATCH of them */
    uint64_t hashes[BATCH];
    int count;
} Batch;

/* After a row was written at the end of the batch, `batch_take` returns whether the batch is full,
 * and `batch_put` adds its rows if it is: DONE or a failure. */
int batch_take(Batch *batch, const Relation *relation);
int batch_put(Batch *batch, Relation *relation);
int batch_flush(Batch *batch, Relation *relation);

#if defined(__GNUC__) || defined(__clang__)
#define PREFETCH(address) __builtin_prefetch(address)
#else
#define PREFETCH(address) ((void)(address))
#endif

/* The number of a row, or NO_ROW. */
#define NO_ROW UINT32_MAX
uint32_t relation_find(const Relation *relation, const int64_t *row);

/* The hash of a row, and a request for the memory that a look-up of it needs. */
uint64_t relation_hash(const Relation *relation, const int64_t *row);
void relation_fetch_row(const Relation *relation, uint64_t hash);

/* Look for the rows with one of a few keys, in every `step`-th row.  `keys` has a row for each; `counts`
 * gets how often each was found, `found` the numbers of the first `most` rows of each. */
void relation_search(
    const Relation *relation, const uint32_t *columns, const Relation *keys, uint32_t step, uint32_t most,
    uint32_t *counts, uint32_t *found);

/* Begin the next round: what was added since the last one is the change. */
int relation_advance(Relation *relation);

/* The index on some columns, in ascending order, over all rows below `hi`; NULL without memory. */
Index *relation_index(Relation *relation, const uint32_t *columns, uint32_t width);

/* An index over all rows below `hi`; NULL without memory.  It is extended with rows of higher numbers. */
Index *index_new(const Relation *relation, const uint32_t *columns, uint32_t width);
void index_free(Index *index);
int index_extend(Index *index, uint32_t until);
uint64_t index_bytes(const Index *index);
int index_is_right(const Index *index); /* R3 */

/* The rows with this key, in ascending order; 0 if there are none. */
uint32_t index_find(const Index *index, const int64_t *key, const uint32_t **rows);

/* The same for up to BLOCK keys: the memory for all of them is prefetched before any is read. */
#define BLOCK 128
void relation_find_many(const Relation *relation, const int64_t *rows, uint32_t count, uint32_t *found);
void index_find_many(
    const Index *index, const int64_t *keys, uint32_t count, const uint32_t **rows, uint32_t *counts);

/* Bytes that a relation and its indexes hold. */
uint64_t relation_bytes(const Relation *relation);

/* The number of the first broken invariant, or 0. */
int relation_check(const Relation *relation);

static inline int64_t relation_word(const Relation *relation, uint64_t row, uint32_t column) {
    uint64_t at = row * relation->width + column;
    return relation->narrow ? ((const int32_t *)relation->words)[at] : ((const int64_t *)relation->words)[at];
}

#endif
