//! [`unrolled`]: loops whose indices are constants.
//!
//! What is computed in vectors has no closures and no adapters of iterators in its innermost loops: they are functions
//! without the vector instructions if the compiler does not inline them, and much to compile if it does.

/// Repeats a statement with a constant index from 0 on, as long as it is below a constant. A loop
/// would be unrolled too late for the values of an array to be kept in registers. What is left out is not
/// compiled at all; conditions on the index in the statement should be constants too, for the same reason.
macro_rules! unrolled {
    ($index:ident < $count:expr, $($number:literal)* => $body:block) => {
        $(if const { $number < $count } {
            const $index: usize = $number;
            $body
        })*
    };
}
pub(crate) use unrolled;
