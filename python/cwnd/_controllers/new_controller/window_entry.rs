
pub(super) const $CONST: Algorithm = Algorithm {
    name: "$name",
    title: "$Type",
    summary: "Grows by α packets in each round-trip time and shrinks by the fraction β at a loss.",
    source: "to fill in",
    equations: card!("laws/$name.rs", equations),
    deviations: card!("laws/$name.rs", deviations),
    parameters: &[
        Parameter::number("alpha", "α", 1.0, Range::above(0.0, 1000.0))
            .unit("packets")
            .means("growth in each round-trip time"),
        Parameter::fraction("beta", "β", 0.5)
            .means("reduction at a loss as a fraction of the window"),
        START,
        PACING,
    ],
    build: Build::Window(|v| $Type::new(v[0], v[1]).into()),
};
