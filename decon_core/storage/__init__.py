"""Files: local and remote paths, compression, checksums, the content-addressed store."""
