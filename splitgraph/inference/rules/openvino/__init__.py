"""Rules of the layers of OpenVINO, which only an OpenVINO IR has."""
