"""Discrete-event simulator of outbound voice-agent calling.

```python
scenario = dialsim.load("scenarios/first-campaign.yaml")
result = dialsim.run(scenario, seed=7)
result.summary
```

All public names are here. The submodules are private and may move.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from dialsim.errors import (
    DialsimError,
    ExistingOutput,
    ExperimentError,
    JournalError,
    LogError,
    NotKept,
    OutputError,
    Refused,
    ReplayError,
    ReplicationFailed,
    ScenarioError,
    ServiceError,
    StoreError,
    StudioError,
    ValidationFailed,
    WorkersLost,
)

if TYPE_CHECKING:
    from dialsim.engine.simulation import Simulation
    from dialsim.experiments.forecast import Forecast, forecast
    from dialsim.experiments.optimum import Optimum, optimize
    from dialsim.experiments.plan import Plan, plan
    from dialsim.experiments.replications import Replications, replicate
    from dialsim.experiments.sweep import Comparison, Sweep, compare, sweep
    from dialsim.logs.calibrate import Calibration, calibrate
    from dialsim.logs.log import Log, read_log
    from dialsim.logs.log_comparison import LogComparison, compare_log
    from dialsim.logs.recorded_calls import RecordedCalls
    from dialsim.logs.replay import Replayed, replay
    from dialsim.logs.verify import Verified, check
    from dialsim.results.excel import for_excel
    from dialsim.results.figures import OwnFigure
    from dialsim.results.result import Result, open, run
    from dialsim.sandbox.client import Sandbox
    from dialsim.scenario.behaviour import behaviour
    from dialsim.scenario.loading import load, loads, scenario
    from dialsim.scenario.scenario import Scenario
    from dialsim.studio import explore

__version__ = "0.1.0"

# Names are imported when first used, so that `import dialsim` and `dialsim --help` stay quick.
_HOMES = {
    "Calibration": "dialsim.logs.calibrate",
    "Comparison": "dialsim.experiments.sweep",
    "Forecast": "dialsim.experiments.forecast",
    "Log": "dialsim.logs.log",
    "LogComparison": "dialsim.logs.log_comparison",
    "Optimum": "dialsim.experiments.optimum",
    "OwnFigure": "dialsim.results.figures",
    "Plan": "dialsim.experiments.plan",
    "RecordedCalls": "dialsim.logs.recorded_calls",
    "Replayed": "dialsim.logs.replay",
    "Replications": "dialsim.experiments.replications",
    "Result": "dialsim.results.result",
    "Sandbox": "dialsim.sandbox.client",
    "Scenario": "dialsim.scenario.scenario",
    "Simulation": "dialsim.engine.simulation",
    "Sweep": "dialsim.experiments.sweep",
    "Verified": "dialsim.logs.verify",
    "behaviour": "dialsim.scenario.behaviour",
    "calibrate": "dialsim.logs.calibrate",
    "check": "dialsim.logs.verify",
    "compare": "dialsim.experiments.sweep",
    "compare_log": "dialsim.logs.log_comparison",
    "explore": "dialsim.studio",
    "for_excel": "dialsim.results.excel",
    "forecast": "dialsim.experiments.forecast",
    "load": "dialsim.scenario.loading",
    "loads": "dialsim.scenario.loading",
    "open": "dialsim.results.result",
    "optimize": "dialsim.experiments.optimum",
    "plan": "dialsim.experiments.plan",
    "read_log": "dialsim.logs.log",
    "replay": "dialsim.logs.replay",
    "replicate": "dialsim.experiments.replications",
    "run": "dialsim.results.result",
    "scenario": "dialsim.scenario.loading",
    "sweep": "dialsim.experiments.sweep",
}

__all__ = [
    "Calibration",
    "Comparison",
    "DialsimError",
    "ExistingOutput",
    "ExperimentError",
    "Forecast",
    "JournalError",
    "Log",
    "LogComparison",
    "LogError",
    "NotKept",
    "Optimum",
    "OutputError",
    "OwnFigure",
    "Plan",
    "RecordedCalls",
    "Refused",
    "ReplayError",
    "Replayed",
    "ReplicationFailed",
    "Replications",
    "Result",
    "Sandbox",
    "Scenario",
    "ScenarioError",
    "ServiceError",
    "Simulation",
    "StoreError",
    "StudioError",
    "Sweep",
    "ValidationFailed",
    "Verified",
    "WorkersLost",
    "__version__",
    "behaviour",
    "calibrate",
    "check",
    "compare",
    "compare_log",
    "explore",
    "for_excel",
    "forecast",
    "load",
    "loads",
    "open",
    "optimize",
    "plan",
    "read_log",
    "replay",
    "replicate",
    "run",
    "scenario",
    "sweep",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'dialsim' has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value  # also of `scenario`, although its property takes precedence
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


class _Package(ModuleType):
    """This package, in which `scenario` is the function and not the private package."""

    @property
    def scenario(self) -> Any:
        return __getattr__("scenario")

    @scenario.setter
    def scenario(self, package: ModuleType) -> None:
        """Ignore the private package, which the import system assigns after importing it."""


sys.modules[__name__].__class__ = _Package
