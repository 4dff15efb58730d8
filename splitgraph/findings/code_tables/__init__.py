"""The diagnostic codes by what they are about; `codes.py` has all of them."""
