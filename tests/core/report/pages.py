"""What a page carries, unpacked as a browser would."""

from __future__ import annotations

import gzip
import json
import re
from base64 import b64decode
from pathlib import Path

_DATA = re.compile(r'<script type="text/plain" class="data" data-name="([^"]+)">([^<]*)</script>')


def packed_in(page: Path) -> dict[str, str]:
    """By name, all that is packed in a page."""
    found = _DATA.findall(page.read_text())
    return {name: gzip.decompress(b64decode(packed)).decode() for name, packed in found}


def data_of(page: Path, name: str) -> object:
    return json.loads(packed_in(page)[name])


def outside_of_data(page: Path) -> str:
    """What a browser reads as markup and scripts."""
    return _DATA.sub("", page.read_text())
