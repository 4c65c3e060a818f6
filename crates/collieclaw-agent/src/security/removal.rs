//! Removal of folders that programs have filled.

use std::io;
use std::path::Path;

/// Removes a folder with everything in it. Folders without write permission are removed as well: Go and other tools
/// protect their caches that way. Symlinks are not followed.
///
/// # Errors
/// Fails if something can't be removed, also if the folder doesn't exist.
pub fn remove_tree(folder: &Path) -> io::Result<()> {
    match std::fs::remove_dir_all(folder) {
        Err(error)
            if error.kind() == io::ErrorKind::PermissionDenied
                && ward_process::sandbox::remove_folder(folder) =>
        {
            Ok(())
        }
        removed => removed,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn folders_without_write_permission_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let cache = folder.path().join("cache");
        fs::create_dir_all(cache.join("module/deep")).unwrap();
        fs::write(cache.join("module/deep/file"), "x").unwrap();
        for path in ["module/deep", "module"] {
            fs::set_permissions(cache.join(path), PermissionsExt::from_mode(0o555)).unwrap();
        }
        remove_tree(&cache).unwrap();
        assert!(!cache.exists());
        assert_eq!(remove_tree(&cache).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
