//! Names of kernel functions: timers are told apart by the function that they run.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader};

use crate::event::Text;

/// Most scans of `/proc/kallsyms` in a recording: it is some 10 MB of text, and only a handful of timer functions ever
/// wake anybody.
const MAX_SCANS: u32 = 32;

/// Names of the functions seen so far.
#[derive(Default)]
pub struct KernelSymbols {
    names: HashMap<u64, Option<Text>>,
    scans: u32,
}

impl KernelSymbols {
    /// The function that begins at `address`. `None` if it has no name, or the kernel hides addresses
    /// (`kernel.kptr_restrict`).
    pub fn name(&mut self, address: u64) -> Option<Text> {
        if address == 0 {
            return None;
        }
        if let Some(name) = self.names.get(&address) {
            return name.clone();
        }
        if self.scans >= MAX_SCANS {
            return None;
        }
        self.scans += 1;
        let name = find(address);
        self.names.insert(address, name.clone());
        name
    }
}

/// Lines `ffffffff81234560 T name\t[module]`.
fn find(address: u64) -> Option<Text> {
    let wanted = format!("{address:016x}");
    let mut reader = BufReader::with_capacity(1 << 16, File::open("/proc/kallsyms").ok()?);
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line).is_ok_and(|length| length > 0) {
        if line.starts_with(wanted.as_bytes()) {
            let text = String::from_utf8_lossy(&line);
            let mut fields = text.split_ascii_whitespace().skip(1);
            if matches!(fields.next(), Some("t" | "T" | "w" | "W")) {
                return fields.next().map(Text::from);
            }
        }
        line.clear();
    }
    None
}

/// Where these kernel functions begin; 0 for one that this kernel does not have, or whose address it hides.
#[must_use]
pub fn addresses_of<const N: usize>(names: [&str; N]) -> [u64; N] {
    let mut addresses = [0; N];
    let Ok(file) = File::open("/proc/kallsyms") else { return addresses };
    let mut reader = BufReader::with_capacity(1 << 16, file);
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line).is_ok_and(|length| length > 0) {
        let text = String::from_utf8_lossy(&line);
        let mut fields = text.split_ascii_whitespace();
        if let (Some(address), Some("t" | "T"), Some(name)) = (fields.next(), fields.next(), fields.next())
            && let Some(index) = names.iter().position(|wanted| *wanted == name)
        {
            addresses[index] = u64::from_str_radix(address, 16).unwrap_or(0);
        }
        line.clear();
    }
    addresses
}
