"""Numbers in sentences: a noun that agrees with its number, and sizes in units."""


def counted(n: int, noun: str) -> str:
    """A number and a noun that agrees with it: "1 shard", "1,200 shards"."""
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def size(n_bytes: float) -> str:
    """A number of bytes in the largest unit that leaves at least one of it."""
    for unit, power in (("TB", 12), ("GB", 9), ("MB", 6), ("kB", 3)):
        if n_bytes >= 10**power:
            return f"{n_bytes / 10**power:.1f} {unit}"
    return counted(round(n_bytes), "byte")


def hold(n: int) -> str:
    """The verb for so many documents: one holds, two hold."""
    return "holds" if n == 1 else "hold"


def have(n: int) -> str:
    """The verb for so many documents: one has, two have."""
    return "has" if n == 1 else "have"
