"""Runs ``.tflite`` models, with exact quantized arithmetic.

>>> import nnhal
>>> model = nnhal.load("digits_int8.tflite")
>>> outputs = model(image)
>>> outputs["probabilities"].argmax()
7

``nnhal.Interpreter`` is LiteRT's interpreter; ``nnhal.install_as("ai_edge_litert")`` gives it to programs
that import LiteRT's.
"""

from __future__ import annotations

from . import _nnhal
from ._delegate import litert_delegate, litert_delegate_path, litert_dispatch
from ._errors import Error
from ._install import Installed, install_as
from ._log import enable_logging
from ._model import Model, Outputs, Signature, Tensor, load
from ._package import include_path, libneuralnetworks_path, program_path
from ._tools import Comparison, Statistics, bench, compare, devices
from ._trace import trace
from .interpreter import (
    Delegate,
    Interpreter,
    InterpreterWithCustomOps,
    OpResolverType,
    SignatureRunner,
    load_delegate,
)

__version__ = _nnhal.VERSION

__all__ = [
    "Comparison",
    "Delegate",
    "Error",
    "Installed",
    "Interpreter",
    "InterpreterWithCustomOps",
    "Model",
    "OpResolverType",
    "Outputs",
    "Signature",
    "SignatureRunner",
    "Statistics",
    "Tensor",
    "bench",
    "compare",
    "devices",
    "enable_logging",
    "include_path",
    "install_as",
    "libneuralnetworks_path",
    "litert_delegate",
    "litert_delegate_path",
    "litert_dispatch",
    "load",
    "load_delegate",
    "program_path",
    "trace",
]
