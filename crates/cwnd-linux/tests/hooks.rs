//! The kernel sometimes skips `ssthresh` or `undo_cwnd`, and takes the low half of an address as the
//! result. The hooks of `kernel/window_law.bpf.c`, compiled for the host, repair it.

#[expect(dead_code, reason = "windows are whole numbers")]
mod program;

/// `TCP_INFINITE_SSTHRESH`.
const INFINITE: u64 = 0x7fff_ffff;
/// In the order of `hooks.c`.
const HOOKS: [&str; 6] =
    ["pkts_acked", "cong_avoid", "ssthresh", "set_state", "cwnd_event", "undo_cwnd"];
/// Hooks that repair the threshold: `ssthresh` returns another one.
const REPAIR_THRESHOLD: [&str; 3] = ["pkts_acked", "set_state", "cwnd_event"];
/// Low halves of addresses, and the first number that is no window.
const ADDRESSES: [u64; 4] = [0x56c0_1f44, 0x4110_1a72, 0xffff_fff0, 1 << 24];
/// Windows that the kernel may set.
const WINDOWS: [u64; 5] = [1, 9, 11, 1 << 20, (1 << 24) - 1];

#[test]
fn hooks_repair_the_results_of_skipped_calls() {
    let mut states = Vec::new();
    for address in ADDRESSES {
        // An undo, a cut, and an undo of a cut that began with the wrong window.
        states.extend([[address, 5, 20], [address, INFINITE, 20], [10, address, 20]]);
        states.push([10, 5, address]);
    }
    states.extend(WINDOWS.map(|window| [window, 5, 0]));
    let rows = states.iter().flat_map(|&[window, threshold, prior]| {
        (0..HOOKS.len() as u64).map(move |hook| [hook, window, threshold, prior])
    });
    let rows: Vec<_> = rows.collect();
    let mut given = rows.iter();
    let mut repaired = 0;
    program::run("hooks.c", "hooks", rows.clone().into_iter(), |results| {
        let [hook, window, threshold, prior] = *given.next().unwrap();
        let hook = HOOKS[hook as usize];
        let [result, window_after, threshold_after, in_event] = results;
        let seen = format!("{hook} of {window}, {threshold}, {prior}: {results:?}");
        if WINDOWS.contains(&window) && threshold == 5 && prior == 0 {
            assert!(hook == "cong_avoid" || window_after == window, "{seen}");
            assert!(hook != "undo_cwnd" || result == window, "{seen}");
            return;
        }
        repaired += 1;
        assert!(result <= 20 && (5..=20).contains(&window_after) && in_event <= 20, "{seen}");
        if threshold > INFINITE && REPAIR_THRESHOLD.contains(&hook) {
            assert!(threshold_after < 20, "{seen}");
        }
    });
    assert_eq!(repaired, 16 * HOOKS.len());
}
