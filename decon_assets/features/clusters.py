"""Engines need no asset, check or command of their own."""
