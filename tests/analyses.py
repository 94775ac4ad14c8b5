"""Ten analyses by public names only, in the current folder; mypy (strict) accepts them."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pandas as pd

import dialsim


def gap90(result: dialsim.Result) -> float:
    """Return the 90 % quantile of the minutes between a call's creation and its dial."""
    calls = result.calls
    waits = (calls["initiated_at"] - calls["created_at"]).dt.total_seconds()
    return float(waits.quantile(0.9)) / 60


def main() -> None:
    """Run the analyses, each of which checks itself."""
    mpl.use("Agg")
    # 1. A DataFrame of one's own, with a column of one's own
    people = pd.DataFrame(
        {
            "tel": [f"08{k:08}" for k in range(200)],
            "segment": np.where(np.arange(200) % 4 == 0, "gold", "other"),
            "branch": np.where(np.arange(200) % 2 == 0, "BKK", "CNX"),
        }
    )
    scenario = dialsim.scenario(people, lines=3, attempts=2, costs={"perDial": 0.5})
    result = dialsim.run(scenario, seed=7)
    calls = result.calls_with("branch")
    assert set(calls["branch"]) == {"BKK", "CNX"}
    # 2. Funnel by segment
    dialled = calls[calls["attempt"].notna()]
    funnel = dialled.groupby("segment", observed=True)[["attempt", "call_started_at"]].count()
    assert (funnel["call_started_at"] <= funnel["attempt"]).all()
    # 3. Heatmap of answers by weekday and hour
    result.plot.answers()
    # 4. Occupancy of the lines
    result.plot.occupancy()
    # 5. Response surface with intervals
    vary: dict[str, list[object]] = {"lines": [2, 4], "retryInterval": ["2h", "30m"]}
    swept = dialsim.sweep(scenario, vary, 4, jobs=1)
    surface = swept.intervals().query("figure == 'people_reached' and scope == 'run'")
    assert (surface["mean_low"] <= surface["mean_high"]).all()
    assert len(surface) == 4
    # 6. Cost frontier
    best = dialsim.optimize(
        scenario, vary, "mean(people_reached) >= 50", minimize="mean(cost)",
        replications=4, max_replications=8, jobs=1,
    )  # fmt: skip
    best.plot.frontier()
    # 7. Survival of the time to the first reach
    recipients = result.recipients
    hours = (recipients["reached_at"] - recipients["reached_at"].min()).dt.total_seconds() / 3600
    survival = [float((~(hours <= hour)).mean()) for hour in range(24)]
    assert survival == sorted(survival, reverse=True)
    # 8. Paired comparison
    compared = dialsim.compare({"3": scenario, "6": scenario.with_(lines=6)}, 6, jobs=1)
    assert compared.differences()["unit"].notna().all()
    # 9. A figure of one's own
    runs = dialsim.replicate(scenario, 3, figures={"gap90": gap90}, jobs=1)
    assert "gap90" in set(runs.intervals()["figure"])
    # 10. Parquet
    place = result.write("out")
    assert len(pd.read_parquet(place / "calls.parquet")) == len(result.calls)
    assert dialsim.open(place).calls.equals(result.calls)


if __name__ == "__main__":
    main()
