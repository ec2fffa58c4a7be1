"""Where Dagster keeps its history: the home folder and its databases."""
