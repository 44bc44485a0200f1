"""What goes wrong."""

from __future__ import annotations


class Error(ValueError, RuntimeError):
    """Why a call did not do what it was asked, in a sentence.

    It is a ``ValueError`` and a ``RuntimeError``: LiteRT's interpreter raises the one or the other, and
    programs that were written for it catch either.

    ``status`` is the status of the device that failed (``MISSED_DEADLINE_TRANSIENT``), ``operation`` the
    operation of the model that the trouble is with; each is ``None`` where there is none.
    """

    status: str | None
    operation: str | None

    def __init__(self, message: str = "", status: str | None = None, operation: str | None = None):
        super().__init__(message)
        self.status = status
        self.operation = operation

    def __reduce__(self):
        return type(self), (*self.args, self.status, self.operation)
