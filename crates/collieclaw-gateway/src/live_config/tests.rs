use std::path::PathBuf;

use collieclaw_agent::config::{self, ConfigContext};
use ward_diag::SourceText;

use super::*;

const START: SystemTime = SystemTime::UNIX_EPOCH;

/// Returns the metadata of a file written `seconds` after the start.
fn stamp_at(seconds: u64) -> Option<ConfigFileStamp> {
    let modified = START + Duration::from_secs(seconds);
    Some(ConfigFileStamp { file: (1, 1), length: 1, modified, changed: (0, 0), rules_changed: None })
}

fn load(text: &str) -> LoadedConfig {
    let folder = PathBuf::from("/nowhere");
    let home = folder.join(".collieclaw");
    let surroundings = ConfigContext { home, user_home: folder, variables: [].into() };
    let tools = collieclaw_agent::tools::built_in_tools();
    let names: Vec<&str> = tools.iter().map(|tool| tool.name()).collect();
    let config = config::read(SourceText::new("config.toml", text), &surroundings, &names).unwrap();
    LoadedConfig { policy_hash: config.security.autonomy.to_string(), config, text: text.into() }
}

const READONLY: &str = "[security]\nautonomy = \"readonly\"\n";

/// A configuration file in memory, with a fixed clock.
struct LiveConfigFixture {
    live_config: LiveConfig,
    file: Arc<Mutex<Result<LoadedConfig, String>>>,
    reads: Arc<Mutex<u32>>,
    read: ConfigLoader,
}

impl LiveConfigFixture {
    fn new(text: &str) -> Self {
        let file = Arc::new(Mutex::new(Ok(load(text))));
        let reads = Arc::new(Mutex::new(0));
        let (reading, counting) = (Arc::clone(&file), Arc::clone(&reads));
        let read: ConfigLoader = Box::new(move || {
            *counting.lock().unwrap() += 1;
            reading.lock().unwrap().clone()
        });
        Self { live_config: LiveConfig::new(load(text), stamp_at(0)), file, reads, read }
    }

    fn set_file(&self, now: Result<LoadedConfig, &str>) {
        *self.file.lock().unwrap() = now.map_err(str::to_owned);
    }

    /// Returns the state one second after the file was written, and how often the file was read.
    fn read_settled(
        &self,
        trace: Option<ConfigFileStamp>,
    ) -> (ConfigSnapshot, Option<ConfigTransition>, u32) {
        let clock = trace.map_or(START, |trace| trace.modified + SETTLE_TIME);
        let (state, taken) = self.live_config.current(&|| trace, clock, &self.read);
        (state, taken, std::mem::take(&mut *self.reads.lock().unwrap()))
    }
}

#[test]
fn a_file_of_this_moment_is_not_settled_and_one_from_tomorrow_is() {
    let file = stamp_at(86_400).unwrap();
    let settled = |clock: SystemTime| file.is_settled(clock);
    let almost = Duration::from_millis(999);
    assert!(!settled(file.modified) && !settled(file.modified + almost));
    assert!(settled(file.modified + SETTLE_TIME) && settled(START));
}

#[test]
fn a_file_is_read_once_it_is_another_and_settled_and_only_then() {
    let scene = LiveConfigFixture::new("");
    let (state, taken, reads) = scene.read_settled(stamp_at(0));
    assert_eq!((state.changed, taken.is_some(), reads), (false, false, 0));

    scene.set_file(Ok(load(READONLY)));
    let (state, taken) =
        scene.live_config.current(&|| stamp_at(5), stamp_at(5).unwrap().modified, &scene.read);
    assert_eq!((state.config.security.autonomy, state.changed), (AutonomyLevel::Supervised, true));
    assert!(taken.is_none());
    let (state, taken, reads) = scene.read_settled(stamp_at(5));
    assert_eq!((state.config.security.autonomy, state.changed, reads), (AutonomyLevel::ReadOnly, false, 1));
    assert!(taken.is_some());
    assert_eq!(scene.read_settled(stamp_at(5)).2, 0);
    // Modification time and length are the same, but the change is still noticed.
    let hidden = stamp_at(5).map(|trace| ConfigFileStamp { changed: (1, 0), ..trace });
    assert_eq!(scene.read_settled(hidden).2, 1);

    // The port stays the same until the server restarts.
    scene.set_file(Ok(load("[channels.gateway]\nport = 1\ntools_allow = [\"time\"]")));
    let (state, ..) = scene.read_settled(stamp_at(6));
    let channel = &state.config.channels.gateway;
    assert_eq!((channel.port, channel.tools_allow.len()), (GatewaySettings::default().port, 1));
    assert!(state.changed);
}

#[test]
fn a_file_that_is_changed_while_it_is_read_is_not_taken() {
    let scene = LiveConfigFixture::new("");
    scene.set_file(Ok(load(READONLY)));
    let looks = Mutex::new(0);
    let file = || {
        *looks.lock().unwrap() += 1;
        stamp_at(*looks.lock().unwrap())
    };
    let (state, taken) = scene.live_config.current(&file, START, &scene.read);
    assert_eq!((state.config.security.autonomy, state.changed), (AutonomyLevel::Supervised, true));
    assert!(taken.is_none());
}

#[test]
fn what_is_wrong_is_looked_at_until_it_is_mended() {
    let scene = LiveConfigFixture::new("");
    scene.set_file(Err("broken"));
    for _ in 0..2 {
        let (state, taken, reads) = scene.read_settled(stamp_at(1));
        assert_eq!((state.fault.as_deref(), state.changed, reads), (Some("broken"), true, 1));
        assert!(taken.is_none());
    }
    scene.set_file(Ok(load("")));
    let (state, taken, _) = scene.read_settled(stamp_at(1));
    assert_eq!((state.fault, state.changed, taken.is_some()), (None, false, false), "nothing is new");
    assert_eq!(scene.read_settled(stamp_at(1)).2, 0);
}

#[test]
fn a_file_that_lost_its_end_is_not_taken() {
    let text = format!("{READONLY}[limits]\nmax_tool_rounds = 3\n");
    let scene = LiveConfigFixture::new(&text);
    for (cut, why) in
        [("", "empty"), ("\n", "empty"), (READONLY, "in the middle"), ("[security]\n", "in the")]
    {
        scene.set_file(Ok(load(cut)));
        let (state, taken, _) = scene.read_settled(stamp_at(1));
        assert!(state.fault.as_ref().is_some_and(|fault| fault.contains(why)), "{cut}: {:?}", state.fault);
        assert_eq!((state.config.security.autonomy, taken.is_some()), (AutonomyLevel::ReadOnly, false));
    }
    // These texts are complete: the user wrote them like this.
    for whole in [text.trim_end(), &text, "# all as usual\n"] {
        scene.set_file(Ok(load(whole)));
        assert_eq!(scene.read_settled(stamp_at(2)).0.fault, None, "{whole}");
        scene.set_file(Err("between them"));
        scene.read_settled(stamp_at(3));
    }
}

#[test]
fn what_is_taken_is_told_with_what_was_before() {
    let scene = LiveConfigFixture::new(READONLY);
    let full = "[security]\nautonomy = \"full\"\naudit_log = false\n";
    for (second, text, expected, is_looser) in [
        (1, "[limits]\n", "readonly supervised", true),
        (2, full, "supervised full", true),
        (3, READONLY, "full readonly", false),
    ] {
        scene.set_file(Ok(load(text)));
        let taken = scene.read_settled(stamp_at(second)).1.unwrap();
        let AgentEvent::ConfigReloaded {
            autonomy_before,
            autonomy,
            policy_hash_before,
            policy_hash,
            loosened,
        } = taken.event()
        else {
            panic!("another event")
        };
        assert_eq!((&*format!("{autonomy_before} {autonomy}"), loosened), (expected, is_looser));
        assert_eq!(format!("{policy_hash_before} {policy_hash}"), expected);
        assert!(taken.audited_config().security.audit_log, "the log that was, or the one that is");
    }
    // A changed comment doesn't change the rules.
    scene.set_file(Ok(load(&format!("{READONLY}# more\n"))));
    assert!(scene.read_settled(stamp_at(4)).1.is_none());
}
