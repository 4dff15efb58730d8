"""Reports as HTML files: one page for a model, one page for two versions of a model, an index of many models, and one
split as SVG.

`model_data` and `graphs` compute what a page shows, as compact JSON. The scripts in `assets` draw it in the browser.
Every page is one file that requests nothing from a network.
"""
