//! Every frame of a file transfer, offers of the sender's manifest included, is decoded or refused,
//! and a decoded frame is encoded to equal contents.

#![no_main]

use cwnd_transfer::frame::{Frame, HEADER};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some((header, payload)) = bytes.split_first_chunk::<HEADER>() else { return };
    let Ok((kind, _)) = Frame::header(header) else { return };
    let Ok(frame) = Frame::decode(kind, payload) else { return };
    if let Frame::Block(block) = frame {
        let length = block.length as usize;
        assert!(block.runs().all(|(at, run)| at + run.len() <= length));
    }
    let mut encoded = Vec::new();
    frame.encode(&mut encoded);
    assert_eq!(Frame::decode(kind, &encoded[HEADER..]), Ok(frame));
});
