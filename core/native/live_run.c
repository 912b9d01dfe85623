/* Plans over relations that live: in blocks of rows, as in block.c, with the states of the rows.
 *
 * A row on its way through a plan has two registers more.  One is a moment: that of its row of Δ, where
 * that bounds what the other atoms see, and that of the latest row of the unit so far where it does not.
 * The other is the place in the list of the row of Δ from which it came.
 */
#include <stdlib.h>
#include <string.h>

#include "live.h"
#include "stages.h"
#include "steps.h"

#define BIT(state) (1u << (state))
#define SPARE 2
#define ENOUGH 1 /* the status of a run that has found what it looks for */

typedef struct {
    Plan *plan;
    Unit *unit;
    enum Mode mode;
    uint32_t moment, origin; /* the registers behind all others */
    int is_bound;            /* the moment is that of Δ */
    uint32_t *counts;
    uint64_t look_at; /* the work at which to look at signals and limits */
} Run;

/* ── what an operation sees ───────────────────────────────────────────────────────────────── */

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
    return BIT(HERE) | (is_negated(op) ? BIT(GOING) | BIT(CAME) : 0);
}

/* What the operations see in this run. */
static void open_eyes(Run *run, int inner) {
    for (int i = 0; i < run->plan->count; i++) {
        Op *op = &run->plan->ops[i];
        if (!op->relation || op->code == ADD) continue;
        const Live *live = op->relation->live;
        op->mask = visible(op, run->mode, inner);
        op->is_relative = live->own && run->is_bound;
        op->bound = UINT32_MAX;
        if (op->is_relative) op->bound = run->mode == GAIN && op->version != OLD;
        else if (live->own) op->bound = run->unit->settled;
    }
}

static inline uint32_t bound_for(const Run *run, const Op *op, const int64_t *row) {
    return op->is_relative ? (uint32_t)row[run->moment] + op->bound : op->bound;
}

static inline int sees(const Op *op, Life life, uint32_t bound) {
    return (op->mask >> life.state & 1) && life.seq < bound;
}

/* The row goes on with a row of an atom that came at `seq`. */
static inline void pass_on(const Run *run, const Op *op, int64_t *row, uint32_t seq) {
    if (!run->is_bound && ((const Live *)op->relation->live)->own && seq > row[run->moment]) row[run->moment] = seq;
}

/* ── a block through the operations ───────────────────────────────────────────────────────── */

static int pass(Run *run, int at, int64_t **rows, uint32_t count);

/* Look at signals and limits, now and then: also rows that nothing sees are work. */
static int look(Run *run) {
    Unit *unit = run->unit;
    if (run->mode < PROVE && unit->work > unit->limit) return USED_UP;
    if (unit->work < run->look_at) return DONE;
    run->look_at = unit->work + CHECK_EVERY;
    return run->plan->check(run->plan->context, run->plan) < 0 ? STOPPED : DONE;
}

/* Hand over what a loop has made so far. */
static inline int hand_over(Run *run, int at, uint32_t made) {
    int status = look(run);
    return status == DONE ? pass(run, at + 1, run->plan->stages[at]->rows, made) : status;
}

/* One more row of a loop: what came in, and the columns of a row of its relation. */
static inline int64_t *extended(const Run *run, const Op *op, Stage *stage, uint32_t made, const int64_t *in, uint32_t row) {
    int64_t *out = stage->store + (size_t)made * run->plan->register_count;
    for (uint32_t i = 0; i < stage->live_count; i++) out[stage->live[i]] = in[stage->live[i]];
    spread(op, row, out);
    return out;
}

/* The rows of a list that one row meets, or of all rows if there is no list.  `made` rows wait. */
static int meet(Run *run, int at, const int64_t *in, const uint32_t *list, uint32_t count, uint32_t *made) {
    const Op *op = &run->plan->ops[at];
    const Live *live = op->relation->live;
    Stage *stage = run->plan->stages[at];
    uint32_t bound = bound_for(run, op, in);
    run->unit->work += count;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t row = list ? list[i] : i;
        if (list && i + AHEAD < count) {
            PREFETCH(&live->lives[list[i + AHEAD]]);
            fetch(op, list[i + AHEAD]);
        }
        Life life = live->lives[row];
        if (!sees(op, life, bound)) continue;
        stage->rows[*made] = extended(run, op, stage, *made, in, row);
        pass_on(run, op, stage->rows[*made], life.seq);
        if (++*made == BLOCK) {
            int status = hand_over(run, at, BLOCK);
            if (status) return status;
            *made = 0;
        }
    }
    return DONE;
}

static int probe(Run *run, int at, int64_t **rows, uint32_t count) {
    const Op *op = &run->plan->ops[at];
    const Live *live = op->relation->live;
    Stage *stage = run->plan->stages[at];
    uint32_t made = 0;
    gather_many(run->plan, op, rows, count);
    index_find_many(op->index, run->plan->keys, count, stage->lists, stage->counts);
    for (uint32_t k = 0; k < count; k++)
        if (stage->counts[k]) PREFETCH(&live->lives[stage->lists[k][0]]);
    for (uint32_t k = 0; k < count; k++) {
        int status = meet(run, at, rows[k], stage->lists[k], stage->counts[k], &made);
        if (status) return status;
    }
    return made ? hand_over(run, at, made) : look(run);
}

static int scan(Run *run, int at, int64_t **rows, uint32_t count) {
    uint32_t made = 0;
    for (uint32_t k = 0; k < count; k++) {
        int status = meet(run, at, rows[k], NULL, run->plan->ops[at].relation->hi, &made);
        if (status) return status;
    }
    return made ? hand_over(run, at, made) : look(run);
}

/* A test of an atom: of each row, the numbers of the rows that may fit. */
static uint32_t keep(Run *run, const Op *op, int64_t **rows, uint32_t count) {
    const Live *live = op->relation->live;
    const uint32_t *lists[BLOCK];
    uint32_t counts[BLOCK], found[BLOCK], kept = 0;
    gather_many(run->plan, op, rows, count);
    if (op->index) index_find_many(op->index, run->plan->keys, count, lists, counts);
    else if (op->code == FOUND || op->code == MISSING) {
        relation_find_many(op->relation, run->plan->keys, count, found);
        for (uint32_t k = 0; k < count; k++) {
            lists[k] = &found[k];
            counts[k] = found[k] < live->capacity;
            if (counts[k]) PREFETCH(&live->lives[found[k]]);
        }
    } else
        for (uint32_t k = 0; k < count; k++) lists[k] = NULL, counts[k] = op->relation->hi;
    for (uint32_t k = 0; k < count; k++) {
        uint32_t bound = bound_for(run, op, rows[k]), i = 0, seq = 0;
        for (; i < counts[k]; i++) {
            Life life = live->lives[lists[k] ? lists[k][i] : i];
            seq = life.seq;
            if (sees(op, life, bound)) break;
        }
        if ((i < counts[k]) == is_negated(op)) continue;
        if (!is_negated(op)) pass_on(run, op, rows[k], seq);
        rows[kept++] = rows[k];
    }
    return kept;
}

/* What the plan finds: derivations to count, or rows that gain or lose one. */
static int derive(Run *run, const Op *op, int64_t **rows, uint32_t count) {
    Live *live = op->relation->live;
    uint32_t found[BLOCK];
    run->plan->derivations += count;
    run->unit->work += count;
    if (run->mode == PROVE) {
        memcpy(run->plan->registers, rows[0], run->plan->register_count * sizeof(int64_t));
        return ENOUGH;
    }
    if (run->mode >= ASK) {
        for (uint32_t k = 0; k < count; k++) {
            uint32_t *counted = &run->counts[rows[k][run->origin]];
            if (*counted < MOST_DERIVATIONS) ++*counted;
        }
        return DONE;
    }
    gather_many(run->plan, op, rows, count);
    relation_find_many(op->relation, run->plan->keys, count, found);
    for (uint32_t k = 0; k < count; k++)
        if (found[k] != NO_ROW) PREFETCH(&live->lives[found[k]]);
    for (uint32_t k = 0; k < count; k++) {
        uint32_t newest = (uint32_t)rows[k][run->moment];
        int status = run->mode == LOSE
                         ? live_withdrawn(live, found[k], newest)
                         : live_supported(live, run->plan->keys + (size_t)k * op->from_count, found[k], newest);
        if (status < 0) return status;
    }
    return DONE;
}

/* Rows through the operations from `at` on; DONE, ENOUGH or a failure. */
static int pass(Run *run, int at, int64_t **rows, uint32_t count) {
    for (; count; at++) {
        const Op *op = &run->plan->ops[at];
        int left;
        switch (op->code) {
            case PROBE: return probe(run, at, rows, count);
            case SCAN: return scan(run, at, rows, count);
            case ADD: return derive(run, op, rows, count);
            case FOUND:
            case MISSING:
            case EXISTS:
            case ABSENT:
            case FILLED:
            case EMPTY: count = keep(run, op, rows, count); break;
            default:
                left = plan_apply_many(run->plan, at, rows, count);
                if (left < 0) return left;
                count = (uint32_t)left;
        }
    }
    return DONE;
}

/* ── the rows of Δ ────────────────────────────────────────────────────────────────────────── */

static int run_list(Run *run, const Live *source, const List *rows) {
    Plan *plan = run->plan;
    Stage *stage = plan->stages[0];
    uint32_t made = 0;
    int status = look(run);
    run->unit->work += rows->count;
    for (uint32_t i = 0; i < rows->count && status == DONE; i++) {
        uint32_t row = rows->rows[i];
        if (i + AHEAD < rows->count) fetch(plan->ops, rows->rows[i + AHEAD]);
        int64_t *out = stage->rows[made] = extended(run, plan->ops, stage, made, plan->registers, row);
        out[run->moment] = source->own ? source->lives[row].seq : 0;
        out[run->origin] = i;
        if (++made == BLOCK) {
            status = hand_over(run, 0, made);
            made = 0;
        }
    }
    return status == DONE && made ? hand_over(run, 0, made) : status;
}

/* Room for what is only needed here. */
static int prepare(Plan *plan) {
    if (!plan->spare) {
        size_t count = (size_t)plan->register_count + SPARE;
        int64_t *registers = realloc(plan->registers, count * sizeof *registers);
        if (!registers) return NO_MEMORY;
        memset(registers + plan->register_count, 0, SPARE * sizeof *registers);
        plan->registers = registers;
        plan->register_count += SPARE;
        plan->spare = SPARE;
    }
    return plan_make_stages(plan);
}

int live_run(Plan *plan, Unit *unit, const Live *source, const List *rows, enum Mode mode, int inner, uint32_t *counts) {
    int status = prepare(plan);
    if (status < 0) return status;
    Run run = {.plan = plan, .unit = unit, .mode = mode, .counts = counts};
    run.moment = plan->register_count - SPARE;
    run.origin = run.moment + 1;
    run.look_at = unit->work + CHECK_EVERY;
    run.is_bound = rows && source->own && ((mode == GAIN && inner) || mode >= PROVE);
    open_eyes(&run, inner);
    if (rows) return run_list(&run, source, rows);
    int64_t *one = plan->registers;
    one[run.moment] = one[run.origin] = 0;
    return pass(&run, 0, &one, 1);
}
