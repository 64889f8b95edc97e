"""The tables and figures of the AIRA paper."""

from __future__ import annotations

from cwnd.papers.aira import networks as net
from cwnd.papers.aira.measures import row
from cwnd.papers.exhibit import Lab, exhibit
from cwnd.papers.figure import Curve, Figure, Panel
from cwnd.papers.grades import alike

FLOWS = (2, 4)


@exhibit("table-1", cost=2, seeds=(10, 40), quick=(5, 10))
def table_1(lab: Lab) -> None:
    """Retransmissions follow the increase a, goodput does not."""
    printed = lab.text.printed["rows"]
    cases = {}
    for name in printed.rows:
        delayed = name == "delayed ACKs"
        law = net.AIMD if delayed or name == "a = 1" else f"aimd(alpha={name[4:]}, beta=1/2)"
        for flows in FLOWS:
            cases[name, flows] = net.table_1(law, flows, delayed_acks=delayed)
    runs = lab.run(cases, row)

    def column(name: str, flows: int, quantity: str) -> list[float]:
        return [run[quantity] for run in runs[name, flows]]

    lab.cells(
        "rows",
        {
            name: {
                "goodput, KB/s": column(name, 2, "goodput"),
                **{f"{n} flows, packets": column(name, n, "retransmissions") for n in FLOWS},
            }
            for name in printed.rows
        },
    )
    for flows in FLOWS:
        fast, slow = (column(name, flows, "goodput") for name in ("a = 2", "a = 0.2"))
        lab.claim("no-gain", alike(fast, slow), flows=flows)
    x = [float(name[4:]) for name in printed.rows if name.startswith("a = ")]
    panels = []
    for flows in FLOWS:
        head = f"{flows} flows, packets"
        measured = [column(f"a = {a:g}", flows, "retransmissions") for a in x]
        published = [float(cell) for cell in printed.column(head).values()][: len(x)]
        curves = [
            Curve.of_means("measured", x, measured),
            Curve("published", x, published, "published"),
        ]
        panels.append(Panel("additive increase a, packets", "retransmissions", curves, head))
    lab.show(Figure("Retransmissions against the additive increase", panels))
