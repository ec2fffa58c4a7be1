"""Assets, one file per stage. A body loads inputs, calls the core and reports metadata."""
