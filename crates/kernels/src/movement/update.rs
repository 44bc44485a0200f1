//! [`UpdateSlice`]: a tensor with a block replaced, whose place is known when it runs.

use super::StridedCopy;
use crate::prepared::{Operands, PreparedKernel, WrongValue};
use crate::sharing::copy;
use crate::team::Team;

/// Prepared DYNAMIC_UPDATE_SLICE, or the update of a row. Inputs: the tensor, the block, and where it begins along each axis
/// (32 bits), or which row it is.
#[derive(Debug, Clone)]
pub struct UpdateSlice {
    /// As if it began at the first element.
    block: StridedCopy,
    element_size: usize,
    /// By axis how far the block can begin from the first element, and elements from one such place to the next.
    axes: Vec<(usize, usize)>,
    /// Whether a block that would begin elsewhere is moved to where it is inside, and is not refused.
    is_moved: bool,
    /// Whether the output is where the tensor is.
    is_in_place: bool,
}

impl UpdateSlice {
    /// For a tensor and a block of these lengths, and elements of 1, 2, 4 or 8 bytes. A block that would not be inside is moved.
    ///
    /// # Panics
    /// If the block has another rank than the tensor, or is longer along an axis.
    pub fn prepare(tensor: &[usize], block: &[usize], element_size: usize) -> Self {
        let copy = StridedCopy::piece(block, tensor, &vec![0; tensor.len()]);
        let mut stride = 1_usize;
        let mut axes: Vec<(usize, usize)> = Vec::with_capacity(tensor.len());
        for (whole, part) in tensor.iter().zip(block).rev() {
            axes.push((whole - part, stride));
            // Of tensors of nothing, which are as long as they like along other axes.
            stride = stride.saturating_mul(*whole);
        }
        axes.reverse();
        Self { block: copy, element_size, axes, is_moved: true, is_in_place: false }
    }

    /// For a tensor of these lengths, of which a row along the first axis is replaced. A row that is not there is refused.
    ///
    /// # Panics
    /// If the tensor has no axis.
    pub fn of_row(tensor: &[usize], element_size: usize) -> Self {
        let mut row = tensor.to_vec();
        row[0] = row[0].min(1);
        let mut update = Self::prepare(tensor, &row, element_size);
        update.axes.truncate(1);
        Self { is_moved: false, ..update }
    }

    /// The same, whose output is where the tensor is, which is not read as an input.
    pub fn in_place(self) -> Self {
        Self { is_in_place: true, ..self }
    }
}

impl PreparedKernel for UpdateSlice {
    fn name(&self) -> String {
        let what = if self.is_moved { "slice" } else { "row" };
        format!("update {what}{}", if self.is_in_place { " in place" } else { "" })
    }

    fn run_on(&self, team: &mut Team, operands: Operands<'_>) -> Result<(), WrongValue> {
        let (inputs, [output], _) = operands.split();
        let begins: &[i32] = inputs.of(2);
        if let (false, [row, ..], [(last, _), ..]) = (self.is_moved, begins, &*self.axes)
            && !usize::try_from(*row).is_ok_and(|row| row <= *last)
        {
            let what = "the row that is replaced";
            let (found, expected) = (row.to_string(), format!("0 to {last}"));
            return Err(WrongValue { input: 2, what, found, expected });
        }
        if !self.is_in_place {
            copy::<u8>(team, inputs.of(0), output);
        }
        let block: &[u8] = inputs.of(1);
        if block.is_empty() {
            return Ok(());
        }
        let places = begins.iter().zip(&self.axes).map(|(begin, (most, stride))| {
            usize::try_from(*begin).unwrap_or(0).min(*most) * stride
        });
        let first = places.sum::<usize>() * self.element_size;
        self.block.run_bytes(team, self.element_size, block, &mut output[first..]);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prepared::MOST_WRITTEN;
    use crate::prepared::tests::outputs;

    /// The block of 2 x 2 within a tensor of 3 x 4, for where it is asked to begin.
    fn updated(begins: [i32; 2], size: usize) -> Vec<u8> {
        let elements = |first: u8, count: u8| -> Vec<u8> {
            (first..first + count).flat_map(|it| std::iter::repeat_n(it, size)).collect()
        };
        let (tensor, block) = (elements(0, 12), elements(100, 4));
        let kernel = UpdateSlice::prepare(&[3, 4], &[2, 2], size);
        // Aligned, as vectors of bytes need not be.
        let aligned = [tensor, block].map(|it| crate::Lines::from_elements(&it));
        let inputs = [
            &aligned[0].elements()[..12 * size],
            &aligned[1].elements()[..4 * size],
            bytemuck::cast_slice(&begins),
        ];
        let [found] = outputs(&kernel, &inputs, [12 * size]);
        found.into_iter().step_by(size).collect()
    }

    #[test]
    fn a_block_begins_where_it_is_inside() {
        for size in [1, 2, 4, 8] {
            let at_1_2 = [0, 1, 2, 3, 4, 5, 100, 101, 8, 9, 102, 103];
            for begins in [[1, 2], [2, 2], [1, 3], [i32::MAX, i32::MAX]] {
                assert_eq!(updated(begins, size), at_1_2, "{begins:?}");
            }
            for begins in [[0, 0], [-1, i32::MIN]] {
                let found = updated(begins, size);
                assert_eq!(found, [100, 101, 2, 3, 102, 103, 6, 7, 8, 9, 10, 11], "{begins:?}");
            }
        }
    }

    #[test]
    fn a_row_is_replaced_that_is_there() {
        let tensor: [u8; 6] = [1, 2, 3, 4, 5, 6];
        let run = |kernel: &UpdateSlice, tensor: &[u8], row: i32, output: &mut [u8]| {
            let inputs: [&[u8]; 3] = [tensor, &[8, 9], bytemuck::bytes_of(&row)];
            let mut written: [&mut [u8]; MOST_WRITTEN] = Default::default();
            written[0] = output;
            kernel.run_on(&mut Team::alone(), Operands::new(&&inputs[..], written))
        };
        let kernel = UpdateSlice::of_row(&[3, 2], 1);
        for (row, expected) in
            [(0, [8, 9, 3, 4, 5, 6]), (1, [1, 2, 8, 9, 5, 6]), (2, [1, 2, 3, 4, 8, 9])]
        {
            let mut output = [0; 6];
            run(&kernel, &tensor, row, &mut output).unwrap();
            assert_eq!(output, expected);
            // Where the tensor is, which is no input then.
            let mut output = tensor;
            run(&kernel.clone().in_place(), &[], row, &mut output).unwrap();
            assert_eq!(output, expected);
        }
        for row in [-1, 3, i32::MIN, i32::MAX] {
            let mut output = tensor;
            let wrong = run(&kernel.clone().in_place(), &[], row, &mut output).unwrap_err();
            assert_eq!((wrong.input, &*wrong.expected), (2, "0 to 2"));
            assert_eq!(wrong.found, row.to_string());
            assert_eq!(output, tensor, "it is left as it was");
        }
    }

    #[test]
    fn blocks_of_nothing_and_of_all_are_blocks() {
        let none: [i32; 2] = [0, 0];
        for begins in [none, [2, 1]] {
            let kernel = UpdateSlice::prepare(&[2, 2], &[0, 1], 1);
            let inputs: [&[u8]; 3] = [&[1, 2, 3, 4], &[], bytemuck::cast_slice(&begins)];
            assert_eq!(outputs(&kernel, &inputs, [4]), [[1, 2, 3, 4]]);
            let kernel = UpdateSlice::prepare(&[0, 1 << 40, 1 << 40], &[0, 1, 1], 1);
            let inputs: [&[u8]; 3] = [&[], &[], bytemuck::cast_slice(&begins)];
            assert_eq!(outputs(&kernel, &inputs, [0]), [[0_u8; 0]]);
        }
        let kernel = UpdateSlice::prepare(&[2, 2], &[2, 2], 1);
        let inputs: [&[u8]; 3] = [&[1, 2, 3, 4], &[5, 6, 7, 8], bytemuck::cast_slice(&none)];
        assert_eq!(outputs(&kernel, &inputs, [4]), [[5, 6, 7, 8]]);
        let kernel = UpdateSlice::prepare(&[], &[], 1);
        assert_eq!(outputs(&kernel, &[&[1], &[2], bytemuck::cast_slice(&none[..0])], [1]), [[2]]);
        let kernel = UpdateSlice::prepare(&[0], &[0], 1);
        assert_eq!(
            outputs(&kernel, &[&[], &[], bytemuck::cast_slice(&none[..1])], [0]),
            [[0_u8; 0]]
        );
    }
}
