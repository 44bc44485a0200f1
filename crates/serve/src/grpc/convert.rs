//! The protocol's messages as the service's types, and back.

use crate::config::{LEVELS, Versions, format_code, type_code};
use crate::data_type;
use crate::error::{Error, Result};
use crate::model::{BatchCounts, Durations, Served, TensorMeta, wire_shape};
use crate::parameters::{Parameter, Parameters, check_count, check_name, whole};
use crate::proto;
use crate::request::{
    Data, InferRequest, InferResponse, InputTensor, MOST_TENSORS, OutputData, WantedOutput, version,
};
use crate::shared_memory::SharedMemory;
use bytes::Bytes;
use nnhal::DataType;
use proto::infer_parameter::ParameterChoice;
use std::collections::HashMap;
use std::sync::Arc;

fn parameters(wire: HashMap<String, proto::InferParameter>) -> Parameters {
    let value = |(name, value): (String, proto::InferParameter)| {
        let value = match value.parameter_choice? {
            ParameterChoice::BoolParam(value) => Parameter::Bool(value),
            ParameterChoice::Int64Param(value) => Parameter::Integer(value.into()),
            ParameterChoice::Uint64Param(value) => Parameter::Integer(value.into()),
            ParameterChoice::StringParam(value) => Parameter::Text(value),
            ParameterChoice::DoubleParam(value) => Parameter::Float(value),
        };
        Some((name, value))
    };
    wire.into_iter().filter_map(value).collect()
}

/// A request as the service takes it.
///
/// # Errors
/// [`Error::Invalid`], [`Error::NotFound`]: no such shared memory; [`Error::Unsupported`].
pub(crate) fn request(
    wire: proto::ModelInferRequest,
    memory: &SharedMemory,
) -> Result<InferRequest> {
    check_count("inputs", wire.inputs.len(), MOST_TENSORS)?;
    check_count("outputs", wire.outputs.len(), MOST_TENSORS)?;
    let mut request = InferRequest {
        model: wire.model_name,
        version: version(&wire.model_version)?,
        id: wire.id,
        ..InferRequest::default()
    };
    request.apply(&parameters(wire.parameters))?;
    let is_raw = !wire.raw_input_contents.is_empty();
    let mut raw = wire.raw_input_contents.into_iter();
    for input in wire.inputs {
        let proto::model_infer_request::InferInputTensor {
            name, datatype, shape, contents, ..
        } = input;
        check_name("an input's name", &name)?;
        let refuse = |why: &str| Error::invalid(format!("input {name:?}: {why}"));
        let contents = contents.filter(|contents| !is_empty(contents));
        let data = match (memory.slice(&parameters(input.parameters))?, contents) {
            (Some(_), Some(_)) => return Err(refuse("its data is in several places")),
            (Some(slice), None) => Data::Shared(slice),
            (None, Some(_)) if is_raw => {
                return Err(refuse("it has contents, and the request raw ones"));
            }
            (None, None) if is_raw => {
                let bytes = raw.next().ok_or_else(|| refuse("there are no raw contents for it"))?;
                Data::Bytes(bytes.into())
            }
            (None, contents) => {
                let (data_type, _, length) = InputTensor::size(&name, &datatype, &shape)?;
                let contents = contents.unwrap_or_default();
                let bytes = elements(&contents, data_type, length);
                Data::Bytes(bytes.map_err(|why| refuse(&why))?.into())
            }
        };
        request.inputs.push(InputTensor::new(&name, &datatype, &shape, data)?);
    }
    // Some clients send an empty one for each input in shared memory.
    if raw.any(|left| !left.is_empty()) {
        return Err(Error::invalid("there are more raw contents than inputs"));
    }
    for output in wire.outputs {
        check_name("an output's name", &output.name)?;
        let parameters = parameters(output.parameters);
        let classes = whole(&parameters, "classification")?.filter(|classes| *classes > 0);
        request.outputs.push(WantedOutput {
            name: output.name,
            classes: classes.map(|it| usize::try_from(it).unwrap_or(usize::MAX)),
            shared: memory.slice(&parameters)?,
            binary: None,
        });
    }
    Ok(request)
}

fn is_empty(contents: &proto::InferTensorContents) -> bool {
    *contents == proto::InferTensorContents::default()
}

/// Elements as bytes; `length` is how many bytes they make.
fn elements(
    contents: &proto::InferTensorContents,
    data_type: DataType,
    length: usize,
) -> Result<Bytes, String> {
    let proto::InferTensorContents {
        bool_contents: bools,
        int_contents: ints,
        int64_contents: longs,
        uint_contents: uints,
        uint64_contents: ulongs,
        fp32_contents: floats,
        fp64_contents: doubles,
        ..
    } = contents;
    fn narrow<T: Copy + std::fmt::Display, S: TryFrom<T>, const N: usize>(
        all: &[T],
        bytes: fn(S) -> [u8; N],
    ) -> Result<Vec<u8>, String> {
        let mut narrowed = Vec::with_capacity(all.len() * N);
        for value in all {
            let small = S::try_from(*value).map_err(|_| format!("{value} is out of range"))?;
            narrowed.extend_from_slice(&bytes(small));
        }
        Ok(narrowed)
    }
    let bytes = match data_type {
        DataType::Bool => bools.iter().map(|it| u8::from(*it)).collect(),
        DataType::Int8 => narrow(ints, i8::to_le_bytes)?,
        DataType::Int16 => narrow(ints, i16::to_le_bytes)?,
        DataType::Int32 => narrow(ints, i32::to_le_bytes)?,
        DataType::Int64 => narrow(longs, i64::to_le_bytes)?,
        DataType::Uint8 => narrow(uints, u8::to_le_bytes)?,
        DataType::Uint16 => narrow(uints, u16::to_le_bytes)?,
        DataType::Uint32 => narrow(uints, u32::to_le_bytes)?,
        DataType::Uint64 => narrow(ulongs, u64::to_le_bytes)?,
        DataType::Float32 => narrow(floats, f32::to_le_bytes)?,
        DataType::Float64 => narrow(doubles, f64::to_le_bytes)?,
        _ => return Err(format!("values of {data_type} come as raw contents")),
    };
    if bytes.len() != length {
        let size = data_type.size().unwrap_or(1);
        let (found, expected) = (bytes.len() / size, length / size);
        return Err(format!("{found} elements, expected {expected}"));
    }
    Ok(bytes.into())
}

fn wire_lengths(shape: &[usize]) -> Vec<i64> {
    shape.iter().map(|length| i64::try_from(*length).unwrap_or(i64::MAX)).collect()
}

/// An answer as a message; elements are raw.
pub(super) fn response(response: InferResponse) -> proto::ModelInferResponse {
    let parameter = |choice| proto::InferParameter { parameter_choice: Some(choice) };
    let mut wire = proto::ModelInferResponse {
        model_name: response.model,
        model_version: response.version.to_string(),
        id: response.id,
        ..Default::default()
    };
    for output in response.outputs {
        let mut parameters = HashMap::new();
        if let OutputData::Shared { place, length } = &output.data {
            let long = |it| ParameterChoice::Int64Param(i64::try_from(it).unwrap_or(i64::MAX));
            let region = ParameterChoice::StringParam(place.region().to_owned());
            parameters.insert("shared_memory_region".into(), parameter(region));
            parameters.insert("shared_memory_offset".into(), parameter(long(place.offset())));
            parameters.insert("shared_memory_byte_size".into(), parameter(long(*length as u64)));
        }
        wire.raw_output_contents.push(output.data.to_bytes());
        wire.outputs.push(proto::model_infer_response::InferOutputTensor {
            name: output.name,
            datatype: output.datatype.to_owned(),
            shape: wire_lengths(&output.shape),
            parameters,
            contents: None,
        });
    }
    wire
}

pub(super) fn metadata(served: &Served, all: &[Arc<Served>]) -> proto::ModelMetadataResponse {
    let tensors = |all: &[TensorMeta]| {
        let tensor = |it: &TensorMeta| proto::model_metadata_response::TensorMetadata {
            name: it.name.clone(),
            datatype: data_type::name(it.data_type).unwrap_or_default().to_owned(),
            shape: wire_shape(&it.shape),
        };
        all.iter().map(tensor).collect()
    };
    proto::ModelMetadataResponse {
        name: served.name.clone(),
        versions: all.iter().map(|it| it.version.to_string()).collect(),
        platform: "tensorflow_lite".into(),
        inputs: tensors(&served.inputs),
        outputs: tensors(&served.outputs),
    }
}

fn durations(it: Durations) -> Option<proto::StatisticDuration> {
    Some(proto::StatisticDuration { count: it.count, ns: it.nanoseconds })
}

pub(super) fn statistics(served: &Served) -> proto::ModelStatistics {
    let counts = served.counts();
    let batch = |(rows, it): (&usize, &BatchCounts)| proto::InferBatchStatistics {
        batch_size: *rows as u64,
        compute_input: durations(it.input),
        compute_infer: durations(it.compute),
        compute_output: durations(it.output),
    };
    proto::ModelStatistics {
        name: served.name.clone(),
        version: served.version.to_string(),
        last_inference: counts.last_inference,
        inference_count: counts.inferences,
        execution_count: counts.executions,
        inference_stats: Some(proto::InferStatistics {
            success: durations(counts.success),
            fail: durations(counts.fail),
            queue: durations(counts.queue),
            compute_input: durations(counts.work.input),
            compute_infer: durations(counts.work.compute),
            compute_output: durations(counts.work.output),
            cache_hit: durations(Durations::default()),
            cache_miss: durations(Durations::default()),
        }),
        batch_stats: counts.batches.iter().map(batch).collect(),
        memory_usage: vec![proto::MemoryUsage {
            r#type: "CPU".into(),
            id: 0,
            byte_size: served.memory,
        }],
        response_stats: HashMap::new(),
    }
}

/// How a model is served, as Triton's configuration.
pub(crate) fn config(served: &Served) -> proto::ModelConfig {
    use proto::model_version_policy::{All, Latest, PolicyChoice, Specific};
    let own = &served.config;
    let dims = |meta: &TensorMeta| wire_shape(&meta.shape[usize::from(served.is_batched())..]);
    let input = |meta: &TensorMeta| proto::ModelInput {
        name: meta.name.clone(),
        data_type: type_code(meta.data_type),
        format: format_code(&meta.format).unwrap_or_default(),
        dims: dims(meta),
        ..Default::default()
    };
    let output = |meta: &TensorMeta| proto::ModelOutput {
        name: meta.name.clone(),
        data_type: type_code(meta.data_type),
        dims: dims(meta),
        label_filename: meta.label_file.clone(),
        ..Default::default()
    };
    let policy = match &own.versions {
        Versions::Latest(count) => PolicyChoice::Latest(Latest { num_versions: *count }),
        Versions::All => PolicyChoice::All(All {}),
        Versions::Specific(versions) => PolicyChoice::Specific(Specific {
            versions: versions.iter().map(|it| i64::try_from(*it).unwrap_or(i64::MAX)).collect(),
        }),
    };
    let small = |number: usize| i32::try_from(number).unwrap_or(i32::MAX);
    let batching = own.dynamic_batching.as_ref().map(|batching| {
        let sizes = batching.preferred_batch_sizes.iter();
        proto::model_config::SchedulingChoice::DynamicBatching(proto::ModelDynamicBatching {
            preferred_batch_size: sizes.map(|size| small(*size as usize)).collect(),
            max_queue_delay_microseconds: batching.max_queue_delay_microseconds,
            priority_levels: LEVELS,
            default_priority_level: own.default_priority,
            default_queue_policy: Some(proto::ModelQueuePolicy {
                default_timeout_microseconds: own.default_timeout_microseconds,
                allow_timeout_override: own.allow_timeout_override,
                max_queue_size: u32::try_from(own.max_queue_size).unwrap_or(u32::MAX),
                ..Default::default()
            }),
            ..Default::default()
        })
    });
    proto::ModelConfig {
        name: served.name.clone(),
        backend: "tflite".into(),
        version_policy: Some(proto::ModelVersionPolicy { policy_choice: Some(policy) }),
        max_batch_size: small(own.max_batch_size as usize),
        input: served.inputs.iter().map(input).collect(),
        output: served.outputs.iter().map(output).collect(),
        instance_group: vec![proto::ModelInstanceGroup {
            name: format!("{}_0", served.name),
            kind: proto::model_instance_group::Kind::Cpu.into(),
            count: small(own.instances),
            ..Default::default()
        }],
        default_model_filename: own.filename.clone(),
        scheduling_choice: batching,
        ..Default::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prost::Message as _;
    use proto::model_infer_request::InferInputTensor;

    fn wire() -> proto::ModelInferRequest {
        let input = |name: &str, datatype: &str, shape: &[i64]| InferInputTensor {
            name: name.into(),
            datatype: datatype.into(),
            shape: shape.to_vec(),
            ..Default::default()
        };
        proto::ModelInferRequest {
            model_name: "m".into(),
            inputs: vec![input("a", "INT8", &[2]), input("b", "FP32", &[1])],
            raw_input_contents: vec![vec![1, 2].into(), vec![0; 4].into()],
            ..Default::default()
        }
    }

    fn read(wire: proto::ModelInferRequest) -> Result<InferRequest> {
        request(wire, &SharedMemory::new(false))
    }

    #[test]
    fn raw_contents_are_the_inputs_in_order() {
        let request = read(wire()).unwrap();
        let Data::Bytes(bytes) = &request.inputs[0].data else { panic!() };
        assert_eq!(bytes.to_bytes()[..], [1, 2]);
        let mut fewer = wire();
        fewer.raw_input_contents.pop();
        assert!(read(fewer).is_err());
        let mut more = wire();
        more.raw_input_contents.push(vec![1].into());
        assert!(read(more).is_err());
        let mut both = wire();
        both.inputs[0].contents =
            Some(proto::InferTensorContents { int_contents: vec![1, 2], ..Default::default() });
        assert!(read(both).is_err());
    }

    #[test]
    fn typed_contents_are_in_the_range_of_their_type() {
        let with = |ints: &[i32]| {
            let mut wire = wire();
            wire.raw_input_contents.clear();
            wire.inputs.truncate(1);
            let int_contents = ints.to_vec();
            wire.inputs[0].contents =
                Some(proto::InferTensorContents { int_contents, ..Default::default() });
            read(wire)
        };
        assert!(with(&[-128, 127]).is_ok());
        for wrong in [&[0, 128][..], &[-129, 0], &[1], &[1, 2, 3], &[]] {
            assert!(with(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn sec_any_changed_message_is_read_or_refused() {
        let whole = wire().encode_to_vec();
        for at in 0..whole.len() {
            for value in 0..=255 {
                let mut bytes = whole.clone();
                bytes[at] = value;
                let Ok(request) = crate::parse::message(&bytes) else { continue };
                for input in request.inputs {
                    let Data::Bytes(bytes) = &input.data else { continue };
                    assert_eq!(input.data_type.byte_length(&input.shape), Some(bytes.len()));
                }
            }
        }
    }
}
