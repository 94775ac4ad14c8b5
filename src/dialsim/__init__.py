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

if TYPE_CHECKING:
    from dialsim.engine.simulation import Simulation
    from dialsim.evidence.calibrate import Calibration, calibrate
    from dialsim.evidence.log import Log, read_log
    from dialsim.evidence.verify import Verified, verify
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
    from dialsim.studio import explore

__version__ = "0.1.0"

# Names are imported when first used, so that `import dialsim` and `dialsim --help` stay quick.
_HOMES = {
    "Calibration": "dialsim.evidence.calibrate",
    "Comparison": "dialsim.experiments.comparison",
    "DialsimError": "dialsim.interface.errors",
    "Forecast": "dialsim.experiments.forecast",
    "Log": "dialsim.evidence.log",
    "Optimum": "dialsim.experiments.optimum",
    "Plan": "dialsim.experiments.plan",
    "Refused": "dialsim.interface.errors",
    "Replications": "dialsim.experiments.replications",
    "Result": "dialsim.results.result",
    "Sandbox": "dialsim.sandbox.client.sandbox",
    "Scenario": "dialsim.scenario.scenario",
    "ScenarioError": "dialsim.scenario.problems",
    "Simulation": "dialsim.engine.simulation",
    "Sweep": "dialsim.experiments.sweep",
    "Verified": "dialsim.evidence.verify",
    "calibrate": "dialsim.evidence.calibrate",
    "compare": "dialsim.experiments.comparison",
    "explore": "dialsim.studio",
    "for_excel": "dialsim.results.excel",
    "forecast": "dialsim.experiments.forecast",
    "load": "dialsim.scenario.loading",
    "loads": "dialsim.scenario.loading",
    "optimize": "dialsim.experiments.optimum",
    "plan": "dialsim.experiments.plan",
    "read_log": "dialsim.evidence.log",
    "replicate": "dialsim.experiments.replications",
    "run": "dialsim.results.result",
    "sweep": "dialsim.experiments.sweep",
    "verify": "dialsim.evidence.verify",
}

__all__ = [
    "Calibration",
    "Comparison",
    "DialsimError",
    "Forecast",
    "Log",
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
    "Verified",
    "__version__",
    "calibrate",
    "compare",
    "explore",
    "for_excel",
    "forecast",
    "load",
    "loads",
    "optimize",
    "plan",
    "read_log",
    "replicate",
    "run",
    "sweep",
    "verify",
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
