//! Settings of `git`, some of which make it run commands.

/// The meaning of a setting for security.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SettingEffect {
    /// The setting changes how `git` prints, stores or names something.
    Harmless,
    /// The setting makes `git` run a command, or read files elsewhere.
    Steers,
    /// The gate doesn't know the setting.
    Unknown,
}

/// Sections and settings that change how `git` prints, stores or names something, in lower case. A section
/// ends with a dot.
const HARMLESS: &[&str] = &[
    "advice.",
    "author.name",
    "author.email",
    "blame.blankboundary",
    "blame.coloring",
    "blame.date",
    "blame.showemail",
    "blame.showroot",
    "branch.autosetupmerge",
    "branch.autosetuprebase",
    "branch.sort",
    "checkout.",
    "color.",
    "column.",
    "commit.gpgsign",
    "commit.verbose",
    "commit.cleanup",
    "committer.name",
    "committer.email",
    "core.abbrev",
    "core.autocrlf",
    "core.bigfilethreshold",
    "core.checkstat",
    "core.commentchar",
    "core.compression",
    "core.eol",
    "core.filemode",
    "core.ignorecase",
    "core.logallrefupdates",
    "core.longpaths",
    "core.precomposeunicode",
    "core.quotepath",
    "core.safecrlf",
    "core.splitindex",
    "core.trustctime",
    "core.untrackedcache",
    "core.whitespace",
    "diff.algorithm",
    "diff.colormoved",
    "diff.colormovedws",
    "diff.context",
    "diff.indentheuristic",
    "diff.interhunkcontext",
    "diff.mnemonicprefix",
    "diff.noprefix",
    "diff.renamelimit",
    "diff.renames",
    "diff.statgraphwidth",
    "diff.submodule",
    "diff.wserrorhighlight",
    "fetch.prune",
    "fetch.prunetags",
    "fetch.parallel",
    "format.pretty",
    "gc.auto",
    "gc.autodetach",
    "grep.",
    "i18n.",
    "index.",
    "init.defaultbranch",
    "log.",
    "maintenance.auto",
    "merge.conflictstyle",
    "merge.ff",
    "merge.log",
    "merge.renamelimit",
    "merge.renames",
    "merge.stat",
    "merge.verbosity",
    "pack.",
    "pull.ff",
    "pull.rebase",
    "push.autosetupremote",
    "push.default",
    "push.followtags",
    "rebase.abbreviatecommands",
    "rebase.autosquash",
    "rebase.autostash",
    "rebase.missingcommitscheck",
    "rebase.stat",
    "rebase.updaterefs",
    "rerere.autoupdate",
    "rerere.enabled",
    "stash.",
    "status.",
    "tag.gpgsign",
    "tag.sort",
    "user.email",
    "user.name",
    "user.useconfigonly",
    "versionsort.",
];

/// Beginnings and endings of settings that make `git` run a command, obey another file of settings, or use
/// another work tree, in lower case.
const STEERING_BEGINNINGS: &[&str] = &[
    "alias.",
    "browser.",
    "core.alternaterefscommand",
    "core.askpass",
    "core.attributesfile",
    "core.editor",
    "core.excludesfile",
    "core.fsmonitor",
    "core.gitproxy",
    "core.hookspath",
    "core.pager",
    "core.sshcommand",
    "core.worktree",
    "credential.",
    "diff.external",
    "difftool.",
    "filter.",
    "gpg.",
    "gui.",
    "guitool.",
    "hook.",
    "include.",
    "includeif.",
    "init.templatedir",
    "instaweb.",
    "interactive.difffilter",
    "man.",
    "merge.tool",
    "mergetool.",
    "pager.",
    "protocol.",
    "remote.",
    "sendemail.",
    "sequence.editor",
    "submodule.",
    "tar.",
    "trailer.",
    "uploadpack.",
    "url.",
    "web.",
];
const STEERING_ENDINGS: &[&str] = &[".command", ".cmd", ".driver", ".textconv", ".program", ".vcs"];

/// Returns the effect of setting `name` to a value. The case of a name's first and last part is ignored, as in
/// `git`.
pub(super) fn setting_effect(name: &str, value: Option<&str>) -> SettingEffect {
    let name = name.trim().to_ascii_lowercase();
    let listed =
        |known: &&&str| if known.ends_with('.') { name.starts_with(**known) } else { name == ***known };
    let prints_plainly = matches!(value, Some("cat" | "" | "less" | "more" | "less -R" | "less -FRX"));
    if name == "core.pager" && prints_plainly || HARMLESS.iter().any(|known| listed(&known)) {
        SettingEffect::Harmless
    } else if STEERING_BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
        || STEERING_ENDINGS.iter().any(|ending| name.ends_with(ending))
    {
        SettingEffect::Steers
    } else {
        SettingEffect::Unknown
    }
}

#[cfg(test)]
mod tests {
    use super::{HARMLESS, STEERING_BEGINNINGS, SettingEffect, setting_effect};

    #[test]
    fn names_are_compared_without_their_case() {
        for (name, value, effect) in [
            ("user.name", None, SettingEffect::Harmless),
            ("User.Email", Some("x"), SettingEffect::Harmless),
            ("core.pager", Some("cat"), SettingEffect::Harmless),
            ("core.pager", Some("./x"), SettingEffect::Steers),
            ("CORE.hooksPath", Some("x"), SettingEffect::Steers),
            ("Alias.st", Some("!id"), SettingEffect::Steers),
            ("diff.x.textconv", None, SettingEffect::Steers),
            ("merge.x.driver", None, SettingEffect::Steers),
            ("color.ui", Some("never"), SettingEffect::Harmless),
            ("safe.directory", Some("*"), SettingEffect::Unknown),
            ("blame.ignoreRevsFile", Some("x"), SettingEffect::Unknown),
            ("http.sslVerify", Some("false"), SettingEffect::Unknown),
        ] {
            assert_eq!(setting_effect(name, value), effect, "{name}");
        }
    }

    #[test]
    fn no_harmless_setting_steers() {
        for known in HARMLESS {
            let steering = STEERING_BEGINNINGS.iter().find(|name| known.starts_with(*name));
            assert_eq!(steering, None, "{known}");
            assert_eq!(*known, known.to_ascii_lowercase());
        }
    }
}
