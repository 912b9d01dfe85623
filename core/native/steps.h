/* What single operations do, for both loops over them: row by row (plan.c) and in blocks (block.c). */
#ifndef EVERLOG_STEPS_H
#define EVERLOG_STEPS_H

#include <string.h>

#include "plan.h"

#define AHEAD 8 /* rows of a loop that are on their way from memory */

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

static inline int holds(enum Code code, int64_t a, int64_t b) {
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

static inline int64_t computed(enum Code code, int64_t a, int64_t b) {
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

/* ── rows ─────────────────────────────────────────────────────────────────────────────────── */

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

/* Prefetch a row that the loop reaches soon. */
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

static inline int is_filled(const Op *op) {
    return limit_of(op) > (op->version == DELTA ? op->relation->lo : 0);
}

#endif
