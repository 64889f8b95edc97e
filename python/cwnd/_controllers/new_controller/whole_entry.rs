
pub(super) const $CONST: Algorithm = Algorithm {
    name: "$name",
    title: "$Type",
    summary: "Gains α packets each round-trip time and gives up the fraction β at a loss, paced.",
    source: "to fill in",
    equations: card!("controllers/$name.rs", equations),
    deviations: card!("controllers/$name.rs", deviations),
    parameters: &[
        Parameter::number("alpha", "α", 1.0, Range::above(0.0, 1000.0))
            .unit("packets")
            .means("packets gained each round-trip time"),
        Parameter::number("beta", "β", 0.5, Range::open(0.0, 1.0))
            .means("fraction of the window given up at a loss"),
    ],
    build: Build::Whole(|v, settings| Box::new($Type::new(v[0], v[1], settings))),
};
