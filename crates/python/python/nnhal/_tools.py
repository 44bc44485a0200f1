"""Devices; measuring a model, and finding where two devices differ."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from . import _nnhal
from ._model import Model, at_least_one


def devices() -> list[dict[str, Any]]:
    """A record for each device: ``name``, ``version``, ``is_default``."""
    return _nnhal.devices()


@dataclass(frozen=True)
class Statistics:
    """How long runs took, in seconds, from call to return: inputs were set before."""

    runs: int
    median: float
    min: float
    p90: float
    """What nine tenths of the runs did not exceed."""
    mean: float


def bench(
    model: Model | str | os.PathLike | bytes,
    *args,
    warmup: int = 3,
    runs: int = 20,
    inputs: Any = None,
    **options,
) -> Statistics:
    """Measures runs of a model, or of a file with the options of ``load``. Inputs are random unless given."""
    at_least_one(runs)
    model = _loaded(model, options)
    return Statistics(*_nnhal.bench_session(model._session, _inputs(model, args, inputs), warmup, runs))


@dataclass(frozen=True)
class Comparison:
    """What comparing two devices found. It is true if all outputs agree."""

    agrees: bool
    compared: int
    """How many outputs, and results on the way to them, both devices have; 0 if outputs differ."""
    output: int | None = None
    """The first output that differs."""
    name: str | None = None
    shape: tuple[int, ...] | None = None
    what: str | None = None
    """What differs, in a sentence."""
    allowed: str | None = None
    """How far it may be off, and why."""
    operation: str | None = None
    """The operation that is responsible: the first that computes something else from the same values."""
    operator: str | None = None
    """The operator of the file that it comes from."""

    def __bool__(self) -> bool:
        return self.agrees


def compare(
    source: str | os.PathLike | bytes,
    *args,
    devices: Sequence[str] = ("nnhal-reference", "nnhal-cpu"),
    inputs: Any = None,
    absolute: float | None = None,
    relative: float | None = None,
    steps: int | None = None,
    **options,
) -> Comparison:
    """Runs a file on two devices, and says whether its outputs agree; the first device is right.

    They may differ by as much as rounding explains, which follows from their types and from how many operations
    round on the way to them; or, where that is given, floats by ``absolute + relative * |expected|`` and stored
    integers by ``steps``. Inputs are random unless given.
    """
    judge, judged = (Model(source, device=device, **options) for device in devices)
    arrays = _inputs(judge, args, inputs)
    count, finding = _nnhal.compare_sessions(
        judge._session, judged._session, arrays, absolute, relative, steps
    )
    if finding is None:
        return Comparison(True, count)
    finding["shape"] = tuple(finding["shape"])
    return Comparison(False, 0, **finding)


def _loaded(model, options) -> Model:
    if isinstance(model, Model):
        if options:
            raise TypeError(f"the model is prepared already: {', '.join(options)} cannot be chosen now")
        return model
    return Model(model, **options)


def _inputs(model: Model, args, inputs):
    if not args and inputs is None:
        return model.random_inputs()
    if inputs is None:
        return model._arrays(args, {})
    if isinstance(inputs, dict):
        return model._arrays(args, {"inputs": inputs})
    return model._arrays((*args, *inputs), {})
