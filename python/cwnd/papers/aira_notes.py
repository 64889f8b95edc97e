"""What the AIRA paper's text leaves open and how it was read, and why some claims do not hold."""

from __future__ import annotations

CHOSEN = (
    "Access links (10 ms each way) and KB = 1024 bytes are not in the text: ns-2's own TCP comes "
    "nearest to the AIMD rows of Tables 1 and 3 and of section 7 with them."
)
A_CAPPED = "a never exceeds 1, the value that section 6.3 calls the fastest."

INFERRED: dict[str, list[str]] = {
    "table-1": [
        (
            "Packets of 1460 bytes, access links of 10 ms: of the choices tried in ns-2 they come "
            "nearest to all twelve counts. The flows start within the first second, at random."
        ),
        (
            "118.9 KB/s is 97.5 % of 1 Mb/s as 1024-byte KB with 1500-byte packets, and more "
            "than the link carries otherwise."
        ),
    ],
    "fig-9": [
        (
            "Section 5.4 comes before the bounds and the reset condition: the law is the decrease "
            "and the increase rule alone."
        ),
        A_CAPPED,
        "The run is 300 s long, as for Table 3. “Very close to 1” is taken as at least 0.95.",
    ],
    "fig-10-11": [
        "The decrease and the increase rule alone, as for Figure 9.",
        (
            "Cuts are together within one round-trip time with a full queue, 0.12 s. “Temporarily” "
            "is taken as: from 10 s after an entry on, Jain's index is at least 0.9."
        ),
    ],
    "table-3": [
        (
            "The decrease and the increase rule alone, as for Figure 9; the last row has every "
            "rule of the paper and is shown beside it."
        ),
        A_CAPPED,
        CHOSEN + " 300 s and 1000-byte packets likewise.",
        (
            "Fairness is Jain's index of what each flow sent in the 300 s, whenever it entered: "
            "Eq. 3 says throughput. α-fairness is that of the increases at the end."
        ),
    ],
    "fig-12": [
        (
            "The numbers of flows are on the lost axis: 8 to 100 here. The decrease and the "
            "increase rule alone, as for Figure 9."
        ),
        "“Approximately the same value” is taken as an α-fairness of at least 0.95.",
    ],
    "fig-13": [
        (
            "The figure is Eq. 23. A flow that loses 5 % of its packets at random is added, so "
            "that the bound is seen at work."
        )
    ],
    "fig-14": [
        "The links are in the lost figure: 1 to 10 Mb/s, 10 to 50 ms, room for 15 packets.",
        (
            "The bounds are on, the reset condition is not yet. Dashed in the figure: the model of "
            "one flow, 3W²/8a packets a round."
        ),
        "“Less than 50 s” is read of the 5 MB; 50 rounds of the longest paths take longer.",
    ],
    "table-4": [
        (
            "Figure 15 with its rates is lost: 2 Mb/s and 20 ms as before, and a buffer of one "
            "bandwidth-delay product of that link, 5 packets. 1000-byte packets as for Table 3."
        ),
        (
            "Section 6.2 has the bounds and not yet the reset condition; the last row of the table "
            "has that as well."
        ),
        A_CAPPED,
    ],
    "fig-17": [
        (
            "What was extended how is lost. As in Figure 12: 20 Mb/s, 8 to 100 flows; the buffer "
            "is again one bandwidth-delay product of the link, 50 packets."
        ),
    ],
    "fig-18": [
        "Times are in rounds of a flow with a = 1, since the figure's scale is lost.",
        (
            "The network of the check is Figure 19's: flows 3 and 4 of 4 leave at 205 s. W is the "
            "mean of a flow's windows at its cuts from 155 to 205 s, a round the mean time between "
            "them."
        ),
    ],
    "fig-19": [
        (
            "Every rule of the paper is on. “Close to 1” is taken as at least 0.9 on average; the "
            "time to notice is bounded by the 2 rounds that section 6.3 calls acceptable."
        )
    ],
    "fig-20": [CHOSEN + " 300 s and 1000-byte packets likewise.", "Every rule is on."],
    "sensitivity": [
        "Beyond the paper. Every rule is on; one choice at a time is not the paper's.",
        "With another bound MAIL ends there, so that its slope changes with it.",
    ],
}
"""By exhibit."""

WHY: dict[str, str] = {}
"""By exhibit and claim."""
