//! Running other programs: each is printed before it runs, and its failure names it.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, bail};

/// A command line as a person would type it.
pub fn display(command: &Command) -> String {
    let variables = command
        .get_envs()
        .filter_map(|(name, value)| Some(format!("{}={}", name.to_string_lossy(), value?.to_string_lossy())));
    let words = std::iter::once(command.get_program()).chain(command.get_args()).map(quote);
    variables.chain(words).collect::<Vec<_>>().join(" ")
}

fn quote(word: &OsStr) -> String {
    let word = word.to_string_lossy();
    let plain = |c: char| c.is_alphanumeric() || "-_./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.into_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// Prints and runs a command.
///
/// # Errors
/// It cannot be started, or fails.
pub fn run(command: &mut Command) -> Result<()> {
    let line = display(command);
    eprintln!("+ {line}");
    let status = command.status().with_context(|| format!("cannot start `{line}`"))?;
    if !status.success() {
        bail!("`{line}` ended with {status}");
    }
    Ok(())
}

/// Prints and runs a command; its exit status is ours.
///
/// # Errors
/// It cannot be started.
pub fn exit_of(command: &mut Command) -> Result<ExitCode> {
    let line = display(command);
    eprintln!("+ {line}");
    let status = command.status().with_context(|| format!("cannot start `{line}`"))?;
    Ok(ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)))
}

/// Prints and runs a command, shows its standard output and gives each line of it to `line`. Whether it succeeded.
///
/// # Errors
/// It cannot be started, or its output cannot be read.
pub fn run_lines(command: &mut Command, mut line: impl FnMut(&str)) -> Result<bool> {
    let shown = display(command);
    eprintln!("+ {shown}");
    let mut child =
        command.stdout(Stdio::piped()).spawn().with_context(|| format!("cannot start `{shown}`"))?;
    if let Some(stdout) = child.stdout.take() {
        for text in BufReader::new(stdout).lines() {
            let text = text.with_context(|| format!("cannot read the output of `{shown}`"))?;
            println!("{text}");
            line(&text);
        }
    }
    Ok(child.wait().with_context(|| format!("cannot wait for `{shown}`"))?.success())
}

/// The standard output of a command that succeeds; nothing if it cannot be started or fails.
pub fn output(command: &mut Command) -> Option<String> {
    let output = command.stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// The path of a program on PATH.
pub fn which(program: &str) -> Option<std::path::PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
}
