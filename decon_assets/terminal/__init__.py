"""How commands speak: options and help, tables, progress."""
