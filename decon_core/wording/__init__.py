"""Words: counts and sizes in messages, and the templates of pages and cards."""
