"""decon.toml as typed settings: sources, policy, mixtures, blends, report."""
