//! [`TableMap`]: any function of an 8-bit number, by a table of its 256 values.
#![allow(unsafe_code)]

use crate::InstructionSet;
use crate::broadcast::{BLOCK, Operand};
use crate::prepared::OneInput;
use crate::sharing::{Cut, for_each_rows};
use crate::team::Team;
use crate::vector::Isa;
use bytemuck::Pod;

/// Bytes from which on a second thread is worth waking.
const BYTES_OF_TASK: usize = 32 * 1024;

/// A function of 8-bit numbers: the result for each bit pattern.
///
/// Of signed numbers it is the one at the index with the same bits: -1 stands at 255.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(align(64))]
pub struct Table(pub [u8; 256]);

impl Table {
    /// A function of unsigned numbers.
    pub fn of_u8(function: impl Fn(u8) -> u8) -> Self {
        let mut table = [0; 256];
        for (input, output) in (0..=u8::MAX).zip(&mut table) {
            *output = function(input);
        }
        Self(table)
    }
}

/// A prepared function of 8-bit numbers. Signed ones are passed by their bits, with
/// `bytemuck::cast_slice`.
#[derive(Debug, Clone)]
pub struct TableMap {
    table: Table,
    variant: Variant,
}

/// How a table is looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Variant {
    Portable,
    /// AVX-512 VBMI, which looks up 128 bytes in one instruction.
    #[cfg(target_arch = "x86_64")]
    Vbmi,
    /// AVX2, which looks up 16.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// NEON, which looks up 64.
    #[cfg(target_arch = "aarch64")]
    Neon,
}

impl TableMap {
    /// For a table.
    pub fn prepare(set: InstructionSet, table: Table) -> Self {
        let variant = match Isa::of(set) {
            Isa::Portable(_) => Variant::Portable,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512(_) if is_x86_feature_detected!("avx512vbmi") => Variant::Vbmi,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2(_) | Isa::Avx512(_) => Variant::Avx2,
            #[cfg(target_arch = "aarch64")]
            Isa::Neon(_) => Variant::Neon,
        };
        Self { table, variant }
    }

    /// [`Self::run`] on this thread.
    pub(crate) fn map(&self, input: &[u8], output: &mut [u8]) {
        match self.variant {
            Variant::Portable => portable(&self.table, input, output),
            // SAFETY: `prepare` has seen that the processor has the instructions.
            #[cfg(target_arch = "x86_64")]
            Variant::Vbmi => unsafe { x86::vbmi(&self.table, input, output) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Variant::Avx2 => unsafe { x86::avx2(&self.table, input, output) },
            // SAFETY: as above.
            #[cfg(target_arch = "aarch64")]
            Variant::Neon => unsafe { neon(&self.table, input, output) },
        }
    }
}

/// What an operand contributes to a block after its table, which elements of more than a byte have not.
pub(crate) fn recoded<'a, T: Pod>(
    table: Option<&TableMap>,
    operand: Operand<'a, T>,
    room: &'a mut [T; BLOCK],
) -> Operand<'a, T> {
    let Some(table) = table else { return operand };
    match operand {
        Operand::Elements(elements) => {
            let room = &mut room[..elements.len()];
            table.map(bytemuck::cast_slice(elements), bytemuck::cast_slice_mut(room));
            Operand::Elements(room)
        }
        Operand::Same(element) => Operand::Same(bytemuck::cast(
            table.table.0[usize::from(bytemuck::cast::<T, u8>(element))],
        )),
    }
}

impl OneInput for TableMap {
    type Input = u8;
    type Output = u8;

    fn name(&self) -> String {
        "elementwise lookup table 8-bit".to_owned()
    }

    fn run(&self, team: &mut Team, input: &[u8], output: &mut [u8]) {
        assert_eq!(input.len(), output.len(), "an output of another size");
        let cut = Cut { each: 1, least: BYTES_OF_TASK, multiple: 64 };
        for_each_rows(team, (output, 1), cut, |part, output, _| self.map(&input[part], output));
    }
}

fn portable(table: &Table, input: &[u8], output: &mut [u8]) {
    for (input, output) in input.iter().zip(output) {
        *output = table.0[usize::from(*input)];
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{Table, portable};
    use std::arch::x86_64::*;

    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
    pub(super) fn vbmi(table: &Table, input: &[u8], output: &mut [u8]) {
        // SAFETY: four times 64 bytes are 256.
        let parts: [__m512i; 4] = [0, 64, 128, 192]
            .map(|at| unsafe { _mm512_loadu_si512(table.0[at..].as_ptr().cast()) });
        let look_up = |index: __m512i| {
            let lower = _mm512_permutex2var_epi8(parts[0], index, parts[1]);
            let upper = _mm512_permutex2var_epi8(parts[2], index, parts[3]);
            _mm512_mask_blend_epi8(_mm512_movepi8_mask(index), lower, upper)
        };
        let mut inputs = input.chunks_exact(64);
        let mut outputs = output.chunks_exact_mut(64);
        for (input, output) in inputs.by_ref().zip(outputs.by_ref()) {
            // SAFETY: both have 64 bytes.
            unsafe {
                let index = _mm512_loadu_si512(input.as_ptr().cast());
                _mm512_storeu_si512(output.as_mut_ptr().cast(), look_up(index));
            }
        }
        let (input, output) = (inputs.remainder(), outputs.into_remainder());
        let count = input.len().min(output.len());
        if count > 0 {
            let mask = u64::MAX >> (64 - count);
            // SAFETY: the mask leaves out what is behind the slices.
            unsafe {
                let index = _mm512_maskz_loadu_epi8(mask, input.as_ptr().cast());
                _mm512_mask_storeu_epi8(output.as_mut_ptr().cast(), mask, look_up(index));
            }
        }
    }

    /// Rows of 16 entries.
    const ROWS: usize = 16;

    /// What is looked up, row after row, with an index from which 16 is taken each time, while bit 7 of the index is not set; all
    /// that is found is combined by exclusive or.
    ///
    /// Of an index below 128, whose row is `m`, that is rows 0 to `m` of what is given here: so each of them is a row of the table
    /// and the one before it, of which all but row `m` are there twice. From 128 on, with row `8 + m`, it is rows `m + 1` to 7
    /// and 8 to `8 + m`.
    fn differences(table: &Table) -> [[u8; 16]; ROWS] {
        let (rows, _) = table.0.as_chunks::<16>();
        let mut differences = [[0; 16]; ROWS];
        for (number, difference) in differences.iter_mut().enumerate() {
            let mut combine = |row: usize| {
                difference.iter_mut().zip(&rows[row]).for_each(|(to, entry)| *to ^= entry);
            };
            combine(number);
            if number > 0 {
                combine(number - 1);
            }
            // What the rows behind `m` have left.
            if number >= 8 {
                combine(number - 8);
            }
            if number > 8 {
                combine(number - 9);
            }
        }
        differences
    }

    /// What is found for vectors of indexes.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn look_up<const N: usize>(
        differences: &[__m256i; ROWS],
        mut index: [__m256i; N],
    ) -> [__m256i; N] {
        let step = _mm256_set1_epi8(16);
        let mut found = [_mm256_setzero_si256(); N];
        for (number, row) in differences.iter().enumerate() {
            for (index, found) in index.iter_mut().zip(&mut found) {
                *found = _mm256_xor_si256(*found, _mm256_shuffle_epi8(*row, *index));
                // Those below 128 stay negative once they are; from 128 on they become positive at first.
                *index = if number < 8 {
                    _mm256_sub_epi8(*index, step)
                } else {
                    _mm256_subs_epi8(*index, step)
                };
            }
        }
        found
    }

    #[target_feature(enable = "avx2")]
    pub(super) fn avx2(table: &Table, input: &[u8], output: &mut [u8]) {
        // Each in both halves of a register.
        let differences = differences(table).map(|row| {
            // SAFETY: 16 bytes.
            _mm256_broadcastsi128_si256(unsafe { _mm_loadu_si128(row.as_ptr().cast()) })
        });
        let (pairs, rest) = input.as_chunks::<64>();
        let (pairs_out, rest_out) = output.as_chunks_mut::<64>();
        for (input, output) in pairs.iter().zip(pairs_out) {
            // SAFETY: both have 64 bytes.
            unsafe {
                let from: *const __m256i = input.as_ptr().cast();
                let index = [_mm256_loadu_si256(from), _mm256_loadu_si256(from.add(1))];
                let [first, second] = look_up(&differences, index);
                let to: *mut __m256i = output.as_mut_ptr().cast();
                _mm256_storeu_si256(to, first);
                _mm256_storeu_si256(to.add(1), second);
            }
        }
        let (input, rest) = rest.as_chunks::<32>();
        let (output, rest_out) = rest_out.as_chunks_mut::<32>();
        for (input, output) in input.iter().zip(output) {
            // SAFETY: both have 32 bytes.
            unsafe {
                let [found] = look_up(&differences, [_mm256_loadu_si256(input.as_ptr().cast())]);
                _mm256_storeu_si256(output.as_mut_ptr().cast(), found);
            }
        }
        portable(table, rest, rest_out);
    }
}

#[cfg(target_arch = "aarch64")]
#[target_feature(enable = "neon")]
fn neon(table: &Table, input: &[u8], output: &mut [u8]) {
    use std::arch::aarch64::*;
    // SAFETY: four times 64 bytes are 256.
    let parts: [uint8x16x4_t; 4] =
        [0, 64, 128, 192].map(|at| unsafe { vld1q_u8_x4(table.0[at..].as_ptr()) });
    let step = vdupq_n_u8(64);
    let mut inputs = input.chunks_exact(16);
    let mut outputs = output.chunks_exact_mut(16);
    for (input, output) in inputs.by_ref().zip(outputs.by_ref()) {
        // SAFETY: there are 16 bytes.
        let index = unsafe { vld1q_u8(input.as_ptr()) };
        // Indexes outside of a part leave what was found before.
        let mut found = vqtbl4q_u8(parts[0], index);
        let index = vsubq_u8(index, step);
        found = vqtbx4q_u8(found, parts[1], index);
        let index = vsubq_u8(index, step);
        found = vqtbx4q_u8(found, parts[2], index);
        let index = vsubq_u8(index, step);
        found = vqtbx4q_u8(found, parts[3], index);
        // SAFETY: there are 16 bytes.
        unsafe { vst1q_u8(output.as_mut_ptr(), found) };
    }
    portable(table, inputs.remainder(), outputs.into_remainder());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_finds_every_value() {
        let mut random = fastrand::Rng::with_seed(5);
        let table = Table(std::array::from_fn(|_| random.u8(..)));
        let input: Vec<u8> = (0..100_003).map(|_| random.u8(..)).collect();
        let expected: Vec<u8> = input.iter().map(|index| table.0[usize::from(*index)]).collect();
        for set in InstructionSet::available() {
            let map = TableMap::prepare(set, table);
            let variants = [
                map.variant,
                #[cfg(target_arch = "x86_64")]
                if map.variant == Variant::Vbmi { Variant::Avx2 } else { Variant::Portable },
            ];
            for variant in variants {
                let map = TableMap { variant, ..map.clone() };
                for length in (0..200).chain([input.len()]) {
                    let mut output = vec![0; length];
                    map.run(&mut Team::new(2), &input[..length], &mut output);
                    assert!(output == expected[..length], "{set} {variant:?} {length}");
                }
            }
        }
    }
}
