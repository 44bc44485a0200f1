"""``load``, and what it gives."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import _nnhal
from ._arrays import as_array
from ._errors import Error


@dataclass(frozen=True)
class Tensor:
    """An input or output of a model."""

    name: str
    """The name that a signature gives it, otherwise its own."""
    tensor_name: str
    """Its own name."""
    index: int
    """Its index among the tensors of the file."""
    dtype: np.dtype
    shape: tuple[int | None, ...]
    """The length of each axis, ``None`` where the model leaves it open."""
    scales: tuple[float, ...]
    """A stored integer stands for ``scale * (stored - zero_point)``. Empty: it is not quantized."""
    zero_points: tuple[int, ...]
    axis: int
    """The axis that several scales are for."""

    @classmethod
    def _of(cls, info: dict[str, Any]) -> Tensor:
        none = np.array([])
        scales, zero_points, axis = info["quantization"] or (none, none, 0)
        return cls(
            name=info["signature_name"] or info["name"],
            tensor_name=info["name"],
            index=info["index"],
            dtype=info["dtype"],
            shape=tuple(info["shape"]),
            scales=tuple(scales.tolist()),
            zero_points=tuple(zero_points.tolist()),
            axis=axis,
        )

    def dequantize(self, stored: np.ndarray) -> np.ndarray:
        """The real numbers that the elements of an output stand for, as float32."""
        stored = np.asarray(stored)
        if not self.scales:
            return stored.astype(np.float32)
        scales = np.asarray(self.scales, np.float32)
        zero_points = np.asarray(self.zero_points or [0] * len(scales), np.int64)
        if len(scales) > 1:
            lengths = [1] * stored.ndim
            lengths[self.axis] = -1
            scales, zero_points = scales.reshape(lengths), zero_points.reshape(lengths)
        return ((stored.astype(np.int64) - zero_points) * scales).astype(np.float32)

    def _matches(self, name: str) -> bool:
        return name in (self.name, self.tensor_name)


@dataclass(frozen=True)
class Signature:
    """A named set of inputs and outputs."""

    name: str
    inputs: dict[str, int]
    """Positions among the model's inputs."""
    outputs: dict[str, int]
    """Positions among the model's outputs."""


class Outputs:
    """What a run gave: an array for each output, by name or by position.

    Iterating goes over the arrays, so ``boxes, scores = model(image)`` unpacks them; ``dict(outputs)`` has
    them by name. What a model with one output gives is that array, too, for NumPy's functions.
    """

    __slots__ = ("_names", "_arrays")

    def __init__(self, names: Sequence[str], arrays: Sequence[np.ndarray]):
        self._names = names
        self._arrays = arrays

    def __getitem__(self, key: str | int) -> np.ndarray:
        if isinstance(key, str):
            try:
                return self._arrays[self._names.index(key)]
            except ValueError:
                known = ", ".join(self._names)
                raise KeyError(f"there is no output {key!r}; there are: {known}") from None
        return self._arrays[key]

    def __iter__(self):
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        if len(self._arrays) != 1:
            raise Error(f"{len(self._arrays)} outputs are not one array")
        return np.array(self._arrays[0], dtype=dtype, copy=copy) if copy else np.asarray(self._arrays[0], dtype=dtype)

    def keys(self):
        return list(self._names)

    def values(self):
        return list(self._arrays)

    def items(self):
        return list(zip(self._names, self._arrays))

    def __repr__(self) -> str:
        items = ", ".join(f"{name!r}: {array!r}" for name, array in self.items())
        return f"Outputs({{{items}}})"


class Model:
    """A model, prepared on a device. Calling it runs it; any number of threads may do that at once.

    It pickles as where it came from (its path or bytes) and its options, and is prepared anew where it is
    unpickled.
    """

    def __init__(self, source: str | os.PathLike | bytes, **options):
        if isinstance(source, (bytes, bytearray, memoryview)):
            source = bytes(source)
            self._model = _nnhal.Model.load_bytes(source)
        else:
            source = os.fspath(source)
            self._model = _nnhal.Model.load_path(source)
        self._source = source
        self._options = dict(options)
        signature = options.pop("signature", None)
        if signature is not None:
            self._model = self._model.with_signature(signature)
        if options.get("share_weights") and options.get("cache_dir") is None:
            raise Error("share_weights uses weights where they are in cache_dir, which is not given")
        if options.pop("dequantized_weights", False):
            self._model = self._model.with_dequantized_weights()
        self._session = self._model.session(**options)
        self.inputs: list[Tensor] = [Tensor._of(info) for info in self._model.inputs()]
        self.outputs: list[Tensor] = [Tensor._of(info) for info in self._model.outputs()]
        self._input_kinds = [(tensor.dtype, bool(tensor.scales)) for tensor in self.inputs]
        self._output_names = [tensor.name for tensor in self.outputs]

    def __reduce__(self):
        return _rebuild, (type(self), self._source, self._options)

    def __repr__(self) -> str:
        source = self._source if isinstance(self._source, str) else f"{len(self._source)} bytes"
        return f"<nnhal.Model {source!r} on {self.device}>"

    def __call__(self, *args, out=None, timeout: float | None = None, **kwargs) -> Outputs:
        """Runs the model: a value for each input, in order or by name.

        A value is an array of the model's dtype, of any strides, or of floating point, which is then rounded
        or quantized to what the model takes; also what speaks DLPack or the buffer protocol, or a list. A list for
        integers that are not quantized has values that the dtype holds.
        ``inputs=`` and a dictionary takes names that are not Python's.

        ``out`` takes arrays that the results are written into: a list by output with ``None`` for
        those that are to be made, a dictionary by name, or the array itself of a model with one output. Large ones may be
        written while the model computes: other threads should leave them alone meanwhile, and what they hold after
        an error is not said.
        """
        arrays = self._arrays(args, kwargs)
        if out is not None:
            out = self._out(out)
        return Outputs(self._output_names, self._session.run(arrays, out, timeout))

    run = __call__

    def _arrays(self, args, kwargs) -> list[np.ndarray]:
        if not kwargs:
            if len(args) == len(self._input_kinds):
                return [
                    value if type(value) is np.ndarray and value.dtype.isnative else as_array(value, *kind)
                    for value, kind in zip(args, self._input_kinds)
                ]
        elif list(kwargs) == ["inputs"] and not args and isinstance(kwargs["inputs"], Mapping):
            kwargs = kwargs["inputs"]
        if len(args) > len(self.inputs):
            raise Error(f"{len(args)} inputs are given, the model has {len(self.inputs)}")
        values: list = list(args) + [None] * (len(self.inputs) - len(args))
        given = [True] * len(args) + [False] * (len(self.inputs) - len(args))
        for name, value in kwargs.items():
            position = self._position("input", self.inputs, name)
            if given[position]:
                raise Error(f"input {name} is given twice")
            values[position], given[position] = value, True
        for tensor, is_given in zip(self.inputs, given):
            if not is_given:
                raise Error(f"input {tensor.name} is not given")
        return [as_array(value, *kind) for value, kind in zip(values, self._input_kinds)]

    def _out(self, out) -> list[np.ndarray | None]:
        count = len(self.outputs)
        if isinstance(out, np.ndarray):
            out = [out]
        elif isinstance(out, Mapping) and not isinstance(out, Outputs):
            by_name = out
            out = [None] * count
            for name, array in by_name.items():
                out[self._position("output", self.outputs, name)] = array
        out = list(out)
        if len(out) != count:
            raise Error(f"{len(out)} arrays are given for outputs, the model has {count}")
        for array in out:
            if array is not None and not isinstance(array, np.ndarray):
                raise TypeError(f"out takes NumPy's arrays, not {type(array).__name__}")
            if array is not None and not array.flags.writeable:
                raise Error("an array of out is read-only")
        return out

    @staticmethod
    def _position(what: str, tensors: list[Tensor], name: str) -> int:
        for matches in (lambda it: it.name == name, lambda it: it.tensor_name == name):
            for position, tensor in enumerate(tensors):
                if matches(tensor):
                    return position
        known = ", ".join(tensor.name for tensor in tensors)
        raise Error(f"there is no {what} {name!r}; there are: {known}")

    @property
    def device(self) -> str:
        """The name of the device that it runs on."""
        return self._session.device

    @property
    def preparing(self) -> float:
        """How many seconds preparing took."""
        return self._session.preparing

    @property
    def is_from_cache(self) -> bool:
        """Whether the prepared model came out of ``cache_dir``."""
        return self._session.is_from_cache

    @property
    def is_stateful(self) -> bool:
        """Whether runs depend on those before: the model has variables. Runs wait for each other then."""
        return self._model.is_stateful

    @property
    def description(self) -> str:
        """The file's own description."""
        return self._model.description

    @property
    def signatures(self) -> dict[str, Signature]:
        """The file's signatures, as far as they are of the subgraph that this model is."""
        return {
            name: Signature(name, dict(inputs), dict(outputs))
            for name, inputs, outputs in self._model.signatures()
        }

    @property
    def metadata(self) -> dict[str, bytes]:
        """What the file carries beside the model, by name."""
        return {name: self._model.metadata(name) for name in self._model.metadata_names()}

    def reset(self) -> None:
        """Sets the variables of a stateful model to what they are at first."""
        self._session.reset()

    def profile(self, *args, warmup: int = 3, runs: int = 10, **kwargs) -> list[dict[str, Any]]:
        """The steps of a run, in the order in which they run, with their median times: a record for each,
        which ``pandas.DataFrame`` takes.

        Inputs are those of a call; without any they are random.

        ``step`` is the position, ``operation`` what the device runs, ``operator`` and ``operator_index``
        where in the file it comes from, ``kernel`` the kernel's operation, algorithm and type, ``shape`` that of its
        first output, ``time_us`` its median time in microseconds, ``share`` that of all steps, ``arithmetic`` the
        number of additions and multiplications where they are most of the work, ``bytes`` what it reads
        and writes.
        """
        at_least_one(runs)
        arrays = self._arrays(args, kwargs) if args or kwargs else self.random_inputs()
        return self._session.profile(arrays, warmup, runs)

    def random_inputs(self, seed: int = 0) -> list[np.ndarray]:
        """Values for all inputs: floats between 0 and 1, bytes of any value, other integers 0 or 1.
        Lengths that the model leaves open are those of the file's example."""
        random = np.random.default_rng(seed)
        arrays = []
        for info in self._model.inputs():
            dtype, example = info["dtype"], info["example_shape"]
            shape = [known or length for known, length in zip(info["shape"], example)]
            if dtype.kind == "f":
                array = random.random(shape, np.float32).astype(dtype)
            elif dtype.itemsize == 1 and dtype.kind in "iu":
                limits = np.iinfo(dtype)
                array = random.integers(limits.min, limits.max, shape, dtype, endpoint=True)
            else:
                array = random.integers(0, 2, shape).astype(dtype)
            arrays.append(array)
        return arrays


def at_least_one(runs: int) -> None:
    """Refuses to measure no runs."""
    if runs < 1:
        raise Error(f"{runs} runs cannot be measured, 1 is the least")


def _rebuild(cls, source, options):
    return cls(source, **options)


def load(
    source: str | os.PathLike | bytes,
    *,
    device: str | None = None,
    threads: int | None = None,
    priority: str | None = None,
    preference: str | None = None,
    timeout: float | None = None,
    prepare_timeout: float | None = None,
    loop_timeout: float | None = None,
    cache_dir: str | os.PathLike | None = None,
    share_weights: bool = False,
    signature: str | None = None,
    dequantized_weights: bool = False,
) -> Model:
    """Loads a model from a path or the bytes of a file, and prepares it.

    ``device`` is one of ``devices()``; ``threads`` the most that share a run, as many as the process may
    use processors unless said; ``priority`` is ``low``, ``medium`` or ``high``; ``preference``
    ``fast_single_answer``, ``sustained_speed`` or ``low_power``. Timeouts are seconds: of a run,
    of preparing, of each WHILE of the model. ``cache_dir`` keeps prepared models, so that the next start
    is faster; with ``share_weights``, which takes a ``cache_dir``, packed weights are used where they are in these files: loading takes a few
    milliseconds, and processes that load the same file with the same options have them in memory only once. Nothing may
    write such a file meanwhile (nnhal itself replaces it). ``signature`` chooses among the file's signatures: they may be of different subgraphs.
    With ``dequantized_weights`` layers of floats with 8-bit weights (dynamic-range quantization) are computed in floats,
    with weights that are dequantized first: nearer to the model before it was quantized, and slower.
    """
    options = {
        "device": device,
        "threads": threads,
        "priority": priority,
        "preference": preference,
        "timeout": timeout,
        "prepare_timeout": prepare_timeout,
        "loop_timeout": loop_timeout,
        "cache_dir": os.fspath(cache_dir) if cache_dir is not None else None,
        "share_weights": share_weights or None,
        "signature": signature,
        "dequantized_weights": dequantized_weights or None,
    }
    return Model(source, **{name: value for name, value in options.items() if value is not None})
