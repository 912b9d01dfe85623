/* Lets one allocation of the compiled machine fail: the n-th from now, if `allocations_left` is n. */
#ifndef FAILING_ALLOCATIONS_H
#define FAILING_ALLOCATIONS_H
#include <stdlib.h>

__attribute__((weak)) long allocations_left = 0;

static inline int allocation_fails(void) {
    return allocations_left > 0 && __atomic_sub_fetch(&allocations_left, 1, __ATOMIC_SEQ_CST) == 0;
}
static inline void *failing_malloc(size_t size) { return allocation_fails() ? NULL : malloc(size); }
static inline void *failing_calloc(size_t n, size_t size) { return allocation_fails() ? NULL : calloc(n, size); }
static inline void *failing_realloc(void *at, size_t size) { return allocation_fails() ? NULL : realloc(at, size); }
#define malloc(size) failing_malloc(size)
#define calloc(n, size) failing_calloc(n, size)
#define realloc(at, size) failing_realloc(at, size)
#endif
