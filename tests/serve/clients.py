"""Triton's own Python clients, as they come, against a server that runs: clients.py HTTP GRPC [TOKEN]."""

import asyncio
import sys
import threading
import urllib.request

import grpc as plain_grpc
import numpy
import tritonclient.grpc as grpc
import tritonclient.grpc.aio as grpc_aio
import tritonclient.http as http
import tritonclient.http.aio as http_aio
import tritonclient.utils.shared_memory as shared_memory
from google.protobuf.descriptor_pool import DescriptorPool
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase
from prometheus_client.parser import text_string_to_metric_families
from tritonclient.utils import InferenceServerException

HTTP, GRPC = sys.argv[1:3]
ROWS = numpy.arange(512 * 4, dtype=numpy.float32).reshape(512, 4)
IMAGE = numpy.linspace(0, 1, 64, dtype=numpy.float32).reshape(1, 8, 8, 1)
checks = 0


def check(condition, what):
    global checks
    if not condition:
        sys.exit(f"failed: {what}")
    checks += 1


def fails(call, what, expected):
    try:
        call()
    except InferenceServerException as error:
        check(expected in str(error), f"{what}: {error}")
    else:
        sys.exit(f"failed: {what} was not refused")


# What answers said of how they are compressed, of clients that keep it to themselves.
EXCHANGED = []


def note_encodings():
    read = http.InferResult.__init__

    def noted(self, response, verbose):
        EXCHANGED.append(str(response.get("Content-Encoding")))
        read(self, response, verbose)

    http.InferResult.__init__ = noted


def sums(module):
    """Inputs of the model that adds rows."""
    inputs = [module.InferInput(name, list(ROWS.shape), "FP32") for name in ["a", "b"]]
    for it in inputs:
        it.set_data_from_numpy(ROWS)
    return inputs


def request(module, images, **options):
    image = module.InferInput("image", list(images.shape), "FP32")
    image.set_data_from_numpy(images, **options)
    return image


def common(module, client):
    """What both endpoints offer alike."""
    check(client.is_server_live() and client.is_server_ready(), "health")
    check(client.is_model_ready("digits") and client.is_model_ready("digits", "1"), "a model's readiness")
    check(not client.is_model_ready("none"), "a model that is not there")
    check(not client.is_model_ready("digits", "9"), "a version that is not there")
    options = {"as_json": True} if module is grpc else {}
    check(client.get_server_metadata(**options)["name"] == "nnhal", "the server's metadata")
    metadata = client.get_model_metadata("batched", **options)
    check([int(it) for it in metadata["inputs"][0]["shape"]] == [-1, 8, 8, 1], "a model's metadata")
    config = client.get_model_config("batched", **options)
    config = config.get("config", config)
    check(int(config["max_batch_size"]) == 8, "a model's configuration")
    if module is http:
        # What has its default is there, as Triton's clients expect it.
        config = client.get_model_config("digits")
        check((config["max_batch_size"], config["input"][0]["format"]) == (0, "FORMAT_NONE"), f"a configuration: {config}")

    result = client.infer("digits", [request(module, IMAGE)], request_id="7")
    alone = result.as_numpy(result.get_output("probabilities") and "probabilities")
    check(alone.shape == (1, 10) and abs(alone.sum() - 1) < 1e-3, "a run")
    name = "probabilities"
    rows = numpy.concatenate([IMAGE, IMAGE * 0.5, IMAGE * 0])
    batch = client.infer("batched", [request(module, rows)]).as_numpy(name)
    check(batch.shape == (3, 10) and numpy.allclose(batch[:1], alone, atol=1e-5), "a batch")

    wanted = module.InferRequestedOutput(name, class_count=3)
    classes = client.infer("digits", [request(module, IMAGE)], outputs=[wanted]).as_numpy(name)
    best = int(classes.reshape(-1)[0].decode().split(":")[1])
    check(best == int(alone.argmax()), f"classes: {classes}")

    fails(lambda: client.infer("none", [request(module, IMAGE)]), "no model", "none")
    fails(lambda: client.infer("digits", [request(module, rows)]), "a wrong shape", "shape")
    fails(lambda: client.infer("batched", [request(module, numpy.concatenate([rows] * 4))]), "too many rows", "at most 8")
    wrong = module.InferInput("image", [1, 8, 8, 1], "INT32")
    wrong.set_data_from_numpy(IMAGE.astype(numpy.int32))
    fails(lambda: client.infer("digits", [wrong]), "a wrong type", "INT32")
    fails(
        lambda: client.infer("digits", [request(module, IMAGE)], outputs=[module.InferRequestedOutput("x")]),
        "no such output",
        "x",
    )
    fails(lambda: client.infer("digits", [request(module, IMAGE)], timeout=1), "a timeout", "timeout")
    client.infer("digits", [request(module, IMAGE)], priority=1, timeout=10_000_000)

    stats = client.get_inference_statistics("batched", **options)["model_stats"][0]
    check(int(stats["inference_count"]) >= 3, "statistics")
    client.unload_model("other")
    check(not client.is_model_ready("other"), "unloading")
    client.load_model("other")
    check(client.is_model_ready("other"), "loading")
    index = client.get_model_repository_index(**options)
    index = index["models"] if module is grpc else index
    check({entry["name"] for entry in index} == {"digits", "batched", "other", "sums"}, f"the index: {index}")
    memory(module, client, alone)
    return alone


def memory(module, client, expected):
    """Inputs and outputs in shared memory."""
    client.unregister_system_shared_memory()
    client.unregister_cuda_shared_memory()
    name = f"nnhal_{module.__name__.split('.')[1]}"
    region = shared_memory.create_shared_memory_region("in", "/" + name, 512)
    try:
        shared_memory.set_shared_memory_region(region, [IMAGE])
        client.register_system_shared_memory("region", "/" + name, 512)
        status = client.get_system_shared_memory_status(**({"as_json": True} if module is grpc else {}))
        check("region" in str(status), "the status of shared memory")
        image = module.InferInput("image", [1, 8, 8, 1], "FP32")
        image.set_shared_memory("region", 256)
        output = module.InferRequestedOutput("probabilities")
        output.set_shared_memory("region", 40, 256)
        client.infer("digits", [image], outputs=[output])
        found = shared_memory.get_contents_as_numpy(region, numpy.float32, [1, 10], 256)
        check(numpy.allclose(found, expected), "a run in shared memory")
        image.set_shared_memory("region", 256, 300)
        fails(lambda: client.infer("digits", [image]), "beyond shared memory", "512")
        output.set_shared_memory("region", 39, 256)
        image = request(module, IMAGE)
        fails(lambda: client.infer("digits", [image], outputs=[output]), "too little room", "room")
        fails(
            lambda: client.register_system_shared_memory("other", "/none-of-that-name", 512),
            "no such object",
            "none-of-that-name",
        )
    finally:
        client.unregister_system_shared_memory("region")
        shared_memory.destroy_shared_memory_region(region)


def by_http():
    with http.InferenceServerClient(HTTP, concurrency=4) as client:
        alone = common(http, client)
        # JSON both ways, and each mixed with bytes.
        for into, out in [(False, False), (False, True), (True, False), (True, True)]:
            wanted = http.InferRequestedOutput("probabilities", binary_data=out)
            image = request(http, IMAGE, binary_data=into)
            found = client.infer("digits", [image], outputs=[wanted]).as_numpy("probabilities")
            check(numpy.allclose(found, alone), f"binary {into} {out}")
        for compression in ["gzip", "deflate"]:
            found = client.infer("digits", [request(http, IMAGE)], request_compression_algorithm=compression)
            check(numpy.array_equal(found.as_numpy("probabilities"), alone), f"a body by {compression}")
        name = client.get_model_metadata("sums")["outputs"][0]["name"]
        for compression in ["gzip", "deflate"]:
            for binary in [False, True]:
                outputs = [http.InferRequestedOutput(name, binary_data=binary)]
                found = client.infer("sums", sums(http), outputs=outputs, response_compression_algorithm=compression)
                check(numpy.array_equal(found.as_numpy(name), ROWS + ROWS), f"an answer by {compression}, binary {binary}")
                check(compression in EXCHANGED[-1], f"an answer is not compressed by {compression}: {EXCHANGED[-1]}")
        pending = [client.async_infer("batched", [request(http, IMAGE)]) for _ in range(32)]
        check(all(numpy.allclose(it.get_result().as_numpy("probabilities"), alone, atol=1e-5) for it in pending), "async")
    return alone


def by_grpc(alone):
    with grpc.InferenceServerClient(GRPC) as client:
        check(numpy.allclose(common(grpc, client), alone), "both endpoints give the same")
        done, results = threading.Semaphore(0), []

        def keep(result, error):
            results.append((result, error))
            done.release()

        for _ in range(32):
            client.async_infer("batched", [request(grpc, IMAGE)], keep)
        for _ in range(32):
            check(done.acquire(timeout=30), "an answer")
        check(all(error is None for _, error in results), "async")
        for compression in ["gzip", "deflate"]:
            found = client.infer("digits", [request(grpc, IMAGE)], compression_algorithm=compression)
            check(numpy.allclose(found.as_numpy("probabilities"), alone), f"a message by {compression}")
            # The answer is compressed as the request is.
            found = client.infer("sums", sums(grpc), compression_algorithm=compression)
            name = found.get_response().outputs[0].name
            check(numpy.array_equal(found.as_numpy(name), ROWS + ROWS), f"an answer by {compression}, grpc")
        results.clear()
        # Messages that do not get smaller are sent as they are, so that a stream has both.
        client.start_stream(keep, compression_algorithm="gzip")
        for number in range(20):
            client.async_stream_infer("digits" if number != 7 else "none", [request(grpc, IMAGE)], request_id=str(number))
        for _ in range(20):
            check(done.acquire(timeout=30), "an answer of a stream")
        client.stop_stream()
        failed = [number for number, (_, error) in enumerate(results) if error]
        check(failed == [7], f"a stream's answers are in order: {failed}")
        final = [result.get_response().parameters["triton_final_response"].bool_param for result, error in results if not error]
        check(all(final), "each answer of a stream is the last one of its request")
        ids = [result.get_response().id for number, (result, _) in enumerate(results) if number != 7]
        check(ids == [str(number) for number in range(20) if number != 7], f"{ids}")
        try:
            client.infer("digits", [request(grpc, IMAGE)], client_timeout=0.000001)
        except InferenceServerException as error:
            # Who notices first, the client or the server, is chance.
            check("deadline" in str(error).lower(), str(error))


async def by_asyncio(alone):
    async with http_aio.InferenceServerClient(HTTP) as client:
        runs = [client.infer("batched", [request(http, IMAGE)]) for _ in range(16)]
        for result in await asyncio.gather(*runs):
            check(numpy.allclose(result.as_numpy("probabilities"), alone, atol=1e-5), "asyncio, http")
        # It asks for answers that are compressed by itself, and reads only those of runs so.
        found = await client.infer("sums", sums(http))
        check("gzip" in EXCHANGED[-1], f"asyncio, an answer: {EXCHANGED[-1]}")
        check(numpy.array_equal(found.as_numpy(found.get_response()["outputs"][0]["name"]), ROWS + ROWS), "asyncio, sums")
        check((await client.get_model_config("sums"))["name"] == "sums", "asyncio, a configuration")
        check(len((await client.get_inference_statistics())["model_stats"]) == 4, "asyncio, statistics")
    async with grpc_aio.InferenceServerClient(GRPC) as client:
        runs = [client.infer("batched", [request(grpc, IMAGE)]) for _ in range(16)]
        for result in await asyncio.gather(*runs):
            check(numpy.allclose(result.as_numpy("probabilities"), alone, atol=1e-5), "asyncio, grpc")


def health():
    """gRPC's own protocol of health, as Kubernetes asks it."""
    with plain_grpc.insecure_channel(GRPC) as channel:
        client, request = health_pb2_grpc.HealthStub(channel), health_pb2.HealthCheckRequest
        for name in ["", "inference.GRPCInferenceService"]:
            check(client.Check(request(service=name)).status == health_pb2.HealthCheckResponse.SERVING, f"health of {name!r}")
        watched = client.Watch(request(service="none"))
        check(next(watched).status == health_pb2.HealthCheckResponse.SERVICE_UNKNOWN, "a stream of statuses of a service that is not there")
        watched.cancel()
        try:
            client.Check(request(service="none"))
        except plain_grpc.RpcError as error:
            check(error.code() == plain_grpc.StatusCode.NOT_FOUND, str(error))
        else:
            sys.exit("failed: the health of nothing")


def reflection():
    """The services and their messages, as grpcurl and others ask for them."""
    with plain_grpc.insecure_channel(GRPC) as channel:
        database = ProtoReflectionDescriptorDatabase(channel)
        services = set(database.get_services())
        check({"inference.GRPCInferenceService", "grpc.health.v1.Health"} <= services, f"{services}")
        pool = DescriptorPool(database)
        methods = pool.FindServiceByName("inference.GRPCInferenceService").methods_by_name
        check(methods["ModelInfer"].input_type.full_name == "inference.ModelInferRequest", f"{sorted(methods)}")


def metrics():
    """Prometheus' own reader, of the format that all of its kind know."""
    with urllib.request.urlopen(f"http://{HTTP}/metrics") as answer:
        families = {it.name: it for it in text_string_to_metric_families(answer.read().decode())}
    check(families["nnhal_requests"].type == "counter", f"{sorted(families)}")
    check(families["nnhal_request_duration_seconds"].type == "histogram", f"{sorted(families)}")
    check(not any(it.type == "unknown" for it in families.values()), f"{sorted(families)}")


note_encodings()
by_grpc(by_http())
health()
reflection()
metrics()
asyncio.run(by_asyncio(by_http()))
print(f"{checks} checks passed")
