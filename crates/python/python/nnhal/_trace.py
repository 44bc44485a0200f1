"""Traces of what happens when, on which thread."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from . import _nnhal
from ._errors import Error


@contextlib.contextmanager
def trace(path: str | os.PathLike[str]) -> Iterator[None]:
    """Writes what the library does meanwhile into a file in the Trace Event Format, which
    https://ui.perfetto.dev and ``chrome://tracing`` open: import, preparation with each pass, runs with each step,
    and the tasks of each thread.

    >>> with nnhal.trace("digits.json"):
    ...     nnhal.load("digits_int8.tflite")(image)

    All threads of the process are seen. There is one trace at a time; a second one raises ``nnhal.Error``, as does a
    file that cannot be written.
    """
    if not _nnhal.start_trace():
        raise Error("a trace is being recorded already, or this process collects spans in another way")
    try:
        yield
    finally:
        _nnhal.end_trace(os.fspath(path))
