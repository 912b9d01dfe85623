# cython: language_level=3, boundscheck=False, wraparound=False, embedsignature=False
"""Relations and plans of `relation.c` and `plan.c`, for Python: words in, words out.

A word has 64 bits: a number, an unsigned, the bits of a float, or the id of a symbol.  Words are
equal exactly where values are: there is one NaN, and no -0.0.
"""

from cpython.exc cimport PyErr_CheckSignals
from cpython.mem cimport PyMem_Calloc, PyMem_Free, PyMem_Malloc
from cpython.object cimport PyObject
from cpython.unicode cimport PyUnicode_DecodeUTF8
from itertools import islice
from threading import Thread

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy

from everlog.core.native.availability import NotAWord, TooManyRows, Undefined
from everlog.core.program.values import NoValue, float_sum
from math import nan as NAN  # the one NaN of all values: core.program.exact


cdef extern from "Python.h":
    const char *PyUnicode_AsUTF8AndSize(object text, Py_ssize_t *size) except NULL
    PyObject *PyTuple_GET_ITEM(object row, Py_ssize_t column)  # of a tuple


cdef extern from "relation.h" nogil:
    ctypedef struct CIndex "Index":
        pass
    ctypedef struct CRelation "Relation":
        uint32_t width, count, lo, hi
        int narrow
    ctypedef struct CBatch "Batch":
        int64_t *rows
        int count
    enum: NO_MEMORY, TOO_MANY_ROWS, STOPPED, UNDEFINED, BATCH
    CRelation *relation_new(uint32_t width)
    void relation_free(CRelation *relation)
    void relation_seal(CRelation *relation)
    int relation_open(CRelation *relation)
    int relation_add(CRelation *relation, const int64_t *row)
    uint32_t relation_find(const CRelation *relation, const int64_t *row)
    void relation_search(const CRelation *relation, const uint32_t *columns, const CRelation *keys, uint32_t step,
                         uint32_t most, uint32_t *counts, uint32_t *found)
    int relation_advance(CRelation *relation)
    CIndex *relation_index(CRelation *relation, const uint32_t *columns, uint32_t width)
    uint64_t relation_bytes(const CRelation *relation)
    void PREFETCH(const char *address)
    void relation_swap(CRelation *one, CRelation *other)
    uint32_t NO_ROW
    int relation_check(const CRelation *relation)
    int batch_put(CBatch *batch, CRelation *relation)
    int batch_flush(CBatch *batch, CRelation *relation)
    int64_t relation_word(const CRelation *relation, uint64_t row, uint32_t column)


cdef extern from "columns.h" nogil:
    ctypedef struct CColumn "Column":
        const char *bytes
        int is_float
    enum: FLOATING_NAN_LAST
    int relation_add_columns(CRelation *relation, CBatch *batch, const CColumn *columns, uint64_t row, uint64_t end)
    void relation_column(const CRelation *relation, uint32_t column, const uint32_t *order, uint64_t count, int64_t *words)
    int relation_order(const CRelation *relation, const int *kinds, const uint32_t *ranks, uint32_t *order)


cdef extern from "fold.h" nogil:
    ctypedef int CFoldKind "enum FoldKind"
    enum: SYMBOL_MIN
    ctypedef struct CFold "Fold":
        CFoldKind kind
        uint64_t count
        double *values
    CFold *fold_new(CFoldKind kind, uint32_t outer)


cdef extern from "shared.h" nogil:
    ctypedef struct CShare "Share":
        pass
    ctypedef struct CShared "Shared":
        uint32_t wanted
    int shared_begin(CShared *shared, CRelation *relation, uint32_t threads)
    int shared_grow(CShared *shared, CShare **shares, uint32_t threads)
    void shared_settle(CShared *shared, CShare **shares, uint32_t threads)


cdef extern from "atomic.h" nogil:
    uint32_t LOAD(const uint32_t *word)
    void STORE(uint32_t *word, uint32_t value)


cdef extern from "plan.h" nogil:
    ctypedef int CCode "enum Code"
    ctypedef int CVersion "enum Version"
    enum: OLD, DELTA
    ctypedef struct COp "Op":
        CCode code
        CVersion version
        int back
        CRelation *relation
        const CIndex *index
        CFold *fold
        int skip, is_total, is_unsigned
        uint64_t entered
        uint32_t *columns
        uint32_t *to
        uint32_t to_count
        uint32_t from_count
    ctypedef int (*CCall)(void *context, int op, int64_t *registers) noexcept nogil
    ctypedef struct CPlan "Plan"
    ctypedef int (*CCheck)(void *context, CPlan *running) noexcept nogil
    ctypedef int (*CWait)(void *thread, int needs_room) noexcept nogil
    ctypedef struct CPlan "Plan":
        COp *ops
        int count
        int64_t *registers
        int keeps
        uint64_t derivations
        CCall call
        CCheck check
        void *context
        CShare share
        CWait wait
        void *thread
    CPlan *plan_new(int ops, uint32_t registers)
    void plan_free(CPlan *plan)
    uint64_t plan_rows(CPlan *plan)
    uint64_t op_tried(COp *op)
    int op_reserve(COp *op, uint32_t from_count, uint32_t to_count)
    int plan_run(CPlan *plan)
    int plan_has_blocks(const CPlan *plan)
    int plan_run_blocks(CPlan *plan, uint64_t row, uint64_t end)
    CPlan *plan_clone(CPlan *plan, CShared *out)
    void plan_tell(CPlan *clone)
    int plan_flush(CPlan *plan)


cdef extern from *:
    """
    #include "plan.h"
    static uint32_t *op_from(Op *op) { return op->from; }
    static const char *const code_names[] = {
        "SCAN", "PROBE", "RANGE", "FOLD", "EXISTS", "ABSENT", "FOUND", "MISSING", "FILLED", "EMPTY", "UNKNOWN",
        "EQUAL", "DIFFERENT", "LESS", "LESS_EQUAL", "UNSIGNED_LESS", "UNSIGNED_LESS_EQUAL",
        "FLOAT_DIFFERENT", "FLOAT_LESS", "FLOAT_LESS_EQUAL", "WITHIN", "CALL_TEST",
        "MOVE", "PLUS", "MINUS", "TIMES", "NEGATE",
        "DIVIDE", "UNSIGNED_DIVIDE", "MODULO", "UNSIGNED_MODULO",
        "BIT_AND", "BIT_OR", "BIT_XOR", "BIT_NOT", "SHIFT_LEFT", "SHIFT_RIGHT", "UNSIGNED_SHIFT_RIGHT",
        "BOTH", "EITHER", "ONE_OF", "NEITHER",
        "LEAST", "GREATEST", "UNSIGNED_LEAST", "UNSIGNED_GREATEST", "FLOAT_LEAST", "FLOAT_GREATEST",
        "FLOAT_PLUS", "FLOAT_MINUS", "FLOAT_TIMES", "FLOAT_DIVIDE", "FLOAT_NEGATE",
        "TO_FLOAT", "UNSIGNED_TO_FLOAT", "TRUNCATE", "UNSIGNED_TRUNCATE", "CALL", "COLLECT", "ADD"};
    static const char *const fold_names[] = {
        "COUNTED", "SUM", "MIN", "MAX", "UNSIGNED_MIN", "UNSIGNED_MAX", "FLOAT_MIN", "FLOAT_MAX",
        "SYMBOL_MIN", "SYMBOL_MAX", "NUMBERS", "UNSIGNED_NUMBERS", "FLOATS", "KEPT"};
    _Static_assert(sizeof fold_names / sizeof *fold_names == KEPT + 1, "a name for each kind of aggregate");
    _Static_assert(sizeof code_names / sizeof *code_names == ADD + 1, "a name for each code");
    """
    uint32_t *op_from(COp *op)
    const char *const code_names[]
    const char *const fold_names[]
    enum: FOUND, MISSING, UNKNOWN, ADD, FOLD, COLLECT, KEPT

_FOLDS = {(<bytes>fold_names[kind]).decode(): kind for kind in range(KEPT + 1)}
CODES = {(<bytes>code_names[code]).decode(): code for code in range(ADD + 1)}
cdef enum: NUMBER, UNSIGNED, FLOAT, SYMBOL
cdef int _SEARCHED = 100_000  # rows that are looked at to find a few: less than a millisecond
cdef int _REMEMBERED = 100_000  # results of Python functions that a plan remembers
cdef int _AT_A_TIME = 64  # rows that are prefetched together
cdef int _WORTH_A_THREAD = 512  # rows of a loop that are split among threads
cdef int _WATCH_EVERY = 256  # checks of signals for each check of the limits


cdef object _failure(int status):
    if status == TOO_MANY_ROWS:
        return OverflowError("a relation of the compiled machine holds at most 2 147 483 647 facts")
    return MemoryError()


include "text.pxi"


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


cdef void _fetch(list rows, Py_ssize_t width) noexcept:
    """Prefetch rows, and then their values: the rows of a set lie anywhere in memory."""
    cdef Py_ssize_t column
    for row in rows:
        PREFETCH(<const char *><PyObject *>row)
        PREFETCH(<const char *><PyObject *>row + 64)
    for row in rows:
        if type(row) is tuple and len(<tuple>row) == width:
            for column in range(width):
                PREFETCH(<const char *>PyTuple_GET_ITEM(row, column))


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
    cdef bint is_sealed

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

    def seal(self):
        """Free the hash set and the indexes; the next plan or look-up makes them again."""
        relation_seal(self.c)
        self.is_sealed = True

    cdef int open(self) except -1:
        """Make the hash set again after `seal`, so that rows can be added and found."""
        if self.is_sealed:
            if relation_open(self.c) < 0:
                raise MemoryError
            self.is_sealed = False
        return 0

    def fill(self, rows):
        """Add rows, tuples of values; NotAWord if one has a value of another type."""
        self.open()
        cdef int64_t *words = <int64_t *>PyMem_Malloc((self.c.width + 1) * sizeof(int64_t))
        cdef Py_ssize_t column, width = self.c.width
        cdef list some
        cdef int status
        if words == NULL:
            raise MemoryError
        left = iter(rows)
        try:
            while some := list(islice(left, _AT_A_TIME)):
                _fetch(some, width)
                for row in some:
                    if type(row) is not tuple or len(<tuple>row) != width:
                        raise NotAWord
                    for column in range(width):
                        words[column] = _word(<object>(<tuple>row)[column], self.kind[column], self.symbols)
                    status = relation_add(self.c, words)
                    if status < 0:
                        raise _failure(status)
        finally:
            PyMem_Free(words)

    def parse(self, bytes data, str delimiter, tuple targets=None, bint quotes=False, tuple nulls=None):
        """Add the facts of lines that end in a newline; False if a line is not plain.

        Plain are integers as JSON writes them, decimals, and symbols in UTF-8.  `targets` has for
        each field of a line its column, or -1: without it, each column has its own field.  With
        `quotes`, a field may be in quotes.  `nulls` has for each column the value of an empty field,
        or None, which is not plain.  After False, the relation has some of the facts.
        """
        cdef const char *at = data
        cdef const char *end = at + len(data)
        cdef char mark = <char>ord(delimiter), ending
        cdef Py_ssize_t field, column, width = self.c.width, fields, lines = 0
        cdef int status = 0
        cdef int64_t *words
        cdef int *target = NULL
        cdef CBatch batch
        if not width or not (data.isascii() or _is_utf8(data)):
            return False
        if targets is None:
            targets = tuple(range(width))
        if sorted(target for target in targets if target >= 0) != list(range(width)):
            raise ValueError("each column needs a field")
        self.open()
        fields = len(targets)
        batch.count = 0
        batch.rows = <int64_t *>PyMem_Malloc(BATCH * width * sizeof(int64_t))
        target = <int *>PyMem_Malloc(fields * sizeof(int))
        try:
            if batch.rows == NULL or target == NULL:
                raise MemoryError
            for field in range(fields):
                target[field] = targets[field]
            while at < end:
                words = batch.rows + batch.count * width
                ending = mark
                for field in range(fields):
                    column = target[field]
                    if quotes and at < end and at[0] == b'"':
                        at = self._quoted(at, end, column, words)
                    elif nulls is not None and column >= 0 and at < end and (at[0] == mark or at[0] == b"\n"):
                        if nulls[column] is None:
                            return False
                        words[column] = _word(nulls[column], self.kind[column], self.symbols)
                    else:
                        at = self._plain(at, end, mark, column, words)
                    if field == fields - 1:
                        ending = b"\n"
                    if at == NULL or at == end or at[0] != ending:
                        return False
                    at += 1
                status = batch_put(&batch, self.c)
                if status < 0:
                    raise _failure(status)
                lines += 1
                if not lines & 0xFFFF:
                    PyErr_CheckSignals()
            status = batch_flush(&batch, self.c)
            if status < 0:
                raise _failure(status)
        finally:
            PyMem_Free(batch.rows)
            PyMem_Free(target)
        return True

    cdef const char *_plain(
        self, const char *at, const char *end, char mark, Py_ssize_t column, int64_t *words
    ) except? NULL:
        """Read a field without quotes; return what follows, or NULL if it is not plain."""
        cdef const char *start = at
        if column >= 0 and self.kind[column] == FLOAT:
            return _float(at, end, mark, &words[column])
        if column >= 0 and self.kind[column] != SYMBOL:
            return _integer(at, end, self.kind[column], &words[column])
        while at < end and at[0] != mark and at[0] != b"\n":
            at += 1
        if column >= 0:
            words[column] = self.symbols.id_of_bytes(start, at - start, _hash_of_bytes(start, at - start))
        return at

    cdef const char *_quoted(self, const char *at, const char *end, Py_ssize_t column, int64_t *words) except? NULL:
        """Read a field in quotes, in which two quotes are one; return what follows, or NULL."""
        cdef const char *start = at + 1
        cdef const char *after
        cdef bytes text
        cdef bint has_quotes = False
        at = start
        while at < end and (at[0] != b'"' or (at + 1 < end and at[1] == b'"')):
            has_quotes = has_quotes or at[0] == b'"'
            at += 1 + (at[0] == b'"')
        if at >= end:
            return NULL
        if column < 0:
            return at + 1
        if self.kind[column] == SYMBOL:
            if has_quotes:
                text = start[: at - start].replace(b'""', b'"')
                words[column] = self.symbols.id_of(text.decode())
            else:
                words[column] = self.symbols.id_of_bytes(start, at - start, _hash_of_bytes(start, at - start))
            return at + 1
        after = self._plain(start, at, b'"', column, words)
        return at + 1 if after == at else NULL

    def take(self, tuple columns):
        """Add rows from columns: of each, the bytes of a word for each row, those of floats as they are."""
        cdef Py_ssize_t place, width = self.c.width
        cdef uint64_t row = 0, end, rows
        cdef int status = 0
        cdef CBatch batch
        cdef CColumn *each
        cdef const unsigned char[::1] held
        views = [memoryview(column).cast("B") for column in columns]
        if len(views) != width or not width or len({len(view) for view in views}) != 1:
            raise ValueError("the columns do not fit")
        self.open()
        rows = len(views[0]) // sizeof(int64_t)
        batch.count = 0
        batch.rows = <int64_t *>PyMem_Malloc(BATCH * width * sizeof(int64_t))
        each = <CColumn *>PyMem_Malloc(width * sizeof(CColumn))
        try:
            if batch.rows == NULL or each == NULL:
                raise MemoryError
            for place in range(width if rows else 0):
                held = views[place]
                each[place] = CColumn(<const char *>&held[0], self.kind[place] == FLOAT)
            while row < rows:
                PyErr_CheckSignals()
                end = min(rows, row + 0x10000)
                with nogil:
                    status = relation_add_columns(self.c, &batch, each, row, end)
                if status < 0:
                    raise _failure(status)
                row = end
            with nogil:
                status = batch_flush(&batch, self.c)
            if status < 0:
                raise _failure(status)
        finally:
            PyMem_Free(batch.rows)
            PyMem_Free(each)

    def columns(self, Py_ssize_t size):
        """All rows, sorted, in parts of at most `size`: for each column the bytes of its words."""
        cdef bytearray held = self._order(), words
        cdef const uint32_t *order = <const uint32_t *><char *>held
        cdef int64_t *to
        cdef uint32_t column
        cdef uint64_t start, count
        for start in range(0, self.c.count, size):
            count = min(<uint64_t>size, self.c.count - start)
            part = []
            for column in range(self.c.width):
                words = bytearray(count * sizeof(int64_t))
                to = <int64_t *><char *>words
                with nogil:
                    relation_column(self.c, column, order + start, count, to)
                part.append(words)
            yield part

    def lines(self, str delimiter):
        """All rows as lines in UTF-8, sorted, in chunks of bytes; None if some value is not plain."""
        if not self.kinds or not self.symbols.can_be_written():
            return None
        return self._chunks(delimiter.encode())

    def _chunks(self, bytes delimiter):
        cdef const uint32_t *order
        cdef const char *text
        cdef uint32_t row, column, width = self.c.width
        cdef Py_ssize_t used = 0, size, room = 1 << 20, gap = len(delimiter)
        cdef const char *between = delimiter
        cdef int64_t word
        cdef bytearray held = self._order(), chunk = bytearray(room)
        cdef bytes decimal
        cdef char *at = chunk
        order = <const uint32_t *><char *>held
        for row in range(self.c.count):
            for column in range(width):
                word = relation_word(self.c, order[row], column)
                size = 24
                if self.kind[column] == SYMBOL:
                    text = PyUnicode_AsUTF8AndSize(self.symbols.texts[word], &size)
                elif self.kind[column] == FLOAT:
                    decimal = _float_text(word)
                    text, size = decimal, len(decimal)
                if used + size + gap + 1 > room:
                    yield bytes(chunk[:used])
                    used = 0
                    if size + gap + 1 > room:
                        room = size + gap + 1
                        chunk = bytearray(room)
                    at = chunk
                if self.kind[column] == SYMBOL or self.kind[column] == FLOAT:
                    memcpy(at + used, text, <size_t>size)
                    used += size
                else:
                    used = _written(at + used, word, self.kind[column]) - at
                if column == width - 1:
                    at[used] = b"\n"
                    used += 1
                else:
                    memcpy(at + used, between, <size_t>gap)
                    used += gap
        if used:
            yield bytes(chunk[:used])

    cdef bytearray _order(self, bint nan_last=False):
        """The row numbers, 32 bits each, in the order of the rows."""
        cdef bytearray kinds = bytearray((self.c.width + 1) * sizeof(int))
        cdef int *kind = <int *><char *>kinds
        cdef uint32_t column
        cdef const uint32_t *ranks = self.symbols.ordered()
        cdef bytearray buffer = bytearray((self.c.count + 1) * sizeof(uint32_t))
        cdef uint32_t *order = <uint32_t *><char *>buffer
        cdef int status
        for column in range(self.c.width):
            kind[column] = FLOATING_NAN_LAST if nan_last and self.kind[column] == FLOAT else self.kind[column]
        with nogil:
            status = relation_order(self.c, kind, ranks, order)
        if status < 0:
            raise _failure(status)
        return buffer

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

    def clear(self):
        """Forget all rows; only for a relation that no plan reads."""
        cdef CRelation *empty = relation_new(self.c.width)
        if empty == NULL:
            raise MemoryError
        relation_swap(self.c, empty)
        relation_free(empty)

    def rows(self):
        """All rows as tuples, in order of arrival."""
        cdef uint32_t number
        for number in range(self.c.count):
            yield self.row(number)

    def __iter__(self):
        return self.rows()

    def sample(self, Py_ssize_t size):
        """At most `size` rows, evenly spread over the order of arrival."""
        cdef Py_ssize_t count = self.c.count, place
        if count <= size:
            return list(self.rows())
        return [self.row(<uint32_t>(place * count // size)) for place in range(size)]

    def partners(self, tuple columns, keys, uint32_t most):
        """For each key that is there: about how many rows have it in some columns, and some of them.

        A key of one column is bare.  Of many rows only some are looked at.
        """
        cdef uint32_t step = self.c.count // _SEARCHED + 1, number, row
        cdef bytearray held, counted, listed
        cdef Relation wanted = Relation(tuple([self.kinds[column] for column in columns]), self.symbols)
        listed_keys = list(keys)
        assert 0 < len(columns) <= 64
        wanted.fill(listed_keys if len(columns) > 1 else [(key,) for key in listed_keys])
        if wanted.c.count != len(listed_keys):  # NaN is one word, and many keys
            return None
        held = bytearray(len(columns) * sizeof(uint32_t))
        counted = bytearray((wanted.c.count + 1) * sizeof(uint32_t))
        listed = bytearray((wanted.c.count * most + 1) * sizeof(uint32_t))
        cdef uint32_t *place = <uint32_t *><char *>held
        cdef uint32_t *counts = <uint32_t *><char *>counted
        cdef uint32_t *found = <uint32_t *><char *>listed
        for number in range(<uint32_t>len(columns)):
            place[number] = columns[number]
        with nogil:
            relation_search(self.c, place, wanted.c, step, most, counts, found)
        return {
            key: (counts[number] * step, [self.row(found[number * most + row]) for row in range(min(most, counts[number]))])
            for number, key in enumerate(listed_keys)
            if counts[number]
        }

    def sorted_rows(self):
        """All rows as tuples, sorted by value, column by column; NaN comes first."""
        cdef uint32_t place
        cdef bytearray held = self._order()
        cdef const uint32_t *order = <const uint32_t *><char *>held
        for place in range(self.c.count):
            yield self.row(order[place])

    def check(self):
        """Assert the invariants of `relation.h`."""
        broken = relation_check(self.c)
        assert not broken, f"R{broken}"


cdef class Chooser:
    """Of the candidates for a relation, those whose keys are free: see `core.evaluate.choice_domains`."""

    cdef Relation relation
    cdef tuple keys  # the columns of each key
    cdef list taken  # for each key the values that are taken: relations

    def __cinit__(self, Relation relation, tuple keys):
        self.relation, self.keys = relation, keys
        self.taken = [Relation(tuple([relation.kinds[column] for column in key]), relation.symbols) for key in keys]

    def admit(self, Relation candidates):
        """Add the candidates, in sorted order, that agree with no fact on all columns of a key."""
        cdef bytearray held = candidates._order(nan_last=True)
        cdef const uint32_t *order = <const uint32_t *><char *>held
        cdef int64_t *words = <int64_t *>PyMem_Malloc((candidates.c.width + 1) * sizeof(int64_t))
        cdef uint32_t place
        if words == NULL:
            raise MemoryError
        try:
            for place in range(candidates.c.count):
                if not place & 0xFFFF:
                    PyErr_CheckSignals()
                if self.is_free(candidates, order[place], words):
                    self.take(candidates, order[place], words)
        finally:
            PyMem_Free(words)

    cdef bint is_free(self, Relation candidates, uint32_t row, int64_t *words) except -1:
        cdef Py_ssize_t number
        for number in range(len(self.keys)):
            self.key(number, candidates, row, words)
            if relation_find((<Relation>self.taken[number]).c, words) != NO_ROW:
                return False
        return True

    cdef int take(self, Relation candidates, uint32_t row, int64_t *words) except -1:
        cdef Py_ssize_t number
        cdef uint32_t column
        cdef int status
        for number in range(len(self.keys)):
            self.key(number, candidates, row, words)
            status = relation_add((<Relation>self.taken[number]).c, words)
            if status < 0:
                raise _failure(status)
        for column in range(candidates.c.width):
            words[column] = relation_word(candidates.c, row, column)
        status = relation_add(self.relation.c, words)
        if status < 0:
            raise _failure(status)
        return 0

    cdef int key(self, Py_ssize_t number, Relation candidates, uint32_t row, int64_t *words) except -1:
        cdef Py_ssize_t place
        cdef tuple columns = self.keys[number]
        for place in range(len(columns)):
            words[place] = relation_word(candidates.c, row, <uint32_t>columns[place])
        return 0


cdef int _called(void *context, int at, int64_t *registers) noexcept with gil:
    cdef Plan plan = <Plan>context
    if plan.error is not None:  # on another thread
        return STOPPED
    try:
        return plan.answer(at, registers)
    except NoValue:
        return UNDEFINED
    except BaseException as error:
        plan.error = error
        return STOPPED


cdef int _checked(void *context, CPlan *running) noexcept with gil:
    cdef Plan plan = <Plan>context
    plan_tell(running)
    if plan.error is not None:  # on another thread
        return STOPPED
    try:
        PyErr_CheckSignals()
        if plan.most and plan_rows(plan.c) > plan.most:
            raise TooManyRows
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
    cdef object watch, error, left
    cdef int checks
    cdef uint64_t most
    cdef list used  # relations, which must live as long as the plan
    cdef dict functions  # operation → function, kinds of arguments, kind of the result
    cdef dict remembered
    cdef Symbols symbols

    def __cinit__(self, int ops, int registers, Symbols symbols, watch):
        self.c = plan_new(ops, <uint32_t>registers)
        if self.c == NULL:
            raise MemoryError
        self.c.call, self.c.check, self.c.context = _called, _checked, <void *>self
        self.watch, self.error, self.checks, self.most = watch, None, 0, 0
        self.used, self.functions, self.remembered, self.symbols = [], {}, {}, symbols

    def __dealloc__(self):
        plan_free(self.c)

    @property
    def derivations(self):
        """How often a fact was derived so far, new or known."""
        return self.c.derivations

    @property
    def rows(self):
        """The rows that its loops have tried so far."""
        return plan_rows(self.c)

    def counted(self):
        """How often each operation began, and the rows that it has tried if it is a loop.

        Tests of values and the like are not counted.
        """
        cdef int at
        counts = [(self.c.ops[at].entered, op_tried(&self.c.ops[at])) for at in range(self.c.count)]
        counts[self.c.count - 1] = self.c.derivations, 0
        return counts

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
        cdef bytearray held = bytearray((len(key) + 1) * sizeof(uint32_t))
        cdef uint32_t *columns = <uint32_t *><char *>held
        cdef Py_ssize_t place
        cdef COp *op = &self.c.ops[at]
        assert 0 <= at < self.c.count
        self.used.append(relation)
        if op.code in (FOUND, MISSING, UNKNOWN, ADD):
            relation.open()
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

    def fold(self, int at, int end, str kind, bint is_total, bint is_mean):
        """An aggregate at `at`, whose body ends with a `COLLECT` at `end`."""
        cdef COp *op = &self.c.ops[at]
        assert 0 <= at < end < self.c.count
        op.fold = fold_new(<CFoldKind><int>_FOLDS[kind], op.from_count)
        if op.fold == NULL:
            raise MemoryError
        op.skip, op.is_total = end + 1, is_total
        self.c.ops[end].fold = op.fold
        self.functions[at] = is_mean

    def range(self, int at, bint is_unsigned):
        """A loop over a range, or a test that a value is one of it."""
        self.c.ops[at].is_unsigned = is_unsigned

    cdef int total(self, int at, int64_t *word) except? -1:
        """The value of an aggregate over kept values: a sum, a mean, or a user's function."""
        cdef CFold *fold = self.c.ops[at].fold
        cdef uint64_t place
        cdef int64_t kept
        if fold.kind == KEPT:
            function, kinds, _ = self.functions[at]
            found = []
            for place in range(fold.count):
                memcpy(&kept, &fold.values[place], 8)
                found.append(_value(kept, kinds[0], self.symbols))
            word[0] = _word(function(found), kinds[1], self.symbols)
            return 1
        result = float_sum([fold.values[place] for place in range(fold.count)])
        word[0] = _word(result / fold.count if self.functions[at] else result, FLOAT, self.symbols)
        return 1

    cdef int replaces(self, int at, int64_t *words) except? -1:
        """Whether a symbol replaces the least or the greatest one so far."""
        new, old = self.symbols.texts[words[0]], self.symbols.texts[words[1]]
        return new < old if self.c.ops[at].fold.kind == SYMBOL_MIN else new > old

    cdef int answer(self, int at, int64_t *registers) except? -1:
        cdef COp *op = &self.c.ops[at]
        cdef Py_ssize_t place
        if op.code == FOLD:
            return self.total(at, registers)
        if op.code == COLLECT:
            return self.replaces(at, registers)
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

    def run(self, int jobs=1, uint64_t most=0):
        """Derive everything once, on several threads where there is enough to do.

        It raises TooManyRows after about `most` more rows, if that is not 0.
        """
        cdef int status
        cdef uint32_t row, end
        self.error = None
        self.most = most and most + plan_rows(self.c)
        if jobs > 1 and plan_has_blocks(self.c):
            row = self.c.ops[0].relation.lo if self.c.ops[0].version == DELTA else 0
            end = self.c.ops[0].relation.lo if self.c.ops[0].version == OLD else self.c.ops[0].relation.hi
            if end - row >= _WORTH_A_THREAD:
                self.end(self.run_on_threads(jobs, row, end))
                return
        with nogil:
            status = plan_run(self.c)
        self.end(status)

    cdef int run_on_threads(self, int jobs, uint32_t row, uint32_t end) except? -1:
        """Split the rows of the first loop; each thread takes some when it has done the last."""
        size = max(_WORTH_A_THREAD // 4, (end - row) // (8 * jobs))
        parts = [(start, min(start + size, end)) for start in range(row, end, size)]
        self.left = iter(parts)
        self.c.ops[0].entered += 1
        return Team(self, min(jobs, len(parts))).run()

    cdef stop(self, error):
        """Let all threads end soon."""
        self.error, self.left = error, iter(())

    cdef await_end(self, thread):
        """Wait for a thread, also after Ctrl-C: what it reads must not change before it ends."""
        while True:
            try:
                thread.join()
                return
            except BaseException as error:  # Ctrl-C
                self.stop(error)

    cdef int end(self, int status) except -1:
        if self.error is not None:
            error, self.error = self.error, None
            raise error
        if status == UNDEFINED:
            raise Undefined
        if status < 0:
            raise _failure(status)
        return 0

    cdef int follow(self, Live source, const CList *rows, int mode, bint inner, uint32_t *counts) except? -1:
        """Run on rows of a living relation; the status of a PROVE."""
        cdef int status
        cdef CUnit *unit = &source.unit.c
        cdef CLive *live = source.c
        self.error = None
        with nogil:
            status = live_run(self.c, unit, live, rows, <CMode>mode, inner, counts)
        if status == STOPPED:
            error, self.error = self.error, None
            raise error
        if status < 0:
            raise _trouble(status)
        return status

    def whole(self, Live head):
        """Derive everything for a living relation, by a rule that reads nothing of its unit."""
        self.follow(head, NULL, GAIN, True, NULL)

    def lose(self, Live source, bint inner):
        """Take back the derivations with the rows of `source` that go."""
        cdef const CList *rows = &source.c.delta if inner else &source.c.minus
        self.follow(source, rows, LOSE, inner, NULL)

    def lose_blocked(self, Live source):
        """Take back the derivations that new rows of `source`, a negated relation, rule out."""
        self.follow(source, &source.c.plus, LOSE, False, NULL)

    def gain(self, Live source, bint inner):
        """Count the derivations with the rows of `source` that came."""
        cdef const CList *rows = &source.c.delta if inner else &source.c.plus
        self.follow(source, rows, GAIN, inner, NULL)

    def gain_unblocked(self, Live source):
        """Count the derivations that rows of `source`, a negated relation, ruled out until now."""
        self.follow(source, &source.c.minus, GAIN, False, NULL)

    def proof(self, Live head, row, tuple registers, tuple kinds):
        """The values of registers in a derivation of a row from earlier ones; None without one."""
        cdef CList one
        cdef uint32_t number
        cdef int64_t *words = <int64_t *>PyMem_Malloc((head.c.relation.width + 1) * sizeof(int64_t))
        if words == NULL:
            raise MemoryError
        try:
            if row not in head:
                return None
            head.words_of(row, words)
            number = relation_find(head.c.relation, words)
        finally:
            PyMem_Free(words)
        one.rows, one.count = &number, 1
        if not self.follow(head, &one, PROVE, True, NULL):
            return None
        return tuple([_value(self.c.registers[<int>n], k, self.symbols) for n, k in zip(registers, kinds)])

    def keep(self):
        """Keep all registers until the end, before the first run: `proof` shows them."""
        self.c.keeps = 1

    def derivations_of(self, Live head):
        """For each row that is there: its number of derivations from earlier rows."""
        cdef CList rows
        cdef uint32_t number
        cdef bytearray held = bytearray((head.c.relation.count + 1) * sizeof(uint32_t)), found = bytearray(held)
        cdef uint32_t *counts = <uint32_t *><char *>found
        rows.rows, rows.count = <uint32_t *><char *>held, 0
        for number in range(head.c.relation.count):
            if head.c.lives[number].state == HERE:
                rows.rows[rows.count] = number
                rows.count += 1
        self.follow(head, &rows, COUNT, True, counts)
        return [counts[number] for number in range(rows.count)]


include "threads.pxi"
include "live.pxi"
include "best.pxi"
