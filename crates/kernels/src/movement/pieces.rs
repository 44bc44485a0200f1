//! [`Copies`]: an output put together of parts of inputs.

use super::StridedCopy;
use crate::elementwise::quantized::TableMap;
use crate::prepared::{OneInput, Operands, PreparedKernel, WrongValue};
use crate::sharing::{ELEMENTS_OF_COPY, for_each_slice};
use crate::team::Team;

/// Writes an element everywhere.
fn fill<T: Copy + Send + Sync>(team: &mut Team, element: T, output: &mut [T]) {
    for_each_slice(team, output, ELEMENTS_OF_COPY, |_, part| part.fill(element));
}

/// Prepared copies of inputs to places of the output.
#[derive(Debug, Default)]
pub struct Copies {
    /// Of which input, and which elements.
    pub pieces: Vec<(usize, StridedCopy)>,
    /// By piece a table in which its bytes are looked up first, which brings them to the output's quantization. None
    /// at all, or of elements that are no bytes.
    pub tables: Vec<Option<TableMap>>,
    /// Bytes of an element: 1, 2, 4 or 8, if there are pieces.
    pub element_size: usize,
    /// What the output is filled with first, where pieces do not cover it; nothing if they do.
    pub fill: Vec<u8>,
}

impl Copies {
    fn fill(&self, team: &mut Team, output: &mut [u8]) {
        match *self.fill {
            [] => {}
            [byte] => fill(team, byte, output),
            [a, b] => fill(team, [a, b], output.as_chunks_mut().0),
            // Whole words, so that the loop becomes vector instructions.
            [a, b, c, d] => fill(team, [a, b, c, d], output.as_chunks_mut().0),
            [a, b, c, d, e, f, g, h] => {
                fill(team, [a, b, c, d, e, f, g, h], output.as_chunks_mut().0);
            }
            _ => {
                let size = self.fill.len();
                for block in team.pace().blocks(output.len() / size, size) {
                    let bytes = &mut output[block.start * size..block.end * size];
                    bytes.chunks_exact_mut(size).for_each(|to| to.copy_from_slice(&self.fill));
                }
            }
        }
    }
}

impl PreparedKernel for Copies {
    fn name(&self) -> String {
        if self.tables.is_empty() { "copy".to_owned() } else { "requantizing copy".to_owned() }
    }

    fn run_on(&self, team: &mut Team, operands: Operands<'_>) -> Result<(), WrongValue> {
        let (inputs, [output], scratch) = operands.split();
        self.fill(team, output);
        for (piece, (index, copy)) in self.pieces.iter().enumerate() {
            let mut part: &[u8] = inputs.of(*index);
            if let Some(Some(table)) = self.tables.get(piece) {
                let room = &mut scratch[..part.len()];
                table.run(team, part, room);
                part = room;
            }
            copy.run_bytes(team, self.element_size, part, output);
        }
        Ok(())
    }

    fn scratch_bytes(&self) -> usize {
        let all = self.pieces.iter().zip(&self.tables);
        let recoded = all.filter(|(_, table)| table.is_some());
        recoded.map(|((_, copy), _)| copy.input_elements()).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::InstructionSet;
    use crate::elementwise::quantized::Table;
    use crate::prepared::tests::outputs;

    #[test]
    fn what_no_piece_covers_is_filled() {
        for size in [1, 2, 4, 8, 3] {
            let element: Vec<u8> = (1..=size).collect();
            let kernel = Copies { fill: element.clone(), ..Copies::default() };
            let [found] = outputs(&kernel, &[], [5 * usize::from(size)]);
            assert_eq!(found, element.repeat(5));
        }
        let pieces = vec![(0, StridedCopy::piece(&[2], &[5], &[1]))];
        let kernel = Copies { pieces, element_size: 1, fill: vec![9], ..Copies::default() };
        assert_eq!(outputs(&kernel, &[&[3, 4]], [5]), [[9, 3, 4, 9, 9]]);
    }

    #[test]
    fn only_inputs_with_a_table_are_looked_up() {
        let table =
            TableMap::prepare(InstructionSet::best(), Table::of_u8(|it| it.wrapping_add(100)));
        let pieces = [0, 1].map(|it| (it, StridedCopy::piece(&[2], &[4], &[2 * it]))).to_vec();
        let tables = vec![None, Some(table)];
        let kernel = Copies { pieces, tables, element_size: 1, fill: Vec::new() };
        assert_eq!(kernel.scratch_bytes(), 2);
        assert_eq!(outputs(&kernel, &[&[1, 2], &[3, 4]], [4]), [[1, 2, 103, 104]]);
    }
}
