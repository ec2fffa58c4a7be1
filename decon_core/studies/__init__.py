"""Studies: what leaks do to scores, and what could be done about it; one folder for each."""
