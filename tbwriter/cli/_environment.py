"""What TensorBoard must be told to read a store as a command does: another URL, and variables of its environment."""

from __future__ import annotations

import importlib.util
import json
import os
from collections.abc import Mapping
from typing import Any

from tbwriter.sinks._credentials import safe_options
from tbwriter.sinks._options import endpoint_of

_S3 = frozenset({"s3", "s3a", "obs"})
_BOTO = {
    "key": "AWS_ACCESS_KEY_ID",
    "secret": "AWS_SECRET_ACCESS_KEY",
    "token": "AWS_SESSION_TOKEN",
    "profile": "AWS_PROFILE",
}
# Their drivers keep no listings, and take no option about that.
_WITHOUT_LISTINGS = frozenset({"sftp", "ssh", "smb"})


def logdir_of(place: str) -> str:
    """Return a path or URL as TensorBoard knows it."""
    scheme, mark, rest = place.partition("://")
    return f"s3://{rest}" if mark and scheme in _S3 else place


def environment(place: str, storage_options: Mapping[str, Any] | None, *, secrets: bool) -> dict[str, str]:
    """Return the variables for TensorBoard; those that the user has set in the options' place stay.

    Args:
        place: a normalised path or URL.
        storage_options: for the file system behind a URL.
        secrets: also what no terminal should show.
    """
    scheme, mark, _ = place.partition("://")
    if not mark:
        return {}
    given = dict(storage_options or {})
    told = given if secrets else safe_options(given)
    if scheme in _S3 and importlib.util.find_spec("boto3") is not None:
        found = {name: str(told[key]) for key, name in _BOTO.items() if told.get(key)}
        endpoint = endpoint_of(told)
        if endpoint:
            # TensorBoard's own variable goes before boto's.
            found["S3_ENDPOINT"] = endpoint
            found["AWS_REQUEST_CHECKSUM_CALCULATION"] = found["AWS_RESPONSE_CHECKSUM_VALIDATION"] = "when_required"
        return found
    name = f"FSSPEC_{'S3' if scheme in _S3 else scheme.upper()}"
    if scheme not in _WITHOUT_LISTINGS:
        told = {"use_listings_cache": False, **told}  # with it, only the first listing is ever seen
    return {name: json.dumps(told)} if told and name not in os.environ else {}
