//! Every table comes back as it was written.

use gtrace::event::{Interval, MonoNs};
use gtrace::store::schema::{TableVisitor, visit_tables};
use gtrace::store::writer::SealPolicy;
use gtrace::store::{Bundle, BundleWriter, Table};
use proptest::prelude::*;

use crate::arbitrary::{Words, rows};
use crate::samples::meta;

/// Writes rows of every table in parts of a few rows, and reads them again in every way there is.
struct RoundTrip<'a> {
    words: Words<'a>,
    count: usize,
    dir: &'a std::path::Path,
}

impl TableVisitor for RoundTrip<'_> {
    fn visit<T: Table>(&mut self) {
        let written = rows::<T>(self.count, &mut self.words);
        assert_eq!(T::from_batch(&T::to_batch(&written)).unwrap(), written, "{}: Arrow", T::NAME);

        let dir = self.dir.join(T::NAME);
        let policy = SealPolicy { rows: 7, ..SealPolicy::default() };
        let mut writer = BundleWriter::create_with(&dir, meta(), None, policy).unwrap();
        writer.append(written.clone());
        let finished = writer.finish(meta()).unwrap();
        assert_eq!(finished.rows.get(T::NAME).copied().unwrap_or_default(), written.len() as u64);

        let mut expected = written;
        expected.sort_by_key(Table::sort_key);
        let bundle = Bundle::open(&dir).unwrap();
        // Parts are sorted each, and equal times keep the order of the parts: the same as one stable sort.
        assert_eq!(bundle.read::<T>().unwrap(), expected, "{}: parts", T::NAME);
        assert_eq!(bundle.count::<T>().unwrap(), expected.len() as u64);
        let scanned: Vec<T> = bundle.scan().unwrap().map(Result::unwrap).collect();
        assert_eq!(times(&scanned), times(&expected), "{}: scan", T::NAME);

        let (from, to) = (expected.len() / 4, expected.len() * 3 / 4);
        if let (Some(first), Some(last)) = (expected.get(from), expected.get(to)) {
            let window = Interval { start: first.sort_key(), end: last.sort_key() };
            let inside: Vec<T> = expected
                .iter()
                .filter(|row| window.start <= row.sort_key() && row.sort_key() < window.end)
                .cloned()
                .collect();
            assert_eq!(bundle.read_window::<T>(window).unwrap(), inside, "{}: window", T::NAME);
        }

        bundle.replace(expected.clone()).unwrap();
        assert_eq!(bundle.read::<T>().unwrap(), expected, "{}: replaced", T::NAME);
        bundle.replace::<T>(Vec::new()).unwrap();
        assert_eq!(bundle.read::<T>().unwrap(), Vec::new(), "{}: emptied", T::NAME);
    }
}

fn times<T: Table>(rows: &[T]) -> Vec<MonoNs> {
    rows.iter().map(Table::sort_key).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn every_table(words in prop::collection::vec(any::<u64>(), 1..200), count in 0_usize..60) {
        let dir = tempfile::tempdir().unwrap();
        visit_tables(&mut RoundTrip { words: Words::new(&words), count, dir: dir.path() });
    }
}
