"""A model on a device of another process: other_device.py NNHAL WORK.

`nnhal service` offers the device on a Unix socket, a model's configuration names it, and answers are those of the device
in the server's process. The service is killed: requests fail with a reason, the server and its other models go on, and
once the service is there again the model answers again.
"""

import json
import pathlib
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request

NNHAL, WORK = sys.argv[1], pathlib.Path(sys.argv[2]) / "other_device"
FILE = pathlib.Path(__file__).resolve().parents[2] / "assets/digits/digits_float32.tflite"
SOCKET = WORK / "device.sock"
BODY = b'{"inputs":[{"name":"image","shape":[1,8,8,1],"datatype":"FP32","data":[' + b",".join([b"0.5"] * 64) + b"]}]}"


def model(name, config):
    (WORK / "models" / name / "1").mkdir(parents=True)
    shutil.copy(FILE, WORK / "models" / name / "1" / "model.tflite")
    (WORK / "models" / name / "config.toml").write_text(config)


def service():
    process = subprocess.Popen([NNHAL, "service", "--socket", SOCKET], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until(lambda: subprocess.run([NNHAL, "service", "status", "--socket", SOCKET], capture_output=True).returncode == 0, "the service")
    return process


def until(holds, what):
    for _ in range(300):
        if holds():
            return
        time.sleep(0.1)
    sys.exit(f"failed: {what}")


def infer(name):
    """The answer, or the status and reason of the error."""
    try:
        with urllib.request.urlopen(f"{address}/v2/models/{name}/infer", BODY, timeout=30) as response:
            return json.load(response)["outputs"][0]["data"]
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)["error"]


model("here", "")
model("there", f'device = "unix:{SOCKET}"\n')
daemon = service()
server = subprocess.Popen([NNHAL, "serve", "--models", WORK / "models", "--http", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True)
try:
    address = "http://" + server.stdout.readline().split()[1]
    here = infer("here")
    assert len(here) == 10 and infer("there") == here, infer("there")
    daemon.kill()
    daemon.wait()
    status, reason = infer("there")
    assert status >= 500 and reason, (status, reason)
    assert infer("here") == here
    daemon = service()
    until(lambda: infer("there") == here, f"the model does not come back: {infer('there')}")
    print(f"a device of another process: the same answers, {status} while it is gone ({reason}), and again after it")
finally:
    server.terminate()
    daemon.terminate()
    assert server.wait(60) == 0
    daemon.wait(60)
