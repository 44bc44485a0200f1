#!/usr/bin/env python3
"""Writes digits.weights: the constants of assets/digits/digits_float32.tflite, one layer after the
other, filter before bias, as raw little-endian float32. Needs ai-edge-litert and numpy."""

import pathlib

from ai_edge_litert.interpreter import Interpreter, OpResolverType

HERE = pathlib.Path(__file__).parent
MODEL = HERE / "../../assets/digits/digits_float32.tflite"

interpreter = Interpreter(
    str(MODEL), experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES)
interpreter.allocate_tensors()
with open(HERE / "digits.weights", "wb") as file:
    for operation in interpreter._get_ops_details():
        if operation["op_name"] in ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"):
            for tensor in operation["inputs"][1:]:
                file.write(interpreter.get_tensor(tensor).astype("<f4").tobytes())
