"""Limits, Ctrl-C and progress: a step ends in time or leaves no trace."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from everlog import Database, LimitExceeded, Limits
from everlog.core.engine import Engine
from everlog.core.evaluate.seminaive import evaluate
from everlog.core.program.executor import Update
from everlog.core.runtime import guards
from everlog.core.runtime.guards import Guard, Shield, memory_in_use
from everlog.dsl.check import compile_text


@pytest.fixture(autouse=True, scope="module")
def _small_heap() -> Iterator[None]:
    """Freeze the heap: rules make millions of tuples, and collections would be slow."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(autouse=True)
def _no_guard_on_watch() -> None:
    """Tests that interrupt at any line (tests/laws/test_interruptions.py) may leave one behind."""
    guards._watch.guard = None


def test_a_limit_is_reported_once_and_no_guard_stays_on_watch() -> None:
    """The timer ticks during a rollback, and must not affect the next step."""
    engine = Engine(compile_text(ENDLESS), limits=Limits(iterations=None, seconds=0.06))
    for _ in range(8):
        refused(engine, [Update("n", (1,))])
        assert guards._watch.guard is None
        time.sleep(0.06)


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize("signalled", [guards._watch._ticked, guards._watch._interrupted])
def test_a_step_that_is_being_undone_is_not_interrupted_again(signalled: Callable[..., None]) -> None:
    """A limit was found between two rounds; then the timer or Ctrl-C comes."""
    guard = Guard(Limits(seconds=0.0))
    guard.__enter__()
    with pytest.raises(LimitExceeded):
        guard.look()
    signalled(0, None)
    if signalled == guards._watch._interrupted:
        with pytest.raises(KeyboardInterrupt):
            guard.__exit__(None, None, None)
    else:
        guard.__exit__(None, None, None)
    assert guards._watch.guard is None


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_a_signal_while_the_guard_leaves_waits_until_it_has_left() -> None:
    guard = Guard(Limits(seconds=0.0))
    leaving = SimpleNamespace(f_code=Guard.__exit__.__code__)
    guard.__enter__()
    guards._watch._ticked(0, leaving)  # type: ignore[arg-type]  # all that is read of a frame
    guards._watch._interrupted(0, leaving)  # type: ignore[arg-type]
    with pytest.raises(KeyboardInterrupt):
        guard.__exit__(None, None, None)
    assert guards._watch.guard is None


ENDLESS = ".decl n(x:number)  n(x + 1) :- n(x)."
PRODUCT = """.decl v(x:number)  .decl p(x:number, y:number, z:number, w:number)  .decl q(x:number)
p(x, y, z, w) :- v(x), v(y), v(z), v(w).
q(x) :- p(x, x, x, x)."""
CLOSURE = """.decl e(x:number, y:number)  .decl p(x:number, y:number)
p(x, y) :- e(x, y).  p(x, z) :- p(x, y), e(y, z)."""
MANY = [Update("v", (x,)) for x in range(150)]


def engine_of(text: str, **limits: Any) -> Engine:
    return Engine(compile_text(text), limits=Limits(**limits))


def state_of(engine: Engine) -> dict[str, Any]:
    names = engine.program.relations
    return {name: (engine.view(name), set(engine.given(name))) for name in names}


def refused(engine: Engine, step: list[Update]) -> str:
    """The message of the limit that ends a step; these steps would take hours."""
    before = state_of(engine)
    with pytest.raises(LimitExceeded) as caught:
        engine.apply(step)
    assert state_of(engine) == before
    engine.check()
    return str(caught.value)


# ── limits ───────────────────────────────────────────────────────────────────────────────────


def test_a_recursion_that_computes_new_values_ends_at_the_limit_of_iterations() -> None:
    engine = engine_of(ENDLESS, iterations=100)
    message = refused(engine, [Update("n", (1,))])
    assert message.startswith("more than 100 iterations of n, whose rules compute new values")
    # and so does a rebuild, and an evaluation of the whole
    with pytest.raises(LimitExceeded, match="more than 100 iterations of n"):
        Engine(compile_text(ENDLESS + " n(1)."), limits=Limits(iterations=100))
    with pytest.raises(LimitExceeded, match="more than 100 iterations of n"):
        evaluate(compile_text(ENDLESS), {"n": [(1,)]}, limits=Limits(iterations=100))


def test_iterations_of_a_recursion_that_ends_by_itself_are_not_limited() -> None:
    engine = engine_of(CLOSURE, iterations=3)
    engine.apply([Update("e", (x, x + 1)) for x in range(50)])
    assert engine.size("p") == 51 * 50 // 2
    engine.apply([Update("e", (50, 51))])
    assert engine.size("p") == 52 * 51 // 2


def test_a_recursion_with_a_bound_of_its_own_is_let_go_on() -> None:
    engine = engine_of(".decl n(x:number)  n(x + 1) :- n(x), x < 90.", iterations=100)
    engine.apply([Update("n", (1,))])
    assert engine.size("n") == 90


@pytest.mark.parametrize("large", [1, 10**9])
def test_a_limit_of_facts_holds_for_each_step(large: int) -> None:
    engine = Engine(compile_text(CLOSURE), limits=Limits(facts=60), large=large)
    for x in range(9):
        engine.apply([Update("e", (x, x + 1))])
    assert engine.size("p") == 45
    message = refused(engine, [Update("e", (x, x + 1)) for x in range(9, 15)])
    assert message == "more than 60 facts derived in one step, the last ones of p"
    engine.apply([Update("e", (9, 10))])
    assert engine.size("p") == 55


def test_a_limit_of_facts_counts_those_of_rules_without_recursion() -> None:
    engine = engine_of(".decl v(x:number)  .decl p(x:number, y:number)  p(x, y) :- v(x), v(y).", facts=100)
    message = refused(engine, [Update("v", (x,)) for x in range(11)])
    assert message.endswith("the last ones of p")
    engine.apply([Update("v", (x,)) for x in range(10)])
    assert engine.size("p") == 100
    refused(engine, [Update("v", (x,)) for x in range(10, 16)])


def test_a_limit_of_facts_counts_facts_and_not_their_keys() -> None:
    text = ".decl v(x:number)  .decl w(x:number)  .decl p(x:number, y:number)  p(x, y) :- v(x), w(y)."
    engine = engine_of(text, facts=100)
    engine.apply([Update("w", (x,)) for x in range(60)])
    engine.apply([Update("v", (1,))])
    refused(engine, [Update("v", (2,)), Update("v", (3,))])
    engine.apply([Update("w", (x,)) for x in range(60, 101)])
    refused(engine, [Update("v", (2,))])


@pytest.mark.parametrize("large", [1, 10**9])
def test_a_huge_product_is_interrupted_by_the_clock(large: int) -> None:
    """One rule, one round: only the timer can look at the clock in the middle of it."""
    engine = Engine(compile_text(PRODUCT), limits=Limits(seconds=0.3), large=large)
    engine.apply([Update("v", (1,)), Update("v", (2,))])
    message = refused(engine, MANY)
    assert message.startswith("the step took more than 0.3 s at <text>:2\n  in the rule  p(x, y, z, w) :-")
    engine.apply([Update("v", (3,))])
    assert engine.size("p") == 81


def test_a_huge_product_is_interrupted_by_the_limit_of_memory() -> None:
    engine = Engine(compile_text(PRODUCT))
    engine.guard.limits = Limits(memory=memory_in_use() + (64 << 20))
    message = refused(engine, MANY)
    assert "MB: the step was given up" in message
    engine.guard.limits = Limits()
    engine.apply([Update("v", (3,))])
    assert engine.size("p") == 1


def test_an_endless_recursion_is_interrupted_by_the_clock() -> None:
    engine = engine_of(ENDLESS, iterations=None, seconds=0.3)
    assert refused(engine, [Update("n", (1,))]) == "the step took more than 0.3 s"


def test_a_whole_evaluation_is_interrupted_by_the_clock() -> None:
    with pytest.raises(LimitExceeded, match=r"the step took more than 0\.3 s"):
        evaluate(compile_text(PRODUCT), {"v": [(x,) for x in range(150)]}, limits=Limits(seconds=0.3))


def test_the_clock_starts_anew_with_each_step() -> None:
    engine = engine_of(CLOSURE, seconds=2.0)
    for x in range(3):
        engine.apply([Update("e", (x, x + 1))])
        time.sleep(0.8)
    assert engine.size("p") == 6


def test_a_time_limit_has_no_say_between_steps() -> None:
    """The timer that a step has set may go off when it has long returned."""
    engine = engine_of(CLOSURE, seconds=1.0)
    engine.apply([Update("e", (1, 2))])
    end = time.monotonic() + 1.3
    while time.monotonic() < end:
        pass


def test_units_that_are_computed_again_are_limited_too() -> None:
    text = """.decl e(x:number, y:number)  .decl q(x:number, y:number) eqrel  q(x, y) :- e(x, y).
    .decl n(i:number)  n(i + 1) :- n(i), q(i, i)."""
    engine = engine_of(text, facts=200)
    engine.apply([Update("e", (x, x + 1)) for x in range(10)])
    refused(engine, [Update("e", (x, x + 1)) for x in range(10, 30)])
    engine.apply([Update("e", (10, 11))])
    assert engine.size("q") == 144


@pytest.mark.parametrize("change", ["add", "drop"])
def test_a_change_of_rules_is_limited_and_leaves_no_trace(change: str) -> None:
    db = Database.from_text(
        CLOSURE + " .decl v(x:number)  v(x) :- e(x, _), !p(x, 0).", limits=Limits(iterations=50)
    )
    db.insert("e", [(x, x + 1) for x in range(5)])
    before = {name: db.view(name) for name in db.relations}, dict(db.rules)
    with pytest.raises(LimitExceeded):
        db.add_rule("v(x + 1) :- v(x).")
    assert ({name: db.view(name) for name in db.relations}, dict(db.rules)) == before
    db._engine.check()
    assert db.insert("e", (7, 8)) == {"e": {(7, 8): 1}, "p": {(7, 8): 1}, "v": {(7,): 1}}
    if change == "add":
        db.add_rule("v(x + 1) :- v(x), x < 9.")
        assert db.view("v") == [(x,) for x in range(10)]
    else:
        assert db.drop_rule("p#2").deleted("p") == [(x, y) for x in range(4) for y in range(x + 2, 6)]
    db._engine.check()


# ── other threads ────────────────────────────────────────────────────────────────────────────


def in_thread(work: Callable[[], Any]) -> Any:
    results: list[Any] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:
            results.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(timeout=30)
    assert not thread.is_alive()
    return results[0]


def test_in_another_thread_limits_are_looked_at_between_rounds() -> None:
    engine = engine_of(ENDLESS, iterations=None, seconds=0.2)
    found = in_thread(lambda: engine.apply([Update("n", (1,))]))
    assert isinstance(found, LimitExceeded)
    assert "0.2 s" in str(found)
    assert not engine.view("n")
    engine = engine_of(ENDLESS, iterations=500)
    assert isinstance(in_thread(lambda: engine.apply([Update("n", (1,))])), LimitExceeded)
    assert not engine.view("n")


def test_a_database_may_be_handed_to_another_thread() -> None:
    engine = engine_of(CLOSURE, seconds=10)
    engine.apply([Update("e", (1, 2))])
    assert dict(in_thread(lambda: engine.apply([Update("e", (2, 3))]))["p"]) == {(1, 3): 1, (2, 3): 1}
    engine.apply([Update("e", (1, 2), False)])
    assert engine.view("p") == {(2, 3)}


# ── progress ─────────────────────────────────────────────────────────────────────────────────


def test_progress_gets_units_iterations_and_facts() -> None:
    heard: list[tuple[str, int, int]] = []
    program = compile_text(CLOSURE + " .decl c(n:number)  c(n) :- n = count : { p(_, _) }.")
    engine = Engine(program, progress=lambda *told: heard.append(told), strategies={"p": "ranked_python"})
    heard.clear()
    engine.apply([Update("e", (x, x + 1)) for x in range(4)])
    rounds = [(iteration, facts) for unit, iteration, facts in heard if unit == "p"]
    assert [iteration for iteration, _ in rounds] == [1, 2, 3, 4]
    assert [facts for _, facts in rounds] == sorted(facts for _, facts in rounds)
    assert rounds[-1][1] - rounds[0][1] == 3 + 2 + 1
    assert [unit for unit, _, _ in heard].index("p") < [unit for unit, _, _ in heard].index("c")
    heard.clear()
    engine.apply([Update("e", (4, 5))])
    assert ("p", 1, 5) in heard, "facts are counted anew in each step"


@pytest.mark.parametrize("large", [1, 10**9])
@pytest.mark.parametrize("at", range(1, 12))
def test_an_exception_in_progress_ends_the_step_and_leaves_no_trace(at: int, large: int) -> None:
    calls = [0, 10**9]  # so far, and when to fail

    def progress(unit: str, iteration: int, facts: int) -> None:
        calls[0] += 1
        if calls[0] == calls[1]:
            raise RuntimeError("enough")

    program = compile_text(CLOSURE + " .decl c(n:number)  c(n) :- n = count : { p(_, _) }.")
    engine = Engine(program, progress=progress, large=large)
    engine.apply([Update("e", (x, x + 1)) for x in range(4)])
    before = state_of(engine)
    step = [Update("e", (2, 3), False), Update("e", (4, 5)), Update("e", (3, 0)), Update("e", (2, 5))]
    calls[:] = 0, at
    try:
        engine.apply(step)
    except RuntimeError:
        assert state_of(engine) == before
        engine.check()
        calls[:] = 0, 10**9
        engine.apply(step)
    else:
        assert calls[0] < at
    assert engine.view("p") == evaluate(program, {"e": engine.view("e")}).relation("p")
    engine.check()


def test_progress_cannot_write() -> None:
    db: Database
    errors: list[BaseException] = []

    def progress(unit: str, iteration: int, facts: int) -> None:
        try:
            db.insert("e", (9, 9))
        except RuntimeError as error:
            errors.append(error)

    db = Database.from_text(CLOSURE)
    db._engine.guard.progress = progress
    db.insert("e", [(x, x + 1) for x in range(4)])
    assert errors
    assert not db.holds("e", (9, 9))


# ── the shield ───────────────────────────────────────────────────────────────────────────────


def test_an_interruption_waits_for_the_shield() -> None:
    guard = Guard(Limits())
    done = []
    with pytest.raises(KeyboardInterrupt), guard:  # noqa: PT012
        with guard.shield:
            guard.interrupt(KeyboardInterrupt())
            done.append("all of it")
        done.append("and not more")
    assert done == ["all of it"]
    assert not guard.shield.held
    with pytest.raises(KeyboardInterrupt):
        guard.interrupt(KeyboardInterrupt())


def test_an_error_under_the_shield_comes_first() -> None:
    shield = Shield()
    with pytest.raises(ValueError, match="ours"), shield:  # noqa: PT012
        shield.pending = KeyboardInterrupt()
        raise ValueError("ours")
    assert not shield.held


# ── Ctrl-C ───────────────────────────────────────────────────────────────────────────────────

INTERRUPTED = """
import time
from everlog.core.engine import Engine
from everlog.core.program.executor import Update
from everlog.core.runtime.guards import Limits
from everlog.dsl.check import compile_text

def state():
    return [(engine.view(name), set(engine.given(name))) for name in engine.program.relations]

engine = Engine(compile_text('''PROGRAM'''), limits=Limits(iterations=None, seconds=60))
engine.apply([Update("v", (1,))])
before = state()
print("ready", flush=True)
try:
    engine.apply(STEP)
except KeyboardInterrupt:
    print("interrupted", flush=True)
    end = time.monotonic() + 1.0
    while time.monotonic() < end:  # somebody leans on the key
        try:
            time.sleep(0.05)
        except KeyboardInterrupt:
            pass
assert state() == before
engine.check()
engine.guard.limits = Limits(facts=100)
print(*sorted(engine.apply([Update("v", (2,))])))
engine.check()
try:
    print("idle", flush=True)
    time.sleep(20)
except KeyboardInterrupt:
    print("interrupted again")
"""
STEPS = {
    "one rule": (PRODUCT, "[Update('v', (x,)) for x in range(2, 200)]", "p q v"),
    "rounds": (ENDLESS + " .decl v(x:number)", "[Update('n', (1,))]", "v"),
    "rounds of large sets": (  # with ranks in Python: as a flow it would be over too soon
        CLOSURE + " .strategy ranked_python\n.decl v(x:number)",
        "[Update('e', (x, y)) for x in range(3000) for y in (x + 1, (x * 7) % 3000)]",
        "v",
    ),
}


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize("signals", [1, 3])
@pytest.mark.parametrize("name", STEPS)
def test_ctrl_c_reaches_the_caller_and_leaves_the_state_of_before(name: str, signals: int) -> None:
    program, step, changed = STEPS[name]
    script = INTERRUPTED.replace("PROGRAM", program).replace("STEP", step)
    with subprocess.Popen(
        [sys.executable, "-P", "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.3)
        for _ in range(signals):
            process.send_signal(signal.SIGINT)
            time.sleep(0.02)
        heard = [process.stdout.readline() for _ in range(3)]
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert (heard, out, err) == (["interrupted\n", f"{changed}\n", "idle\n"], "interrupted again\n", "")


def test_handlers_of_others_are_left_alone() -> None:
    """A program that handles SIGINT or SIGALRM itself goes on doing so."""
    script = f"""
import signal, time
heard = []
signal.signal(signal.SIGINT, lambda *_: heard.append("int"))
signal.signal(signal.SIGALRM, lambda *_: heard.append("alarm"))
from everlog.core.engine import Engine
from everlog.core.program.executor import Update
from everlog.core.runtime.guards import Limits, LimitExceeded
from everlog.dsl.check import compile_text
engine = Engine(compile_text('''{ENDLESS}'''), limits=Limits(iterations=None, seconds=0.3))
signal.setitimer(signal.ITIMER_REAL, 0.05)
try:
    engine.apply([Update("n", (1,))])
except LimitExceeded:
    print(*heard)
signal.raise_signal(signal.SIGINT)
print(*heard)
"""
    done = subprocess.run(
        [sys.executable, "-P", "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.stdout, done.stderr) == ("alarm\nalarm int\n", "")


def test_an_alarm_set_between_steps_is_left_alone_and_then_the_limit_holds_again() -> None:
    """The process has one timer: a handler or alarm set after the first step keeps it."""
    script = f"""
import signal, time
from everlog.core.engine import Engine
from everlog.core.program.executor import Update
from everlog.core.runtime.guards import Limits, LimitExceeded
from everlog.dsl.check import compile_text
def run(name, text, step):
    engine = Engine(compile_text(text), limits=Limits(iterations=None, seconds=0.2))
    try:
        engine.apply(step)
        print(name, "whole", *heard)
    except LimitExceeded:
        print(name, "limited", *heard)
heard = []
rounds = '''{ENDLESS}''', [Update("n", (1,))]
one_rule = '''{PRODUCT}''', [Update("v", (x,)) for x in range(200)]
run("first", *rounds)
time.sleep(0.1)
before = signal.signal(signal.SIGALRM, lambda *_: heard.append("alarm"))
run("handler", *rounds)
signal.alarm(60)
run("alarm", *rounds)
print(50 < signal.getitimer(signal.ITIMER_REAL)[0] <= 60)
signal.alarm(0)
signal.signal(signal.SIGALRM, before)
run("given back", *one_rule)
time.sleep(0.1)
signal.signal(signal.SIGALRM, signal.SIG_DFL)
run("of nobody", *one_rule)
time.sleep(0.1)
signal.signal(signal.SIGALRM, signal.SIG_DFL)
signal.alarm(60)
run("to end the process", *rounds)
print(50 < signal.getitimer(signal.ITIMER_REAL)[0] <= 60, signal.getsignal(signal.SIGALRM) is signal.SIG_DFL)
"""
    done = subprocess.run(
        [sys.executable, "-P", "-c", script], capture_output=True, text=True, timeout=100, check=False
    )
    told = ["first limited", "handler limited", "alarm limited", "True", "given back limited"]
    told += ["of nobody limited", "to end the process limited", "True True"]
    assert (done.stdout.splitlines(), done.stderr) == (told, "")


# ── the command line ─────────────────────────────────────────────────────────────────────────


def everlog_run(tmp_path: Path, text: str, *arguments: str, stdin: str = "") -> tuple[int, str, str]:
    (tmp_path / "p.dl").write_text(text)
    done = subprocess.run(
        [sys.executable, "-P", "-m", "everlog", "run", "p.dl", *arguments],
        cwd=tmp_path,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--max-iterations", "1000"), "more than 1000 iterations of n, whose rules compute new values"),
        (("--max-facts", "1000"), "more than 1000 facts derived in one step, the last ones of n"),
        (("--max-seconds", "0.5"), "the step took more than 0.5 s"),
    ],
)
def test_a_divergent_program_ends_with_a_clear_error(
    tmp_path: Path, flags: tuple[str, ...], message: str, stream: bool
) -> None:
    if stream:
        status, out, err = everlog_run(tmp_path, ENDLESS + ".output n", "--updates", "-", *flags, stdin="+n(1).\n")
        assert out == "(no change)\n"
    else:
        status, out, err = everlog_run(tmp_path, ENDLESS + " n(1). .output n", *flags)
        assert out == ""
        assert not (tmp_path / "n.csv").exists()
    assert status == 1
    assert "error: " in err
    assert message in err
    assert "Traceback" not in err


@pytest.mark.deep
def test_without_any_limit_a_divergent_program_ends_by_its_iterations(tmp_path: Path) -> None:
    status, _, err = everlog_run(tmp_path, ENDLESS + " n(1). .output n")
    assert status == 1
    assert "more than 1000000 iterations of n" in err


def test_ctrl_c_ends_a_run_quietly(tmp_path: Path) -> None:
    (tmp_path / "p.dl").write_text(ENDLESS + " n(1). .output n")
    with subprocess.Popen(
        [sys.executable, "-P", "-m", "everlog", "run", "-v", "p.dl"],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        assert process.stderr.readline().startswith("n: round 1, ")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert err.endswith("interrupted\n")
    assert "Traceback" not in err
    assert not (tmp_path / "n.csv").exists()
