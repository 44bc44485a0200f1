"""KServe's own Python client, as it comes, against a server that runs: kserve_client.py HTTP GRPC."""

import asyncio
import sys

import numpy
from kserve import InferenceGRPCClient, InferenceRESTClient, InferInput, InferRequest
from kserve.inference_client import RESTConfig

HTTP, GRPC = sys.argv[1:3]
IMAGE = numpy.linspace(0, 1, 64, dtype=numpy.float32).reshape(1, 8, 8, 1)


def request(binary):
    image = InferInput("image", [1, 8, 8, 1], "FP32")
    image.set_data_from_numpy(IMAGE, binary_data=binary)
    return InferRequest(model_name="digits", infer_inputs=[image], request_id="7")


async def main():
    rest = InferenceRESTClient(RESTConfig(protocol="v2", timeout=30))
    base = f"http://{HTTP}"
    assert await rest.is_server_live(base) and await rest.is_server_ready(base)
    assert await rest.is_model_ready(base, "digits")
    found = []
    for binary in (False, True):
        response = await rest.infer(base, request(binary), model_name="digits")
        assert response.id == "7", response.id
        found.append(response.outputs[0].as_numpy())
    grpc = InferenceGRPCClient(GRPC)
    assert await grpc.is_server_live() and await grpc.is_model_ready("digits")
    found.append((await grpc.infer(request(True))).outputs[0].as_numpy())
    found.append((await grpc.infer(request(False))).outputs[0].as_numpy())
    assert all(it.reshape(-1).shape == (10,) and numpy.allclose(it.reshape(-1), found[0].reshape(-1)) for it in found)
    await grpc.close()
    await rest.close()
    print("KServe's client: REST and gRPC, JSON, bytes, raw and typed contents")


asyncio.run(main())
