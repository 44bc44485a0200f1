//! [`PreparedKernel`]: what all kernels have in common that are ready to run.

use crate::team::Team;
use bytemuck::{AnyBitPattern, Pod};
use std::fmt;

/// A kernel that is ready to run, on operands of the sizes and types that it was prepared for.
pub trait PreparedKernel: fmt::Debug + Send + Sync {
    /// What profiles call it: the operation, the filter's height and width if it has one, the algorithm
    /// where there are several, the type of the elements, and the instruction set where each has a kernel
    /// of its own: `conv2d 3x3 winograd f32 avx512`, `separable conv2d 1x1+3x3+1x1 strips f32 avx2`,
    /// `elementwise max i8`, `top k f32`. What only moves elements is named without a type: `copy`, `gather`,
    /// `select`.
    fn name(&self) -> String;

    /// Computes the outputs, as long as that is wanted: see [`Team::until`].
    ///
    /// # Errors
    /// A value among the inputs is one that the operation is not defined for.
    ///
    /// # Panics
    /// If operands are not those that it was prepared for.
    fn run_on(&self, team: &mut Team, operands: Operands<'_>) -> Result<(), WrongValue>;

    /// Bytes that it needs besides its operands.
    fn scratch_bytes(&self) -> usize {
        0
    }

    /// Additions and multiplications, where they are what takes time; otherwise 0.
    fn arithmetic(&self) -> u64 {
        0
    }

    /// Whether those are of numbers of 8 bits.
    fn is_8_bit(&self) -> bool {
        false
    }
}

/// A kernel that makes an output of one input.
pub trait OneInput: fmt::Debug + Send + Sync {
    /// An element of the input.
    type Input: AnyBitPattern;
    /// An element of the output.
    type Output: Pod;

    /// See [`PreparedKernel::name`].
    fn name(&self) -> String;

    /// Computes the output.
    ///
    /// # Panics
    /// If a slice has not the size that was prepared for.
    fn run(&self, team: &mut Team, input: &[Self::Input], output: &mut [Self::Output]);
}

impl<K: OneInput> PreparedKernel for K {
    fn name(&self) -> String {
        OneInput::name(self)
    }

    fn run_on(&self, team: &mut Team, operands: Operands<'_>) -> Result<(), WrongValue> {
        let (inputs, [output], _) = operands.split();
        self.run(team, inputs.of(0), bytemuck::cast_slice_mut(output));
        Ok(())
    }
}

/// Twice the product of these factors: the additions and multiplications of that many products.
pub(crate) fn multiply_adds(factors: &[usize]) -> u64 {
    factors.iter().fold(2, |all: u64, factor| all.saturating_mul(*factor as u64))
}

/// A value among the inputs that an operation is not defined for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrongValue {
    /// The number of the input, as the kernel counts them.
    pub input: usize,
    /// What of it is wrong.
    pub what: &'static str,
    /// What it is.
    pub found: String,
    /// What it should have been.
    pub expected: String,
}

/// Where the inputs of a kernel are.
pub trait InputBytes {
    /// The bytes of an input; `None` if it is left out. They are aligned for their elements.
    fn bytes(&self, index: usize) -> Option<&[u8]>;
}

/// The inputs of a kernel, in the order that it was prepared for.
#[derive(Clone, Copy)]
pub struct Inputs<'run>(&'run dyn InputBytes);

impl fmt::Debug for Inputs<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inputs").finish_non_exhaustive()
    }
}

/// The first ones; the others are left out.
impl InputBytes for &[&[u8]] {
    fn bytes(&self, index: usize) -> Option<&[u8]> {
        self.get(index).copied()
    }
}

/// All are left out.
impl Default for Inputs<'_> {
    fn default() -> Self {
        const NONE: &[&[u8]] = &[];
        Self(&NONE)
    }
}

impl<'run> Inputs<'run> {
    /// Inputs that are somewhere.
    pub(crate) fn new(bytes: &'run dyn InputBytes) -> Self {
        Self(bytes)
    }

    /// The elements of an input; `None` if it is left out.
    pub fn optional<T: AnyBitPattern>(&self, index: usize) -> Option<&'run [T]> {
        self.0.bytes(index).map(bytemuck::cast_slice)
    }

    /// The elements of an input that is not left out.
    pub fn of<T: AnyBitPattern>(&self, index: usize) -> &'run [T] {
        self.optional(index).unwrap_or_default()
    }
}

/// The most outputs that a kernel writes, its scratch memory included.
pub const MOST_WRITTEN: usize = 8;

/// What a kernel reads and writes in a run.
pub struct Operands<'run> {
    inputs: Inputs<'run>,
    /// The outputs, in their order, then the scratch memory.
    written: [&'run mut [u8]; MOST_WRITTEN],
}

impl<'run> Operands<'run> {
    /// Of inputs and of what is to be written: the outputs, then the scratch memory, then nothing. All is
    /// aligned for its elements.
    pub fn new(inputs: &'run dyn InputBytes, written: [&'run mut [u8]; MOST_WRITTEN]) -> Self {
        Self { inputs: Inputs::new(inputs), written }
    }

    /// Inputs to read, and the outputs and the scratch memory to write.
    pub fn split<const N: usize>(self) -> (Inputs<'run>, [&'run mut [u8]; N], &'run mut [u8]) {
        let mut written = self.written.into_iter();
        let outputs = std::array::from_fn(|_| written.next().unwrap_or_default());
        (self.inputs, outputs, written.next().unwrap_or_default())
    }

    /// Inputs to read, and the outputs and then the scratch memory to write, however many there are.
    pub fn split_all(self) -> (Inputs<'run>, impl Iterator<Item = &'run mut [u8]>) {
        (self.inputs, self.written.into_iter())
    }
}

/// The types of elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ElementType {
    /// 32-bit floats.
    F32,
    /// 64-bit floats.
    F64,
    /// Bytes with a sign.
    I8,
    /// 16-bit integers.
    I16,
    /// 32-bit integers.
    I32,
    /// 64-bit integers.
    I64,
    /// Bytes.
    U8,
    /// 16-bit integers without a sign.
    U16,
    /// 32-bit integers without a sign.
    U32,
    /// 64-bit integers without a sign.
    U64,
    /// Bytes that are true if they are not 0.
    Bool,
}

impl ElementType {
    /// In names of kernels.
    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F64 => "f64",
            Self::I8 => "i8",
            Self::I16 => "i16",
            Self::I32 => "i32",
            Self::I64 => "i64",
            Self::U8 => "u8",
            Self::U16 => "u16",
            Self::U32 => "u32",
            Self::U64 => "u64",
            Self::Bool => "bool",
        }
    }

    /// Whether elements are integers, which truth values are not.
    pub fn is_integer(self) -> bool {
        !matches!(self, Self::F32 | Self::F64 | Self::Bool)
    }

    /// Bytes of an element.
    pub fn size(self) -> usize {
        match self {
            Self::I8 | Self::U8 | Self::Bool => 1,
            Self::I16 | Self::U16 => 2,
            Self::F32 | Self::I32 | Self::U32 => 4,
            Self::F64 | Self::I64 | Self::U64 => 8,
        }
    }
}

/// The value of `$work`, in which `$T` is the type of integers. The other types are given an arm each.
macro_rules! for_integers {
    ($elements:expr, $T:ident => $work:expr, $($other:pat => $done:expr),+ $(,)?) => {{
        use $crate::prepared::ElementType;
        macro_rules! of {
            ($Integer:ty) => {{
                type $T = $Integer;
                $work
            }};
        }
        match $elements {
            ElementType::I8 => of!(i8),
            ElementType::I16 => of!(i16),
            ElementType::I32 => of!(i32),
            ElementType::I64 => of!(i64),
            ElementType::U8 => of!(u8),
            ElementType::U16 => of!(u16),
            ElementType::U32 => of!(u32),
            ElementType::U64 => of!(u64),
            $($other => $done,)+
        }
    }};
}
pub(crate) use for_integers;

/// The value of `$work`, in which `$T` is the integer that has this many bytes: 1, 2, 4 or 8.
macro_rules! for_sizes {
    ($size:expr, $T:ident => $work:expr) => {{
        macro_rules! of {
            ($Integer:ty) => {{
                type $T = $Integer;
                $work
            }};
        }
        match $size {
            1 => of!(u8),
            2 => of!(u16),
            4 => of!(u32),
            _ => of!(u64),
        }
    }};
}
pub(crate) use for_sizes;

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::lines::Lines;

    /// What a kernel makes of inputs that it takes, on two threads: outputs of these numbers of bytes.
    pub(crate) fn outputs<const N: usize>(
        kernel: &dyn PreparedKernel,
        inputs: &[&[u8]],
        lengths: [usize; N],
    ) -> [Vec<u8>; N] {
        let mut scratch = Lines::with_bytes(kernel.scratch_bytes());
        let mut memory = lengths.map(Lines::with_bytes);
        let mut written: [&mut [u8]; MOST_WRITTEN] = Default::default();
        for ((to, lines), length) in written.iter_mut().zip(&mut memory).zip(lengths) {
            *to = &mut lines.elements_mut()[..length];
        }
        written[N] = &mut scratch.elements_mut()[..kernel.scratch_bytes()];
        let run = kernel.run_on(&mut Team::new(2), Operands::new(&inputs, written));
        run.expect("values that it takes");
        let mut lengths = lengths.into_iter();
        memory.map(|it| it.elements()[..lengths.next().unwrap_or(0)].to_vec())
    }
}
