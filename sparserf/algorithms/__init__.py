"""The algorithms, each importable without the others; `registry.py` lists them."""
