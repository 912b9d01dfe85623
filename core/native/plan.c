#include "plan.h"

#include <stdlib.h>
#include <string.h>

#include "atomic.h"
#include "steps.h"


/* ── plans ────────────────────────────────────────────────────────────────────────────────── */

Plan *plan_new(int ops, uint32_t registers) {
    Plan *plan = calloc(1, sizeof *plan);
    if (!plan) return NULL;
    plan->ops = calloc(ops ? (size_t)ops : 1, sizeof *plan->ops);
    plan->registers = calloc(registers ? registers : 1, sizeof *plan->registers);
    plan->register_count = registers;
    if (plan->ops && plan->registers) {
        plan->count = ops;
        return plan;
    }
    plan_free(plan);
    return NULL;
}

void plan_free(Plan *plan) {
    if (!plan) return;
    for (int i = 0; i < plan->count && !plan->shared; i++) {
        free(plan->ops[i].from);
        free(plan->ops[i].columns);
        free(plan->ops[i].to);
        free(plan->ops[i].words);
        if (plan->ops[i].code == FOLD) fold_free(plan->ops[i].fold);
    }
    if (!plan->shared) free(plan->ops);
    free(plan->registers);
    free(plan->counts);
    free(plan->batch.rows);
    plan_free_stages(plan);
    free(plan);
}

int op_reserve(Op *op, uint32_t from_count, uint32_t to_count) {
    op->from = calloc(from_count + 1, sizeof *op->from);
    op->words = calloc(from_count + 1, sizeof *op->words);
    op->columns = calloc(to_count + 1, sizeof *op->columns);
    op->to = calloc(to_count + 1, sizeof *op->to);
    op->from_count = from_count;
    op->to_count = to_count;
    return op->from && op->words && op->columns && op->to ? DONE : NO_MEMORY;
}

/* ── the loop ─────────────────────────────────────────────────────────────────────────────── */

static inline uint32_t looked_up(const Op *op, const int64_t *registers, const uint32_t **rows) {
    gather(op, registers);
    return cut(op, rows, index_find(op->index, op->words, rows));
}

static inline int is_found(const Op *op, const int64_t *registers) {
    gather(op, registers);
    uint32_t row = relation_find(op->relation, op->words);
    return row < limit_of(op) && (op->version != DELTA || row >= op->relation->lo);
}

/* ── ranges ───────────────────────────────────────────────────────────────────────────────── */

static inline int precedes(int64_t a, int64_t b, int is_unsigned) {
    return is_unsigned ? (uint64_t)a < (uint64_t)b : a < b;
}

/* Begin a range: its first value, step and number of values.  A step of zero gives the start alone. */
static void start_range(Op *op, const int64_t *registers) {
    int64_t a = registers[op->from[0]], b = registers[op->from[1]];
    int goes_up = precedes(a, b, op->is_unsigned);
    int64_t step = op->from_count > 2 ? registers[op->from[2]] : goes_up || a == b ? 1 : -1;
    uint64_t distance = goes_up ? (uint64_t)b - (uint64_t)a : (uint64_t)a - (uint64_t)b;
    int step_goes_up = op->from_count > 2 && op->is_unsigned ? 1 : step > 0;
    uint64_t size = step_goes_up ? (uint64_t)step : 0 - (uint64_t)step;
    op->words[0] = a;
    op->step = step;
    op->row = 0;
    op->end = !distance ? 0 : !step ? 1 : goes_up != step_goes_up ? 0 : (distance - 1) / size + 1;
}

static inline int64_t value_of_range(const Op *op, uint64_t place) {
    return (int64_t)((uint64_t)op->words[0] + place * (uint64_t)op->step);
}

static int is_within(Op *op, const int64_t *registers) {
    uint32_t bounds = op->from_count;
    op->from_count = bounds - 1; /* the last operand is the value */
    start_range(op, registers);
    op->from_count = bounds;
    if (!op->end) return 0;
    int64_t value = registers[op->from[bounds - 1]], a = op->words[0];
    if (!op->step) return value == a;
    int goes_up = op->is_unsigned ? precedes(a, registers[op->from[1]], 1) : op->step > 0;
    if (goes_up ? precedes(value, a, op->is_unsigned) : precedes(a, value, op->is_unsigned)) return 0;
    uint64_t distance = goes_up ? (uint64_t)value - (uint64_t)a : (uint64_t)a - (uint64_t)value;
    uint64_t size = goes_up ? (uint64_t)op->step : 0 - (uint64_t)op->step;
    return distance % size == 0 && distance / size < op->end;
}

/* ── aggregates ───────────────────────────────────────────────────────────────────────────── */

/* Enter an aggregate: its body, or what is known.  Enters as `enter` does, or SKIPS the body. */
#define SKIPS 2
static int enter_fold(Op *op, int64_t *registers) {
    gather(op, registers);
    uint32_t known = fold_known(op->fold, op->words, &registers[op->to[0]]);
    if (known != NO_ROW) return known ? SKIPS : 0;
    fold_begin(op->fold);
    return 1;
}

/* The body has found everything: 1 if there is a value, 0, or a failure. */
static int end_fold(Plan *plan, int at) {
    Op *op = &plan->ops[at];
    Fold *fold = op->fold;
    int has_result = fold->kind <= SUM || fold->count || op->is_total;
    int64_t word = fold->kind == COUNTED ? (int64_t)fold->count : fold->word;
    if (has_result && fold->kind >= NUMBERS) {
        int status = plan->call(plan->context, at, &word); /* a sum of floats, rounded once */
        if (status < 0) return status;
    }
    gather(op, plan->registers);
    int status = fold_end(fold, op->words, has_result, word);
    if (status < 0) return status;
    plan->registers[op->to[0]] = word;
    return has_result;
}

/* Take in a value, at the end of an aggregate's body; 0 to go on, or a failure. */
static int collect(Plan *plan, int at) {
    Op *op = &plan->ops[at];
    int64_t word = op->from_count ? plan->registers[op->from[0]] : 0;
    if (fold_is_ordered_by_text(op->fold) && op->fold->count) {
        int64_t both[2] = {word, op->fold->word};
        int replaces = plan->call(plan->context, at, both);
        if (replaces <= 0) return replaces;
    }
    return fold_take(op->fold, word);
}

/* Count what a loop has tried, and begin it again. */
static inline void begin(Op *op, uint64_t first) {
    op->entered++;
    op->tried += op->row - op->first;
    op->row = op->first = first;
}

/* Enter the operation at `at`; 1 to go on, 0 to return to the loop before it, or a failure. */
static inline int enter(Plan *plan, int at) {
    Op *op = &plan->ops[at];
    int64_t *registers = plan->registers;
    int64_t *row;
    const uint32_t *rows;
    uint32_t count;
    switch (op->code) {
        case SCAN:
            begin(op, op->version == DELTA ? op->relation->lo : 0);
            op->end = limit_of(op);
            if (op->row == op->end) return 0;
            spread(op, op->row++, registers);
            return 1;
        case PROBE:
            begin(op, 0);
            count = looked_up(op, registers, &rows);
            if (!count) return 0;
            op->rows = rows;
            op->row = 1;
            op->end = count;
            spread(op, rows[0], registers);
            return 1;
        case RANGE:
            begin(op, 0);
            start_range(op, registers);
            if (!op->end) return 0;
            registers[op->to[0]] = value_of_range(op, op->row++);
            return 1;
        case WITHIN: op->entered++; return is_within(op, registers);
        case FOLD: return enter_fold(op, registers);
        case COLLECT: op->entered++; return collect(plan, at);
        case EXISTS: op->entered++; return looked_up(op, registers, &rows) != 0;
        case ABSENT: op->entered++; return looked_up(op, registers, &rows) == 0;
        case FOUND: op->entered++; return is_found(op, registers);
        case MISSING: op->entered++; return !is_found(op, registers);
        case FILLED: op->entered++; return is_filled(op);
        case EMPTY: op->entered++; return !is_filled(op);
        case UNKNOWN:
            gather(op, registers);
            return relation_find(op->relation, op->words) == NO_ROW;
        case CALL_TEST:
        case CALL: return plan->call(plan->context, at, registers);
        case ADD:
            plan->derivations++;
            row = plan->batch.rows + (size_t)plan->batch.count * op->from_count;
            for (uint32_t i = 0; i < op->from_count; i++) row[i] = registers[op->from[i]];
            return batch_put(&plan->batch, op->relation);
        default:
            if (op->code < WITHIN) return holds(op->code, registers[op->from[0]], registers[op->from[1]]);
            if (!is_defined(op->code, registers[op->from[op->from_count - 1]])) return UNDEFINED;
            registers[op->to[0]] = computed(op->code, registers[op->from[0]], registers[op->from[1]]);
            return 1;
    }
}

/* Everything that the plan derives, but for rows that wait in the batch of its last operation. */
static int run(Plan *plan) {
    int at = 0, countdown = CHECK_EVERY;
    for (;;) {
        int status = enter(plan, at);
        if (status > 0) {
            at = status == SKIPS ? plan->ops[at].skip : at + 1;
            continue;
        }
        if (status < 0) return status;
        for (at = plan->ops[at].back; at >= 0; at = plan->ops[at].back) {
            Op *loop = &plan->ops[at];
            if (loop->code == FOLD) {
                status = end_fold(plan, at);
                if (status < 0) return status;
                if (!status) continue;
                at = loop->skip - 1;
                break;
            }
            if (loop->row == loop->end) continue;
            if (loop->code == RANGE) {
                plan->registers[loop->to[0]] = value_of_range(loop, loop->row++);
                break;
            }
            spread(loop, loop->code == SCAN ? loop->row : loop->rows[loop->row], plan->registers);
            loop->row++;
            if (loop->code == PROBE && loop->row + AHEAD < loop->end) fetch(loop, loop->rows[loop->row + AHEAD]);
            break;
        }
        if (at < 0) return DONE;
        at++;
        if (!--countdown) {
            countdown = CHECK_EVERY;
            if (plan->check(plan->context, plan) < 0) return STOPPED;
        }
    }
}

uint64_t op_tried(const Op *op) { return op->tried + op->row - op->first; }

uint64_t plan_rows(const Plan *plan) {
    uint64_t rows = 0;
    for (int i = 0; i < plan->count; i++)
        if (plan->ops[i].code <= RANGE) rows += op_tried(&plan->ops[i]);
    return rows;
}

static int start(Plan *plan) {
    const Op *last = &plan->ops[plan->count - 1];
    if (!plan->batch.rows) plan->batch.rows = calloc((size_t)last->from_count * BATCH + 1, sizeof(int64_t));
    plan->batch.count = 0;
    return plan->batch.rows ? DONE : NO_MEMORY;
}

Plan *plan_clone(Plan *plan, Shared *out) {
    Plan *clone = calloc(1, sizeof *clone);
    if (!clone) return NULL;
    *clone = *plan;
    clone->shared = plan;
    clone->stages = NULL;
    clone->keys = NULL;
    clone->batch.rows = NULL;
    clone->derivations = 0;
    clone->registers = calloc((size_t)plan->register_count + 1, sizeof(int64_t));
    clone->counts = calloc((size_t)plan->count, sizeof *clone->counts);
    clone->out = out;
    if (clone->registers && clone->counts && start(clone) == DONE) {
        memcpy(clone->registers, plan->registers, plan->register_count * sizeof(int64_t));
        return clone;
    }
    plan_free(clone);
    return NULL;
}

void plan_tell(Plan *clone) {
    Plan *plan = clone->shared;
    if (!plan) return;
    for (int i = 0; i < plan->count; i++) {
        plan->ops[i].entered += clone->counts[i].entered;
        plan->ops[i].tried += clone->counts[i].tried;
    }
    memset(clone->counts, 0, (size_t)plan->count * sizeof *clone->counts);
    plan->derivations += clone->derivations;
    clone->derivations = 0;
}

int plan_flush(Plan *plan) {
    Batch *batch = &plan->batch;
    Relation *to = plan->ops[plan->count - 1].relation;
    if (!plan->out) return batch_flush(batch, to);
    int count = batch->count, status = DONE;
    batch->count = 0;
    for (int i = 0; i < count; i++) relation_fetch_row(to, batch->hashes[i]);
    for (int i = 0; i < count && status >= 0; i++) {
        const int64_t *row = batch->rows + (size_t)i * to->width;
        while ((status = shared_add(plan->out, &plan->share, row, batch->hashes[i])) == NO_ROOM) {
            status = plan->wait(plan->thread, 1);
            if (status < 0) break;
        }
    }
    if (status >= 0 && LOAD(&plan->out->wanted)) status = plan->wait(plan->thread, 0);
    return status < 0 ? status : DONE;
}

int plan_run(Plan *plan) {
    for (int i = 0; i < plan->count; i++)
        if (plan->ops[i].code == FOLD && fold_restart(plan->ops[i].fold) < 0) return NO_MEMORY;
    return plan_run_again(plan);
}

int plan_run_again(Plan *plan) {
    if (start(plan) < 0) return NO_MEMORY;
    const Op *first = plan->ops;
    int status = plan_has_blocks(plan)
                     ? plan_run_blocks(plan, first->version == DELTA ? first->relation->lo : 0, limit_of(first))
                     : run(plan);
    return status == DONE ? plan_flush(plan) : status;
}
