//! EMBEDDING_LOOKUP_SPARSE: rows of a table, weighted and combined, of which a sparse matrix says the numbers.

use super::{GraphImporter, Imported};
use crate::error::Reason;
use crate::file::Operator;
use crate::schema::{BuiltinOptionsRef, CombinerType};
use nnhal_hal::{OperandId, OperandSpec, OperationType as O};
use nnhal_ops::extension::ExtensionOperation as E;

/// Axes of a sparse tensor, and of the table: the file can say any number without holding anything of it.
const MOST_AXES: u32 = 8;

impl GraphImporter<'_, '_> {
    /// The rows that the same place of the sparse matrix names are added up, each times its weight. MEAN divides by the
    /// sum of the weights, SQRTN by the root of the sum of their squares; where nothing is, there is 0.
    pub(super) fn embedding_lookup_sparse(&mut self, operator: &Operator<'_>) -> Imported {
        let combiner = match operator.table.builtin_options()? {
            Some(BuiltinOptionsRef::EmbeddingLookupSparseOptions(options)) => options.combiner()?,
            _ => CombinerType::Sum,
        };
        let tensors = [0, 1, 2, 3, 4].map(|at| self.input_tensor(operator, at));
        let [ids, indexes, lengths, weights, table] = tensors;
        let (ids, indexes, lengths, weights, table) = (ids?, indexes?, lengths?, weights?, table?);
        let [count, axes] = *self.shape(indexes)? else {
            return Err(Reason::new("its indexes are no matrix"));
        };
        if !(2..=MOST_AXES).contains(&axes) {
            let what = format!("its sparse tensor has {axes} axes, expected 2 to {MOST_AXES}");
            return Err(Reason::new(what));
        }
        let row = self.shape(table)?.split_off(1);
        if row.len() >= MOST_AXES as usize {
            let found = row.len() + 1;
            let what = format!("its table has {found} axes, expected at most {MOST_AXES}");
            return Err(Reason::new(what));
        }
        let [ids, indexes, lengths, weights, table] =
            [ids, indexes, lengths, weights, table].map(|tensor| self.operand(tensor));
        let (ids, indexes, lengths, weights, table) = (ids?, indexes?, lengths?, weights?, table?);
        let none = self.builder.scalar_i32(0);

        let rows = OperandSpec::tensor_float32([&[count], &row[..]].concat());
        let found = self.builder.operation(O::Gather, [table, none, ids], rows.clone());
        let column = [&[count][..], &vec![1; row.len()]].concat();
        let column = self.reshape(weights, OperandSpec::tensor_float32(column))?;
        let weighted = self.builder.operation(O::Mul, [found, column, none], rows);

        // All axes of the sparse tensor but the last, along which is what is combined.
        let outer = axes - 1;
        let places = self.sliced(indexes, &[count, outer])?;
        let lengths = self.sliced(lengths, &[outer])?;
        let of_row = row.iter().map(|length| i32::try_from(*length));
        let of_row = of_row.collect::<Result<Vec<i32>, _>>();
        let of_row = of_row.map_err(|_| Reason::new("a length exceeds 31 bits"))?;
        let of_row = self.integer_vector(&of_row);
        let rank = outer.saturating_add(u32::try_from(row.len()).unwrap_or(u32::MAX));
        let shape = OperandSpec::tensor_int32([rank]);
        let shape = self.builder.operation(O::Concatenation, [lengths, of_row, none], shape);
        let output = self.output_tensor(operator, 0)?;
        if combiner == CombinerType::Sum {
            return self.emit(E::ScatterNd.operation_type(), &[places, weighted, shape], output);
        }
        let spec = self.spec(output)?;
        let sums = self.builder.extended(E::ScatterNd, [places, weighted, shape], spec);

        let each = OperandSpec::tensor_float32([count]);
        let share = match combiner {
            CombinerType::Sqrtn => {
                self.builder.operation(O::Mul, [weights, weights, none], each.clone())
            }
            _ => weights,
        };
        self.file.allow((count as usize).saturating_mul(size_of::<f32>()))?;
        let ones = self.builder.constant(each, &vec![1.0_f32; count as usize]);
        let open = OperandSpec::tensor_float32(vec![0; outer as usize]);
        let mut divisor =
            self.builder.extended(E::ScatterNd, [places, share, lengths], open.clone());
        let filled = self.builder.extended(E::ScatterNd, [places, ones, lengths], open.clone());
        if combiner == CombinerType::Sqrtn {
            divisor = self.builder.operation(O::Sqrt, [divisor], open.clone());
        }
        let [zero, one] = [0.0_f32, 1.0]
            .map(|number| self.builder.constant(OperandSpec::tensor_float32([1]), &[number]));
        let truth = OperandSpec::tensor_bool8(open.dimensions.clone());
        let is_empty = self.builder.operation(O::Equal, [filled, zero], truth);
        let outer_dimensions = open.dimensions.clone();
        divisor = self.builder.extended(E::Select, [is_empty, one, divisor], open);
        for inner in 1..=row.len() {
            let last = self.builder.scalar_i32(-1);
            let spec = OperandSpec::tensor_float32([&*outer_dimensions, &vec![1; inner]].concat());
            divisor = self.builder.operation(O::ExpandDims, [divisor, last], spec);
        }
        self.emit(O::Div, &[sums, divisor, none], output)
    }

    /// The beginning of an operand of integers, of this shape.
    fn sliced(&mut self, operand: OperandId, shape: &[u32]) -> Imported<OperandId> {
        let lengths = shape.iter().map(|length| i32::try_from(*length));
        let lengths = lengths.collect::<Result<Vec<i32>, _>>();
        let lengths = lengths.map_err(|_| Reason::new("a length exceeds 31 bits"))?;
        let begin = self.integer_vector(&vec![0; shape.len()]);
        let size = self.integer_vector(&lengths);
        let spec = OperandSpec::tensor_int32(shape.to_vec());
        Ok(self.builder.operation(O::Slice, [operand, begin, size], spec))
    }
}
