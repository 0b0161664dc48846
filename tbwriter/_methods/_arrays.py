"""The methods that add numbers in bulk, and text."""

from __future__ import annotations

from typing import Any

from tbwriter import _summary
from tbwriter._methods._adding import Adding


class ArrayMethods(Adding):
    """Histograms, tensors and text."""

    def add_histogram(
        self,
        tag: str,
        values: Any,
        global_step: Any = None,
        bins: Any = "tensorflow",
        walltime: float | None = None,
        max_bins: int | None = None,
        *,
        copy: bool = True,
    ) -> None:
        """Add a histogram of all finite values of an array; counting happens in the worker.

        NaN and infinite values are left out, said once a tag, and where there are any, their numbers are added as
        the scalars `<tag>/nan_count` and `<tag>/inf_count`, unless these tags hold another kind. With nothing finite
        to count no histogram is added.

        Args:
            tag: as in `add_scalar`.
            values: an array or tensor of any shape, of bool, integers or floats, bfloat16 included; what a masked
                array hides is NaN.
            global_step: as in `add_scalar`.
            bins: the default makes at most 64 buckets between the data's own minimum and maximum; or their number, up
                to 100,000, their edges, or a rule of `numpy.histogram_bin_edges`.
            walltime: as in `add_scalar`.
            max_bins: merges neighbours until at most so many are left.
            copy: False saves a copy; then the array must not be changed until it is flushed.

        Raises:
            TypeError: complex numbers or objects. ValueError: edges that do not rise; a tag used for another kind.
            WriterClosedError: after `close`.
        """
        tag = _summary.check_tag(tag)
        # The worker may add to these tags: they must not hold anything else.
        counts = [self._tb_kinds.setdefault(f"{tag}/{name}", "scalar") == "scalar" for name in _summary.COUNT_NAMES]
        histogram = _summary.Histogram.of(
            tag, values, bins=bins, max_bins=max_bins, copy=copy, told=self._tb_told, counts=all(counts)
        )
        self._tb_add(tag, histogram, "histogram", global_step, walltime)

    def add_histogram_raw(
        self,
        tag: str,
        min: Any,  # noqa: A002 (torch's and tensorboardX's names)
        max: Any,  # noqa: A002
        num: Any,
        sum: Any,  # noqa: A002
        sum_squares: Any,
        bucket_limits: Any,
        bucket_counts: Any,
        global_step: Any = None,
        walltime: float | None = None,
    ) -> None:
        """Add a histogram that was counted elsewhere.

        Args:
            tag: as in `add_scalar`.
            min: of the values: the left edge of the first bucket that holds some.
            max: of the values: the right edge of the last bucket that holds some. Where a NaN among the values has
                spoilt `min` or `max`, the buckets' own limits stand in, which is said once a tag.
            num: how many values there are. TensorBoard shows what the buckets hold; neither this, nor `sum`, nor
                `sum_squares` is stored.
            sum: of the values.
            sum_squares: of the values.
            bucket_limits: rising right edges, of shape (k,): of those that `numpy.histogram` returns all but the first.
            bucket_counts: not negative, of shape (k,). Where all are 0, nothing is added, which is said once a tag.
            global_step: as in `add_scalar`.
            walltime: as in `add_scalar`.

        Raises:
            TypeError: no numbers. ValueError: they do not fit together; a tag used for another kind.
            WriterClosedError: after `close`.
        """
        tag = _summary.check_tag(tag)
        histogram = _summary.HistogramRaw.of(
            tag,
            minimum=min,
            maximum=max,
            unshown=(num, sum, sum_squares),
            limits=bucket_limits,
            counts=bucket_counts,
            told=self._tb_told,
        )
        self._tb_add(tag, histogram, "histogram", global_step, walltime)

    def add_tensor(
        self, tag: str, tensor: Any, global_step: Any = None, walltime: float | None = None, *, copy: bool = True
    ) -> None:
        """Add a tensor as it is. No dashboard of TensorBoard shows it; `tbwriter.read_events` gives it back.

        Args:
            tag: as in `add_scalar`.
            tensor: an array or tensor of any shape, of bool, integers, floats, bfloat16 or complex numbers. What a
                masked array hides is NaN, in bools and integers 0.
            global_step: as in `add_scalar`.
            walltime: as in `add_scalar`.
            copy: as in `add_histogram`.

        Raises:
            TypeError: another dtype. ValueError: 2 GiB or more; a tag used for another kind.
            WriterClosedError: after `close`.
        """
        tag = _summary.check_tag(tag)
        self._tb_add(tag, _summary.Tensor.of(tag, tensor, copy=copy), "tensor", global_step, walltime)

    def add_text(self, tag: str, text_string: Any, global_step: Any = None, walltime: float | None = None) -> None:
        """Add a text in Markdown, or a table of texts from a list.

        Args:
            tag: as in `add_scalar`; stored as `<tag>/text_summary`, as torch and tensorboardX do.
            text_string: a str, or str in a list or array of rank 1 or 2; what a masked array hides is empty.
            global_step: as in `add_scalar`.
            walltime: as in `add_scalar`.

        Raises:
            TypeError, ValueError: no text, or 2 GiB and more. WriterClosedError: after `close`.
        """
        tag = _summary.check_tag(tag)
        text = _summary.Text.of(tag, text_string, suffix="/text_summary")
        self._tb_add(tag, text, "text", global_step, walltime)
