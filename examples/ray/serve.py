"""A model behind Ray Serve, with as many replicas as the queue asks for.

    MODEL=model.tflite serve run examples.ray.serve:deployment

A request is the input's elements as JSON; the answer is the output's real numbers. Needs `ray[serve]` and the wheel of
nnhal.
"""

import os

import numpy as np
from ray import serve


# Replicas come when more than this many requests wait or run for each, after 30 s of it, and go after 10 minutes.
AUTOSCALING = {"min_replicas": 1, "max_replicas": 8, "target_ongoing_requests": 2}


@serve.deployment(
    ray_actor_options={"num_cpus": 1},
    autoscaling_config=AUTOSCALING,
    max_ongoing_requests=8,
    max_queued_requests=64,
)
class Model:
    def __init__(self, path: str, cache: str | None = None):
        import nnhal

        self.model = nnhal.load(path, threads=1, cache_dir=cache, share_weights=True)

    async def __call__(self, request):
        values = np.asarray(await request.json(), self.model.inputs[0].dtype)
        shape = [1 if length is None else length for length in self.model.inputs[0].shape]
        output = self.model(values.reshape(shape))
        return self.model.outputs[0].dequantize(output[0]).ravel().tolist()


deployment = Model.bind(os.environ.get("MODEL", "model.tflite"), os.environ.get("CACHE"))
