"""Format counts and sizes for messages."""


def counted(n: int, noun: str) -> str:
    """Format a count with its noun: "1 shard", "1,200 shards"."""
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def size(n_bytes: float) -> str:
    """Format a number of bytes in the largest unit of which there is at least one."""
    for unit, power in (("TB", 12), ("GB", 9), ("MB", 6), ("kB", 3)):
        if n_bytes >= 10**power:
            return f"{n_bytes / 10**power:.1f} {unit}"
    return counted(round(n_bytes), "byte")


def hold(n: int) -> str:
    """Return "holds" for 1 and "hold" otherwise."""
    return "holds" if n == 1 else "hold"


def have(n: int) -> str:
    """Return "has" for 1 and "have" otherwise."""
    return "has" if n == 1 else "have"


def percent(share: float | None) -> str:
    """Format a share as percent with two significant digits below 1 %; None is unknown."""
    if share is None:
        return "unknown"
    return f"{share:.2%}" if share >= 0.01 or share == 0 else f"{100 * share:.2g}%"
