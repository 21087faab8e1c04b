//! Every table comes back as it was written.

use gtrace::event::Interval;
use gtrace::store::schema::{TableVisitor, visit_tables};
use gtrace::store::writer::SealPolicy;
use gtrace::store::{Bundle, BundleWriter, Table};
use proptest::prelude::*;

use crate::arbitrary::{Words, rows};
use crate::samples::meta;

/// Gives every table its rows.
struct Write<'a>(&'a mut BundleWriter, &'a [u64], usize);

impl TableVisitor for Write<'_> {
    fn visit<T: Table>(&mut self) {
        let written = rows::<T>(self.2, &mut Words::new(self.1));
        assert_eq!(T::from_batch(&T::to_batch(&written)).unwrap(), written, "{}: Arrow", T::NAME);
        self.0.append(written);
    }
}

/// Reads every table in every way there is.
struct Read<'a>(&'a Bundle, &'a [u64], usize);

impl TableVisitor for Read<'_> {
    fn visit<T: Table>(&mut self) {
        let Self(bundle, words, count) = *self;
        let mut expected = rows::<T>(count, &mut Words::new(words));
        expected.sort_by_key(Table::sort_key);
        assert_eq!(bundle.meta().rows.get(T::NAME).copied().unwrap_or_default(), count as u64);
        // Parts are sorted each, and equal times keep the order of the parts: the same as one stable sort.
        assert_eq!(bundle.read::<T>().unwrap(), expected, "{}: parts", T::NAME);
        assert_eq!(bundle.count::<T>().unwrap(), count as u64);
        let scanned: Vec<T> = bundle.scan().unwrap().map(Result::unwrap).collect();
        assert_eq!(scanned, expected, "{}: scan", T::NAME);

        if let (Some(first), Some(last)) = (expected.get(count / 4), expected.get(count * 3 / 4)) {
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

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, ..ProptestConfig::default() })]

    #[test]
    fn every_table(words in prop::collection::vec(prop_oneof![any::<u64>(), 0..9_u64], 1..200), count in 0_usize..60) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.gtrace");
        let policy = SealPolicy { rows: 7, ..SealPolicy::default() };
        let mut writer = BundleWriter::create_with(&path, meta(), None, policy).unwrap();
        visit_tables(&mut Write(&mut writer, &words, count));
        writer.finish(meta()).unwrap();
        visit_tables(&mut Read(&Bundle::open(&path).unwrap(), &words, count));
    }
}
