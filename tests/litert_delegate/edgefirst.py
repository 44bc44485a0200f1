#!/usr/bin/env python3
"""The delegate in a program of others: edgefirst-tflite, which loads a C library of TensorFlow Lite, here that of
pyopen-wakeword, and external delegates.

    NNHAL_DELEGATE=libnnhal_delegate.so python edgefirst.py
"""

import os
import pathlib

import edgefirst_tflite
import numpy as np
import pyopen_wakeword

LIBRARY = next(pathlib.Path(pyopen_wakeword.__file__).parent.glob("lib/libtensorflowlite_c*"))
MODEL = pathlib.Path(__file__).resolve().parents[2] / "assets/digits/digits_int8.tflite"
VALUE = np.random.default_rng(1).integers(-128, 128, (1, 8, 8, 1)).astype(np.int8)


def run(delegates):
    options = {"experimental_delegates": delegates} if delegates else {}
    interpreter = edgefirst_tflite.Interpreter(str(MODEL), library_path=str(LIBRARY), **options)
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], VALUE)
    interpreter.invoke()
    return np.array(interpreter.get_output_tensor(0))


library = os.environ["NNHAL_DELEGATE"]
np.testing.assert_array_equal(run([edgefirst_tflite.load_delegate(library, {"threads": "1"})]), run(None))
try:
    edgefirst_tflite.load_delegate(library, {"treads": "1"})
except Exception as error:
    print(f"edgefirst-tflite: the answers are the same, and an unknown option is an error: {type(error).__name__}")
else:
    raise SystemExit("an unknown option is no error")
