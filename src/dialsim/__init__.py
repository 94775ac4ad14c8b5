"""dialsim: a discrete-event simulator of outbound voice-agent calling.

```python
import dialsim

scenario = dialsim.load("scenarios/first-campaign.yaml")
result = dialsim.run(scenario, seed=7)
result.summary
```

Everything public is here; the modules below are private and may move.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dialsim.version import __version__

if TYPE_CHECKING:
    from dialsim.engine.simulation import Simulation
    from dialsim.experiments.comparison import Comparison, compare
    from dialsim.experiments.forecast import Forecast, forecast
    from dialsim.experiments.optimum import Optimum, optimize
    from dialsim.experiments.plan import Plan, plan
    from dialsim.experiments.replications import Replications, replicate
    from dialsim.experiments.sweep import Sweep, sweep
    from dialsim.interface.errors import DialsimError, Refused
    from dialsim.results.excel import for_excel
    from dialsim.results.result import Result, run
    from dialsim.sandbox.client.sandbox import Sandbox
    from dialsim.scenario.loading import load, loads
    from dialsim.scenario.problems import ScenarioError
    from dialsim.scenario.scenario import Scenario

# Names are imported when first used, so that `import dialsim` and `dialsim --help` stay quick.
_HOMES = {
    "Comparison": "dialsim.experiments.comparison",
    "DialsimError": "dialsim.interface.errors",
    "Forecast": "dialsim.experiments.forecast",
    "Refused": "dialsim.interface.errors",
    "Optimum": "dialsim.experiments.optimum",
    "Plan": "dialsim.experiments.plan",
    "Replications": "dialsim.experiments.replications",
    "Result": "dialsim.results.result",
    "Sandbox": "dialsim.sandbox.client.sandbox",
    "Scenario": "dialsim.scenario.scenario",
    "ScenarioError": "dialsim.scenario.problems",
    "Simulation": "dialsim.engine.simulation",
    "Sweep": "dialsim.experiments.sweep",
    "compare": "dialsim.experiments.comparison",
    "forecast": "dialsim.experiments.forecast",
    "for_excel": "dialsim.results.excel",
    "load": "dialsim.scenario.loading",
    "loads": "dialsim.scenario.loading",
    "optimize": "dialsim.experiments.optimum",
    "plan": "dialsim.experiments.plan",
    "replicate": "dialsim.experiments.replications",
    "run": "dialsim.results.result",
    "sweep": "dialsim.experiments.sweep",
}

__all__ = [
    "Comparison",
    "DialsimError",
    "Forecast",
    "Optimum",
    "Plan",
    "Refused",
    "Replications",
    "Result",
    "Sandbox",
    "Scenario",
    "ScenarioError",
    "Simulation",
    "Sweep",
    "__version__",
    "compare",
    "for_excel",
    "forecast",
    "load",
    "loads",
    "optimize",
    "plan",
    "replicate",
    "run",
    "sweep",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'dialsim' has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
