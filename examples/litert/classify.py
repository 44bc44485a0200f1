"""Reads a scanned digit with LiteRT's interpreter, on nnhal: classify.py MODEL IMAGE"""

import sys

import nnhal
import numpy as np
from ai_edge_litert.interpreter import Interpreter
from PIL import Image

interpreter = Interpreter(sys.argv[1], experimental_delegates=[nnhal.litert_delegate(threads=1)])
interpreter.allocate_tensors()
taken, given = interpreter.get_input_details()[0], interpreter.get_output_details()[0]
pixels = np.asarray(Image.open(sys.argv[2]).convert("L"), np.float32).reshape(taken["shape"]) / 255
scale, zero = taken["quantization"]
value = np.round(pixels / scale + zero) if scale else pixels
interpreter.set_tensor(taken["index"], value.astype(taken["dtype"]))
interpreter.invoke()
print("a", int(interpreter.get_tensor(given["index"]).argmax()))
