/* Rows that several threads add to one relation.
 *
 * While it is shared, the relation has room for `limit` rows, and neither its rows nor its slots move.
 * A thread takes a few row numbers at a time, writes a row under its next number, and publishes it by
 * putting the number into an empty slot.  If another thread was faster with the same row, the number
 * is used for the next row.  Where room runs out, all threads wait (see threads.pxi), and one makes
 * more of it.
 *
 * Invariant: when no thread adds, the rows are [0, count) again: rows from the end fill the gaps that
 * numbers leave which were taken and not used.
 */
#ifndef EVERLOG_SHARED_H
#define EVERLOG_SHARED_H

#include "relation.h"

enum { NO_ROOM = -10 };
#define AT_ONCE 128 /* row numbers that a thread takes */

/* The row numbers [next, end) are a thread's own. */
typedef struct {
    uint32_t next, end;
} Share;

typedef struct {
    Relation *relation;
    uint32_t taken;  /* row numbers below are assigned to threads, or would be if there were room */
    uint32_t limit;
    uint32_t wanted; /* not 0: there is no room, and threads must wait for more */
    uint32_t wide;   /* not 0: a row needs 64 bits */
} Shared;

/* Let `threads` threads add rows to a relation; DONE or a failure. */
int shared_begin(Shared *shared, Relation *relation, uint32_t threads);

/* ADDED, KNOWN, or NO_ROOM. */
int shared_add(Shared *shared, Share *share, const int64_t *row, uint64_t hash);

/* While no thread adds: make more room; or end. */
int shared_grow(Shared *shared, Share **shares, uint32_t threads);
void shared_settle(Shared *shared, Share **shares, uint32_t threads);

#endif
