#!/usr/bin/env python3
"""Times TensorFlow Lite models on several engines side by side.

    pip install -r requirements.txt
    python peers.py MODEL.tflite... [--json OUT.json] [--markdown OUT.md]
        [--engine NAME='COMMAND {model} {threads} {runs}']...

Engines (--engines)
  litert          LiteRT interpreter, XNNPACK on (its default)
  litert_builtin  the same without delegates: its own optimized kernels
  litert_ref      its plain reference kernels; slow, not in the default set
  litert_nnhal    the same with our delegate, the library that NNHAL_DELEGATE names;
                  not in the default set, see delegate.py
  openvino        reads .tflite itself; LATENCY hint, f32 arithmetic (no bf16)
  onnxruntime     on the model converted by tf2onnx, so NCHW inside
  tflite_runtime  the last tflite-runtime package; needs NumPy 1, so give its
                  environment: --python tflite_runtime=ENV/bin/python

Any other command can join by --engine.  It gets the model's path, a thread
count and a number of runs, and prints as its last line JSON with median_us,
min_us, p90_us, prepare_us and peak_rss_kb.

How it measures.  For each model and thread count every engine is started in a
process of its own, one after the other, which gives load time, first inference
and peak memory.  Then the processes, kept alive, take turns of --seconds each,
round after round, so that a time when the machine is slow hits all alike.  A
turn's figure is the median of its inferences (inputs set before, outputs left
in place), after warm-up.  The CPU time that the rest of the machine used in a
turn is measured too, and steady.c, compiled with gcc, tells before and after it
whether the processors are slower than they can be, because the host of a virtual
machine has put two of them on one core or far from each other.  A turn in which
others used more than --max-other cores, or the processors took --max-slowdown
times as long, is repeated while the budget of --extra turns lasts, and the least
disturbed turns count.  Disturbance only ever adds time, and not all of it shows inside a
virtual machine, so an engine's result is the median over the faster half of
those turns; the JSON has all of them.  `~` marks results that had to use a
disturbed turn, `!` engines whose outputs are far from the first engine's.

Percent of peak is against measured peaks: peak.c, compiled with gcc for this
machine, for f32 fused multiply-add and 8-bit dot products on registers.
"""

import argparse
import json
import math
import os
import platform
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
import zlib

from steadiness import MOST, Steadiness

HERE = os.path.dirname(os.path.abspath(__file__))
# Differences of outputs beyond these are no rounding: relative, and in steps of
# the quantized output (8-bit engines round every layer in ways of their own).
FAR = {"rel": 0.01, "steps": 32}
DEFAULT_ENGINES = "litert,litert_builtin,openvino,onnxruntime"


# --------------------------------------------------------------------------
# Worker side: one engine, one model, one thread count.  Only the engine's own
# packages and NumPy are imported here.
# --------------------------------------------------------------------------

def random_input(name, shape, dtype):
    """The same values for the same tensor in every engine: floats in [-1, 1],
    any 8-bit value, and 0 or 1 for wider integers, which may be indices."""
    import numpy as np
    rng = np.random.Generator(np.random.PCG64(zlib.crc32(name.split(":")[0].encode())))
    dtype = np.dtype(dtype)
    if dtype.kind == "f":
        return rng.uniform(-1, 1, shape).astype(dtype)
    if dtype.itemsize == 1 and dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return rng.integers(limits.min, limits.max + 1, shape).astype(dtype)
    return rng.integers(0, 2, shape).astype(dtype)


class InterpreterEngine:
    """LiteRT's and tflite-runtime's Interpreter, which have one interface."""

    def __init__(self, module, resolver=None, delegate=None):
        self._module, self._resolver, self._delegate = module, resolver, delegate

    def load(self, path, threads):
        extra = {} if self._resolver is None else {
            "experimental_op_resolver_type": self._resolver}
        if self._delegate:
            extra["experimental_delegates"] = [
                self._module.load_delegate(self._delegate, {"threads": str(threads)})]
        self._interpreter = self._module.Interpreter(model_path=path, num_threads=threads, **extra)
        self._interpreter.allocate_tensors()

    def partitions(self):
        """How many parts of the model a delegate runs."""
        names = [node["op_name"] for node in self._interpreter._get_ops_details()]
        return names.count("DELEGATE")

    def inputs(self):
        return {d["name"]: random_input(d["name"], tuple(d["shape"]), d["dtype"])
                for d in self._interpreter.get_input_details()}

    def set_inputs(self):
        values = self.inputs()
        for d in self._interpreter.get_input_details():
            self._interpreter.set_tensor(d["index"], values[d["name"]])
        self.run = self._interpreter.invoke

    def outputs(self):
        return {d["name"]: self._interpreter.get_tensor(d["index"])
                for d in self._interpreter.get_output_details()}


class OpenVinoEngine:
    def __init__(self):
        import openvino
        self._openvino = openvino

    def load(self, path, threads):
        core = self._openvino.Core()
        model = core.read_model(path)
        if any(i.partial_shape.is_dynamic for i in model.inputs):
            model.reshape({i: [1 if d.is_dynamic else d for d in i.partial_shape]
                           for i in model.inputs})
        self._model = core.compile_model(model, "CPU", {
            "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_PRECISION_HINT": "f32",
            "INFERENCE_NUM_THREADS": threads})
        self._request = self._model.create_infer_request()

    def set_inputs(self):
        for n, i in enumerate(self._model.inputs):
            value = random_input(i.get_any_name(), tuple(i.shape),
                                 i.get_element_type().to_dtype())
            self._request.set_input_tensor(n, self._openvino.Tensor(value))
        self.run = lambda: self._request.infer(share_outputs=True)

    def outputs(self):
        return {o.get_any_name(): self._request.get_output_tensor(n).data
                for n, o in enumerate(self._model.outputs)}


class OnnxRuntimeEngine:
    def __init__(self):
        import onnxruntime
        self._ort = onnxruntime

    def load(self, path, threads):
        options = self._ort.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        self._session = self._ort.InferenceSession(
            path, options, providers=["CPUExecutionProvider"])

    def set_inputs(self):
        import numpy as np
        names = {"float": "float32", "double": "float64"}
        binding = self._session.io_binding()
        for i in self._session.get_inputs():
            kind = i.type[len("tensor("):-1]
            shape = [d if isinstance(d, int) else 1 for d in i.shape]
            value = random_input(i.name, shape, np.dtype(names.get(kind, kind)))
            binding.bind_cpu_input(i.name, value)
        for o in self._session.get_outputs():
            binding.bind_output(o.name)
        self._binding = binding
        self.run = lambda: self._session.run_with_iobinding(binding)

    def outputs(self):
        return dict(zip((o.name for o in self._session.get_outputs()),
                        self._binding.copy_outputs_to_cpu()))


def make_engine(name):
    if name.startswith("litert"):
        from ai_edge_litert import interpreter
        types = interpreter.OpResolverType
        if name == "litert_nnhal":
            return InterpreterEngine(interpreter, types.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
                                     os.environ["NNHAL_DELEGATE"])
        return InterpreterEngine(interpreter, {
            "litert": types.BUILTIN,
            "litert_builtin": types.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
            "litert_ref": types.BUILTIN_REF}[name])
    if name == "tflite_runtime":
        from tflite_runtime import interpreter
        return InterpreterEngine(interpreter)
    return {"openvino": OpenVinoEngine, "onnxruntime": OnnxRuntimeEngine}[name]()


def memory_kb(field):
    """VmRSS or VmHWM of this process, from the kernel."""
    with open("/proc/self/status") as handle:
        for line in handle:
            if line.startswith(field + ":"):
                return int(line.split()[1])
    return 0


def timed_runs(run, seconds, least, most):
    """Microseconds of each inference: for `seconds`, but at least `least` and
    at most `most` of them."""
    clock = time.perf_counter_ns
    times, start = [], clock()
    while len(times) < most and (len(times) < least or clock() - start < seconds * 1e9):
        before = clock()
        run()
        times.append((clock() - before) / 1000.0)
    return times


def worker(name, path, threads):
    """Answers commands, a line of JSON each, on standard input and output."""
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)               # what an engine prints is no reply

    def reply(**fields):
        replies.write(json.dumps(fields) + "\n")
        replies.flush()

    try:
        engine = make_engine(name)
        import numpy as np
        base = memory_kb("VmRSS")
        start = time.perf_counter_ns()
        engine.load(path, threads)
        prepared = time.perf_counter_ns()
        engine.set_inputs()
        ready = time.perf_counter_ns()
        engine.run()
        first = time.perf_counter_ns()
        partitions = {"partitions": engine.partitions()} if name == "litert_nnhal" else {}
        reply(prepare_us=(prepared - start) / 1e3, first_us=(first - ready) / 1e3,
              base_rss_kb=base, peak_rss_kb=memory_kb("VmHWM"), **partitions)
        for line in sys.stdin:
            command = json.loads(line)
            if "outputs" in command:
                np.savez(command["outputs"], **{
                    "%d|%s" % (i, k.replace("/", "\\")): np.asarray(v)
                    for i, (k, v) in enumerate(engine.outputs().items())})
                reply(saved=True)
            else:
                timed_runs(engine.run, command["seconds"] / 10, 1, 50)
                reply(times=timed_runs(engine.run, command["seconds"], command["least"],
                                       command["most"]),
                      peak_rss_kb=memory_kb("VmHWM"))
    except Exception as error:  # to the parent, which reports it in the table
        reply(error=" ".join(f"{type(error).__name__}: {error}".split())[:300])


# --------------------------------------------------------------------------
# The machine
# --------------------------------------------------------------------------

TICK = os.sysconf("SC_CLK_TCK")


def machine_cpu():
    """CPU seconds that all processes together have used, stolen time included."""
    with open("/proc/stat") as handle:
        fields = [int(f) for f in handle.readline().split()[1:9]]
    user, nice, system, _idle, _iowait, irq, softirq, steal = fields
    return (user + nice + system + irq + softirq + steal) / TICK


def process_cpu(pid):
    """CPU seconds of one process, its threads included."""
    with open(f"/proc/{pid}/stat") as handle:
        fields = handle.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


class QuietWait:
    """Waits for the rest of the machine to be quiet, and for its processors to be
    as fast as they can be, within a budget."""

    def __init__(self, args, steadiness):
        self._left, self._args, self._steadiness = args.quiet_timeout, args, steadiness

    def wait(self):
        while self._left > 0:
            start, before = time.monotonic(), machine_cpu()
            time.sleep(0.1)
            other = (machine_cpu() - before) / (time.monotonic() - start)
            if (other <= self._args.max_other
                    and self._steadiness.slowdown() <= self._args.max_slowdown):
                return
            time.sleep(0.9)
            self._left -= time.monotonic() - start


def measure_peaks(thread_counts):
    """Attainable peaks for each thread count: peak.c, and a NumPy sgemm."""
    peaks = {}
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "peak")
        compiled = subprocess.run(
            ["gcc", "-O3", "-march=native", "-pthread", os.path.join(HERE, "peak.c"),
             "-o", program], capture_output=True, text=True)
        for threads in thread_counts:
            peaks[threads] = {}
            if compiled.returncode == 0:
                runs = [json.loads(subprocess.run([program, str(threads)], check=True,
                                                  capture_output=True, text=True).stdout)
                        for _ in range(3)]
                peaks[threads] = {k: max(r[k] for r in runs) for k in runs[0]}
            sgemm = ("import numpy as n,time\n"
                     "a=n.ones((1024,1024),'f');b=n.ones((1024,1024),'f');t=[]\n"
                     "for _ in range(20):\n"
                     " s=time.perf_counter();a@b;t.append(time.perf_counter()-s)\n"
                     "print(2*1024**3/min(t)/1e9)")
            environment = dict(os.environ, OPENBLAS_NUM_THREADS=str(threads))
            done = subprocess.run([sys.executable, "-c", sgemm], capture_output=True,
                                  text=True, env=environment)
            if done.returncode == 0:
                peaks[threads]["sgemm_gflops"] = round(float(done.stdout), 1)
    return peaks


def machine_description():
    """Processor, core count, load and the versions of the engines' packages."""
    from importlib import metadata
    model = platform.machine()
    with open("/proc/cpuinfo") as handle:
        for line in handle:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    versions = {}
    for package in ("ai-edge-litert", "openvino", "onnxruntime", "tf2onnx", "numpy"):
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            pass
    return {"cpu": model, "cores": os.cpu_count(), "python": platform.python_version(),
            "load": os.getloadavg(), "versions": versions}


# --------------------------------------------------------------------------
# Parent side: engines as sources of turns
# --------------------------------------------------------------------------

class EngineError(Exception):
    pass


class Turn:
    """Figures of one turn; `other` is the CPU the rest used, in cores, and
    `slowdown` how much longer the processors took before or after it, and
    `exchange` the nanoseconds from one of them to another and back."""

    slowdown, exchange = 1.0, 0.0

    def __init__(self, times, other):
        ordered = sorted(times)
        self.runs = len(ordered)
        self.median = statistics.median(ordered)
        self.least = ordered[0]
        self.p90 = ordered[min(len(ordered) - 1, int(0.9 * len(ordered)))]
        self.other = other

    def is_disturbed(self, args):
        return self.other > args.max_other or self.slowdown > args.max_slowdown


class WorkerEngine:
    """One of the built-in engines, alive in its own process."""

    def __init__(self, name, python, model, threads):
        self._log = tempfile.TemporaryFile()
        self._process = subprocess.Popen(
            [python, os.path.abspath(__file__), "--worker", name, model, str(threads)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, text=True)
        self.loaded = self._answer()

    def _answer(self):
        line = self._process.stdout.readline()
        if not line:
            self._process.wait()
            self._log.seek(0)
            tail = self._log.read().decode(errors="replace").strip().splitlines()[-1:]
            raise EngineError(f"died ({self._process.returncode}): {' '.join(tail)[:200]}")
        fields = json.loads(line)
        if "error" in fields:
            raise EngineError(fields["error"])
        return fields

    def _ask(self, **command):
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def turn(self, args):
        start, before = time.monotonic(), machine_cpu()
        own = process_cpu(self._process.pid)
        fields = self._ask(seconds=args.seconds, least=args.least, most=args.most)
        own = process_cpu(self._process.pid) - own
        wall = time.monotonic() - start
        self.loaded["peak_rss_kb"] = fields["peak_rss_kb"]
        return Turn(fields["times"], max(0.0, machine_cpu() - before - own) / wall)

    def outputs(self, path):
        self._ask(outputs=path)

    def close(self):
        self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
        self._log.close()


class CommandEngine:
    """A command line given by --engine, run anew for each turn."""

    def __init__(self, command, model, threads):
        self._command, self._model, self._threads = command, model, threads
        self.loaded = {}
        self._median = self._run(3)["median_us"]

    def _run(self, runs):
        words = [word.format(model=self._model, threads=self._threads, runs=runs)
                 for word in shlex.split(self._command)]
        done = subprocess.run(words, capture_output=True, text=True)
        lines = done.stdout.strip().splitlines()
        if done.returncode or not lines:
            raise EngineError(f"exit {done.returncode}: {done.stderr.strip()[-200:]}")
        try:
            fields = json.loads(lines[-1])
            for key in ("median_us", "min_us", "p90_us", "prepare_us", "peak_rss_kb"):
                fields[key] = float(fields[key])
        except (ValueError, KeyError, TypeError) as error:
            raise EngineError(f"last line is not the JSON asked for: {error}") from error
        # The first launch's load time only: the other engines load once too.
        self.loaded.setdefault("prepare_us", fields["prepare_us"])
        self.loaded["peak_rss_kb"] = max(fields["peak_rss_kb"],
                                         self.loaded.get("peak_rss_kb", 0))
        return fields

    def turn(self, args):
        start, before = time.monotonic(), machine_cpu()
        own = os.times()
        runs = int(args.seconds * 1e6 / max(self._median, 0.1))
        fields = self._run(min(max(runs, args.least), args.most))
        used = os.times()
        own = (used.children_user + used.children_system
               - own.children_user - own.children_system)
        wall = time.monotonic() - start
        turn = Turn([fields["median_us"]], max(0.0, machine_cpu() - before - own) / wall)
        turn.least, turn.p90 = fields["min_us"], fields["p90_us"]
        self._median = fields["median_us"]
        return turn

    def close(self):
        pass


def convert_to_onnx(model, folder, python):
    """Path of the model as ONNX, converted once into `folder`."""
    name = os.path.splitext(os.path.basename(model))[0]
    path = os.path.join(folder, name + ".onnx")
    failed = path + ".failed"
    if os.path.exists(failed):
        with open(failed) as handle:
            raise EngineError(handle.read())
    if not os.path.exists(path):
        done = subprocess.run(
            [python, "-m", "tf2onnx.convert", "--tflite", model, "--output", path,
             "--opset", "17"], capture_output=True, text=True)
        if done.returncode or not os.path.exists(path):
            tail = (done.stderr or done.stdout).strip().splitlines()[-1:]
            reason = "tf2onnx: " + " ".join(tail)[:200]
            with open(failed, "w") as handle:
                handle.write(reason)
            raise EngineError(reason)
    return path


def start_engine(name, args, model, threads):
    if name in args.commands:
        return CommandEngine(args.commands[name], model, threads)
    if name == "onnxruntime":
        model = convert_to_onnx(model, args.onnx_dir, args.pythons.get("tf2onnx", sys.executable))
    return WorkerEngine(name, args.pythons.get(name, sys.executable), model, threads)


def difference(reference, path):
    """Largest difference of the outputs from those of the reference: relative
    to the largest value for floats, in steps for integers.  None where the
    outputs cannot be matched by name or shape."""
    import numpy as np
    with np.load(reference) as a, np.load(path) as b:
        a = {k.split("|", 1)[1]: a[k] for k in a.files}
        b = {k.split("|", 1)[1]: b[k] for k in b.files}
    if set(a) != set(b):
        if [v.shape for v in a.values()] != [v.shape for v in b.values()]:
            return None
        b = dict(zip(a, b.values()))
    worst, unit = 0.0, "rel"
    for key, x in a.items():
        y = b[key]
        if x.shape != y.shape:
            return None
        gap = float(np.max(np.abs(x.astype(np.float64) - y.astype(np.float64)), initial=0.0))
        if x.dtype.kind == "f" and y.dtype.kind == "f":
            gap /= max(float(np.max(np.abs(x), initial=0.0)), 1e-30)
        else:
            unit = "steps"
        worst = max(worst, gap)
    return {"value": worst, "unit": unit}


def bench(model, threads, args, steadiness):
    """All engines on one model with one thread count."""
    engines, results = {}, {}
    quiet_wait = QuietWait(args, steadiness)
    try:
        for name in args.names:
            loads = []
            try:
                for i in range(args.loads):
                    quiet_wait.wait()
                    engine = start_engine(name, args, model, threads)
                    loads.append(engine.loaded)
                    if i + 1 < args.loads:
                        engine.close()
                engines[name] = engine
                results[name] = {"loads": [dict(load) for load in loads]}
            except EngineError as error:
                results[name] = {"error": str(error)}
        turns = {name: [] for name in engines}
        pending, count = list(engines), 0
        while pending:
            # Start each round at another engine.
            shift = count % len(pending)
            for name in pending[shift:] + pending[:shift]:
                time.sleep(0.03)        # threads of the one before stop spinning
                quiet_wait.wait()
                try:
                    before = steadiness.slowdown()
                    turn = engines[name].turn(args)
                    exchange = steadiness.nanoseconds
                    turn.slowdown = max(before, steadiness.slowdown())
                    turn.exchange = max(exchange, steadiness.nanoseconds)
                    turns[name].append(turn)
                except EngineError as error:
                    results[name] = {"error": str(error)}
                    turns.pop(name)
            count += 1

            def settled(name):
                quiet = sum(not t.is_disturbed(args) for t in turns[name])
                return quiet >= args.rounds or len(turns[name]) >= args.rounds + args.extra

            pending = [n for n in pending if n in turns and not settled(n)]
        if args.compare and threads == args.threads[0]:
            compare_outputs(engines, turns, results)
    finally:
        for engine in engines.values():
            engine.close()
    for name, all_turns in turns.items():
        def disturbance(turn):
            return turn.slowdown > args.max_slowdown, turn.other

        quietest = sorted(all_turns, key=disturbance)[:args.rounds]
        used = sorted(quietest, key=lambda t: t.median)[:(len(quietest) + 1) // 2]
        memory = engines[name].loaded
        results[name].update(
            median_us=statistics.median(t.median for t in used),
            min_us=min(t.least for t in all_turns),
            p90_us=statistics.median(t.p90 for t in used),
            disturbed=any(t.is_disturbed(args) for t in used),
            prepare_us=min(load["prepare_us"] for load in results[name]["loads"]),
            first_us=min((load["first_us"] for load in results[name]["loads"]
                          if "first_us" in load), default=None),
            base_rss_kb=memory.get("base_rss_kb", 0),
            peak_rss_kb=memory["peak_rss_kb"],
            turns=[{"median_us": t.median, "min_us": t.least, "p90_us": t.p90, "runs": t.runs,
                    "other_cores": round(t.other, 3), "slowdown": round(t.slowdown, 2),
                    "exchange_ns": t.exchange}
                   for t in all_turns])
    return results


def compare_outputs(engines, turns, results):
    """Adds to each result how far its outputs are from the first engine's, in
    the order of the command line."""
    with tempfile.TemporaryDirectory() as folder:
        reference = None
        for name, engine in engines.items():
            if name not in turns or not isinstance(engine, WorkerEngine):
                continue
            path = os.path.join(folder, name + ".npz")
            engine.outputs(path)
            if reference is None:
                reference = path
            else:
                results[name]["difference"] = difference(reference, path)


# --------------------------------------------------------------------------
# Report
# --------------------------------------------------------------------------

def peak_of(report, kind, threads):
    """Peak for a kind of arithmetic, in operations (2 for each MAC)."""
    peaks = report["peaks"].get(str(threads), {})
    return peaks.get("int8_gops" if kind in ("int8", "uint8") else "f32_gflops")


def ms(us):
    value = us / 1000
    return f"{value:.3f}" if value < 10 else f"{value:.2f}" if value < 100 else f"{value:.1f}"


def is_far(entry, name):
    """Whether an engine's outputs were too far from the first engine's."""
    for results in entry["results"].values():
        gap = results.get(name, {}).get("difference")
        if gap:
            return gap["value"] > FAR[gap["unit"]]
    return False


def rows_of(report):
    """(model entry, thread count, results, name of the best peer)."""
    for entry in report["models"]:
        for threads, results in entry["results"].items():
            good = {n: r for n, r in results.items() if "median_us" in r}
            peers = [n for n in good if n not in report["commands"]]
            best = min(peers, key=lambda n: good[n]["median_us"]) if peers else None
            yield entry, int(threads), results, best


def summary(report):
    """A line for each command given by --engine and each thread count: how it
    stands to the best peer of each model, and to LiteRT in preparing and memory."""
    lines = []
    for name in report["commands"]:
        for count in report["threads"]:
            ratios, prepare, memory = {}, [], []
            for entry, threads, results, best in rows_of(report):
                own = results.get(name, {})
                if threads != count or not best or "median_us" not in own:
                    continue
                ratios[entry["name"]] = own["median_us"] / results[best]["median_us"]
                litert = results.get("litert", {})
                if "median_us" in litert:
                    prepare.append(math.log(own["prepare_us"] / litert["prepare_us"]))
                    grown = litert["peak_rss_kb"] - litert["base_rss_kb"]
                    memory.append(math.log(own["peak_rss_kb"] / max(grown, 1)))
            if not ratios:
                continue
            mean = math.exp(statistics.mean(map(math.log, ratios.values())))
            worst = max(ratios, key=ratios.get)
            slow = [model for model, ratio in ratios.items() if ratio > 1.10]
            line = (f"- {name}, {count} threads, {len(ratios)} models: geometric mean {mean:.2f} "
                    f"of the best peer's time; {sum(r < 1 for r in ratios.values())} models "
                    f"faster than every peer, {len(slow)} above 1.10; worst {worst} "
                    f"{ratios[worst]:.2f}")
            if prepare:
                line += (f"; preparing {math.exp(statistics.mean(prepare)):.2f} and memory "
                         f"{math.exp(statistics.mean(memory)):.2f} of LiteRT's")
            lines.append(line)
    return lines


def markdown(report):
    """The whole report as Markdown tables."""
    names = report["engines"]
    machine = report["machine"]
    out = ["# Engines side by side", "",
           f"{machine['cpu']}, {machine['cores']} cores; " + ", ".join(
               f"{k} {v}" for k, v in machine["versions"].items()), "",
           *summary(report), "",
           "## Peaks", "",
           "| threads | f32 GFLOP/s | int8 GOP/s | read GB/s | NumPy sgemm GFLOP/s |",
           "| ---: | ---: | ---: | ---: | ---: |"]
    for threads, p in report["peaks"].items():
        out.append(f"| {threads} | {p.get('f32_gflops', '')} ({p.get('f32_with', 'no gcc')}) "
                   f"| {p.get('int8_gops', '')} ({p.get('int8_with', 'no gcc')}) "
                   f"| {p.get('read_gbps', '')} | {p.get('sgemm_gflops', '')} |")

    def table(title, note, cell, threads=None):
        out.extend(["", f"## {title}", "", note, "",
                    "| model | MMACs | threads | " + " | ".join(names) + " |",
                    "| --- | ---: | ---: |" + " ---: |" * len(names)])
        for entry, count, results, best in rows_of(report):
            if threads and count != threads:
                continue
            cells = [cell(entry, count, results[n], best, n, results)
                     if "median_us" in results.get(n, {}) else "-" for n in names]
            macs = f"{entry['stats']['macs'] / 1e6:.0f}"
            out.append(f"| {entry['name']} | {macs} | {count} | " + " | ".join(cells) + " |")

    def latency(entry, count, result, best, name, results):
        text = ms(result["median_us"]) + ("~" if result["disturbed"] else "")
        text += "!" if is_far(entry, name) else ""
        text = f"**{text}**" if name == best else text
        return f"{text} ({ms(result['min_us'])})"

    def ratio(entry, count, result, best, name, results):
        return f"{result['median_us'] / results[best]['median_us']:.2f}" if best else "-"

    def speed(entry, count, result, best, name, results):
        macs, kind = entry["stats"]["macs"], entry["stats"]["kind"]
        if entry["stats"]["dynamic_shapes"]:
            return "-"          # the flatbuffer does not tell all the shapes
        rate = 2 * macs / result["median_us"] / 1000
        peak = peak_of(report, kind, count)
        return f"{rate:.1f} ({100 * rate / peak:.0f}%)" if peak else f"{rate:.1f}"

    def load(entry, count, result, best, name, results):
        first = result["first_us"]
        text = f"{ms(result['prepare_us'])} + {ms(first)}" if first else ms(result["prepare_us"])
        return (f"{text}; {result['peak_rss_kb'] / 1024:.0f} "
                f"(+{(result['peak_rss_kb'] - result['base_rss_kb']) / 1024:.0f})")

    def difference_cell(entry, count, result, best, name, results):
        gap = result.get("difference")
        if not gap:
            return "reference" if name == names[0] else "-"
        return f"{gap['value']:.1e}" if gap["unit"] == "rel" else f"{gap['value']:.0f} steps"

    table("Latency, ms",
          "Median (least); the best peer in bold; `~` with other load on the machine; `!` "
          "outputs differ.", latency)
    table("Time as a multiple of the best peer's",
          "Below 1 is faster than every peer.", ratio)
    means = []
    for count in report["threads"]:
        logs = {n: [] for n in names}
        for entry, threads, results, best in rows_of(report):
            for n in names:
                if threads == count and best and "median_us" in results.get(n, {}):
                    logs[n].append(math.log(results[n]["median_us"] / results[best]["median_us"]))
        means.append(f"| geometric mean ({count}) | | {count} | " + " | ".join(
            f"{math.exp(statistics.mean(logs[n])):.2f} of {len(logs[n])}" if logs[n] else "-"
            for n in names) + " |")
    out.extend(means)
    table("GFLOP/s or GOP/s, and percent of peak",
          "Two operations for each multiply-accumulate; int8 models against the 8-bit peak.",
          speed)
    table("Load and memory",
          "Preparing + first inference, ms; peak resident MiB (growth since before loading, "
          "without interpreter and libraries).  The whole peak of the built-in engines has "
          "Python and NumPy in it, that of a command has not; of a command all is growth.",
          load)
    table(f"Outputs against {names[0]}'s",
          "Largest difference on random input: relative to the largest output, or in steps "
          "of the quantized one.", difference_cell, report["threads"][0])
    errors = {(entry["name"], n): r["error"] for entry, _, results, _ in rows_of(report)
              for n, r in results.items() if "error" in r}
    if errors:
        out.extend(["", "## Not run", ""])
        out.extend(f"- {model}, {n}: {error}" for (model, n), error in errors.items())
    return "\n".join(out) + "\n"


def named(text):
    name, separator, value = text.partition("=")
    if not separator or not name:
        raise argparse.ArgumentTypeError("NAME=VALUE expected")
    return name, value


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("models", nargs="*", help=".tflite files")
    parser.add_argument("--engines", default=DEFAULT_ENGINES,
                        help=f"built-in engines, comma-separated (default {DEFAULT_ENGINES})")
    parser.add_argument("--engine", action="append", default=[], type=named, metavar="NAME=COMMAND",
                        help="another engine: a command with {model} {threads} {runs}")
    parser.add_argument("--python", action="append", default=[], type=named, metavar="ENGINE=PATH",
                        help="Python for an engine, or for the tf2onnx conversion")
    parser.add_argument("--threads", default="1,2", help="thread counts (default 1,2)")
    parser.add_argument("--rounds", type=int, default=7, help="quiet turns for each engine")
    parser.add_argument("--extra", type=int, default=5,
                        help="further turns to replace disturbed ones")
    parser.add_argument("--seconds", type=float, default=0.3, help="length of a turn")
    parser.add_argument("--least", type=int, default=3, help="inferences a turn, at least")
    parser.add_argument("--most", type=int, default=2000, help="inferences a turn, at most")
    parser.add_argument("--loads", type=int, default=1,
                        help="processes to take load times from, for each thread count")
    parser.add_argument("--max-other", type=float, default=0.15,
                        help="cores that others may use in a quiet turn")
    parser.add_argument("--max-slowdown", type=float, default=MOST,
                        help="how much longer the processors may take before and after a quiet turn")
    parser.add_argument("--quiet-timeout", type=float, default=30,
                        help="seconds to wait for quiet, for each model and thread count")
    parser.add_argument("--onnx-dir", help="keep the ONNX conversions here")
    parser.add_argument("--no-compare", dest="compare", action="store_false",
                        help="do not compare the outputs")
    parser.add_argument("--json", help="results so far, written after each model")
    parser.add_argument("--resume", action="store_true",
                        help="keep the models that the --json file already has")
    parser.add_argument("--markdown", help="write the tables here too")
    parser.add_argument("--worker", nargs=3, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        worker(args.worker[0], args.worker[1], int(args.worker[2]))
        return 0

    import graph_stats
    args.threads = [int(t) for t in args.threads.split(",")]
    args.commands, args.pythons = dict(args.engine), dict(args.python)
    args.names = [n for n in args.engines.split(",") if n] + list(args.commands)
    if not args.names:
        parser.error("no engines")
    keep = tempfile.TemporaryDirectory() if not args.onnx_dir else None
    args.onnx_dir = args.onnx_dir or keep.name
    os.makedirs(args.onnx_dir, exist_ok=True)

    report = {"machine": machine_description(), "engines": args.names,
              "commands": args.commands, "threads": args.threads, "models": []}
    if args.resume and args.json and os.path.exists(args.json):
        with open(args.json) as handle:
            report = json.load(handle)
        report.update(engines=args.names, commands=args.commands, threads=args.threads)
    if "peaks" not in report:
        report["peaks"] = {str(t): p for t, p in measure_peaks(args.threads).items()}
    steadiness = {threads: Steadiness(threads) for threads in args.threads}
    done = {entry["name"] for entry in report["models"]}
    for model in args.models:
        stats = graph_stats.analyse(model)
        if stats["name"] in done:
            continue
        entry = {"name": stats["name"], "stats": stats, "results": {}}
        for threads in args.threads:
            start = time.monotonic()
            results = bench(model, threads, args, steadiness[threads])
            entry["results"][str(threads)] = results
            print(f"{stats['name']} {threads}t ({time.monotonic() - start:.0f} s, load "
                  f"{os.getloadavg()[0]:.1f}): " + ", ".join(
                      f"{n} {ms(r['median_us'])}{'~' if r['disturbed'] else ''}"
                      if "median_us" in r else f"{n} failed" for n, r in results.items()),
                  file=sys.stderr, flush=True)
        report["models"].append(entry)
        if args.json:
            with open(args.json, "w") as handle:
                json.dump(report, handle, indent=1)
    for each in steadiness.values():
        each.close()
    text = markdown(report)
    print(text, end="")
    if args.markdown:
        with open(args.markdown, "w") as handle:
            handle.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
