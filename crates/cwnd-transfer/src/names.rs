//! Names of files: validation of a peer's names, names of partial files, and printing.

use std::fmt::Write;

/// Suffix of partial files.
pub const PART: &[u8] = b".cwnd-part";
/// Suffix of the sidecars of partial files, which contain the values of the verified blocks.
pub const SIDECAR: &[u8] = b".cwnd-sums";
/// Maximum length of a path in bytes.
pub const MAX_PATH: usize = 4096;
/// Maximum length of a name in bytes: the limit of Linux's file systems.
pub const MAX_NAME: usize = 255;

/// Splits a peer's path into names.
///
/// Names that are special on Windows, such as `C:` or `aux`, are ordinary names here.
///
/// # Errors
/// The path could lead out of the folder, contains a name that no file can have, or a name that is
/// reserved for partial files.
pub fn split_path(path: &[u8]) -> Result<Vec<&[u8]>, String> {
    if path.is_empty() {
        return Err("an empty name".into());
    }
    check_length(path)?;
    if path.contains(&0) {
        return Err("a name with a NUL byte".into());
    }
    if path.starts_with(b"/") {
        return Err("an absolute path is outside the folder".into());
    }
    let names: Vec<_> = path.split(|&byte| byte == b'/').collect();
    for &name in &names {
        if name == b".." {
            return Err("a path with '..' may lead out of the folder".into());
        }
        if name.is_empty() || name == b"." {
            return Err("a path with an empty name or '.' in it".into());
        }
        if name.len() > MAX_NAME {
            return Err(format!("a name of {} bytes: at most {MAX_NAME} are allowed", name.len()));
        }
        check_reserved(name)?;
    }
    Ok(names)
}

/// Checks that the first of a path's names does not begin with a dot: many programs execute or obey
/// such files.
///
/// # Errors
/// It begins with a dot.
pub fn check_top(names: &[&[u8]]) -> Result<(), String> {
    if names.first().is_some_and(|name| name.starts_with(b".")) {
        return Err("names at the top of the receiver's folder begin with a dot only if recv has \
                    --allow-dotfiles"
            .into());
    }
    Ok(())
}

/// Checks that a path is not too long.
///
/// # Errors
/// It is longer than [`MAX_PATH`].
pub fn check_length(path: &[u8]) -> Result<(), String> {
    match path.len() {
        0..=MAX_PATH => Ok(()),
        length => Err(format!("a path of {length} bytes: at most {MAX_PATH} are allowed")),
    }
}

/// Checks that a name is not reserved for partial files.
///
/// # Errors
/// It is reserved.
pub fn check_reserved(name: &[u8]) -> Result<(), String> {
    let reserved = [PART, SIDECAR].into_iter().find(|end| name.ends_with(end));
    reserved.map_or(Ok(()), |end| {
        let end = String::from_utf8_lossy(end);
        Err(format!("names that end in {end} are reserved for partial files"))
    })
}

/// Returns the name of the partial file of `name`.
#[must_use]
pub fn part_name(name: &[u8]) -> Vec<u8> {
    with_end(name, PART)
}

/// Returns the name of the sidecar of the partial file.
#[must_use]
pub fn sidecar_name(name: &[u8]) -> Vec<u8> {
    with_end(name, SIDECAR)
}

fn with_end(name: &[u8], end: &[u8]) -> Vec<u8> {
    if name.len() + end.len() <= MAX_NAME {
        return [name, end].concat();
    }
    // Truncated names get a hash, so that long names with the same prefix have different partial
    // files.
    let mark = format!(".{}", &blake3::hash(name).to_hex()[..16]);
    let length = MAX_NAME - end.len() - mark.len();
    [&name[..length], mark.as_bytes(), end].concat()
}

/// Checks that the target of the symbolic link at the path `names` is below the first of them,
/// whatever other links exist there: the target must be relative, with `..` only at its beginning.
///
/// # Errors
/// The target is or may be elsewhere.
pub fn check_target(names: &[impl AsRef<[u8]>], target: &[u8]) -> Result<(), &'static str> {
    if target.is_empty() || target.len() >= MAX_PATH || target.contains(&0) {
        return Err("a symbolic link with an invalid target");
    }
    if target.starts_with(b"/") {
        return Err("a symbolic link to an absolute path, which may lead out of the folder");
    }
    let (mut below, mut descended) = (names.len().saturating_sub(2), false);
    for name in target.split(|&byte| byte == b'/') {
        match name {
            b"" | b"." => {}
            // A name may be a link itself, so `..` after it leads to an unknown folder.
            b".." if descended => return Err("a symbolic link with '..' after a name"),
            b".." if below == 0 => return Err("a symbolic link that leads out of its folder"),
            b".." => below -= 1,
            _ => descended = true,
        }
    }
    // A link at the top level is in no folder of the transfer.
    if names.len() < 2 {
        return Err("a symbolic link that leads out of its folder");
    }
    Ok(())
}

/// Formats a name or a peer's text without control characters. Different texts are formatted
/// differently.
#[must_use]
pub fn printable(text: &[u8]) -> String {
    let mut out = String::with_capacity(text.len());
    for chunk in text.utf8_chunks() {
        for c in chunk.valid().chars() {
            let combining = ('\u{300}'..='\u{36f}').contains(&c);
            let graphic = c.is_ascii_graphic() && c != '\\';
            if graphic || c == ' ' || combining || (!c.is_ascii() && c.is_alphanumeric()) {
                out.push(c);
            } else {
                out.extend(c.escape_debug());
            }
        }
        for byte in chunk.invalid() {
            let _ = write!(out, "\\x{byte:02x}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn paths_that_are_refused() {
        let long = [&[b'x'; 256][..], b"/y"].concat();
        let deep = [&b"a/".repeat(2048)[..], b"a"].concat();
        let paths: [&[u8]; 15] = [
            b"",
            b"/etc/passwd",
            b"..",
            b"../x",
            b"a/../../x",
            b"a//b",
            b"./a",
            b"a/",
            b"a\0b",
            &long,
            &deep,
            b"x.cwnd-part",
            b"x.cwnd-part/y",
            b"x.cwnd-sums",
            b".cwnd-sums",
        ];
        for path in paths {
            assert!(split_path(path).is_err(), "{}", printable(path));
        }
        for path in [&b"C:\\Windows\\x"[..], b"C:", b"aux", b"-rf", b"~", b"a\n", b"\xff"] {
            assert_eq!(split_path(path), Ok(vec![path]));
        }
    }

    #[test]
    fn targets_stay_in_the_folder() {
        let link = [&b"top"[..], b"a", b"link"];
        for good in [&b"x"[..], b"x/y", b"../x", "./ä".as_bytes(), b".."] {
            assert_eq!(check_target(&link, good), Ok(()), "{}", printable(good));
        }
        for bad in
            [&b""[..], b"/etc/passwd", b"../..", b"../../x", b"../x/../../y", b"x/..", b"a\0"]
        {
            assert!(check_target(&link, bad).is_err(), "{}", printable(bad));
        }
        assert!(check_target(&link[..1], b"other").is_err());
    }

    #[test]
    fn long_names_have_parts_of_their_own() {
        let names = [b'1', b'2'].map(|last| [&[b'x'; 254][..], &[last]].concat());
        assert_ne!(part_name(&names[0]), part_name(&names[1]));
        assert_eq!(part_name(b"film.mkv"), b"film.mkv.cwnd-part");
    }

    #[test]
    fn printable_escapes_control_characters() {
        assert_eq!(
            printable("na\u{ef}ve e\u{301}\u{1b}[2J".as_bytes()),
            "naïve e\u{301}\\u{1b}[2J"
        );
        assert_eq!(printable(b"\xff\n\"'"), "\\xff\\n\"'");
        assert_eq!(printable("\u{202e}\u{9b}\u{2028}".as_bytes()), "\\u{202e}\\u{9b}\\u{2028}");
        assert_eq!([printable(b"a\nb"), printable(b"a\\nb")], ["a\\nb", "a\\\\nb"]);
    }

    #[test]
    fn names_that_differ_are_printed_differently() {
        let mut names = vec![Vec::new()];
        // All names of up to three of these bytes.
        for first in 0..91 {
            for byte in *b"\\n\nx\x1b'\xffu{" {
                names.push([&names[first][..], &[byte]].concat());
            }
        }
        let printed: std::collections::HashSet<_> =
            names.iter().map(|name| printable(name)).collect();
        assert_eq!(printed.len(), names.len());
    }

    proptest! {
        #[test]
        fn a_path_is_refused_or_stays_below(path in "([a./\\x00b]|\\.\\./){0,12}") {
            if let Ok(names) = split_path(path.as_bytes()) {
                prop_assert_eq!(names.join(&b'/'), path.as_bytes());
                prop_assert!(names.iter().all(|name| !name.is_empty() && *name != b".." && *name != b"."));
            }
        }

        #[test]
        fn parts_have_names_of_their_own(one in proptest::collection::vec(1u8.., 1..=255),
                                         other in proptest::collection::vec(1u8.., 1..=255)) {
            prop_assert!(part_name(&one).len() <= MAX_NAME);
            prop_assert_eq!(part_name(&one) == part_name(&other), one == other);
            prop_assert!(check_reserved(&part_name(&one)).is_err());
            prop_assert!(check_reserved(&sidecar_name(&one)).is_err());
        }

        #[test]
        fn nothing_printed_controls_a_terminal(text in proptest::collection::vec(any::<u8>(), 0..60)) {
            prop_assert!(!printable(&text).chars().any(char::is_control));
        }
    }
}
