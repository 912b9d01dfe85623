/* 32-bit words that several threads read and write: what a thread wrote before it published a word, the
 * others see once they have read that word. */
#ifndef EVERLOG_ATOMIC_H
#define EVERLOG_ATOMIC_H

#include <stdint.h>

#if defined(__GNUC__) || defined(__clang__)
#define LOAD(word) __atomic_load_n(word, __ATOMIC_ACQUIRE)
#define STORE(word, value) __atomic_store_n(word, value, __ATOMIC_RELEASE)
#define ADD_TO(word, value) __atomic_fetch_add(word, value, __ATOMIC_RELAXED) /* what it was before */
static inline int replace_zero(uint32_t *word, uint32_t value) {
    uint32_t zero = 0;
    return __atomic_compare_exchange_n(word, &zero, value, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}
#else
#include <intrin.h>
#define LOAD(word) (*(const volatile uint32_t *)(word))
#define STORE(word, value) ((void)_InterlockedExchange((volatile long *)(word), (long)(value)))
#define ADD_TO(word, value) ((uint32_t)_InterlockedExchangeAdd((volatile long *)(word), (long)(value)))
static inline int replace_zero(uint32_t *word, uint32_t value) {
    return _InterlockedCompareExchange((volatile long *)word, (long)value, 0) == 0;
}
#endif

#endif
