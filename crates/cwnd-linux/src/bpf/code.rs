//! The code of a law, as `struct law` of `kernel/law.h` has it.

use cwnd::Settings;
use cwnd_law::{Hook, Input, Law, REGISTERS, Routine};

const WORDS: usize = 512;
const INPUTS: usize = 128;
const HOOKS: usize = 32;
/// `LAW_ALWAYS`: the register of an input that is never none.
const ALWAYS: u8 = 0xff;

/// What the program gives for an input: `enum law_form`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Form {
    /// An integer; also an instant in nanoseconds, a truth, and the place of a choice.
    Count,
    /// A time in nanoseconds.
    Seconds,
    /// The bits of binary64.
    Bits,
    /// Nothing: the interpreter computes the round-trip times since the last reduction.
    Rtts,
}

/// How the program gives an input; `None` if the kernel has no such value.
fn form(input: Input) -> Option<Form> {
    Some(match input {
        Input::Now
        | Input::LastCut
        | Input::Packet
        | Input::SlowStart
        | Input::Acked
        | Input::Why
        | Input::RoundSent
        | Input::RoundLost
        | Input::RoundMarked
        | Input::AckedPackets
        | Input::AckedCredit
        | Input::AckedInFlight
        | Input::AckedSent
        | Input::AckedSentAt
        | Input::AckedReceivedAt
        | Input::AckedEcho
        | Input::AckedMarked
        | Input::AckedLimit
        | Input::Fresh
        | Input::ReportPackets
        | Input::ReportSent
        | Input::LostPackets
        | Input::LostSentAt
        | Input::LostSent => Form::Count,
        Input::Rtt
        | Input::MinRtt
        | Input::LatestRtt
        | Input::RoundTook
        | Input::AckedRtt
        | Input::ReportRtt => Form::Seconds,
        Input::W
        | Input::Cut
        | Input::Rate
        | Input::ReportArrival
        | Input::ReportCapacity
        | Input::Factor => Form::Bits,
        Input::RttsSinceCut => Form::Rtts,
        // A window law runs before the kernel has the sample.
        Input::AckedDeliveryRate
        | Input::AckedDeliveryDelivered
        | Input::AckedDeliveryPriorDelivered
        | Input::AckedDeliveryInterval
        | Input::AckedDeliveryLost
        | Input::AckedDeliveryInFlight
        | Input::AckedDeliveryApplicationLimited => return None,
        // The loader runs the hook `adopt`.
        Input::WholePackets => return None,
    })
}

/// `struct law` of `kernel/law.h` in 64-bit words, with the values of the law's parameters.
///
/// # Errors
/// The law uses a value that the kernel does not have.
pub fn encode_law(law: &Law, values: &[f64]) -> Result<Vec<u64>, String> {
    let program = law.program();
    let mut inputs = Vec::new();
    let mut hooks = [0; HOOKS];
    // The conventions are those of the RFCs: those of Linux are the kernel's own controllers'.
    let mut begun = law.instance(values).seeded(Settings::default().seed);
    begun.call(Hook::Adopt, |_| Some(0.0));
    let registers: &[f64; REGISTERS] = begun.registers();
    let routines = program.routines.iter().filter(|routine| routine.hook != Hook::Adopt);
    for Routine { hook, entry, inputs: used } in routines {
        hooks[*hook as usize] =
            *entry as u32 | (inputs.len() as u32) << 16 | (used.len() as u32) << 24;
        for &(input, register, present) in *used {
            let Some(form) = form(input) else {
                return Err(format!("the kernel has no {} for a law", input.name()));
            };
            let present = present.unwrap_or(ALWAYS);
            inputs.push(u32::from_le_bytes([input as u8, register, present, form as u8]));
        }
    }
    let mut words = program.words;
    if words.len() > WORDS || inputs.len() > INPUTS {
        return Err("the code of the law is too long for the kernel".into());
    }
    words.resize(WORDS, 0);
    inputs.resize(INPUTS, 0);
    words.extend(inputs);
    words.extend(hooks);
    let pairs = words.chunks_exact(2).map(|pair| u64::from(pair[0]) | u64::from(pair[1]) << 32);
    Ok(pairs.chain(registers.iter().map(|value| value.to_bits())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names of an enum of `kernel/law.h` without their prefix, as Rust writes them.
    fn names(of: &str) -> Vec<String> {
        let header = include_str!("../../../../kernel/law.h");
        let (_, rest) = header.split_once(&format!("enum {of} {{")).expect("the enum");
        let (members, _) = rest.split_once("};").expect("its end");
        let words = |name: &str| {
            let words = name
                .split('_')
                .skip(1)
                .map(|word| word[..1].to_owned() + &word[1..].to_lowercase());
            words.collect::<String>()
        };
        members.split(',').map(str::trim).filter(|name| !name.is_empty()).map(words).collect()
    }

    #[test]
    fn numbers_of_hooks_and_inputs_are_those_of_the_header() {
        let hooks: Vec<_> = Hook::ALL.iter().map(|hook| format!("{hook:?}")).collect();
        let inputs: Vec<_> = Input::ALL.iter().map(|input| format!("{input:?}")).collect();
        assert_eq!(names("law_hook"), hooks);
        assert_eq!(names("law_input"), inputs);
    }
}
