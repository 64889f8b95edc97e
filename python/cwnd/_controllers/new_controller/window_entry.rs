
pub(super) const $CONST: Algorithm = Algorithm {
    name: "$name",
    title: "$Type",
    summary: "Grows by α packets in each round-trip time and shrinks by the fraction β at a loss.",
    source: "to fill in",
    equations: &["each ACK: w <- w + alpha / w", "at a loss: w <- w - beta w"],
    deviations: &[HALVES, BYTES],
    parameters: &[alpha(1.0, EACH_ROUND), beta(0.5), START, PACING],
    build: Build::Window(|v| $Type::new(v[0], v[1]).into()),
};
