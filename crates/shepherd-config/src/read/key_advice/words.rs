//! Plausible words for keys, by section.

use super::KeyWords;

const fn means(words: &'static [&'static str], key: &'static str, help: &'static str) -> KeyWords {
    KeyWords { words, key, help }
}

const WRITE_WINDOWS: &str = "hours are `windows = [{ days = \"weekdays\", from = \"15:00\", to = \"18:00\" }]`, in an entry or in `[defaults]`";

const NO_CLOSED_HOURS: &str = "`windows` are the hours in which an entry may run, and `bedtime = \"20:00-07:00\"` below \
                               `[profiles.NAME]` closes everything at night";

const WRITE_BEDTIME: &str = "`bedtime = \"20:00-07:00\"` belongs below `[profiles.NAME]` of the child";

const WRITE_EXCEPTIONS: &str =
    "days with other hours are `[[exceptions]]`, with `on = 2026-12-24` and `closed = true`";

const WRITE_MAX_RUN: &str =
    "`max_run = \"30m\"` is the longest single run, and `daily_quota = \"1h\"` the time per day";

const WRITE_DAILY_QUOTA: &str =
    "`daily_quota = \"1h\"` is the time per day, and `max_run = \"30m\"` the longest single run";

const WRITE_ARGV: &str = "write the program and its arguments as `argv = [\"tuxmath\", \"--fullscreen\"]`";

const MODES_GO_INSIDE: &str = "name modes inside a window (`modes = [\"holiday\"]`) or a quota \
                               (`daily_quota = { all = \"1h\", modes = { holiday = \"2h\" } }`)";

const QUOTA_OF_A_MODE: &str = "a mode's quota is in the entry or budget: \
                               `daily_quota = { all = \"1h\", modes = { holiday = \"2h\" } }`";

const WINDOWS_OF_A_MODE: &str = "a mode's hours are a window of the entry: `windows = [{ from = \"09:00\", to = \"12:00\", modes = [\"holiday\"] }]`";

/// The advice for the keys of a profile without its header.
pub(super) const WRITE_PROFILE: &str =
    "write `[profiles.anna]` for each child, with its `accounts = [\"anna\"]`";

const LIMITS_ARE_IN_ENTRIES: &str =
    "limits and hours are set in an entry; `profiles = [\"anna\"]` in the entry says for whom";

/// Keys that entries and `[defaults]` share.
pub(super) const SHARED: &[KeyWords] = &[
    means(
        &[
            "hours",
            "schedule",
            "schedules",
            "times",
            "time",
            "when",
            "allowed",
            "allowed_hours",
            "allowed_times",
            "availability",
            "available",
            "opening_hours",
            "open",
            "time_window",
            "time_windows",
        ],
        "/defaults/windows",
        WRITE_WINDOWS,
    ),
    means(
        &["days", "day", "weekdays", "weekends", "from", "to", "start", "until"],
        "/defaults/windows",
        WRITE_WINDOWS,
    ),
    means(
        &["quiet_hours", "quiet_time", "curfew", "blocked_hours", "closed_hours", "forbidden"],
        "/defaults/windows",
        NO_CLOSED_HOURS,
    ),
    means(&["bedtime", "bed_time", "night", "nights"], "/profiles/*/bedtime", WRITE_BEDTIME),
    means(
        &["days_off", "day_off", "holidays", "holiday", "closed", "except", "exception"],
        "/exceptions",
        WRITE_EXCEPTIONS,
    ),
    means(
        &["anytime", "any_time", "all_day", "always_on", "always_open", "unlimited"],
        "/defaults/always",
        "write `always = true`",
    ),
    means(
        &[
            "timeout",
            "time_limit",
            "limit",
            "limits",
            "max",
            "max_time",
            "max_session",
            "max_duration",
            "max_length",
            "max_minutes",
            "duration",
            "session",
            "session_limit",
            "session_time",
            "length",
            "minutes",
            "run_time",
            "runtime",
            "longest_run",
        ],
        "/defaults/max_run",
        WRITE_MAX_RUN,
    ),
    means(
        &[
            "quota",
            "quotas",
            "daily",
            "daily_limit",
            "daily_time",
            "per_day",
            "day_limit",
            "limit_per_day",
            "max_per_day",
            "max_daily",
            "time_per_day",
            "screen_time",
            "allowance",
        ],
        "/defaults/daily_quota",
        WRITE_DAILY_QUOTA,
    ),
    means(
        &["weekly", "weekly_limit", "per_week", "week_limit", "max_per_week", "max_weekly", "time_per_week"],
        "/defaults/weekly_quota",
        "`weekly_quota = \"4h\"` is the time per week",
    ),
    means(
        &["cooldown", "cool_down", "pause", "gap", "wait", "rest", "break", "min_gap"],
        "/defaults/cooldown_after_run",
        "`cooldown_after_run = \"15m\"` is the pause after each run; a break across all entries is `[breaks]`",
    ),
    means(
        &["grace", "grace_period", "grace_time", "kill_after", "stop_timeout", "stop_after"],
        "/defaults/stop_grace",
        "`stop_grace = \"10s\"` is the time to exit when asked to; a notice before the end is `warnings = [\"5m\"]`",
    ),
    means(
        &["warning", "warn", "warn_before", "warn_at", "notify", "notifications", "alerts", "reminders"],
        "/defaults/warnings",
        "write `warnings = [\"5m\", \"1m\"]`",
    ),
    means(
        &["user_name", "username", "account", "run_as", "as_user", "uid", "owner", "login", "runs_as"],
        "/defaults/user",
        "`user = \"anna\"` is the user that the entry runs as",
    ),
    means(
        &["mem", "memory", "ram", "memory_limit", "max_memory", "memory_max"],
        "/defaults/resources/memory",
        "write `resources = { memory = \"2GiB\" }`",
    ),
    means(
        &["cpu", "cpus", "cpu_percent", "cpu_limit", "cpu_quota", "max_cpu"],
        "/defaults/resources/cpu",
        "write `resources = { cpu = \"150%\" }`",
    ),
    means(
        &["processes", "max_processes", "nproc", "pids", "tasks", "tasks_max"],
        "/defaults/resources/processes",
        "write `resources = { processes = 200 }`",
    ),
    means(
        &["open_files", "max_files", "nofile"],
        "/defaults/resources/open_files",
        "write `resources = { open_files = 1024 }`",
    ),
    means(
        &["file_size", "max_file_size", "fsize"],
        "/defaults/resources/file_size",
        "write `resources = { file_size = \"100MiB\" }`",
    ),
    means(
        &["fullscreen", "full_screen", "screen"],
        "/defaults/display",
        "write `display = \"fullscreen\"`; hours are `windows`",
    ),
    means(
        &["log", "log_size", "log_limit", "logs", "output"],
        "/defaults/output_limit",
        "`output_limit = \"1MiB\"` is the size of the output that is kept",
    ),
    means(&["mode", "modes"], "/entries[]/windows[]/modes", MODES_GO_INSIDE),
];

pub(super) const ENTRY: &[KeyWords] = &[
    means(
        &[
            "command",
            "cmd",
            "commandline",
            "command_line",
            "exec",
            "execute",
            "executable",
            "program",
            "binary",
            "bin",
            "path",
            "run",
            "launch",
            "app",
            "application",
            "script",
            "shell",
        ],
        "/entries[]/argv",
        WRITE_ARGV,
    ),
    means(
        &["name", "title", "display_name", "description", "caption"],
        "/entries[]/label",
        "`label` is the name to show, and `id` the short name that never changes",
    ),
    means(&["image", "picture", "logo", "icon_name"], "/entries[]/icon", "write `icon`"),
    means(
        &["profile", "child", "children", "kid", "kids", "for", "who", "users", "accounts", "people"],
        "/entries[]/profiles",
        "write `profiles = [\"anna\"]`; without it, the entry is for everybody",
    ),
    means(
        &["budget", "pool", "shared", "shares", "group"],
        "/entries[]/budgets",
        "write `budgets = [\"games\"]`, and define the budget as `[budgets.games]`",
    ),
    means(
        &["enabled", "enable", "active", "off", "disable", "hidden", "blocked"],
        "/entries[]/disabled",
        "write `disabled = true` to switch the entry off; without it, the entry is on",
    ),
    means(
        &["environment", "variables", "env_vars", "environ"],
        "/entries[]/env",
        "write `env = { LANG = \"de_DE.UTF-8\" }`",
    ),
    means(
        &[
            "dir",
            "directory",
            "folder",
            "workdir",
            "working_dir",
            "working_directory",
            "working_folder",
            "chdir",
        ],
        "/entries[]/cwd",
        "`cwd = \"/home/anna\"` is the folder that the program starts in",
    ),
    means(
        &["earn", "reward", "rewards", "bonus"],
        "/entries[]/earns",
        "write `earns = { budget = \"games\", for_each = \"20m\", earned = \"10m\", ceiling = \"30m\" }`",
    ),
    means(
        &[
            "requires",
            "require",
            "needs",
            "after",
            "depends_on",
            "unlock_after",
            "unlocked_by",
            "prerequisite",
            "first",
        ],
        "/entries[]/unlock",
        "write `unlock = { entry = \"tuxmath\", at_least = \"20m\" }`",
    ),
    means(&["free", "price"], "/entries[]/cost", "write `cost = \"free\"`"),
];

pub(super) const ROOT: &[KeyWords] = &[
    means(&["version", "schema_version", "policy_version"], "/config_version", "write `config_version = 1`"),
    means(&["tz", "zone", "time_zones", "local_time"], "/timezone", "write `timezone = \"Europe/Berlin\"`"),
    means(&["lang", "locale", "sprache"], "/language", "write `language = \"de\"` for German"),
    means(
        &[
            "entry",
            "program",
            "programs",
            "app",
            "apps",
            "application",
            "applications",
            "game",
            "games",
            "allowed",
        ],
        "/entries",
        "write `[[entries]]` for each program, with its `id` and `argv`",
    ),
    means(
        &["profile", "child", "children", "kid", "kids", "user", "users", "people", "accounts"],
        "/profiles",
        WRITE_PROFILE,
    ),
    means(
        &["admin", "admins", "administrators", "parents", "permissions", "shells", "observers", "others"],
        "/access",
        "write `[access]`, and below it `admins = [\"@parents\"]`",
    ),
    means(
        &["windows", "always", "hours", "schedule", "times", "allowed_hours"],
        "/defaults/windows",
        WRITE_WINDOWS,
    ),
    means(
        &["bedtime", "bed_time", "bedtimes", "quiet_hours", "quiet_time", "curfew"],
        "/profiles/*/bedtime",
        WRITE_BEDTIME,
    ),
    means(
        &["max_run", "time_limit", "limit", "limits", "max_time"],
        "/defaults/max_run",
        "write `max_run = \"30m\"` below `[defaults]` for all entries, or in an entry",
    ),
    means(
        &["daily_quota", "weekly_quota", "quota", "quotas", "daily", "daily_limit", "screen_time", "per_day"],
        "/defaults/daily_quota",
        "write `daily_quota = \"1h\"` below `[defaults]` for each entry, or share time between entries with \
         `[budgets.NAME]`",
    ),
    means(
        &["warnings", "warning", "warn"],
        "/defaults/warnings",
        "write `warnings = [\"5m\"]` below `[defaults]` for all entries, or in an entry",
    ),
    means(
        &["cooldown_after_run", "min_gap_between_runs", "cooldown"],
        "/defaults/cooldown_after_run",
        "write `cooldown_after_run = \"15m\"` below `[defaults]` for all entries, or in an entry",
    ),
    means(
        &["resources", "memory", "mem", "cpu", "cpu_percent"],
        "/defaults/resources",
        "write `resources = { memory = \"2GiB\" }` below `[defaults]` for all entries, or in an entry",
    ),
    means(
        &["days_off", "holidays", "holiday", "exception", "closed", "vacation"],
        "/exceptions",
        WRITE_EXCEPTIONS,
    ),
    means(&["mode", "school"], "/modes", "write `[modes]` with `names = [\"school\", \"holiday\"]`"),
    means(
        &["break", "pause", "pauses"],
        "/breaks",
        "write `[breaks]` with `after = \"2h\"` and `length = \"15m\"`",
    ),
    means(
        &["grant", "extra", "extra_time", "bonus", "extra_per_day", "open_until"],
        "/grants",
        "write `[grants]` with `extra_per_day = \"1h\"`",
    ),
    means(
        &["grace", "grace_period", "kill_after", "stop_timeout"],
        "/stop_grace",
        "`stop_grace = \"10s\"` is the time to exit when asked to",
    ),
    means(
        &["timeout", "start_timeout", "launch_time"],
        "/launch_timeout",
        "`launch_timeout = \"30s\"` is the time for a program to start; limits on play are `max_run` in an entry",
    ),
    means(&["reload", "auto_reload", "watch"], "/reload_on_change", "write `reload_on_change = true`"),
    means(
        &["examples", "example", "tests", "test", "expected"],
        "/expect",
        "write `expect = [\"sat 10:00 tuxmath: allow 30m\"]`",
    ),
    means(
        &["library", "media", "films"],
        "/libraries",
        "write `[libraries.films]` with `paths = [\"/srv/films\"]`",
    ),
    means(
        &["sway", "display", "window_manager"],
        "/compositor",
        "write `[compositor]` with `sway = \"connect\"`",
    ),
];

pub(super) const WINDOW: &[KeyWords] = &[
    means(
        &["start", "begin", "open", "opens", "after", "since"],
        "/entries[]/windows[]/from",
        "write `from = \"15:00\"`",
    ),
    means(
        &["end", "stop", "close", "closes", "until", "till", "before"],
        "/entries[]/windows[]/to",
        "write `to = \"18:00\"`",
    ),
    means(
        &["day", "weekday", "on", "weekdays", "weekends"],
        "/entries[]/windows[]/days",
        "write `days = \"weekdays\"` or `days = [\"mon\", \"fri\"]`",
    ),
    means(&["mode"], "/entries[]/windows[]/modes", "write `modes = [\"holiday\"]`"),
    means(
        &["hours", "time", "times"],
        "/entries[]/windows[]/from",
        "write `from = \"15:00\", to = \"18:00\"`",
    ),
];

pub(super) const WARNING: &[KeyWords] = &[
    means(
        &["at", "time", "when", "minutes", "remaining", "left", "after"],
        "/entries[]/warnings[]/before",
        "write `before = \"5m\"`",
    ),
    means(&["text", "msg", "label", "title", "say"], "/entries[]/warnings[]/message", "write `message`"),
    means(
        &["level", "kind", "type", "priority", "urgency"],
        "/entries[]/warnings[]/severity",
        "write `severity = \"critical\"`",
    ),
];

pub(super) const PROFILE: &[KeyWords] = &[
    means(&["name", "title", "display_name"], "/profiles/*/label", "`label` is the name to show"),
    means(
        &["bed_time", "quiet_hours", "quiet_time", "night", "nights", "school_nights", "curfew", "sleep"],
        "/profiles/*/bedtime",
        "write `bedtime = \"20:00-07:00\"`",
    ),
    means(
        &["account", "user", "users", "user_name", "username", "login", "uid", "logins"],
        "/profiles/*/accounts",
        "write `accounts = [\"anna\"]`",
    ),
    means(
        &[
            "windows",
            "always",
            "hours",
            "schedule",
            "max_run",
            "daily_quota",
            "weekly_quota",
            "quota",
            "limit",
            "limits",
            "time_limit",
            "daily",
            "weekly",
            "daily_limit",
            "budgets",
            "budget",
            "warnings",
        ],
        "/entries[]/profiles",
        LIMITS_ARE_IN_ENTRIES,
    ),
    means(
        &["entries", "entry", "programs", "games", "apps", "allowed"],
        "/entries[]/profiles",
        "write `[[entries]]`, without the name of the child, for each program; `profiles = [\"anna\"]` below it says for \
         whom",
    ),
];

pub(super) const BEDTIME: &[KeyWords] = &[
    means(
        &[
            "school_night",
            "school",
            "school_days",
            "schoolnights",
            "weekdays",
            "weekday",
            "week",
            "mon",
            "tue",
            "wed",
            "thu",
            "sun",
        ],
        "/profiles/*/bedtime/school_nights",
        "`school_nights` are the nights before Monday to Friday: `school_nights = \"20:00-07:00\"`",
    ),
    means(
        &["weekend", "weekend_nights", "fri", "sat"],
        "/profiles/*/bedtime/weekends",
        "`weekends` are the nights before Saturday and Sunday: `weekends = \"21:30-08:00\"`",
    ),
    means(
        &["from", "to", "start", "end", "until", "all", "every_night", "windows", "hours"],
        "/profiles/*/bedtime",
        "write `bedtime = \"20:00-07:00\"` for the same hours every night",
    ),
    means(
        &["holiday", "holidays", "mode"],
        "/profiles/*/bedtime/modes",
        "write `modes = { holiday = \"22:00-09:00\" }`, with a name from `[modes]`",
    ),
];

pub(super) const BUDGET: &[KeyWords] = &[
    means(&["name", "title", "display_name"], "/budgets/*/label", "`label` is the name to show"),
    means(
        &["quota", "daily_quota", "limit", "per_day", "day", "daily_limit", "time", "amount", "time_limit"],
        "/budgets/*/daily",
        "write `daily = \"1h\"`",
    ),
    means(
        &["weekly_quota", "per_week", "week", "weekly_limit"],
        "/budgets/*/weekly",
        "write `weekly = \"5h\"`",
    ),
    means(
        &["entries", "members", "games", "programs", "apps"],
        "/entries[]/budgets",
        "name the budget in each entry instead: `budgets = [\"games\"]`",
    ),
    means(
        &["mode", "modes"],
        "/budgets/*/daily",
        "write `daily = { all = \"1h\", modes = { holiday = \"2h\" } }`",
    ),
];

pub(super) const LIBRARY: &[KeyWords] = &[
    means(
        &["path", "folder", "folders", "dir", "directory", "directories", "files", "file"],
        "/libraries/*/paths",
        "write `paths = [\"/srv/films\"]`",
    ),
    means(&["program", "command", "cmd", "app", "argv"], "/libraries/*/player", "write `player = \"mpv\"`"),
];

pub(super) const DRIVER: &[KeyWords] = &[means(
    &["command", "cmd", "exec", "program", "executable", "path", "run"],
    "/drivers/*/argv",
    "write the program and its arguments as `argv = [\"/usr/bin/my-driver\"]`",
)];

pub(super) const ACCESS: &[KeyWords] = &[
    means(
        &["administrators", "parents", "parent", "owners", "root"],
        "/access/admins",
        "write `admins = [\"@parents\"]`",
    ),
    means(
        &["users", "children", "kids", "launchers", "players"],
        "/access/shells",
        "write `shells = [\"livingroom\"]`; accounts of a profile may start entries without being named",
    ),
    means(&["viewers", "watchers", "readers"], "/access/observers", "write `observers = [\"grandma\"]`"),
    means(
        &["default", "everyone", "everybody", "all", "anyone"],
        "/access/others",
        "write `others = \"observe\"`",
    ),
];

pub(super) const MODES: &[KeyWords] = &[
    means(&["list", "modes", "all", "values"], "/modes/names", "write `names = [\"school\", \"holiday\"]`"),
    means(
        &["standard", "usual", "normal", "current", "mode"],
        "/modes/default",
        "write `default = \"school\"`",
    ),
    means(
        &["days", "calendar", "holidays", "on", "from", "to"],
        "/modes/dates",
        "write `[[modes.dates]]`, and below it `mode`, `from` and `to`",
    ),
    means(
        &["daily_quota", "weekly_quota", "quota", "max_run", "limits", "limit", "daily", "weekly"],
        "/entries[]/daily_quota",
        QUOTA_OF_A_MODE,
    ),
    means(&["windows", "hours", "always", "schedule"], "/entries[]/windows", WINDOWS_OF_A_MODE),
];

pub(super) const MODE_DATES: &[KeyWords] = &[
    means(&["name", "names", "label", "title"], "/modes/dates[]/mode", "write `mode = \"holiday\"`"),
    means(&["day", "date"], "/modes/dates[]/on", "write `on = 2026-12-24`"),
    means(&["start", "begin", "first", "since"], "/modes/dates[]/from", "write `from = 2026-12-23`"),
    means(&["end", "until", "till", "last"], "/modes/dates[]/to", "write `to = 2027-01-06`"),
    means(
        &["daily_quota", "weekly_quota", "quota", "max_run", "limits", "limit", "daily", "weekly"],
        "/entries[]/daily_quota",
        QUOTA_OF_A_MODE,
    ),
    means(&["windows", "hours", "always", "schedule"], "/entries[]/windows", WINDOWS_OF_A_MODE),
];

pub(super) const EXCEPTION: &[KeyWords] = &[
    means(&["name", "title", "description", "reason"], "/exceptions[]/label", "write `label`"),
    means(
        &["day", "date", "days", "dates"],
        "/exceptions[]/on",
        "write `on = 2026-12-24`, or `from` and `to`",
    ),
    means(&["start", "begin", "first"], "/exceptions[]/from", "write `from = 2026-12-23`"),
    means(&["end", "until", "till", "last"], "/exceptions[]/to", "write `to = 2027-01-06`"),
    means(
        &["hours", "schedule", "times", "window"],
        "/exceptions[]/windows",
        "write `windows = [{ from = \"10:00\", to = \"11:00\" }]`",
    ),
    means(&["always", "all_day"], "/exceptions[]/open", "write `open = true`"),
    means(&["like", "as", "same_as", "weekday"], "/exceptions[]/as_on", "write `as_on = \"sun\"`"),
    means(
        &["entry", "program", "programs", "games", "apps"],
        "/exceptions[]/entries",
        "write `entries = [\"paint\"]`",
    ),
    means(
        &["daily_quota", "weekly_quota", "quota", "max_run", "limit", "limits", "mode", "modes"],
        "/modes/dates",
        "an exception changes hours only; for other limits give these days a mode with `[[modes.dates]]`",
    ),
];

pub(super) const BREAKS: &[KeyWords] = &[
    means(&["every", "interval", "max_run"], "/breaks/after", "write `after = \"2h\"`"),
    means(&["for", "duration", "pause", "break", "minutes"], "/breaks/length", "write `length = \"15m\"`"),
];

pub(super) const GRANTS: &[KeyWords] = &[
    means(
        &["max", "per_day", "extra", "limit", "daily", "max_per_day", "extra_time"],
        "/grants/extra_per_day",
        "write `extra_per_day = \"1h\"`",
    ),
    means(&["until", "latest", "to", "end"], "/grants/open_until", "write `open_until = \"20:30\"`"),
];

pub(super) const CLOCK: &[KeyWords] =
    &[means(&["skew", "drift", "max_skew", "allowed"], "/clock/tolerance", "write `tolerance = \"10m\"`")];

pub(super) const EARNS: &[KeyWords] = &[
    means(&["per", "every", "after", "each"], "/entries[]/earns/for_each", "write `for_each = \"20m\"`"),
    means(
        &["time", "gets", "reward", "amount", "bonus"],
        "/entries[]/earns/earned",
        "write `earned = \"10m\"`",
    ),
    means(
        &["max", "limit", "cap", "at_most", "max_per_day"],
        "/entries[]/earns/ceiling",
        "write `ceiling = \"30m\"`",
    ),
    means(&["for", "to", "budgets"], "/entries[]/earns/budget", "write `budget = \"games\"`"),
];

pub(super) const UNLOCK: &[KeyWords] = &[
    means(
        &["id", "after", "by", "program", "game"],
        "/entries[]/unlock/entry",
        "write `entry = \"tuxmath\"`",
    ),
    means(
        &["time", "min", "minimum", "minutes", "for", "duration"],
        "/entries[]/unlock/at_least",
        "write `at_least = \"20m\"`",
    ),
];

pub(super) const RESOURCES: &[KeyWords] = &[
    means(
        &["mem", "ram", "memory_limit", "max_memory", "memory_max"],
        "/entries[]/resources/memory",
        "write `memory = \"2GiB\"`",
    ),
    means(
        &["cpus", "cpu_percent", "cpu_limit", "cpu_quota", "cores", "processor"],
        "/entries[]/resources/cpu",
        "write `cpu = \"150%\"`",
    ),
    means(
        &["max_processes", "nproc", "pids", "tasks", "tasks_max"],
        "/entries[]/resources/processes",
        "write `processes = 200`",
    ),
    means(
        &["files", "max_files", "nofile", "fds"],
        "/entries[]/resources/open_files",
        "write `open_files = 1024`",
    ),
    means(
        &["fsize", "max_file_size", "disk"],
        "/entries[]/resources/file_size",
        "write `file_size = \"100MiB\"`",
    ),
];
