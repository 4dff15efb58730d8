"""Make two models comparable: match their inputs and outputs, and write them for the engines."""
