//! Files that scripts of other programs write, as far as their names can be seen. Such a script is only for `full`
//! anyway; a file that no tool may write it may not write there, either.

/// Files looked at in one script.
const MAX_OUTPUT_FILES: usize = 64;

/// What these programs know as names of their own streams.
const STREAMS: [&str; 3] = ["/dev/stdout", "/dev/stderr", super::walk::DEV_NULL];

/// The files of `print > "file"`.
pub(super) fn awk_output_files(program: &str) -> impl Iterator<Item = &str> {
    program.split('>').skip(1).filter_map(awk_output_file).take(MAX_OUTPUT_FILES)
}

fn awk_output_file(behind: &str) -> Option<&str> {
    let text = behind.trim_start_matches([' ', '\t', '(']).strip_prefix('"')?;
    text.split('"').next().filter(|file| is_output_file(file))
}

/// The files of `w file` and `s/a/b/gw file`, up to the end of the line.
pub(super) fn sed_output_files(script: &str) -> impl Iterator<Item = &str> {
    let in_line = |line| {
        str::match_indices(line, ['w', 'W']).filter_map(move |(place, _)| sed_output_file(line, place))
    };
    script.lines().flat_map(in_line).take(MAX_OUTPUT_FILES)
}

/// The file behind a `w`, if that is a command or the last flag of one.
fn sed_output_file(line: &str, place: usize) -> Option<&str> {
    let behind = line.get(place + 1..)?;
    let file = behind.trim_start_matches([' ', '\t']);
    let in_word = line.get(..place)?.ends_with(|letter: char| letter.is_alphabetic());
    ((!in_word || file.len() < behind.len()) && is_output_file(file)).then_some(file)
}

fn is_output_file(name: &str) -> bool {
    !name.is_empty() && !STREAMS.contains(&name)
}
