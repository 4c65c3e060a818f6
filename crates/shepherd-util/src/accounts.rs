//! Parsers for the text of `/etc/passwd` and `/etc/group`. Malformed lines are skipped.

/// A user account, as listed on one line of `/etc/passwd`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PasswdEntry<'t> {
    pub name: &'t str,
    pub uid: u32,
    /// The id of the user's primary group.
    pub gid: u32,
    /// The home folder, or `None` if the line has too few fields.
    pub home: Option<&'t str>,
}

/// A group, as listed on one line of `/etc/group`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupEntry<'t> {
    pub name: &'t str,
    pub gid: u32,
    /// The users listed on the line. Users with this primary group may be absent from the list.
    pub members: Vec<&'t str>,
}

/// Returns the users in the text of a `passwd` file, in file order. If two lines have the same name, callers
/// use the first, as the system does.
pub fn parse_passwd(passwd: &str) -> impl Iterator<Item = PasswdEntry<'_>> {
    passwd.lines().filter_map(|line| {
        let mut fields = line.split(':');
        let (name, _, uid, gid) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
        let home = fields.nth(1);
        let (uid, gid) = (uid.parse().ok()?, gid.parse().ok()?);
        (!name.is_empty()).then_some(PasswdEntry { name, uid, gid, home })
    })
}

/// Returns the groups in the text of a `group` file, in file order. If two lines have the same name, callers
/// use the first, as the system does.
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
    fn well_formed_lines_are_parsed_and_others_skipped() {
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
