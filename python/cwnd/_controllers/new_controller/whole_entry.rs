
pub(super) const $CONST: Algorithm = Algorithm {
    name: "$name",
    title: "$Type",
    summary: "Gains α packets each round-trip time and gives up the fraction β at a loss, paced.",
    source: "to fill in",
    equations: &[
        "slow start: w <- w + 1 for each packet acknowledged, while w < ssthresh",
        "each ACK: w <- w + alpha / w",
        "at a loss or a mark: w <- w - beta w, once for each window of data; ssthresh <- w",
        "at a timeout: ssthresh <- w - beta w; w <- 2",
        "pacing rate: 1.25 w / srtt",
    ],
    deviations: &[],
    parameters: &[
        Parameter::number(
            "alpha",
            "α",
            "packets",
            1.0,
            Range::above(0.0, 1000.0),
            "packets gained each round-trip time",
        ),
        Parameter::number(
            "beta",
            "β",
            "",
            0.5,
            Range::open(0.0, 1.0),
            "fraction of the window given up at a loss",
        ),
    ],
    build: Build::Whole(|v, settings| Box::new($Type::new(v[0], v[1], settings))),
};
