"""Settings of endpoints, which tables of decon.toml share: address, prompt, and limits."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field
from typing import Annotated, Any, ClassVar, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field
from pydantic.dataclasses import dataclass

from decon_core.config.feature_table import FeatureTable
from decon_core.config.validation import AS_WRITTEN, TABLE, Count, Name, Positive, expects, invalid

_URL = "an address such as https://api.example.org/v1, without user name and password"
_VARIABLE = "the name of an environment variable, such as API_KEY; never the key itself"


def _address(text: str) -> str:
    try:
        parts = urlsplit(text)
        is_valid = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        is_valid = is_valid and "@" not in parts.netloc
    except ValueError:
        is_valid = False
    if not is_valid:
        raise invalid(_URL, found="an address with a password" if "@" in text else None)
    return text


def _variable(name: str) -> str:
    # A key that was pasted here must not be repeated in the message.
    if not re.fullmatch(r"[A-Z_][A-Z0-9_]*", name):
        raise invalid(_VARIABLE, found="something else")
    return name


KeyVariable = Annotated[str, AfterValidator(_variable), expects(_VARIABLE)]
Seconds = Annotated[float, Field(strict=True, gt=0, le=86_400), expects("seconds, above 0")]


@dataclass(frozen=True, kw_only=True, config=TABLE)
class Endpoint(FeatureTable):
    """An OpenAI-compatible endpoint."""

    table: ClassVar[str]  # table of decon.toml, for messages

    url: Annotated[str, AfterValidator(_address), expects(_URL)] | None = None
    """Address of an OpenAI-compatible endpoint, without `/chat/completions`."""
    model: Name | None = None
    """Name of the model at the endpoint."""
    key_env: KeyVariable | None = None
    """Name of the environment variable that contains the key; never the key itself."""
    prompt: Name | None = None
    """Jinja2 template that replaces the built-in prompt."""
    response_format: Literal["json_schema", "json_object", "text"] = "json_schema"
    """How a request asks for JSON: with a JSON schema, with JSON mode, or only in the prompt."""
    parameters: Annotated[Mapping[str, Any], AS_WRITTEN] = field(
        default_factory=lambda: {"temperature": 0, "max_tokens": 1024}, hash=False
    )
    """Additional fields of a request, sent unchanged."""
    concurrency: Positive = 4
    """Maximum number of concurrent requests."""
    max_requests: Positive = 1000
    """Maximum number of requests per command, including retries."""
    max_tokens: Positive | None = None
    """Maximum number of tokens per command, in prompts and answers."""
    timeout: Seconds = 120.0
    """Seconds to wait for an answer."""
    retries: Count = 4
    """Retries of a request that failed or whose answer lacks required fields."""
    first_wait: Seconds = 1.0
    """Seconds before the first retry. Each further retry waits twice as long."""

    @classmethod
    def amend_schema(cls, definitions: dict[str, Any]) -> None:
        parameters = definitions[cls.__name__]["properties"]["parameters"]
        parameters["default"] = dict(cls().parameters)
