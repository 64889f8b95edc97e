//! Key files. Secrets are read only if no other user can access the file, and existing files are
//! not overwritten.

#[cfg(all(unix, feature = "net"))]
mod unix {
    use crate::secure::KeyPair;
    use crate::secure::shared_key::random;
    use std::ffi::OsString;
    use std::fs::{File, OpenOptions};
    use std::io::{self, Read, Write};
    use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
    use std::path::{Path, PathBuf};

    /// The largest number of bytes read from a file, more than the length of any key file.
    const MAX_LEN: u64 = 4096;

    fn refused(path: &Path, text: String) -> io::Error {
        let text = format!("{}: {text}", path.display());
        io::Error::new(io::ErrorKind::PermissionDenied, text)
    }

    /// Adds the failed operation and the file to an error of the system.
    fn operation_error(what: &str, path: &Path, error: &io::Error) -> io::Error {
        let text = error.to_string();
        // The standard library appends the error number.
        let text = text.split(" (os error").next().unwrap_or_default();
        io::Error::new(error.kind(), format!("cannot {what} {}: {text}", path.display()))
    }

    /// Reads a file with a secret, up to 4096 bytes. Like ssh, rejects a regular file that is owned
    /// by a user other than the process's or root, or whose mode gives its group or others any
    /// permission. The check applies to the opened file, not to its name.
    ///
    /// # Errors
    /// If the file cannot be read or is rejected; the message names the file and the remedy.
    pub fn read_secret(path: &Path) -> io::Result<Vec<u8>> {
        let failed = |error| operation_error("read", path, &error);
        let file = File::open(path).map_err(failed)?;
        let about = file.metadata().map_err(failed)?;
        if about.is_file() {
            let own = rustix::process::geteuid().as_raw();
            if about.uid() != own && about.uid() != 0 {
                return Err(refused(path, "the key file is owned by another user".into()));
            }
            let mode = about.mode() & 0o777;
            if mode & 0o077 != 0 {
                let text = format!(
                    "users other than its owner can access the key file (mode {mode:03o}): chmod 600 {}",
                    path.display()
                );
                return Err(refused(path, text));
            }
        }
        let mut contents = Vec::new();
        file.take(MAX_LEN).read_to_end(&mut contents).map_err(failed)?;
        Ok(contents)
    }

    /// Creates a file with `mode`. Fails if it exists.
    fn create(path: &Path, mode: u32, contents: &str) -> io::Result<()> {
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(mode)
            .open(path)
            .map_err(|error| operation_error("write", path, &error))?;
        let written = file.write_all(contents.as_bytes()).and_then(|()| file.sync_all());
        written.map_err(|error| {
            // Leave no partial key.
            let _ = std::fs::remove_file(path);
            operation_error("write", path, &error)
        })
    }

    /// Writes a new key of 256 bits to a new file with mode 0600.
    ///
    /// # Errors
    /// If the file exists or cannot be written.
    pub fn generate_key(path: &Path) -> io::Result<()> {
        let bytes: [u8; 32] = random()?;
        let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        create(path, 0o600, &format!("{digits}\n"))
    }

    /// The path of the public key that belongs to the private key at `path`.
    pub fn public_path(path: &Path) -> PathBuf {
        let mut name = OsString::from(path);
        name.push(".pub");
        name.into()
    }

    /// Generates a key pair. Writes the private key to a new file with mode 0600, and the public
    /// key with this machine's name to a new file with the suffix `.pub`.
    ///
    /// # Errors
    /// If one of the files exists or cannot be written.
    pub fn generate_pair(path: &Path) -> io::Result<KeyPair> {
        let pair = KeyPair::generate()?;
        let uname = rustix::system::uname();
        let line = format!("{} {}\n", pair.public(), uname.nodename().to_string_lossy());
        let public = public_path(path);
        create(&public, 0o644, &line)?;
        create(path, 0o600, &pair.to_file_contents()).inspect_err(|_| {
            let _ = std::fs::remove_file(&public);
        })?;
        Ok(pair)
    }
}

#[cfg(all(unix, feature = "net"))]
pub use unix::{generate_key, generate_pair, public_path, read_secret};

#[cfg(all(test, unix, feature = "net"))]
mod tests {
    use super::*;
    use crate::secure::{Key, KeyPair, PublicKey};
    use std::fs::{self, Permissions};
    use std::io;
    use std::os::unix::fs::PermissionsExt;
    use tempfile::TempDir;

    fn mode(path: &std::path::Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn secrets_are_private_and_not_overwritten() {
        let folder = TempDir::new().unwrap();
        let (key, pair) = (folder.path().join("key"), folder.path().join("pair"));
        generate_key(&key).unwrap();
        let made = generate_pair(&pair).unwrap();
        assert_eq!((mode(&key), mode(&pair)), (0o600, 0o600));
        Key::from_file_contents(&read_secret(&key).unwrap()).unwrap();
        assert_eq!(KeyPair::from_file_contents(&read_secret(&pair).unwrap()).unwrap(), made);
        let listed = fs::read_to_string(public_path(&pair)).unwrap();
        assert_eq!(PublicKey::parse_list(&listed).unwrap()[0].0, made.public());

        let before = fs::read(&key).unwrap();
        let error = generate_key(&key).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists, "{error}");
        assert!(generate_pair(&key).is_err());
        assert!(!public_path(&key).exists(), "a public key without its private key");
        assert_eq!(fs::read(&key).unwrap(), before);
        fs::remove_file(&pair).unwrap();
        assert!(generate_pair(&pair).is_err(), "the public key exists");
        assert!(!pair.exists());
    }

    #[test]
    fn a_secret_that_others_can_access_is_rejected() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("key");
        generate_key(&path).unwrap();
        for wrong in [0o640, 0o604, 0o620, 0o601] {
            fs::set_permissions(&path, Permissions::from_mode(wrong)).unwrap();
            let error = read_secret(&path).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
            let text = error.to_string();
            assert!(text.contains(&format!("mode {wrong:03o}")), "{text}");
            assert!(text.ends_with(&format!("chmod 600 {}", path.display())), "{text}");
        }
        for right in [0o600, 0o400] {
            fs::set_permissions(&path, Permissions::from_mode(right)).unwrap();
            assert_eq!(read_secret(&path).unwrap().len(), 65);
        }
        let error = read_secret(&folder.path().join("none")).unwrap_err();
        assert!(error.to_string().ends_with("none: No such file or directory"), "{error}");
        let error = read_secret(folder.path()).unwrap_err();
        assert!(error.to_string().ends_with(": Is a directory"), "{error}");
    }
}
