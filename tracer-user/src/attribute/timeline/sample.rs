//! Stack samples of a thread.

use crate::attribute::names::Name;
use crate::event::{MonoNs, RowId};

/// One sample; see the table `samples`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Its row.
    pub id: RowId,
    /// When.
    pub time: MonoNs,
    /// File or library.
    pub file: Name,
    /// The function.
    pub function: Name,
    /// The line, 0 if unknown.
    pub line: i32,
    /// The native function in which Python's was.
    pub inside: Name,
}

/// The function that most of the samples are in, the first of several: its most frequent line there, what it was mostly in
/// then, and two of its samples.
#[must_use]
pub fn most(samples: &[Sample]) -> Option<(Sample, [Option<RowId>; 2])> {
    let function = |sample: &Sample| (sample.file, sample.function);
    let first = most_frequent(samples.iter(), function)?;
    let own = || samples.iter().filter(move |sample| function(sample) == function(&first));
    let lined = most_frequent(own(), |sample| sample.line)?;
    let on_line = || own().filter(move |sample| sample.line == lined.line);
    let whole = most_frequent(on_line(), |sample| sample.inside)?;
    let mut rows = on_line().filter(|sample| sample.inside == whole.inside).map(|sample| sample.id);
    Some((whole, [rows.next(), rows.next()]))
}

fn most_frequent<'a, K: PartialEq>(
    samples: impl Iterator<Item = &'a Sample>,
    key: impl Fn(&Sample) -> K,
) -> Option<Sample> {
    let mut counts: Vec<(K, usize, Sample)> = Vec::new();
    for sample in samples {
        let own = key(sample);
        match counts.iter_mut().find(|(known, ..)| *known == own) {
            Some((_, count, _)) => *count += 1,
            None => counts.push((own, 1, *sample)),
        }
    }
    let most = counts.iter().map(|(_, count, _)| *count).max()?;
    counts.into_iter().find(|(_, count, _)| *count == most).map(|(.., sample)| sample)
}
