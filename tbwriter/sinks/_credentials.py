"""Keep credentials out of what is written down: logs, errors, the spool."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

HIDDEN = "***"

# What may be written down, because a later `ship` needs it to find the store. All other options count as secret.
_SAFE_OPTIONS = frozenset(
    {
        *("account_host", "account_name", "addressing_style", "allow_agent", "anon", "client_kwargs", "config_kwargs"),
        *("endpoint", "endpoint_url", "host", "key_filename", "look_for_keys", "port", "profile", "project", "region"),
        *("region_name", "request_checksum_calculation", "requester_pays", "response_checksum_validation", "s3"),
        *("s3_additional_kwargs", "signature_version", "use_ssl", "user", "username", "verify"),
        # Of s3_additional_kwargs: without them a bucket may refuse an object, or take it unencrypted. Names of keys.
        *("ACL", "BucketKeyEnabled", "ExpectedBucketOwner", "RequestPayer", "SSEKMSEncryptionContext", "SSEKMSKeyId"),
        *("ServerSideEncryption", "StorageClass", "Tagging"),
    }
)
_SECRET_VARIABLE = re.compile(
    r"SECRET|TOKEN|PASSW|CREDENTIAL|CONNECTION_STRING|ACCESS_KEY|ACCOUNT_KEY|SAS", re.IGNORECASE
)
# Shorter values are words, and to hide them would hide the message.
_MIN_SECRET = 4
_MIN_SECRET_OF_ENVIRONMENT = 8
_SIGNED = re.compile(
    r"(?i)\b(sig|signature|x-amz-signature|x-amz-credential|x-amz-security-token|x-goog-signature|accountkey"
    r"|sharedaccesssignature|access_token|password)(=)[^&\s;\"']+"
)
_OF_CONTAINERS = frozenset({"az", "abfs", "abfss"})
_USER_INFO = re.compile(r"(?<=://)[^/@\s]+@")


def check_options(options: object) -> None:
    """Raise where these are no storage options; the message shows no value.

    Raises:
        TypeError: neither a mapping with names as keys nor None.
    """
    if options is None or (isinstance(options, Mapping) and all(isinstance(key, str) for key in options)):
        return
    got = type(options).__name__ + (" with keys that are no str" if isinstance(options, Mapping) else "")
    raise TypeError(f"storage_options must be a dict such as {{'endpoint_url': ...}}, got {got}")


def without_user(url: str) -> str:
    """Return `url` without `user:password@`; what stands there in Azure's is a container."""
    scheme, mark, rest = url.partition("://")
    if not mark or scheme in _OF_CONTAINERS:
        return url
    netloc, slash, path = rest.partition("/")
    return f"{scheme}://{netloc.rpartition('@')[2]}{slash}{path}"


def safe_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return what may be written down of storage options: plain values under keys known to hold no secret."""
    kept: dict[str, Any] = {}
    for key, value in options.items():
        if key not in _SAFE_OPTIONS:
            continue
        if isinstance(value, Mapping):
            kept[key] = safe_options(value)
        elif isinstance(value, str):
            kept[key] = without_user(value)
        elif isinstance(value, (bool, int, float)):
            kept[key] = value
    return kept


def hide(text: str, options: Mapping[str, Any]) -> str:
    """Return `text` with every secret of `options` and of the environment, and what signs a URL, replaced by `***`."""
    secrets = {value for value in _secrets(options) if len(value) >= _MIN_SECRET}
    secrets |= {
        value
        for name, value in os.environ.items()
        if _SECRET_VARIABLE.search(name) and len(value) >= _MIN_SECRET_OF_ENVIRONMENT
    }
    secrets |= {quote(secret, safe="") for secret in secrets}  # as in a URL
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    return _SIGNED.sub(rf"\1\2{HIDDEN}", _USER_INFO.sub(f"{HIDDEN}@", text))


def _secrets(options: Mapping[str, Any]) -> Iterator[str]:
    for key, value in options.items():
        if isinstance(value, Mapping):
            yield from _secrets(value)
        elif isinstance(value, str) and key not in _SAFE_OPTIONS:
            yield value
