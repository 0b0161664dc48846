"""The methods of `SummaryWriter`, in groups."""

from tbwriter._methods._adding import UNOPENED, NothingKnown
from tbwriter._methods._arrays import ArrayMethods
from tbwriter._methods._charts import ChartMethods
from tbwriter._methods._events import EventMethods
from tbwriter._methods._graphs import GraphMethods
from tbwriter._methods._media import MediaMethods
from tbwriter._methods._scalars import ScalarMethods

__all__ = [
    "UNOPENED",
    "ArrayMethods",
    "ChartMethods",
    "EventMethods",
    "GraphMethods",
    "MediaMethods",
    "NothingKnown",
    "ScalarMethods",
]
