"""What goes wrong with clients, and what a server keeps promising: faults.py HTTP GRPC PID [REQUESTS].

The server is to have MALLOC_ARENA_MAX=1, so that what it keeps of its memory does not depend on which thread asked.
"""

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
    return f"POST /v2/models/digits/infer HTTP/1.1\r\nhost: localhost\r\ncontent-length: {length}\r\n\r\n".encode()


def metric(name):
    """A number of the server, or the sum of one that it has by labels."""
    with urllib.request.urlopen(f"http://{HTTP}/metrics", timeout=60) as response:
        lines = response.read().decode().splitlines()
    found = [line.rsplit(" ", 1)[1] for line in lines if line.split("{")[0].split(" ")[0] == name]
    assert found, f"there is no {name}"
    return sum(map(float, found))


def forgotten():
    """Waits until nothing is left of what the clients did; the connection that asks is one."""
    for _ in range(200):
        left = metric("nnhal_requests_in_progress_bytes"), metric("nnhal_queue_length"), metric("nnhal_connections")
        if left[:2] == (0, 0) and left[2] <= 1:
            return
        time.sleep(0.05)
    raise AssertionError(f"bytes in progress, requests that wait, connections: {left}")


def status_of(client):
    """The status of an answer by HTTP/1; `None`: it is cut off without one."""
    try:
        line = client.makefile("rb").readline()
    except ConnectionError:
        return None
    if not line:
        return None
    assert line.startswith(b"HTTP/1.1 "), line
    return int(line.split()[1])


def killed_in_the_middle():
    before = metric("nnhal_requests_total")
    for number in range(ROUNDS):
        with connect(HTTP) as client:
            client.sendall(head(len(BODY)) + BODY[: number % len(BODY)])
            # Reset instead of an end.
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        with connect(HTTP) as client:
            client.sendall(head(len(BODY)) + BODY)  # and gone before the answer
    forgotten()
    # None of the requests that were not complete was computed.
    computed = metric("nnhal_requests_total") - before
    assert computed <= ROUNDS, f"{computed} requests were computed, {ROUNDS} were sent"


def garbage():
    chance = random.Random(19)
    preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
    for number in range(ROUNDS):
        noise = chance.randbytes(chance.randrange(1, 4000))
        body = bytearray(BODY)
        for _ in range(5):
            body[chance.randrange(len(body))] = chance.randrange(256)
        # A request that is complete, and none of its bytes are sure to be right: it is answered.
        with connect(HTTP) as client:
            client.sendall(head(len(body)) + bytes(body))
            status = status_of(client)
            assert status == 200 or status in range(400, 500), f"round {number}: {status}"
        # What is no HTTP is refused or cut off, and may be the beginning of something.
        with connect(HTTP) as client:
            client.settimeout(0.05)
            try:
                client.sendall(noise)
                status = status_of(client)
                assert status is None or status in range(400, 500), f"round {number}: {status}"
            except (TimeoutError, ConnectionError):
                pass
        with connect(GRPC) as client:
            client.settimeout(0.05)
            try:
                client.sendall(preface * (number % 2) + noise)
                answer = client.recv(1000)
                # Nothing but frames of HTTP/2, of which the first are settings (4) or a farewell (7).
                assert not answer or (len(answer) >= 9 and answer[3] in (4, 7)), f"round {number}: {answer}"
            except (TimeoutError, ConnectionError):
                pass
    forgotten()
    with connect(GRPC) as client:
        client.sendall(preface + bytes(9))
        assert client.recv(1000)[3] == 4, "no settings"


def killed_processes():
    """Processes that are killed while they send large bodies, some of which say how long these are and others not."""
    large = 32 << 20
    chunked = b"POST /v2/models/digits/infer HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n"
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
    forgotten()


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
    # Those that say nothing for too long are cut off, so that fewer are open if it took long.
    still = metric("nnhal_connections")
    print(f"  with {still:.0f} open of {count} connections a request takes {seconds * 1e3:.0f} ms, resident {resident()} KiB")
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
# The allocator keeps what a round took, and a later one finds less and less of it in unsuitable pieces: in an arena that
# all threads share, nothing more is taken after some rounds. What is lost with each connection would be more.
rounds = []
for _ in range(6):
    for fault in (killed_in_the_middle, killed_processes, garbage, many_connections, many_requests):
        begun = time.monotonic()
        fault()
        assert infer() == [1, 10], fault.__name__
        print(f"  {fault.__name__}: {time.monotonic() - begun:.1f} s, resident {resident()} KiB")
    rounds.append(settled())
print("  resident", ", ".join(str(it) for _, it in rounds), "KiB")
*before, after = rounds
# It may have given something back in between.
most = max(it for _, it in before)
print(f"  descriptors {first} and {after[0]}, resident at most {most} before the last round and {after[1]} KiB after it")
assert after[0] <= first + 4, "descriptors are left open"
assert after[1] <= most + 4 * 1024, "memory grows"
