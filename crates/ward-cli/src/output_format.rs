//! The flag `--output`.

use clap::{Args, ValueEnum};

/// The flag `--output`, which all commands of a program take.
#[derive(Args, Clone, Copy, Debug)]
pub struct OutputArgs {
    /// Output format: text for people, json for scripts
    #[arg(id = "output", long = "output", value_name = "OUTPUT", value_enum, default_value_t, global = true)]
    pub format: OutputFormat,
}

/// The form in which a command prints its result.
#[expect(missing_docs, reason = "`clap` would show documentation of the variants in every help text")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    #[default]
    Text,
    Json,
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct TestProgram {
        #[command(flatten)]
        output: OutputArgs,
    }

    #[test]
    fn the_output_is_text_unless_json_is_asked_for() {
        let format = |words: &[&str]| TestProgram::try_parse_from(words).map(|program| program.output.format);
        assert_eq!(format(&["test"]).unwrap(), OutputFormat::Text);
        assert_eq!(format(&["test", "--output", "json"]).unwrap(), OutputFormat::Json);
        assert_eq!(format(&["test", "--output=text"]).unwrap(), OutputFormat::Text);
        assert!(format(&["test", "--output", "yaml"]).is_err());
    }
}
