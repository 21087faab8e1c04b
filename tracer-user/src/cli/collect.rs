//! How much is recorded of the GPU side: options that `run` and `attach` share.

use clap::{Args, ValueEnum};
use tracer_abi::shim::{CollectMode, Collection};

use super::parse_duration;
use crate::record::{Windows, Wish};

/// The options.
#[derive(Clone, Debug, Default, Args)]
pub struct CollectArgs {
    /// How much CUPTI collects.
    #[arg(long, value_enum, default_value = "full")]
    pub cupti: CuptiMode,
    /// How CUDA graphs are traced; `whole` costs least. (`--cupti light` implies `whole`.)
    #[arg(long, value_enum, default_value = "nodes")]
    pub graphs: GraphMode,
    /// Collect GPU work only now and then: `5s/60s` is 5 seconds in each minute. The rest reads unknown.
    #[arg(long, value_name = "ON/EVERY", value_parser = parse_windows)]
    pub window: Option<Windows>,
}

/// How much.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum CuptiMode {
    /// Device work, calls, synchronisations, overhead.
    #[default]
    Full,
    /// Device work, and the driver calls that launch, wait, allocate or load; graphs as a whole.
    Light,
}

/// How graphs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum GraphMode {
    /// A record for each node.
    #[default]
    Nodes,
    /// A record for each launch of a graph.
    Whole,
}

impl CollectArgs {
    /// What is wished for.
    #[must_use]
    pub fn wish(&self) -> Wish {
        let collection = match self.cupti {
            CuptiMode::Light => Collection::LIGHT,
            CuptiMode::Full => {
                Collection { mode: CollectMode::Full, whole_graphs: self.graphs == GraphMode::Whole }
            }
        };
        Wish { collection, windows: self.window }
    }
}

fn parse_windows(text: &str) -> Result<Windows, String> {
    let (on, every) = text.split_once('/').ok_or("it is a time, a slash and a time: 5s/60s")?;
    let windows = Windows { on: parse_duration(on)?, every: parse_duration(every)? };
    if windows.on.as_secs() < 1 || windows.on >= windows.every {
        return Err("the first time is at least 1s, and shorter than the second".to_owned());
    }
    Ok(windows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn windows_are_two_times() {
        let good = Windows { on: Duration::from_secs(5), every: Duration::from_secs(60) };
        assert_eq!(parse_windows("5s/60s"), Ok(good));
        assert_eq!(parse_windows("5s/1m"), Ok(good));
        for bad in ["", "5s", "5s/", "/60s", "60s/5s", "5s/5s", "100ms/1s", "a/b"] {
            assert!(parse_windows(bad).is_err(), "{bad}");
        }
    }
}
