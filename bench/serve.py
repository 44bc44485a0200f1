"""Measures `nnhal serve` beside the engine alone: throughput and latency by concurrency, in one run.

    bench/serve.py --nnhal target/release/nnhal MODEL.tflite... [--seconds 4] [--markdown FILE]

Needs `wrk` (Debian: wrk) and for gRPC `h2load` (Debian: nghttp2-client). All on this machine, over loopback. For each
model the engine's own throughput (`nnhal bench --parallel`) is measured before and after the measurements of the
server, so that other load of the machine meets both. The server is asked over HTTP and gRPC with tensors as bytes, and
over HTTP with tensors in shared memory. Processor time for each request and each run of the engine is measured too:
unlike rates it hardly depends on what else the machine does. The load average before each measurement is part of its
row. With `--split N` servers and engine alone have the first N processors and the load generator has the others, so
that it takes nothing from what is compared; without it the generator takes its share of all processors, and the rate
of a server is lower by that.

On a virtual machine whose host puts two processors on one core for seconds at a time, a rate is half of what it was a moment
ago. `steady.c` looks for that before and after each measurement, which is repeated then, `--attempts` times at most; a row
tells of how many measurements the last attempt was disturbed too.

What to compare with is optional:

- `--reader PROGRAM`: the example `read_and_answer` of nnhal-serve, which reads the same bytes and does nothing: what the
  connection itself costs.
- `--peer PYTHON`: an interpreter that has `uvicorn[standard]` and `ai-edge-litert`, for peer_server.py.
- `--triton PYTHON`: one that has `nvidia-pytriton` and `ai-edge-litert`, for triton.py.
"""

import argparse
import json
import math
import os
import pathlib
import re
import resource
import shutil
import socket
import statistics
import struct
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

from processes import processor_times
from steadiness import MOST, Steadiness

SIZES = {"FP32": 4, "INT8": 1, "UINT8": 1, "INT32": 4, "INT64": 8, "FP16": 2, "INT16": 2, "BOOL": 1, "FP64": 8}


class Attempts:
    """Repeats measurements during which processors were slow."""

    def __init__(self, most):
        self.most, self.disturbed = most, 0
        self.steadiness = Steadiness(len(os.sched_getaffinity(0)))

    def of(self, measure):
        for _ in range(self.most):
            self.steadiness.wait(20)
            before = self.steadiness.slowdown()
            found = measure()
            if max(before, self.steadiness.slowdown()) <= MOST:
                return found
        self.disturbed += 1
        return found


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
    """Microseconds of processor that a process and those that it started have had."""
    return sum(processor_times(server.pid).values()) * 1e6


def idle(server):
    """Waits until a server has done what clients that are gone have left in its queue."""
    before = None
    while (now := process_time(server)) != before:
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


def count(tensor):
    """Bytes of a tensor of one row."""
    return SIZES[tensor["datatype"]] * math.prod(shape_of(tensor))


def shape_of(tensor):
    return [1 if length < 0 else length for length in tensor["shape"]]


def post(path, text, raw=b""):
    """A script for `wrk` that sends this."""
    path.with_suffix(".body").write_bytes(text + raw)
    lines = ['wrk.method = "POST"', f'wrk.body = io.open("{path.with_suffix(".body")}", "rb"):read("*a")']
    if raw:
        lines.append(f'wrk.headers["Inference-Header-Content-Length"] = "{len(text)}"')
    path.write_text("\n".join(lines) + "\n")
    return path


def http_request(metadata, path):
    """A request by HTTP with tensors as bytes."""
    inputs = []
    for it in metadata["inputs"]:
        parameters = {"binary_data_size": count(it)}
        inputs.append({"name": it["name"], "shape": shape_of(it), "datatype": it["datatype"], "parameters": parameters})
    text = json.dumps({"parameters": {"binary_data_output": True}, "inputs": inputs}).encode()
    return post(path, text, bytes(sum(count(it) for it in metadata["inputs"])))


def grpc_request(metadata, path):
    message = field(1, metadata["name"].encode())
    for it in metadata["inputs"]:
        lengths = b"".join(varint(length) for length in shape_of(it))
        message += field(5, field(1, it["name"].encode()) + field(2, it["datatype"].encode()) + field(3, lengths))
    message += b"".join(field(7, bytes(count(it))) for it in metadata["inputs"])
    path.write_bytes(b"\0" + struct.pack(">I", len(message)) + message)
    return path


def shared_request(metadata, path, http, memory):
    """A request by HTTP with tensors in a piece of shared memory, which is registered with the server."""
    at, request = 0, {}
    for kind in ["inputs", "outputs"]:
        request[kind] = []
        for it in metadata[kind]:
            size = count(it)
            place = {"shared_memory_region": "bench", "shared_memory_offset": at, "shared_memory_byte_size": size}
            tensor = {"name": it["name"], "parameters": place}
            if kind == "inputs":
                tensor |= {"shape": shape_of(it), "datatype": it["datatype"]}
            request[kind].append(tensor)
            at += size
    memory.write_bytes(bytes(at))
    registered = json.dumps({"key": "/" + memory.name, "offset": 0, "byte_size": at}).encode()
    urllib.request.urlopen(f"http://{http}/v2/systemsharedmemory/region/bench/register", registered).close()
    return post(path, json.dumps(request).encode())


def microseconds(text):
    number, unit = re.fullmatch(r"([\d.]+)(us|ms|s)", text).groups()
    return float(number) * {"us": 1, "ms": 1e3, "s": 1e6}[unit]


def wrk(on, url, script, concurrency, seconds):
    command = [*on, "wrk", "-t1", f"-c{concurrency}", f"-d{seconds}s", "--latency", "--timeout", "60s", "-s", script, url]
    used = children_time()
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    count = int(re.search(r"(\d+) requests in", text)[1])
    found = {f"p{name}": microseconds(value) / 1000 for name, value in re.findall(r"^\s+(50|90|99)%\s+(\S+)", text, re.M)}
    found["rate"] = float(re.search(r"Requests/sec:\s+([\d.]+)", text)[1])
    found["client"] = (children_time() - used) / max(count, 1)
    return found | {"count": count, "failed": "Non-2xx" in text or "Socket errors" in text}


def h2load(on, address, request, concurrency, seconds):
    url = f"http://{address}/inference.GRPCInferenceService/ModelInfer"
    log = request.with_suffix(".log")
    log.unlink(missing_ok=True)
    command = [*on, "h2load", "-t1", f"-c{concurrency}", "-m1", f"-D{seconds}", "-d", request, f"--log-file={log}"]
    command += ["-H", "content-type: application/grpc", "-H", "te: trailers", url]
    used = children_time()
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    count = int(re.search(r"(\d+) succeeded", text)[1])
    times = sorted(int(line.split()[2]) for line in log.read_text().splitlines())
    found = {f"p{part}": times[len(times) * part // 100] / 1000 for part in (50, 90, 99) if times}
    found["rate"] = float(re.search(r"([\d.]+) req/s", text)[1])
    found["client"] = (children_time() - used) / max(count, 1)
    return found | {"count": count, "failed": not re.search(r" 0 failed, 0 errored", text)}


def split(count):
    """What puts a command onto the servers' processors, and onto those of the load generator."""
    if not count:
        return [], []
    all_of_them = [str(it) for it in sorted(os.sched_getaffinity(0))]
    return ["taskset", "-c", ",".join(all_of_them[:count])], ["taskset", "-c", ",".join(all_of_them[count:])]


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


class Measured:
    """A way to ask a server, and what asking takes by clients and seconds."""

    def __init__(self, name, server, ask):
        self.name, self.server, self.ask = name, server, ask

    def by(self, concurrency, seconds):
        idle(self.server)
        start = process_time(self.server)
        found = self.ask(concurrency, seconds)
        idle(self.server)
        return found | {"server": (process_time(self.server) - start) / max(found["count"], 1)}


def own(arguments, started, on, generator_on, model, folder, memory):
    """The server that is measured, by its three ways in."""
    place = folder / "models" / "model" / "1"
    place.mkdir(parents=True)
    shutil.copy(model, place / "model.tflite")
    (place.parent / "config.toml").write_text(f"instances = {arguments.instances}\nthreads = {arguments.threads}\n")
    command = [*on, arguments.nnhal, "serve", "--models", folder / "models", "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0"]
    server = subprocess.Popen([*command, "--shared-memory"], stdout=subprocess.PIPE, text=True)
    started.append(server)
    http, grpc = (server.stdout.readline().split()[1] for _ in range(2))
    url = f"http://{http}/v2/models/model"
    metadata = json.load(urllib.request.urlopen(url))
    bytes_, message = http_request(metadata, folder / "http.lua"), grpc_request(metadata, folder / "grpc")
    shared = shared_request(metadata, folder / "shared.lua", http, memory)
    return [
        Measured("HTTP", server, lambda *how: wrk(generator_on, url + "/infer", bytes_, *how)),
        Measured("gRPC", server, lambda *how: h2load(generator_on, grpc, message, *how)),
        Measured("memory", server, lambda *how: wrk(generator_on, url + "/infer", shared, *how)),
    ]


def other(name, command, port, started, generator_on, folder):
    """Another server of the same model, which may answer a little later."""
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    started.append(server)
    url = f"http://127.0.0.1:{port}/v2/models/model"
    script = folder / "http.lua"
    for _ in range(600):
        try:
            with urllib.request.urlopen(url) as response:
                script = http_request(json.load(response), folder / f"{name}.lua")
            break
        except urllib.error.HTTPError:
            break  # It does not say what it takes: it takes what ours does.
        except OSError:
            time.sleep(0.1)
    else:
        raise SystemExit(f"{name} does not start")
    return Measured(name, server, lambda *how: wrk(generator_on, url + "/infer", script, *how))


def others(arguments, started, on, generator_on, model, folder):
    here = pathlib.Path(__file__).parent
    if arguments.reader:
        server = subprocess.Popen([*on, arguments.reader], stdout=subprocess.PIPE, text=True)
        started.append(server)
        url = f"http://{server.stdout.readline().split()[1]}/"
        yield Measured("reader", server, lambda *how: wrk(generator_on, url, folder / "http.lua", *how))
    for name, python, script in [("peer", arguments.peer, "peer_server.py"), ("Triton", arguments.triton, "triton.py")]:
        if python:
            port = free_port()
            command = [*on, python, here / script, model, str(port), f"--instances={arguments.instances}", f"--threads={arguments.threads}"]
            yield other(name, command, port, started, generator_on, folder)


def median_run(on, nnhal, model, threads):
    """The median time of a run of the engine alone, in ms."""
    command = [*on, nnhal, "bench", model, "--json", "--threads", str(threads), "--time", "0.5"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["median_us"] / 1000


def added(arguments, model, folder, memory):
    """A row of what asking takes beyond a run: the medians over all turns. Each way is asked between two measurements of
    the engine alone, since a processor's clock changes from one minute to the next by more than what is looked for."""
    on, generator_on = split(arguments.split)
    path, started = pathlib.Path(model), []
    alone = lambda: median_run(on, arguments.nnhal, model, arguments.threads)
    try:
        ways = own(arguments, started, on, generator_on, model, folder, memory)
        ways += others(arguments, started, on, generator_on, model, folder)
        for way in ways:
            way.by(1, 1)
        beyond, runs = {way.name: [] for way in ways}, [alone()]
        for _ in range(arguments.added):
            for way in ways:
                found = way.by(1, 1)
                if found["failed"]:
                    raise RuntimeError(f"{model}: requests by {way.name} failed")
                runs.append(alone())
                # Who only reads and answers runs nothing.
                run = 0 if way.name == "reader" else (runs[-2] + runs[-1]) / 2
                beyond[way.name].append(found["p50"] - run)
        return {"model": path.stem, "run": statistics.median(runs)} | beyond
    finally:
        for it in started:
            it.terminate()
            it.wait()


def table_of_added(rows):
    names = [name for name in rows[0] if name not in ("model", "run")]
    lines = [["model", "a run", *names], ["---", *["--:"] * (len(names) + 1)]]
    for row in rows:
        each = [sorted(row[name]) for name in names]
        found = [f"{statistics.median(it):.2f} ({it[0]:.2f} to {it[-1]:.2f})" for it in each]
        lines.append([row["model"], f"{row['run']:.2f}", *found])
    table = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    return f"Beyond a run with one client, ms: medians, least and most of the turns:\n\n{table}"


def served(arguments, attempts, model, folder, memory, rows):
    on, generator_on = split(arguments.split)
    path, started = pathlib.Path(model), []
    try:
        ways = own(arguments, started, on, generator_on, model, folder, memory)
        ways += others(arguments, started, on, generator_on, model, folder)
        for way in ways:
            way.by(2, 1)
        for concurrency in arguments.clients:
            row = {"model": path.parent.name if path.stem == "model" else path.stem, "clients": concurrency}
            row |= {"load": os.getloadavg()[0], "found": {}}
            parallel = min(concurrency, arguments.instances)
            alone = lambda: engine(on, arguments.nnhal, model, parallel, arguments.threads, arguments.seconds / 2)
            attempts.disturbed = 0
            before = attempts.of(alone)
            for way in ways:
                row["found"][way.name] = attempts.of(lambda: way.by(concurrency, arguments.seconds))
            after = attempts.of(alone)
            row["disturbed"] = attempts.disturbed
            row["rate"], row["time"] = ((one + two) / 2 for one, two in zip(before, after))
            row["parallel"] = parallel
            if failed := [name for name, found in row["found"].items() if found["failed"]]:
                row["model"] += f" (errors: {', '.join(failed)})"
            rows.append(row)
            print(json.dumps(row), flush=True)
    finally:
        for it in started:
            it.terminate()
            it.wait()


def tables(rows):
    """Three tables of the same rows: rates, latencies, and processor time."""
    names = list(rows[0]["found"])
    own_names = [it for it in names if it in ("HTTP", "gRPC", "memory")]
    rates, latencies, times = [], [], []
    for row in rows:
        first, found = [row["model"], row["clients"]], row["found"]
        rate = [f"{row['rate']:.0f}"]
        for name in names:
            rate.append(f"{found[name]['rate']:.0f}")
            if name in own_names:
                rate.append(f"{found[name]['rate'] / row['rate']:.2f}")
        rates.append(first + rate + [f"{row['load']:.1f}", row["disturbed"]])
        latency = [f"{row['parallel'] / row['rate'] * 1000:.2f}"]
        for name in names:
            latency += [f"{found[name].get(part, math.nan):.2f}" for part in (["p50", "p90", "p99"] if name == "HTTP" else ["p50"])]
        latencies.append(first + latency)
        time_ = [f"{row['time']:.0f}"] + [f"{found[name]['server']:.0f}" for name in names]
        times.append(first + time_ + [f"{found[name]['client']:.0f}" for name in own_names])
    heads = [["engine /s"], ["a run, ms"], ["engine"]]
    for name in names:
        heads[0] += [f"{name} /s"] + (["of engine"] if name in own_names else [])
        heads[1] += [f"{name} {part}" for part in (["p50", "p90", "p99"] if name == "HTTP" else ["p50"])]
        heads[2].append(name)
    heads[0] += ["load", "disturbed"]
    heads[2] += [f"client of {name}" for name in own_names]
    titles = ["Requests a second", "Latency, ms", "Processor time for a request, µs"]
    for title, head, lines in zip(titles, heads, [rates, latencies, times]):
        head = ["model", "clients", *head]
        lines = [head, ["---"] * 2 + ["--:"] * (len(head) - 2), *lines]
        yield f"{title}:\n\n" + "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--nnhal", required=True)
    parser.add_argument("--seconds", type=int, default=4)
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 2, 4, 8, 16, 32, 64])
    parser.add_argument("--instances", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--split", type=int, default=0)
    parser.add_argument("--attempts", type=int, default=5, help="at a measurement that is disturbed")
    parser.add_argument("--reader")
    parser.add_argument("--peer")
    parser.add_argument("--triton")
    parser.add_argument("--markdown")
    parser.add_argument("--added", type=int, metavar="TURNS", help="what one client waits beyond a run, instead of all else")
    arguments = parser.parse_args()
    rows, attempts = [], Attempts(arguments.attempts)
    for model in arguments.models:
        memory = pathlib.Path("/dev/shm") / f"nnhal-bench-{os.getpid()}"
        try:
            with tempfile.TemporaryDirectory() as folder:
                if arguments.added:
                    rows.append(added(arguments, model, pathlib.Path(folder), memory))
                else:
                    served(arguments, attempts, model, pathlib.Path(folder), memory, rows)
        finally:
            memory.unlink(missing_ok=True)
    text = table_of_added(rows) if arguments.added else "\n\n".join(tables(rows))
    print(time.strftime("%Y-%m-%d"), text, sep="\n")
    if arguments.markdown:
        pathlib.Path(arguments.markdown).write_text(text + "\n")


if __name__ == "__main__":
    main()
