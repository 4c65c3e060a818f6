//! Looks up users in `/etc/passwd` and `/etc/group`. Users of a directory service are not found.

use std::path::{Path, PathBuf};

use shepherd_util::{GroupEntry, parse_group, parse_passwd};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UnixUser {
    pub(crate) name: String,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    /// All groups of the user, including the primary group.
    pub(crate) gids: Vec<u32>,
    pub(crate) home: PathBuf,
}

impl UnixUser {
    /// Finds a user in the texts of `/etc/passwd` and `/etc/group`.
    pub(crate) fn find(name: &str, passwd: &str, group: &str) -> Option<Self> {
        let line = parse_passwd(passwd).find(|line| line.name == name && line.home.is_some())?;
        let mut gids = vec![line.gid];
        for GroupEntry { gid, members, .. } in parse_group(group) {
            if members.contains(&name) && !gids.contains(&gid) {
                gids.push(gid);
            }
        }
        let home = PathBuf::from(line.home?);
        Some(Self { name: name.to_owned(), uid: line.uid, gid: line.gid, gids, home })
    }

    /// Finds a user of this machine.
    pub(crate) fn find_on_system(name: &str) -> std::io::Result<Option<Self>> {
        Self::find_in_files(name, Path::new("/etc/passwd"), Path::new("/etc/group"))
    }

    /// Reads the files lossily, because a full name may be in another encoding.
    fn find_in_files(name: &str, passwd: &Path, group: &Path) -> std::io::Result<Option<Self>> {
        let text =
            |file| Ok::<_, std::io::Error>(String::from_utf8_lossy(&std::fs::read(file)?).into_owned());
        Ok(Self::find(name, &text(passwd)?, &text(group)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWD: &str = "root:x:0:0:root:/root:/bin/bash\n# no user\nbroken:x:many:1::/:\nkid:x:1001:1002:Kid,,,:/home/kid:/bin/sh\n";
    const GROUP: &str = "root:x:0:\naudio:x:29:root,kid\nkid:x:1002:kid\nvideo:x:44:kidder\nplay:x:60:kid\n";

    #[test]
    fn a_user_comes_with_all_its_groups_and_no_others() {
        let kid = UnixUser {
            name: "kid".into(),
            uid: 1001,
            gid: 1002,
            gids: vec![1002, 29, 60],
            home: "/home/kid".into(),
        };
        assert_eq!(UnixUser::find("kid", PASSWD, GROUP), Some(kid));
    }

    #[test]
    fn a_name_in_another_encoding_hides_no_user() {
        let folder = tempfile::tempdir().unwrap();
        let (passwd, group) = (folder.path().join("passwd"), folder.path().join("group"));
        std::fs::write(
            &passwd,
            [b"opa:x:1003:1003:J\xfcrgen:/home/opa:/bin/sh\n", PASSWD.as_bytes()].concat(),
        )
        .unwrap();
        std::fs::write(&group, GROUP).unwrap();
        let found = |name| UnixUser::find_in_files(name, &passwd, &group).unwrap().map(|user| user.uid);
        assert_eq!((found("kid"), found("opa")), (Some(1001), Some(1003)));
    }

    #[test]
    fn a_user_without_a_valid_line_is_not_found() {
        for name in ["", "kidder", "broken", "# no user", "1001"] {
            assert_eq!(UnixUser::find(name, PASSWD, GROUP), None, "{name}");
        }
    }
}
