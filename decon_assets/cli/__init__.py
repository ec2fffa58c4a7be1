"""`decon-assets`: one file per command."""
