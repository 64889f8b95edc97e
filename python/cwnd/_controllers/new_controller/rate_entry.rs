
pub(super) const $CONST: Algorithm = Algorithm {
    name: "$name",
    title: "$Type",
    summary: "Grows by α packets/s in each second and shrinks by the fraction β at a congestion event.",
    source: "to fill in",
    equations: card!("laws/$name.rs", equations),
    deviations: card!("laws/$name.rs", deviations),
    parameters: &[
        Parameter::number("alpha", "α", 1000.0, Range::above(0.0, 1e6))
            .unit("packets/s^2")
            .means("rate gained each second"),
        Parameter::number("beta", "β", 0.125, Range::open(0.0, 1.0))
            .means("reduction at a congestion event as a fraction of the rate"),
        Parameter::number("syn", "SYN", 0.01, Range::closed(1e-4, 10.0))
            .unit("s")
            .means("the control interval"),
    ],
    build: Build::Rate(|v, _| $Type::new(v[0], v[1], crate::units::Dur::from_secs(v[2])).into()),
};
