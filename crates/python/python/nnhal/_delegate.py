"""What the wheel carries for LiteRT and TensorFlow Lite: the external delegate, and the libraries for compiled models."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

from ._errors import Error
from ._package import _FOLDER, _existing

# Modules with a `load_delegate`, as their packages are named: the oldest last.
_HOSTS = (
    ("ai_edge_litert", "ai_edge_litert.interpreter"),
    ("tflite_runtime", "tflite_runtime.interpreter"),
    ("tensorflow", "tensorflow.lite.python.interpreter"),
)


def litert_delegate_path() -> Path:
    """Where ``libnnhal_delegate.so`` is."""
    return _existing(_FOLDER / "lib" / "libnnhal_delegate.so")


def litert_delegate(options: dict[str, Any] | None = None, **more: Any) -> Any:
    """A delegate for ``Interpreter(..., experimental_delegates=[nnhal.litert_delegate()])`` of LiteRT.

    Options are those of the library: ``device``, ``threads``, ``cache_dir``, ``model_token``,
    ``min_nodes_per_partition``, ``max_partitions``, ``priority``, ``profile``, ``allow_fp16``, ``log``, ``share_weights``. The package
    whose delegate it is: the first that is imported already, else the first that is installed, of
    ``ai_edge_litert``, ``tflite_runtime`` and ``tensorflow``.
    """
    load = _load_delegate()
    texts = {str(key): str(value) for key, value in {**(options or {}), **more}.items()}
    return load(str(litert_delegate_path()), texts)


def litert_dispatch() -> str:
    """The folder with the two libraries for LiteRT's compiled models, of ``ai-edge-litert`` 2.3 and 2.4.

    >>> folder = nnhal.litert_dispatch()
    >>> environment = Environment.create(dispatch_library_path=folder, compiler_plugin_path=folder)

    Their options are in the environment variable ``NNHAL_LITERT_OPTIONS``, as ``threads:4;log:info``.
    """
    folder = _FOLDER / "lib" / "litert"
    for name in ("libLiteRtCompilerPlugin_nnhal.so", "libLiteRtDispatch_nnhal.so"):
        _existing(folder / name)
    return str(folder)


def _load_delegate() -> Any:
    # A package that ours stands in for has no delegates of others.
    imported = [module for package, module in _HOSTS if package in sys.modules]
    for module in imported + [module for _, module in _HOSTS if module not in imported]:
        try:
            found = importlib.import_module(module).load_delegate
        except (ImportError, AttributeError):
            continue
        if not found.__module__.startswith("nnhal"):
            return found
    names = ", ".join(package for package, _ in _HOSTS)
    raise Error(f"none of {names} is installed: there is no interpreter that takes a delegate")
