# Plans on several threads; part of _machine.pyx.
#
# The threads add to one relation (shared.h).  Where it has no room for more rows, each thread waits
# at the end of its batch, and the last one makes room for all.

from cpython.pythread cimport (
    PyThread_acquire_lock, PyThread_allocate_lock, PyThread_free_lock, PyThread_release_lock, PyThread_type_lock,
    WAIT_LOCK,
)


cdef struct Member:  # a thread
    Meeting *meeting
    PyThread_type_lock gate  # closed, but when the thread may go on
    bint waits
    CShare *share


cdef struct Meeting:
    PyThread_type_lock lock  # for all that follows
    CShared shared
    Member *members
    CShare **shares
    int count, running, waiting
    int status  # of the last time that room was made


cdef int _let_on(Meeting *meeting) noexcept nogil:
    """Once all threads that run wait: make room, and let them go on."""
    cdef int place
    if meeting.waiting and meeting.waiting == meeting.running:
        meeting.status = shared_grow(&meeting.shared, meeting.shares, meeting.count)
        meeting.waiting = 0
        for place in range(meeting.count):
            if meeting.members[place].waits:
                meeting.members[place].waits = False
                PyThread_release_lock(meeting.members[place].gate)
    return meeting.status


cdef int _wait(void *thread, int needs_room) noexcept nogil:
    cdef Member *member = <Member *>thread
    cdef Meeting *meeting = member.meeting
    PyThread_acquire_lock(meeting.lock, WAIT_LOCK)
    if not needs_room and not LOAD(&meeting.shared.wanted):  # it was made meanwhile
        PyThread_release_lock(meeting.lock)
        return 0
    STORE(&meeting.shared.wanted, 1)
    member.waits = True
    meeting.waiting += 1
    _let_on(meeting)
    PyThread_release_lock(meeting.lock)
    PyThread_acquire_lock(member.gate, WAIT_LOCK)
    return meeting.status


cdef void _join(Member *member, int change) noexcept nogil:
    """A thread begins or ends."""
    PyThread_acquire_lock(member.meeting.lock, WAIT_LOCK)
    member.meeting.running += change
    _let_on(member.meeting)
    PyThread_release_lock(member.meeting.lock)


cdef class Worker:
    """A thread's part of a plan."""

    cdef Plan plan
    cdef CPlan *c
    cdef Member *member
    cdef int status

    def __cinit__(self, Plan plan, Team team, int place):
        self.plan, self.member = plan, &team.meeting.members[place]
        self.c = plan_clone(plan.c, &team.meeting.shared)
        if self.c == NULL:
            raise MemoryError
        self.c.wait, self.c.thread = _wait, self.member
        self.member.share = team.meeting.shares[place] = &self.c.share

    def __dealloc__(self):
        plan_free(self.c)

    def work(self):
        cdef uint32_t row, end
        cdef int status
        with nogil:
            _join(self.member, 1)
        for part in self.plan.left:
            row, end = part
            with nogil:
                status = plan_run_blocks(self.c, row, end)
            plan_tell(self.c)
            if status < 0 or self.plan.error is not None:
                self.status = status if status < 0 else STOPPED
                self.plan.left = iter(())
                break
        with nogil:
            if self.status >= 0:
                self.status = plan_flush(self.c)
            _join(self.member, -1)


cdef class Team:
    """The threads of one run of a plan."""

    cdef Meeting meeting
    cdef list workers
    cdef Plan plan

    def __cinit__(self, Plan plan, int count):
        cdef int place, status
        cdef Meeting *meeting = &self.meeting
        self.plan = plan
        meeting.lock = PyThread_allocate_lock()
        meeting.members = <Member *>PyMem_Calloc(count, sizeof(Member))
        meeting.shares = <CShare **>PyMem_Calloc(count, sizeof(CShare *))
        if meeting.lock == NULL or meeting.members == NULL or meeting.shares == NULL:
            raise MemoryError
        meeting.count = count
        for place in range(count):
            meeting.members[place].meeting = meeting
            meeting.members[place].gate = PyThread_allocate_lock()
            if meeting.members[place].gate == NULL:
                raise MemoryError
            PyThread_acquire_lock(meeting.members[place].gate, WAIT_LOCK)
        self.workers = [Worker(plan, self, place) for place in range(count)]
        status = shared_begin(&meeting.shared, plan.c.ops[plan.c.count - 1].relation, count)
        if status < 0:
            raise _failure(status)

    def __dealloc__(self):
        cdef int place
        for place in range(self.meeting.count):
            if self.meeting.members[place].gate != NULL:
                PyThread_free_lock(self.meeting.members[place].gate)
        if self.meeting.lock != NULL:
            PyThread_free_lock(self.meeting.lock)
        PyMem_Free(self.meeting.members)
        PyMem_Free(self.meeting.shares)

    cdef int run(self) except? -1:
        """Let all of them work; the least status."""
        cdef Worker worker
        threads = []
        try:
            for worker in self.workers[1:]:
                thread = Thread(target=worker.work)
                thread.start()
                threads.append(thread)
            self.workers[0].work()
        except BaseException as error:  # no more threads, Ctrl-C
            self.plan.stop(error)
        for thread in threads:
            self.plan.await_end(thread)
        shared_settle(&self.meeting.shared, self.meeting.shares, self.meeting.count)
        status = 0
        for worker in self.workers:
            status = min(status, worker.status)
        return status
