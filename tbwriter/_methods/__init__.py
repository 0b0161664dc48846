"""The methods of the writers, in groups."""

from tbwriter._methods._adding import NothingKnown
from tbwriter._methods._arrays import ArrayMethods
from tbwriter._methods._charts import ChartMethods
from tbwriter._methods._events import EventMethods
from tbwriter._methods._graphs import GraphMethods
from tbwriter._methods._media import MediaMethods
from tbwriter._methods._scalars import ScalarMethods
from tbwriter._methods._storing import Storing

__all__ = [
    "ArrayMethods",
    "ChartMethods",
    "EventMethods",
    "GraphMethods",
    "MediaMethods",
    "NothingKnown",
    "ScalarMethods",
    "Storing",
]
