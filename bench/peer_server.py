"""A minimal server around LiteRT, to compare `nnhal serve` with: peer_server.py MODEL PORT [--instances 2] [--threads 1].

uvicorn with its fastest parts (uvloop, httptools), a thread for each interpreter, tensors as bytes; of the protocol only
what bench/serve.py sends. Needs `uvicorn[standard]`, `ai-edge-litert` and `numpy`.
"""

import asyncio
import concurrent.futures
import json
import queue

import numpy as np
import uvicorn
from ai_edge_litert.interpreter import Interpreter

from processes import server_arguments


def interpreters(model, instances, threads):
    idle = queue.SimpleQueue()
    for _ in range(instances):
        interpreter = Interpreter(model_path=model, num_threads=threads)
        interpreter.allocate_tensors()
        idle.put(interpreter)
    return idle


def infer(idle, body, length):
    head = json.loads(body[:length])
    interpreter = idle.get()
    try:
        at = length
        for given, known in zip(head["inputs"], interpreter.get_input_details()):
            size = given["parameters"]["binary_data_size"]
            values = np.frombuffer(body, known["dtype"], size // np.dtype(known["dtype"]).itemsize, at)
            interpreter.set_tensor(known["index"], values.reshape(given["shape"]))
            at += size
        interpreter.invoke()
        outputs, raw = [], b""
        for known in interpreter.get_output_details():
            tensor = interpreter.get_tensor(known["index"])
            parameters = {"binary_data_size": tensor.nbytes}
            outputs.append({"name": known["name"], "shape": tensor.shape, "parameters": parameters})
            raw += tensor.tobytes()
    finally:
        idle.put(interpreter)
    text = json.dumps({"model_name": "model", "outputs": outputs}).encode()
    return text, raw


def application(idle, threads):
    async def app(scope, receive, send):
        if scope["type"] != "http":
            return
        parts, more = [], True
        while more:
            message = await receive()
            parts.append(message.get("body", b""))
            more = message.get("more_body", False)
        body = parts[0] if len(parts) == 1 else b"".join(parts)
        length = int(dict(scope["headers"])[b"inference-header-content-length"])
        text, raw = await asyncio.get_running_loop().run_in_executor(threads, infer, idle, body, length)
        headers = [(b"content-length", b"%d" % (len(text) + len(raw)))]
        headers.append((b"inference-header-content-length", b"%d" % len(text)))
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": text + raw})

    return app


def main():
    arguments = server_arguments(__doc__)
    idle = interpreters(arguments.model, arguments.instances, arguments.threads)
    with concurrent.futures.ThreadPoolExecutor(arguments.instances) as threads:
        app = application(idle, threads)
        uvicorn.run(app, host="127.0.0.1", port=arguments.port, log_level="warning", access_log=False)


main()
