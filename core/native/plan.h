/* One version of a rule as operations over registers, and the loop that runs them.
 *
 * Operations run depth first.  A loop (SCAN, PROBE) writes the columns of its next row to registers
 * and goes on; a test that fails, and the ADD at the end, return to the nearest loop.  Operands are
 * always registers: constants are written to registers of their own before the first run.
 *
 * FOLD is a loop that is entered twice: its body returns to it when it has found everything, and it
 * goes on behind the body, once.
 *
 * Nothing here calls Python, except through `call` and `check`, which take its lock themselves.
 */
#ifndef EVERLOG_PLAN_H
#define EVERLOG_PLAN_H

#include "fold.h"
#include "relation.h"
#include "shared.h"

#define CHECK_EVERY 16384 /* rows between two looks at signals and limits */

enum Version { ALL, OLD, DELTA };

enum Code {
    SCAN, PROBE, RANGE,             /* loops */
    FOLD,                           /* the operations up to `skip` compute the value of an aggregate */
    EXISTS, ABSENT,                 /* some row has the key, or none */
    FOUND, MISSING,                 /* the whole row is there, or not */
    FILLED, EMPTY,                  /* there is any row, or none */
    UNKNOWN,                        /* the row is not there, not even since the round began */
    EQUAL, DIFFERENT, LESS, LESS_EQUAL, UNSIGNED_LESS, UNSIGNED_LESS_EQUAL,
    FLOAT_DIFFERENT, FLOAT_LESS, FLOAT_LESS_EQUAL,
    WITHIN,                         /* a value is one of a range */
    CALL_TEST,                      /* a comparison that Python answers */
    MOVE, PLUS, MINUS, TIMES, NEGATE,
    DIVIDE, UNSIGNED_DIVIDE, MODULO, UNSIGNED_MODULO,
    BIT_AND, BIT_OR, BIT_XOR, BIT_NOT, SHIFT_LEFT, SHIFT_RIGHT, UNSIGNED_SHIFT_RIGHT,
    BOTH, EITHER, ONE_OF, NEITHER,  /* logical and, or, exclusive or, not */
    LEAST, GREATEST, UNSIGNED_LEAST, UNSIGNED_GREATEST, FLOAT_LEAST, FLOAT_GREATEST,
    FLOAT_PLUS, FLOAT_MINUS, FLOAT_TIMES, FLOAT_DIVIDE, FLOAT_NEGATE,
    TO_FLOAT, UNSIGNED_TO_FLOAT, TRUNCATE, UNSIGNED_TRUNCATE,
    CALL,                           /* a functor that Python computes */
    COLLECT,                        /* the end of an aggregate's body: take in a value */
    ADD
};

typedef struct {
    enum Code code;
    enum Version version;
    int back; /* the loop to return to, or -1 */
    Relation *relation;
    const Index *index;
    uint32_t *from; /* registers that are read: of a key, a row, or operands */
    uint32_t from_count;
    uint32_t *columns, *to; /* columns that a loop writes, and to which registers */
    uint32_t to_count;
    int64_t *words; /* room for the words of `from` */
    const uint32_t *rows; /* PROBE: the next row, and where to stop */
    uint64_t row, end;    /* SCAN, RANGE: the same */
    int64_t step;         /* RANGE */
    int is_unsigned;      /* RANGE, WITHIN */
    Fold *fold;           /* FOLD, and its COLLECT */
    int skip;             /* FOLD: the operation after its body */
    int is_total;         /* FOLD: it has a value over nothing, too */
    uint64_t first;       /* SCAN, PROBE, RANGE: the first row */
    uint64_t tried;       /* the same: the rows of loops that have ended; see `op_tried` */
    uint64_t entered;     /* of an operation that reads a relation or collects: how often it began */
    uint32_t mask, bound; /* of a living relation: the states and moments of rows that it sees, */
    int is_relative;      /* and whether the bound is behind the moment of Δ */
} Op;

/* How often an operation began, and the rows that it has tried if it is a loop. */
typedef struct {
    uint64_t entered, tried;
} Counts;

typedef struct Plan Plan;
typedef struct Stage Stage;
/* 1 or 0: the answer of a test; STOPPED: an exception was raised; UNDEFINED: there is no value. */
typedef int (*Call)(void *context, int op, int64_t *registers);
typedef int (*Check)(void *context, Plan *running); /* the plan, or a clone of it */
/* Wait, with all others, until there is room for more rows: for this thread or for another one.  DONE or
 * a failure. */
typedef int (*Wait)(void *thread, int needs_room);

struct Plan {
    Batch batch; /* derived rows that wait to be added */
    Op *ops;
    int count;
    int64_t *registers;
    uint32_t register_count;
    uint32_t spare;       /* registers at the end that no operation knows: see live_run.c */
    int keeps;            /* all registers keep their values until the end */
    Plan *shared;         /* of a clone: the plan whose operations it runs */
    Counts *counts;       /* of a clone: what it has counted since it told that plan */
    Shared *out;          /* of a clone: the relation of the head, to which others add as well */
    Share share;          /* the same: row numbers of its own */
    Wait wait;
    void *thread;
    Stage **stages;       /* of the loops, in a plan that runs in blocks: see block.c */
    int64_t *keys;        /* room for the keys of a block */
    int countdown;        /* rows until the next look at signals and limits */
    uint64_t derivations; /* how often a fact was derived, new or known */
    Call call;
    Check check;
    void *context;
};

Plan *plan_new(int ops, uint32_t registers);
void plan_free(Plan *plan);

/* The rows that a loop has tried so far; and those that all loops have. */
uint64_t op_tried(const Op *op);
uint64_t plan_rows(const Plan *plan);

/* Room in an operation for its operands and targets.  DONE or NO_MEMORY. */
int op_reserve(Op *op, uint32_t from_count, uint32_t to_count);

/* Derive everything once; DONE or a failure.  `again`: results of aggregates are still good. */
int plan_run(Plan *plan);
int plan_run_again(Plan *plan);

/* Whether a plan can run in blocks: every loop hands over BLOCK rows at a time to what follows, so that
 * look-ups wait for memory together.  Then: derive everything from rows [row, end) of its first loop. */
int plan_has_blocks(const Plan *plan);
int plan_run_blocks(Plan *plan, uint64_t row, uint64_t end);
void plan_free_stages(Plan *plan);

/* A plan for another thread: it runs the same operations in blocks. */
Plan *plan_clone(Plan *plan, Shared *out);
int plan_flush(Plan *plan);

/* Add what a clone has counted to its plan: one thread at a time. */
void plan_tell(Plan *clone);

#endif
