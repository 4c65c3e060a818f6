//! Links the programs so that they start fast.

fn main() -> std::io::Result<()> {
    ward_link::print_program_options()
}
