"""OpenCV's dnn module with its default engine: the new one of OpenCV 5, which falls back to that of OpenCV 4."""

PACKAGES = {
    "5.0.0.93": ["opencv-python-headless==5.0.0.93"],
    "4.14.0.94": ["opencv-python-headless==4.14.0.94"],
    "4.10.0.84": ["opencv-python-headless==4.10.0.84"],
}


def VERSION():
    import cv2

    return cv2.__version__


def run(model, inputs, outputs):
    import cv2

    net = cv2.dnn.readNetFromONNX(model)
    for name, value in inputs.items():
        # OpenCV 4.10 takes the last axis of an array of three axes for channels, unless the array is a Mat.
        net.setInput(cv2.Mat(value, wrap_channels=False) if VERSION().startswith("4.10") else value, name)
    return list(net.forward(outputs))
