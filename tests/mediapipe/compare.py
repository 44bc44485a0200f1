"""Compares nnhal with MediaPipe on its face mesh with attention, whose operators LiteRT does not have.

    python compare.py PROGRAM [--device NAME]

MediaPipe's own graph computes 478 landmarks of a photograph; PROGRAM, which is `nnhal`, runs the model out of
the same wheel on the same picture. Landmarks around lips, eyes and irises come from the custom operators.
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile

import mediapipe
import numpy
from mediapipe.framework.formats import rect_pb2
from mediapipe.python import packet_creator, packet_getter
from mediapipe.python._framework_bindings import calculator_graph, resource_util
from PIL import Image
from skimage import data

ROOT = pathlib.Path(mediapipe.__file__).parent
MODEL = ROOT / "modules/face_landmark/face_landmark_with_attention.tflite"
SIDE = 192
TOLERANCE = 0.01
"""Of a pixel; the model has weights of 16 bits."""

GRAPH = """
input_stream: "image"
input_stream: "region"
input_side_packet: "with_attention"
output_stream: "landmarks"
node {
  calculator: "FaceLandmarkCpu"
  input_stream: "IMAGE:image"
  input_stream: "ROI:region"
  input_side_packet: "WITH_ATTENTION:with_attention"
  output_stream: "LANDMARKS:landmarks"
}
"""


def expected(picture):
    """The landmarks x, y in pixels, as MediaPipe has them."""
    resource_util.set_resource_dir(str(ROOT.parent))
    graph = calculator_graph.CalculatorGraph(graph_config=GRAPH)
    found = []
    graph.observe_output_stream("landmarks", lambda _, packet: found.append(packet_getter.get_proto(packet)), True)
    graph.start_run({"with_attention": packet_creator.create_bool(True)})
    image = packet_creator.create_image_frame(image_format=mediapipe.ImageFormat.SRGB, data=picture)
    whole = rect_pb2.NormalizedRect(x_center=0.5, y_center=0.5, width=1, height=1)
    graph.add_packet_to_input_stream("image", image.at(0))
    graph.add_packet_to_input_stream("region", packet_creator.create_proto(whole).at(0))
    graph.close_all_packet_sources()
    graph.wait_until_done()
    return numpy.array([[point.x * SIDE, point.y * SIDE] for point in found[0].landmark])


def ours(program, device, picture):
    """The model's outputs by name."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        numpy.save(folder / "picture.npy", picture[None].astype(numpy.float32) / 255)
        command = [program, "run", MODEL, "--device", device, "--input", folder / "picture.npy", "--output-dir", folder]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return {file.stem: numpy.load(file).ravel() for file in folder.glob("*.npy")}


def options():
    """Which landmarks of the mesh each matrix is made from, which are those that are refined."""
    import flatbuffers.flexbuffers
    from ai_edge_litert import schema_py_generated as schema

    model = schema.ModelT.InitFromPackedBuf(MODEL.read_bytes())
    graph = model.subgraphs[0]
    maps = [
        flatbuffers.flexbuffers.Loads(bytes(bytearray(operator.customOptions)))
        for operator in graph.operators
        if model.operatorCodes[operator.opcodeIndex].customCode == b"Landmarks2TransformMatrix"
    ]
    return [it["subset_idxs"] for it in maps]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--device", default="nnhal-cpu")
    arguments = parser.parse_args()
    face = Image.fromarray(data.astronaut()[0:200, 125:325]).resize((SIDE, SIDE), Image.Resampling.BILINEAR)
    picture = numpy.ascontiguousarray(numpy.asarray(face))
    wanted, found = expected(picture), ours(arguments.program, arguments.device, picture)
    lips, left, right = options()
    parts = {
        "lips": (found["output_lips"].reshape(-1, 2), wanted[lips]),
        "left eye": (found["output_left_eye"].reshape(-1, 2), wanted[left]),
        "right eye": (found["output_right_eye"].reshape(-1, 2), wanted[right]),
        "left iris": (found["output_left_iris"].reshape(-1, 2), wanted[468:473]),
        "right iris": (found["output_right_iris"].reshape(-1, 2), wanted[473:478]),
    }
    rest = sorted(set(range(468)) - {*lips, *left, *right})
    parts["rest of the mesh"] = (found["output_mesh_identity"].reshape(-1, 3)[rest, :2], wanted[rest])
    failed = 0
    for name, (a, b) in parts.items():
        difference = float(numpy.abs(a - b).max())
        failed += not difference <= TOLERANCE
        print(f"{arguments.device}: {name}: {len(a)} landmarks, at most {difference:.6f} pixels from MediaPipe")
    print(f"{len(parts) - failed} passed, {failed} failed")
    sys.exit(failed > 0)


main()
