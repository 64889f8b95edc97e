//! Names that a message proposes in place of an unknown one.

use alloc::vec::Vec;
use core::mem::replace;

/// The name nearest to `given`, if any is near: at most half of the letters differ.
pub fn nearest<'a>(given: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    names
        .map(|name| (distance(given, name), name))
        .filter(|(distance, name)| distance * 2 <= name.len().max(given.len()))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// How many letters to insert, delete or replace to turn one word into the other (Levenshtein),
/// whatever their case.
pub fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.chars().count()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = replace(&mut row[0], i + 1);
        for (j, y) in b.chars().enumerate() {
            let replaced = diagonal + usize::from(!x.eq_ignore_ascii_case(&y));
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.chars().count()]
}

#[cfg(test)]
mod tests {
    use super::{distance, nearest};

    #[test]
    fn distance_counts_edits() {
        assert_eq!(distance("simd", "SIMD"), 0);
        assert_eq!(distance("smid", "simd"), 2);
        assert_eq!(distance("ren", "reno"), 1);
        assert_eq!(distance("", "udt"), 3);
    }

    #[test]
    fn the_nearest_name_is_near() {
        let nearest = |given| nearest(given, ["reno", "aimd"].into_iter());
        assert_eq!(["RENO", "amid", "vegas"].map(nearest), [Some("reno"), Some("aimd"), None]);
    }
}
