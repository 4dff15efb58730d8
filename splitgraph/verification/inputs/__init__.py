"""Choose the inputs on which both models run: sizes that the model accepts, and elements that show differences."""
