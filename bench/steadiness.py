"""Whether the processors are as fast as they can be. The host of a virtual machine may put two of them on one core for some
seconds, or on cores with different third caches, which nothing tells but the time that work and the exchange of a word take:
`steady.c`, compiled with gcc, does a little of both now and then."""

import os
import subprocess
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
# Work that takes this multiple of its least time was disturbed.
MOST = 1.15


class Steadiness:
    """How fast the processors are now."""

    def __init__(self, threads):
        self._folder = tempfile.TemporaryDirectory()
        program = os.path.join(self._folder.name, "steady")
        compiled = subprocess.run(["gcc", "-O2", "-pthread", os.path.join(HERE, "steady.c"),
                                   "-o", program])
        if compiled.returncode:
            raise SystemExit("steady.c does not compile")
        self._process = subprocess.Popen([program, str(threads)], text=True,
                                         stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._least = [min(numbers) for numbers in zip(*(self._measure() for _ in range(20)))]
        # What a word took from one processor to the other and back when last measured; 0 of one thread.
        self.nanoseconds = 0.0

    def _measure(self):
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return [float(number) for number in self._process.stdout.readline().split()]

    def slowdown(self):
        """The time that a little work takes, as a multiple of the least so far; or the time that a word takes, as a multiple
        of twice the least."""
        measured = seconds, self.nanoseconds = self._measure()
        self._least = [min(numbers) for numbers in zip(self._least, measured)]
        work = seconds / self._least[0]
        return max(work, self.nanoseconds / (2 * self._least[1])) if self.nanoseconds else work

    def wait(self, seconds, most=MOST):
        """Waits until the processors are as fast as they can be, for this many seconds at most."""
        end = time.monotonic() + seconds
        while self.slowdown() > most and time.monotonic() < end:
            time.sleep(0.2)

    def close(self):
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()
