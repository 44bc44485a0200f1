//! [`write`]: answers as JSON, with bytes behind it.

use super::elements::{most_text, write_elements};
use crate::charge::SharedCharge;
use crate::charge::take;
use crate::error::{Error, Result};
use crate::request::{InferResponse, OutputData};
use crate::service::MUCH;
use bytes::Bytes;
use serde::Serialize;

/// Bytes of tensors that are copied as they are: as fast as a small part of them is written as text.
const MUCH_AS_IT_IS: usize = 64 * MUCH;

/// Bytes of the answer itself, and of each output, beside names and elements.
const FRAME: usize = 256;

/// Whether each output is to be bytes.
fn with_kinds<'r>(
    response: &'r InferResponse,
    binary: &'r [bool],
) -> impl Iterator<Item = (&'r crate::request::OutputTensor, bool)> {
    let kinds = binary.iter().copied().chain(std::iter::repeat(false));
    response.outputs.iter().zip(kinds)
}

/// Whether writing an answer takes long enough for others to notice.
pub(crate) fn is_much(response: &InferResponse, binary: &[bool]) -> bool {
    let length = |data: &OutputData| match data {
        OutputData::Tensor(_, bytes) => bytes.len(),
        OutputData::Texts(texts) => texts.iter().map(String::len).sum(),
        OutputData::Shared { .. } => 0,
    };
    with_kinds(response, binary).any(|(output, is_binary)| {
        let most = if is_binary { MUCH_AS_IT_IS } else { MUCH };
        length(&output.data) >= most
    })
}

/// Bytes that the elements of an output may take.
fn most_length(data: &OutputData, is_binary: bool) -> usize {
    match data {
        OutputData::Shared { .. } => 0,
        OutputData::Tensor(_, bytes) if is_binary => bytes.len(),
        OutputData::Tensor(data_type, bytes) => most_text(*data_type, bytes.len()),
        // A length in front of each, or quotation marks and a comma; what has to be escaped takes more.
        OutputData::Texts(texts) => texts.iter().map(|text| text.len().saturating_add(4)).sum(),
    }
}

fn json<T: Serialize + ?Sized>(body: &mut Vec<u8>, value: &T) -> Result<()> {
    serde_json::to_writer(body, value).map_err(|error| Error::Internal(error.to_string()))
}

/// An answer: its body, and the length of its JSON if bytes follow. What it takes is taken of `charge`.
///
/// # Errors
/// [`Error::NoMemory`], [`Error::Internal`]
pub(crate) fn write(
    response: &InferResponse,
    binary: &[bool],
    charge: &SharedCharge,
) -> Result<(Bytes, Option<usize>)> {
    let elements = with_kinds(response, binary)
        .map(|(output, is_binary)| most_length(&output.data, is_binary))
        .fold(0, usize::saturating_add);
    take(charge, elements)?;
    let names: usize = response.outputs.iter().map(|output| output.name.len() + FRAME).sum();
    let names = names + response.model.len() + response.id.len() + FRAME;
    let mut body: Vec<u8> = Vec::new();
    let no_memory = |_| Error::Internal(format!("no memory for an answer of {elements} bytes"));
    body.try_reserve_exact(elements.saturating_add(names)).map_err(no_memory)?;
    body.extend_from_slice(b"{\"model_name\":");
    json(&mut body, &response.model)?;
    body.extend_from_slice(b",\"model_version\":");
    json(&mut body, &response.version.to_string())?;
    if !response.id.is_empty() {
        body.extend_from_slice(b",\"id\":");
        json(&mut body, &response.id)?;
    }
    body.extend_from_slice(b",\"outputs\":[");
    let mut parts: Vec<Bytes> = Vec::new();
    for (at, (output, is_binary)) in with_kinds(response, binary).enumerate() {
        body.extend_from_slice(if at > 0 { b",{\"name\":" } else { b"{\"name\":" });
        json(&mut body, &output.name)?;
        body.extend_from_slice(b",\"datatype\":");
        json(&mut body, output.datatype)?;
        body.extend_from_slice(b",\"shape\":");
        json(&mut body, &output.shape)?;
        match &output.data {
            // Nothing more, as Triton does: its client for C++ takes any parameter for that of bytes that follow.
            OutputData::Shared { .. } => {}
            data if is_binary => {
                let bytes = data.to_bytes();
                body.extend_from_slice(b",\"parameters\":{\"binary_data_size\":");
                json(&mut body, &bytes.len())?;
                body.push(b'}');
                parts.push(bytes);
            }
            OutputData::Tensor(data_type, bytes) => {
                body.extend_from_slice(b",\"data\":");
                write_elements(*data_type, bytes, &mut body);
            }
            OutputData::Texts(texts) => {
                body.extend_from_slice(b",\"data\":");
                json(&mut body, texts)?;
            }
        }
        body.push(b'}');
    }
    body.extend_from_slice(b"]}");
    let length = (!parts.is_empty()).then_some(body.len());
    for part in parts {
        body.extend_from_slice(&part);
    }
    // Room that most numbers do not need is given back, unless that is little.
    if body.capacity() - body.len() > MUCH {
        body.shrink_to_fit();
    }
    Ok((body.into(), length))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::charge::{Charge, Receiving};
    use crate::request::OutputTensor;
    use nnhal::DataType;

    fn response() -> InferResponse {
        let output = |name: &str, datatype, shape: &[usize], data| {
            let (name, shape) = (name.to_owned(), shape.to_vec());
            OutputTensor { name, datatype, shape, data }
        };
        let floats: Vec<u8> = [0.5_f32, -3.0].iter().flat_map(|it| it.to_le_bytes()).collect();
        let floats = OutputData::Tensor(DataType::Float32, floats.into());
        let texts = OutputData::Texts(vec!["0.5:0:\"a\"".to_owned()]);
        let bytes = OutputData::Tensor(DataType::Int8, vec![1, 255].into());
        InferResponse {
            model: "m\"1".into(),
            version: 7,
            id: "x".into(),
            outputs: vec![
                output("a", "FP32", &[1, 2], floats),
                output("b", "BYTES", &[1], texts),
                output("c", "INT8", &[2], bytes),
            ],
        }
    }

    #[test]
    fn an_answer_is_json_with_bytes_behind_it() {
        let charge = Charge::new(Receiving::new(1000)).shared();
        let mut response = response();
        let (body, length) = write(&response, &[false, false, true], &charge).unwrap();
        let expected = r#"{"model_name":"m\"1","model_version":"7","id":"x","outputs":[{"name":"a","datatype":"FP32","shape":[1,2],"data":[0.5,-3.0]},{"name":"b","datatype":"BYTES","shape":[1],"data":["0.5:0:\"a\""]},{"name":"c","datatype":"INT8","shape":[2],"parameters":{"binary_data_size":2}}]}"#;
        assert_eq!(length, Some(expected.len()));
        assert_eq!(body, [expected.as_bytes(), &[1, 255]].concat());
        response.id.clear();
        let (body, length) = write(&response, &[], &charge).unwrap();
        let read: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!((length, &read["outputs"][2]["data"]), (None, &serde_json::json!([1, -1])));
        assert!(read.get("id").is_none());
    }

    #[test]
    fn sec_an_answer_takes_no_more_memory_than_there_is() {
        let charge = Charge::new(Receiving::new(10)).shared();
        let refused = write(&response(), &[], &charge);
        assert!(matches!(refused, Err(Error::NoMemory { limit: 10 })));
    }
}
