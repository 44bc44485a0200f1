"""What the wheel carries, and how programs that import LiteRT get ours."""

import ctypes
import importlib
import importlib.util
import pathlib
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
        if package != "tensorflow":
            custom = importlib.import_module(module).InterpreterWithCustomOps
            assert custom is nnhal.InterpreterWithCustomOps
        assert importlib.util.find_spec(package) is not None
        assert not nnhal.install_as(package)._modules
        # Of an installed package all else is there, and says itself what is not.
        own = None if hasattr(importlib.import_module(package), "__file__") else "nnhal stands in"
        with pytest.raises(AttributeError, match=own):
            importlib.import_module(package).keras
    assert package not in sys.modules


def test_other_modules_of_an_installed_package_stay(tmp_path, monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "ai_edge_litert"]:
        monkeypatch.delitem(sys.modules, name)
    package = tmp_path / "ai_edge_litert"
    package.mkdir()
    (package / "__init__.py").write_text("__version__ = '2.3.0'\n")
    (package / "interpreter.py").write_text("Interpreter = None\n")
    (package / "compiled_model.py").write_text("from ai_edge_litert import interpreter\n")
    monkeypatch.syspath_prepend(tmp_path)
    with nnhal.install_as("ai_edge_litert"):
        other = importlib.import_module("ai_edge_litert.compiled_model")
        assert other.interpreter.Interpreter is nnhal.Interpreter
        monkeypatch.delitem(sys.modules, "ai_edge_litert.compiled_model")
        # LiteRT's compiled models look for libraries beside the package's file.
        itself = importlib.import_module("ai_edge_litert")
        assert pathlib.Path(itself.__file__) == package / "__init__.py"
        assert itself.__version__ == "2.3.0"
        assert itself.interpreter.Interpreter is nnhal.Interpreter
    assert "ai_edge_litert" not in sys.modules


def test_a_package_that_cannot_be_imported_is_not_stood_in_for(tmp_path, monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "tflite_runtime"]:
        monkeypatch.delitem(sys.modules, name)
    package = tmp_path / "tflite_runtime"
    package.mkdir()
    (package / "__init__.py").write_text("raise ImportError('no library')\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ImportError, match="no library"):
        nnhal.install_as("tflite_runtime")
    assert "tflite_runtime.interpreter" not in sys.modules


def test_tensorflow_itself_has_our_interpreter(tmp_path, monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "tensorflow"]:
        monkeypatch.delitem(sys.modules, name)
    # The installed one takes long to import; this has its modules.
    python = tmp_path / "tensorflow" / "lite" / "python"
    python.mkdir(parents=True)
    (python / "interpreter.py").write_text("raise AssertionError('TensorFlow has its own')\n")
    (python / "__init__.py").write_text("")
    (python.parent / "__init__.py").write_text("from tensorflow.lite.python.interpreter import Interpreter\n")
    (python.parent.parent / "__init__.py").write_text("from tensorflow import lite\nkeras = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    with nnhal.install_as("tensorflow.lite"):
        import tensorflow as tf

        assert tf.keras == 1
        assert tf.lite.Interpreter is nnhal.Interpreter
        from tensorflow.lite.python import interpreter

        assert interpreter.OpResolverType is nnhal.OpResolverType
        assert not nnhal.install_as("tensorflow.lite")._modules
        with pytest.raises(AttributeError, match="has only its interpreter"):
            interpreter.no_such_name
    with pytest.raises(nnhal.Error, match="imported already"):
        nnhal.install_as("tensorflow.lite")
    # Not by monkeypatch, which would put these modules back for the tests that follow.
    for name in [name for name in sys.modules if name.split(".")[0] == "tensorflow"]:
        del sys.modules[name]


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
    stub = (pathlib.Path(folder) / "_nnhal.pyi").read_text()
    assert np.__name__ in stub
    # What the stub declares is what there is.
    declared = {}
    exec(stub[stub.index("__all__") : stub.index("]") + 1], declared)
    assert set(declared["__all__"]) == set(nnhal._nnhal.__all__)


def test_the_delegate_is_a_library_of_two_functions():
    library = ctypes.CDLL(str(nnhal.litert_delegate_path()))
    library.tflite_plugin_create_delegate.restype = ctypes.c_void_p
    messages = []
    report = ctypes.CFUNCTYPE(None, ctypes.c_char_p)(messages.append)
    keys, values = (ctypes.c_char_p * 1)(b"treads"), (ctypes.c_char_p * 1)(b"2")
    assert not library.tflite_plugin_create_delegate(keys, values, 1, report)
    assert b"threads" in messages[0]
    keys[0] = b"threads"
    made = library.tflite_plugin_create_delegate(keys, values, 1, report)
    assert made
    library.tflite_plugin_destroy_delegate(ctypes.c_void_p(made))


def test_the_libraries_for_compiled_models_are_in_a_folder():
    folder = pathlib.Path(nnhal.litert_dispatch())
    names = sorted(it.name for it in folder.iterdir())
    assert names == ["libLiteRtCompilerPlugin_nnhal.so", "libLiteRtDispatch_nnhal.so"]
    library = ctypes.CDLL(str(folder / names[0]))
    version = (ctypes.c_int * 3)()
    assert library.LiteRtGetCompilerPluginVersion(version) == 0
    assert list(version) == [0, 1, 0]
    assert ctypes.CDLL(str(folder / names[1])).LiteRtDispatchGetApi(None) == 1


def test_a_delegate_is_of_the_interpreter_that_is_installed(digits_path, monkeypatch):
    try:
        import ai_edge_litert.interpreter as litert
    except ImportError:
        monkeypatch.setitem(sys.modules, "tflite_runtime", None)
        monkeypatch.setitem(sys.modules, "tensorflow", None)
        with pytest.raises(nnhal.Error, match="ai_edge_litert"):
            nnhal.litert_delegate()
        return
    model = str(digits_path)
    interpreter = litert.Interpreter(model, experimental_delegates=[nnhal.litert_delegate(threads=1)])
    interpreter.allocate_tensors()
    names = [node["op_name"] for node in interpreter._get_ops_details()]
    assert "DELEGATE" in names
    with pytest.raises(ValueError, match="treads"):
        nnhal.litert_delegate({"treads": 2})
