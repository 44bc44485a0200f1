"""Triton's clients over TLS with a token: encrypted.py HTTP GRPC CERTIFICATE TOKEN, of a server whose certificate is for 127.0.0.1."""

import ssl
import sys

import numpy
import tritonclient.grpc as grpc
import tritonclient.http as http
from tritonclient.utils import InferenceServerException

HTTP, GRPC, CERTIFICATE, TOKEN = sys.argv[1:5]
IMAGE = numpy.full((1, 8, 8, 1), 0.5, numpy.float32)


def clients(host):
    """A client of each endpoint, by this name of the machine."""
    of_host = lambda address: f"{host}:{address.rsplit(':', 1)[1]}"
    context = lambda: ssl.create_default_context(cafile=CERTIFICATE)
    yield http, http.InferenceServerClient(of_host(HTTP), ssl=True, ssl_context_factory=context)
    yield grpc, grpc.InferenceServerClient(of_host(GRPC), ssl=True, root_certificates=CERTIFICATE)


def infer(module, client, token):
    image = module.InferInput("image", [1, 8, 8, 1], "FP32")
    image.set_data_from_numpy(IMAGE)
    headers = {"authorization": f"Bearer {token}"} if token else {}
    return client.infer("digits", [image], headers=headers).as_numpy("probabilities")


def refused(module, client, token, *names):
    try:
        infer(module, client, token)
    except InferenceServerException as error:
        assert all(name in str(error) for name in names), (module.__name__, error)
    else:
        sys.exit(f"{module.__name__}: {token} is not refused")


for module, client in clients("127.0.0.1"):
    assert infer(module, client, TOKEN).shape == (1, 10), module.__name__
    refused(module, client, TOKEN[:-1] + "x", "401" if module is http else "UNAUTHENTICATED", "token")
    refused(module, client, None, "401" if module is http else "UNAUTHENTICATED", "token")
    assert client.is_server_live(), "health needs no token"
# Another name than the certificate's: the client goes no further. Triton's client by HTTP does not look at the name, curl does.
module, client = list(clients("localhost"))[1]
refused(module, client, TOKEN, "host")
print("TLS and tokens by both endpoints; another token, none, and another name are refused")
