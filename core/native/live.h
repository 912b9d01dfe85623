/* Relations of a recursive unit that lives: for each row, when it came and what supports it.
 *
 * Each row of the unit's own relations has `seq`, the moment at which it came, and `count`, the
 * number of its derivations from rows of the unit that all came earlier.  Rows of other relations
 * count as earlier than any.  A row whose count is above 0 is well-founded, for `seq` orders all
 * derivations that are counted: nothing holds itself up.  No derivation is kept, and no edges.
 *
 * A turn has four parts (core/engine/keepers/recursive/ranked.py calls them):
 *   lose   derivations with a row that goes; a row whose count falls to 0 goes in the next round;
 *   ask    how many derivations the rows that went still have; those with some come back, later;
 *   gain   derivations with a row of another relation that came;
 *   gain   rounds from the rows that came.
 *
 * A derivation is found once in each part: the atom that reads the change Δ splits the others into
 * those before it and those after it, which see different states of the rows (`visible` in live.c).
 *
 * Invariants:
 *   L1  the count of a row that is HERE is that of its derivations from earlier rows, and 1 more if
 *       the row is a base fact, or MOST_DERIVATIONS if it was ever that large;
 *   L2  between two turns each row is HERE or GONE;
 *   L3  `notes` and `start` tell the state at the beginning of the turn.
 *
 * Rows that are GONE stay where they are, and come back to the same place.
 */
#ifndef EVERLOG_LIVE_H
#define EVERLOG_LIVE_H

#include "plan.h"

enum { USED_UP = -14, UNCOUNTABLE = -15 };

#define MOST_DERIVATIONS 0x7FFFFFFu
#define LAST_SEQ 0xFFFFFFF0u

enum State { GONE, HERE, CAME, GOING, DOOMED };

typedef struct {
    uint32_t seq;
    uint32_t count : 27;
    uint32_t noted : 1; /* its state at the beginning of the turn is in `notes` */
    uint32_t state : 4;
} Life;

typedef struct {
    uint32_t row;
    Life life;
} Note;

typedef struct {
    uint32_t *rows;
    uint32_t count, capacity;
} List;

/* What the relations of a unit have in common. */
typedef struct {
    uint32_t clock;   /* the next `seq` */
    uint32_t settled; /* rows of this moment and later ones are not asked for derivations yet */
    int together;     /* rows come at one moment: none of them is earlier than another */
    uint64_t work;    /* rows looked at, and derivations */
    uint64_t limit;   /* of work, in this turn */
} Unit;

typedef struct Live {
    Relation *relation;
    Unit *unit;
    int own; /* whether the unit derives it */
    Life *lives;
    uint32_t capacity;
    uint32_t living; /* rows that are HERE */
    uint32_t start;  /* rows at the beginning of the turn */
    uint32_t clock;  /* of the unit, at the beginning of the turn */
    Note *notes;
    uint32_t note_count, note_capacity;
    List plus, minus; /* rows that came, and that go, and were not followed yet */
    List delta;       /* those that are followed in this round */
    List dead;        /* own rows that went */
} Live;

/* PROVE: the first derivation of a row from earlier ones; COUNT: how many there are. */
enum Mode { LOSE, GAIN, ASK, PROVE, COUNT };

Live *live_new(Relation *relation, Unit *unit, int own);
void live_free(Live *live);

/* Begin a turn: the state of now is what `live_roll_back` restores. */
void live_begin(Live *live);
void live_roll_back(Live *live);

/* Add a row that is HERE, without a turn; of the unit's own with its `seq` and `count`. */
int live_set(Live *live, const int64_t *words, uint32_t seq, uint32_t count);

/* Let all rows of the relation be there, which has had none before: row by row, `seq` and count. */
int live_fill(Live *live, const int64_t *seqs, const int64_t *counts);

/* A row of another relation comes or goes. */
int live_came(Live *live, const int64_t *words);
int live_went(Live *live, const int64_t *words);
/* The rows that came are HERE, and those that went are GONE, for all. */
void live_settle(Live *live);

/* One derivation more or less of a row of the unit. */
int live_support(Live *live, const int64_t *words);
int live_withdraw(Live *live, const int64_t *words);

/* The same of a derivation whose latest row of the unit is of the moment `newest`.  `row` is the number
 * of the row; NO_ROW if it was not found. */
int live_supported(Live *live, const int64_t *words, uint32_t row, uint32_t newest);
int live_withdrawn(Live *live, uint32_t row, uint32_t newest);

/* A round of losses: the rows to follow are in `delta`; afterwards they are GONE. */
void live_doom(Live *live);
int live_bury(Live *live);
/* A round of gains: the rows to follow are in `delta`. */
void live_take(Live *live);

/* Of the rows that went, forget those that came back. */
void live_miss(Live *live);
/* The rows that went come back if they have derivations, `counts` of them. */
int live_revive(Live *live, const uint32_t *counts);

/* All rows are GONE: the unit is computed anew. */
int live_clear(Live *live);

/* Run a plan: on the rows of a list as Δ, or on everything without one.  `inner`: Δ is of the unit.
 * ASK and COUNT add to `counts`, which has a number for each row of the list. */
int live_run(Plan *plan, Unit *unit, const Live *source, const List *rows, enum Mode mode, int inner, uint32_t *counts);

/* Whether a row is there. */
int live_has(const Live *live, const int64_t *words);
uint64_t live_bytes(const Live *live);

#endif
