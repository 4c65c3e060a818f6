//! Where the paths of a configuration really are.

use std::path::{Path, PathBuf};

use collieclaw_gate::{Facts, Seen};

use crate::security::SystemFacts;

/// A path with all links followed, as far as it can be looked at; what is not there lies where it would be made.
pub(super) fn real(path: &Path) -> PathBuf {
    let found = path.ancestors().find_map(|above| Some((above, leads_to(above)?)));
    let (above, place) = found.unwrap_or((path, path.to_owned()));
    match path.strip_prefix(above) {
        Ok(below) if !below.as_os_str().is_empty() => place.join(below),
        _ => place,
    }
}

/// Each path as it is written, and as it really is where that differs.
pub(super) fn written_and_real(paths: &[PathBuf]) -> Vec<PathBuf> {
    let mut both = paths.to_vec();
    let led = paths.iter().map(|path| real(path));
    both.extend(led.filter(|place| !paths.contains(place)));
    both
}

fn leads_to(path: &Path) -> Option<PathBuf> {
    match SystemFacts.look(path) {
        Seen::Nothing { leads_to }
        | Seen::File { leads_to, .. }
        | Seen::Folder { leads_to }
        | Seen::Special { leads_to } => Some(leads_to),
        Seen::Unreachable => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_are_followed_also_to_what_is_not_there() {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str| folder.path().canonicalize().unwrap().join(path);
        std::fs::create_dir(at("keys")).unwrap();
        symlink("keys", at("ssh")).unwrap();
        symlink(at("ssh/later"), at("nowhere")).unwrap();
        symlink("round", at("round")).unwrap();
        for (path, place) in [
            ("keys", "keys"),
            ("ssh", "keys"),
            ("ssh/new/file", "keys/new/file"),
            ("nowhere", "keys/later"),
            ("nowhere/x", "keys/later/x"),
            ("round/x", "round/x"),
        ] {
            assert_eq!(real(&at(path)), at(place), "{path}");
        }
        assert_eq!(written_and_real(&[at("ssh"), at("keys/x")]), [at("ssh"), at("keys/x"), at("keys")]);
    }
}
