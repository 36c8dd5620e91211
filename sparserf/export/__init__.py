"""Models written in other languages: formulas, Python, SQL, C, and ONNX graphs."""
