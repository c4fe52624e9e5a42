# SPDX-License-Identifier: Apache-2.0
"""The tables of the benchmark of a pass, for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
import statistics

from tools.bench import pass_costs
from tools.bench.pass_costs import Check, Cost, NOTHING, PEER

#: MiB settled and at most, by phase and driver, one for each round.
Memory = Mapping[str, Mapping[str, Sequence[Mapping[str, float]]]]
Costs = Mapping[str, Mapping[str, Sequence[Cost]]]


def costs(clusters: int, found: Costs, *, verbose: bool) -> str:
    """Requests and processor milliseconds of each phase, with least and most of the rounds."""
    lines = list[str]()
    for phase, drivers in found.items():
        rounds = len(drivers[NOTHING])
        lines += [
            "",
            f"{phase}: per cluster and pass, {clusters} clusters, {rounds} rounds",
            f"  {'':12}{'requests':>9}{'process':>8}{'processor ms':>24}{'over 0':>24}"
            f"{'part of H':>20}{'passes':>7}",
        ]
        for driver in _present(drivers):
            lines.append(_line(driver, drivers, clusters))
            if verbose:
                lines += [f"{'':14}{text}" for text in _requests(drivers[driver])]
    return "\n".join(lines)


def _present(drivers: Mapping[str, object]) -> list[str]:
    """Those that took turns, in the order of the tables."""
    return [one for one in pass_costs.DRIVERS if one in drivers]


def _line(driver: str, drivers: Mapping[str, Sequence[Cost]], clusters: int) -> str:
    rows = drivers[driver]
    asked = statistics.median(one.asked for one in rows)
    process = statistics.median(one.of_process * clusters for one in rows)
    passes = statistics.median(one.passes for one in rows)
    milliseconds = pass_costs.spread([one.milliseconds for one in rows]).text()
    over = ratio = ""
    if driver != NOTHING:
        over = pass_costs.spread(pass_costs.over(rows, drivers[NOTHING])).text()
    if driver not in (NOTHING, PEER):
        ratio = pass_costs.spread(pass_costs.ratios(drivers, driver)).text()
    return (
        f"  {driver:12}{asked:9.2f}{process:8.1f}{milliseconds:>24}{over:>24}"
        f"{ratio:>20}{passes:7.0f}"
    ).rstrip()


def _requests(rows: Sequence[Cost]) -> Iterator[str]:
    for name in sorted({name for one in rows for name in one.requests}):
        yield f"{statistics.median(one.requests.get(name, 0.0) for one in rows):6.2f} {name}"


def memory(found: Memory) -> str:
    """What a conductor has in memory at the end of a phase, over one whose driver does nothing."""
    lines = ["", "memory of the process over 0, MiB", f"  {'':34}{'settled':>22}{'peak':>22}"]
    for phase, drivers in found.items():
        for driver in (one for one in _present(drivers) if one != NOTHING):
            spreads = [
                pass_costs.spread(
                    [
                        one[key] - zero[key]
                        for one, zero in zip(drivers[driver], drivers[NOTHING], strict=True)
                    ]
                ).text(1)
                for key in ("settled", "peak")
            ]
            lines.append(f"  {phase:22}{driver:12}{spreads[0]:>22}{spreads[1]:>22}")
    return "\n".join(lines)


def phase_verdict(found: Costs) -> tuple[str, int]:
    """:func:`verdict` on the goals of all phases."""
    return verdict(
        [one for phase, drivers in found.items() for one in pass_costs.checks(phase, drivers)]
    )


def verdict(checks: Sequence[Check]) -> tuple[str, int]:
    """A line for each goal, and how many are failed: missed by more than is known."""
    lines = [
        f"goal  {one.text:52}{one.measured:10.4f} <= {one.limit:6.2f}  {one.result}"
        for one in checks
    ]
    return "\n".join(["", *lines, ""]), sum(one.result == "failed" for one in checks)
