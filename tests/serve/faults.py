"""What goes wrong with clients, and what a server keeps promising: faults.py HTTP GRPC PID [REQUESTS]."""

import json
import os
import random
import resource
import signal
import socket
import sys
import time
import urllib.request

HTTP, GRPC, PID = sys.argv[1], sys.argv[2], int(sys.argv[3])
REQUESTS = int(sys.argv[4]) if len(sys.argv) > 4 else 3000
CONNECTIONS = 10_000
UPLOADS = 12
ROUNDS = 200
BODY = json.dumps(
    {"inputs": [{"name": "image", "shape": [1, 8, 8, 1], "datatype": "FP32", "data": [0.5] * 64}]}
).encode()


def address(text):
    host, port = text.rsplit(":", 1)
    return host, int(port)


def connect(text):
    return socket.create_connection(address(text), timeout=20)


def infer():
    with urllib.request.urlopen(f"http://{HTTP}/v2/models/digits/infer", BODY, timeout=60) as response:
        return json.load(response)["outputs"][0]["shape"]


def descriptors():
    return len(os.listdir(f"/proc/{PID}/fd"))


def resident():
    with open(f"/proc/{PID}/status", encoding="ascii") as status:
        return int(next(line for line in status if line.startswith("VmRSS")).split()[1])


def head(length):
    return f"POST /v2/models/digits/infer HTTP/1.1\r\nhost: x\r\ncontent-length: {length}\r\n\r\n".encode()


def killed_in_the_middle():
    for number in range(ROUNDS):
        with connect(HTTP) as client:
            client.sendall(head(len(BODY)) + BODY[: number % len(BODY)])
            # Reset instead of an end.
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        with connect(HTTP) as client:
            client.sendall(head(len(BODY)) + BODY)  # and gone before the answer


def garbage():
    chance = random.Random(19)
    preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
    for number in range(ROUNDS):
        for endpoint in (HTTP, GRPC):
            noise = chance.randbytes(chance.randrange(1, 4000))
            if number % 3 == 0:
                noise = preface + noise
            elif number % 3 == 1:
                body = bytearray(BODY)
                for _ in range(5):
                    body[chance.randrange(len(body))] = chance.randrange(256)
                noise = head(len(body)) + bytes(body)
            try:
                with connect(endpoint) as client:
                    client.sendall(noise)
                    client.settimeout(0.01)
                    client.recv(1000)
            except OSError:
                pass  # cut off, or nothing to say: both are right


def killed_processes():
    """Processes that are killed while they send large bodies, some of which say how long these are and others not."""
    large = 32 << 20
    chunked = b"POST /v2/models/digits/infer HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n"
    processes = []
    for number in range(UPLOADS):
        process = os.fork()
        if process == 0:
            with connect(HTTP) as client:
                client.sendall(head(large) if number % 2 else chunked)
                while True:
                    client.sendall(bytes(65536) if number % 2 else b"10000\r\n" + bytes(65536) + b"\r\n")
                    time.sleep(0.005)
        processes.append(process)
    time.sleep(0.5)
    for process in processes:
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)


def many_connections():
    """Idle ones, as many as there can be with what the system lets this process open, and one that asks."""
    limit, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    theirs = next(line for line in open(f"/proc/{PID}/limits", encoding="ascii") if line.startswith("Max open files"))
    # Each endpoint has half of the server's.
    count = min(CONNECTIONS, most - 200, int(theirs.split()[3]) // 2 - 200)
    begun = time.monotonic()
    clients = [connect(HTTP) for _ in range(count)]
    seconds = time.monotonic() - begun
    # A connection that the system does not take at once is tried again a second later: few of them may be.
    assert seconds < 20, f"{count} connections took {seconds:.1f} s"
    begun = time.monotonic()
    assert infer() == [1, 10]
    seconds = time.monotonic() - begun
    print(f"  with {count} connections a request takes {seconds * 1e3:.0f} ms, resident {resident()} KiB")
    for client in clients:
        client.close()
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, most))


def many_requests():
    with connect(HTTP) as client:
        answers = client.makefile("rb")
        for _ in range(REQUESTS):
            client.sendall(head(len(BODY)) + BODY)
            status, length = answers.readline(), 0
            assert b" 200 " in status, status
            while (line := answers.readline().strip()) != b"":
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
            assert b'"shape":[1,10]' in answers.read(length)


def settled():
    """Descriptors and memory, when what was closed is gone."""
    for _ in range(100):
        if descriptors() <= first + 4:
            break
        time.sleep(0.1)
    return descriptors(), resident()


infer()
many_requests()
first = descriptors()
# The allocator keeps what the first round took, and the second must find most of it there: what is lost with each
# connection would be more.
rounds = []
for _ in range(2):
    for fault in (killed_in_the_middle, killed_processes, garbage, many_connections, many_requests):
        begun = time.monotonic()
        fault()
        assert infer() == [1, 10], fault.__name__
        print(f"  {fault.__name__}: {time.monotonic() - begun:.1f} s")
    rounds.append(settled())
before, after = rounds
print(f"  descriptors {before[0]} and {after[0]}, resident {before[1]} and {after[1]} KiB")
assert after[0] <= first + 4, "descriptors are left open"
assert after[1] <= before[1] + 32 * 1024, "memory grows"
