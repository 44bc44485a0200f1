//! Models, operand by operand.

use crate::abi::{ANeuralNetworksOperandType, ANeuralNetworksSymmPerChannelQuantParams};
use crate::border::export;
use crate::devices::devices;
use crate::handle;
use crate::memory::ANeuralNetworksMemory;
use crate::outcome::{Outcome, bad_data, index, lock, null};
use crate::pointer::{In, Lent, Out};
use nnhal_runtime::{Model, ModelBuilder, OperandDescription};
use std::ffi::c_void;
use std::sync::{Arc, Mutex};

nnhal_c_boundary::opaque! {
    /// A model, being built or finished.
    ANeuralNetworksModel: Mutex<ModelBuilder>, 2;
}

/// Longest value that is copied at once (`ANEURALNETWORKS_MAX_SIZE_OF_IMMEDIATELY_COPIED_VALUES`).
pub const COPIED_AT_ONCE: usize = 128;

/// The model, if it is finished.
pub(crate) fn finished(model: &Mutex<ModelBuilder>) -> Outcome<Model> {
    lock(model)?.model().cloned()
}

/// What C says of an operand.
pub(crate) fn description(type_: ANeuralNetworksOperandType) -> Outcome<OperandDescription> {
    let dimensions = In::from(type_.dimensions);
    if dimensions.is_null() != (type_.dimension_count == 0) {
        let (count, what) = (type_.dimension_count, if dimensions.is_null() { "" } else { "not " });
        return Err(bad_data(format!("dimensionCount is {count}, but dimensions is {what}null")));
    }
    Ok(OperandDescription {
        code: type_.r#type,
        dimensions: dimensions.copy(type_.dimension_count as usize, "dimensions")?,
        scale: type_.scale,
        zero_point: type_.zero_point,
    })
}

export! {
    /// A model without anything.
    fn ANeuralNetworksModel_create(model: Out<*mut ANeuralNetworksModel>) {
        model.check("model")?;
        model.write(handle::give(Arc::new(Mutex::new(ModelBuilder::new(devices()?))))?);
        Ok(())
    }

    /// Frees it. Objects made from it stay valid.
    fn ANeuralNetworksModel_free(model: *mut ANeuralNetworksModel) -> (), (); {
        handle::free(model, "ANeuralNetworksModel_free", "model");
    }

    /// Declares it to be whole.
    fn ANeuralNetworksModel_finish(model: *mut ANeuralNetworksModel) {
        lock(&*handle::get(model, "model")?)?.finish().map(drop)
    }

    /// Adds an operand.
    fn ANeuralNetworksModel_addOperand(
        model: *mut ANeuralNetworksModel,
        type_: In<ANeuralNetworksOperandType>,
    ) {
        let model = handle::get(model, "model")?;
        let description = type_.read("type").map(description)?;
        let mut model = lock(&model)?;
        model.expect_building()?;
        model.add_operand(&description?).map(drop)
    }

    /// Makes an operand constant.
    fn ANeuralNetworksModel_setOperandValue(
        model: *mut ANeuralNetworksModel,
        operand: i32,
        buffer: In<c_void>,
        length: usize,
    ) {
        let model = handle::get(model, "model")?;
        if buffer.is_null() && length != 0 {
            return Err(null("buffer"));
        }
        let mut model = lock(&model)?;
        let operand = index(operand);
        if buffer.is_null() {
            return model.omit_operand_value(operand);
        }
        if length == 0 {
            model.expect_building()?;
            return Err(bad_data("length is 0, but buffer is not null"));
        }
        if length <= COPIED_AT_ONCE {
            let value = buffer.bytes().copy(length, "buffer")?;
            return model.set_operand_value(operand, &value);
        }
        model.set_operand_value_shared(operand, Arc::new(Lent::new(buffer, length, "buffer")?))
    }

    /// Gives an operand scales along a dimension.
    fn ANeuralNetworksModel_setOperandSymmPerChannelQuantParams(
        model: *mut ANeuralNetworksModel,
        operand: i32,
        quant: In<ANeuralNetworksSymmPerChannelQuantParams>,
    ) {
        let model = handle::get(model, "model")?;
        let quant = quant.read("channelQuant")?;
        let mut model = lock(&model)?;
        model.expect_building()?;
        let scales = In::from(quant.scales);
        if scales.is_null() != (quant.scale_count == 0) {
            let count = quant.scale_count;
            return Err(bad_data(format!("scaleCount is {count}, which scales does not go with")));
        }
        let scales = scales.copy(quant.scale_count as usize, "scales")?;
        model.set_operand_channel_quant(index(operand), quant.channel_dim, &scales)
    }

    /// Makes an operand constant, its value a part of a memory.
    fn ANeuralNetworksModel_setOperandValueFromMemory(
        model: *mut ANeuralNetworksModel,
        operand: i32,
        memory: *const ANeuralNetworksMemory,
        offset: usize,
        length: usize,
    ) {
        let model = handle::get(model, "model")?;
        let memory = handle::get(memory, "memory")?;
        lock(&model)?.set_operand_value_from_memory(index(operand), &memory, offset, length)
    }

    /// Makes an operand stand for a finished model.
    fn ANeuralNetworksModel_setOperandValueFromModel(
        model: *mut ANeuralNetworksModel,
        operand: i32,
        value: *const ANeuralNetworksModel,
    ) {
        let model = handle::get(model, "model")?;
        let value = handle::get(value, "value")?;
        lock(&model)?.expect_building()?;
        // One lock at a time: both may be the same model.
        let value = finished(&value)?;
        lock(&model)?.set_operand_value_from_model(index(operand), &value)
    }

    /// Adds an operation.
    fn ANeuralNetworksModel_addOperation(
        model: *mut ANeuralNetworksModel,
        operation: i32,
        input_count: u32,
        inputs: In<u32>,
        output_count: u32,
        outputs: In<u32>,
    ) {
        let model = handle::get(model, "model")?;
        let mut model = lock(&model)?;
        let (inputs, outputs) = indexes(&model, input_count, inputs, output_count, outputs)?;
        model.add_operation(operation, &inputs, &outputs)
    }

    /// Says which operands are inputs and outputs.
    fn ANeuralNetworksModel_identifyInputsAndOutputs(
        model: *mut ANeuralNetworksModel,
        input_count: u32,
        inputs: In<u32>,
        output_count: u32,
        outputs: In<u32>,
    ) {
        let model = handle::get(model, "model")?;
        let mut model = lock(&model)?;
        let (inputs, outputs) = indexes(&model, input_count, inputs, output_count, outputs)?;
        model.identify_inputs_and_outputs(&inputs, &outputs)
    }

    /// Whether float32 may be computed as float16.
    fn ANeuralNetworksModel_relaxComputationFloat32toFloat16(
        model: *mut ANeuralNetworksModel,
        allow: u8,
    ) {
        lock(&*handle::get(model, "model")?)?.relax_computation_float32_to_float16(allow != 0)
    }
}

/// Two lists of operands of a model that is being built. Neither may be null, and neither may be empty: a place with nothing in
/// it is as wrong as none.
fn indexes(
    model: &ModelBuilder,
    input_count: u32,
    inputs: In<u32>,
    output_count: u32,
    outputs: In<u32>,
) -> Outcome<(Vec<u32>, Vec<u32>)> {
    if inputs.is_null() {
        return Err(null("inputs"));
    }
    if outputs.is_null() {
        return Err(null("outputs"));
    }
    model.expect_building()?;
    if input_count == 0 || output_count == 0 {
        return Err(bad_data(format!("{input_count} inputs and {output_count} outputs")));
    }
    let inputs = inputs.copy(input_count as usize, "inputs")?;
    Ok((inputs, outputs.copy(output_count as usize, "outputs")?))
}
