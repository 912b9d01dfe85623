#include "shared.h"

#include <string.h>

#include "slots.h"

static int reserve(Shared *shared, uint32_t threads, uint64_t more) {
    Relation *relation = shared->relation;
    uint64_t rows = relation->count + more + (uint64_t)threads * AT_ONCE;
    if (rows > MOST_ROWS) return TOO_MANY_ROWS;
    int status = relation_reserve(relation, (uint32_t)rows);
    if (status < 0) return status;
    uint64_t most = ((uint64_t)5 << relation->hash.bits) / 8 - 1; /* see FULL */
    shared->limit = most < relation->capacity ? (uint32_t)most : relation->capacity;
    shared->taken = relation->count;
    return DONE;
}

int shared_begin(Shared *shared, Relation *relation, uint32_t threads) {
    *shared = (Shared){.relation = relation};
    return reserve(shared, threads, 0);
}

int shared_add(Shared *shared, Share *share, const int64_t *row, uint64_t hash) {
    Relation *relation = shared->relation;
    uint32_t *slots = relation->hash.slots;
    uint32_t mask = mask_of(&relation->hash), tag = tag_of(hash, mask), at = start_of(hash, mask), is_written = 0;
    for (;;) {
        uint32_t found = LOAD(&slots[at]);
        if (found) {
            if ((found & ~mask) == tag && is_row(relation, (found & mask) - 1, row)) return KNOWN;
            at = (at + 1) & mask;
            continue;
        }
        if (!is_written) {
            if (relation->narrow && !fits_narrow(row, relation->width)) {
                STORE(&shared->wide, 1);
                return NO_ROOM;
            }
            if (share->next == share->end) {
                uint32_t first = ADD_TO(&shared->taken, AT_ONCE);
                if (first > shared->limit || shared->limit - first < AT_ONCE) return NO_ROOM;
                *share = (Share){first, first + AT_ONCE};
            }
            store_row(relation, share->next, row);
            is_written = 1;
        }
        if (replace_zero(&slots[at], tag | (share->next + 1))) {
            share->next++;
            return ADDED;
        }
    }
}

static int is_unused(Share **shares, uint32_t threads, uint32_t row) {
    for (uint32_t i = 0; i < threads; i++)
        if (row >= shares[i]->next && row < shares[i]->end) return 1;
    return 0;
}

/* Give a row another number. */
static void move(Relation *relation, uint32_t row, uint32_t to) {
    uint64_t hash = hash_of_row(relation, row);
    uint32_t mask = mask_of(&relation->hash), at = start_of(hash, mask);
    while ((relation->hash.slots[at] & mask) != row + 1) at = (at + 1) & mask;
    relation->hash.slots[at] = tag_of(hash, mask) | (to + 1);
    memcpy((char *)relation->words + to * row_bytes(relation), (char *)relation->words + row * row_bytes(relation),
           row_bytes(relation));
}

void shared_settle(Shared *shared, Share **shares, uint32_t threads) {
    Relation *relation = shared->relation;
    uint32_t top = relation->count, unused = 0;
    for (uint32_t i = 0; i < threads; i++) {
        unused += shares[i]->end - shares[i]->next;
        if (shares[i]->end > top) top = shares[i]->end;
    }
    /* numbers are taken one after the other, so those of threads that took more since lie below */
    relation->count = top - unused;
    for (uint32_t i = 0; i < threads; i++)
        for (uint32_t row = shares[i]->next; row < shares[i]->end && row < relation->count; row++) {
            do top--;
            while (is_unused(shares, threads, top));
            move(relation, top, row);
        }
    for (uint32_t i = 0; i < threads; i++) *shares[i] = (Share){0, 0};
}

int shared_grow(Shared *shared, Share **shares, uint32_t threads) {
    Relation *relation = shared->relation;
    int status = DONE;
    shared_settle(shared, shares, threads);
    shared->limit = 0; /* if there is no memory, nobody adds a row any more */
    if (shared->wide && relation->narrow) status = relation_widen(relation);
    if (status == DONE) status = reserve(shared, threads, relation->count / 2);
    STORE(&shared->wanted, 0);
    return status;
}
