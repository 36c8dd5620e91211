"""Models for programs without Python: as an ONNX graph, and as a file of C."""
