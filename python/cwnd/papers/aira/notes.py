"""What the AIRA paper prints, what its text leaves open, and why some claims do not hold."""

from __future__ import annotations

from cwnd.papers.aira_networks import AIMD, BOUNDED, RULES

CHOSEN = (
    "Access links (10 ms each way) and KB = 1024 bytes are not in the text: ns-2's own TCP comes "
    "nearest to the AIMD rows of Tables 1 and 3 and of section 7 with them."
)
A_CAPPED = "a never exceeds 1, the value that section 6.3 calls the fastest."

TABLE_1: dict[str, tuple[str, str, str]] = {
    "a = 2": ("118.9", "742", "1653"),
    "a = 1.5": ("118.9", "548", "1777"),
    "a = 1": ("118.8", "278", "704"),
    "a = 0.5": ("118.9", "172", "452"),
    "a = 0.2": ("118.9", "86", "229"),
    "delayed ACKs": ("118.6", "163", "515"),
}
"""Goodput in KB/s, retransmissions of 2 and of 4 flows, as printed."""

TABLE_3: dict[str, dict[str, str]] = {
    AIMD: {"goodput": "222.3", "retransmissions": "1065", "fairness": "0.8162", "alpha": "1"},
    RULES: {"goodput": "227.1", "retransmissions": "748", "fairness": "0.85", "alpha": "0.98"},
}
"""What is printed of each law."""

TABLE_4: dict[str, dict[str, str]] = {
    AIMD: {"goodput": "200.6", "retransmissions": "2009", "fairness": "0.6594", "alpha": "1"},
    BOUNDED: {
        "goodput": "209.5",
        "retransmissions": "943",
        "fairness": "0.8768",
        "alpha": "0.787",
    },
}
"""What is printed of each law."""

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

_PHASES = (
    "DropTail with a few flows is all phase effects: who meets the full queue is decided by "
    "fractions of a packet time"
)
_FALSE_RESETS = (
    "The reset condition fires although nobody left: W, the window at the last loss, differs from "
    "one round to the next by more than 3/2 when flows do not lose together, and a returns to 1."
)

WHY: dict[str, str] = {
    "table-1 goodput": (
        "1460 of 1500 bytes at 1 Mb/s are 118.8 KB/s, so what is printed is the whole link. Here "
        "the start and the losses of slow start cost 0.4 %, as they do in ns-2 2.35, which has "
        "118.2 to 118.4 on this network."
    ),
    "table-1 retransmissions": (
        _PHASES + ". ns-2 2.35 has 736, 492, 277, 158, 98, 168 and 1626, 1449, 665, 438, 233, 496 "
        "here, from the top. a = 1.5 moves most: 654 and 1489 with access links of 5 ms, 948 and "
        "2186 with 1 ms and 1000 bytes; the printed column is not monotone there either."
    ),
    "fig-10-11 newcomer": (
        "In one of the ten seeds the third AIMD flow loses its first packets, waits for its timer "
        "and gets 13 packets through, which makes that ratio 58. In the others it is about 1."
    ),
    "fig-10-11 together": (
        "With two and three flows it is the other way round whether cuts within 0.06, 0.12 or 0.25 "
        "s count as one: two AIRA flows with the same small a lock to each other, 99 % of their "
        "cuts within 0.12 s. With four flows, from 150 s on, AIRA's are less synchronous: 85 % "
        "within 0.12 s against 98 %."
    ),
    "table-3 AIMD retransmissions": (
        "ns-2 2.35 itself has 1166 here. Tried: access links of 12 ms give 1037, room for one more "
        "packet 1114, 1024-byte packets 1146, access at 100 Mb/s 1164. " + _PHASES + "."
    ),
    "table-3 AIMD fairness": "ns-2 2.35 itself has 0.826 here, as an index of what was sent.",
    "table-3 AIRA goodput": (
        "0.9 % less than printed. With room for one packet more than ns-2 2.35 gives it is "
        "227.1, with 726 retransmissions, but AIMD's row then has 224.1 instead of 222.3."
    ),
    "table-3 AIRA fairness": (
        "Over 20 seeds what is printed lies within the spread of single runs."
    ),
    "table-3 fairness": (
        "In a few seeds a newcomer loses all that it sends in its first rounds: p = 1, a becomes 0 "
        "and stays there, and the flow starves. That is what section 6.1 brings the bound for; "
        "with the bounds AIRA is fairer than AIMD, 0.837 ± 0.005 against 0.824."
    ),
    "table-4 AIMD retransmissions": (
        "ns-2 2.35 itself has 2465 here. Tried: fewer come only with more buffer, 2166 with 9 "
        "packets, and then the goodput is 223.5 instead of 200.6."
    ),
    "table-4 AIMD fairness": (
        "ns-2 2.35 itself has 0.728 here. It depends on the rate of the access links, which the "
        "text has lost: 0.66 at 100 Mb/s, 0.62 without a limit, 0.70 with 1024-byte packets."
    ),
    "table-4 AIRA goodput": (
        "1.6 % less than printed. With access links of 100 Mb/s it is 212.8, and AIMD's "
        "fairness fits as well, but AIRA's is then 0.66 and its retransmissions 1191."
    ),
    "table-4 AIRA fairness": (
        "Fairer than printed. It depends on the rate of the access links, which the text has "
        "lost: 0.66 at 100 Mb/s. What is printed lies between."
    ),
    "table-4 AIRA alpha": (
        "The increases of the distant flows still change from round to round at the end of the "
        "run: when it ends decides. With access links of 100 Mb/s it is 0.93."
    ),
    "fig-12 goodput": "In runs this short, with few flows the losses of slow start decide.",
    "fig-12 fairness": (
        "Not at any size here. Flows at a small a that time out fall behind: at 100 flows there "
        "are 34 timeouts of each against AIMD's one. With four flows, in Table 3, AIRA is fairer "
        "where no flow starves."
    ),
    "fig-12 alpha": (
        "0.99 up to 20 flows. From 40 on some flows lose all that they send in a round, which "
        "takes a to 0 for good, since section 5 has no bound yet: 4 % of the flows at 40, 9 % "
        "at 60, 7 % at 100."
    ),
    "fig-17 fairness": (
        "Too much of a good thing: near flows complete more rounds, their a falls further, and "
        "with 20 flows and more the distant flows get more than twice what the near ones get, "
        "where AIMD gave them half to two thirds. With 8 flows AIRA is fairer, 0.99 against "
        "0.93, as in Table 4."
    ),
    "fig-18": (
        "The text does not derive 0.3. A round is the growth from W/2 to W, so that from W to 3W/2 "
        "takes one more round on the paper's own straight line; it is a little less here because "
        "the queue, and with it the round-trip time, is shorter after the others left."
    ),
    "fig-19 wait": (
        "In most seeds both flows are there after 1 to 2 rounds. In 3 of 20 one flow loses a "
        "packet before it reaches 3/2 of W, and from then on the threshold is higher than what "
        "the link has for it: it never resets, and stays at the a it had, 0.76 to 0.93."
    ),
    "fig-19 level": "It is 0.87 to 0.95 in all but one of the seeds.",
    "fig-20": (
        _FALSE_RESETS + " Without the reset condition it is 114 KB/s and 280 packets, near what is "
        "printed; 120 KB/s is more than the link has for ten flows, 117."
    ),
    "sensitivity lower bound of a": (
        "At a bound of 0 a can come to nothing; how far, a few seeds decide."
    ),
    "sensitivity lower bound of a, without reset": (
        "A bound of half a packet holds up the near flows, whose a would come down to 0.1 or 0.2."
    ),
    "sensitivity rounds until MAIL is at the bound, without reset": (
        "The slower MAIL falls, the longer a is held up: 300 s are some 250 rounds of a near flow. "
        "Without MAIL retransmissions are fewest and fairness is as good: in this network it is "
        "the decrease rule that evens near and far flows out, not MAIL."
    ),
    "sensitivity reset at this many times W": (
        _FALSE_RESETS + " At 3 W, or without reset, retransmissions are near those that Tables 3 "
        "and 4 print; at 3/2 W, the paper's choice, most of AIRA's gain over AIMD is gone."
    ),
}
"""By exhibit and what is claimed."""
