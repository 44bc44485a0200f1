"""Classifies pictures with Ray Data: an actor pool of nnhal's models, results to Parquet.

    python examples/ray/batch.py MODEL.tflite PICTURES OUTPUT [--actors 2] [--cpus 1] [--batch-size 64] [--cache DIR]

Needs `ray[data]`, `pillow`, `numpy` and the wheel of nnhal. Rows are named by their files. Ray runs a block again when
its worker dies, and a block's results are written once, so exactly the rows that went in come out.
"""

import argparse

import numpy as np
import ray


class Classify:
    """A worker: the model is prepared once, on as many threads as Ray gives it."""

    def __init__(self, model: str, cache: str | None):
        import nnhal

        threads = max(1, int(ray.get_runtime_context().get_assigned_resources().get("CPU", 1)))
        # Out of the cache if another worker has prepared it, and with the same pages if one of this machine has it.
        self.model = nnhal.load(model, threads=threads, cache_dir=cache, share_weights=True)
        self.size = self.model.inputs[0].shape[1:3]
        self.channels = self.model.inputs[0].shape[3]

    def __call__(self, batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        from PIL import Image

        classes, values = [], []
        for picture in batch["image"]:
            image = Image.fromarray(picture).convert("L" if self.channels == 1 else "RGB")
            image = np.asarray(image.resize((self.size[1], self.size[0])), np.float32) / 255
            output = self.model(image.reshape(1, *self.size, self.channels))
            reals = self.model.outputs[0].dequantize(output[0]).ravel()
            classes.append(int(reals.argmax()))
            values.append(float(reals.max()))
        return {"path": batch["path"], "class": np.array(classes), "value": np.array(values, np.float32)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("pictures")
    parser.add_argument("output")
    parser.add_argument("--actors", type=int, default=2)
    parser.add_argument("--cpus", type=float, default=1, help="of each actor")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--cache")
    arguments = parser.parse_args()
    # Actors keep their processors until the end. If they have all of the cluster's, tasks that want some would wait
    # for ever: reading and writing take none, and few of them run at a time.
    few = {"concurrency": arguments.actors, "ray_remote_args": {"num_cpus": 0}}
    pictures = ray.data.read_images(arguments.pictures, include_paths=True, mode="RGB", **few)
    results = pictures.map_batches(
        Classify,
        fn_constructor_args=(arguments.model, arguments.cache),
        compute=ray.data.ActorPoolStrategy(size=arguments.actors),
        num_cpus=arguments.cpus,
        batch_size=arguments.batch_size,
    )
    results.write_parquet(arguments.output, **few)


if __name__ == "__main__":
    main()
