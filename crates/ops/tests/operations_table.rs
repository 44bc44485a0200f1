//! `docs/operations.md` says what the signatures say.

#[path = "../examples/operations_table.rs"]
mod operations_table;

#[test]
fn the_page_of_operations_is_what_the_signatures_say() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/operations.md");
    let committed = std::fs::read_to_string(page).unwrap_or_default();
    let expected = operations_table::render();
    let differing = committed.lines().zip(expected.lines()).position(|(a, b)| a != b);
    assert!(
        committed == expected,
        "docs/operations.md is not up to date from line {} on; run\n    \
         cargo run -q -p nnhal-ops --example operations_table > docs/operations.md",
        differing.unwrap_or(committed.lines().count().min(expected.lines().count())) + 1,
    );
}
