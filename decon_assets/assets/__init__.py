"""One file per stage. A body loads, makes one call into the core, and says what came of it."""
