"""Programs that import LiteRT's interpreter get ours."""

from __future__ import annotations

import sys
import types
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, module_from_spec

from . import interpreter as _interpreter
from ._errors import Error

_NAMES = [
    "Delegate",
    "Interpreter",
    "InterpreterWithCustomOps",
    "OpResolverType",
    "SignatureRunner",
    "load_delegate",
]


class Installed:
    """Modules that were put into ``sys.modules``. As a context manager it takes them out again."""

    def __init__(self, modules: dict[str, types.ModuleType]):
        self._modules = modules
        self._before = {name: sys.modules.get(name) for name in modules}
        sys.modules.update(modules)

    def remove(self) -> None:
        """Takes the modules out again."""
        for name, module in self._modules.items():
            if sys.modules.get(name) is not module:
                continue
            before = self._before[name]
            if before is None:
                del sys.modules[name]
            else:
                sys.modules[name] = before

    def __enter__(self) -> Installed:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()


def install_as(package: str) -> Installed:
    """From now on programs of this process that import a package get nnhal's interpreter.

    ``ai_edge_litert`` and ``tflite_runtime`` are ``PACKAGE.interpreter``, and all else of theirs if the package is
    installed; ``tensorflow`` is ``tensorflow.lite`` and nothing else. The package need not be installed, and must not have
    been imported. ``tensorflow.lite`` is the installed TensorFlow, also its converter, with our interpreter in it, which
    TensorFlow keeps once it is imported.
    """
    found = None
    if package in ("ai_edge_litert", "tflite_runtime"):
        found = None if package in sys.modules else find_spec(package)
        modules = {package: _module(package, is_package=True) if found is None else _installed(found)}
        _add(modules, f"{package}.interpreter", _NAMES)
    elif package == "tensorflow.lite":
        return _into_tensorflow()
    elif package == "tensorflow":
        modules = {package: _module(package, is_package=True)}
        _add(modules, "tensorflow.lite", ["Interpreter", "OpResolverType"], is_package=True)
        _add(modules, "tensorflow.lite.experimental", ["OpResolverType", "load_delegate"])
        _add(modules, "tensorflow.lite.python", [], is_package=True)
        _add(modules, "tensorflow.lite.python.interpreter", _NAMES)
    else:
        known = "ai_edge_litert, tflite_runtime, tensorflow, tensorflow.lite"
        raise Error(f"nnhal does not stand in for {package!r}; it does for {known}")
    loaded = sys.modules.get(package)
    if loaded is not None:
        if getattr(loaded, "__nnhal__", False):
            return Installed({})
        raise Error(f"{package} is imported already; call nnhal.install_as before")
    installed = Installed(modules)
    if found is not None and found.loader is not None:
        # The package's own code, which gives its version and prepares its libraries. Our interpreter is there already.
        try:
            found.loader.exec_module(modules[package])
        except BaseException:
            installed.remove()
            raise
    return installed


def _installed(spec: ModuleSpec) -> types.ModuleType:
    module = module_from_spec(spec)
    setattr(module, "__nnhal__", True)
    return module


def _into_tensorflow() -> Installed:
    if getattr(sys.modules.get("tensorflow"), "__nnhal__", False):
        raise Error("nnhal stands in for all of tensorflow already")
    # All of TensorFlow takes its interpreter from this module, which is found here when TensorFlow is imported.
    name = "tensorflow.lite.python.interpreter"
    if getattr(sys.modules.get(name), "__nnhal__", False):
        return Installed({})
    if "tensorflow" in sys.modules:
        raise Error("tensorflow is imported already; call nnhal.install_as before")
    if find_spec("tensorflow") is None:
        raise Error("TensorFlow is not installed; install_as('tensorflow') gives its interpreter without it")
    modules = {name: _module(name)}
    for attribute in _NAMES:
        setattr(modules[name], attribute, getattr(_interpreter, attribute))
    return Installed(modules)


def _add(modules, name: str, names: list[str], is_package: bool = False) -> types.ModuleType:
    module = _module(name, is_package)
    for attribute in names:
        setattr(module, attribute, getattr(_interpreter, attribute))
    modules[name] = module
    parent, _, child = name.rpartition(".")
    setattr(modules[parent], child, module)
    return module


def _module(name: str, is_package: bool = False) -> types.ModuleType:
    module = types.ModuleType(name, f"nnhal in the place of {name}.")
    setattr(module, "__nnhal__", True)
    module.__spec__ = ModuleSpec(name, loader=None, is_package=is_package)
    if is_package:
        module.__path__ = []

    def missing(attribute: str):
        if attribute.startswith("__"):
            raise AttributeError(attribute)
        more = ""
        if name == "tensorflow" or name.startswith("tensorflow."):
            more = "; with nnhal.install_as('tensorflow.lite') the rest is the installed TensorFlow's"
        raise AttributeError(
            f"{name}.{attribute} is not there: nnhal stands in for {name}, and has only its interpreter{more}"
        )

    setattr(module, "__getattr__", missing)
    return module
