"""What the drivers of stores are told, and where else than in the user's options they find it."""

from __future__ import annotations

import functools
import ipaddress
import os
import re
from collections.abc import Mapping
from typing import Any, cast
from urllib.parse import urlsplit

CONNECT_SECS = 5
READ_SECS = 15


def with_defaults(scheme: str, protocol: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options for the driver; what the user gave goes before ours."""
    full = dict(options)
    if protocol == "gs":
        full.setdefault("requests_timeout", READ_SECS)
    if protocol != "s3":
        return full
    endpoint = endpoint_of(full)
    if endpoint and endpoint == _of_tensorboard():
        full["endpoint_url"] = endpoint  # which boto does not know
    if scheme == "obs" and not endpoint:
        raise ValueError(
            "obs:// needs the endpoint of its region: "
            "storage_options={'endpoint_url': 'https://obs.<region>.myhuaweicloud.com', 'key': ..., 'secret': ...}"
        )
    config: dict[str, Any] = {
        "connect_timeout": CONNECT_SECS,
        "read_timeout": READ_SECS,
        "retries": {"total_max_attempts": 1},
    }
    if endpoint and not _is_aws(endpoint):
        # Compatible stores: many refuse the streamed checksums that boto sends since 2025, and OBS, OSS and COS
        # refuse the bucket in the path.
        if _knows_checksums():
            config["request_checksum_calculation"] = config["response_checksum_validation"] = "when_required"
        config["s3"] = {"addressing_style": "virtual" if _has_domain(endpoint) else "path"}
    given = dict(full.get("config_kwargs") or of_fsspec("s3").get("config_kwargs") or {})
    if "s3" in config and "s3" in given:
        given["s3"] = {**config["s3"], **given["s3"]}
    full["config_kwargs"] = {**config, **given}
    return full


def endpoint_of(options: Mapping[str, Any]) -> str:
    """Return S3's endpoint: in the options, fsspec's and boto's environment, TensorBoard's, and boto's files."""
    given = _given_endpoint(options) or _given_endpoint(of_fsspec("s3"))
    names = ("FSSPEC_S3_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
    given = given or next(filter(None, map(os.environ.get, names)), "") or _of_tensorboard()
    if given:
        return str(given)
    profile = str(options.get("profile") or os.environ.get("AWS_PROFILE") or "")
    return _endpoint_of_profile(os.environ.get("AWS_CONFIG_FILE", ""), profile)


def _of_tensorboard() -> str:
    """Return the endpoint that TensorBoard and tensorboardX are told, as a URL; "" for none.

    Who has it set for them does not mean AWS, whose bucket of that name would be another one. TensorFlow took a host.
    """
    given = os.environ.get("S3_ENDPOINT", "").strip()
    if not given or "://" in given:
        return given
    return f"{'http' if os.environ.get('S3_USE_HTTPS') == '0' else 'https'}://{given}"


def _given_endpoint(options: Mapping[str, Any]) -> str:
    return str(options.get("endpoint_url") or (options.get("client_kwargs") or {}).get("endpoint_url") or "")


def of_fsspec(protocol: str) -> Mapping[str, Any]:
    """Return the options that fsspec adds by itself, from its environment variables and files."""
    from fsspec.config import conf

    return cast("Mapping[str, Any]", conf.get(protocol) or {})


@functools.lru_cache(maxsize=8)
def _endpoint_of_profile(file: str, profile: str) -> str:
    """Return the endpoint in boto's file of configuration; "" for none."""
    del file  # which botocore finds by itself
    try:
        from botocore.configprovider import ConfiguredEndpointProvider
        from botocore.session import Session
    except ImportError:
        return ""
    try:
        session = Session(profile=profile or None)
        provider = ConfiguredEndpointProvider(session.full_config, session.get_scoped_config(), "s3")
        return str(provider.provide() or "")
    except Exception:  # what is wrong with the file or the profile, the driver tells
        return ""


def found_elsewhere(protocol: str, options: Mapping[str, Any]) -> dict[str, str]:
    """Return what tells one store from others and is not in `options` itself, or only beside a secret."""
    if protocol == "s3" and not _given_endpoint(options) and (endpoint := endpoint_of(options)):
        return {"endpoint_url": endpoint}
    if protocol == "abfs" and not options.get("account_name"):
        text = str(options.get("connection_string") or os.environ.get("AZURE_STORAGE_CONNECTION_STRING") or "")
        named = re.search(r"(?i)\bAccountName=([^;]+)", text)
        name = named[1] if named else os.environ.get("AZURE_STORAGE_ACCOUNT_NAME")
        return {"account_name": name} if name else {}
    return {}


def identity(options: Mapping[str, Any]) -> tuple[str, str]:
    """Return what tells the store of some options from others that may have a bucket of the same name."""
    endpoint = _given_endpoint(options).rstrip("/")
    return "" if _is_aws(endpoint) else endpoint, str(options.get("account_name") or "")


def _is_aws(endpoint: str) -> bool:
    host = urlsplit(endpoint).hostname or ""
    return host.endswith((".amazonaws.com", ".amazonaws.com.cn"))


def _has_domain(endpoint: str) -> bool:
    """Say whether a bucket's name can stand before the host: not before an address or a name without a domain."""
    host = urlsplit(endpoint).hostname or ""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return "." in host.strip(".") and not host.endswith(".localhost")
    return False


def _knows_checksums() -> bool:
    from botocore.config import Config  # s3fs brings it

    return "request_checksum_calculation" in Config.OPTION_DEFAULTS
