"""Values as NumPy's arrays."""

from __future__ import annotations

import numpy as np

from ._errors import Error


def as_array(value, dtype=None) -> np.ndarray:
    """The value as an array, without copying where it already is one: of NumPy's, of anything that
    speaks DLPack (a tensor of PyTorch's on the CPU), or of the buffer protocol.

    Lists and numbers become arrays of ``dtype``, if that holds what they are.
    """
    if isinstance(value, np.ndarray):
        return value
    if isinstance(value, np.generic):
        return np.asarray(value)
    if hasattr(value, "__array__") or hasattr(value, "__array_interface__"):
        return np.asarray(value)
    if hasattr(value, "__dlpack__"):
        return np.from_dlpack(value)
    try:
        return np.asarray(memoryview(value))
    except TypeError:
        array = np.asarray(value)
    if dtype is None or array.dtype == dtype or array.dtype.kind not in "iu":
        return array
    converted = array.astype(dtype)
    if not np.array_equal(converted, array):
        raise Error(f"{dtype} does not hold the values {array.min()} to {array.max()}")
    return converted
