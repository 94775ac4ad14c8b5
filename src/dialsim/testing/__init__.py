"""Kit for regression tests of scheduling: sketch a scenario, run it, assert on the result.

```python
def test_a_busy_line_is_called_again(dialsim_run):
    result = dialsim_run(Sketch(lines=1).campaign("January", "busy 1s; answered 5s 90s",
                                                  max_attempts=2, retry_interval="5m"))
    assert_sequence(result, 0, "SCHEDULED QUEUED INITIATED BUSY |"
                               "SCHEDULED QUEUED INITIATED COMPLETED")
    assert_no_violations(result)
```

The fixtures and options are in the pytest plugin `dialsim.testing.plugin`, which pytest loads if
dialsim is installed. All public names are here; the modules below are private.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dialsim.conformance.table import Violation
    from dialsim.testing.assertions import (
        GoldenTraces,
        assert_no_violations,
        assert_sequence,
        trace_text,
        violations,
    )
    from dialsim.testing.plugin import Host, Runner, Stepper
    from dialsim.testing.receiver import Answer, ReceivedRequest, Receiver
    from dialsim.testing.scheduler import (
        Breach,
        ConformanceError,
        Dial,
        Event,
        Order,
        Scheduler,
        Wake,
        conformance,
    )
    from dialsim.testing.sketch import Sketch, at

# Names are imported on first use, because pytest loads this package in every run.
_HOMES = {
    "Answer": "receiver",
    "Breach": "scheduler",
    "ConformanceError": "scheduler",
    "Dial": "scheduler",
    "Event": "scheduler",
    "GoldenTraces": "assertions",
    "Host": "plugin",
    "Order": "scheduler",
    "ReceivedRequest": "receiver",
    "Receiver": "receiver",
    "Runner": "plugin",
    "Scheduler": "scheduler",
    "Sketch": "sketch",
    "Stepper": "plugin",
    "Violation": "assertions",
    "Wake": "scheduler",
    "assert_no_violations": "assertions",
    "assert_sequence": "assertions",
    "at": "sketch",
    "conformance": "scheduler",
    "trace_text": "assertions",
    "violations": "assertions",
}

__all__ = [
    "Answer",
    "Breach",
    "ConformanceError",
    "Dial",
    "Event",
    "GoldenTraces",
    "Host",
    "Order",
    "ReceivedRequest",
    "Receiver",
    "Runner",
    "Scheduler",
    "Sketch",
    "Stepper",
    "Violation",
    "Wake",
    "assert_no_violations",
    "assert_sequence",
    "at",
    "conformance",
    "trace_text",
    "violations",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'dialsim.testing' has no attribute {name!r}")
    value = getattr(import_module(f"dialsim.testing.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
