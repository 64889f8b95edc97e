//! The equations and deviations of an entry, which the compiler reads from the card at the head of
//! the controller's file.

/// The list called `$part`, [`equations`] or [`deviations`], of the card in `$file`.
macro_rules! card {
    ($file:literal, $part:ident) => {{
        const LIST: $crate::registry::card::List =
            $crate::registry::card::$part(include_bytes!(concat!("../", $file)));
        const TEXT: [u8; LIST.length] = LIST.text();
        const ITEMS: [&str; LIST.items] = $crate::registry::card::split(&TEXT);
        &ITEMS
    }};
}
pub(super) use card;

/// More bytes than any list has.
const MAX_LENGTH: usize = 1 << 13;

/// The items of a list, separated by line feeds.
pub(super) struct List {
    text: [u8; MAX_LENGTH],
    pub(super) length: usize,
    pub(super) items: usize,
}

impl List {
    const EMPTY: List = List { text: [0; MAX_LENGTH], length: 0, items: 0 };

    /// Begins the next item.
    const fn begin(&mut self, text: &[u8]) {
        if self.items > 0 {
            self.append(b"\n");
        }
        self.items += 1;
        self.append(text);
    }

    /// Continues the last item.
    const fn append(&mut self, text: &[u8]) {
        let (_, free) = self.text.split_at_mut(self.length);
        free.split_at_mut(text.len()).0.copy_from_slice(text);
        self.length += text.len();
    }

    /// The text, whose length is `N`.
    pub(super) const fn text<const N: usize>(&self) -> [u8; N] {
        let mut text = [0; N];
        text.copy_from_slice(self.text.split_at(N).0);
        text
    }
}

/// The items of a [`List::text`].
pub(super) const fn split<const N: usize>(text: &'static [u8]) -> [&'static str; N] {
    let (mut items, mut rest, mut at) = ([""; N], text, 0);
    while at < N {
        let item;
        (item, rest) = first_line(rest);
        items[at] = match core::str::from_utf8(item) {
            Ok(item) => item,
            Err(_) => panic!("a card is UTF-8"),
        };
        at += 1;
    }
    items
}

/// The first line of a text without its line feed, and the lines after it.
const fn first_line(text: &[u8]) -> (&[u8], &[u8]) {
    let mut end = 0;
    while end < text.len() && text[end] != b'\n' {
        end += 1;
    }
    match text.split_at(end) {
        (line, [_, rest @ ..]) => (line, rest),
        (line, []) => (line, &[]),
    }
}

/// The documentation at the head of a file.
struct Header<'a>(&'a [u8]);

impl<'a> Header<'a> {
    /// The next line without its `//!`.
    const fn next(&mut self) -> Option<&'a [u8]> {
        let [b'/', b'/', b'!', text @ ..] = self.0 else { return None };
        let line;
        (line, self.0) = first_line(text);
        Some(line)
    }
}

/// The lines of the text block, without the references to the source, which two blanks precede.
pub(super) const fn equations(file: &[u8]) -> List {
    let (mut header, mut list) = (Header(file), List::EMPTY);
    while !matches!(header.next(), None | Some(b" ```text")) {}
    while let Some([b' ', line @ ..]) = header.next()
        && !matches!(line, b"```")
    {
        let mut end = 0;
        while end < line.len() && !(line[end] == b' ' && line[end + 1] == b' ') {
            end += 1;
        }
        list.begin(line.split_at(end).0);
    }
    list
}

/// The bullets under "Known deviations:".
pub(super) const fn deviations(file: &[u8]) -> List {
    let (mut header, mut list) = (Header(file), List::EMPTY);
    while !matches!(header.next(), None | Some(b" Known deviations:")) {}
    header.next();
    loop {
        match header.next() {
            Some([b' ', b'*', b' ', text @ ..]) => list.begin(text),
            Some([b' ', b' ', text @ ..]) => list.append(text),
            _ => return list,
        }
    }
}
