"""A service from its start to its end.

The main thread runs the job queue, where the database lives and signals arrive; another thread runs
the event loop that serves HTTP.  At the first SIGTERM or SIGINT the current step is finished,
waiting requests are refused, subscribers get an `end`, and connections and database are closed; at
the second the current step is undone.
"""

from __future__ import annotations

import logging
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Thread
from types import FrameType

import uvicorn

from everlog.core.runtime.guards import Broken, give_up
from everlog.serve.http.access import AccessRules
from everlog.serve.http.app import application
from everlog.serve.http.connections import MOST, Connection
from everlog.serve.jobs.job_queue import JobQueue
from everlog.serve.service import Service

_FILES = 100  # descriptors for all but connections
_GRACE = 3  # seconds for connections to end by themselves
# Seconds that a job may compute while HTTP waits: each system call in HTTP's thread waits once, and
# a client that opens a thousand connections causes thousands of them.
_ENOUGH = 0.0001


class CannotListen(Exception):
    """The address is in use or not available; the message says what to do."""


def listening(host: str, port: int, stalled: float) -> socket.socket:
    """A socket that listens on an address."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, _, _, _, address = found[0]
        # asyncio needs the protocol number to set TCP_NODELAY
        listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if hasattr(socket, "TCP_USER_TIMEOUT"):  # a client that acknowledges nothing this long is gone
                listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(stalled * 1000))
            listener.bind(address)
            listener.listen(1024)
        except OSError:
            listener.close()
            raise
        return listener
    except OSError as problem:
        reason = problem.strerror or str(problem)
        hint = "; choose another one with `--port`, or 0 for a free one"
        raise CannotListen(f"cannot listen on {host}, port {port}: {reason}{hint}") from None


def address_of(listener: socket.socket) -> str:
    """The URL of a listening socket."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


def serve(
    service: Service, listener: socket.socket, access: AccessRules, ready: Callable[[], None] = lambda: None
) -> None:
    """Serve until a signal; call it in the main thread."""
    jobs = JobQueue()
    allow_connections()
    logging.getLogger("uvicorn").setLevel(logging.CRITICAL)  # `errors` reports errors
    config = uvicorn.Config(
        application(service, jobs, access),
        http=Connection,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=_GRACE,
    )
    server = uvicorn.Server(config)
    failed: list[BaseException] = []

    def run() -> None:
        try:
            server.run(sockets=[listener])
        except BaseException as error:  # close the job queue, which would wait for ever
            failed.append(error)
        finally:
            jobs.close()

    thread = Thread(target=run, name="everlog-http", daemon=True)
    interval = sys.getswitchinterval()
    with _signals(jobs):
        sys.setswitchinterval(_ENOUGH)
        thread.start()
        try:
            ready()
            jobs.work()
        finally:
            service.hub.end("the service is stopping")
            server.should_exit = True
            thread.join(_GRACE + 5)
            sys.setswitchinterval(interval)
    if failed:
        raise failed[0]
    if jobs.broken:
        raise Broken("a step failed and could not be undone: the service has ended; start it again")


def allow_connections() -> None:
    """Raise the limit of open files to the number of connections."""
    try:
        import resource
    except ImportError:  # Windows
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST + _FILES if hard == resource.RLIM_INFINITY else min(MOST + _FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


@contextmanager
def _signals(jobs: JobQueue) -> Iterator[None]:
    """The first signal closes the job queue, the second interrupts the current job."""

    def stop(number: int, frame: FrameType | None) -> None:
        if jobs.closed:
            give_up(number, frame)
        jobs.close()

    previous = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
