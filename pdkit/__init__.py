"""May these serving-benchmark numbers be believed, and if so, what do they say?"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from pdkit.capacity import capacity as capacity
    from pdkit.chain import chain as chain
    from pdkit.judge import judge as judge
    from pdkit.load import load as load
    from pdkit.metrics import metric as metric

_FUNCTIONS = ("load", "judge", "chain", "capacity")  # each is the function of the module that has its name
_ROOMS = (
    "cases",
    "charts",
    "checks",
    "errors",
    "evidence",
    "formats",
    "metrics",
    "parts",
    "policy",
    "postmortem",
    "redact",
    "report",
    "results",
    "series",
    "store",
    "tables",
    "weekly",
)


class _FrontDoor(ModuleType):
    """`pdkit.load` is the function, whoever imported the module of that name before: importing would bind it here."""

    def __setattr__(self, name: str, value: object) -> None:
        if name in _FUNCTIONS and isinstance(value, ModuleType):
            value = getattr(value, name)
        super().__setattr__(name, value)


def __getattr__(name: str) -> object:
    """What a notebook asks for, imported when it asks; importing pdkit alone loads nothing."""
    if name == "metric":
        return import_module("pdkit.metrics").metric
    if name not in _FUNCTIONS and name not in _ROOMS:
        raise AttributeError(f"module 'pdkit' has no attribute {name!r}; it has {', '.join(__dir__())}")
    import_module(f"pdkit.{name}")
    return vars(sys.modules[__name__])[name]


def __dir__() -> list[str]:
    return sorted((*_FUNCTIONS, *_ROOMS, "metric", "__version__"))


def load_ipython_extension(_shell: object) -> None:
    """`%load_ext pdkit`: charts are drawn without a network, in pdkit's look."""
    import_module("pdkit.charts.theme").enable()


sys.modules[__name__].__class__ = _FrontDoor
