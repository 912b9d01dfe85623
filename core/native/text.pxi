# Symbols, and values as text; part of _machine.pyx.

from cpython.object cimport PyObject

cdef extern from "Python.h":
    double PyOS_string_to_double(const char *text, char **end, PyObject *overflow) except? -1.0
    char *PyOS_double_to_string(double value, char format, int precision, int flags, int *type)

cdef extern from *:
    """
    #if defined(__GLIBC__)
    #include <malloc.h>
    static void give_memory_back(void) { mallopt(M_MMAP_THRESHOLD, 1 << 20); }
    #else
    static void give_memory_back(void) {}
    #endif
    """
    void give_memory_back()

cdef enum: _LONGEST = 40  # characters of a decimal
cdef double _POWERS[16]
for _place in range(16):
    _POWERS[_place] = 10.0 ** _place


def large_arrays_apart():
    """Give each large array pages of its own, in this whole process.

    They go back to the system when the array is freed or moves, instead of leaving holes.
    """
    give_memory_back()


def _is_utf8(bytes data):
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


cdef class Symbols:
    """The symbols of one evaluation, each with its id: 0, 1, 2, …

    They are found by their bytes in UTF-8: the high half of an entry is part of the hash, the low half
    an id + 1.  Texts that have no UTF-8 are in `odd`.
    """

    cdef dict odd
    cdef list texts
    cdef uint32_t *ranks
    cdef Py_ssize_t ranked
    cdef uint64_t *entries
    cdef Py_ssize_t entry_count, mask

    def __cinit__(self):
        self.odd, self.texts = {}, []
        self.ranks, self.ranked = NULL, -1
        self.entry_count, self.mask = 0, 63
        self.entries = <uint64_t *>PyMem_Calloc(self.mask + 1, sizeof(uint64_t))
        if self.entries == NULL:
            raise MemoryError

    def __dealloc__(self):
        PyMem_Free(self.ranks)
        PyMem_Free(self.entries)

    def __len__(self):
        return len(self.texts)

    cdef bint knows(self, tuple row) except -1:
        """Whether all symbols of a row have an id."""
        for value in row:
            if type(value) is str and not self.has(value):
                return False
        return True

    cdef bint has(self, object text) except -1:
        cdef Py_ssize_t size
        cdef const char *held
        try:
            held = PyUnicode_AsUTF8AndSize(text, &size)
        except UnicodeEncodeError:
            return text in self.odd
        return self.entries[self.place_of(held, size, _hash_of_bytes(held, size))] != 0

    cdef int64_t id_of(self, object text) except -1:
        cdef Py_ssize_t size
        cdef const char *held
        try:
            held = PyUnicode_AsUTF8AndSize(text, &size)
        except UnicodeEncodeError:
            if text not in self.odd:
                self.odd[text] = len(self.texts)
                self.texts.append(text)
            return self.odd[text]
        return self.id_of_bytes(held, size, _hash_of_bytes(held, size), text)

    cdef int64_t id_of_bytes(self, const char *text, Py_ssize_t size, uint64_t hash, object known=None) except -1:
        """The id of a symbol in UTF-8; `known` is the same as an object, if there is one."""
        cdef Py_ssize_t at = self.place_of(text, size, hash), found = len(self.texts)
        if self.entries[at]:
            return <int64_t>(self.entries[at] & 0xFFFFFFFF) - 1
        self.texts.append(PyUnicode_DecodeUTF8(text, size, NULL) if known is None else known)
        self.entries[at] = (hash & <uint64_t>0xFFFFFFFF00000000) | <uint64_t>(found + 1)
        self.entry_count += 1
        if 2 * self.entry_count > self.mask:
            self.grow()
        return found

    cdef Py_ssize_t place_of(self, const char *text, Py_ssize_t size, uint64_t hash) except -1:
        """The place of the entry of a symbol, or of the empty one where it would be put."""
        cdef Py_ssize_t at = <Py_ssize_t>(hash & <uint64_t>self.mask), stored
        cdef uint64_t entry, high = hash & <uint64_t>0xFFFFFFFF00000000
        cdef const char *known
        while self.entries[at]:
            entry = self.entries[at]
            if entry - (entry & 0xFFFFFFFF) == high:
                known = PyUnicode_AsUTF8AndSize(self.texts[<Py_ssize_t>(entry & 0xFFFFFFFF) - 1], &stored)
                if stored == size and not memcmp(known, text, <size_t>size):
                    break
            at = (at + 1) & self.mask
        return at

    cdef int grow(self) except -1:
        """Twice the entries; an entry is found by the low half of its hash, so it is computed again."""
        cdef Py_ssize_t mask = 2 * self.mask + 1, old, at, size
        cdef uint64_t *entries = <uint64_t *>PyMem_Calloc(mask + 1, sizeof(uint64_t))
        cdef const char *text
        if entries == NULL:
            raise MemoryError
        for old in range(self.mask + 1):
            if self.entries[old]:
                text = PyUnicode_AsUTF8AndSize(self.texts[<Py_ssize_t>(self.entries[old] & 0xFFFFFFFF) - 1], &size)
                at = <Py_ssize_t>(_hash_of_bytes(text, size) & <uint64_t>mask)
                while entries[at]:
                    at = (at + 1) & mask
                entries[at] = self.entries[old]
        PyMem_Free(self.entries)
        self.entries, self.mask = entries, mask
        return 0

    def numbers(self, list texts):
        """The ids of symbols, as the bytes of words."""
        cdef bytearray ids = bytearray(len(texts) * sizeof(int64_t))
        cdef int64_t *to = <int64_t *><char *>ids
        cdef Py_ssize_t place
        for place in range(len(texts)):
            to[place] = self.id_of(texts[place])
        return bytes(ids)

    def texts_of(self, numbers):
        """The symbols with these ids."""
        return [self.texts[number] for number in numbers]

    cpdef bint can_be_written(self):
        """Whether all symbols can be written in UTF-8; those with invalid bytes cannot."""
        cdef Py_ssize_t size
        try:
            for text in self.texts:
                PyUnicode_AsUTF8AndSize(text, &size)
        except UnicodeEncodeError:
            return False
        return True

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


cdef inline uint64_t _hash_of_bytes(const char *text, Py_ssize_t size) noexcept:
    cdef uint64_t hash = 0xCBF29CE484222325
    cdef Py_ssize_t place
    for place in range(size):
        hash = (hash ^ <unsigned char>text[place]) * <uint64_t>0x100000001B3
    return hash ^ (hash >> 29)


cdef const char *_integer(const char *text, const char *end, int kind, int64_t *word) noexcept:
    """Read an integer as JSON writes it; return what follows, or NULL if it is another text."""
    cdef uint64_t value = 0
    cdef const char *digits
    cdef bint negative = kind == NUMBER and text < end and text[0] == b"-"
    if negative:
        text += 1
    digits = text
    while text < end and b"0" <= text[0] <= b"9":
        value = 10 * value + <uint64_t>(text[0] - 48)
        text += 1
    if text == digits or text - digits > 19 or (text - digits > 1 and digits[0] == b"0"):
        return NULL
    if kind == NUMBER and value > <uint64_t>0x7FFFFFFFFFFFFFFF + negative:
        return NULL
    word[0] = <int64_t>(0 - value if negative else value)
    return text


cdef const char *_float(const char *text, const char *end, char mark, int64_t *word) except? NULL:
    """Read a plain decimal that a float holds; return what follows, or NULL if it is another text."""
    cdef char digits[_LONGEST + 1]
    cdef const char *at = text
    cdef Py_ssize_t size
    cdef uint64_t whole = 0
    cdef int figures = 0, behind = -1
    cdef bint has_exponent = False, has_digit = False
    cdef double value
    while at < end and at[0] != mark and at[0] != b"\n":
        if b"0" <= at[0] <= b"9":
            has_digit = has_digit or at[0] != b"0" and not has_exponent
            if figures < 18:
                whole = 10 * whole + <uint64_t>(at[0] - 48)
            figures += 1
            behind += behind >= 0
        elif at[0] == b".":
            if behind >= 0:
                return NULL
            behind = 0
        elif at[0] == b"e" or at[0] == b"E":
            has_exponent = True
        elif at[0] != b"-" and at[0] != b"+" or at != text and not has_exponent or at == text and at[0] == b"+":
            return NULL
        at += 1
    size = at - text
    if not figures or size > _LONGEST:
        return NULL
    if not has_exponent and figures < 16 and behind < 16:  # both are exact, so the quotient is rounded once
        value = <double>whole / _POWERS[max(behind, 0)]
        if text[0] == b"-":
            value = -value
    else:
        memcpy(digits, text, <size_t>size)
        digits[size] = 0
        try:
            value = PyOS_string_to_double(digits, NULL, NULL)
        except ValueError:
            return NULL
        if not -9007199254740992.0 < value < 9007199254740992.0 and (not has_exponent or value - value != 0):
            return NULL
        if value == 0 and has_digit:
            return NULL
    value += 0.0
    memcpy(word, &value, 8)
    return at


cdef char *_written(char *at, int64_t word, int kind) noexcept:
    """Write an integer; return what follows."""
    cdef char digits[24]
    cdef int count = 0
    cdef uint64_t value = <uint64_t>word
    if kind == NUMBER and word < 0:
        at[0] = b"-"
        at += 1
        value = 0 - value
    while True:
        digits[count] = <char>(48 + value % 10)
        count += 1
        value //= 10
        if not value:
            break
    while count:
        count -= 1
        at[0] = digits[count]
        at += 1
    return at


cdef bytes _float_text(int64_t word):
    """As `core.program.values.float_text` writes a float."""
    cdef double value
    cdef char *text
    memcpy(&value, &word, 8)
    if value != value:
        return b"-nan"
    text = PyOS_double_to_string(value, b"g", 17, 0, NULL)
    if text == NULL:
        raise MemoryError
    try:
        return <bytes>text
    finally:
        PyMem_Free(text)
