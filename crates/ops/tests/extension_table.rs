//! `docs/extension.md` says what the extension's tables say.

#[path = "../examples/extension_table.rs"]
mod extension_table;

#[test]
fn the_page_of_the_extension_is_what_its_tables_say() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/extension.md");
    let committed = std::fs::read_to_string(page).unwrap_or_default();
    let expected = extension_table::render();
    let differing = committed.lines().zip(expected.lines()).position(|(a, b)| a != b);
    assert!(
        committed == expected,
        "docs/extension.md is not up to date from line {} on; run\n    \
         cargo run -q -p nnhal-ops --example extension_table > docs/extension.md",
        differing.unwrap_or(committed.lines().count().min(expected.lines().count())) + 1,
    );
}
