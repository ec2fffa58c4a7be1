"""The results of models are read by other features: no asset, check or command of their own."""
