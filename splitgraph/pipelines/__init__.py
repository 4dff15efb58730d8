"""splitgraph as a step of other tools' pipelines: passes for onnx_ir, a pass for Olive.

Each adapter is imported by its own name, because it extends a class of its tool:

>>> from splitgraph.pipelines.onnx_ir_passes import ConvertPass
>>> from splitgraph.pipelines.olive_pass import SplitgraphConversion
"""
