"""Operators of com.microsoft, and those that onnxruntime writes into ai.onnx, in operators of ai.onnx: a family a file.
Which operators have a form, and what stands in the way of the others, is registered in `standard.py` beside this.
"""
