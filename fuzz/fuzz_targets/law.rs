//! Every text is read as a law or refused with a message that can be shown; the canonical form of a
//! law is the same law, and its hooks answer any numbers.

#![no_main]

use cwnd_law::{Hook, Law, equations, format};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    // The numbers of the hooks' inputs follow the text.
    let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    let numbers = &bytes[text.len()..];
    let Ok(text) = str::from_utf8(text) else { return };
    let law = match Law::parse(text) {
        Ok(law) => law,
        Err(error) => {
            error.render("law", text);
            return;
        }
    };
    for warning in law.warnings() {
        warning.render("law", text);
    }
    assert!(equations(text).is_ok());
    if let Ok(canonical) = format(text) {
        assert_eq!(format(&canonical).as_ref(), Ok(&canonical));
        assert_eq!(
            Law::parse(&canonical).map(|again| again.hash().to_owned()),
            Ok(law.hash().to_owned())
        );
    }
    let mut instance = law.instance(&[]);
    for (round, hook) in (0..4).flat_map(|round| Hook::ALL.iter().map(move |hook| (round, *hook))) {
        instance.call(hook, |input| {
            let at = (round * 8 + input as usize * 3) % numbers.len().max(1);
            let number = numbers.get(at..at + 8)?;
            Some(f64::from_le_bytes(number.try_into().ok()?))
        });
        instance.states().for_each(drop);
    }
});
