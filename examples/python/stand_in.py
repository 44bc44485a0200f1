"""A program for LiteRT, on nnhal: the first two lines are all that is new."""

import nnhal

nnhal.install_as("ai_edge_litert")

import sys  # noqa: E402

import numpy as np  # noqa: E402
from ai_edge_litert.interpreter import Interpreter  # noqa: E402

interpreter = Interpreter(model_path=sys.argv[1])
interpreter.allocate_tensors()
image = interpreter.get_input_details()[0]
interpreter.set_tensor(image["index"], np.zeros(image["shape"], image["dtype"]))
interpreter.invoke()
for output in interpreter.get_output_details():
    print(output["name"], interpreter.get_tensor(output["index"]))
