"""What a server says to requests that are wrong, by both endpoints: refusals.py NNHAL WORK.

Each has the right status, and a message that names what is wrong, what was found and what is expected. Also what models that
come, go and are broken mean for those who ask for them meanwhile. Needs `tritonclient[all]` and NumPy.
"""

import concurrent.futures
import gzip
import http.client
import json
import pathlib
import shutil
import subprocess
import sys
import threading
import time

import numpy
import tritonclient.grpc as grpc
import tritonclient.http as triton_http
from tritonclient.utils import InferenceServerException

NNHAL, WORK = sys.argv[1], pathlib.Path(sys.argv[2]) / "refusals"
DIGITS = pathlib.Path(__file__).resolve().parents[2] / "assets/digits"
IMAGE = numpy.full((1, 8, 8, 1), 0.5, numpy.float32)
LIMIT = 1 << 20
failed = []


def check(holds, what):
    if not holds:
        failed.append(what)
        print("failed:", what)


def model(name, versions=(1,), config="", file="digits_float32.tflite"):
    for version in versions:
        folder = WORK / "models" / name / str(version)
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(DIGITS / file, folder / "model.tflite")
    (WORK / "models" / name / "config.toml").write_text(config)


def ask(path, body=None, headers=None, method=None):
    """The status and the body of an answer, as an object if it is one."""
    connection = http.client.HTTPConnection(HTTP, timeout=30)
    connection.request(method or ("GET" if body is None else "POST"), path, body, headers or {})
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    try:
        return answer.status, json.loads(text)
    except ValueError:
        return answer.status, text


def refused(what, status, names, path, body=None, headers=None):
    """An answer has the status, and its message has all of these words."""
    found, answer = ask(path, body, headers)
    message = answer.get("error", "") if isinstance(answer, dict) else str(answer)
    missing = [name for name in names if name not in message]
    check(found == status and not missing, f"{what}: {found}, expected {status}; no {missing} in {message!r}")


def tensor(name="image", shape=(1, 8, 8, 1), datatype="FP32", **more):
    data = {} if "parameters" in more else {"data": [0.5] * 64}
    return {"name": name, "shape": list(shape), "datatype": datatype} | data | more


def request(*inputs, **more):
    return json.dumps({"inputs": list(inputs)} | more).encode()


def requests_by_http():
    infer = "/v2/models/digits/infer"
    by = lambda what, names, *inputs, **more: refused(what, 400, names, infer, request(*inputs, **more))
    by("another type", ["image", "INT32", "FP32"], tensor(datatype="INT32", data=[1] * 64))
    by("another shape", ["image", "[1, 4, 16, 1]", "[1, 8, 8, 1]"], tensor(shape=(1, 4, 16, 1)))
    by("another rank", ["image", "[64]", "[1, 8, 8, 1]"], tensor(shape=(64,)))
    by("too few elements", ["image", "63", "64"], tensor(data=[0.5] * 63))
    by("too many elements", ["image", "more", "64"], tensor(data=[0.5] * 65))
    by("another name", ["image", "picture"], tensor("picture"))
    by("an input too many", ["2", "1", "image"], tensor(), tensor("other"))
    by("an input twice", ["image"], tensor(), tensor())
    by("no input", ["0", "1", "image"])
    by("an unknown output", ["digits", "classes", "probabilities"], tensor(), outputs=[{"name": "classes"}])
    by("an output twice", ["digits", "probabilities", "twice"], tensor(), outputs=[{"name": "probabilities"}] * 2)
    by("a text", ["image", "BYTES"], tensor(shape=(1,), datatype="BYTES", data=["a cat"]))
    by("an unknown type", ["image", "FLOAT"], tensor(datatype="FLOAT"))
    by("a value out of range", ["image", "300", "UINT8"], tensor(datatype="UINT8", data=[300] * 64))
    by("a text among numbers", ["image", "x"], tensor(data=["x"] * 64))
    by("a priority that is a text", ["priority"], tensor(), parameters={"priority": "high"})
    by("a timeout below 0", ["timeout"], tensor(), parameters={"timeout": -1})
    refused("a sequence", 501, ["sequence"], infer, request(tensor(), parameters={"sequence_id": 3}))
    # Python's own writer writes these, though JSON has no such numbers.
    for value in ["NaN", "Infinity", "-Infinity"]:
        body = request(tensor(data=[0.5] * 63 + [float(value)]))
        refused(value, 400, ["JSON", value, "bytes"], infer, body)
    refused("no JSON", 400, ["JSON", "line 1"], infer, b'{"inputs": [}')
    refused("a field of another type", 400, ["JSON", "7", "line 1"], infer, b'{"inputs": 7}')
    header = {"Inference-Header-Content-Length": "9999"}
    refused("a header that is too long", 400, ["9999"], infer, request(tensor()), header)
    text = request(tensor(parameters={"binary_data_size": 256}))
    header = {"Inference-Header-Content-Length": str(len(text))}
    refused("too few bytes", 400, ["image", "256", "255"], infer, text + bytes(255), header)
    refused("too many bytes", 400, ["1 byte"], infer, text + bytes(257), header)
    raw = {"Inference-Header-Content-Length": "0"}
    refused("bytes alone, too few", 400, ["image", "200", "256", "FP32"], infer, bytes(200), raw)
    refused("too much", 413, [str(LIMIT)], infer, bytes(LIMIT + 1))
    # Longer than what a system buffers, so that the client is still sending when it is refused.
    long = b" " * (LIMIT - 1)
    refused("long, compressed in another way", 415, ["gzip"], infer, long, {"content-encoding": "br"})
    refused("long, to no such path", 404, ["/v2/nothing"], "/v2/nothing", long)
    refused("compressed in another way", 415, ["compressed", "gzip"], infer, b"x", {"content-encoding": "br"})
    refused("not compressed", 400, ["compressed"], infer, b"x", {"content-encoding": "gzip"})
    bomb = gzip.compress(bytes(LIMIT + 1))
    refused("little that becomes too much", 413, [str(LIMIT)], infer, bomb, {"content-encoding": "gzip"})
    refused("a batch over the limit", 400, ["batched", "9", "8"], "/v2/models/batched/infer", request(tensor(shape=(9, 8, 8, 1), data=[0.5] * 576)))
    refused("no row", 400, ["batched", "image", "[0, 8, 8, 1]"], "/v2/models/batched/infer", request(tensor(shape=(0, 8, 8, 1), data=[])))
    refused("no such model", 404, ["model", "none"], "/v2/models/none/infer", request(tensor()))
    refused("no such version", 404, ["version", "9", "digits"], "/v2/models/digits/versions/9/infer", request(tensor()))
    refused("a version that is no number", 404, ["version", "latest"], "/v2/models/digits/versions/latest/infer", request(tensor()))
    refused("no such path", 404, ["/v2/nothing"], "/v2/nothing")
    refused("another method", 405, ["GET"], infer)
    refused("shared memory that is not offered", 403, ["--shared-memory"], "/v2/systemsharedmemory/status")
    check(ask(infer, request(tensor()))[0] == 200, "the server still answers")


def requests_by_grpc():
    client = grpc.InferenceServerClient(GRPC)

    def image(name="image", values=IMAGE, datatype="FP32", shape=None):
        one = grpc.InferInput(name, list(shape or values.shape), datatype)
        one.set_data_from_numpy(values)
        return one

    def by(what, code, names, name, *inputs, **more):
        try:
            client.infer(name, list(inputs), **more)
            check(False, f"{what} by gRPC is not refused")
        except InferenceServerException as error:
            missing = [name for name in names if name not in error.message()]
            right = error.status() == f"StatusCode.{code}"
            check(right and not missing, f"{what} by gRPC: {error.status()}, expected {code}; no {missing} in {error.message()!r}")

    integers = IMAGE.astype(numpy.int32)
    by("another type", "INVALID_ARGUMENT", ["image", "INT32", "FP32"], "digits", image(values=integers, datatype="INT32"))
    by("another shape", "INVALID_ARGUMENT", ["image", "[1, 4, 16, 1]", "[1, 8, 8, 1]"], "digits", image(values=IMAGE.reshape(1, 4, 16, 1)))
    by("another name", "INVALID_ARGUMENT", ["image", "picture"], "digits", image("picture"))
    unknown = [grpc.InferRequestedOutput("classes")]
    by("an unknown output", "INVALID_ARGUMENT", ["digits", "classes", "probabilities"], "digits", image(), outputs=unknown)
    twice = [grpc.InferRequestedOutput("probabilities")] * 2
    by("an output twice", "INVALID_ARGUMENT", ["digits", "probabilities", "twice"], "digits", image(), outputs=twice)
    texts = numpy.array([b"a cat"], dtype=numpy.object_)
    by("a text", "INVALID_ARGUMENT", ["image", "BYTES"], "digits", image(values=texts, datatype="BYTES"))
    by("a batch over the limit", "INVALID_ARGUMENT", ["batched", "9", "8"], "batched", image(values=numpy.repeat(IMAGE, 9, 0)))
    by("no such model", "NOT_FOUND", ["model", "none"], "none", image())
    by("no such version", "NOT_FOUND", ["version", "9", "digits"], "digits", image(), model_version="9")
    by("a sequence", "UNIMPLEMENTED", ["sequence"], "digits", image(), sequence_id=3)
    large = numpy.zeros((LIMIT // 256 + 1, 8, 8, 1), numpy.float32)
    by("too much", "RESOURCE_EXHAUSTED", [str(LIMIT)], "digits", image(values=large))
    by("little that becomes too much", "RESOURCE_EXHAUSTED", [str(LIMIT)], "digits", image(values=large), compression_algorithm="gzip")
    nan = client.infer("digits", [image(values=IMAGE * numpy.nan)]).as_numpy("probabilities")
    check(nan.shape == (1, 10), "what is not finite is a value like others in bytes")
    check(client.infer("digits", [image()]).as_numpy("probabilities").shape == (1, 10), "the server still answers by gRPC")
    client.close()


def versions():
    """Which versions are served, and by which name."""
    statuses = lambda name: [ask(f"/v2/models/{name}/versions/{it}/ready")[0] == 200 for it in (1, 2, 3)]
    check(statuses("latest") == [False, False, True], f"only the greatest version is served: {statuses('latest')}")
    check(statuses("two") == [False, True, True], f"the two greatest: {statuses('two')}")
    check(statuses("all") == [True, True, True], f"all versions: {statuses('all')}")
    check(statuses("specific") == [True, False, True], f"the versions that are named: {statuses('specific')}")
    metadata = ask("/v2/models/all")[1]
    check(metadata["versions"] == ["1", "2", "3"], f"all versions are listed: {metadata['versions']}")
    for version, expected in [("", "3"), ("/versions/1", "1"), ("/versions/2", "2")]:
        _, answer = ask(f"/v2/models/all{version}/infer", request(tensor()))
        check(answer.get("model_version") == expected, f"version {version!r} is answered by {answer}")
    refused("a version that is not served", 404, ["version", "1", "latest"], "/v2/models/latest/versions/1/infer", request(tensor()))


def loading():
    """Models that are broken, and why."""
    load = lambda name, body=b"{}": ask(f"/v2/repository/models/{name}/load", body)
    index = lambda name: next((it for it in ask("/v2/repository/index", b"")[1] if it["name"] == name and it.get("reason")), {})
    for name, words in {
        "broken": ["model.tflite"],
        "empty": ["model.tflite"],
        "wrong_config": ["config.toml", "instancse"],
        "wrong_input": ["input", "picture", "image"],
        "wrong_device": ["device", "nnhal-gpu"],
        "no_file": ["no_file"],
    }.items():
        status, answer = load(name)
        message = answer.get("error", "") if isinstance(answer, dict) else str(answer)
        missing = [word for word in words if word not in message]
        check(status in (400, 404) and not missing, f"loading {name}: {status}; no {missing} in {message!r}")
        if name != "no_file":
            check(index(name).get("reason") == message, f"the index says of {name}: {index(name)}")
        found, answer = ask(f"/v2/models/{name}/infer", request(tensor()))
        check(found in (404, 503) and name in answer["error"], f"{name} is asked: {found} {answer}")
    check(ask("/v2/health/ready")[0] != 200, "a server with broken models says that it is ready")
    check(ask("/v2/health/live")[0] == 200, "a server with broken models is not live")
    # What worked goes on.
    file = WORK / "models/replaced/1/model.tflite"
    good = file.read_bytes()
    file.write_bytes(good[: len(good) // 2])
    status, answer = load("replaced")
    check(status == 400 and "model.tflite" in answer["error"], f"half a model is loaded: {status} {answer}")
    check(ask("/v2/models/replaced/infer", request(tensor()))[0] == 200, "the model before half a one is gone")
    file.write_bytes(good)
    check(load("replaced")[0] == 200, "the whole model is not loaded again")
    check(load("digits", b'{"parameters": {"config": "{"}}')[0] == 400, "a configuration that is no JSON is taken")
    check(ask("/v2/models/digits/infer", request(tensor()))[0] == 200, "a configuration that is refused has unloaded the model")


def coming_and_going():
    """Every request is answered once while its model is loaded, changed on disk, and unloaded."""
    ended, counts, wrong = threading.Event(), {200: 0, 404: 0, 503: 0}, []
    lock = threading.Lock()
    expected = ask("/v2/models/digits/infer", request(tensor()))[1]["outputs"][0]["data"]

    def client(number):
        connection = http.client.HTTPConnection(HTTP, timeout=60)
        sent = 0
        while not ended.is_set():
            name = f"{number}-{sent}"
            connection.request("POST", "/v2/models/moving/infer", request(tensor(), id=name))
            answer = connection.getresponse()
            found = json.loads(answer.read())
            sent += 1
            with lock:
                counts[answer.status] = counts.get(answer.status, 0) + 1
                right = found.get("id") == name and found["outputs"][0]["data"] == expected if answer.status == 200 else "moving" in found["error"]
                if not right:
                    wrong.append((answer.status, found))

    def by_grpc():
        with grpc.InferenceServerClient(GRPC) as own:
            image = grpc.InferInput("image", list(IMAGE.shape), "FP32")
            image.set_data_from_numpy(IMAGE)
            sent = 0
            while not ended.is_set():
                sent += 1
                try:
                    result = own.infer("moving", [image], request_id=str(sent))
                    if result.get_response().id != str(sent):
                        wrong.append(result.get_response().id)
                except InferenceServerException as error:
                    if error.status() not in ("StatusCode.NOT_FOUND", "StatusCode.UNAVAILABLE"):
                        wrong.append((error.status(), error.message()))

    with concurrent.futures.ThreadPoolExecutor(8) as threads:
        running = [threads.submit(client, number) for number in range(6)] + [threads.submit(by_grpc) for _ in range(2)]
        # Reloads lose nothing: no request may fail.
        for round_ in range(20):
            if round_ % 2:
                model("moving", config=f"instances = {1 + round_ % 3}\n")
            status, answer = ask("/v2/repository/models/moving/load", b"{}")
            check(status == 200, f"reload {round_}: {status} {answer}")
        time.sleep(0.2)
        with lock:
            lost = {status: count for status, count in counts.items() if status != 200 and count}
            check(not lost, f"requests fail while their model is replaced: {lost}")
            reloaded = counts[200]
        for _ in range(10):
            check(ask("/v2/repository/models/moving/unload", b"{}")[0] == 200, "unloading")
            time.sleep(0.02)
            check(ask("/v2/repository/models/moving/load", b"{}")[0] == 200, "loading")
            time.sleep(0.02)
        ended.set()
        for it in running:
            it.result()
    check(not wrong, f"{len(wrong)} wrong answers: {wrong[:3]}")
    check(set(counts) <= {200, 404, 503} and counts[404] + counts[503] > 0 and reloaded > 100, f"answers by status: {counts}")
    print(f"  {reloaded} requests in 20 reloads, none lost; answers in all by status: {counts}")


model("digits")
model("batched", config="max_batch_size = 8\n[dynamic_batching]\nmax_queue_delay_microseconds = 100\n")
model("moving")
model("replaced")
for name, policy in {"latest": "", "two": "versions = { latest = 2 }\n", "all": 'versions = "all"\n', "specific": "versions = { specific = [1, 3] }\n"}.items():
    model(name, (1, 2, 3), policy)
model("broken")
(WORK / "models/broken/1/model.tflite").write_bytes(bytes(1000))
model("empty")
(WORK / "models/empty/1/model.tflite").write_bytes(b"")
model("wrong_config", config="instancse = 2\n")
model("wrong_input", config='[[inputs]]\nname = "picture"\n')
model("wrong_device", config='device = "nnhal-gpu"\n')
command = [NNHAL, "serve", "--models", WORK / "models", "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0", "--max-request", "1"]
with open(WORK / "log", "w", encoding="utf-8") as log:
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
try:
    HTTP, GRPC = (server.stdout.readline().split()[1] for _ in range(2))
    for part in (requests_by_http, requests_by_grpc, versions, loading, coming_and_going):
        part()
finally:
    server.terminate()
    check(server.wait(60) == 0, "an orderly end")
if failed:
    sys.exit(f"{len(failed)} failed")
print("refusals: right statuses, and messages that say what was found and expected")
