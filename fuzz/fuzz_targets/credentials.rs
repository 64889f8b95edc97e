//! Every key file, list of peers and one-time code is read or refused; a pair that is written is
//! read again.

#![no_main]

use cwnd_udt::secure::{Code, Key, KeyPair, PublicKey};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|contents: &[u8]| {
    let _ = Key::from_file_contents(contents);
    if let Ok(pair) = KeyPair::from_file_contents(contents) {
        let written = pair.to_file_contents();
        let again = KeyPair::from_file_contents(written.as_bytes()).unwrap();
        assert_eq!(again.public(), pair.public());
    }
    let Ok(text) = std::str::from_utf8(contents) else { return };
    let _ = text.parse::<Code>();
    if let Ok(peers) = PublicKey::parse_list(text) {
        assert!(peers.iter().all(|(key, _)| key.to_string().parse::<PublicKey>() == Ok(*key)));
    }
});
