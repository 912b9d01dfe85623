/* Hashes, the slots of a hash set or of an index, and rows where they are stored. */
#ifndef EVERLOG_SLOTS_H
#define EVERLOG_SLOTS_H

#include <stdlib.h>

#include "atomic.h"
#include "relation.h"

#define FIRST_BITS 4
#define FULL(count, bits) ((uint64_t)(count) >= ((uint64_t)5 << (bits)) / 8) /* at most 5/8 of the slots */

static inline uint64_t mixed(uint64_t hash, int64_t word) {
    hash = (hash ^ (uint64_t)word) * 0x9E3779B97F4A7C15u;
    return hash ^ (hash >> 32);
}

static inline uint64_t hash_of(const int64_t *words, uint32_t width) {
    uint64_t hash = 0;
    for (uint32_t i = 0; i < width; i++) hash = mixed(hash, words[i]);
    return hash * 0xD6E8FEB86659FD93u;
}

/* A slot has 32 bits: its low `bits` hold a number + 1 (0: empty), the others bits of the hash, which
 * tell most other keys apart without a look at them.  Numbers are below 5/8 · 2^bits, so they fit. */
static inline uint32_t mask_of(const Hash *hash) { return (uint32_t)(((uint64_t)1 << hash->bits) - 1); }
static inline uint32_t tag_of(uint64_t hash, uint32_t mask) { return (uint32_t)(hash >> 32) & ~mask; }
static inline uint32_t start_of(uint64_t hash, uint32_t mask) { return (uint32_t)(hash >> 8) & mask; }

static inline void put(Hash *table, uint64_t hash, uint32_t number) {
    uint32_t mask = mask_of(table), at = start_of(hash, mask);
    while (table->slots[at]) at = (at + 1) & mask;
    table->slots[at] = tag_of(hash, mask) | (number + 1);
}

/* Room for `count` numbers; the slots are empty afterwards if there was none.  ADDED: they are. */
static inline int make_room(Hash *table, uint64_t count) {
    int bits = table->slots ? table->bits : FIRST_BITS;
    while (FULL(count, bits)) bits++;
    if (table->slots && bits == table->bits) return DONE;
    if (bits > 32) return TOO_MANY_ROWS;
    uint32_t *slots = calloc((size_t)1 << bits, sizeof *slots);
    if (!slots) return NO_MEMORY;
    free(table->slots);
    table->slots = slots;
    table->bits = bits;
    return ADDED;
}

static inline uint64_t hash_bytes(const Hash *hash) { return hash->slots ? sizeof(uint32_t) << hash->bits : 0; }

static inline size_t row_bytes(const Relation *relation) {
    return (size_t)relation->width * (relation->narrow ? sizeof(int32_t) : sizeof(int64_t));
}

static inline uint64_t hash_of_row(const Relation *relation, uint32_t row) {
    uint64_t hash = 0;
    for (uint32_t i = 0; i < relation->width; i++) hash = mixed(hash, relation_word(relation, row, i));
    return hash * 0xD6E8FEB86659FD93u;
}

static inline int is_row(const Relation *relation, uint32_t row, const int64_t *words) {
    uint64_t at = (uint64_t)row * relation->width;
    if (relation->narrow) {
        const int32_t *stored = (const int32_t *)relation->words + at;
        for (uint32_t i = 0; i < relation->width; i++)
            if (stored[i] != words[i]) return 0;
    } else {
        const int64_t *stored = (const int64_t *)relation->words + at;
        for (uint32_t i = 0; i < relation->width; i++)
            if (stored[i] != words[i]) return 0;
    }
    return 1;
}

static inline int fits_narrow(const int64_t *row, uint32_t width) {
    for (uint32_t i = 0; i < width; i++)
        if (row[i] != (int32_t)row[i]) return 0;
    return 1;
}

static inline void store_row(Relation *relation, uint32_t row, const int64_t *words) {
    uint64_t place = (uint64_t)row * relation->width;
    if (relation->narrow)
        for (uint32_t i = 0; i < relation->width; i++) ((int32_t *)relation->words)[place + i] = (int32_t)words[i];
    else
        for (uint32_t i = 0; i < relation->width; i++) ((int64_t *)relation->words)[place + i] = words[i];
}

#endif
