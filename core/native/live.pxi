# Living relations of `live.c`, for Python; part of _machine.pyx.

cdef extern from "live.h" nogil:
    ctypedef struct CUnit "Unit":
        uint32_t clock, settled
        int together
        uint64_t work, limit
    ctypedef struct CLife "Life":
        uint32_t seq, count, noted, state
    ctypedef struct CList "List":
        uint32_t *rows
        uint32_t count
    ctypedef struct CNote "Note":
        uint32_t row
        CLife life
    ctypedef struct CLive "Live":
        CRelation *relation
        CLife *lives
        uint32_t living, start, note_count
        CNote *notes
        CList plus, minus, delta, dead
    ctypedef int CMode "enum Mode"
    enum: USED_UP, UNCOUNTABLE, HERE
    CLive *live_new(CRelation *relation, CUnit *unit, int own)
    void live_free(CLive *live)
    void live_begin(CLive *live)
    void live_roll_back(CLive *live)
    int live_set(CLive *live, const int64_t *words, uint32_t seq, uint32_t count)
    int live_fill(CLive *live, const int64_t *seqs, const int64_t *counts)
    int live_came(CLive *live, const int64_t *words)
    int live_went(CLive *live, const int64_t *words)
    void live_settle(CLive *live)
    int live_support(CLive *live, const int64_t *words)
    int live_withdraw(CLive *live, const int64_t *words)
    void live_doom(CLive *live)
    int live_bury(CLive *live)
    void live_take(CLive *live)
    void live_miss(CLive *live)
    int live_revive(CLive *live, const uint32_t *counts)
    int live_clear(CLive *live)
    int live_run(CPlan *plan, CUnit *unit, const CLive *source, const CList *rows, CMode mode, int inner, uint32_t *counts)
    int live_has(const CLive *live, const int64_t *words)
    uint64_t live_bytes(const CLive *live)

cdef enum: LOSE, GAIN, ASK, PROVE, COUNT
_UNLIMITED = 0xFFFFFFFFFFFFFFFF


class UsedUp(Exception):
    """A turn has done all the work that it may."""


class Uncountable(Exception):
    """A row has more derivations than its count can hold, or came too late for its `seq`."""


cdef object _trouble(int status):
    if status == USED_UP:
        return UsedUp()
    if status == UNCOUNTABLE:
        return Uncountable()
    return _failure(status)


cdef class Unit:
    """What the living relations of a recursive unit have in common: moments, and work."""

    cdef CUnit c

    def __cinit__(self):
        self.c.clock, self.c.settled, self.c.together = 1, 1, False
        self.c.work, self.c.limit = 0, _UNLIMITED

    @property
    def work(self):
        """Rows looked at and derivations since `begin`."""
        return self.c.work

    def begin(self, limit=None):
        """Begin to count work; UsedUp is raised beyond a limit."""
        self.c.settled, self.c.together, self.c.work = self.c.clock, False, 0
        self.c.limit = _UNLIMITED if limit is None else limit

    def begin_round(self, bint together):
        """All rows that are there are settled; those of the round come `together` or in an order."""
        self.c.clock += self.c.together
        self.c.settled, self.c.together = self.c.clock, together

    def restart(self):
        """Begin to count moments and work anew: no row of the unit is there."""
        self.c.clock = 1
        self.begin()


def widened(column):
    """The words of an array of integers or floats."""
    cdef const signed char[::1] least
    cdef const short[::1] short
    cdef const int[::1] middle
    cdef Py_ssize_t row, rows = len(column)
    cdef bytearray held
    cdef int64_t *to
    if column.itemsize == sizeof(int64_t):
        return memoryview(column).cast("B")
    held = bytearray((rows + 1) * sizeof(int64_t))
    to = <int64_t *><char *>held
    if column.typecode == "b":
        least = column
        for row in range(rows):
            to[row] = least[row]
    elif column.typecode == "h":
        short = column
        for row in range(rows):
            to[row] = short[row]
    else:
        middle = column
        for row in range(rows):
            to[row] = middle[row]
    return memoryview(held)[: rows * sizeof(int64_t)]


cdef class Words:
    """Rows as words, to be made into tuples when they are read."""

    cdef bytes words
    cdef Py_ssize_t count
    cdef readonly tuple kinds
    cdef readonly Symbols symbols

    def __len__(self):
        return self.count

    def __iter__(self):
        cdef const int64_t *words = <const int64_t *><const char *>self.words
        cdef Py_ssize_t at, column, width = len(self.kinds)
        cdef list kinds = list(self.kinds)
        for at in range(self.count):
            yield tuple([_value(words[at * width + column], kinds[column], self.symbols) for column in range(width)])


cdef class Live:
    """A relation of a living unit: rows, each HERE or GONE, that come and go in turns.

    `own`: the unit derives it; then each row has its `seq` and its count of earlier derivations.
    """

    cdef CLive *c
    cdef readonly Relation relation
    cdef readonly Unit unit

    def __cinit__(self, Relation relation, Unit unit, bint own):
        self.relation, self.unit = relation, unit
        self.c = live_new(relation.c, &unit.c, own)
        if self.c == NULL:
            raise MemoryError

    def __dealloc__(self):
        live_free(self.c)

    def __len__(self):
        return self.c.living

    @property
    def size_in_bytes(self):
        return live_bytes(self.c)

    @property
    def waste(self):
        """The number of rows that are GONE, but still stored."""
        return self.c.relation.count - self.c.living

    cdef int words_of(self, object row, int64_t *words) except -1:
        cdef Py_ssize_t column, width = self.c.relation.width
        if type(row) is not tuple or len(<tuple>row) != width:
            raise NotAWord
        for column in range(width):
            words[column] = _word(<object>(<tuple>row)[column], self.relation.kind[column], self.relation.symbols)
        return 0

    cdef int each(self, object rows, int (*change)(CLive *, const int64_t *) noexcept nogil) except -1:
        cdef int64_t *words = <int64_t *>PyMem_Malloc((self.c.relation.width + 1) * sizeof(int64_t))
        cdef int status
        if words == NULL:
            raise MemoryError
        try:
            for row in rows:
                self.words_of(row, words)
                status = change(self.c, words)
                if status < 0:
                    raise _trouble(status)
        finally:
            PyMem_Free(words)
        return 0

    def __contains__(self, row):
        cdef int64_t *words = <int64_t *>PyMem_Malloc((self.c.relation.width + 1) * sizeof(int64_t))
        if words == NULL:
            raise MemoryError
        try:
            if type(row) is not tuple or not self.relation.symbols.knows(row):
                return False
            self.words_of(row, words)
            return live_has(self.c, words) != 0
        except NotAWord:
            return False
        finally:
            PyMem_Free(words)

    # ── a turn ───────────────────────────────────────────────────────────────────────────────

    def begin(self):
        """Begin a turn, which `roll_back` undoes."""
        live_begin(self.c)

    def roll_back(self):
        live_roll_back(self.c)

    def load(self, rows):
        """Add rows of another relation, outside of losses and gains."""
        cdef int64_t *words = <int64_t *>PyMem_Malloc((self.c.relation.width + 1) * sizeof(int64_t))
        cdef int status
        if words == NULL:
            raise MemoryError
        try:
            for row in rows:
                self.words_of(row, words)
                status = live_set(self.c, words, 0, 0)
                if status < 0:
                    raise _trouble(status)
        finally:
            PyMem_Free(words)
        self.advance()

    def came(self, rows):
        self.each(rows, live_came)
        self.advance()

    def went(self, rows):
        self.each(rows, live_went)

    def settle(self):
        live_settle(self.c)

    def support(self, rows):
        """Base facts come."""
        self.each(rows, live_support)
        self.advance()

    def withdraw(self, rows):
        """Base facts go."""
        self.each(rows, live_withdraw)

    @property
    def coming(self):
        return self.c.plus.count

    @property
    def going(self):
        return self.c.minus.count

    @property
    def missing(self):
        """Rows that went in this turn, and that may come back."""
        return self.c.dead.count

    def doom(self):
        """Begin a round of losses; return the number of rows to follow."""
        live_doom(self.c)
        return self.c.delta.count

    def bury(self):
        cdef int status = live_bury(self.c)
        if status < 0:
            raise _trouble(status)

    def take(self):
        """Begin a round of gains; return the number of rows to follow."""
        live_take(self.c)
        return self.c.delta.count

    def advance(self):
        """Add the rows that came to all indexes."""
        cdef int status
        with nogil:
            status = relation_advance(self.c.relation)
        if status < 0:
            raise _failure(status)

    def revive(self, plans):
        """Bring back the rows that went and still have derivations."""
        live_miss(self.c)
        cdef bytearray held = bytearray((self.c.dead.count + 1) * sizeof(uint32_t))
        cdef uint32_t *counts = <uint32_t *><char *>held
        cdef Plan plan
        cdef int status
        for plan in plans:
            plan.follow(self, &self.c.dead, ASK, True, counts)
        status = live_revive(self.c, counts)
        if status < 0:
            raise _trouble(status)

    def clear(self):
        """Remove all rows."""
        cdef int status = live_clear(self.c)
        if status < 0:
            raise _trouble(status)

    def told(self):
        """The rows that went and those that came in this turn."""
        cdef list gone = [], new = []
        cdef bytearray went = bytearray(), came = bytearray()
        cdef uint32_t i
        cdef CNote *one
        for i in range(self.c.note_count):
            one = &self.c.notes[i]
            if one.life.state == HERE and self.c.lives[one.row].state != HERE:
                self.copy(one.row, went)
            elif one.life.state != HERE and self.c.lives[one.row].state == HERE:
                self.copy(one.row, came)
        for i in range(self.c.start, self.c.relation.count):
            if self.c.lives[i].state == HERE:
                self.copy(i, came)
        return self.as_words(went), self.as_words(came)

    cdef int copy(self, uint32_t row, bytearray into) except -1:
        cdef uint32_t column, width = self.c.relation.width
        cdef Py_ssize_t at = len(into)
        cdef int64_t *words
        into.extend(bytes((width or 1) * sizeof(int64_t)))
        words = <int64_t *>(<char *>into + at)
        for column in range(width):
            words[column] = relation_word(self.c.relation, row, column)
        return 0

    cdef Words as_words(self, bytearray found):
        cdef Words words = Words.__new__(Words)
        words.words, words.kinds, words.symbols = bytes(found), self.relation.kinds, self.relation.symbols
        words.count = len(found) // ((len(words.kinds) or 1) * sizeof(int64_t))
        return words

    # ── reading ──────────────────────────────────────────────────────────────────────────────

    def __iter__(self):
        cdef uint32_t row
        for row in range(self.c.relation.count):
            if self.c.lives[row].state == HERE:
                yield self.relation.row(row)

    def every(self, uint32_t step):
        """The rows at every `step`-th place."""
        cdef uint32_t row
        for row in range(0, self.c.relation.count, step):
            if self.c.lives[row].state == HERE:
                yield self.relation.row(row)

    def columns(self):
        """The words of each column of the rows that are there, then of their `seq` and their counts."""
        cdef uint32_t row, column, width = self.c.relation.width
        cdef const CLife *life
        cdef bytearray held
        cdef int64_t *to
        found = []
        for column in range(width + 2):
            held = bytearray((self.c.living + 1) * sizeof(int64_t))
            to = <int64_t *><char *>held
            with nogil:
                for row in range(self.c.relation.count):
                    life = &self.c.lives[row]
                    if life.state == HERE:
                        if column < width:
                            to[0] = relation_word(self.c.relation, row, column)
                        else:
                            to[0] = life.seq if column == width else life.count
                        to += 1
            found.append(memoryview(held)[: self.c.living * sizeof(int64_t)])
        return found

    def alone(self):
        """The rows that are there, as another relation."""
        cdef Relation found = Relation(self.relation.kinds, self.relation.symbols)
        if self.relation.kinds:
            found.take(tuple(self.columns()[: self.c.relation.width]))
        else:
            found.fill(self)
        found.seal()
        return found

    def restore(self, columns):
        """The inverse of `columns`, for a relation that has had no rows."""
        cdef const int64_t[::1] seqs, counts
        cdef int status = 0
        *words, moments, numbers = columns
        seqs, counts = memoryview(moments).cast("B").cast("q"), memoryview(numbers).cast("B").cast("q")
        if words:
            self.relation.take(tuple(words))
        else:
            self.relation.fill([()] * len(seqs))
        if self.c.relation.count != len(seqs) or len(seqs) != len(counts):
            raise ValueError("the columns do not fit")
        if len(seqs):
            status = live_fill(self.c, &seqs[0], &counts[0])
        if status < 0:
            raise _trouble(status)
        self.advance()

    def check(self):
        """Assert the invariants that need no rules."""
        cdef uint32_t row, living = 0
        self.relation.check()
        for row in range(self.c.relation.count):
            assert self.c.lives[row].state <= HERE, "L2"
            living += self.c.lives[row].state == HERE
        assert living == self.c.living
