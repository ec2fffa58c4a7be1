"""Read and validate decon.toml: sources, policy, mixtures, blends, report."""
