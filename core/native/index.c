#include <string.h>

#include "slots.h"

#define AHEAD 16 /* groups that are prefetched before they are filled */

static inline uint64_t hash_of_key(const Index *index, uint32_t row) {
    uint64_t hash = 0;
    for (uint32_t i = 0; i < index->width; i++)
        hash = mixed(hash, relation_word(index->relation, row, index->columns[i]));
    return hash * 0xD6E8FEB86659FD93u;
}

void index_free(Index *index) {
    if (!index) return;
    free(index->columns);
    free(index->hash.slots);
    free(index->groups);
    free(index->rows);
    free(index);
}

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

/* Append one row to the group of its key, which has this hash.  A group of n rows has a place for the next power of two. */
static int append(Index *index, uint32_t row, uint64_t hash) {
    uint32_t number;
    int status = group_of(index, row, hash, &number);
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

/* Prefetch the slots of rows [row, end), at most BLOCK, and the groups that are there. */
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

int index_extend(Index *index, uint32_t until) {
    uint64_t hashes[BLOCK];
    if (!index->covered && !index->group_count) return build(index, until);
    for (uint32_t first = index->covered; index->covered < until; index->covered++) {
        uint32_t place = (index->covered - first) % BLOCK;
        if (!place) fetch_groups(index, index->covered, until - index->covered < BLOCK ? until : index->covered + BLOCK, hashes);
        int status = append(index, index->covered, hashes[place]);
        if (status != DONE) return status;
    }
    return DONE;
}

Index *index_new(const Relation *relation, const uint32_t *columns, uint32_t width) {
    Index *index = calloc(1, sizeof *index);
    if (!index) return NULL;
    index->relation = relation;
    index->width = width;
    memset(index->free, 0xFF, sizeof index->free);
    index->columns = malloc(width ? width * sizeof *columns : 1);
    if (index->columns) {
        memcpy(index->columns, columns, width * sizeof *columns);
        if (index_extend(index, relation->hi) == DONE) return index;
    }
    index_free(index);
    return NULL;
}

uint64_t index_bytes(const Index *index) {
    return sizeof *index + hash_bytes(&index->hash) + index->group_capacity * sizeof(Group) +
           index->capacity * sizeof(uint32_t);
}

int index_is_right(const Index *index) {
    uint64_t seen = 0;
    for (uint32_t group = 0; group < index->group_count; group++) {
        const Group *one = &index->groups[group];
        const uint32_t *rows = one->count == 1 ? &one->first : index->rows + one->at;
        for (uint32_t i = 0; i < one->count; i++) {
            if (rows[i] >= index->covered || !same_key(index, one->first, rows[i])) return 0;
            if (i && rows[i] <= rows[i - 1]) return 0;
            seen++;
        }
    }
    return seen == index->covered && index->covered == index->relation->hi;
}
