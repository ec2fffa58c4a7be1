"""Results of models, which other features read. This feature has no asset, check or command."""
