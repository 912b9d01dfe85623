"""Runs in the worker of the playground: holds the current program, and answers its page."""

from everlog.serve.in_browser import started

service = None


def start(text, facts, name):
    """Run a program in place of the last one."""
    global service
    new, answer = started(text, facts, name)
    if new is not None:
        service = new
    return answer.status, answer.media, answer.body


def ask(method, target, headers, body):
    """The answer of the current program."""
    answer = service.answer(method, target, headers, None if body is None else bytes(body))
    return answer.status, answer.media, answer.body


def events():
    """What has changed since the last call."""
    return b"" if service is None else service.events()
