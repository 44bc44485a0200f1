"""What the wheel carries, and how programs that import LiteRT get ours."""

import ctypes
import importlib
import importlib.util
import subprocess
import sys

import numpy as np
import pytest

import nnhal


@pytest.mark.parametrize(
    "package, module",
    [
        ("ai_edge_litert", "ai_edge_litert.interpreter"),
        ("tflite_runtime", "tflite_runtime.interpreter"),
        ("tensorflow", "tensorflow.lite"),
    ],
)
def test_a_package_that_is_stood_in_for_is_ours(package, module, monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    with nnhal.install_as(package):
        assert importlib.import_module(module).Interpreter is nnhal.Interpreter
        assert importlib.util.find_spec(package) is not None
        assert not nnhal.install_as(package)._modules
        with pytest.raises(AttributeError, match="nnhal stands in"):
            importlib.import_module(package).keras
    assert package not in sys.modules


def test_nested_names_of_tensorflow_are_there(monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "tensorflow"]:
        monkeypatch.delitem(sys.modules, name)
    with nnhal.install_as("tensorflow"):
        import tensorflow as tf

        assert tf.lite.Interpreter is nnhal.Interpreter
        with pytest.raises(ValueError):
            tf.lite.experimental.load_delegate("libedgetpu.so.1")


def test_what_is_imported_already_is_not_replaced(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow", type(sys)("tensorflow"))
    with pytest.raises(nnhal.Error, match="imported already"):
        nnhal.install_as("tensorflow")
    with pytest.raises(nnhal.Error, match="does not stand in"):
        nnhal.install_as("torch")


def test_the_program_reads_a_digit(digits_path):
    image = digits_path.parent / "digit_7.png"
    labels = digits_path.parent / "labels.txt"
    command = ["run", digits_path, "--input", image, "--labels", labels, "--top", "1"]
    for program in ([nnhal.program_path()], [sys.executable, "-m", "nnhal"]):
        run = subprocess.run([*program, *command], capture_output=True, text=True, check=True)
        assert "7" in run.stdout


def test_the_c_library_loads_and_has_devices():
    library = ctypes.CDLL(str(nnhal.libneuralnetworks_path()))
    count = ctypes.c_uint32()
    assert library.ANeuralNetworks_getDeviceCount(ctypes.byref(count)) == 0
    assert count.value >= 1
    assert (nnhal.include_path() / "android/NeuralNetworks.h").is_file()


def test_the_version_is_one(digits_path):
    from importlib.metadata import version

    assert nnhal.__version__ == version("nnhal")


def test_types_are_declared():
    folder = importlib.import_module("nnhal").__path__[0]
    assert importlib.util.find_spec("nnhal")
    import pathlib

    assert (pathlib.Path(folder) / "py.typed").is_file()
    assert (pathlib.Path(folder) / "_nnhal.pyi").is_file()
    assert np.__name__ in (pathlib.Path(folder) / "_nnhal.pyi").read_text()
