//! Which keys the queries of a block attend to.

/// What a mask adds to a score that is to become nothing is at most this: such scores are lower than all others by so much that
/// their exponentials are 0, whatever they were.
const MASKED: f32 = -1e30;

/// How many of the first keys some queries attend to, of each of which this is the row of the mask; all keys, if one of them
/// attends to none.
pub(super) fn attended<'m>(rows: impl Iterator<Item = &'m [f32]>, keys: usize) -> usize {
    let is_attended = |added: &f32| *added > MASKED || added.is_nan();
    let mut most = 0;
    for row in rows {
        if let Some(last) = row[most..].iter().rposition(is_attended) {
            most += last + 1;
        } else if !row[..most].iter().any(is_attended) {
            return keys;
        }
    }
    most
}
