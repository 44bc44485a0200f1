"""Runs examples/ray/batch.py and serve.py on a cluster of two nodes of one processor each: examples.py WORK."""

import importlib.util
import json
import os
import pathlib
import pickle
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

import numpy as np
import pyarrow.parquet
import ray
import ray.serve
from PIL import Image
from ray.cluster_utils import Cluster

import nnhal

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODEL = str(ROOT / "assets/digits/digits_float32.tflite")
PICTURES = 2000
KILLS = 3


def pictures(folder):
    """Scans of digits under names of their own, and what is in each."""
    folder.mkdir()
    scans = [Image.open(ROOT / f"assets/digits/digit_{digit}.png").convert("L") for digit in range(10)]
    for number in range(PICTURES):
        scans[number % 10].save(folder / f"{number:05}.png")


def workers(of):
    """Process ids of Ray's actors of a class, which are children of this process's nodes."""
    found = []
    for process in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = pathlib.Path(f"/proc/{process}/cmdline").read_bytes()
        except OSError:
            continue
        if words.startswith(b"ray::") and of in words:
            found.append(int(process))
    return found


def rows(folder):
    table = pyarrow.parquet.read_table(folder)
    names = [pathlib.Path(path).name for path in table["path"].to_pylist()]
    return dict(zip(names, table["class"].to_pylist())), len(names)


def check_rows(folder, expected):
    found, count = rows(folder)
    assert count == PICTURES, f"{count} rows of {PICTURES}"
    assert len(found) == PICTURES, "rows are there twice"
    wrong = [name for name, digit in found.items() if digit != expected[int(name[:5]) % 10]]
    assert not wrong, wrong[:5]


def batch(work, address):
    print("batch.py", flush=True)
    pictures(work / "pictures")
    model = nnhal.load(MODEL, threads=1)
    expected = []
    for digit in range(10):
        # The example reads all pictures as RGB.
        image = Image.open(ROOT / f"assets/digits/digit_{digit}.png").convert("L").convert("RGB").convert("L")
        values = np.asarray(image.resize((8, 8)), np.float32) / 255
        expected.append(int(model(values.reshape(1, 8, 8, 1))[0].argmax()))
    for kills in (0, KILLS):
        output = work / f"classes-{kills}"
        command = [sys.executable, str(ROOT / "examples/ray/batch.py"), MODEL, str(work / "pictures"), str(output)]
        command += ["--actors", "2", "--batch-size", "16", "--cache", str(work / "cache")]
        begun = time.monotonic()
        log = open(work / f"batch-{kills}.log", "w+b")
        process = subprocess.Popen(command, env=dict(os.environ, RAY_ADDRESS=address), stdout=log, stderr=log)
        killed = set()
        while process.poll() is None:
            ready = [it for it in workers(b"Classify") if it not in killed]
            if len(killed) < kills and ready:
                time.sleep(0.3)
                os.kill(ready[0], signal.SIGKILL)
                killed.add(ready[0])
                time.sleep(0.5)
            time.sleep(0.05)
        if process.returncode != 0:
            log.seek(0)
            sys.exit(log.read().decode()[-5000:])
        check_rows(output, expected)
        assert len(killed) == kills, f"only {len(killed)} workers were killed before the end"
        seconds = time.monotonic() - begun
        print(f"  {PICTURES} rows went in and came out, {len(killed)} workers were killed: {seconds:.1f} s", flush=True)


@ray.remote(num_cpus=1)
class Holder:
    """An actor that got a model by pickling."""

    def __init__(self, pickled):
        self.model = pickle.loads(pickled)

    def about(self):
        mapping, files = {}, {}
        for line in open("/proc/self/smaps", encoding="ascii"):
            words = line.split()
            if len(words) > 4 and "-" in words[0]:
                mapping = files.setdefault(words[4], {}) if line.endswith(".nnhal\n") else {}
            elif words[0] in ("Rss:", "Pss:"):
                mapping[words[0]] = mapping.get(words[0], 0) + int(words[1])
        threads = ray.get_runtime_context().get_assigned_resources()["CPU"]
        answer = self.model(np.full((1, 8, 8, 1), 0.5, np.float32))[0]
        return self.model.is_from_cache, threads, files, answer, ray.get_runtime_context().get_node_id()


def pickling(work):
    print("models that pickle", flush=True)
    model = nnhal.load(MODEL, threads=1, cache_dir=work / "pickled", share_weights=True)
    expected = model(np.full((1, 8, 8, 1), 0.5, np.float32))[0]
    holders = [Holder.remote(pickle.dumps(model)) for _ in range(2)]
    about = ray.get([holder.about.remote() for holder in holders])
    nodes = set()
    for is_from_cache, threads, files, answer, node in about:
        assert is_from_cache, "it was prepared anew"
        assert threads == 1
        assert (answer == expected).all()
        assert len(files) == 1, files
        nodes.add(node)
    assert len(nodes) == 2, "both on one node"
    assert about[0][2].keys() == about[1][2].keys(), "two copies of the weights"
    print(f"  two actors map the same weights: {about[0][2]}", flush=True)
    for holder in holders:
        ray.kill(holder)


def port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def replicas():
    application = ray.serve.status().applications.get("default")
    deployments = application.deployments.values() if application else []
    return sum(it.replica_states.get("RUNNING", 0) for it in deployments)


def serving():
    print("serve.py", flush=True)
    os.environ["MODEL"] = MODEL
    spec = importlib.util.spec_from_file_location("example", ROOT / "examples/ray/serve.py")
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    http = port()
    ray.serve.start(proxy_location="HeadOnly", http_options={"host": "127.0.0.1", "port": http})
    # As the example says, but sooner: its 30 s and 10 minutes of waiting are Ray's.
    quick = example.AUTOSCALING | {"upscale_delay_s": 0.5, "downscale_delay_s": 2, "max_replicas": 2}
    quick |= {"look_back_period_s": 1, "metrics_interval_s": 0.2}
    ray.serve.run(example.Model.options(autoscaling_config=quick).bind(MODEL), route_prefix="/")
    body = b"[" + b",".join([b"0.5"] * 64) + b"]"

    def ask():
        with urllib.request.urlopen(f"http://127.0.0.1:{http}/", body, timeout=60) as response:
            return response.read()

    expected = nnhal.load(MODEL, threads=1)(np.full((1, 8, 8, 1), 0.5, np.float32))[0].ravel()
    answer = np.array(json.loads(ask()), np.float32)
    assert np.allclose(answer, expected, atol=1e-6), (answer, expected)
    assert replicas() == 1
    is_over, answered, refused = threading.Event(), [], []

    def load():
        while not is_over.is_set():
            try:
                answered.append(len(json.loads(ask())) == 10)
            except urllib.error.HTTPError as error:
                refused.append(error.code)

    clients = [threading.Thread(target=load) for _ in range(24)]
    begun = time.monotonic()
    for client in clients:
        client.start()
    most = 1
    while most < 2 and time.monotonic() - begun < 120:
        most = max(most, replicas())
        time.sleep(0.2)
    is_over.set()
    for client in clients:
        client.join()
    assert answered and all(answered)
    # A queue that is full is said to be: 503.
    assert set(refused) <= {503}, set(refused)
    assert most == 2, "the queue brought no second replica"
    print(f"  {len(answered)} answers; two replicas after {time.monotonic() - begun:.1f} s of load", flush=True)
    begun = time.monotonic()
    while replicas() != 1:
        assert time.monotonic() - begun < 120, "the second replica stays without load"
        time.sleep(0.2)
    print(f"  one replica after {time.monotonic() - begun:.1f} s without", flush=True)
    ray.serve.shutdown()


def main():
    work = pathlib.Path(sys.argv[1])
    node = {"num_cpus": 1, "node_ip_address": "127.0.0.1", "object_store_memory": 128 << 20}
    cluster = Cluster(initialize_head=True, head_node_args={**node, "include_dashboard": False})
    try:
        cluster.add_node(**node)
        ray.init(address=cluster.address, _node_ip_address="127.0.0.1", log_to_driver=False)
        assert len([it for it in ray.nodes() if it["Alive"]]) == 2
        wanted = sys.argv[2:] or ["batch", "pickling", "serving"]
        if "batch" in wanted:
            batch(work, cluster.address)
        if "pickling" in wanted:
            pickling(work)
        if "serving" in wanted:
            serving()
    finally:
        ray.shutdown()
        cluster.shutdown()


main()
