//! Finds the files that scripts of `awk` and `sed` write, as far as the script names them. Such scripts run
//! only at `full`, but even there they must not write to protected paths.

/// The number of output files that are checked in a script.
const MAX_OUTPUT_FILES: usize = 64;

/// Paths that these programs treat as their own streams.
const STREAMS: [&str; 3] = ["/dev/stdout", "/dev/stderr", super::walk::DEV_NULL];

/// Returns the files of `print > "file"`.
pub(super) fn awk_output_files(program: &str) -> impl Iterator<Item = &str> {
    program.split('>').skip(1).filter_map(awk_output_file).take(MAX_OUTPUT_FILES)
}

fn awk_output_file(behind: &str) -> Option<&str> {
    let text = behind.trim_start_matches([' ', '\t', '(']).strip_prefix('"')?;
    text.split('"').next().filter(|file| is_output_file(file))
}

/// Returns the files of `w file` and `s/a/b/gw file`; a name reaches to the end of its line.
pub(super) fn sed_output_files(script: &str) -> impl Iterator<Item = &str> {
    let in_line = |line| {
        str::match_indices(line, ['w', 'W']).filter_map(move |(place, _)| sed_output_file(line, place))
    };
    script.lines().flat_map(in_line).take(MAX_OUTPUT_FILES)
}

/// Returns the file after a `w`, if the `w` can be a command or the last flag of a command.
fn sed_output_file(line: &str, place: usize) -> Option<&str> {
    let behind = line.get(place + 1..)?;
    let file = behind.trim_start_matches([' ', '\t']);
    let in_word = line.get(..place)?.ends_with(|letter: char| letter.is_alphabetic());
    ((!in_word || file.len() < behind.len()) && is_output_file(file)).then_some(file)
}

fn is_output_file(name: &str) -> bool {
    !name.is_empty() && !STREAMS.contains(&name)
}
