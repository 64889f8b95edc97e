//! A handshake in plaintext: only transport parameters are exchanged.

/// Bytes of the messages: of the client's first, of the server's, and of the client's last.
const SIZES: [usize; 4] = [300, 90, 900, 36];

/// The state of one side.
pub(crate) struct Handshake {
    client: bool,
    /// The next of the messages of [`SIZES`], of both sides.
    stage: usize,
    /// The keys of the next space are due.
    keys: bool,
    own: Vec<u8>,
    peer: Option<Vec<u8>>,
    input: Vec<u8>,
}

impl Handshake {
    pub(crate) fn new(client: bool, own: Vec<u8>) -> Self {
        Handshake { client, stage: 0, keys: false, own, peer: None, input: Vec::new() }
    }

    /// The peer's transport parameters.
    pub(crate) fn peer(&self) -> Option<&[u8]> {
        self.peer.as_deref()
    }

    pub(crate) fn is_over(&self) -> bool {
        self.stage == SIZES.len()
    }

    fn writes(&self) -> bool {
        self.client == matches!(self.stage, 0 | 3)
    }

    /// Reads bytes; returns whether the peer's parameters are new.
    pub(crate) fn read(&mut self, bytes: &[u8]) -> bool {
        self.input.extend(bytes);
        let before = self.peer.is_some();
        while !self.is_over() && !self.writes() && self.input.len() >= SIZES[self.stage] {
            let message: Vec<u8> = self.input.drain(..SIZES[self.stage]).collect();
            if let 0 | 2 = self.stage {
                let length = usize::from(u16::from_be_bytes([message[0], message[1]]));
                self.peer = Some(message[2..2 + length].to_vec());
            }
            // The client has the keys of the Handshake space after the server's first message.
            self.keys = self.stage == 1;
            self.stage += 1;
        }
        self.peer.is_some() && !before
    }

    /// Writes the next message to `buf`; returns whether the keys of the next space follow it.
    pub(crate) fn write(&mut self, buf: &mut Vec<u8>) -> bool {
        if std::mem::take(&mut self.keys) {
            return true;
        }
        if self.is_over() || !self.writes() {
            return false;
        }
        let mut message = vec![0; SIZES[self.stage]];
        if let 0 | 2 = self.stage {
            message[..2].copy_from_slice(&(self.own.len() as u16).to_be_bytes());
            message[2..2 + self.own.len()].copy_from_slice(&self.own);
        }
        buf.extend(message);
        self.stage += 1;
        self.stage > 1
    }
}
