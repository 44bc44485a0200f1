"""Traces of requests, by OpenTelemetry's standard variables: traces.py NNHAL MODELS.

A collector of OTLP over HTTP takes what `nnhal serve` sends. The span of a request has to be a child of the one that the
client names in `traceparent`; it is looked for as protobuf's bytes, which needs no package.
"""

import http.server
import os
import subprocess
import sys
import threading
import urllib.request

NNHAL, MODELS = sys.argv[1:3]
TRACE, PARENT = bytes.fromhex("4bf92f3577b34da6a3ce929d0e0e4736"), bytes.fromhex("00f067aa0ba902b7")
BODY = b'{"inputs":[{"name":"image","shape":[1,8,8,1],"datatype":"FP32","data":[' + b",".join([b"0.5"] * 64) + b"]}]}"
received = []


class Collector(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        received.append((self.path, self.rfile.read(int(self.headers["content-length"]))))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass


def field(number, value):
    """A field of bytes in protobuf, shorter than 128."""
    return bytes([number << 3 | 2, len(value)]) + value


def run(**environment):
    """What the collector has got when the server has answered one request and ended."""
    received.clear()
    collector = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Collector)
    threading.Thread(target=collector.serve_forever, daemon=True).start()
    endpoint = f"http://127.0.0.1:{collector.server_port}"
    environment = os.environ | {"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint} | environment
    command = [NNHAL, "serve", "--models", MODELS, "--http", "127.0.0.1:0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment)
    try:
        url = f"http://{server.stdout.readline().split()[1]}/v2/models/digits/infer"
        traceparent = f"00-{TRACE.hex()}-{PARENT.hex()}-01"
        with urllib.request.urlopen(urllib.request.Request(url, BODY, {"traceparent": traceparent}), timeout=60) as answer:
            assert answer.status == 200
    finally:
        server.terminate()
        assert server.wait(60) == 0
        collector.shutdown()
        collector.server_close()
    assert {path for path, _ in received} <= {"/v1/traces"}, received
    return b"".join(body for _, body in received)


sent = run(OTEL_SERVICE_NAME="digits-reader", OTEL_RESOURCE_ATTRIBUTES="deployment.environment=here")
# Fields 1, 4 and 5 of a span: its trace, its parent and its name.
assert field(1, TRACE) in sent, "no span of the client's trace"
assert field(4, PARENT) in sent, "no child of the client's span"
assert field(5, b"infer") in sent
assert sent.count(field(1, TRACE)) >= 2, "the device's execution is no span of the trace"
assert b"digits-reader" in sent and b"deployment.environment" in sent and b"here" in sent
assert run(OTEL_SDK_DISABLED="true") == b"", "sent though it is disabled"
assert run(OTEL_TRACES_SAMPLER="always_off") == b"", "sent though no trace is to be sampled"
print("traces: a child of the client's span, the variables of OpenTelemetry")
