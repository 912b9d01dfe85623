# Maps to a best value of `best.c`, for Python; part of _machine.pyx.

cdef extern from "best.h" nogil:
    ctypedef int COrder "enum Order"
    ctypedef struct CBest "Best":
        CRelation *keys
        CRelation *facts
        int64_t *values
        uint32_t *depths
        uint32_t column
    ctypedef struct CSettling "Settling":
        int in_order
        uint32_t count
    CSettling *settling_new()
    void settling_free(CSettling *settling)
    CBest *settling_map(CSettling *settling, CRelation *keys, CRelation *facts, uint32_t column, COrder order, int greatest)
    int best_follow(CBest *best, CPlan *plan)
    int best_offer(CBest *best, const int64_t *row, uint64_t hash)
    int64_t settling_run(CSettling *settling, uint64_t most)
    int64_t settling_round(CSettling *settling)

cdef extern from "relation.h" nogil:
    uint64_t relation_hash(const CRelation *relation, const int64_t *row)


cdef class Settling:
    """Maps to a best value, settled together in the order of their values.

    After an error none of its methods may be called again.
    """

    cdef CSettling *c
    cdef list held  # relations and plans, which must live as long as the maps

    def __cinit__(self):
        self.held = []
        self.c = settling_new()
        if self.c == NULL:
            raise MemoryError

    def __dealloc__(self):
        settling_free(self.c)

    def add(self, Relation facts, int column, bint greatest):
        """Another map: it has the facts of a relation, with the value in `column`."""
        cdef BestMap made = BestMap.__new__(BestMap)
        kinds = facts.kinds[:column] + facts.kinds[column + 1 :]
        made.keys, made.facts, made.settling = Relation(kinds, facts.symbols), facts, self
        made.c = settling_map(self.c, made.keys.c, facts.c, <uint32_t>column, <COrder>facts.kind[column], greatest)
        if made.c == NULL:
            raise MemoryError
        self.held += [made.keys, facts]
        return made

    @property
    def in_order(self):
        """Whether no rule has offered a better value than the one that it came from."""
        return self.c.in_order != 0

    @property
    def pending(self):
        """The offers that wait, some of them out of date."""
        return self.c.count

    def run(self, uint64_t most):
        """Pass on about `most` facts in the order of their values; return their number."""
        cdef int64_t passed
        with nogil:
            passed = settling_run(self.c, most)
        return self.end(passed)

    def round(self):
        """Pass on all that waits; return the number of facts."""
        cdef int64_t passed
        with nogil:
            passed = settling_round(self.c)
        return self.end(passed)

    cdef object end(self, int64_t passed):
        if passed >= 0:
            PyErr_CheckSignals()
            return passed
        for one in self.held:
            if isinstance(one, Plan):
                (<Plan>one).end(STOPPED if (<Plan>one).error is not None else 0)
        if passed == UNDEFINED:
            raise Undefined
        raise _failure(<int>passed)


cdef class BestMap:
    """A map of a `Settling`: plans offer rows (key…, value) to `keys`, and read `facts`."""

    cdef CBest *c
    cdef readonly Relation keys, facts
    cdef Settling settling

    def offer(self, Relation rows):
        """Offer the values of all rows of a relation like `facts`."""
        cdef int64_t *words = <int64_t *>PyMem_Malloc((rows.c.width + 1) * sizeof(int64_t))
        cdef uint32_t row, column, place
        cdef int status
        if words == NULL:
            raise MemoryError
        try:
            for row in range(rows.c.count):
                place = 0
                for column in range(rows.c.width):
                    if column != self.c.column:
                        words[place] = relation_word(rows.c, row, column)
                        place += 1
                words[place] = relation_word(rows.c, row, self.c.column)
                status = best_offer(self.c, words, relation_hash(self.keys.c, words))
                if status < 0:
                    self.settling.end(status)
        finally:
            PyMem_Free(words)

    def follow(self, Plan plan):
        """Let a plan run on facts that are settled.  What its aggregates read is complete."""
        self.settling.held.append(plan)
        if best_follow(self.c, plan.c) < 0:
            raise MemoryError

    def settled(self):
        """The facts of all keys, in a relation: `facts`, unless some were settled more than once."""
        cdef Relation found
        cdef int64_t *words
        cdef uint32_t key, column, place
        cdef int status
        if self.facts.c.count == self.keys.c.count:
            return self.facts
        found = Relation(self.facts.kinds, self.facts.symbols)
        words = <int64_t *>PyMem_Malloc((self.facts.c.width + 1) * sizeof(int64_t))
        if words == NULL:
            raise MemoryError
        try:
            for key in range(self.keys.c.count):
                place = 0
                for column in range(self.facts.c.width):
                    if column == self.c.column:
                        words[column] = self.c.values[key]
                    else:
                        words[column] = relation_word(self.keys.c, key, place)
                        place += 1
                status = relation_add(found.c, words)
                if status < 0:
                    raise _failure(status)
        finally:
            PyMem_Free(words)
        return found

    def values(self):
        """{key: value}; a key of one column is bare."""
        cdef uint32_t key, width = self.keys.c.width
        cdef int kind = self.facts.kind[self.c.column]
        cdef dict out = {}
        for key in range(self.keys.c.count):
            if width == 1:
                at = _value(relation_word(self.keys.c, key, 0), self.keys.kind[0], self.keys.symbols)
            else:
                at = self.keys.row(key)
            out[at] = _value(self.c.values[key], kind, self.keys.symbols)
        return out

    def depths(self):
        """{key: depth}, of the keys whose depth is not 0."""
        cdef uint32_t key
        cdef dict out = {}
        for key in range(self.keys.c.count):
            if self.c.depths[key]:
                row = self.keys.row(key)
                out[row[0] if len(row) == 1 else row] = self.c.depths[key]
        return out

    def check(self):
        """Assert the invariants of `best.h` that hold when nothing waits."""
        self.keys.check()
        if self.settling.c.in_order and not self.settling.c.count:
            assert self.facts.c.count == self.keys.c.count, "B3"
