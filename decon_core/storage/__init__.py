"""Local and remote paths, compression, checksums, and the content-addressed store."""
