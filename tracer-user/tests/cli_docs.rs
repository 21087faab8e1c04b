//! docs/cli.md is what the program itself says.
#![cfg(feature = "record")]

use std::fmt::Write as _;
use std::path::Path;

use clap::CommandFactory as _;

/// `GTRACE_BLESS=1 cargo test -p gtrace --test cli_docs` rewrites the file.
#[test]
fn docs_cli_md_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/cli.md");
    let expected = document();
    if std::env::var_os("GTRACE_BLESS").is_some() {
        std::fs::write(&path, &expected).expect("docs/cli.md can be written");
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == expected,
        "docs/cli.md differs from the program's help; run GTRACE_BLESS=1 cargo test -p gtrace --test cli_docs"
    );
}

fn document() -> String {
    let mut command = gtrace::cli::Cli::command().disable_help_subcommand(true);
    command.build();
    let mut text = String::from(
        "# The command line\n\n<!-- Made from the program's own help by tracer-user/tests/cli_docs.rs. -->\n\n\
         Results go to stdout, everything else to stderr. `NO_COLOR` is honoured.\n",
    );
    section(&mut text, "gtrace", &mut command);
    let names: Vec<String> = command.get_subcommands().map(|sub| sub.get_name().to_owned()).collect();
    for name in names {
        if let Some(sub) = command.find_subcommand_mut(&name) {
            // Said once, above.
            *sub = sub.clone().mut_args(|arg| {
                let hidden =
                    ["quiet", "verbose", "color", "help", "version"].contains(&arg.get_id().as_str());
                arg.hide(hidden)
            });
            section(&mut text, &format!("gtrace {name}"), sub);
        }
    }
    text
}

fn section(text: &mut String, title: &str, command: &mut clap::Command) {
    let help = command.render_long_help().to_string();
    let lines: Vec<&str> = help.lines().map(str::trim_end).collect();
    let _ = write!(text, "\n## {title}\n\n```text\n{}\n```\n", lines.join("\n").trim_end());
}
