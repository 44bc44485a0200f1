"""A model of Triton's Python backend that runs a .tflite file with LiteRT, see triton.py."""

import json

import numpy as np
import triton_python_backend_utils as triton
from ai_edge_litert.interpreter import Interpreter


class TritonPythonModel:
    def initialize(self, arguments):
        parameters = json.loads(arguments["model_config"])["parameters"]
        threads = int(parameters["threads"]["string_value"])
        self.interpreter = Interpreter(model_path=parameters["file"]["string_value"], num_threads=threads)
        self.interpreter.allocate_tensors()

    def execute(self, requests):
        return [self.one(request) for request in requests]

    def one(self, request):
        for number, known in enumerate(self.interpreter.get_input_details()):
            given = triton.get_input_tensor_by_name(request, f"input{number}")
            self.interpreter.set_tensor(known["index"], given.as_numpy())
        self.interpreter.invoke()
        outputs = []
        for number, known in enumerate(self.interpreter.get_output_details()):
            outputs.append(triton.Tensor(f"output{number}", self.interpreter.get_tensor(known["index"])))
        return triton.InferenceResponse(output_tensors=outputs)
