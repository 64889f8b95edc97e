//! A switch by which tests run the general code in place of the short paths for common cases.

#[cfg(test)]
thread_local! {
    pub(crate) static FORBIDDEN: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Whether the short paths are taken.
#[inline(always)]
pub(crate) fn permitted() -> bool {
    #[cfg(test)]
    return !FORBIDDEN.get();
    #[cfg(not(test))]
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;
    use crate::{Options, Simulation};
    use proptest::prelude::*;
    use std::sync::Arc;

    /// The complete records of a run as text, in which numbers are equal only if their bits are.
    fn records(scenario: &str, forbidden: bool) -> String {
        let scenario = Scenario::from_toml(scenario, "random").unwrap();
        let network = Arc::new(scenario.network(1).unwrap());
        FORBIDDEN.set(forbidden);
        let mut simulation = Simulation::new(network, 1, &Options::default()).unwrap();
        simulation.run();
        let records = simulation.finish();
        FORBIDDEN.set(false);
        format!("{records:?}")
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 1 } else { 96 }))]

        /// The short paths change nothing.
        #[test]
        fn the_short_paths_have_the_results_of_the_general_code(
            conventions in prop::sample::select(vec!["linux", "linux", "rfc", "rfc5681", "ns2"]),
            controllers in prop::sample::select(vec![
                ["reno", "cubic"], ["cubic", "bbr3"], ["bbr", "reno"], ["dctcp", "vegas"], ["c4", "cubic"],
            ]),
            rate in prop::sample::select(vec!["3mbit", "20mbit", "150mbit"]),
            delay in prop::sample::select(vec!["100us", "2ms", "25ms"]),
            queue in prop::sample::select(vec!["\"0.3bdp\"", "\"2bdp\"", "\"10p\"", "{ kind = \"red\", ecn = true }"]),
            impairment in prop::sample::select(vec![
                "", "", "loss = 0.003", "loss = 0.01\nloss_of_acks = true", "jitter = \"5ms\"", "jitter = \"1ms\"\nloss = 0.002",
                "reorder = { probability = 0.01, delay = \"4ms\" }", "back = { ack_aggregation = \"3ms\" }",
                "back = { ack_thinning = \"2ms\" }", "blackout = [{ at = \"1s\", for = \"700ms\" }]",
            ]),
            tcp in prop::sample::select(vec![
                "", "ecn = true", "overhead = \"0s\"", "window = 20", "syn = false", "timestamps = false", "packet = 500",
            ]),
            bytes in prop::sample::select(vec!["", "bytes = 50000", "bytes = 900000"]),
        ) {
            let scenario = format!(
                "duration = \"3s\"\n[dumbbell]\nrate = \"{rate}\"\ndelay = \"{delay}\"\nqueue = {queue}\n{impairment}\n\
                 [tcp]\nconventions = \"{conventions}\"\n{tcp}\n\
                 [[flow]]\ncontroller = \"{}\"\ncount = 2\nstart = \"0s..200ms\"\n\
                 [[flow]]\ncontroller = \"{}\"\ncount = 2\nstart = \"0s..900ms\"\n{bytes}\n",
                controllers[0], controllers[1],
            );
            prop_assert_eq!(records(&scenario, false), records(&scenario, true), "{}", scenario);
        }
    }
}
