"""What the tests of what programs do wrong share, whatever the host: each test in a process of its own, processes that
are forked, threads, broken files.
"""

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(REPOSITORY / "crates/python/tests"))
import flatfile  # noqa: E402,F401: the writer of small models

FLOAT = REPOSITORY / "assets/digits/digits_float32.tflite"
INT8 = REPOSITORY / "assets/digits/digits_int8.tflite"
TESTS = {}
# A test that takes longer hangs; on a machine that is busy most take some seconds.
SECONDS = 600


def test(function):
    TESTS[function.__name__] = function
    return function


def fails(call, *words):
    """The message of a call that must fail, and say these words."""
    try:
        call()
    except (ValueError, RuntimeError) as error:
        text = str(error)
        assert all(word in text for word in words), text
        return text
    raise AssertionError("it did not fail")


def image(kind, seed=0, shape=(1, 8, 8, 1)):
    """An input of the digits' models."""
    random = np.random.default_rng(seed)
    if kind == np.float32:
        return random.random(shape, np.float32)
    return random.integers(-128, 128, shape).astype(kind)


class Hangs(AssertionError):
    """A process did not end in time."""


def forked(call, seconds=60):
    """Calls in a process that is forked. What that ends with: 0, 1 after an exception, -N after signal N; `Hangs`: it does
    not end.
    """
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            call()
            code = 0
        except BaseException as error:
            print(repr(error), file=sys.stderr)
        os._exit(code)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    raise Hangs(f"the child has not ended after {seconds} s")


def on_threads(work, arguments):
    """Calls on a thread for each argument, and raises what one of them raises."""
    problems = []

    def catching(argument):
        try:
            work(argument)
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=catching, args=(it,)) for it in arguments]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems, problems


def said_on_stderr(call):
    """What is written to standard error during a call, by whom ever."""
    own = os.dup(2)
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 2)
        try:
            call()
        finally:
            os.dup2(own, 2)
            os.close(own)
        file.seek(0)
        return file.read().decode(errors="replace")


@contextlib.contextmanager
def service():
    """The name of a device of another process, and what ends that; None where NNHAL_PROGRAM names no program."""
    program = os.environ.get("NNHAL_PROGRAM")
    if not program:
        yield None, None
        return
    with tempfile.TemporaryDirectory() as folder:
        socket = pathlib.Path(folder) / "socket"
        process = subprocess.Popen([program, "service", "--socket", str(socket)], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)

        def end():
            process.kill()
            process.wait()

        try:
            limit = time.monotonic() + 60
            while not socket.exists() and time.monotonic() < limit:
                time.sleep(0.05)
            yield f"unix:{socket}", end
        finally:
            end()


def forks_meanwhile(busy, child, count):
    """What `child` ends with in processes that are forked while a thread calls `busy` again and again."""
    stop = threading.Event()

    def work():
        while not stop.is_set():
            busy()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        return [forked(child) for _ in range(count)]
    finally:
        stop.set()
        thread.join()


def broken_files(plain, ours, count):
    """Runs files with bytes that were changed, first on the host alone, which trusts more of a file than we do: what it
    survives, it has to survive with us. At most `count` of those."""
    original = INT8.read_bytes()
    random = np.random.default_rng(5)
    outcomes = {"made": 0, "refused": 0}
    for _ in range(150):
        changed = bytearray(original)
        for at in random.integers(len(original) // 2, len(original), 3):
            changed[at] = random.integers(0, 256)
        changed = bytes(changed)
        try:
            if forked(lambda: plain(changed), 20) < 0:
                continue
        except Hangs:
            continue
        code = forked(lambda: ours(changed))
        assert code >= 0, f"signal {-code}"
        outcomes["refused" if code else "made"] += 1
        if sum(outcomes.values()) == count:
            break
    assert outcomes["made"], outcomes


def main(host):
    """Runs the test that is named, or all."""
    if len(sys.argv) > 1 and sys.argv[1] in TESTS:
        TESTS[sys.argv[1]]()
        return
    failed = 0
    for name in TESTS:
        command = [sys.executable, sys.argv[0], name]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
        except subprocess.TimeoutExpired:
            failed += 1
            print(f"FAILED {name}: not done after {SECONDS} s")
            continue
        if done.returncode:
            failed += 1
            print(f"FAILED {name} ({done.returncode})\n{done.stdout}{done.stderr}")
    print(f"{host}: {len(TESTS)} tests, {failed} failed")
    sys.exit(1 if failed else 0)
