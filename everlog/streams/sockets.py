"""Sockets on this machine: TCP on loopback, and Unix sockets.

There is no authentication and no encryption, so an address that is not loopback is refused.
"""

from __future__ import annotations

import os
import socket
import stat
from ipaddress import ip_address
from urllib.parse import urlsplit

from attrs import frozen

from everlog.files.location import reason
from everlog.files.text_values import FactsError

SCHEMES = frozenset({"tcp", "unix", "tcp-listen", "unix-listen"})


@frozen
class Address:
    """The address of a socket, and whether to listen or to connect."""

    url: str
    listens: bool
    path: str | None
    host: str = ""
    port: int = 0

    def connect(self) -> socket.socket:
        """A connection to the address."""
        end = self._socket()
        try:
            end.connect(self.path if self.path is not None else (self.host, self.port))
        except OSError as problem:
            end.close()
            raise FactsError(f"cannot connect to {self.url}: {reason(problem)}") from None
        return end

    def listen(self) -> socket.socket:
        """A listening socket; a stale Unix socket is replaced."""
        end = self._socket()
        try:
            if self.path is not None:
                _remove_stale(self.path)
                old = os.umask(0o177)  # only for its owner
                try:
                    end.bind(self.path)
                finally:
                    os.umask(old)
            else:
                end.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                end.bind((self.host, self.port))
            end.listen()
            end.setblocking(False)
        except OSError as problem:
            end.close()
            raise FactsError(f"cannot listen at {self.url}: {reason(problem)}") from None
        return end

    def _socket(self) -> socket.socket:
        if self.path is not None:
            return socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        return socket.socket(socket.AF_INET6 if ":" in self.host else socket.AF_INET, socket.SOCK_STREAM)


def _remove_stale(path: str) -> None:
    """Remove a socket on which no process listens any more."""
    try:
        if not stat.S_ISSOCK(os.stat(path).st_mode):
            return
    except FileNotFoundError:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            os.unlink(path)


def address_of(url: str) -> Address:
    """Parse the URL of a socket.

    >>> address_of("tcp-listen://127.0.0.1:9000").port, address_of("unix:///run/x.sock").path
    (9000, '/run/x.sock')
    """
    parts = urlsplit(url)
    listens = parts.scheme.endswith("-listen")
    if parts.scheme.startswith("unix"):
        path = parts.netloc + parts.path
        if not path:
            raise FactsError(f"{url}: a path is missing, as in unix:///run/changes.sock")
        return Address(url, listens, path)
    try:
        host, port = parts.hostname or "", parts.port
    except ValueError as problem:
        raise FactsError(f"{url}: {problem}") from None
    if port is None:
        raise FactsError(f"{url}: a port is missing, as in tcp://127.0.0.1:9000")
    if not _is_loopback(host):
        raise FactsError(
            f"{url}: only 127.0.0.1, ::1 and localhost are allowed, since there is no authentication;"
            " use an SSH tunnel to reach other machines"
        )
    return Address(url, listens, None, host, port)


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
