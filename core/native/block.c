#include <stdlib.h>

#include "atomic.h"
#include "stages.h"
#include "steps.h"

/* ── which plans, and their stages ────────────────────────────────────────────────────────── */

int plan_has_blocks(const Plan *plan) {
    const Op *last = &plan->ops[plan->count - 1];
    int loops = 0;
    for (int i = 0; i < plan->count; i++) {
        enum Code code = plan->ops[i].code;
        if (code == RANGE || code == WITHIN || code == FOLD || code == COLLECT) return 0;
        if (code == SCAN || code == PROBE) {
            if (loops && plan->ops[i].back < 0) return 0;
            loops = i + 1;
        }
    }
    /* a loop that one row is enough for ends early, row by row */
    return loops && plan->ops[0].code == SCAN && last->back == loops - 1;
}

static int is_read(const Op *op, uint32_t reg) {
    for (uint32_t i = 0; i < op->from_count; i++)
        if (op->from[i] == reg) return 1;
    return 0;
}

static int writes(const Op *op, uint32_t reg) {
    for (uint32_t i = 0; i < op->to_count; i++)
        if (op->to[i] == reg) return 1;
    return 0;
}

static int is_live(const Plan *plan, int at, uint32_t reg) {
    int read = plan->keeps, written = 0;
    if (reg >= plan->register_count - plan->spare) return 1;
    for (int i = at + 1; i < plan->count; i++) read |= is_read(&plan->ops[i], reg);
    for (int i = 0; i < at; i++) written |= writes(&plan->ops[i], reg);
    return read && written;
}

static int make_stage(Plan *plan, int at) {
    Stage *stage = calloc(1, sizeof *stage);
    if (!stage) return NO_MEMORY;
    plan->stages[at] = stage;
    uint32_t width = plan->register_count;
    stage->store = malloc((size_t)BLOCK * width * sizeof(int64_t) + 1);
    stage->live = malloc(width * sizeof(uint32_t) + 1);
    if (!stage->store || !stage->live) return NO_MEMORY;
    for (int i = 0; i < BLOCK; i++) /* registers of constants are never written */
        memcpy(stage->store + (size_t)i * width, plan->registers, width * sizeof(int64_t));
    for (uint32_t reg = 0; reg < width; reg++)
        if (is_live(plan, at, reg)) stage->live[stage->live_count++] = reg;
    return DONE;
}

static int try_stages(Plan *plan) {
    uint32_t widest = 1;
    for (int i = 0; i < plan->count; i++)
        if (plan->ops[i].from_count > widest) widest = plan->ops[i].from_count;
    plan->keys = malloc((size_t)BLOCK * widest * sizeof(int64_t));
    plan->stages = calloc((size_t)plan->count, sizeof *plan->stages);
    if (!plan->keys || !plan->stages) return NO_MEMORY;
    for (int i = 0; i < plan->count; i++)
        if (plan->ops[i].code == SCAN || plan->ops[i].code == PROBE) {
            int status = make_stage(plan, i);
            if (status < 0) return status;
        }
    return DONE;
}

int plan_make_stages(Plan *plan) {
    if (plan->stages) return DONE;
    int status = try_stages(plan);
    if (status < 0) plan_free_stages(plan);
    return status;
}

void plan_free_stages(Plan *plan) {
    for (int i = 0; plan->stages && i < plan->count; i++)
        if (plan->stages[i]) {
            free(plan->stages[i]->store);
            free(plan->stages[i]->live);
            free(plan->stages[i]);
        }
    free(plan->stages);
    free(plan->keys);
    plan->stages = NULL;
    plan->keys = NULL;
}

/* ── a block through the operations ───────────────────────────────────────────────────────── */

static uint32_t keep_found(Plan *plan, const Op *op, int64_t **rows, uint32_t count) {
    uint32_t found[BLOCK], kept = 0, low = op->version == DELTA ? op->relation->lo : 0, high = limit_of(op);
    gather_many(plan, op, rows, count);
    relation_find_many(op->relation, plan->keys, count, found);
    for (uint32_t k = 0; k < count; k++) {
        int holds = op->code == UNKNOWN ? found[k] == NO_ROW
                                        : (found[k] >= low && found[k] < high) == (op->code == FOUND);
        if (holds) rows[kept++] = rows[k];
    }
    return kept;
}

static uint32_t keep_matched(Plan *plan, const Op *op, int64_t **rows, uint32_t count) {
    const uint32_t *lists[BLOCK];
    uint32_t counts[BLOCK], kept = 0;
    gather_many(plan, op, rows, count);
    index_find_many(op->index, plan->keys, count, lists, counts);
    for (uint32_t k = 0; k < count; k++)
        if ((cut(op, &lists[k], counts[k]) != 0) == (op->code == EXISTS)) rows[kept++] = rows[k];
    return kept;
}

static int pass(Plan *plan, int at, int64_t **rows, uint32_t count);

/* Count rows that come to an operation, and rows that it has tried; a thread keeps its own counts. */
static inline void count_rows(Plan *plan, int at, uint64_t entered, uint64_t tried) {
    if (plan->counts) {
        plan->counts[at].entered += entered;
        plan->counts[at].tried += tried;
    } else {
        plan->ops[at].entered += entered;
        plan->ops[at].tried += tried;
    }
}

/* Hand over what a loop has made so far. */
static inline int hand_over(Plan *plan, int at, Stage *stage, uint32_t made) {
    count_rows(plan, at, 0, made);
    int status = pass(plan, at + 1, stage->rows, made);
    if (status < 0 || (plan->countdown -= (int)made) > 0) return status;
    plan->countdown = CHECK_EVERY;
    if (plan->out && LOAD(&plan->out->wanted) && (status = plan->wait(plan->thread, 0)) < 0) return status;
    return plan->check(plan->context, plan) < 0 ? STOPPED : DONE;
}

/* One more row of a loop: what came in, and the columns of a row of its relation. */
static inline int64_t *extended(const Plan *plan, const Op *op, Stage *stage, uint32_t made, const int64_t *in, uint64_t row) {
    int64_t *out = stage->store + (size_t)made * plan->register_count;
    for (uint32_t i = 0; i < stage->live_count; i++) out[stage->live[i]] = in[stage->live[i]];
    spread(op, row, out);
    return out;
}

static int probe(Plan *plan, int at, int64_t **rows, uint32_t count) {
    const Op *op = &plan->ops[at];
    Stage *stage = plan->stages[at];
    uint32_t made = 0;
    gather_many(plan, op, rows, count);
    index_find_many(op->index, plan->keys, count, stage->lists, stage->counts);
    for (uint32_t k = 0; k < count; k++) {
        const uint32_t *list = stage->lists[k];
        uint32_t matches = cut(op, &list, stage->counts[k]);
        for (uint32_t i = 0; i < matches; i++) {
            if (i + AHEAD < matches) fetch(op, list[i + AHEAD]);
            stage->rows[made] = extended(plan, op, stage, made, rows[k], list[i]);
            if (++made == BLOCK) {
                int status = hand_over(plan, at, stage, made);
                if (status < 0) return status;
                made = 0;
            }
        }
    }
    return made ? hand_over(plan, at, stage, made) : DONE;
}

static int scan(Plan *plan, int at, const int64_t *in, uint64_t row, uint64_t end) {
    const Op *op = &plan->ops[at];
    Stage *stage = plan->stages[at];
    uint32_t made = 0;
    for (; row < end; row++) {
        stage->rows[made] = extended(plan, op, stage, made, in, row);
        if (++made == BLOCK) {
            int status = hand_over(plan, at, stage, made);
            if (status < 0) return status;
            made = 0;
        }
    }
    return made ? hand_over(plan, at, stage, made) : DONE;
}

static int add(Plan *plan, const Op *op, int64_t **rows, uint32_t count) {
    Batch *batch = &plan->batch;
    plan->derivations += count;
    for (uint32_t k = 0; k < count; k++) {
        int64_t *row = batch->rows + (size_t)batch->count * op->from_count;
        for (uint32_t i = 0; i < op->from_count; i++) row[i] = rows[k][op->from[i]];
        int status = DONE;
        if (!plan->out) status = batch_put(batch, op->relation);
        else if (batch_take(batch, op->relation)) status = plan_flush(plan);
        if (status < 0) return status;
    }
    return DONE;
}

int plan_apply_many(Plan *plan, int at, int64_t **rows, uint32_t count) {
    const Op *op = &plan->ops[at];
    uint32_t kept = 0;
    for (uint32_t k = 0; k < count; k++) {
        int64_t *row = rows[k];
        int status = 1;
        if (op->code == CALL || op->code == CALL_TEST) status = plan->call(plan->context, at, row);
        else if (op->code < WITHIN) status = holds(op->code, row[op->from[0]], row[op->from[1]]);
        else if (!is_defined(op->code, row[op->from[op->from_count - 1]])) status = UNDEFINED;
        else row[op->to[0]] = computed(op->code, row[op->from[0]], row[op->from[1]]);
        if (status < 0) return status;
        if (status) rows[kept++] = row;
    }
    return (int)kept;
}

/* Rows through the operations from `at` on; DONE or a failure. */
static int pass(Plan *plan, int at, int64_t **rows, uint32_t count) {
    for (; count; at++) {
        Op *op = &plan->ops[at];
        int left;
        count_rows(plan, at, count, 0);
        switch (op->code) {
            case PROBE: return probe(plan, at, rows, count);
            case SCAN:
                for (uint32_t k = 0; k < count; k++) {
                    uint64_t first = op->version == DELTA ? op->relation->lo : 0;
                    int status = scan(plan, at, rows[k], first, limit_of(op));
                    if (status < 0) return status;
                }
                return DONE;
            case ADD: return add(plan, op, rows, count);
            case FOUND:
            case MISSING:
            case UNKNOWN: count = keep_found(plan, op, rows, count); break;
            case EXISTS:
            case ABSENT: count = keep_matched(plan, op, rows, count); break;
            case FILLED:
                if (!is_filled(op)) return DONE;
                break;
            case EMPTY:
                if (is_filled(op)) return DONE;
                break;
            default:
                left = plan_apply_many(plan, at, rows, count);
                if (left < 0) return left;
                count = (uint32_t)left;
        }
    }
    return DONE;
}

int plan_run_blocks(Plan *plan, uint64_t row, uint64_t end) {
    int status = plan_make_stages(plan);
    plan->countdown = CHECK_EVERY;
    if (!plan->shared) plan->ops[0].entered++;
    return status < 0 ? status : scan(plan, 0, plan->registers, row, end);
}
