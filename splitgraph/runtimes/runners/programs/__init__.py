"""One program for each runtime, and the loop that they run in. They need NumPy and the runtime, and nothing of
splitgraph: any Python runs them (`python -I loop.py onnxruntime.py`).

A program has `version()`, and `run(path, inputs, outputs, stage)`: it reads a model, and returns its outputs in the
order of their names. It calls `stage("prepare")` and `stage("run")` when these begin, so that a death is known by its
stage. It raises BufferError if the bindings of the runtime lack a type: that says nothing about the runtime.
"""
