"""What may be written down of options and errors, and what may not."""

import os

import pytest

from tbwriter import EventFileWriter, SummaryWriter, open_sink, read_events, ship, sinks, verify
from tbwriter.sinks._credentials import hide, safe_options, without_user
from tbwriter.sinks._options import found_elsewhere, identity, with_defaults
from tbwriter.sinks._store import is_refusal

OPTIONS = {
    "key": "AKIAEXAMPLE",
    "secret": "wJalrXUtnFEMI",
    "endpoint_url": "https://user:hunter2@store.example.com",
    "anon": False,
    "client_kwargs": {"region_name": "eu-1", "aws_session_token": "token-of-session"},
    "connection_string": "AccountName=a;AccountKey=c2VjcmV0a2V5;",
    "credential": object(),
    "token": "ya29.a/token+of=google",
}


def test_what_a_store_demands_of_each_object_is_written_down_and_its_secret_keys_are_not():
    """Without, `ship` is refused by a bucket that wants encryption, or stores what nobody else may read."""
    kwargs = {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": "arn:aws:kms:eu-1:1:key/a", "ACL": "private"}
    secret = {"SSECustomerKey": "c2VjcmV0", "CopySourceSSECustomerKey": "c2VjcmV0"}
    options = {"profile": "mine", "s3_additional_kwargs": {**kwargs, **secret}}
    assert safe_options(options) == {"profile": "mine", "s3_additional_kwargs": kwargs}


def test_only_known_options_are_written_down():
    assert safe_options(OPTIONS) == {
        "endpoint_url": "https://store.example.com",
        "anon": False,
        "client_kwargs": {"region_name": "eu-1"},
    }


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("bad secret wJalrXUtnFEMI", "bad secret ***"),
        ("token-of-session has expired", "*** has expired"),
        ("GET https://x/y?sig=abc%2F&se=1", "GET https://x/y?sig=***&se=1"),
        ("https://x/?X-Amz-Signature=0123&a=b", "https://x/?X-Amz-Signature=***&a=b"),
        ("GET https://x/y?t=ya29.a%2Ftoken%2Bof%3Dgoogle&a=b", "GET https://x/y?t=***&a=b"),
        ("AccountKey=other;EndpointSuffix=x", "AccountKey=***;EndpointSuffix=x"),
        ("sftp://me:pass@host/run is down", "sftp://***@host/run is down"),
        ("nothing to hide at https://x/y?a=b", "nothing to hide at https://x/y?a=b"),
    ],
)
def test_secrets_in_messages_are_hidden(text, shown):
    assert hide(text, OPTIONS) == shown


def test_secrets_of_the_environment_are_hidden(monkeypatch):
    monkeypatch.setenv("MY_SECRET_TOKEN", "from-the-environment")
    assert hide("refused: from-the-environment", {}) == "refused: ***"


def test_a_user_and_a_password_in_a_url_are_in_no_repr():
    writer = SummaryWriter("sftp://me:hunter2@host/run", write_to_disk=False)
    assert "hunter2" not in repr(writer) + repr(writer.__getstate__())
    assert without_user("sftp://me:hunter2@host/run") == "sftp://host/run"


@pytest.mark.parametrize(
    ("endpoint", "style"),
    [
        ("https://obs.cn-north-4.myhuaweicloud.com", "virtual"),
        ("https://oss-cn-hangzhou.aliyuncs.com", "virtual"),
        ("http://127.0.0.1:9000", "path"),
        ("http://[::1]:9000", "path"),
        ("http://localhost:9000", "path"),
        ("http://minio:9000", "path"),
    ],
)
def test_compatible_stores_get_the_style_and_the_checksums_that_they_take(endpoint, style):
    pytest.importorskip("botocore")
    config = with_defaults("s3", "s3", {"endpoint_url": endpoint})["config_kwargs"]
    assert config["s3"] == {"addressing_style": style}
    assert config["request_checksum_calculation"] == config["response_checksum_validation"] == "when_required"
    assert (config["connect_timeout"], config["read_timeout"]) == (5, 15)


def test_amazon_is_left_to_its_own_defaults(monkeypatch):
    for name in ("AWS_ENDPOINT_URL", "S3_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", os.devnull)
    for options in ({}, {"endpoint_url": "https://s3.eu-central-1.amazonaws.com"}):
        assert set(with_defaults("s3", "s3", options)["config_kwargs"]) == {
            "connect_timeout",
            "read_timeout",
            "retries",
        }


def test_what_the_user_says_goes_before_our_defaults():
    pytest.importorskip("botocore")
    given = {"s3": {"addressing_style": "path", "payload_signing_enabled": True}, "read_timeout": 60}
    options = {"endpoint_url": "https://minio.example.com", "config_kwargs": given}
    config = with_defaults("s3", "s3", options)["config_kwargs"]
    assert config["s3"] == {"addressing_style": "path", "payload_signing_enabled": True}
    assert config["read_timeout"] == 60
    assert config["request_checksum_calculation"] == "when_required"


class HttpError(Exception):
    def __init__(self, status):
        super().__init__(f"status {status}")
        self.status_code = status


@pytest.mark.parametrize(
    ("error", "refusal"),
    [
        (FileNotFoundError("bucket"), True),
        (PermissionError("key"), True),
        (HttpError(403), True),
        (HttpError(503), False),
        (TypeError("option"), True),
        (TimeoutError("slow"), False),
        (ConnectionResetError("reset"), False),
        (OSError(16, "Service Unavailable"), False),
    ],
)
def test_errors_that_waiting_does_not_mend(error, refusal):
    assert is_refusal(error) is refusal
    wrapped = RuntimeError("wrapped")
    wrapped.__cause__ = error
    assert is_refusal(wrapped) is refusal


@pytest.mark.parametrize("place", ["environment", "tensorboard", "file", "profile", "services", "fsspec"])
def test_an_endpoint_is_found_where_the_driver_finds_it(monkeypatch, tmp_path, place):
    """And the settings that compatible stores need go with it, and a spool says where it belongs."""
    pytest.importorskip("botocore")
    from fsspec.config import conf

    url = "https://obs.cn-north-4.myhuaweicloud.com"
    files = {
        "file": f"[default]\nendpoint_url = {url}\n",
        "profile": f"[profile mine]\nendpoint_url = {url}\n",
        "services": f"[default]\nservices = mine\n[services mine]\ns3 =\n  endpoint_url = {url}\n",
    }
    (tmp_path / "config").write_text(files.get(place, ""))
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_PROFILE", "FSSPEC_S3_ENDPOINT_URL", "S3_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    if place == "environment":
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
    if place == "tensorboard":
        monkeypatch.setenv("S3_ENDPOINT", url)
    if place == "fsspec":
        monkeypatch.setitem(conf, "s3", {"endpoint_url": url})
    options = {"profile": "mine"} if place == "profile" else {}
    config = with_defaults("s3", "s3", options)["config_kwargs"]
    assert config["s3"] == {"addressing_style": "virtual"}
    assert config["request_checksum_calculation"] == "when_required"
    assert found_elsewhere("s3", options) == {"endpoint_url": url}


@pytest.mark.parametrize(
    ("given", "https", "want"),
    [
        ("http://minio:9000", None, "http://minio:9000"),
        ("minio.example.com", None, "https://minio.example.com"),
        ("minio:9000", "0", "http://minio:9000"),
    ],
)
def test_the_driver_is_told_the_endpoint_that_tensorboard_and_tensorboardx_are_told(monkeypatch, given, https, want):
    """Boto knows nothing of it, and would write into a bucket of that name at Amazon's."""
    pytest.importorskip("botocore")
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "FSSPEC_S3_ENDPOINT_URL", "S3_USE_HTTPS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("S3_ENDPOINT", given)
    if https is not None:
        monkeypatch.setenv("S3_USE_HTTPS", https)
    assert with_defaults("s3", "s3", {})["endpoint_url"] == want
    assert with_defaults("s3", "s3", {"endpoint_url": "http://other:1"})["endpoint_url"] == "http://other:1"
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://boto:1")
    assert "endpoint_url" not in with_defaults("s3", "s3", {})


def test_an_account_is_known_without_its_key():
    assert found_elsewhere("abfs", {"connection_string": "AccountName=mine;AccountKey=c2VjcmV0"}) == {
        "account_name": "mine"
    }


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ({"endpoint_url": "http://minio:9000"}, {"client_kwargs": {"endpoint_url": "http://minio:9000/"}}, True),
        ({"endpoint_url": "https://s3.eu-central-1.amazonaws.com"}, {}, True),
        ({"endpoint_url": "http://minio:9000"}, {}, False),
        ({"account_name": "a"}, {"account_name": "b"}, False),
        ({"endpoint_url": "http://minio:9000", "verify": False}, {"endpoint_url": "http://minio:9000"}, True),
    ],
)
def test_two_stores_are_one_where_endpoint_and_account_are(one, other, same):
    assert (identity(one) == identity(other)) == same


@pytest.mark.parametrize(
    ("code", "refused"),
    [
        *(("InvalidToken", True), ("InvalidAccessKeyId", True), ("ExpiredToken", True), ("AccessDenied", True)),
        *(("InvalidBucketName", True), ("NoSuchBucket", True), ("PermanentRedirect", True), ("KeyTooLongError", True)),
        *(("AuthorizationHeaderMalformed", True), ("SlowDown", False), ("InternalError", False)),
        *(("RequestTimeout", False), ("IncompleteBody", False), ("503", False)),
    ],
)
def test_answers_of_s3_against_which_waiting_does_not_help_are_refusals(code, refused):
    errors = pytest.importorskip("s3fs.errors")
    exceptions = pytest.importorskip("botocore.exceptions")
    answer = exceptions.ClientError({"Error": {"Code": code, "Message": "said"}}, "PutObject")
    assert is_refusal(errors.translate_boto_error(answer)) == refused


@pytest.mark.parametrize(
    "call",
    [
        lambda place, options: SummaryWriter(place, storage_options=options),
        lambda place, options: EventFileWriter(place, storage_options=options),
        lambda place, options: open_sink(place, name="a", storage_options=options),
        lambda _, options: list(read_events("s3://bucket/run", storage_options=options)),
        lambda _, options: verify("s3://bucket/run", storage_options=options),
        lambda _, options: sinks.put_file("s3://bucket/run", "a", b"", options),
        lambda place, options: ship(place, storage_options=options),
    ],
)
@pytest.mark.parametrize("options", ['{"secret": "hunter2"}', [("secret", "hunter2")], {1: "hunter2"}])
def test_what_are_no_options_is_refused_by_name_and_not_shown(tmp_path, call, options):
    with pytest.raises(TypeError, match=r"^storage_options must be a dict") as raised:
        call(str(tmp_path), options)
    assert "hunter2" not in str(raised.value)
    assert list(tmp_path.iterdir()) == []
