"""Code that all commands share: options and help, tables, progress in the terminal."""
