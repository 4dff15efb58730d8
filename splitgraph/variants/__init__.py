"""One file per version of each split operator."""
