"""One node under conversion as it is by now, and what is known of its values."""
