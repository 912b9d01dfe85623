# cython: language_level=3, boundscheck=False, wraparound=False, embedsignature=False
"""Relations and plans of `relation.c` and `plan.c`, for Python: words in, words out.

A word has 64 bits: a number, an unsigned, the bits of a float, or the id of a symbol.  Words are
equal exactly where values are: there is one NaN, and no -0.0.
"""

from cpython.exc cimport PyErr_CheckSignals
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memcpy

from everlog.core.native.availability import NotAWord
from math import nan as NAN  # the one NaN of all values: core.program.exact


cdef extern from "relation.h" nogil:
    ctypedef struct CIndex "Index":
        pass
    ctypedef struct CRelation "Relation":
        uint32_t width, count, lo, hi
        int narrow
    enum: NO_MEMORY, TOO_MANY_ROWS, STOPPED
    CRelation *relation_new(uint32_t width)
    void relation_free(CRelation *relation)
    int relation_add(CRelation *relation, const int64_t *row)
    int relation_advance(CRelation *relation)
    CIndex *relation_index(CRelation *relation, const uint32_t *columns, uint32_t width)
    uint64_t relation_bytes(const CRelation *relation)
    int relation_check(const CRelation *relation)
    int relation_order(const CRelation *relation, const int *kinds, const uint32_t *ranks, uint32_t *order)
    int64_t relation_word(const CRelation *relation, uint64_t row, uint32_t column)


cdef extern from "plan.h" nogil:
    ctypedef int CCode "enum Code"
    ctypedef int CVersion "enum Version"
    ctypedef struct COp "Op":
        CCode code
        CVersion version
        int back
        CRelation *relation
        const CIndex *index
        uint32_t *columns
        uint32_t *to
        uint32_t to_count
        uint32_t from_count
    ctypedef int (*CCall)(void *context, int op, int64_t *registers) noexcept nogil
    ctypedef int (*CCheck)(void *context) noexcept nogil
    ctypedef struct CPlan "Plan":
        COp *ops
        int count
        int64_t *registers
        uint64_t derivations
        CCall call
        CCheck check
        void *context
    CPlan *plan_new(int ops, uint32_t registers)
    void plan_free(CPlan *plan)
    int op_reserve(COp *op, uint32_t from_count, uint32_t to_count)
    int plan_run(CPlan *plan)


cdef extern from *:
    """
    #include "plan.h"
    static uint32_t *op_from(Op *op) { return op->from; }
    static const char *const code_names[] = {
        "SCAN", "PROBE", "EXISTS", "ABSENT", "FOUND", "MISSING", "FILLED", "EMPTY", "UNKNOWN",
        "EQUAL", "DIFFERENT", "LESS", "LESS_EQUAL", "UNSIGNED_LESS", "UNSIGNED_LESS_EQUAL",
        "FLOAT_DIFFERENT", "FLOAT_LESS", "FLOAT_LESS_EQUAL", "CALL_TEST",
        "MOVE", "PLUS", "MINUS", "TIMES", "NEGATE",
        "DIVIDE", "UNSIGNED_DIVIDE", "MODULO", "UNSIGNED_MODULO",
        "BIT_AND", "BIT_OR", "BIT_XOR", "BIT_NOT", "SHIFT_LEFT", "SHIFT_RIGHT", "UNSIGNED_SHIFT_RIGHT",
        "BOTH", "EITHER", "ONE_OF", "NEITHER",
        "LEAST", "GREATEST", "UNSIGNED_LEAST", "UNSIGNED_GREATEST", "FLOAT_LEAST", "FLOAT_GREATEST",
        "FLOAT_PLUS", "FLOAT_MINUS", "FLOAT_TIMES", "FLOAT_DIVIDE", "FLOAT_NEGATE",
        "TO_FLOAT", "UNSIGNED_TO_FLOAT", "TRUNCATE", "UNSIGNED_TRUNCATE", "CALL", "ADD"};
    _Static_assert(sizeof code_names / sizeof *code_names == ADD + 1, "a name for each code");
    """
    uint32_t *op_from(COp *op)
    const char *const code_names[]
    enum: ADD

CODES = {(<bytes>code_names[code]).decode(): code for code in range(ADD + 1)}
cdef enum: NUMBER, UNSIGNED, FLOAT, SYMBOL
cdef int _REMEMBERED = 100_000  # results of Python functions that a plan remembers
cdef int _WATCH_EVERY = 256  # checks of signals for each check of the limits


cdef object _failure(int status):
    if status == TOO_MANY_ROWS:
        return OverflowError("a relation of the compiled machine holds at most 2 147 483 647 facts")
    return MemoryError()


cdef class Symbols:
    """The symbols of one evaluation, each with its id: 0, 1, 2, …"""

    cdef dict ids
    cdef list texts
    cdef uint32_t *ranks
    cdef Py_ssize_t ranked

    def __cinit__(self):
        self.ids, self.texts = {}, []
        self.ranks, self.ranked = NULL, -1

    def __dealloc__(self):
        PyMem_Free(self.ranks)

    def __len__(self):
        return len(self.texts)

    cdef int64_t id_of(self, object text) except -1:
        found = self.ids.get(text)
        if found is None:
            found = len(self.texts)
            self.texts.append(text)
            self.ids[text] = found
        return found

    cdef const uint32_t *ordered(self) except? NULL:
        """The place of each symbol in the order of symbols."""
        cdef Py_ssize_t place, count = len(self.texts)
        if self.ranked != count:
            PyMem_Free(self.ranks)
            self.ranked = -1
            self.ranks = <uint32_t *>PyMem_Malloc((count + 1) * sizeof(uint32_t))
            if self.ranks == NULL:
                raise MemoryError
            for place, number in enumerate(sorted(range(count), key=self.texts.__getitem__)):
                self.ranks[<Py_ssize_t>number] = <uint32_t>place
            self.ranked = count
        return self.ranks


cdef int64_t _word(object value, int kind, Symbols symbols) except? -1:
    cdef double number
    cdef int64_t word
    cdef uint64_t natural
    if kind == SYMBOL:
        if type(value) is not str:
            raise NotAWord
        return symbols.id_of(value)
    if kind == FLOAT:
        if type(value) is not float:
            raise NotAWord
        number = value
        if number != number:
            return <int64_t>0x7FF8000000000000
        number += 0.0
        memcpy(&word, &number, 8)
        return word
    if type(value) is not int:
        raise NotAWord
    try:
        if kind == UNSIGNED:
            natural = value
            return <int64_t>natural
        word = value
    except OverflowError:
        raise NotAWord from None
    return word


cdef object _value(int64_t word, int kind, Symbols symbols):
    cdef double number
    if kind == NUMBER:
        return word
    if kind == SYMBOL:
        return symbols.texts[word]
    if kind == UNSIGNED:
        return <uint64_t>word
    memcpy(&number, &word, 8)
    return NAN if number != number else number


cdef class Relation:
    """Rows in order of arrival, each once.

    `kinds` has a number for the kind of each column: 0 number, 1 unsigned, 2 float, 3 symbol.
    """

    cdef CRelation *c
    cdef readonly tuple kinds
    cdef readonly Symbols symbols
    cdef int *kind

    def __cinit__(self, tuple kinds, Symbols symbols):
        self.kinds, self.symbols = kinds, symbols
        self.c = relation_new(<uint32_t>len(kinds))
        self.kind = <int *>PyMem_Malloc((len(kinds) + 1) * sizeof(int))
        if self.c == NULL or self.kind == NULL:
            raise MemoryError
        for column, kind in enumerate(kinds):
            self.kind[<Py_ssize_t>column] = kind

    def __dealloc__(self):
        relation_free(self.c)
        PyMem_Free(self.kind)

    def __len__(self):
        return self.c.count

    @property
    def size_in_bytes(self):
        return relation_bytes(self.c)

    def fill(self, rows):
        """Add rows, tuples of values; NotAWord if one has a value of another type."""
        cdef int64_t *words = <int64_t *>PyMem_Malloc((self.c.width + 1) * sizeof(int64_t))
        cdef Py_ssize_t column, width = self.c.width
        cdef int status
        if words == NULL:
            raise MemoryError
        try:
            for row in rows:
                if type(row) is not tuple or len(<tuple>row) != width:
                    raise NotAWord
                for column in range(width):
                    words[column] = _word(<object>(<tuple>row)[column], self.kind[column], self.symbols)
                status = relation_add(self.c, words)
                if status < 0:
                    raise _failure(status)
        finally:
            PyMem_Free(words)

    def advance(self):
        """Begin a round: what was added since the last one is the change; return its rows."""
        cdef int status = relation_advance(self.c)
        if status < 0:
            raise _failure(status)
        return range(self.c.lo, self.c.hi)

    def restart(self):
        """Let the change be all rows; return their numbers."""
        self.advance()
        self.c.lo = 0
        return range(self.c.hi)

    cdef tuple row(self, uint32_t number):
        cdef uint32_t column
        return tuple([
            _value(relation_word(self.c, number, column), self.kind[column], self.symbols)
            for column in range(self.c.width)
        ])

    def rows(self):
        """All rows as tuples, in order of arrival."""
        cdef uint32_t number
        for number in range(self.c.count):
            yield self.row(number)

    def sample(self, Py_ssize_t size):
        """At most `size` rows, evenly spread over the order of arrival."""
        cdef Py_ssize_t count = self.c.count, place
        if count <= size:
            return list(self.rows())
        return [self.row(<uint32_t>(place * count // size)) for place in range(size)]

    def sorted_rows(self):
        """All rows as tuples, sorted by value, column by column; NaN comes first."""
        cdef uint32_t place
        cdef const uint32_t *ranks = self.symbols.ordered()
        cdef bytearray buffer = bytearray((self.c.count + 1) * sizeof(uint32_t))
        cdef uint32_t *order = <uint32_t *><char *>buffer
        cdef int status
        with nogil:
            status = relation_order(self.c, self.kind, ranks, order)
        if status < 0:
            raise _failure(status)
        for place in range(self.c.count):
            yield self.row(order[place])

    def check(self):
        """Assert the invariants of `relation.h`."""
        broken = relation_check(self.c)
        assert not broken, f"R{broken}"


cdef int _called(void *context, int at, int64_t *registers) noexcept with gil:
    cdef Plan plan = <Plan>context
    try:
        return plan.answer(at, registers)
    except BaseException as error:
        plan.error = error
        return STOPPED


cdef int _checked(void *context) noexcept with gil:
    cdef Plan plan = <Plan>context
    try:
        PyErr_CheckSignals()
        plan.checks += 1
        if plan.checks >= _WATCH_EVERY:
            plan.checks = 0
            plan.watch()
    except BaseException as error:
        plan.error = error
        return STOPPED
    return 0


cdef class Plan:
    """Operations over registers; `put` places each, `run` derives everything once.

    `watch` is called now and then while it runs, and may raise.
    """

    cdef CPlan *c
    cdef object watch, error
    cdef int checks
    cdef list used  # relations, which must live as long as the plan
    cdef dict functions  # operation → function, kinds of arguments, kind of the result
    cdef dict remembered
    cdef Symbols symbols

    def __cinit__(self, int ops, int registers, Symbols symbols, watch):
        self.c = plan_new(ops, <uint32_t>registers)
        if self.c == NULL:
            raise MemoryError
        self.c.call, self.c.check, self.c.context = _called, _checked, <void *>self
        self.watch, self.error, self.checks = watch, None, 0
        self.used, self.functions, self.remembered, self.symbols = [], {}, {}, symbols

    def __dealloc__(self):
        plan_free(self.c)

    @property
    def derivations(self):
        """How often a fact was derived so far, new or known."""
        return self.c.derivations

    def constant(self, int register, value, int kind):
        """Write a constant to a register that nothing else writes."""
        self.c.registers[register] = _word(value, kind, self.symbols)

    def put(self, int at, str code, int back, tuple read, tuple binds=()):
        """An operation: the registers it reads, and (column, register) for what it writes."""
        cdef COp *op = &self.c.ops[at]
        cdef Py_ssize_t place
        assert 0 <= at < self.c.count
        op.code, op.back = <CCode><int>CODES[code], back
        if op_reserve(op, <uint32_t>len(read), <uint32_t>len(binds)) < 0:
            raise MemoryError
        for place in range(len(read)):
            op_from(op)[place] = read[place]
        for place in range(len(binds)):
            op.columns[place], op.to[place] = binds[place]

    def over(self, int at, Relation relation, int version, tuple key=()):
        """The relation of an operation, its version, and the columns of the index it needs."""
        cdef uint32_t columns[64]
        cdef Py_ssize_t place
        cdef COp *op = &self.c.ops[at]
        assert 0 <= at < self.c.count and len(key) <= 64
        self.used.append(relation)
        op.relation, op.version = relation.c, <CVersion>version
        if key:
            for place in range(len(key)):
                columns[place] = key[place]
            op.index = relation_index(relation.c, columns, <uint32_t>len(key))
            if op.index == NULL:
                raise MemoryError

    def function(self, int at, function, tuple kinds, int result):
        """The Python function of a `CALL` or a `CALL_TEST`."""
        self.functions[at] = function, kinds, result

    cdef int answer(self, int at, int64_t *registers) except? -1:
        cdef COp *op = &self.c.ops[at]
        cdef Py_ssize_t place
        function, kinds, result = self.functions[at]
        key = (at, *[registers[op_from(op)[place]] for place in range(op.from_count)])
        found = self.remembered.get(key)
        if found is None:
            args = [_value(word, kind, self.symbols) for word, kind in zip(key[1:], kinds)]
            value = function(*args)
            found = _word(value, result, self.symbols) if op.to_count else bool(value)
            if len(self.remembered) >= _REMEMBERED:
                self.remembered.clear()
            self.remembered[key] = found
        if not op.to_count:
            return 1 if found else 0
        registers[op.to[0]] = found
        return 1

    def run(self):
        cdef int status
        self.error = None
        with nogil:
            status = plan_run(self.c)
        if status == STOPPED:
            error, self.error = self.error, None
            raise error
        if status < 0:
            raise _failure(status)
