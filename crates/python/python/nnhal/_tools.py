"""Devices; measuring a model, and finding where two devices differ."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from . import _nnhal
from ._model import Model


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
    model = _loaded(model, options)
    return Statistics(*_nnhal.bench_session(model._session, _inputs(model, args, inputs), warmup, runs))


@dataclass(frozen=True)
class Comparison:
    """What comparing two devices found. It is true if all results agree."""

    agrees: bool
    compared: int
    """How many results agree, if all do."""
    operation: str | None = None
    """The first operation that has another result: in the order in which the second device runs them."""
    operator: str | None = None
    """The operator of the file that it comes from."""
    output: int | None = None
    shape: tuple[int, ...] | None = None
    what: str | None = None
    """What differs, in a sentence."""

    def __bool__(self) -> bool:
        return self.agrees


def compare(
    source: str | os.PathLike | bytes,
    *args,
    devices: Sequence[str] = ("nnhal-reference", "nnhal-cpu"),
    inputs: Any = None,
    absolute: float | None = None,
    relative: float | None = None,
    steps: int = 1,
    **options,
) -> Comparison:
    """Runs a file on two devices and finds the first operation whose results differ; the first device is right.

    Floats may differ by ``absolute + relative * |expected|``, each 1e-5 unless given (5e-3 with float16 in the
    model), stored integers by ``steps``. Inputs are random unless given.
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
