//! Functions of one element of any type, and LOGICAL_NOT.

use crate::InstructionSet;
use crate::prepared::OneInput;
use crate::sharing::{ELEMENTS_OF_MAP, for_each_slice};
use crate::team::Team;
use crate::vector::{Isa, Kernel, Simd};

/// Prepared LOGICAL_NOT of any number of bytes, which are true if they are not 0; outputs are 1 or 0.
#[derive(Debug, Clone, Copy)]
pub struct Not {
    /// With which instructions it is computed.
    pub set: InstructionSet,
}

impl OneInput for Not {
    type Input = u8;
    type Output = u8;

    fn name(&self) -> String {
        "logical not bool".to_owned()
    }

    fn run(&self, team: &mut Team, input: &[u8], output: &mut [u8]) {
        map(self.set, team, input, output, |it| u8::from(it == 0));
    }
}

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
    for_each_slice(team, output, ELEMENTS_OF_MAP, |start, output| {
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
