//! Errors for people: one sentence of what failed, one of why, one of what to do.

use std::error::Error;
use std::fmt;

use super::exit::ExitStatus;

/// An error with its three parts. Each is a sentence without its full stop.
#[derive(Debug)]
pub struct Failure {
    what: String,
    why: Option<String>,
    remedy: Option<String>,
    status: ExitStatus,
}

impl Failure {
    /// What failed: "cannot open the recording x.gtrace".
    #[must_use]
    pub fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), why: None, remedy: None, status: ExitStatus::Failed }
    }

    /// Why: "there is no such folder".
    #[must_use]
    pub fn because(mut self, why: impl Into<String>) -> Self {
        self.why = Some(why.into());
        self
    }

    /// What to do: "give the folder that `gtrace run -o` wrote".
    #[must_use]
    pub fn try_this(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }

    /// Makes it an error of usage (exit status 2).
    #[must_use]
    pub fn wrong_usage(mut self) -> Self {
        self.status = ExitStatus::Usage;
        self
    }

    /// The exit status that it calls for.
    #[must_use]
    pub fn status(&self) -> ExitStatus {
        self.status
    }

    /// What failed.
    #[must_use]
    pub fn what(&self) -> &str {
        &self.what
    }

    /// Why.
    #[must_use]
    pub fn why(&self) -> Option<&str> {
        self.why.as_deref()
    }

    /// What to do.
    #[must_use]
    pub fn remedy(&self) -> Option<&str> {
        self.remedy.as_deref()
    }

    /// The three parts of any error: a [`Failure`] as it is, another one as its chain of sources.
    #[must_use]
    pub fn of(error: &anyhow::Error) -> Parts {
        if let Some(failure) = error.downcast_ref::<Self>() {
            return Parts {
                what: failure.what.clone(),
                why: failure.why.clone(),
                remedy: failure.remedy.clone(),
                status: failure.status,
            };
        }
        let why: Vec<String> = error.chain().skip(1).map(ToString::to_string).collect();
        Parts {
            what: error.to_string(),
            why: (!why.is_empty()).then(|| why.join(": ")),
            remedy: None,
            status: ExitStatus::Failed,
        }
    }
}

/// An error taken apart for printing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parts {
    /// What failed.
    pub what: String,
    /// Why.
    pub why: Option<String>,
    /// What to do.
    pub remedy: Option<String>,
    /// The exit status that it calls for.
    pub status: ExitStatus,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        if let Some(why) = &self.why {
            write!(f, ": {why}")?;
        }
        Ok(())
    }
}

impl Error for Failure {}

/// Gives a result the words for a person.
pub trait OrFail<T> {
    /// On an error: what failed and what to do; why is the error itself with its sources.
    ///
    /// # Errors
    /// The error, worded.
    fn or_fail(self, what: impl Into<String>, remedy: impl Into<String>) -> Result<T, Failure>;
}

impl<T, E: Into<anyhow::Error>> OrFail<T> for Result<T, E> {
    fn or_fail(self, what: impl Into<String>, remedy: impl Into<String>) -> Result<T, Failure> {
        self.map_err(|error| {
            let why: Vec<String> = error.into().chain().map(ToString::to_string).collect();
            Failure::new(what).because(why.join(": ")).try_this(remedy)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_keeps_its_parts_through_anyhow() {
        let failure = Failure::new("a").because("b").try_this("c").wrong_usage();
        let parts = Failure::of(&anyhow::Error::new(failure));
        assert_eq!((parts.what.as_str(), parts.status), ("a", ExitStatus::Usage));
        assert_eq!((parts.why.as_deref(), parts.remedy.as_deref()), (Some("b"), Some("c")));
    }

    #[test]
    fn why_is_the_whole_chain_of_sources() {
        let missing = std::fs::File::open("/nonexistent/file")
            .map_err(|error| anyhow::Error::new(error).context("reading the table"));
        let failure = missing.or_fail("cannot open it", "look").expect_err("the file does not exist");
        assert_eq!(failure.why(), Some("reading the table: No such file or directory (os error 2)"));
    }
}
