"""Text to canonical text, and canonical text to tokens; offsets lead back to the original."""
