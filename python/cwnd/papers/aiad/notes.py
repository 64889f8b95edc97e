"""The letter on AIAD: why some of its claims do not come out, and what was tried."""

CLUMPS = (
    "With several flows the queue lets a flow's packets pass in clumps, one after another at C, "
    "and then none of them for a while. Westwood's filter multiplies each sample by half of its "
    "own gap and half of the next: the last sample of a clump is weighted with the long gap "
    "after it. With 20 flows φ by an exact clock is 8 times the fair share, κ 13 times; a loss "
    "then lowers neither window, and timeouts decide who gets what. A clock of 100 ms counts a "
    "clump's packets together, and φ is right. Also tried: 6, 22, 37, 72, 102 and 152 ms one "
    "way, access delays of 1 to 10 ms, NewReno and Reno repair: φ by an exact clock is as uneven "
    "as κ in all of them."
)
"""Why φ by an exact clock is no better than κ with many flows."""

CROWD = (
    "200 flows on a pipe of 78 packets and a buffer of 20 have half a packet each: timeouts and "
    "their back-off decide who gets what, whatever the estimate. It is so at 6 to 152 ms one "
    "way, and with SACK, NewReno and Reno repair."
)
"""Why no reading is even with very many flows."""

ROOM = (
    "With φ by an exact clock, φ is as uneven as κ with 20 packets (see Fig. 3), and more buffer "
    "makes κ more even than both. With φ by 100 ms the two are alike from 50 flows on, where "
    "both are uneven. With 20 flows φ is all but even, which 200 packets do not make of κ; with "
    "5 both are, and their deviations are too small to be compared."
)
"""Why the buffers do not come out alike everywhere."""

DRAINED = (
    "Eq. 3 takes the queue on the way back to be busy between any two acknowledgements. With "
    "less traffic than capacity it drains, and the mean of the samples is φ however they bunch. "
    "Westwood's filter is above that because it weights a bunch's last sample with the gap after "
    "it: this first rises with the CBR flow's rate, where Eq. 3 only falls."
)
"""Why the filtered κ is not Eq. 3's."""

BUNCHES = "It is above 1 for every seed, but how far above differs much between them."
"""Why the largest sample of κ may stay unclear."""

GRANULARITY = (
    "A clock of 1 s is slower than the filter's memory of 0.5 s: the estimate sags between "
    "ticks. Clocks finer than 100 ms do not make 20 flows more even, as φ like κ is too large "
    "with them: see Fig. 3. κ's error with one flow differs much from seed to seed."
)
"""Where φ is no better than κ."""

EVENNESS = [
    "A flow's throughput is what it delivered in order in the whole run.",
    "The granularity of the timestamps is not said. Each claim is made for 100 ms and for 1 µs.",
    "With 100 ms φ does what Fig. 3 and the text on buffers say; with 1 µs it does not.",
]
"""What was chosen for Fig. 3 and the buffers."""
