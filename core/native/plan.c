#include "plan.h"

#include <stdlib.h>
#include <string.h>

#define CHECK_EVERY 16384 /* rows between two looks at signals and limits */
#define AHEAD 8           /* rows of a loop that are on their way from memory */

/* ── values ───────────────────────────────────────────────────────────────────────────────── */

#define NAN_BITS 0x7FF8000000000000u
#define LEAST_NUMBER ((uint64_t)1 << 63)

static inline double as_float(int64_t word) {
    double value;
    memcpy(&value, &word, sizeof value);
    return value;
}

/* The word of a float: one NaN, and no -0.0. */
static inline int64_t float_word(double value) {
    int64_t word;
    if (value != value) return (int64_t)NAN_BITS;
    value += 0.0;
    memcpy(&word, &value, sizeof word);
    return word;
}

/* Towards zero.  The divisor is not zero (`is_defined`); the least number by -1 is itself, as in 64 bits. */
static inline int64_t divided(int64_t a, int64_t b) { return b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b; }
static inline int64_t modulo(int64_t a, int64_t b) { return b == -1 ? 0 : a % b; }

static inline int64_t truncated(double value) {
    if (!(value >= -9223372036854775808.0 && value < 9223372036854775808.0)) return (int64_t)LEAST_NUMBER;
    return (int64_t)value;
}

static inline int64_t unsigned_truncated(double value) {
    if (!(value >= -9223372036854775808.0)) return (int64_t)LEAST_NUMBER;
    if (value >= 18446744073709551616.0) return 0;
    return value < 0 ? (int64_t)value : (int64_t)(uint64_t)value;
}

/* An arithmetic shift, also where `>>` of a negative number is not one. */
static inline int64_t shifted_right(int64_t a, int by) { return a < 0 ? ~(int64_t)(~(uint64_t)a >> by) : a >> by; }

static int holds(enum Code code, int64_t a, int64_t b) {
    switch (code) {
        case EQUAL: return a == b;
        case DIFFERENT: return a != b;
        case LESS: return a < b;
        case LESS_EQUAL: return a <= b;
        case UNSIGNED_LESS: return (uint64_t)a < (uint64_t)b;
        case UNSIGNED_LESS_EQUAL: return (uint64_t)a <= (uint64_t)b;
        case FLOAT_DIFFERENT: return as_float(a) != as_float(b);
        case FLOAT_LESS: return as_float(a) < as_float(b);
        default: return as_float(a) <= as_float(b);
    }
}

/* Whether a functor has a value for these operands. */
static inline int is_defined(enum Code code, int64_t b) {
    return b || (code != DIVIDE && code != UNSIGNED_DIVIDE && code != MODULO && code != UNSIGNED_MODULO);
}

static int64_t computed(enum Code code, int64_t a, int64_t b) {
    uint64_t x = (uint64_t)a, y = (uint64_t)b;
    switch (code) {
        case PLUS: return (int64_t)(x + y);
        case MINUS: return (int64_t)(x - y);
        case TIMES: return (int64_t)(x * y);
        case NEGATE: return (int64_t)(0 - x);
        case DIVIDE: return divided(a, b);
        case UNSIGNED_DIVIDE: return (int64_t)(x / y);
        case MODULO: return modulo(a, b);
        case UNSIGNED_MODULO: return (int64_t)(x % y);
        case BIT_AND: return a & b;
        case BIT_OR: return a | b;
        case BIT_XOR: return a ^ b;
        case BIT_NOT: return ~a;
        case SHIFT_LEFT: return (int64_t)(x << (y & 63));
        case SHIFT_RIGHT: return shifted_right(a, (int)(y & 63));
        case UNSIGNED_SHIFT_RIGHT: return (int64_t)(x >> (y & 63));
        case BOTH: return a && b;
        case EITHER: return a || b;
        case ONE_OF: return !a != !b;
        case NEITHER: return !a;
        case LEAST: return b < a ? b : a;
        case GREATEST: return b > a ? b : a;
        case UNSIGNED_LEAST: return y < x ? b : a;
        case UNSIGNED_GREATEST: return y > x ? b : a;
        case FLOAT_LEAST: return as_float(b) < as_float(a) ? b : a;
        case FLOAT_GREATEST: return as_float(b) > as_float(a) ? b : a;
        case FLOAT_PLUS: return float_word(as_float(a) + as_float(b));
        case FLOAT_MINUS: return float_word(as_float(a) - as_float(b));
        case FLOAT_TIMES: return float_word(as_float(a) * as_float(b));
        case FLOAT_DIVIDE: return float_word(as_float(a) / as_float(b));
        case FLOAT_NEGATE: return float_word(-as_float(a));
        case TO_FLOAT: return float_word((double)a);
        case UNSIGNED_TO_FLOAT: return float_word((double)x);
        case TRUNCATE: return truncated(as_float(a));
        case UNSIGNED_TRUNCATE: return unsigned_truncated(as_float(a));
        default: return a; /* MOVE */
    }
}

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
    for (int i = 0; i < plan->count; i++) {
        free(plan->ops[i].from);
        free(plan->ops[i].columns);
        free(plan->ops[i].to);
        free(plan->ops[i].words);
        if (plan->ops[i].code == FOLD) fold_free(plan->ops[i].fold);
    }
    free(plan->ops);
    free(plan->registers);
    free(plan->batch.rows);
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

static inline uint32_t limit_of(const Op *op) { return op->version == OLD ? op->relation->lo : op->relation->hi; }

static inline void gather(const Op *op, const int64_t *registers) {
    for (uint32_t i = 0; i < op->from_count; i++) op->words[i] = registers[op->from[i]];
}

static inline void spread(const Op *op, uint64_t row, int64_t *registers) {
    const Relation *relation = op->relation;
    uint64_t at = row * relation->width;
    if (relation->narrow) {
        const int32_t *words = (const int32_t *)relation->words + at;
        for (uint32_t i = 0; i < op->to_count; i++) registers[op->to[i]] = words[op->columns[i]];
    } else {
        const int64_t *words = (const int64_t *)relation->words + at;
        for (uint32_t i = 0; i < op->to_count; i++) registers[op->to[i]] = words[op->columns[i]];
    }
}

/* Ask for a row that the loop reaches soon. */
static inline void fetch(const Op *op, uint64_t row) {
    const Relation *relation = op->relation;
    PREFETCH((const char *)relation->words + row * relation->width * (relation->narrow ? 4 : 8));
}

/* The rows of a version among those of a key: they ascend, so it is a matter of both ends. */
static inline uint32_t cut(const Op *op, const uint32_t **rows, uint32_t count) {
    if (op->version == ALL || !count) return count; /* an index has the rows below `hi` */
    if (op->version == OLD) {
        uint32_t low = 0, high = count, lo = op->relation->lo;
        if ((*rows)[count - 1] < lo) return count;
        while (low < high) {
            uint32_t middle = low + (high - low) / 2;
            if ((*rows)[middle] < lo) low = middle + 1;
            else high = middle;
        }
        return low;
    }
    uint32_t first = count;
    while (first && (*rows)[first - 1] >= op->relation->lo) first--;
    *rows += first;
    return count - first;
}

static inline uint32_t looked_up(const Op *op, const int64_t *registers, const uint32_t **rows) {
    gather(op, registers);
    return cut(op, rows, index_find(op->index, op->words, rows));
}

static inline int is_found(const Op *op, const int64_t *registers) {
    gather(op, registers);
    uint32_t row = relation_find(op->relation, op->words);
    return row < limit_of(op) && (op->version != DELTA || row >= op->relation->lo);
}

static inline int is_filled(const Op *op) {
    return limit_of(op) > (op->version == DELTA ? op->relation->lo : 0);
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

/* Enter the operation at `at`; 1 to go on, 0 to return to the loop before it, or a failure. */
static inline int enter(Plan *plan, int at) {
    Op *op = &plan->ops[at];
    int64_t *registers = plan->registers;
    int64_t *row;
    const uint32_t *rows;
    uint32_t count;
    switch (op->code) {
        case SCAN:
            op->row = op->version == DELTA ? op->relation->lo : 0;
            op->end = limit_of(op);
            if (op->row == op->end) return 0;
            spread(op, op->row++, registers);
            return 1;
        case PROBE:
            count = looked_up(op, registers, &rows);
            if (!count) return 0;
            op->rows = rows;
            op->row = 1;
            op->end = count;
            spread(op, rows[0], registers);
            return 1;
        case RANGE:
            start_range(op, registers);
            if (!op->end) return 0;
            registers[op->to[0]] = value_of_range(op, op->row++);
            return 1;
        case WITHIN: return is_within(op, registers);
        case FOLD: return enter_fold(op, registers);
        case COLLECT: return collect(plan, at);
        case EXISTS: return looked_up(op, registers, &rows) != 0;
        case ABSENT: return looked_up(op, registers, &rows) == 0;
        case FOUND: return is_found(op, registers);
        case MISSING: return !is_found(op, registers);
        case FILLED: return is_filled(op);
        case EMPTY: return !is_filled(op);
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

int plan_apply(Plan *plan, int at) { return enter(plan, at); }

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
            if (plan->check(plan->context) < 0) return STOPPED;
        }
    }
}

int plan_run(Plan *plan) {
    const Op *last = &plan->ops[plan->count - 1];
    if (!plan->batch.rows) plan->batch.rows = calloc((size_t)last->from_count * BATCH + 1, sizeof(int64_t));
    if (!plan->batch.rows) return NO_MEMORY;
    plan->batch.count = 0;
    for (int i = 0; i < plan->count; i++)
        if (plan->ops[i].code == FOLD && fold_restart(plan->ops[i].fold) < 0) return NO_MEMORY;
    int status = run(plan);
    return status == DONE ? batch_flush(&plan->batch, last->relation) : status;
}
