"""Tables and the review screen of a terminal."""
