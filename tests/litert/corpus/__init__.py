"""Makes small .tflite models with inputs and LiteRT's outputs; see ../README.md."""
