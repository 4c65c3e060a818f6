//! The lines of `/etc/passwd` and `/etc/group`. What is no line of an account is passed over.

/// A user, as one line says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PasswdEntry<'t> {
    /// Its name.
    pub name: &'t str,
    /// Its number.
    pub uid: u32,
    /// The number of its own group.
    pub gid: u32,
    /// Its home folder, if the line goes that far.
    pub home: Option<&'t str>,
}

/// A group, as one line says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupEntry<'t> {
    /// Its name.
    pub name: &'t str,
    /// Its number.
    pub gid: u32,
    /// The users that it lists. Whose own group it is need not be among them.
    pub members: Vec<&'t str>,
}

/// The users that the text of a `passwd` file names. Of two with one name the first counts.
pub fn parse_passwd(passwd: &str) -> impl Iterator<Item = PasswdEntry<'_>> {
    passwd.lines().filter_map(|line| {
        let mut fields = line.split(':');
        let (name, _, uid, gid) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
        let home = fields.nth(1);
        let (uid, gid) = (uid.parse().ok()?, gid.parse().ok()?);
        (!name.is_empty()).then_some(PasswdEntry { name, uid, gid, home })
    })
}

/// The groups that the text of a `group` file names. Of two with one name the first counts.
pub fn parse_group(group: &str) -> impl Iterator<Item = GroupEntry<'_>> {
    group.lines().filter_map(|line| {
        let mut fields = line.split(':');
        let (name, _, gid, members) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
        let members = members.split(',').map(str::trim).filter(|member| !member.is_empty()).collect();
        Some(GroupEntry { name, gid: gid.parse().ok()?, members }).filter(|line| !line.name.is_empty())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_an_account_is_one_and_no_other_is() {
        let passwd =
            "root:x:0:0:root:/root:/bin/bash\n# nobody\n\n::1:1::/:\nbroken:x:many:1::/:\nshort:x:7:8\n";
        let user = |name, uid, gid, home| PasswdEntry { name, uid, gid, home };
        assert_eq!(
            parse_passwd(passwd).collect::<Vec<_>>(),
            [user("root", 0, 0, Some("/root")), user("short", 7, 8, None)]
        );
        let group = "root:x:0:\n:x:1:\naudio:x:29:root, kid,\nbroken:x:-1:kid\nshort:x:5\n";
        let line = |name, gid, members: &[&'static str]| GroupEntry { name, gid, members: members.to_vec() };
        assert_eq!(
            parse_group(group).collect::<Vec<_>>(),
            [line("root", 0, &[]), line("audio", 29, &["root", "kid"])]
        );
    }
}
