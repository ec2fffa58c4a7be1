"""What all commands share in the terminal: options and help, tables, progress."""
