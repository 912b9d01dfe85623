#include "live.h"

#include <stdlib.h>
#include <string.h>

/* ── lists and lives ──────────────────────────────────────────────────────────────────────── */

static int push(List *list, uint32_t row) {
    if (list->count == list->capacity) {
        uint64_t capacity = list->capacity < 16 ? 16 : 2 * (uint64_t)list->capacity;
        uint32_t *rows = realloc(list->rows, capacity * sizeof *rows);
        if (!rows) return NO_MEMORY;
        list->rows = rows;
        list->capacity = (uint32_t)capacity;
    }
    list->rows[list->count++] = row;
    return DONE;
}

Live *live_new(Relation *relation, Unit *unit, int own) {
    Live *live = calloc(1, sizeof *live);
    if (!live) return NULL;
    live->relation = relation;
    live->unit = unit;
    live->own = own;
    relation->live = live;
    return live;
}

void live_free(Live *live) {
    if (!live) return;
    free(live->lives);
    free(live->notes);
    free(live->plus.rows);
    free(live->minus.rows);
    free(live->delta.rows);
    free(live->dead.rows);
    free(live);
}

/* Lives for all rows; new ones are GONE. */
static int make_room(Live *live, uint32_t rows) {
    if (rows <= live->capacity) return DONE;
    uint64_t capacity = live->capacity < 8 ? 8 : live->capacity + (uint64_t)live->capacity / 2;
    if (capacity < rows) capacity = rows;
    Life *lives = realloc(live->lives, capacity * sizeof *lives);
    if (!lives) return NO_MEMORY;
    memset(lives + live->capacity, 0, (capacity - live->capacity) * sizeof *lives);
    live->lives = lives;
    live->capacity = (uint32_t)capacity;
    return DONE;
}

/* Remember how a row was at the beginning of the turn; rows that came since were GONE. */
static int note(Live *live, uint32_t row) {
    Life *life = &live->lives[row];
    if (life->noted || row >= live->start) return DONE;
    if (live->note_count == live->note_capacity) {
        uint64_t capacity = live->note_capacity < 16 ? 16 : 2 * (uint64_t)live->note_capacity;
        Note *notes = realloc(live->notes, capacity * sizeof *notes);
        if (!notes) return NO_MEMORY;
        live->notes = notes;
        live->note_capacity = (uint32_t)capacity;
    }
    live->notes[live->note_count++] = (Note){row, *life};
    life->noted = 1;
    return DONE;
}

static void forget_lists(Live *live) {
    live->plus.count = live->minus.count = live->delta.count = live->dead.count = 0;
}

void live_begin(Live *live) {
    for (uint32_t i = 0; i < live->note_count; i++) live->lives[live->notes[i].row].noted = 0;
    live->note_count = 0;
    if (live->note_capacity > 4096) {
        free(live->notes);
        live->notes = NULL;
        live->note_capacity = 0;
    }
    forget_lists(live);
    live->start = live->relation->count;
    live->clock = live->unit->clock;
}

void live_roll_back(Live *live) {
    uint32_t end = live->relation->count < live->capacity ? live->relation->count : live->capacity;
    for (uint32_t row = live->start; row < end; row++) {
        if (live->lives[row].state == HERE) live->living--;
        live->lives[row] = (Life){0, 0, 0, GONE};
    }
    while (live->note_count) {
        Note *one = &live->notes[--live->note_count];
        live->living += (one->life.state == HERE) - (live->lives[one->row].state == HERE);
        live->lives[one->row] = one->life;
    }
    live->unit->clock = live->clock;
    forget_lists(live);
}

/* The number of a row, which is added if need be. */
static int number_of(Live *live, const int64_t *words, uint32_t *row) {
    int status = make_room(live, live->relation->count + 1);
    if (status == DONE) status = relation_put(live->relation, words, relation_hash(live->relation, words), row);
    return status < 0 ? status : DONE;
}

int live_has(const Live *live, const int64_t *words) {
    uint32_t row = relation_find(live->relation, words);
    return row != NO_ROW && row < live->capacity && live->lives[row].state == HERE;
}

uint64_t live_bytes(const Live *live) {
    return sizeof *live + relation_bytes(live->relation) + live->capacity * sizeof(Life) +
           live->note_capacity * sizeof(Note) +
           ((uint64_t)live->plus.capacity + live->minus.capacity + live->delta.capacity + live->dead.capacity) *
               sizeof(uint32_t);
}

/* ── rows of other relations ──────────────────────────────────────────────────────────────── */

int live_set(Live *live, const int64_t *words, uint32_t seq, uint32_t count) {
    uint32_t row;
    if (live->own && (!seq || seq >= LAST_SEQ || !count)) return UNCOUNTABLE;
    int status = number_of(live, words, &row);
    if (status < 0) return status;
    Life *life = &live->lives[row];
    status = note(live, row);
    if (status < 0) return status;
    live->living += life->state != HERE;
    life->seq = seq;
    life->count = count < MOST_DERIVATIONS ? count : MOST_DERIVATIONS;
    life->state = HERE;
    if (seq >= live->unit->clock) live->unit->clock = seq + 1;
    return DONE;
}

int live_fill(Live *live, const int64_t *seqs, const int64_t *counts) {
    uint32_t rows = live->relation->count;
    int status = make_room(live, rows);
    if (status < 0) return status;
    for (uint32_t row = 0; row < rows; row++) {
        if (seqs[row] < 1 || seqs[row] >= LAST_SEQ || counts[row] < 1) return UNCOUNTABLE;
        uint32_t count = counts[row] < MOST_DERIVATIONS ? (uint32_t)counts[row] : MOST_DERIVATIONS;
        live->lives[row] = (Life){(uint32_t)seqs[row], count, 0, HERE};
        if (seqs[row] >= live->unit->clock) live->unit->clock = (uint32_t)seqs[row] + 1;
    }
    live->living = rows;
    return DONE;
}

int live_came(Live *live, const int64_t *words) {
    uint32_t row;
    int status = number_of(live, words, &row);
    if (status < 0) return status;
    if (live->lives[row].state == HERE) return DONE;
    status = note(live, row);
    if (status < 0) return status;
    live->lives[row].state = CAME;
    return push(&live->plus, row);
}

int live_went(Live *live, const int64_t *words) {
    uint32_t row = relation_find(live->relation, words);
    if (row == NO_ROW || live->lives[row].state != HERE) return DONE;
    int status = note(live, row);
    if (status < 0) return status;
    live->living--;
    live->lives[row].state = GOING;
    return push(&live->minus, row);
}

void live_settle(Live *live) {
    for (uint32_t i = 0; i < live->minus.count; i++) live->lives[live->minus.rows[i]].state = GONE;
    for (uint32_t i = 0; i < live->plus.count; i++) live->lives[live->plus.rows[i]].state = HERE;
    live->living += live->plus.count;
    live->plus.count = live->minus.count = 0;
}

/* ── rows of the unit ─────────────────────────────────────────────────────────────────────── */

/* A row comes that was not there. */
static int come(Live *live, uint32_t row, uint32_t count) {
    Unit *unit = live->unit;
    Life *life = &live->lives[row];
    if (unit->clock >= LAST_SEQ) return UNCOUNTABLE;
    life->seq = unit->clock;
    life->count = count;
    life->state = HERE;
    live->living++;
    unit->clock += !unit->together;
    return push(&live->plus, row);
}

int live_supported(Live *live, const int64_t *words, uint32_t row, uint32_t newest) {
    int status = DONE;
    if (row == NO_ROW) status = number_of(live, words, &row);
    if (status < 0) return status;
    Life *life = &live->lives[row];
    if (life->state == HERE && newest >= life->seq) return DONE;
    status = note(live, row);
    if (status < 0) return status;
    if (life->state == HERE) {
        if (life->count < MOST_DERIVATIONS) life->count++;
        return DONE;
    }
    return come(live, row, 1);
}

int live_withdrawn(Live *live, uint32_t row, uint32_t newest) {
    if (row == NO_ROW) return DONE;
    Life *life = &live->lives[row];
    if (life->state != HERE || newest >= life->seq) return DONE;
    if (life->count == MOST_DERIVATIONS) return UNCOUNTABLE;
    int status = note(live, row);
    if (status < 0) return status;
    if (--life->count) return DONE;
    life->state = DOOMED;
    live->living--;
    return push(&live->minus, row);
}

int live_support(Live *live, const int64_t *words) {
    return live_supported(live, words, NO_ROW, 0);
}

int live_withdraw(Live *live, const int64_t *words) {
    return live_withdrawn(live, relation_find(live->relation, words), 0);
}

static void swap_lists(List *one, List *other) {
    List kept = *one;
    *one = *other;
    *other = kept;
    other->count = 0;
}

void live_doom(Live *live) {
    swap_lists(&live->delta, &live->minus);
    for (uint32_t i = 0; i < live->delta.count; i++) live->lives[live->delta.rows[i]].state = GOING;
}

int live_bury(Live *live) {
    for (uint32_t i = 0; i < live->delta.count; i++) {
        uint32_t row = live->delta.rows[i];
        live->lives[row].state = GONE;
        int status = push(&live->dead, row);
        if (status < 0) return status;
    }
    live->delta.count = 0;
    return DONE;
}

void live_take(Live *live) { swap_lists(&live->delta, &live->plus); }

void live_miss(Live *live) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < live->dead.count; i++)
        if (live->lives[live->dead.rows[i]].state != HERE) live->dead.rows[kept++] = live->dead.rows[i];
    live->dead.count = kept;
}

int live_revive(Live *live, const uint32_t *counts) {
    for (uint32_t i = 0; i < live->dead.count; i++) {
        int status = counts[i] ? come(live, live->dead.rows[i], counts[i]) : DONE;
        if (status < 0) return status;
    }
    live_miss(live);
    return DONE;
}

int live_clear(Live *live) {
    for (uint32_t row = 0; row < live->relation->count && row < live->capacity; row++) {
        int status = note(live, row);
        if (status < 0) return status;
        live->lives[row].state = GONE;
        live->lives[row].count = 0;
    }
    live->living = 0;
    forget_lists(live);
    return DONE;
}
