#include "relation.h"

#include <stdlib.h>
#include <string.h>

#include "best.h"

/* ── hashing ──────────────────────────────────────────────────────────────────────────────── */

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

static inline uint64_t hash_of_row(const Relation *relation, uint32_t row) {
    uint64_t hash = 0;
    for (uint32_t i = 0; i < relation->width; i++) hash = mixed(hash, relation_word(relation, row, i));
    return hash * 0xD6E8FEB86659FD93u;
}

static inline uint64_t hash_of_key(const Index *index, uint32_t row) {
    uint64_t hash = 0;
    for (uint32_t i = 0; i < index->width; i++)
        hash = mixed(hash, relation_word(index->relation, row, index->columns[i]));
    return hash * 0xD6E8FEB86659FD93u;
}

/* A slot has 32 bits: its low `bits` hold a number + 1 (0: empty), the others bits of the hash, which
 * tell most other keys apart without a look at them.  Numbers are below 5/8 · 2^bits, so they fit. */
static inline uint32_t mask_of(const Hash *hash) { return (uint32_t)(((uint64_t)1 << hash->bits) - 1); }
static inline uint32_t tag_of(uint64_t hash, uint32_t mask) { return (uint32_t)(hash >> 32) & ~mask; }
static inline uint32_t start_of(uint64_t hash, uint32_t mask) { return (uint32_t)(hash >> 8) & mask; }

static void put(Hash *table, uint64_t hash, uint32_t number) {
    uint32_t mask = mask_of(table), at = start_of(hash, mask);
    while (table->slots[at]) at = (at + 1) & mask;
    table->slots[at] = tag_of(hash, mask) | (number + 1);
}

/* Room for `count` numbers; the slots are empty afterwards if there was none.  ADDED: they are. */
static int make_room(Hash *table, uint64_t count) {
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

/* ── rows ─────────────────────────────────────────────────────────────────────────────────── */

static inline size_t row_bytes(const Relation *relation) {
    return (size_t)relation->width * (relation->narrow ? sizeof(int32_t) : sizeof(int64_t));
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

Relation *relation_new(uint32_t width) {
    Relation *relation = calloc(1, sizeof *relation);
    if (!relation) return NULL;
    relation->width = width;
    relation->narrow = 1;
    return relation;
}

static void index_free(Index *index) {
    if (!index) return;
    free(index->columns);
    free(index->hash.slots);
    free(index->groups);
    free(index->rows);
    free(index);
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

static int widen(Relation *relation) {
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

/* Put the rows into new slots, which are asked for a block ahead. */
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

static int make_room_for_row(Relation *relation) {
    if (relation->count == relation->capacity) {
        if (relation->count >= MOST_ROWS) return TOO_MANY_ROWS;
        uint64_t capacity = relation->capacity < 8 ? 8 : relation->capacity + (uint64_t)relation->capacity / 2;
        if (capacity > MOST_ROWS) capacity = MOST_ROWS;
        size_t bytes = row_bytes(relation) * (size_t)capacity;
        void *words = realloc(relation->words, bytes ? bytes : 1);
        if (!words) return NO_MEMORY;
        relation->words = words;
        relation->capacity = (uint32_t)capacity;
    }
    int status = make_room(&relation->hash, (uint64_t)relation->count + 1);
    if (status == ADDED) rehash(relation);
    return status < 0 ? status : DONE;
}

/* The slot of a row, or the empty one at which it would be put. */
static inline uint32_t slot_of(const Relation *relation, const int64_t *row, uint64_t hash) {
    const uint32_t *slots = relation->hash.slots;
    uint32_t mask = mask_of(&relation->hash), tag = tag_of(hash, mask), at = start_of(hash, mask), found;
    while ((found = slots[at]) != 0) {
        if ((found & ~mask) == tag && is_row(relation, (found & mask) - 1, row)) break;
        at = (at + 1) & mask;
    }
    return at;
}

static inline uint32_t find_hashed(const Relation *relation, const int64_t *row, uint64_t hash) {
    uint32_t found = relation->hash.slots[slot_of(relation, row, hash)];
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
        uint32_t slot = relation->hash.slots[start_of(hashes[i], mask)];
        if (slot && (slot & ~mask) == tag_of(hashes[i], mask))
            PREFETCH((const char *)relation->words + ((slot & mask) - 1) * row_bytes(relation));
    }
    for (uint32_t i = 0; i < count; i++) found[i] = find_hashed(relation, rows + (size_t)i * width, hashes[i]);
}

static inline int fits_narrow(const int64_t *row, uint32_t width) {
    for (uint32_t i = 0; i < width; i++)
        if (row[i] != (int32_t)row[i]) return 0;
    return 1;
}

int relation_put(Relation *relation, const int64_t *row, uint64_t hash, uint32_t *number) {
    uint32_t at = 0;
    if (relation->hash.slots) {
        at = slot_of(relation, row, hash);
        *number = (relation->hash.slots[at] & mask_of(&relation->hash)) - 1;
        if (relation->hash.slots[at]) return KNOWN;
    }
    int status = DONE;
    if (relation->narrow && !fits_narrow(row, relation->width)) status = widen(relation);
    if (status == DONE && (relation->count == relation->capacity || FULL(relation->count + 1, relation->hash.bits))) {
        status = make_room_for_row(relation);
        if (status == DONE) at = slot_of(relation, row, hash);
    }
    if (status != DONE) return status;
    uint64_t place = (uint64_t)relation->count * relation->width;
    if (relation->narrow)
        for (uint32_t i = 0; i < relation->width; i++) ((int32_t *)relation->words)[place + i] = (int32_t)row[i];
    else
        for (uint32_t i = 0; i < relation->width; i++) ((int64_t *)relation->words)[place + i] = row[i];
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

static inline void fetch_row(const Relation *relation, uint64_t hash) {
    if (!relation->hash.slots) return;
    uint32_t mask = mask_of(&relation->hash), found = relation->hash.slots[start_of(hash, mask)];
    if (found) PREFETCH((const char *)relation->words + ((found & mask) - 1) * row_bytes(relation));
}

int relation_add(Relation *relation, const int64_t *row) {
    return add_hashed(relation, row, hash_of(row, relation->width));
}

/* The words of a row in a batch: an offer to a map has a value behind the key. */
static inline uint32_t words_of(const Relation *relation) { return relation->width + (relation->best != NULL); }

int batch_put(Batch *batch, Relation *relation) {
    uint64_t hash = hash_of(batch->rows + (size_t)batch->count * words_of(relation), relation->width);
    fetch_slot(relation, hash);
    batch->hashes[batch->count] = hash;
    return ++batch->count == BATCH ? batch_flush(batch, relation) : DONE;
}

int batch_flush(Batch *batch, Relation *relation) {
    int count = batch->count, status = DONE;
    batch->count = 0;
    for (int i = 0; i < count; i++) fetch_row(relation, batch->hashes[i]);
    for (int i = 0; i < count && status >= 0; i++) {
        const int64_t *row = batch->rows + (size_t)i * words_of(relation);
        status = relation->best ? best_offer(relation->best, row, batch->hashes[i])
                                : add_hashed(relation, row, batch->hashes[i]);
    }
    return status < 0 ? status : DONE;
}

#define AHEAD 16 /* groups that are asked for before they are filled */

/* ── indexes ──────────────────────────────────────────────────────────────────────────────── */

static inline int has_key(const Index *index, uint32_t group, const int64_t *key) {
    uint32_t row = index->groups[group].first;
    for (uint32_t i = 0; i < index->width; i++)
        if (relation_word(index->relation, row, index->columns[i]) != key[i]) return 0;
    return 1;
}

static inline int same_key(const Index *index, uint32_t one, uint32_t other) {
    for (uint32_t i = 0; i < index->width; i++)
        if (relation_word(index->relation, one, index->columns[i]) !=
            relation_word(index->relation, other, index->columns[i]))
            return 0;
    return 1;
}

static inline uint32_t index_find_hashed(
    const Index *index, const int64_t *key, uint64_t hash, const uint32_t **rows) {
    uint32_t mask = mask_of(&index->hash), tag = tag_of(hash, mask), at = start_of(hash, mask), found;
    while ((found = index->hash.slots[at]) != 0) {
        uint32_t number = (found & mask) - 1;
        if ((found & ~mask) == tag && has_key(index, number, key)) {
            const Group *group = &index->groups[number];
            *rows = group->count == 1 ? &group->first : index->rows + group->at;
            return group->count;
        }
        at = (at + 1) & mask;
    }
    return 0;
}

uint32_t index_find(const Index *index, const int64_t *key, const uint32_t **rows) {
    return index->group_count ? index_find_hashed(index, key, hash_of(key, index->width), rows) : 0;
}

void index_find_many(
    const Index *index, const int64_t *keys, uint32_t count, const uint32_t **rows, uint32_t *counts) {
    uint64_t hashes[BLOCK];
    uint32_t groups[BLOCK], width = index->width, mask;
    if (!index->group_count) {
        for (uint32_t i = 0; i < count; i++) counts[i] = 0;
        return;
    }
    mask = mask_of(&index->hash);
    for (uint32_t i = 0; i < count; i++) {
        hashes[i] = hash_of(keys + (size_t)i * width, width);
        PREFETCH(&index->hash.slots[start_of(hashes[i], mask)]);
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t slot = index->hash.slots[start_of(hashes[i], mask)];
        groups[i] = slot && (slot & ~mask) == tag_of(hashes[i], mask) ? (slot & mask) - 1 : NO_ROW;
        if (groups[i] != NO_ROW) PREFETCH(&index->groups[groups[i]]);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (groups[i] == NO_ROW) continue;
        const Group *group = &index->groups[groups[i]];
        PREFETCH((const char *)index->relation->words + group->first * row_bytes(index->relation));
        if (group->count > 1) PREFETCH(index->rows + group->at);
    }
    for (uint32_t i = 0; i < count; i++)
        counts[i] = index_find_hashed(index, keys + (size_t)i * width, hashes[i], &rows[i]);
}

static int make_room_for_group(Index *index) {
    if (index->group_count == index->group_capacity) {
        uint64_t capacity = index->group_capacity < 8 ? 8 : index->group_capacity + (uint64_t)index->group_capacity / 2;
        Group *groups = realloc(index->groups, capacity * sizeof *groups);
        if (!groups) return NO_MEMORY;
        index->groups = groups;
        index->group_capacity = (uint32_t)capacity;
    }
    int status = make_room(&index->hash, (uint64_t)index->group_count + 1);
    if (status == ADDED)
        for (uint32_t group = 0; group < index->group_count; group++)
            put(&index->hash, hash_of_key(index, index->groups[group].first), group);
    return status < 0 ? status : DONE;
}

/* The group of a row's key, which has this hash, made if there is none; `number` gets it. */
static int group_of(Index *index, uint32_t row, uint64_t hash, uint32_t *number) {
    if (index->hash.slots) {
        uint32_t mask = mask_of(&index->hash), tag = tag_of(hash, mask), at = start_of(hash, mask), found;
        while ((found = index->hash.slots[at]) != 0) {
            *number = (found & mask) - 1;
            if ((found & ~mask) == tag && same_key(index, index->groups[*number].first, row)) return KNOWN;
            at = (at + 1) & mask;
        }
    }
    int status = make_room_for_group(index);
    if (status != DONE) return status;
    *number = index->group_count;
    index->groups[*number] = (Group){row, 0, 0};
    put(&index->hash, hash, index->group_count++);
    return ADDED;
}

static int reserve(Index *index, uint64_t more) {
    if (index->used + more <= index->capacity) return DONE;
    uint64_t capacity = index->capacity + index->capacity / 2;
    if (capacity < index->used + more) capacity = index->used + more;
    uint32_t *rows = realloc(index->rows, capacity * sizeof *rows);
    if (!rows) return NO_MEMORY;
    index->rows = rows;
    index->capacity = capacity;
    return DONE;
}

/* A place for 2^size row numbers. */
static int take_place(Index *index, int size, uint64_t *place) {
    if (index->free[size] != UINT64_MAX) {
        *place = index->free[size];
        memcpy(&index->free[size], index->rows + *place, sizeof(uint64_t));
        return DONE;
    }
    int status = reserve(index, (uint64_t)1 << size);
    *place = index->used;
    if (status == DONE) index->used += (uint64_t)1 << size;
    return status;
}

static void give_place(Index *index, int size, uint64_t place) {
    memcpy(index->rows + place, &index->free[size], sizeof(uint64_t));
    index->free[size] = place;
}

/* Append one row to its group.  A group of n rows has a place for the next power of two. */
static int append(Index *index, uint32_t row) {
    uint32_t number;
    int status = group_of(index, row, hash_of_key(index, row), &number);
    if (status < 0) return status;
    Group *group = &index->groups[number];
    uint32_t count = group->count;
    int is_packed = group->at < index->packed;
    if (count && (count == 1 || is_packed || !(count & (count - 1)))) {
        int size = 1;
        while ((uint64_t)1 << size <= count) size++;
        uint64_t place;
        status = take_place(index, size, &place);
        if (status != DONE) return status;
        memcpy(index->rows + place, count == 1 ? &group->first : index->rows + group->at, count * sizeof(uint32_t));
        if (count > 1 && !is_packed) give_place(index, size - 1, group->at);
        group->at = place;
    }
    if (count) index->rows[group->at + count] = row;
    group->count = count + 1;
    return DONE;
}

/* Ask for the slots of rows [row, end), at most BLOCK, and for the groups that are there. */
static void fetch_groups(const Index *index, uint32_t row, uint32_t end, uint64_t *hashes) {
    for (uint32_t i = row; i < end; i++) hashes[i - row] = hash_of_key(index, i);
    if (!index->hash.slots) return;
    uint32_t mask = mask_of(&index->hash);
    for (uint32_t i = 0; i < end - row; i++) PREFETCH(&index->hash.slots[start_of(hashes[i], mask)]);
    for (uint32_t i = 0; i < end - row; i++) {
        uint32_t slot = index->hash.slots[start_of(hashes[i], mask)];
        if (slot && (slot & ~mask) == tag_of(hashes[i], mask)) PREFETCH(&index->groups[(slot & mask) - 1]);
    }
    for (uint32_t i = 0; i < end - row; i++) {
        uint32_t slot = index->hash.slots[start_of(hashes[i], mask)];
        if (slot && (slot & ~mask) == tag_of(hashes[i], mask))
            PREFETCH((const char *)index->relation->words +
                     index->groups[(slot & mask) - 1].first * row_bytes(index->relation));
    }
}

static void empty(Index *index) {
    free(index->hash.slots);
    index->hash.slots = NULL;
    index->group_count = 0;
}

/* Fill an empty index, which stays empty after a failure: count the rows of each group, then put them where they belong. */
static int build(Index *index, uint32_t until) {
    uint32_t *numbers = malloc(until ? until * sizeof *numbers : 1);
    if (!numbers) return NO_MEMORY;
    int status = DONE;
    uint64_t hashes[BLOCK];
    for (uint32_t row = 0; row < until && status >= 0; row++) {
        if (row % BLOCK == 0) fetch_groups(index, row, until - row < BLOCK ? until : row + BLOCK, hashes);
        status = group_of(index, row, hashes[row % BLOCK], &numbers[row]);
        if (status >= 0) index->groups[numbers[row]].count++;
    }
    uint64_t places = 0;
    for (uint32_t group = 0; status >= 0 && group < index->group_count; group++) {
        Group *one = &index->groups[group];
        one->at = places;
        if (one->count > 1) places += one->count;
        one->count = 0;
    }
    if (status >= 0) status = reserve(index, places);
    if (status == DONE) {
        for (uint32_t row = 0; row < until; row++) {
            if (row + AHEAD < until) PREFETCH(&index->groups[numbers[row + AHEAD]]);
            Group *group = &index->groups[numbers[row]];
            uint64_t end = numbers[row] + 1 < index->group_count ? index->groups[numbers[row] + 1].at : places;
            if (end > group->at) index->rows[group->at + group->count] = row;
            group->count++;
        }
        index->used = index->packed = places;
        index->covered = until;
    }
    free(numbers);
    if (status < 0) empty(index); /* groups that are only counted say nothing of where rows are */
    return status < 0 ? status : DONE;
}

static int extend(Index *index, uint32_t until) {
    if (!index->covered && !index->group_count) return build(index, until);
    for (; index->covered < until; index->covered++) {
        int status = append(index, index->covered);
        if (status != DONE) return status;
    }
    return DONE;
}

int relation_advance(Relation *relation) {
    relation->lo = relation->hi;
    relation->hi = relation->count;
    for (uint32_t i = 0; i < relation->index_count; i++) {
        int status = extend(relation->indexes[i], relation->hi);
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
    index = calloc(1, sizeof *index);
    if (!index) return NULL;
    index->relation = relation;
    index->width = width;
    memset(index->free, 0xFF, sizeof index->free);
    index->columns = malloc(width ? width * sizeof *columns : 1);
    Index **indexes = realloc(relation->indexes, (relation->index_count + 1) * sizeof *indexes);
    if (indexes) relation->indexes = indexes;
    if (!index->columns || !indexes) {
        index_free(index);
        return NULL;
    }
    memcpy(index->columns, columns, width * sizeof *columns);
    if (extend(index, relation->hi) != DONE) {
        index_free(index);
        return NULL;
    }
    relation->indexes[relation->index_count++] = index;
    return index;
}

/* ── what tests and limits ask for ────────────────────────────────────────────────────────── */

static uint64_t hash_bytes(const Hash *hash) { return hash->slots ? sizeof(uint32_t) << hash->bits : 0; }

uint64_t relation_bytes(const Relation *relation) {
    uint64_t bytes = sizeof *relation + row_bytes(relation) * relation->capacity + hash_bytes(&relation->hash);
    for (uint32_t i = 0; i < relation->index_count; i++) {
        const Index *index = relation->indexes[i];
        bytes += sizeof *index + hash_bytes(&index->hash) + index->group_capacity * sizeof(Group) +
                 index->capacity * sizeof(uint32_t);
    }
    return bytes;
}

static int check_index(const Relation *relation, const Index *index) {
    uint64_t seen = 0;
    for (uint32_t group = 0; group < index->group_count; group++) {
        const Group *one = &index->groups[group];
        const uint32_t *rows = one->count == 1 ? &one->first : index->rows + one->at;
        for (uint32_t i = 0; i < one->count; i++) {
            if (rows[i] >= index->covered || !same_key(index, one->first, rows[i])) return 3;
            if (i && rows[i] <= rows[i - 1]) return 3;
            seen++;
        }
    }
    return seen == index->covered && index->covered == relation->hi ? 0 : 3;
}

int relation_check(const Relation *relation) {
    int64_t words[256];
    for (uint32_t row = 0; row < relation->count && relation->hash.slots && relation->width <= 256; row++) {
        for (uint32_t i = 0; i < relation->width; i++) words[i] = relation_word(relation, row, i);
        uint32_t found = relation->hash.slots[slot_of(relation, words, hash_of(words, relation->width))];
        if ((found & mask_of(&relation->hash)) != row + 1) return 1;
    }
    for (uint32_t i = 0; i < relation->index_count; i++)
        if (check_index(relation, relation->indexes[i])) return 3;
    return 0;
}
