"""`decon-assets scorecard`: planted leaks, and metrics on labelled pairs."""
