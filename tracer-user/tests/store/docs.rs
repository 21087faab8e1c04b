//! Generated documentation.

use std::path::Path;

#[test]
fn schema_page() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/schema.md");
    let page = gtrace::store::docs::schema_markdown();
    if std::env::var_os("GTRACE_BLESS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == page,
        "docs/schema.md does not say what the tables are: GTRACE_BLESS=1 cargo test -p gtrace schema_page"
    );
}
