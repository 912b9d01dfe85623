#include "relation.h"

#include <string.h>

#include "best.h"
#include "slots.h"

/* ── rows ─────────────────────────────────────────────────────────────────────────────────── */

Relation *relation_new(uint32_t width) {
    Relation *relation = calloc(1, sizeof *relation);
    if (!relation) return NULL;
    relation->width = width;
    relation->narrow = 1;
    return relation;
}

void relation_free(Relation *relation) {
    if (!relation) return;
    for (uint32_t i = 0; i < relation->index_count; i++) index_free(relation->indexes[i]);
    free(relation->indexes);
    free(relation->hash.slots);
    free(relation->words);
    free(relation);
}

void relation_seal(Relation *relation) {
    for (uint32_t i = 0; i < relation->index_count; i++) index_free(relation->indexes[i]);
    free(relation->hash.slots);
    relation->index_count = 0;
    relation->hash = (Hash){0};
    if (relation->count < relation->capacity) { /* room to grow; if it cannot be given back, it stays */
        size_t bytes = row_bytes(relation) * (size_t)relation->count;
        void *words = realloc(relation->words, bytes ? bytes : 1);
        if (!words) return;
        relation->words = words;
        relation->capacity = relation->count;
    }
}

void relation_swap(Relation *one, Relation *other) {
    Relation held = *one;
    *one = *other;
    *other = held;
}

int relation_widen(Relation *relation) {
    size_t words = (size_t)relation->capacity * relation->width;
    int64_t *wide = malloc(words ? words * sizeof *wide : 1);
    if (!wide) return NO_MEMORY;
    const int32_t *stored = relation->words;
    for (size_t i = 0; i < (size_t)relation->count * relation->width; i++) wide[i] = stored[i];
    free(relation->words);
    relation->words = wide;
    relation->narrow = 0;
    return DONE;
}

/* Put the rows into new slots, which are prefetched a block ahead. */
static void rehash(Relation *relation) {
    uint64_t hashes[BLOCK];
    uint32_t mask = mask_of(&relation->hash);
    for (uint32_t from = 0; from < relation->count; from += BLOCK) {
        uint32_t count = relation->count - from < BLOCK ? relation->count - from : BLOCK;
        for (uint32_t i = 0; i < count; i++) {
            hashes[i] = hash_of_row(relation, from + i);
            PREFETCH(&relation->hash.slots[start_of(hashes[i], mask)]);
        }
        for (uint32_t i = 0; i < count; i++) put(&relation->hash, hashes[i], from + i);
    }
}

int relation_open(Relation *relation) {
    if (relation->hash.slots || !relation->count) return DONE;
    int status = make_room(&relation->hash, relation->count);
    if (status == ADDED) rehash(relation);
    return status < 0 ? status : DONE;
}

int relation_reserve(Relation *relation, uint32_t rows) {
    if (rows > relation->capacity) {
        uint64_t capacity = relation->capacity < 8 ? 8 : relation->capacity + (uint64_t)relation->capacity / 2;
        if (capacity < rows) capacity = rows;
        if (capacity > MOST_ROWS) capacity = MOST_ROWS;
        size_t bytes = row_bytes(relation) * (size_t)capacity;
        void *words = realloc(relation->words, bytes ? bytes : 1);
        if (!words) return NO_MEMORY;
        relation->words = words;
        relation->capacity = (uint32_t)capacity;
    }
    int status = make_room(&relation->hash, rows);
    if (status == ADDED) rehash(relation);
    return status < 0 ? status : DONE;
}

/* The slot of a row, or the empty one at which it would be put. */
static inline uint32_t slot_of(const Relation *relation, const int64_t *row, uint64_t hash) {
    const uint32_t *slots = relation->hash.slots;
    uint32_t mask = mask_of(&relation->hash), tag = tag_of(hash, mask), at = start_of(hash, mask), found;
    while ((found = LOAD(&slots[at])) != 0) {
        if ((found & ~mask) == tag && is_row(relation, (found & mask) - 1, row)) break;
        at = (at + 1) & mask;
    }
    return at;
}

static inline uint32_t find_hashed(const Relation *relation, const int64_t *row, uint64_t hash) {
    uint32_t found = LOAD(&relation->hash.slots[slot_of(relation, row, hash)]);
    return found ? (found & mask_of(&relation->hash)) - 1 : NO_ROW;
}

uint32_t relation_find(const Relation *relation, const int64_t *row) {
    return relation->count ? find_hashed(relation, row, hash_of(row, relation->width)) : NO_ROW;
}

void relation_find_many(const Relation *relation, const int64_t *rows, uint32_t count, uint32_t *found) {
    uint64_t hashes[BLOCK];
    uint32_t width = relation->width, mask;
    if (!relation->count) {
        for (uint32_t i = 0; i < count; i++) found[i] = NO_ROW;
        return;
    }
    mask = mask_of(&relation->hash);
    for (uint32_t i = 0; i < count; i++) {
        hashes[i] = hash_of(rows + (size_t)i * width, width);
        PREFETCH(&relation->hash.slots[start_of(hashes[i], mask)]);
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t slot = LOAD(&relation->hash.slots[start_of(hashes[i], mask)]);
        if (slot && (slot & ~mask) == tag_of(hashes[i], mask))
            PREFETCH((const char *)relation->words + ((slot & mask) - 1) * row_bytes(relation));
    }
    for (uint32_t i = 0; i < count; i++) found[i] = find_hashed(relation, rows + (size_t)i * width, hashes[i]);
}

int relation_put(Relation *relation, const int64_t *row, uint64_t hash, uint32_t *number) {
    uint32_t at = 0;
    if (relation->hash.slots) {
        at = slot_of(relation, row, hash);
        *number = (relation->hash.slots[at] & mask_of(&relation->hash)) - 1;
        if (relation->hash.slots[at]) return KNOWN;
    }
    int status = DONE;
    if (relation->narrow && !fits_narrow(row, relation->width)) status = relation_widen(relation);
    if (status == DONE && (relation->count == relation->capacity || FULL(relation->count + 1, relation->hash.bits))) {
        status = relation->count < MOST_ROWS ? relation_reserve(relation, relation->count + 1) : TOO_MANY_ROWS;
        if (status == DONE) at = slot_of(relation, row, hash);
    }
    if (status != DONE) return status;
    store_row(relation, relation->count, row);
    relation->hash.slots[at] = tag_of(hash, mask_of(&relation->hash)) | (relation->count + 1);
    *number = relation->count++;
    return ADDED;
}

static inline int add_hashed(Relation *relation, const int64_t *row, uint64_t hash) {
    uint32_t number;
    return relation_put(relation, row, hash, &number);
}

#define MARKS 4096 /* bits of the words that keys begin with: most rows need no look-up */

static inline uint32_t mark_of(int64_t word) { return (uint32_t)(((uint64_t)word * 0x9E3779B97F4A7C15u) >> 52); }

void relation_search(
    const Relation *relation, const uint32_t *columns, const Relation *keys, uint32_t step, uint32_t most,
    uint32_t *counts, uint32_t *found) {
    uint64_t marks[MARKS / 64] = {0};
    int64_t key[64];
    if (keys->width > 64) return;
    for (uint32_t row = 0; row < keys->count; row++) {
        uint32_t mark = mark_of(relation_word(keys, row, 0));
        marks[mark / 64] |= (uint64_t)1 << mark % 64;
    }
    for (uint64_t row = 0; row < relation->count; row += step) {
        key[0] = relation_word(relation, row, columns[0]);
        uint32_t mark = mark_of(key[0]);
        if (!(marks[mark / 64] >> mark % 64 & 1)) continue;
        for (uint32_t i = 1; i < keys->width; i++) key[i] = relation_word(relation, row, columns[i]);
        uint32_t number = relation_find(keys, key);
        if (number == NO_ROW) continue;
        if (counts[number] < most) found[(uint64_t)number * most + counts[number]] = (uint32_t)row;
        counts[number]++;
    }
}

uint64_t relation_hash(const Relation *relation, const int64_t *row) { return hash_of(row, relation->width); }

static inline void fetch_slot(const Relation *relation, uint64_t hash) {
    if (relation->hash.slots) PREFETCH(&relation->hash.slots[start_of(hash, mask_of(&relation->hash))]);
}

void relation_fetch_row(const Relation *relation, uint64_t hash) {
    if (!relation->hash.slots) return;
    uint32_t mask = mask_of(&relation->hash), found = LOAD(&relation->hash.slots[start_of(hash, mask)]);
    if (found) PREFETCH((const char *)relation->words + ((found & mask) - 1) * row_bytes(relation));
}

int relation_add(Relation *relation, const int64_t *row) {
    return add_hashed(relation, row, hash_of(row, relation->width));
}

/* The words of a row in a batch: an offer to a map has a value behind the key. */
static inline uint32_t words_of(const Relation *relation) { return relation->width + (relation->best != NULL); }

int batch_take(Batch *batch, const Relation *relation) {
    uint64_t hash = hash_of(batch->rows + (size_t)batch->count * words_of(relation), relation->width);
    fetch_slot(relation, hash);
    batch->hashes[batch->count] = hash;
    return ++batch->count == BATCH;
}

int batch_put(Batch *batch, Relation *relation) {
    return batch_take(batch, relation) ? batch_flush(batch, relation) : DONE;
}

int batch_flush(Batch *batch, Relation *relation) {
    int count = batch->count, status = DONE;
    batch->count = 0;
    for (int i = 0; i < count; i++) relation_fetch_row(relation, batch->hashes[i]);
    for (int i = 0; i < count && status >= 0; i++) {
        const int64_t *row = batch->rows + (size_t)i * words_of(relation);
        status = relation->best ? best_offer(relation->best, row, batch->hashes[i])
                                : add_hashed(relation, row, batch->hashes[i]);
    }
    return status < 0 ? status : DONE;
}

/* ── rounds ───────────────────────────────────────────────────────────────────────────────── */

int relation_advance(Relation *relation) {
    relation->lo = relation->hi;
    relation->hi = relation->count;
    for (uint32_t i = 0; i < relation->index_count; i++) {
        int status = index_extend(relation->indexes[i], relation->hi);
        if (status != DONE) return status;
    }
    return DONE;
}

static Index *find_index(const Relation *relation, const uint32_t *columns, uint32_t width) {
    for (uint32_t i = 0; i < relation->index_count; i++) {
        Index *index = relation->indexes[i];
        if (index->width == width && !memcmp(index->columns, columns, width * sizeof *columns)) return index;
    }
    return NULL;
}

Index *relation_index(Relation *relation, const uint32_t *columns, uint32_t width) {
    Index *index = find_index(relation, columns, width);
    if (index) return index;
    Index **indexes = realloc(relation->indexes, (relation->index_count + 1) * sizeof *indexes);
    if (!indexes) return NULL;
    relation->indexes = indexes;
    index = index_new(relation, columns, width);
    if (index) relation->indexes[relation->index_count++] = index;
    return index;
}

/* ── what tests and limits ask for ────────────────────────────────────────────────────────── */

uint64_t relation_bytes(const Relation *relation) {
    uint64_t bytes = sizeof *relation + row_bytes(relation) * relation->capacity + hash_bytes(&relation->hash);
    for (uint32_t i = 0; i < relation->index_count; i++) bytes += index_bytes(relation->indexes[i]);
    return bytes;
}

int relation_check(const Relation *relation) {
    int64_t words[256];
    for (uint32_t row = 0; row < relation->count && relation->hash.slots && relation->width <= 256; row++) {
        for (uint32_t i = 0; i < relation->width; i++) words[i] = relation_word(relation, row, i);
        uint32_t found = relation->hash.slots[slot_of(relation, words, hash_of(words, relation->width))];
        if ((found & mask_of(&relation->hash)) != row + 1) return 1;
    }
    for (uint32_t i = 0; i < relation->index_count; i++)
        if (!index_is_right(relation->indexes[i])) return 3;
    return 0;
}
