"""The one comparison that every nomination gets: an item beside the place where it may be."""
