"""What people look at: which findings, in which order, how they look, what verdicts add up to."""
