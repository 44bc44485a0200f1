"""Triton Inference Server around LiteRT, to compare `nnhal serve` with: triton.py MODEL PORT [--instances 2] [--threads 1].

The server's program and its Python backend are those of `nvidia-pytriton` (PyPI); each instance is a process with an
interpreter (triton_model.py). Needs `nvidia-pytriton` and `ai-edge-litert` for the Python that runs it.
"""

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

import numpy as np
import pytriton
from ai_edge_litert.interpreter import Interpreter

from processes import server_arguments

TYPES = {np.float32: "TYPE_FP32", np.int8: "TYPE_INT8", np.uint8: "TYPE_UINT8", np.int32: "TYPE_INT32", np.int64: "TYPE_INT64"}


def tensors(what, details):
    each = []
    for number, known in enumerate(details):
        dims = ", ".join(map(str, known["shape"]))
        each.append(f'{{ name: "{what}{number}" data_type: {TYPES[known["dtype"]]} dims: [{dims}] }}')
    return f"{what}: [{', '.join(each)}]\n"


def repository(folder, model, instances, threads):
    """A folder as Triton reads it; the model is called `model`."""
    interpreter = Interpreter(model_path=model)
    version = folder / "models" / "model" / "1"
    version.mkdir(parents=True)
    shutil.copy(pathlib.Path(__file__).with_name("triton_model.py"), version / "model.py")
    text = 'backend: "python"\n'
    text += tensors("input", interpreter.get_input_details()) + tensors("output", interpreter.get_output_details())
    text += f"instance_group [{{ kind: KIND_CPU count: {instances} }}]\n"
    for key, value in {"file": os.path.abspath(model), "threads": threads}.items():
        text += f'parameters {{ key: "{key}" value: {{ string_value: "{value}" }} }}\n'
    (version.parent / "config.pbtxt").write_text(text)
    return version.parent.parent


def backends(folder, package):
    """The Python backend with the part of it that is made for this Python."""
    made = folder / "backends"
    shutil.copytree(package / "backends", made)
    number = f"{sys.version_info.major}.{sys.version_info.minor}"
    shutil.copy(package / "python_backend_stubs" / number / "triton_python_backend_stub", made / "python")
    return made


def main():
    arguments = server_arguments(__doc__)
    package = pathlib.Path(pytriton.__file__).with_name("tritonserver")
    with tempfile.TemporaryDirectory() as text:
        folder = pathlib.Path(text)
        models = repository(folder, arguments.model, arguments.instances, arguments.threads)
        command = [package / "bin" / "tritonserver", f"--model-repository={models}", f"--backend-directory={backends(folder, package)}"]
        command += ["--http-address=127.0.0.1", f"--http-port={arguments.port}", "--allow-grpc=false", "--allow-metrics=false"]
        paths = os.pathsep.join([os.path.join(sys.prefix, "bin"), os.environ["PATH"]])
        # The backend's program is not where it looks for what the wheel has brought.
        libraries = os.pathsep.join(map(str, [package.parent.parent / "nvidia_pytriton.libs", sys.base_prefix + "/lib"]))
        environment = os.environ | {"PATH": paths, "LD_LIBRARY_PATH": libraries}
        with subprocess.Popen(command, env=environment) as server:
            signal.signal(signal.SIGTERM, lambda *_: server.terminate())
            sys.exit(server.wait())


main()
