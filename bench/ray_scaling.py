"""Images per second of Ray Data's actor pools by number of actors, nnhal beside LiteRT, on a cluster in this machine.

    bench/ray_scaling.py MODEL.tflite [--images 1200] [--batch 16] [--rounds 2] [--nodes N]

Needs `ray[data]`, `ai-edge-litert`, `numpy` and the wheel of nnhal. Each processor is a node of its own
(`ray.cluster_utils`) unless there are to be fewer nodes; each actor has one thread. Nodes have an object store each: images go from
one to another as they would between machines. Images are random, 224×224×3 bytes, and made by tasks on all nodes before
the time starts, as a cluster's nodes read them: each node has its share in its store. The rate is that of the time in which all actors work: from the first batch that the last of them has
done to the last batch that the first to end has done. The order is 1, 2, ... actors of the one engine, then of the other, and
again; the load average before each measurement is printed with it.

Beside the actors' processor time for an image stands that of everything else of Ray: the driver, the nodes' own processes, and
idle workers. It comes out of the same processors, so it bounds the efficiency.
"""

import argparse
import os
import statistics
import tempfile
import threading
import time

# Before Ray reads them: no reports to anybody, and 127.0.0.1 stays what it is.
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
# Nor metrics and events, which are not read here, and which processes of each node gather.
os.environ.setdefault("RAY_enable_metrics_collection", "0")
os.environ.setdefault("RAY_task_events_report_interval_ms", "0")
os.environ.setdefault("RAY_event_stats", "0")

import numpy as np
import ray
from ray.cluster_utils import Cluster

from processes import processor_times


class Sampled:
    """Processor times while something runs."""

    def __enter__(self):
        self.samples, self.ended = [], threading.Event()
        self.thread = threading.Thread(target=self.sample)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()

    def sample(self):
        while not self.ended.wait(0.25):
            self.samples.append((time.monotonic(), processor_times(os.getpid())))

    def others(self, begin, end, actors):
        """Seconds that processes other than `actors` had from `begin` to `end`."""
        (first, before), *_, (last, after) = [it for it in self.samples if begin <= it[0] <= end]
        used = sum(it - before.get(process, 0) for process, it in after.items() if process not in actors)
        return used * (end - begin) / (last - first)


class Nnhal:
    def __init__(self, model, cache):
        import nnhal

        self.model = nnhal.load(model, threads=1, cache_dir=cache, share_weights=True)
        self.dtype = self.model.inputs[0].dtype

    def run(self, image):
        return self.model(image[None].astype(self.dtype))[0]


class LiteRt:
    def __init__(self, model, _):
        from ai_edge_litert.interpreter import Interpreter

        self.interpreter = Interpreter(model_path=model, num_threads=1)
        self.interpreter.allocate_tensors()
        self.input = self.interpreter.get_input_details()[0]
        self.output = self.interpreter.get_output_details()[0]["index"]

    def run(self, image):
        self.interpreter.set_tensor(self.input["index"], image[None].astype(self.input["dtype"]))
        self.interpreter.invoke()
        return self.interpreter.get_tensor(self.output)


class Worker:
    def __init__(self, engine, model, cache):
        self.engine = engine(model, cache)

    def __call__(self, batch):
        classes = [int(self.engine.run(image).argmax()) for image in batch["data"]]
        done, used = time.monotonic(), time.process_time()
        count = len(classes)
        return {"class": np.array(classes), "done": np.full(count, done), "worker": np.full(count, os.getpid()), "used": np.full(count, used)}


def pictures(rows):
    """As many random images as there are rows."""
    random = np.random.default_rng(int(rows["id"][0]))
    return {"data": random.integers(0, 256, (len(rows["id"]), 224, 224, 3), np.uint8)}


def rate(images, engine, model, cache, actors, batch):
    """Images per second, and milliseconds of processor for each: of the actors, and of the rest of Ray."""
    pool = ray.data.ActorPoolStrategy(size=actors)
    given = (engine, model, cache)
    results = images.map_batches(Worker, fn_constructor_args=given, compute=pool, num_cpus=1, batch_size=batch)
    with Sampled() as samples:
        columns = results.to_pandas()
    assert len(columns) == images.count(), "rows are missing"
    workers = [group for _, group in columns.groupby("worker")]
    assert len(workers) == actors, f"{len(workers)} of {actors} actors did something"
    begin, end = max(it["done"].min() for it in workers), min(it["done"].max() for it in workers)
    within = columns[(columns["done"] > begin) & (columns["done"] <= end)]
    used = sum(it["used"].max() - it["used"].min() for it in workers)
    counted = sum(len(it) - (it["done"] == it["done"].min()).sum() for it in workers)
    others = samples.others(begin, end, set(columns["worker"]))
    return len(within) / (end - begin), used / counted * 1e3, others / len(within) * 1e3


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--images", type=int, default=1200)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--nodes", type=int)
    arguments = parser.parse_args()
    processors = len(os.sched_getaffinity(0))
    # One more, which takes no time: the tasks that hand blocks on.
    nodes = arguments.nodes or processors
    node = {"num_cpus": processors // nodes, "node_ip_address": "127.0.0.1", "object_store_memory": 512 << 20}
    cluster = Cluster(initialize_head=True, head_node_args={**node, "num_cpus": 1, "include_dashboard": False})
    with tempfile.TemporaryDirectory() as cache:
        try:
            for _ in range(nodes):
                cluster.add_node(**node)
            ray.init(address=cluster.address, _node_ip_address="127.0.0.1", log_to_driver=False)
            ray.data.DataContext.get_current().enable_progress_bars = False
            ray.data.DataContext.get_current().execution_options.actor_locality_enabled = True
            blocks = arguments.images // arguments.batch
            rows = ray.data.range(blocks * arguments.batch, override_num_blocks=blocks)
            images = rows.map_batches(pictures, batch_size=arguments.batch, scheduling_strategy="SPREAD").materialize()
            rates = {}
            for _ in range(arguments.rounds):
                for engine in (Nnhal, LiteRt):
                    for actors in range(1, processors + 1):
                        load = os.getloadavg()[0]
                        found, used, others = rate(images, engine, arguments.model, cache, actors, arguments.batch)
                        rates.setdefault((engine.__name__, actors), []).append((found, used, others))
                        print(f"{engine.__name__}, {actors} actors: {found:.1f} images/s, {used:.2f} ms of processor each, {others:.2f} of the rest of Ray, load {load:.1f}", flush=True)
            for (engine, actors), found in rates.items():
                best = max(it for it, *_ in found)
                efficiency = best / actors / max(it for it, *_ in rates[engine, 1])
                used, others = (statistics.median(it) for it in list(zip(*found))[1:])
                print(f"| {engine} | {actors} | {best:.1f} | {efficiency:.2f} | {used:.2f} | {others:.2f} |")
        finally:
            ray.shutdown()
            cluster.shutdown()


main()
