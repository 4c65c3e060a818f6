//! Who a user is, from the two files that say so. Users of a directory service are not seen.

use std::path::{Path, PathBuf};

use shepherd_util::{GroupLine, group_lines, user_lines};

/// A user of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct User {
    pub(crate) name: String,
    pub(crate) user: u32,
    pub(crate) group: u32,
    /// All its groups, its own included.
    pub(crate) groups: Vec<u32>,
    pub(crate) home: PathBuf,
}

impl User {
    /// Looks a name up in the texts of `/etc/passwd` and `/etc/group`.
    pub(crate) fn find(name: &str, passwd: &str, group: &str) -> Option<Self> {
        let line = user_lines(passwd).find(|line| line.name == name && line.home.is_some())?;
        let mut groups = vec![line.gid];
        for GroupLine { gid, members, .. } in group_lines(group) {
            if members.contains(&name) && !groups.contains(&gid) {
                groups.push(gid);
            }
        }
        let home = PathBuf::from(line.home?);
        Some(Self { name: name.to_owned(), user: line.uid, group: line.gid, groups, home })
    }

    /// The same, on this machine.
    pub(crate) fn find_here(name: &str) -> std::io::Result<Option<Self>> {
        Self::find_in(name, Path::new("/etc/passwd"), Path::new("/etc/group"))
    }

    /// Somebody's full name in another encoding is no reason to know nobody.
    fn find_in(name: &str, passwd: &Path, group: &Path) -> std::io::Result<Option<Self>> {
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
        let kid = User {
            name: "kid".into(),
            user: 1001,
            group: 1002,
            groups: vec![1002, 29, 60],
            home: "/home/kid".into(),
        };
        assert_eq!(User::find("kid", PASSWD, GROUP), Some(kid));
    }

    #[test]
    fn a_name_in_another_encoding_hides_nobody() {
        let folder = tempfile::tempdir().unwrap();
        let (passwd, group) = (folder.path().join("passwd"), folder.path().join("group"));
        std::fs::write(
            &passwd,
            [b"opa:x:1003:1003:J\xfcrgen:/home/opa:/bin/sh\n", PASSWD.as_bytes()].concat(),
        )
        .unwrap();
        std::fs::write(&group, GROUP).unwrap();
        let found = |name| User::find_in(name, &passwd, &group).unwrap().map(|user| user.user);
        assert_eq!((found("kid"), found("opa")), (Some(1001), Some(1003)));
    }

    #[test]
    fn who_is_not_listed_properly_is_nobody() {
        for name in ["", "kidder", "broken", "# no user", "1001"] {
            assert_eq!(User::find(name, PASSWD, GROUP), None, "{name}");
        }
    }
}
