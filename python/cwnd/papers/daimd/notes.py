"""What the DAIMD paper leaves open and how it was read, and why numbers differ."""

from __future__ import annotations

PACKETS = (
    "Packets are of 1500 bytes on the wire, the paper's standard packet; rates count all of them."
)

STARTS = "Flows that start together do so at random within 0.1 s, which is all that seeds change."

SETTLED = (
    "Whether the start of a run counts is not in the text. It is left out: ns-2's TCP has the "
    "stability indices of Table 5 without it only."
)

QUEUE = (
    "The queue is not in the text: 50 packets, ns-2's default. Of 10 to 1000 packets, those of 10 "
    "to 50 come nearest to the rates of Fig. 10 and Tables 2 and 3 with either rule: within 7 % "
    "of Fig. 10 on average at 50 packets, where 1000 packets are 16 to 24 % off."
)

INFERRED: dict[str, tuple[str, ...]] = {
    "protocol": (
        (
            "The stand-in has version 4's rate control, reports, packet pairs and loss reports, "
            "but no handshake, no control packets of real sizes and no light acknowledgements. The "
            "protocol is UDT itself, every datagram of it: 44 of 1500 bytes are headers, and rates "
            "count them, but in Table 1, whose rates are payload."
        ),
        ("Runs are short: what is published is of longer ones and stands beside for orientation."),
        STARTS,
    ),
    "eq-8": (
        "Log is to the base of 10. Eq. 8 has packets/s, Eq. 9 on packets per SYN.",
        (
            "TCP's times are those of 1472 bytes in a packet: 1500 less the headers of IP and "
            "UDP. 1500 bytes give 27.8 min and 4 h 38 min."
        ),
        (
            "By itself a flow leaves slow start at the full rate. A source as fast as the link "
            "holds it down at first. Then the time is taken until what it sends in a tenth of a "
            "second is 90 % of the capacity; the time that Eq. 15 takes from 0 to where it "
            "starts, up to 1 s, is added. Where it does not get there it is the whole run of 16 "
            "s."
        ),
        "Recovery at 1 Gb/s would take hours to simulate: it is simulated where it takes minutes.",
        PACKETS,
    ),
    "table-1": (
        (
            "The experiment ran on a real network whose queue is not known: 2000 packets, as on "
            "the similar network of section VI."
        ),
        (
            "Rates are payload, 1456 of the 1538 bytes of an Ethernet frame: at most 947 Mb/s "
            "(the paper measured about 940 at most)."
        ),
        (
            "Loss is drops at the bottleneck over packets sent in the stage; RTT is what senders "
            "measure. A stage has 100 samples; in the quick run it lasts 7 s instead of 100 s."
        ),
        STARTS,
    ),
    "table-2": (
        QUEUE,
        (
            "Delays are not in the text: 2 ms there and back, which comes nearer to the printed "
            "rates than 20 ms."
        ),
        "80 s are measured after 40 s (5 s after 3 s in the quick run). " + SETTLED,
        PACKETS,
        STARTS,
    ),
    "fig-10": (
        QUEUE,
        "100 s are measured after 20 s (30 s after 5 s in the quick run). " + SETTLED,
        PACKETS,
        STARTS,
    ),
    "table-3": (
        (
            "The figure with capacities and paths is lost. From the rates: flows 3 and 6 share 10 "
            "Mb/s (5.18 + 4.78); flow 1, and flow 2, fill 100 Mb/s beside both (89.3 or 90.0 + "
            "9.96); flows 4 and 5 share 100 Mb/s with one of them (41.7 + 50.8 + 5.18), since "
            "with both it would be 102. Flow 4, the slower of the two, goes on over one link "
            "more. Six nodes as in the caption (the text says five), 10 ms there and back between "
            "neighbours."
        ),
        QUEUE,
        "100 s are measured after 20 s (20 s after 5 s in the quick run). " + SETTLED,
        PACKETS,
        STARTS,
    ),
    "fig-14": (
        "The grid of the figure is lost: four capacities and three round-trip times.",
        (
            "The queue is not in the text but for being much larger than the bandwidth-delay "
            "product at very low capacity: one product, at least 100 packets. At 1 Gb/s and 100 "
            "ms, queues of 50 to 2000 packets give ratios of 15 to 43, of two products 4 (daimd) "
            "and 15 (udt)."
        ),
        (
            "Runs last 300 s (80 s on the shorter paths of 1 Gb/s; less in the quick run), "
            "without the first quarter."
        ),
        "TCP is SACK without delayed ACKs.",
        PACKETS,
        STARTS,
    ),
    "table-4": (
        (
            "Access links are of 10 Gb/s: with those of 1 Gb/s, as the nodes of Fig. 5 have them, "
            "one TCP flow locks out the rest in ns-2."
        ),
        "30 s are measured after 15 s, 100 s after 50 s at 0.1 s and 1 s (less in the quick run), "
        "in samples of a second. " + SETTLED,
        PACKETS,
        STARTS,
    ),
    "table-6": (
        (
            "TCPs run alone for 100 ms there and back on a link on which no queue forms, UDT's "
            "rules for 10 ms on one of the capacity L. Each packet is lost with probability p by "
            "itself."
        ),
        (
            "A run has about 300 losses by the printed response (BIC at 10⁻⁵ 100, the quick run a "
            "seventh), the first quarter not counted."
        ),
        (
            "A response is held to be right within the rule's 5/4: the formulas are for losses at "
            "equal distances."
        ),
        (
            "Increases are those of round trips (SYN) without loss or recovery, decreases those "
            "of cuts, each over what is printed for its window. BIC's is printed as a minimum: "
            "its largest increase is held against 32."
        ),
        "Scalable TCP is printed with ten times the increase that its author gave it; both run.",
        "The stage of UDT's response is that of Eq. 14 with the slip of Eq. 13 mended.",
        PACKETS,
    ),
    "section-7": (
        (
            "The bounds are printed without a network: 100 Mb/s, 20 ms, a queue of one "
            "bandwidth-delay product. L is a power of ten, as printed."
        ),
        (
            "The fourth condition is printed as -0.9 < ε ≤ 0.5; it is read as ≤ -0.5, where it "
            "meets the third."
        ),
        (
            "Only `daimd` can be told a capacity; UDT version 4 always estimates it. "
            "Overestimates by a single flow come from coalesced interrupts, which the simulator "
            "does not have. Underestimates are those of ten flows on the network of Table 4 at 10 "
            "ms: at least 1 %."
        ),
        (
            "The model has both flows at Eq. 4's equilibrium for the one loss rate at which they "
            "fill the link."
        ),
        PACKETS,
        STARTS,
    ),
}
"""By exhibit; Table 5 runs on the network of Table 4."""

_BURSTS = (
    "The rule as printed cuts at every loss report, and an overloaded queue gives dozens of "
    "reports within a round trip: 70 cuts for each overload of ten flows at 0.1 s. UDT version 4 "
    "cuts five times at most."
)

_LAST_RATE = (
    "While it is below its rate before the last decrease, version 4 reckons with at most L/9 to "
    "go. Below y = 90 Mb/s that is a lower power of ten for AC than for AB, which therefore grows "
    "ten times faster; the paper's rule has no such limit."
)

_NS2 = (
    "ns-2.35 on this network agrees with the simulator rather than with the paper: EI 1000 up to "
    "0.01 s, then 879 and 132; FI .998, .998, .999, .997, .94, .72; SI .08, .08, .06, .05, .16, "
    ".02."
)

_QUICK_FLOWS = "Seeds differ by more than what is in question."

_RANDOM = (
    "Losses at random instead of at equal distances: the mean over time is the harmonic mean over "
    "packets, which is lower the more the window varies, and windows do not grow in recovery."
)

WHY: dict[tuple[str, str, str], str] = {
    ("eq-8", "", "far"): (
        "Losses from before the link is free are reported for another round trip and queue, 0.4 s "
        "in all, and at first not every SYN has an ACK to grow on. Neither is in Eq. 15."
    ),
    ("eq-8", "", "near"): "At first not every SYN has an ACK to grow on, as it has in Eq. 15.",
    ("eq-8", "daimd", "stuck"): (
        "It does not get there: the flow window of Eq. 21 is the arrival rate times SYN + RTT, "
        "which is about what a flow of 16 packets a round trip has already. The rate grows to L, "
        "but the window keeps the flow at 0.9 Mb/s. Version 4 adds 16 packets."
    ),
    ("table-1", "daimd", "alone"): (
        "Alone it keeps the queue empty and sends what the link can carry; the paper's hosts sent "
        "less. What is lost is lost in slow start."
    ),
    ("table-1", "daimd", ""): (
        _BURSTS + " Queues of 200 and of 8127 packets, no flow window, or L given change little."
    ),
    ("table-1", "udt", "alone"): (
        "The flow window lets a flow keep 10 ms of packets and 16 more in the queue. What is lost "
        "is lost in slow start."
    ),
    ("table-1", "udt", "RTT, ms"): (
        "The queue is a guess: with 200 packets it is 104 ms, with 8127 packets 145 to 155 ms."
    ),
    ("table-1", "udt", ""): (
        "Flows that all grow by a packet in each SYN overload the link by a tenth before reports "
        "come back after 104 ms: some 10⁻² is lost, and each overload costs a few cuts. It is so "
        "with queues of 200 to 8127 packets. What kept the losses of the real network at 10⁻⁶ to "
        "10⁻³ is not known."
    ),
    ("table-2", "daimd", "narrow"): (
        "Slow start overruns the narrow link, a cut for every loss report takes the flow to a "
        "packet a second, and it grows only in a SYN with an ACK, by 10⁻³ or 10⁻⁴ packets: it is "
        "back within 80 s at 1 Mb/s, after 300 s at 0.1 Mb/s. AB has what it leaves."
    ),
    ("table-2", "daimd", ""): _BURSTS
    + (
        " AC, which grows by a tenth of AB's increase while AB is below 100 Mb/s, takes longer to "
        "come back from them. With 10 packets of queue AC has 92 % at 60 and 85 to 91 % from 80 "
        "Mb/s on."
    ),
    ("table-2", "udt", "narrow"): (
        "AC fills its link more than was printed; AB is nearly alone on 200 Mb/s, and each "
        "overload of the short queue costs it a few cuts."
    ),
    ("table-2", "udt", "below"): _LAST_RATE,
    ("table-2", "udt", ""): (
        "What the two rates together leave of 200 Mb/s after each overload is missing from AC's "
        "fair share, which is half of the full link."
    ),
    ("fig-10", "", "SI"): (
        "The queue is a guess: with daimd one between 200 and 500 packets has that SI, and then "
        "rates are further off. With udt SI is 0.12 to 0.15 for queues of 10 to 1000 packets."
    ),
    ("fig-10", "", ""): (
        "The queue is a guess, but none from 10 to 1000 packets gives the nearest flow 25 Mb/s: "
        "at most 22.3 with daimd, 20.6 with udt. With 10 or 20 packets FI is .967 with daimd."
    ),
    ("table-3", "", "1"): (
        "The queue is a guess: 100 packets give flows 1 and 2 with daimd 89.6 and 91.0 Mb/s, but "
        "flows 4 and 5 only 40.3 and 41.6."
    ),
    ("table-3", "", "2"): (
        "The queue is a guess: 100 packets give flows 1 and 2 with daimd 89.6 and 91.0 Mb/s, but "
        "flows 4 and 5 only 40.3 and 41.6."
    ),
    ("table-3", "", ""): (
        "Flow 3 got more than flow 6, and flow 5 more than flow 4, which share a bottleneck in "
        "the network inferred. Something in the lost figure tells them apart the other way round, "
        "or by more, than one link more on the way does here."
    ),
    ("protocol", "", "FI"): (
        "The start: after 5 s the stand-in's ten flows still have what slow start left them. Over "
        "the last 20 of 40 s FI is 0.99 with either."
    ),
    ("protocol", "", ""): (
        "The start: the handshake takes two round-trip times in which nothing is sent. Slow start "
        "then loses more (3669 packets to 1722 at 1 Gb/s and 104 ms) and ends at the lower arrival "
        "rate of that time, from which it climbs as fast as the stand-in. Alone for a minute on "
        "100 Mb/s, and on 1 Gb/s with losses of 10⁻⁵, the two are within 1 %."
    ),
    ("fig-14", "udt", "five"): (
        "Eq. 19 itself has 24 here. The ratio depends on the queue: two products give 15, and 7 "
        "over the first 100 s, in which TCP still has what slow start gave it. Which queue and "
        "how long the paper's runs were is not in the text."
    ),
    ("fig-14", "udt", "slow"): (
        "Eq. 19 and 20 have no queue: 100 packets add 0.12 s to TCP's RTT at 10 Mb/s and 1.2 s at "
        "1 Mb/s, whatever the path. Eq. 19 at 0.12 s has 3, at 1.2 s 9. At 1 Mb/s version 4 also "
        "grows ten times as fast as the rule, by its least increase."
    ),
    ("fig-14", "daimd", "slow"): (
        "Eq. 19 and 20 have no queue: 100 packets add 0.12 s to TCP's RTT at 10 Mb/s, where Eq. "
        "19 has 3, and 1.2 s at 1 Mb/s, whatever the path."
    ),
    ("fig-14", "daimd", "very slow"): (
        "At 1 Mb/s the rule as printed grows by 10⁻³ packets in a SYN with an ACK and is cut at "
        "every loss report. Version 4, which grows by 10⁻² packets at least, behaves as the paper "
        "says."
    ),
    ("fig-14", "", ""): _QUICK_FLOWS,
    ("table-4", "daimd", ""): _BURSTS,
    ("table-4", "udt", "EI"): (
        "The queue of 2000 packets is a quarter of the bandwidth-delay product at 0.1 s and a "
        "fortieth at 1 s: with one product EI is 983 and 714."
    ),
    ("table-4", "udt", ""): (
        "Not known. The rule as printed has 0.14 to 0.15 up to 1 ms too, so it is not version 4's "
        "random decreases; TCP's indices on the same network come near to those printed (Table "
        "5)."
    ),
    ("table-5", "", ""): _NS2,
    ("table-6", "scalable", ""): _RANDOM,
    ("table-6", "kelly", ""): (
        "The row is that of ten times the increase of Scalable TCP's author, 0.01 at each ACK, "
        "which gives 0.08/p."
    ),
    ("table-6", "highspeed", ""): (
        "At p = 10⁻³ the window is 38 packets, up to which HighSpeed TCP is Reno; Reno is 1.06 "
        "times its own formula under random loss."
    ),
    ("table-6", "bic", ""): (
        "AIMD(32, 1/8), which the paper says it comes close to, has 15.5 p^-0.5 by its algebra, "
        "and BIC is that only where an eighth of the window is much more than 32 packets: the run "
        "comes nearer as p falls. Where 24.65 comes from is not known."
    ),
    ("table-6", "udt", "boundary"): (
        "Eq. 14 takes the first stage that could hold its own equilibrium. But below the end of "
        "the stage before it the flow grows ten times faster: it stays there, at 0.9 L."
    ),
    ("section-7", "model", "over"): (
        "Below εL flow 2 grows ten times as fast as flow 1. By Eq. 4 it has √10 times the rate "
        "there, or stops at εL, a ratio of ε/(1 - ε): more than the bound from ε = 0.68 to 0.96."
    ),
    ("section-7", "", "under"): (
        "Flow 2 does not reach its L': in the last tenth below it, flow 2 grows by a tenth of "
        "flow 1's increase. With x₂ down to L' - 0.1 L the ratio is up to (1.1 L - L')/(L' - 0.1 "
        "L), from ε = -0.4 on."
    ),
    ("section-7", "daimd", ""): _QUICK_FLOWS,
}
"""Why a claim differs, or cannot be decided, by exhibit, rule and part."""


def why(exhibit: str, law: str, part: str = "") -> str:
    """Find the reason for a claim: that of its rule and part, or the next more general one.

    Parameters
    ----------
    exhibit, law, part
        Exhibit, rule and part of the exhibit.

    Returns
    -------
    str
        Empty where there is none.

    Examples
    --------
    >>> why("table-5", "reno", "EI") == why("table-5", "")
    True
    """
    for key in ((law, part), ("", part), (law, ""), ("", "")):
        if (exhibit, *key) in WHY:
            return WHY[(exhibit, *key)]
    return ""
