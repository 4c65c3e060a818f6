//! Resolution of the symlinks in configured paths.

use std::path::{Path, PathBuf};

use collieclaw_gate::{MachineFacts, PathStatus};

use crate::security::SystemFacts;

/// Resolves all symlinks of a path as far as the path exists. The missing rest is appended.
pub(crate) fn resolve_real_path(path: &Path) -> PathBuf {
    let found = path.ancestors().find_map(|ancestor| Some((ancestor, follow_links(ancestor)?)));
    let (ancestor, real) = found.unwrap_or((path, path.to_owned()));
    match path.strip_prefix(ancestor) {
        Ok(below) if !below.as_os_str().is_empty() => real.join(below),
        _ => real,
    }
}

/// Returns all paths as written, followed by the resolved paths that differ.
pub(super) fn with_real_paths(paths: &[PathBuf]) -> Vec<PathBuf> {
    let mut both = paths.to_vec();
    let resolved = paths.iter().map(|path| resolve_real_path(path));
    both.extend(resolved.filter(|path| !paths.contains(path)));
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
    fn symlinks_are_resolved_even_if_their_target_is_missing() {
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
