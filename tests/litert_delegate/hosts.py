"""The interpreter of whichever wheel is installed: ai-edge-litert, tflite-runtime or tensorflow."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

try:
    from ai_edge_litert.interpreter import Interpreter, OpResolverType, load_delegate
    HOST = "ai-edge-litert"
except ImportError:
    try:
        from tflite_runtime.interpreter import Interpreter, OpResolverType, load_delegate
        HOST = "tflite-runtime"
    except ImportError:
        import tensorflow as tf
        Interpreter = tf.lite.Interpreter
        OpResolverType = tf.lite.experimental.OpResolverType
        load_delegate = tf.lite.experimental.load_delegate
        HOST = "tensorflow"

LIBRARY = os.environ.get("NNHAL_DELEGATE", "libnnhal_delegate.so")

# The host's own kernels for what the delegate leaves: no other delegate comes in between.
ALONE = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES


def delegated(model, **options):
    """An interpreter with a delegate of these options; `model` is a path or the bytes of a file."""
    source = {"model_content": model} if isinstance(model, bytes) else {"model_path": str(model)}
    threads = options.pop("num_threads", None)
    return Interpreter(**source, experimental_delegates=[load_delegate(LIBRARY, options)],
                       experimental_op_resolver_type=ALONE, num_threads=threads)


def plain(model):
    """An interpreter without delegates."""
    source = {"model_content": model} if isinstance(model, bytes) else {"model_path": str(model)}
    return Interpreter(**source, experimental_op_resolver_type=ALONE, num_threads=1)


def partitions(interpreter):
    """How many partitions the delegate runs, and how many operators the file has."""
    names = [node["op_name"] for node in interpreter._get_ops_details()]
    return names.count("DELEGATE"), len(names) - names.count("DELEGATE")
