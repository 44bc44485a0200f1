//! [`Model::outputs_without_elements`]: what a model gives for inputs that have none.

use crate::error::{Error, Result};
use crate::info::TensorInfo;
use crate::model::Model;
use nnhal_ops::extension::ExtensionOperation;

impl Model {
    /// The shapes of the outputs for inputs of these shapes, of which some have a length of 0, such as a batch of no rows.
    /// No device takes such inputs, but if the outputs have no elements either, there is nothing to run. The shapes at
    /// lengths 1, 2 and 3 in the place of 0 say those at 0, where they grow evenly.
    ///
    /// ```
    /// # let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/add.tflite");
    /// let model = nnhal::Model::load(file)?;
    /// assert_eq!(model.outputs_without_elements(&[vec![0, 4], vec![0, 4]])?, [[0, 4]]);
    /// # Ok::<(), nnhal::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NoElements`]: an output has elements all the same, or its shape is not known, as those of a model that is
    /// not out of a file and of one with variables; [`Error::Import`], as
    /// [`Model::with_input_shapes`].
    pub fn outputs_without_elements(&self, shapes: &[Vec<usize>]) -> Result<Vec<Vec<usize>>> {
        let refused = |why| Error::NoElements { found: shapes.to_vec(), why };
        if self.is_stateful() {
            return Err(refused("without elements, variables are not known"));
        }
        let at = |length: usize| {
            let with = |shape: &Vec<usize>| {
                Some(shape.iter().map(|it| if *it == 0 { length } else { *it }).collect())
            };
            let wanted: Vec<Option<Vec<usize>>> = shapes.iter().map(with).collect();
            let model = match self.with_input_shapes(&wanted, false) {
                Err(Error::NotAFile) => Err(refused("the model is not out of a file")),
                other => other,
            }?;
            let known: Option<Vec<Vec<usize>>> =
                model.outputs().iter().map(TensorInfo::known_shape).collect();
            let known = known.ok_or_else(|| refused("an output's shape follows from values"))?;
            Ok::<_, Error>((known, ranks_broadcast(&model)))
        };
        let ((first, ranks), (second, other_ranks), (third, _)) = (at(1)?, at(2)?, at(3)?);
        if ranks != other_ranks {
            return Err(refused(
                "BROADCAST_ARGS gives the longer of two shapes, which need not be empty",
            ));
        }
        let outputs = first.iter().zip(&second).zip(&third).map(|((first, second), third)| {
            at_zero(first, second, third).filter(|shape| shape.contains(&0))
        });
        let outputs: Option<Vec<_>> = outputs.collect();
        outputs.ok_or_else(|| refused("an output has elements all the same"))
    }
}

/// The shapes of what the model's BROADCAST_ARGS take. The result is as long as the longer one: with lengths of 0 and 1 it has
/// another length than those of 1, 2 and 3 let expect.
fn ranks_broadcast(model: &Model) -> Vec<Vec<u32>> {
    let wanted = ExtensionOperation::BroadcastArgs.operation_type();
    let graphs = model.hal().subgraphs().map(|(_, graph)| graph);
    let shapes = graphs.flat_map(|graph| {
        let operations = graph.operations.iter().filter(|it| it.operation_type == wanted);
        let inputs = operations.flat_map(|operation| &operation.inputs);
        inputs.filter_map(|input| graph.operands.get(*input as usize))
    });
    shapes.map(|operand| operand.dimensions.clone()).collect()
}

/// What grows evenly from 1 to 3, at 0; `None` if it does not grow evenly, or would be less than nothing.
fn at_zero(first: &[usize], second: &[usize], third: &[usize]) -> Option<Vec<usize>> {
    if first.len() != second.len() || first.len() != third.len() {
        return None;
    }
    let lengths = first.iter().zip(second).zip(third).map(|((first, second), third)| {
        let step = second.checked_sub(*first)?;
        (third.checked_sub(*second)? == step).then_some(())?;
        first.checked_sub(step)
    });
    lengths.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_shape_is_broadcast_by_values() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/broadcast_args.tflite");
        let model = Model::load(file).unwrap();
        // The result is [7] of [] and [7], which has an element.
        for shapes in [[vec![0], vec![1]], [vec![0], vec![0]]] {
            let error = model.outputs_without_elements(&shapes).unwrap_err();
            assert!(error.to_string().contains("BROADCAST_ARGS gives the longer"), "{error}");
        }
    }

    #[test]
    fn what_grows_evenly_is_known_at_zero() {
        assert_eq!(at_zero(&[1, 4], &[2, 4], &[3, 4]), Some(vec![0, 4]));
        assert_eq!(at_zero(&[2], &[4], &[6]), Some(vec![0]));
        assert_eq!(at_zero(&[3], &[4], &[5]), Some(vec![2]), "padded");
        assert_eq!(at_zero(&[1], &[4], &[9]), None, "a square");
        assert_eq!(at_zero(&[1], &[1], &[2]), None, "a half");
        assert_eq!(at_zero(&[1], &[3], &[5]), None, "less than nothing");
        assert_eq!(at_zero(&[1], &[2, 1], &[3]), None);
    }
}
