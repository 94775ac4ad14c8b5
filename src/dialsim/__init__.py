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
    from dialsim.interface.errors import DialsimError, Refused
    from dialsim.results.result import Result
    from dialsim.results.runs import run
    from dialsim.scenario.loading import load, loads
    from dialsim.scenario.models import Scenario
    from dialsim.scenario.problems import ScenarioError

__version__ = "0.1.0"

# Names are imported when first used, so that `import dialsim` and `dialsim --help` stay quick.
_HOMES = {
    "DialsimError": "dialsim.interface.errors",
    "Refused": "dialsim.interface.errors",
    "Result": "dialsim.results.result",
    "Scenario": "dialsim.scenario.models",
    "ScenarioError": "dialsim.scenario.problems",
    "Simulation": "dialsim.engine.simulation",
    "load": "dialsim.scenario.loading",
    "loads": "dialsim.scenario.loading",
    "run": "dialsim.results.runs",
}

__all__ = [
    "DialsimError",
    "Refused",
    "Result",
    "Scenario",
    "ScenarioError",
    "Simulation",
    "__version__",
    "load",
    "loads",
    "run",
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
