"""Measures `nnhal serve` beside the engine alone: throughput and latency by concurrency, in one run.

    bench/serve.py --nnhal target/release/nnhal MODEL.tflite... [--seconds 4] [--markdown FILE]

Needs `wrk` (Debian: wrk) and for gRPC `h2load` (Debian: nghttp2-client). All on this machine, over loopback. For each
model the engine's own throughput (`nnhal bench --parallel`) is measured before and after each measurement of the
server, so that other load of the machine meets both. Processor time for each request and each run of the engine is
measured too: unlike rates it hardly depends on what else the machine does. Requests carry tensors as bytes. The load
average before each measurement is part of its row. With `--split N` servers and engine alone have the first N
processors and the load generator has the others, so that it takes nothing from what is compared; without it the
generator takes its share of all processors, and the rate of a server is lower by that. With `--peer PYTHON`, an interpreter that has `uvicorn[standard]` and
`ai-edge-litert`, the server of peer_server.py is measured in between.
"""

import argparse
import json
import os
import pathlib
import re
import resource
import shutil
import socket
import struct
import subprocess
import tempfile
import time
import urllib.request

SIZES = {"FP32": 4, "INT8": 1, "UINT8": 1, "INT32": 4, "INT64": 8, "FP16": 2, "INT16": 2, "BOOL": 1, "FP64": 8}


def engine(on, nnhal, model, parallel, threads, seconds):
    """Runs per second, and the processor time of each: what a measurement takes beyond one of few runs."""

    def measured(*length):
        command = [*on, nnhal, "bench", model, "--json", "--parallel", str(parallel), "--threads", str(threads), *length]
        used = children_time()
        found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        return found, children_time() - used

    few, preparing = measured("--runs", "1")
    found, used = measured("--time", str(seconds))
    return found["runs_per_second"], (used - preparing) / max(found["runs"] - few["runs"], 1)


def children_time():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (usage.ru_utime + usage.ru_stime) * 1e6


def process_time(server):
    fields = pathlib.Path(f"/proc/{server.pid}/stat").read_text().rsplit(") ", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) * 1e6 / os.sysconf("SC_CLK_TCK")


def idle(*servers):
    """Waits until servers have done what clients that are gone have left in their queues."""
    before = None
    while (now := [process_time(it) for it in servers if it]) != before:
        before = now
        time.sleep(0.2)


def varint(number):
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def field(number, payload):
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def bodies(metadata, folder):
    """Files with a request for each endpoint, and the length of the JSON."""
    head, raw, message = {"parameters": {"binary_data_output": True}, "inputs": []}, b"", field(1, metadata["name"].encode())
    for it in metadata["inputs"]:
        shape = [1 if length < 0 else length for length in it["shape"]]
        size = SIZES[it["datatype"]]
        for length in shape:
            size *= length
        parameters = {"binary_data_size": size}
        head["inputs"].append({"name": it["name"], "shape": shape, "datatype": it["datatype"], "parameters": parameters})
        lengths = b"".join(varint(length) for length in shape)
        message += field(5, field(1, it["name"].encode()) + field(2, it["datatype"].encode()) + field(3, lengths))
        raw += bytes(size)
    parts = [field(7, bytes(it["parameters"]["binary_data_size"])) for it in head["inputs"]]
    message += b"".join(parts)
    text = json.dumps(head).encode()
    (folder / "http").write_bytes(text + raw)
    (folder / "grpc").write_bytes(b"\0" + struct.pack(">I", len(message)) + message)
    script = folder / "post.lua"
    script.write_text(
        'wrk.method = "POST"\n'
        f'wrk.body = io.open("{folder / "http"}", "rb"):read("*a")\n'
        f'wrk.headers["Inference-Header-Content-Length"] = "{len(text)}"\n'
    )
    return script


def microseconds(text):
    number, unit = re.fullmatch(r"([\d.]+)(us|ms|s)", text).groups()
    return float(number) * {"us": 1, "ms": 1e3, "s": 1e6}[unit]


def wrk(on, url, script, concurrency, seconds):
    command = [*on, "wrk", "-t1", f"-c{concurrency}", f"-d{seconds}s", "--latency", "--timeout", "60s", "-s", script, url]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    latency = {name: microseconds(value) for name, value in re.findall(r"^\s+(50|90|99)%\s+(\S+)", text, re.M)}
    errors = "Non-2xx" in text or "Socket errors" in text
    count = int(re.search(r"(\d+) requests in", text)[1])
    return float(re.search(r"Requests/sec:\s+([\d.]+)", text)[1]), latency, errors, count


def h2load(on, address, folder, concurrency, seconds):
    url = f"http://{address}/inference.GRPCInferenceService/ModelInfer"
    command = [*on, "h2load", "-t1", f"-c{concurrency}", "-m1", f"-D{seconds}", "-d", folder / "grpc", "-H", "content-type: application/grpc", "-H", "te: trailers", url]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    failed = not re.search(r" 0 failed, 0 errored", text)
    count = int(re.search(r"(\d+) succeeded", text)[1])
    return float(re.search(r"([\d.]+) req/s", text)[1]), failed, count


def split(count):
    """What puts a command onto the servers' processors, and onto those of the load generator."""
    if not count:
        return [], []
    all_of_them = [str(it) for it in sorted(os.sched_getaffinity(0))]
    return ["taskset", "-c", ",".join(all_of_them[:count])], ["taskset", "-c", ",".join(all_of_them[count:])]


def peer(arguments, on, model, instances, threads):
    """Another server of the same model, and where it listens; it may answer a little later."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    script = pathlib.Path(__file__).with_name("peer_server.py")
    command = [*on, arguments.peer, script, model, str(port), "--instances", str(instances), "--threads", str(threads)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(600):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return server, f"http://127.0.0.1:{port}/v2/models/model/infer"
        except ConnectionRefusedError:
            time.sleep(0.1)
    raise SystemExit("the other server does not start")


def served(arguments, model, instances, threads, folder, rows):
    on, generator_on = split(arguments.split)
    place = folder / "models" / "model" / "1"
    place.mkdir(parents=True)
    shutil.copy(model, place / "model.tflite")
    (place.parent / "config.toml").write_text(f"instances = {instances}\nthreads = {threads}\n")
    command = [*on, arguments.nnhal, "serve", "--models", folder / "models", "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    other_server = None
    try:
        http, grpc = (server.stdout.readline().split()[1] for _ in range(2))
        with urllib.request.urlopen(f"http://{http}/v2/models/model") as response:
            script = bodies(json.load(response), folder)
        url = f"http://{http}/v2/models/model/infer"
        wrk(generator_on, url, script, 2, 1)
        if arguments.peer:
            other_server, other_url = peer(arguments, on, model, instances, threads)
            wrk(generator_on, other_url, script, 2, 1)
        for concurrency in arguments.clients:
            parallel = min(concurrency, instances)
            load = os.getloadavg()[0]
            before, one = engine(on, arguments.nnhal, model, parallel, threads, arguments.seconds / 2)
            start = process_time(server)
            rate, latency, errors, count = wrk(generator_on, url, script, concurrency, arguments.seconds)
            idle(server)
            middle = process_time(server)
            grpc_rate, failed, grpc_count = h2load(generator_on, grpc, folder, concurrency, arguments.seconds)
            idle(server)
            end = process_time(server)
            if arguments.peer:
                begin = process_time(other_server)
                other_rate, other_latency, other_errors, other_count = wrk(generator_on, other_url, script, concurrency, arguments.seconds)
                other_time = (process_time(other_server) - begin) / max(other_count, 1)
                errors |= other_errors
            idle(other_server)
            after, other = engine(on, arguments.nnhal, model, parallel, threads, arguments.seconds / 2)
            own = (before + after) / 2
            path = pathlib.Path(model)
            row = [path.parent.name if path.stem == "model" else path.stem, f"{instances}×{threads}", concurrency]
            row += [f"{own:.0f}", f"{rate:.0f}", f"{rate / own:.2f}", f"{grpc_rate:.0f}", f"{grpc_rate / own:.2f}"]
            times = [(one + other) / 2, (middle - start) / max(count, 1), (end - middle) / max(grpc_count, 1)]
            row += [f"{time:.0f}" for time in times]
            row += [f"{latency[name] / 1000:.2f}" for name in ("50", "90", "99")]
            if arguments.peer:
                row += [f"{other_rate:.0f}", f"{other_time:.0f}", f"{other_latency['50'] / 1000:.2f}"]
            row.append(f"{load:.1f}")
            if errors or failed:
                row[0] += " (errors)"
            rows.append(row)
            print(*row, sep=" | ", flush=True)
    finally:
        for it in [server, other_server]:
            if it:
                it.terminate()
                it.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--nnhal", required=True)
    parser.add_argument("--seconds", type=int, default=4)
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 2, 4, 8, 16, 32, 64])
    parser.add_argument("--instances", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--split", type=int, default=0)
    parser.add_argument("--peer")
    parser.add_argument("--markdown")
    arguments = parser.parse_args()
    rows = []
    for model in arguments.models:
        with tempfile.TemporaryDirectory() as folder:
            served(arguments, model, arguments.instances, arguments.threads, pathlib.Path(folder), rows)
    names = ["model", "instances", "clients", "engine /s", "HTTP /s", "of engine", "gRPC /s", "of engine", "engine CPU µs", "HTTP CPU µs", "gRPC CPU µs"]
    names += ["p50 ms", "p90 ms", "p99 ms"]
    if arguments.peer:
        names += ["peer /s", "peer CPU µs", "peer p50 ms"]
    names.append("load")
    table = "\n".join("| " + " | ".join(map(str, row)) + " |" for row in [names, ["---"] * len(names), *rows])
    print(time.strftime("%Y-%m-%d"), table, sep="\n")
    if arguments.markdown:
        pathlib.Path(arguments.markdown).write_text(table + "\n")


main()
