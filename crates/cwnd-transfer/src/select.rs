//! Include and exclude patterns of files.

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Patterns of files and folders.
///
/// A pattern without a slash matches names anywhere below a source, one with a slash the path below
/// the source. Excluded folders are left out with their contents. If there are include patterns,
/// only files that match one of them are sent, with the folders that contain them.
#[derive(Clone, Debug, Default)]
pub struct Select {
    include: [GlobSet; 2],
    exclude: [GlobSet; 2],
    includes: bool,
}

impl Select {
    /// Compiles patterns.
    ///
    /// # Errors
    /// A pattern is invalid.
    pub fn new(include: &[String], exclude: &[String]) -> Result<Self, String> {
        let includes = !include.is_empty();
        Ok(Select { include: compile(include)?, exclude: compile(exclude)?, includes })
    }

    /// Whether the entry at `path` below its source is excluded, with its contents.
    #[must_use]
    pub fn excludes(&self, path: &[u8]) -> bool {
        matches(&self.exclude, path)
    }

    /// Whether a file at `path` below its source is included, unless it is excluded.
    #[must_use]
    pub fn includes(&self, path: &[u8]) -> bool {
        !self.includes || matches(&self.include, path)
    }

    /// Whether there are include patterns: folders without included files are left out.
    #[must_use]
    pub fn is_partial(&self) -> bool {
        self.includes
    }
}

/// Compiles patterns for names, and for paths.
fn compile(patterns: &[String]) -> Result<[GlobSet; 2], String> {
    let mut sets = [GlobSetBuilder::new(), GlobSetBuilder::new()];
    for pattern in patterns {
        let plain = pattern.trim_end_matches('/');
        let plain = plain.strip_prefix('/').unwrap_or(plain);
        let glob = GlobBuilder::new(plain).literal_separator(true).backslash_escape(true).build();
        let glob = glob.map_err(|error| format!("{pattern}: {}", error.kind()))?;
        if plain.is_empty() {
            return Err(format!("{pattern:?} is not a pattern such as *.o or build/*.o"));
        }
        sets[usize::from(pattern.trim_end_matches('/').contains('/'))].add(glob);
    }
    let [names, paths] = sets.map(|set| set.build().map_err(|error| error.to_string()));
    Ok([names?, paths?])
}

fn matches(sets: &[GlobSet; 2], path: &[u8]) -> bool {
    let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    let is_match =
        |set: &GlobSet, text| !set.is_empty() && set.is_match(Path::new(OsStr::from_bytes(text)));
    is_match(&sets[0], name) || is_match(&sets[1], path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excludes_come_before_includes() {
        let patterns = |list: &[&str]| list.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
        let select =
            Select::new(&patterns(&["*.txt"]), &patterns(&["old*", "a/b/*.txt", "/top"])).unwrap();
        assert!(select.includes(b"x/y.txt") && !select.includes(b"x/y.md"));
        assert!(select.excludes(b"x/old.txt") && select.excludes(b"older"));
        assert!(select.excludes(b"a/b/c.txt") && !select.excludes(b"a/b/c/d.txt"));
        assert!(select.excludes(b"top") && !select.excludes(b"x/top"));
        assert!(
            Select::new(&patterns(&["a[b"]), &[]).is_err()
                && Select::new(&patterns(&["/"]), &[]).is_err()
        );
        let everything = Select::default();
        assert!(
            everything.includes(b"\xff") && !everything.excludes(b"x") && !everything.is_partial()
        );
    }
}
