"""Values as NumPy's arrays."""

from __future__ import annotations

import numpy as np

from ._errors import Error


def native(array: np.ndarray) -> np.ndarray:
    """The array, or a copy of one whose elements are of the other byte order, which models do not take."""
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def as_array(value, dtype=None, is_quantized: bool = False) -> np.ndarray:
    """The value as an array, without copying where it already is one of this machine's byte order: of NumPy's, of
    anything that speaks DLPack (a tensor of PyTorch's on the CPU), or of the buffer protocol.

    Lists and numbers become arrays of ``dtype``, if that holds what they are; floats for an input that
    ``is_quantized`` are real values and stay what they are.
    """
    if isinstance(value, np.ndarray):
        return native(value)
    if isinstance(value, np.generic):
        return native(np.asarray(value))
    if hasattr(value, "__array__") or hasattr(value, "__array_interface__"):
        return native(np.asarray(value))
    if hasattr(value, "__dlpack__"):
        return np.from_dlpack(value)
    try:
        return native(np.asarray(memoryview(value)))
    except TypeError:
        array = np.asarray(value)
    if dtype is None or array.dtype == dtype:
        return array
    if array.dtype.kind == "f" and (is_quantized or dtype.kind not in "biu"):
        return array
    if array.dtype.kind not in "fiu":
        return array
    with np.errstate(invalid="ignore"):
        converted = array.astype(dtype)
    if not np.array_equal(converted, array):
        raise Error(f"{dtype} does not hold the values {array.min()} to {array.max()}")
    return converted
