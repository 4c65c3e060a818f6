//! Where the paths of a configuration really are.

use std::path::{Path, PathBuf};

use collieclaw_gate::{MachineFacts, PathStatus};

use crate::security::SystemFacts;

/// A path with all links followed, as far as it can be looked at; what is not there lies where it would be made.
pub(super) fn resolve_real_path(path: &Path) -> PathBuf {
    let found = path.ancestors().find_map(|above| Some((above, follow_links(above)?)));
    let (above, place) = found.unwrap_or((path, path.to_owned()));
    match path.strip_prefix(above) {
        Ok(below) if !below.as_os_str().is_empty() => place.join(below),
        _ => place,
    }
}

/// Each path as it is written, and as it really is where that differs.
pub(super) fn with_real_paths(paths: &[PathBuf]) -> Vec<PathBuf> {
    let mut both = paths.to_vec();
    let led = paths.iter().map(|path| resolve_real_path(path));
    both.extend(led.filter(|place| !paths.contains(place)));
    both
}

fn follow_links(path: &Path) -> Option<PathBuf> {
    match SystemFacts.inspect_path(path) {
        PathStatus::Missing { leads_to }
        | PathStatus::File { leads_to, .. }
        | PathStatus::Folder { leads_to }
        | PathStatus::Special { leads_to } => Some(leads_to),
        PathStatus::Unreachable => None,
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
            assert_eq!(resolve_real_path(&at(path)), at(place), "{path}");
        }
        assert_eq!(with_real_paths(&[at("ssh"), at("keys/x")]), [at("ssh"), at("keys/x"), at("keys")]);
    }
}
