"""Points for the projector: the files that hold them, and the configuration that names these."""

from __future__ import annotations

import io
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from google.protobuf import text_format

from tbwriter._pb import plugins_pb2 as plugins
from tbwriter._summary import _pixels
from tbwriter._summary._values import as_array, items_of, text_of
from tbwriter._summary._words import check_tag, describe, shown

CONFIG_NAME = "projector_config.pbtxt"
_MAX_SPRITE_SIDE = 8192
"""The largest texture that browsers take everywhere."""
_NOTHING_TO_SEE = "\u200b"  # a space of no width, which JavaScript does not count as blank


@dataclass(frozen=True)
class Embedding:
    """Points that wait to become files."""

    tag: str
    folder: tuple[str, str]
    """Where its files go, below the run's directory: the step in five digits, and the tag."""
    points: npt.NDArray[Any]
    """Of shape [n, dimensions]."""
    table: tuple[tuple[str, ...], ...]
    """Rows of labels, a header first where there are several columns; empty for no labels."""
    images: npt.NDArray[Any] | None
    """Of shape [n, height, width, channels]."""

    @classmethod
    def of(cls, tag: Any, step: int, points: Any, *, labels: Any, header: Any, images: Any, copy: bool) -> Embedding:
        """Take points and what is known of each.

        Args:
            tag: the name that the projector shows.
            step: of the training.
            points: of shape [n, dimensions].
            labels: n of them, each turned to text, a tensor's number without the tensor's name; or n rows of them
                with a `header`; or None.
            header: the names of the columns of `labels`.
            images: of shape [n, channels, height, width], see `_pixels.pixels` for what the numbers mean; or None.
            copy: False hands the arrays over.

        Raises:
            TypeError: no arrays of real numbers. ValueError: the numbers of points, labels and images differ, or the
                images fill more than 8192 by 8192 pixels. ImportError: there are images and no Pillow.
        """
        tag = check_tag(tag)
        matrix = as_array(points, tag)
        if matrix.ndim != 2 or 0 in matrix.shape:
            raise ValueError(f"tag {shown(tag)}: mat must be of shape (points, dimensions), got {describe(points)}")
        table = () if labels is None else _table(tag, labels, header, len(matrix))
        pictures = None
        if images is not None:
            _pixels.require_pillow(tag, "images of points")
            pictures = _pictures(tag, images)
            if len(pictures) != len(matrix):
                raise ValueError(
                    f"tag {shown(tag)}: got {len(pictures)} images for {len(matrix)} points, want one for each"
                )
            side = _columns(pictures.shape) * pictures.shape[2]
            if side > _MAX_SPRITE_SIDE:
                raise ValueError(
                    f"tag {shown(tag)}: label_img fills {side} by {side} pixels and the projector shows "
                    f"{_MAX_SPRITE_SIDE}; use fewer or smaller images"
                )
            pictures = np.array(pictures) if copy else pictures
        folder = (f"{step:05}", _as_name(tag))
        return cls(tag, folder, np.array(matrix) if copy else matrix, table, pictures)

    @property
    def nbytes(self) -> int:
        """Memory held, in bytes."""
        held = self.points.nbytes + (0 if self.images is None else self.images.nbytes)
        return int(held) + sum(sys.getsizeof(row) + 8 + sum(map(sys.getsizeof, row)) for row in self.table)

    def files(self) -> Iterator[tuple[str, bytes]]:
        """Yield the names and contents of the files in `folder`; everything costly happens here, in the worker."""
        yield "tensors.tsv", self._tensors()
        if self.table:
            yield "metadata.tsv", "".join("\t".join(row) + "\n" for row in self.table).encode("utf-8")
        if self.images is not None:
            columns = _columns(self.images.shape)
            sheet = _pixels.grid(_pixels.pixels(self.images), columns)
            square = np.zeros((sheet.shape[1], *sheet.shape[1:]), np.uint8)
            square[: len(sheet)] = sheet
            yield "sprite.png", _pixels.encode_png(_pixels.picture(square))

    def _tensors(self) -> bytes:
        points = self.points
        digits = {"f": 17 if points.dtype.itemsize > 4 else 9}.get(points.dtype.kind, 20)
        line = "\t".join([f"%.{digits}g"] * points.shape[1]) + "\n"
        out = io.StringIO()
        for row in points:  # one row at a time: the training's thread wants the interpreter too
            out.write(line % tuple(row.tolist()))
        return out.getvalue().encode("ascii")

    def config(self, before: bytes) -> bytes:
        """Return the projector's configuration: `before`, which may be empty, with this embedding in it.

        Raises:
            ValueError: `before` is no configuration.
        """
        config = _parsed(before)
        place = "/".join(self.folder)
        info = plugins.EmbeddingInfo(tensor_name=f"{self.tag}:{self.folder[0]}", tensor_path=f"{place}/tensors.tsv")
        if self.table:
            info.metadata_path = f"{place}/metadata.tsv"
        if self.images is not None:
            _, height, width, _ = self.images.shape
            info.sprite.image_path = f"{place}/sprite.png"
            info.sprite.single_image_dim.extend([width, height])
        others = [one for one in config.embeddings if one.tensor_name != info.tensor_name]
        del config.embeddings[:]
        config.embeddings.extend([*others, info])
        return text_format.MessageToString(config, as_utf8=True).encode("utf-8")


def embeddings_in(config: bytes) -> list[tuple[str, str]]:
    """Return name and path of tensors, below the run's directory, of each embedding in a projector's configuration.

    Raises:
        ValueError: it is none.
    """
    return [(one.tensor_name, one.tensor_path) for one in _parsed(config).embeddings]


def _parsed(config: bytes) -> plugins.ProjectorConfig:
    found = plugins.ProjectorConfig()
    try:
        text_format.Parse(config.decode("utf-8"), found, allow_unknown_field=True)
    except (text_format.ParseError, UnicodeDecodeError) as exc:
        raise ValueError(f"{CONFIG_NAME}: there is one already that cannot be read: {exc}") from exc
    return found


def _table(tag: str, labels: Any, header: Any, number: int) -> tuple[tuple[str, ...], ...]:
    rows = items_of(labels, f"tag {shown(tag)}: metadata", "a list of labels")
    if len(rows) != number:
        raise ValueError(f"tag {shown(tag)}: got {len(rows)} labels for {number} points, want one for each")
    if header is None or (isinstance(header, (str, list, tuple)) and not header):
        return tuple(_seen((_cell(tag, label),)) for label in rows)
    where = f"tag {shown(tag)}: metadata_header"
    names = [header] if isinstance(header, str) else items_of(header, where, "a list of the columns' names")
    lists = []
    for row in rows:
        cells = (
            [] if isinstance(row, str) else items_of(row, f"tag {shown(tag)}: with metadata_header, a label", "a list")
        )
        if len(cells) != len(names):
            raise ValueError(
                f"tag {shown(tag)}: metadata_header has {len(names)} columns, so that each label must be a list of "
                f"as many, got {describe(row)}"
            )
        lists.append(_seen(tuple(_cell(tag, cell) for cell in cells)))
    # TensorBoard takes the first line for a header only where there are several columns.
    return (_seen(tuple(_cell(tag, name) for name in names)), *lists) if len(names) > 1 else tuple(lists)


def _seen(row: tuple[str, ...]) -> tuple[str, ...]:
    """Return a row that TensorBoard does not skip: behind a blank line every label would go to another point."""
    is_blank = not "".join(row).replace("\ufeff", "").strip()
    return (_NOTHING_TO_SEE, *row[1:]) if is_blank else row


def _cell(tag: str, label: Any) -> str:
    """Return the text of a label on one line and without tabs, which would begin another column."""
    text = text_of(label, f"tag {shown(tag)}: metadata")
    return " ".join(text.split("\t")).replace("\n", " ").replace("\r", " ")


def _pictures(tag: str, images: Any) -> npt.NDArray[Any]:
    try:
        return _pixels.arrange(tag, images, "NCHW", "NHWC")
    except (TypeError, ValueError) as exc:
        raise type(exc)(
            f"tag {shown(tag)}: label_img must be of shape (points, channels, height, width), 1, 3 or 4 channels and "
            f"no empty side, got {describe(images)}"
        ) from exc


def _columns(shape: tuple[int, ...]) -> int:
    """Return how many images of shape [n, height, width, channels] stand in a row of a square sheet."""
    number, height, width, _ = shape
    columns = max(1, math.isqrt(number * height // width))
    while columns * width < -(-number // columns) * height:
        columns += 1
    return columns


def _as_name(tag: str) -> str:
    """Return a tag as the name of a directory, in the way of torch and tensorboardX."""
    name = tag.replace("%", "%25").replace("/", "%2f").replace("\\", "%5c").replace("\0", "%00")
    return name.replace(".", "%2e") if name in (".", "..") else name
