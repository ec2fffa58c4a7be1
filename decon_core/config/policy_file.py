"""Read a policy from a separate TOML file."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from decon_core.config.policy import Policy, with_preset
from decon_core.errors import ConfigError, Problem


def load_policy(path: Path, *, like: Policy | None = None) -> Policy:
    """Load a policy from a TOML file: its keys at the top level, or in a table `policy`.

    Settings that are not in the file are taken from `like`, or from the defaults if it is None.
    """
    return policy_from(read_policy(path), path, like=like)


def read_policy(path: Path) -> dict[str, Any]:
    """Read a TOML file. Call it once per path: a pipe is empty the second time."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(Problem(str(path), "no such file", "a policy in TOML")) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(Problem(str(path), str(error), "valid TOML in UTF-8")) from None


def policy_from(
    values: Mapping[str, Any], path: Path, *, folder: Path | None = None, like: Policy | None = None
) -> Policy:
    """Make a policy from the values of a TOML file; `like` as in `load_policy`.

    `folder`: that of the path of a tokenizer, by default the folder of the file.
    """
    section = values.get("policy", values)
    if not isinstance(section, dict):
        raise ConfigError(Problem(f"{path}: policy", repr(section), "a table"))
    tokenizer = section.get("tokenizer_str")
    if isinstance(tokenizer, str) and tokenizer.endswith(".json"):
        section = {**section, "tokenizer_str": str((folder or path.parent) / tokenizer)}
    base = asdict(like) if like else {}
    if isinstance(section.get("benchmark"), dict):
        section = {**section, "benchmark": {**base.get("benchmark", {}), **section["benchmark"]}}
    return Policy.from_mapping({**base, **with_preset(section, where=str(path))}, where=str(path))
