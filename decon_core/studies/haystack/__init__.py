"""Test items planted among documents: how high quality scorers rank them."""
