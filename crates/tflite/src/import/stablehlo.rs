//! STABLEHLO_GATHER and STABLEHLO_SCATTER. Definitions: the StableHLO specification.

use super::window::integers;
use super::{GraphImporter, Imported};
use crate::error::Reason;
use crate::file::Operator;
use nnhal_hal::{OperandId, OperandSpec, OperationType as O};
use nnhal_ops::extension::ExtensionOperation as E;
use nnhal_ops::operations::extension::reduce_window::Function;

impl GraphImporter<'_, '_> {
    pub(super) fn stablehlo_gather(&mut self, operator: &Operator<'_>) -> Imported {
        let options = options!(operator, BuiltinOptions2::StablehloGatherOptions);
        let (input, output) = (self.input_tensor(operator, 0)?, self.output_tensor(operator, 0)?);
        let rank = self.shape(input)?.len();
        let sizes = integers(options.slice_sizes()?)?;
        let sizes = sizes.into_iter().map(|size| match u32::try_from(size) {
            Ok(size @ 1..) => Ok(size),
            _ => Err(Reason::new(format!("a slice is {size} long, expected 1 or more"))),
        });
        let sizes = sizes.collect::<Imported<Vec<_>>>()?;
        if sizes.len() != rank {
            let found = sizes.len();
            return Err(Reason::new(format!("it has {found} sizes of slices for {rank} axes")));
        }
        let collapsed = axes(options.collapsed_slice_dims()?, rank)?;
        if let Some(axis) = collapsed.iter().find(|axis| sizes[**axis] != 1) {
            let size = sizes[*axis];
            return Err(Reason::new(format!("it leaves out axis {axis}, which has length {size}")));
        }
        let map = axes(options.start_index_map()?, rank)?;
        let (indexes, rows) = self.rows_of_indexes(operator, options.index_vector_dim()?, &map)?;
        let kept = (0..rank).filter(|axis| !collapsed.contains(axis)).map(|axis| sizes[axis]);
        let kept: Vec<u32> = rows.iter().copied().chain(kept).collect();
        let offsets = axes(options.offset_dims()?, kept.len())?;
        if offsets.len() != kept.len() - rows.len() {
            let (found, expected) = (offsets.len(), kept.len() - rows.len());
            return Err(Reason::new(format!("it has {found} offset axes, expected {expected}")));
        }

        let input = self.input(operator, 0)?;
        let of_elements = self.builder.spec(input);
        let with = |dimensions| OperandSpec { dimensions, ..of_elements.clone() };
        let inputs = [input, indexes, self.axis_vector(&map)?, self.length_vector(&sizes)?];
        let blocks = with([rows.clone(), sizes].concat());
        let blocks = self.builder.extended(E::GatherSlices, inputs, blocks);
        if kept.is_empty() {
            return self.reshape_to(blocks, output);
        }
        let blocks = self.reshape(blocks, with(kept))?;
        // Axes of blocks go where the options say, those of the rows to the places between.
        let (mut next_row, mut next_offset) = (0, rows.len());
        let order = (0..rows.len() + offsets.len()).map(|axis| {
            let next = if offsets.contains(&axis) { &mut next_offset } else { &mut next_row };
            *next += 1;
            *next - 1
        });
        let order: Vec<usize> = order.collect();
        let result = self.in_order(blocks, &order)?;
        self.reshape_to(result, output)
    }

    pub(super) fn stablehlo_scatter(&mut self, operator: &Operator<'_>) -> Imported {
        let options = options!(operator, BuiltinOptions2::StablehloScatterOptions);
        let (input, updates) = (self.input_tensor(operator, 0)?, self.input_tensor(operator, 2)?);
        let rank = self.shape(input)?.len();
        let mut of_updates = self.shape(updates)?;
        // An update of one element may be a scalar, which has an axis in the HAL.
        if self.rank(updates) == 0 {
            of_updates.clear();
        }
        let window = axes(options.update_window_dims()?, of_updates.len())?;
        let inserted = axes(options.inserted_window_dims()?, rank)?;
        if window.len() + inserted.len() != rank {
            return Err(Reason::new(format!(
                "its windows have {} axes and {} that are inserted, expected {rank} in all",
                window.len(),
                inserted.len()
            )));
        }
        let map = axes(options.scatter_dims_to_operand_dims()?, rank)?;
        let (indexes, rows) = self.rows_of_indexes(operator, options.index_vector_dim()?, &map)?;
        let scattered = (0..of_updates.len()).filter(|axis| !window.contains(axis));
        let order: Vec<usize> = scattered.chain(window.iter().copied()).collect();
        let mut lengths: Vec<u32> = order.iter().map(|axis| of_updates[*axis]).collect();
        let windows = lengths.split_off(of_updates.len() - window.len());
        if lengths != rows {
            return Err(Reason::new(format!(
                "its updates {of_updates:?} are not for {rows:?} rows"
            )));
        }
        let mut windows = windows.into_iter();
        let block = |axis: usize| match inserted.contains(&axis) {
            true => 1,
            false => windows.next().unwrap_or(1),
        };
        lengths.extend((0..rank).map(block));
        let function = options.update_computation_subgraph_index()?;
        let function = self.combination(function)?;

        let (input, updates) = (self.input(operator, 0)?, self.input(operator, 2)?);
        let updates = match order.is_empty() {
            true => updates,
            false => self.in_order(updates, &order)?,
        };
        let spec = OperandSpec { dimensions: lengths, ..self.builder.spec(updates) };
        let updates = self.reshape(updates, spec)?;
        let (axes, function) = (self.axis_vector(&map)?, self.builder.scalar_i32(function));
        self.emit_extended(operator, E::ScatterSlices, &[input, indexes, updates, axes, function])
    }

    /// The number that SCATTER_SLICES has for the function of a subgraph, which replaces if it is empty.
    fn combination(&self, subgraph: i32) -> Imported<i32> {
        let body = usize::try_from(subgraph).ok().and_then(|index| self.file.graphs.get(index));
        if body.is_some_and(|body| body.operators.is_empty()) {
            return Ok(0);
        }
        let function = self.body_of_reduction(subgraph)?;
        let number = Function::ALL.iter().position(|it| *it == function);
        Ok(number.and_then(|it| i32::try_from(it + 1).ok()).unwrap_or_default())
    }

    /// Input 1 with a row of indexes along its last axis, and the lengths of its other axes. `map` is what
    /// the indexes of a row are of.
    fn rows_of_indexes(
        &mut self,
        operator: &Operator<'_>,
        row_axis: i64,
        map: &[usize],
    ) -> Imported<(OperandId, Vec<u32>)> {
        let tensor = self.input_tensor(operator, 1)?;
        let mut shape = self.shape(tensor)?;
        let row_axis = usize::try_from(row_axis).ok().filter(|axis| *axis <= shape.len());
        let row_axis = row_axis.ok_or_else(|| {
            Reason::new(format!("its index vectors are not along an axis of {shape:?}"))
        })?;
        if row_axis == shape.len() {
            shape.push(1);
        }
        let depth = shape[row_axis];
        if depth as usize != map.len() {
            let count = map.len();
            return Err(Reason::new(format!("it has {depth} indexes in a row for {count} axes")));
        }
        let indexes = self.input(operator, 1)?;
        let spec = OperandSpec { dimensions: shape.clone(), ..self.builder.spec(indexes) };
        let indexes = self.reshape(indexes, spec)?;
        let others = (0..shape.len()).filter(|axis| *axis != row_axis);
        let order: Vec<usize> = others.chain([row_axis]).collect();
        shape.remove(row_axis);
        Ok((self.in_order(indexes, &order)?, shape))
    }

    /// A tensor with its axes in another order.
    fn in_order(&mut self, operand: OperandId, order: &[usize]) -> Imported<OperandId> {
        if order.is_sorted() {
            return Ok(operand);
        }
        let spec = self.builder.spec(operand);
        let dimensions = order.iter().map(|axis| spec.dimensions[*axis]).collect();
        let order = self.axis_vector(order)?;
        Ok(self.builder.operation(
            O::Transpose,
            [operand, order],
            OperandSpec { dimensions, ..spec },
        ))
    }

    fn axis_vector(&mut self, axes: &[usize]) -> Imported<OperandId> {
        let axes = axes.iter().map(|axis| i32::try_from(*axis)).collect::<Result<Vec<_>, _>>();
        Ok(self.integer_vector(&axes.map_err(|_| Reason::new("an axis exceeds 31 bits"))?))
    }

    fn length_vector(&mut self, lengths: &[u32]) -> Imported<OperandId> {
        let lengths = lengths.iter().map(|it| i32::try_from(*it)).collect::<Result<Vec<_>, _>>();
        Ok(self.integer_vector(&lengths.map_err(|_| Reason::new("a length exceeds 31 bits"))?))
    }
}

/// Distinct axes, each below `rank`.
fn axes(vector: Option<planus::Vector<'_, i64>>, rank: usize) -> Imported<Vec<usize>> {
    let mut axes = Vec::new();
    for given in integers(vector)? {
        let axis = usize::try_from(given).ok().filter(|it| *it < rank && !axes.contains(it));
        axes.push(axis.ok_or_else(|| {
            Reason::new(format!(
                "an attribute lists axis {given}, expected each of {rank} at most once"
            ))
        })?);
    }
    Ok(axes)
}
