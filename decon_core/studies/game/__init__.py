"""The contamination game: `model` solves it, `page` shows the solution as tables and a picture."""
