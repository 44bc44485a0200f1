//! [`write`]: answers as JSON, with bytes behind it.

use super::elements::write_elements;
use crate::error::{Error, Result};
use crate::request::{InferResponse, OutputData};
use bytes::Bytes;
use serde::Serialize;
use serde_json::value::RawValue;

#[derive(Serialize)]
struct WireResponse<'a> {
    model_name: &'a str,
    model_version: String,
    #[serde(skip_serializing_if = "str::is_empty")]
    id: &'a str,
    outputs: Vec<WireResult<'a>>,
}

#[derive(Serialize)]
struct WireResult<'a> {
    name: &'a str,
    datatype: &'a str,
    shape: &'a [usize],
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters: Option<serde_json::Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Box<RawValue>>,
}

/// An answer: its body, and the length of its JSON if bytes follow.
///
/// # Errors
/// [`Error::Internal`]
pub(crate) fn write(response: &InferResponse, binary: &[bool]) -> Result<(Bytes, Option<usize>)> {
    let mut parts: Vec<Bytes> = Vec::new();
    let mut outputs = Vec::with_capacity(response.outputs.len());
    for (at, output) in response.outputs.iter().enumerate() {
        let is_binary = binary.get(at).copied().unwrap_or(false);
        let (parameters, data) = match &output.data {
            // Nothing more, as Triton does: its client for C++ takes any parameter for that of bytes that follow.
            OutputData::Shared { .. } => (None, None),
            data if is_binary => {
                let bytes = data.to_bytes();
                let parameters = serde_json::json!({ "binary_data_size": bytes.len() });
                parts.push(bytes);
                (Some(parameters), None)
            }
            OutputData::Tensor(data_type, bytes) => (None, Some(write_elements(*data_type, bytes))),
            OutputData::Texts(texts) => {
                (None, Some(serde_json::to_string(texts).unwrap_or_else(|_| "[]".into())))
            }
        };
        let data = data.map(RawValue::from_string).transpose();
        outputs.push(WireResult {
            name: &output.name,
            datatype: output.datatype,
            shape: &output.shape,
            parameters,
            data: data.map_err(|error| Error::Internal(error.to_string()))?,
        });
    }
    let wire = WireResponse {
        model_name: &response.model,
        model_version: response.version.to_string(),
        id: &response.id,
        outputs,
    };
    let mut body = serde_json::to_vec(&wire).map_err(|error| Error::Internal(error.to_string()))?;
    let length = (!parts.is_empty()).then_some(body.len());
    for part in parts {
        body.extend_from_slice(&part);
    }
    Ok((body.into(), length))
}
