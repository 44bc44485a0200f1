"""The library's log lines for ``logging``."""

from __future__ import annotations

import atexit
import logging
import threading

from . import _nnhal
from ._errors import Error

_lock = threading.Lock()
_thread: threading.Thread | None = None


def enable_logging(filter: str = "info") -> None:
    """Hands the library's log lines to ``logging``, under the loggers ``nnhal`` and ``nnhal.TARGET``.

    ``filter`` chooses them: a level (``error``, ``warn``, ``info``, ``debug``, ``trace``), or levels by part of the
    library (``warn,nnhal_cpu=debug``). ``logging`` then decides as it is set. Only the first call counts.
    """
    global _thread
    with _lock:
        if _thread is not None:
            return
        if not _nnhal.start_log(filter):
            raise Error("this process collects log lines in another way already")
        _thread = threading.Thread(target=_forward, name="nnhal-log", daemon=True)
        _thread.start()
        atexit.register(flush)


def flush() -> None:
    """Hands over the lines that are there."""
    _emit(_nnhal.log_lines(0.0))


def _forward() -> None:
    while True:
        _emit(_nnhal.log_lines(0.5))


def _emit(lines: list[tuple[int, str, str]]) -> None:
    for level, target, text in lines:
        name = target.replace("::", ".")
        name = name if name == "nnhal" or name.startswith("nnhal.") else f"nnhal.{name}"
        logging.getLogger(name).log(level, "%s", text)
