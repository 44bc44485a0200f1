//! [`map`]: any function of one element of any type.

use crate::InstructionSet;
use crate::parts::for_each_slice;
use crate::team::Team;
use crate::vector::{Isa, Kernel, Simd};

/// Elements from which on a second thread is worth waking.
const ELEMENTS_OF_TASK: usize = 16 << 10;

/// `output = function(input)` for every element. Functions marked `#[inline(always)]`, or so simple that
/// they are inlined anyway, become vector instructions of the instruction set.
///
/// # Panics
/// If there are not as many outputs as inputs.
pub(crate) fn map<T: Copy + Sync, U: Send>(
    set: InstructionSet,
    team: &mut Team,
    input: &[T],
    output: &mut [U],
    function: impl Fn(T) -> U + Sync,
) {
    assert_eq!(input.len(), output.len(), "an output of another size");
    let isa = Isa::of(set);
    for_each_slice(team, output, ELEMENTS_OF_TASK, |start, output| {
        let input = &input[start..start + output.len()];
        isa.run(Block { input, output, function: &function });
    });
}

struct Block<'a, T, U, F> {
    input: &'a [T],
    output: &'a mut [U],
    function: &'a F,
}

impl<T: Copy, U, F: Fn(T) -> U> Kernel for Block<'_, T, U, F> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        for (output, input) in self.output.iter_mut().zip(self.input) {
            *output = (self.function)(*input);
        }
    }
}
