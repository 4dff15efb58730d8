"""One node under conversion: what is known of it, the form that it has by now, and the boundary that it crosses."""
