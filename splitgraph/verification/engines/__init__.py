"""Run models with onnxruntime, OpenVINO or the reference evaluator, each in a process of its own."""
