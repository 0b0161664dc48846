"""A limit on the bytes that the images, sounds or histograms of one tag take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tbwriter._pb import tfevents_pb2 as pb
from tbwriter._summary._event import Summary


class Budget:
    """What the tags of one writer have taken; the worker's thread alone looks at it."""

    def __init__(self, max_tag_bytes: int) -> None:
        """Give every tag `max_tag_bytes`."""
        self.max_tag_bytes = max_tag_bytes
        self.taken: dict[str, int] = {}


@dataclass
class Bounded:
    """A summary that is left out when its tag has used its budget up."""

    summary: Summary
    budget: Budget
    charged: int = field(default=0, init=False)
    """What the tag was charged: a summary is encoded again where its file turned out to be full."""

    @property
    def tag(self) -> str:
        """The tag under which it is stored."""
        return self.summary.tag

    @property
    def nbytes(self) -> int:
        """Memory held, in bytes."""
        return self.summary.nbytes

    def values(self, first: bool) -> Sequence[pb.Summary.Value]:
        """Return the summary's Values.

        Raises:
            ValueError: there is no budget for them; the worker counts the summary as dropped and says so once a tag.
        """
        budget = self.budget
        room = budget.max_tag_bytes - budget.taken.get(self.tag, 0) + self.charged
        values = self.summary.values(first) if room > 0 else []
        size = sum(value.ByteSize() for value in values)
        if room <= 0 or size > room:
            raise ValueError(f"max_tag_bytes={budget.max_tag_bytes} are used up")
        budget.taken[self.tag] = budget.max_tag_bytes - room + size
        self.charged = size
        return values
