#include "live.h"

#include <stdlib.h>
#include <string.h>

#include "steps.h"

#define BIT(state) (1u << (state))

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
static int number_of(Live *live, const int64_t *words, uint64_t hash, uint32_t *row) {
    *row = relation_find_hashed(live->relation, words, hash);
    if (*row != NO_ROW) return DONE;
    int status = make_room(live, live->relation->count + 1);
    if (status == DONE) status = relation_add_hashed(live->relation, words, hash);
    if (status < 0) return status;
    *row = live->relation->count - 1;
    return DONE;
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
    int status = number_of(live, words, relation_hash(live->relation, words), &row);
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
    int status = number_of(live, words, relation_hash(live->relation, words), &row);
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

/* `row` is the number of the row, or NO_ROW if it was not found before. */
static int supported(Live *live, const int64_t *words, uint64_t hash, uint32_t row, uint32_t newest) {
    int status = DONE;
    if (row == NO_ROW) status = number_of(live, words, hash, &row);
    if (status < 0) return status;
    Life *life = &live->lives[row];
    if (life->state == HERE && newest >= life->seq) return DONE;
    status = note(live, row);
    if (status < 0) return status;
    if (life->state == HERE) {
        if (life->count < MOST_DERIVATIONS) life->count++;
        return DONE;
    }
    if (live->unit->clock >= LAST_SEQ) return UNCOUNTABLE;
    life->seq = live->unit->clock++;
    life->count = 1;
    life->state = HERE;
    live->living++;
    return push(&live->plus, row);
}

static int withdrawn(Live *live, uint32_t row, uint32_t newest) {
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
    return supported(live, words, relation_hash(live->relation, words), NO_ROW, 0);
}

int live_withdraw(Live *live, const int64_t *words) {
    return withdrawn(live, relation_find(live->relation, words), 0);
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

int live_revive(Live *live, const uint32_t *counts) {
    for (uint32_t i = 0; i < live->dead.count; i++) {
        if (!counts[i]) continue;
        uint32_t row = live->dead.rows[i];
        Life *life = &live->lives[row];
        if (life->state != HERE) {
            if (live->unit->clock >= LAST_SEQ) return UNCOUNTABLE;
            life->seq = live->unit->clock++;
            life->state = HERE;
            live->living++;
            int status = push(&live->plus, row);
            if (status < 0) return status;
        }
        life->count = counts[i] < MOST_DERIVATIONS ? counts[i] : MOST_DERIVATIONS;
    }
    live->dead.count = 0;
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

/* ── what a plan sees ─────────────────────────────────────────────────────────────────────── */

static inline int is_negated(const Op *op) { return op->code == ABSENT || op->code == MISSING || op->code == EMPTY; }

/* The states that an operation sees.  `before`: it stands before Δ in the body of the rule.  Losses
 * lead from the state before the turn to one without what went, gains from there to the new one; a
 * negated atom sees as there what may block it. */
static uint32_t visible(const Op *op, enum Mode mode, int inner) {
    int before = op->version == OLD;
    const Live *live = op->relation->live;
    if (live->own) {
        if (mode != LOSE) return BIT(HERE);
        return BIT(HERE) | BIT(DOOMED) | (inner && !before ? BIT(GOING) : 0);
    }
    if (mode == LOSE) {
        if (is_negated(op)) return BIT(HERE) | BIT(GOING) | (inner || before ? BIT(CAME) : 0);
        return BIT(HERE) | (inner || before ? 0 : BIT(GOING));
    }
    if (mode == GAIN && !inner) {
        if (is_negated(op)) return BIT(HERE) | BIT(CAME) | (before ? 0 : BIT(GOING));
        return BIT(HERE) | (before ? BIT(CAME) : 0);
    }
    return BIT(HERE);
}

static inline int sees(const Op *op, uint32_t row) {
    const Live *live = op->relation->live;
    if (row >= live->capacity) return 0;
    const Life *life = &live->lives[row];
    return (op->mask >> life->state & 1) && life->seq < op->bound;
}

static inline uint32_t seq_of(const Op *op, uint32_t row) {
    const Live *live = op->relation->live;
    return live->own ? live->lives[row].seq : 0;
}

/* ── the loop ─────────────────────────────────────────────────────────────────────────────── */

typedef struct {
    Plan *plan;
    Unit *unit;
    enum Mode mode;
    uint32_t *newest; /* by operation: the latest `seq` of the rows before it */
    uint32_t pending[BATCH];
    uint64_t found; /* derivations from the present row of Δ */
    uint64_t look_at; /* the work at which to look at signals and limits */
} Run;

static int flush(Run *run) {
    Batch *batch = &run->plan->batch;
    Live *live = run->plan->ops[run->plan->count - 1].relation->live;
    int count = batch->count, status = DONE;
    batch->count = 0;
    for (int i = 0; i < count; i++) relation_fetch_row(live->relation, batch->hashes[i]);
    uint32_t rows[BATCH];
    for (int i = 0; i < count; i++) {
        const int64_t *words = batch->rows + (size_t)i * live->relation->width;
        rows[i] = relation_find_hashed(live->relation, words, batch->hashes[i]);
        if (rows[i] != NO_ROW) PREFETCH(&live->lives[rows[i]]);
    }
    for (int i = 0; i < count && status >= 0; i++) {
        const int64_t *words = batch->rows + (size_t)i * live->relation->width;
        if (run->mode == GAIN) status = supported(live, words, batch->hashes[i], rows[i], run->pending[i]);
        else status = withdrawn(live, rows[i], run->pending[i]);
    }
    return status < 0 ? status : DONE;
}

static int derived(Run *run, const Op *op, uint32_t newest) {
    Batch *batch = &run->plan->batch;
    run->plan->derivations++;
    run->unit->work++;
    run->found++;
    if (run->mode >= ASK) return DONE;
    int64_t *row = batch->rows + (size_t)batch->count * op->from_count;
    for (uint32_t i = 0; i < op->from_count; i++) row[i] = run->plan->registers[op->from[i]];
    batch->hashes[batch->count] = relation_hash(op->relation, row);
    relation_fetch_slot(op->relation, batch->hashes[batch->count]);
    run->pending[batch->count] = newest;
    return ++batch->count == BATCH ? flush(run) : DONE;
}

/* The next row of a loop that it sees; 0 if there is none. */
static inline int next_row(Run *run, int at) {
    Op *op = &run->plan->ops[at];
    const Live *live = op->relation->live;
    const Life *lives = live->lives;
    const uint32_t *rows = op->code == SCAN ? NULL : op->rows;
    uint64_t first = op->row, next = first, end = op->end;
    size_t size = (size_t)op->relation->width * (op->relation->narrow ? 4 : 8);
    uint32_t mask = op->mask, bound = op->bound;
    while (next < end) {
        uint32_t row = rows ? rows[next] : (uint32_t)next;
        next++;
        if (rows && next + AHEAD < end) {
            PREFETCH(&lives[rows[next + AHEAD]]);
            PREFETCH((const char *)op->relation->words + rows[next + AHEAD] * size);
        }
        Life life = lives[row];
        if (!(mask >> life.state & 1) || life.seq >= bound) continue;
        spread(op, row, run->plan->registers);
        uint32_t newest = run->newest[at];
        run->newest[at + 1] = live->own && life.seq > newest ? life.seq : newest;
        run->unit->work += next - first;
        op->row = next;
        return 1;
    }
    run->unit->work += next - first;
    op->row = next;
    return 0;
}

/* The first row that a test sees, or NO_ROW. */
static uint32_t seen(Run *run, const Op *op) {
    const uint32_t *rows;
    uint32_t row;
    gather(op, run->plan->registers);
    if (op->code == FOUND || op->code == MISSING) {
        row = relation_find(op->relation, op->words);
        return row != NO_ROW && sees(op, row) ? row : NO_ROW;
    }
    if (op->code == FILLED || op->code == EMPTY) {
        for (row = 0; row < op->relation->count; row++)
            if (sees(op, row)) return row;
        return NO_ROW;
    }
    uint32_t count = index_find(op->index, op->words, &rows);
    for (uint32_t i = 0; i < count; i++)
        if (sees(op, rows[i])) return rows[i];
    return NO_ROW;
}

/* Enter an operation: 1 to go on, 0 to return to the loop before it, or a failure. */
static inline int enter(Run *run, int at) {
    Op *op = &run->plan->ops[at];
    uint32_t row;
    run->newest[at + 1] = run->newest[at];
    switch (op->code) {
        case SCAN:
            op->row = 0;
            op->end = op->relation->hi;
            return next_row(run, at);
        case PROBE:
            gather(op, run->plan->registers);
            op->row = 0;
            op->end = index_find(op->index, op->words, &op->rows);
            return next_row(run, at);
        case EXISTS:
        case FOUND:
        case FILLED:
            row = seen(run, op);
            if (row == NO_ROW) return 0;
            if (seq_of(op, row) > run->newest[at]) run->newest[at + 1] = seq_of(op, row);
            return 1;
        case ABSENT:
        case MISSING:
        case EMPTY: return seen(run, op) == NO_ROW;
        case ADD: return derived(run, op, run->newest[at]);
        default: return plan_apply(run->plan, at);
    }
}

/* Look at signals and limits, now and then: also rows that nothing sees are work. */
static inline int look(Run *run) {
    if (run->unit->work < run->look_at) return DONE;
    run->look_at = run->unit->work + CHECK_EVERY;
    if (run->plan->check(run->plan->context, run->plan) < 0) return STOPPED;
    return run->mode < PROVE && run->unit->work > run->unit->limit ? USED_UP : DONE;
}

/* Everything from the operation at `first` on. */
static int follow(Run *run, int first) {
    Plan *plan = run->plan;
    int at = first;
    for (;;) {
        int status = enter(run, at);
        if (status > 0) {
            at++;
            continue;
        }
        if (status < 0) return status;
        if (run->mode == PROVE && run->found) return DONE;
        for (at = plan->ops[at].back; at >= first; at = plan->ops[at].back)
            if (next_row(run, at)) break;
        if (at < first) return DONE;
        at++;
        status = look(run);
        if (status < 0) return status;
    }
}

static int run_list(Run *run, const Live *source, const List *rows, int inner, uint32_t *counts) {
    Plan *plan = run->plan;
    int status = DONE;
    for (int i = 0; i < plan->count; i++) {
        Op *op = &plan->ops[i];
        if (!op->relation || op->code == ADD) continue;
        op->mask = visible(op, run->mode, inner);
        op->bound = UINT32_MAX;
        int settled = run->mode == LOSE || run->mode == ASK || (run->mode == GAIN && !inner);
        if (((const Live *)op->relation->live)->own && settled) op->bound = run->unit->settled;
    }
    run->newest[0] = 0;
    if (!rows) return follow(run, 0);
    for (uint32_t i = 0; i < rows->count && status == DONE; i++) {
        uint32_t row = rows->rows[i], seq = source->own ? source->lives[row].seq : 0;
        if (source->own && ((run->mode == GAIN && inner) || run->mode >= PROVE)) {
            for (int n = 1; n < plan->count; n++) {
                Op *op = &plan->ops[n];
                if (op->relation && op->code != ADD && ((const Live *)op->relation->live)->own)
                    op->bound = seq + (run->mode == GAIN && op->version != OLD);
            }
        }
        spread(&plan->ops[0], row, plan->registers);
        run->unit->work++;
        run->newest[1] = run->mode >= ASK ? 0 : seq;
        run->found = 0;
        status = look(run);
        if (status == DONE) status = follow(run, 1);
        if (counts && status == DONE) {
            uint64_t sum = counts[i] + run->found;
            counts[i] = sum < MOST_DERIVATIONS ? (uint32_t)sum : MOST_DERIVATIONS;
        }
        if (status == DONE && run->mode < PROVE && run->unit->work > run->unit->limit) status = USED_UP;
    }
    return status;
}

int live_run(Plan *plan, Unit *unit, const Live *source, const List *rows, enum Mode mode, int inner, uint32_t *counts) {
    const Op *last = &plan->ops[plan->count - 1];
    if (!plan->batch.rows) plan->batch.rows = calloc((size_t)last->from_count * BATCH + 1, sizeof(int64_t));
    uint32_t *newest = calloc((size_t)plan->count + 1, sizeof *newest);
    int status = NO_MEMORY;
    if (newest && plan->batch.rows) {
        Run run = {.plan = plan, .unit = unit, .mode = mode, .newest = newest};
        run.look_at = unit->work + CHECK_EVERY;
        plan->batch.count = 0;
        status = run_list(&run, source, rows, inner, counts);
        if (status == DONE && mode <= GAIN) status = flush(&run);
        if (mode == PROVE && status == DONE) status = run.found > 0;
    }
    free(newest);
    return status;
}
