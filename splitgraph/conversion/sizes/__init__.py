"""Gives the inputs of a model other sizes, and makes the constants that say an old size follow.

`wanted.py` reads which dimensions change; `follow.py` walks the model with symbols in their place, reads constants in
terms of them (`readings.py`), and finds what is still in the way (`origins.py`); `write.py` writes constants and nodes;
`convert.py` does it all.

The words of this room:

- A *batch* is a dimension whose places are *items*: they stay *apart*, because no node computes over them. Any other
  dimension that changes is a *length*.
- A node computes *over* a dimension if its results mix places along it: it sums, sorts or normalises over them.
- A number that says an old size *follows* if it becomes the new size, or *stays*. Each possibility is a *reading*. If
  several fit, the user is asked.
- *Digits* are the factors of a dimension from the outside in: a Reshape from (N, T) to [N*T] makes a dimension of the
  digits N and T (`digits.py`).
- Weights *count* along an axis if they are 0, 1, 2 … there: they go on for a larger size.
- A node *needs* a size if it runs only with that size of an input (`needs.py`).
"""
