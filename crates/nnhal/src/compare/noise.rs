//! [`perturbed`]: a model whose weights are rounded otherwise, to see how much roundings matter to it.
//!
//! A sum of products that is rounded in another order is the exact sum of slightly different products.
//! So what a model's weights, each moved by one unit in its last place up or down at random, change of a
//! result is of the size of what roundings change, with whatever cancels and is amplified on the way.

use super::difference::Distance;
use super::record::{Recorder, Value};
use crate::DataType;
use crate::conversion::as_devices_take;
use crate::devices;
use crate::error::Result;
use crate::options::{RunOptions, SessionOptions};
use crate::session::Input;
use crate::tensor::{Tensor, TensorView};
use half::f16;
use nnhal_hal::model::{DataLocation, Subgraph};
use nnhal_hal::{ExtraParams, Model, OperandLifeTime, OperandType, OperationType};
use nnhal_tflite::{State, is_dynamic_range};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Where the random sequence begins.
const SEED: u64 = 1;

/// By operand of the main subgraph: how far results of the reference device are from what they are with
/// other weights. `base` is what it gives with the right ones, if that is known.
pub(super) fn of_values(
    model: &crate::Model,
    inputs: &[Tensor],
    base: Option<&[Value]>,
) -> HashMap<u32, f64> {
    let run = |hal: &Model| values(hal, model.states(), inputs).ok();
    let Some(other) = perturbed(model.hal()).and_then(|hal| run(&hal)) else {
        return HashMap::new();
    };
    let own;
    let base = match base {
        Some(base) => base,
        None => {
            own = run(model.hal()).unwrap_or_default();
            &own
        }
    };
    let of_main = |value: &&Value| value.key.rounds.is_empty();
    let other: HashMap<u32, &Value> =
        other.iter().filter(of_main).map(|value| (value.operand, value)).collect();
    let mut noise = HashMap::new();
    for value in base.iter().filter(of_main) {
        let (Some(data_type), Some(other)) = (value.data_type, other.get(&value.operand)) else {
            continue;
        };
        if data_type.is_float() && value.shape == other.shape {
            noise
                .insert(value.operand, Distance::of(data_type, &value.bytes, &other.bytes).largest);
        }
    }
    noise
}

/// Every result of the reference device.
fn values(hal: &Model, states: &[State], inputs: &[Tensor]) -> Result<Vec<Value>> {
    let model = crate::Model::from_hal(hal.clone())?.with_states(states.to_vec())?;
    let session = model.session(SessionOptions::new().device(devices::names()[1]))?;
    let bytes: Vec<_> = inputs.iter().map(as_devices_take).collect();
    let mut given: Vec<Input<'_>> = Vec::with_capacity(bytes.len());
    for ((info, bytes), tensor) in model.inputs().iter().zip(&bytes).zip(inputs) {
        given.push(TensorView::new(info.data_type, tensor.shape(), bytes)?.into());
    }
    let recorder = Recorder::default();
    session.run_observed(&RunOptions::default(), given, &recorder)?;
    Ok(recorder.into_values())
}

/// How far the result of a model of one output, by the reference device, is from what it is with other
/// weights.
pub(super) fn of_result(
    model: &Model,
    compute: impl Fn(&Model) -> Result<Tensor>,
    right: &Tensor,
) -> f64 {
    let other = perturbed(model).and_then(|model| compute(&model).ok());
    let is_float = |it: DataType| it.is_float();
    match other.filter(|it| is_float(it.data_type()) && it.shape() == right.shape()) {
        Some(other) => Distance::of(right.data_type(), right.as_bytes(), other.as_bytes()).largest,
        None => 0.0,
    }
}

/// The model with other weights; `None` if it has none of floats, or they cannot be read.
///
/// Weights that are stored as float16 and turned into float32 are taken as float32: that is what is
/// computed with.
pub(super) fn perturbed(model: &Model) -> Option<Model> {
    let mut random = fastrand::Rng::with_seed(SEED);
    let mut changed = model.clone();
    let mut values = model.operand_values.to_vec();
    let mut is_changed = false;
    let graph = &mut changed.main;
    widen(graph, model, &mut values);
    // Weights of 8 bits beside floats move with their scales.
    let layers = graph.operations.iter().filter(|it| is_dynamic_range(it.operation_type));
    let layers: HashSet<u32> = layers.filter_map(|it| it.inputs.get(1).copied()).collect();
    for (index, operand) in (0..).zip(&mut graph.operands) {
        if layers.contains(&index) {
            match &mut operand.extra_params {
                ExtraParams::ChannelQuant(quant) => {
                    quant.scales =
                        quant.scales.iter().map(|it| moved(*it, random.bool())).collect();
                }
                _ => operand.scale = moved(operand.scale, random.bool()),
            }
            is_changed = true;
            continue;
        }
        let is_float = operand.operand_type == OperandType::TensorFloat32;
        if !is_float || !operand.lifetime.is_constant() {
            continue;
        }
        let mut bytes = bytes_of(model, &values, operand.lifetime, operand.location)?;
        for element in bytes.as_chunks_mut::<4>().0 {
            let up = random.bool();
            *element = moved(f32::from_ne_bytes(*element), up).to_ne_bytes();
        }
        operand.location = append(&mut values, &bytes)?;
        operand.lifetime = OperandLifeTime::ConstantCopy;
        is_changed = true;
    }
    changed.operand_values = Arc::from(values);
    is_changed.then_some(changed)
}

/// The neighbour above or below; zeros stay, as do numbers without neighbours.
fn moved(number: f32, up: bool) -> f32 {
    if number == 0.0 || !number.is_finite() {
        return number;
    }
    let moved = if up { number.next_up() } else { number.next_down() };
    if moved.is_finite() { moved } else { number }
}

/// Turns constants of float16 that are only widened into constants of float32.
fn widen(graph: &mut Subgraph, model: &Model, values: &mut Vec<u8>) {
    let mut kept = Vec::with_capacity(graph.operations.len());
    for operation in std::mem::take(&mut graph.operations) {
        let widened = (|| {
            let (&[from, ..], &[to]) = (&*operation.inputs, &*operation.outputs) else {
                return None;
            };
            let source = graph.operands.get(from as usize)?;
            let turns = [OperationType::Cast, OperationType::Dequantize];
            let is_widening = turns.contains(&operation.operation_type)
                && source.operand_type == OperandType::TensorFloat16
                && source.lifetime.is_constant();
            let target = graph.operands.get(to as usize)?;
            if !is_widening
                || target.operand_type != OperandType::TensorFloat32
                || target.lifetime != OperandLifeTime::TemporaryVariable
            {
                return None;
            }
            let narrow = bytes_of(model, values, source.lifetime, source.location)?;
            let wide = narrow.as_chunks().0.iter();
            let wide = wide.flat_map(|half| f16::from_ne_bytes(*half).to_f32().to_ne_bytes());
            let wide: Vec<u8> = wide.collect();
            let dimensions = source.dimensions.clone();
            let location = append(values, &wide)?;
            graph.operands[from as usize].number_of_consumers -= 1;
            let target = &mut graph.operands[to as usize];
            target.lifetime = OperandLifeTime::ConstantCopy;
            target.location = location;
            target.dimensions = dimensions;
            Some(())
        })();
        if widened.is_none() {
            kept.push(operation);
        }
    }
    graph.operations = kept;
}

/// A copy of a constant's bytes.
fn bytes_of(
    model: &Model,
    values: &[u8],
    lifetime: OperandLifeTime,
    location: DataLocation,
) -> Option<Vec<u8>> {
    let length = location.length as usize;
    if lifetime == OperandLifeTime::ConstantCopy {
        let start = location.offset as usize;
        return values.get(start..start.checked_add(length)?).map(<[u8]>::to_vec);
    }
    let pool = model.pools.get(location.pool_index as usize)?;
    pool.view().ok()?.read_to_vec(location.offset.into(), location.length.into()).ok()
}

fn append(values: &mut Vec<u8>, bytes: &[u8]) -> Option<DataLocation> {
    values.resize(values.len().checked_next_multiple_of(4)?, 0);
    let location = DataLocation {
        pool_index: 0,
        offset: u32::try_from(values.len()).ok()?,
        length: u32::try_from(bytes.len()).ok()?,
    };
    values.try_reserve(bytes.len()).ok()?;
    values.extend_from_slice(bytes);
    Some(location)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nnhal_hal::{OperandSpec, SubgraphBuilder};

    #[test]
    fn only_weights_of_floats_move_and_by_one_step_at_most() {
        let mut graph = SubgraphBuilder::new();
        let x = graph.input("x", OperandSpec::tensor_float32([4]));
        let weights = [1.0_f32, 0.0, -3.5, f32::MAX];
        let w = graph.constant(OperandSpec::tensor_float32([4]), &weights);
        let none = graph.scalar_i32(0);
        let y = graph.operation(OperationType::Add, [x, w, none], OperandSpec::tensor_float32([4]));
        graph.output(y);
        let model = graph.into_model().unwrap();
        let changed = perturbed(&model).unwrap();
        let operand = &changed.main.operands[1];
        let at = operand.location.offset as usize;
        let found = changed.operand_values[at..at + 16].as_chunks().0.iter();
        let found: Vec<f32> = found.map(|it| f32::from_ne_bytes(*it)).collect();
        assert_eq!(found[1], 0.0);
        for (found, weight) in [(found[0], 1.0_f32), (found[2], -3.5)] {
            assert!(found == weight.next_up() || found == weight.next_down(), "{found}");
        }
        assert!(found[3].is_finite());
        nnhal_ops::validate::oldest_version(&changed).unwrap();
    }
}
