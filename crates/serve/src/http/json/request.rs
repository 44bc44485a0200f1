//! [`read`]: requests of JSON, with the bytes behind it; [`read_raw`]: of bytes alone.

use super::elements::read_elements;
use super::object::Object;
use crate::error::{Error, Result};
use crate::input_memory::InputMemory;
use crate::parameters::{MOST_NAME, Parameter, Parameters, check_count, check_name, truth, whole};
use crate::pieces::Pieces;
use crate::request::{Data, InferRequest, InputTensor, MOST_TENSORS, WantedOutput};
use crate::shared_memory::SharedMemory;
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::fmt;

#[derive(Deserialize)]
struct WireRequest<'a> {
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    parameters: Option<WireParameters>,
    #[serde(borrow)]
    inputs: Vec<Object<WireInput<'a>>>,
    #[serde(default)]
    outputs: Option<Vec<Object<WireOutput>>>,
}

type WireParameters = BTreeMap<String, WireParameter>;

/// A parameter is a text, a number or a truth; anything else is none that is known.
struct WireParameter(Option<Parameter>);

impl<'de> Deserialize<'de> for WireParameter {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(AnyParameter).map(Self)
    }
}

struct AnyParameter;

impl<'de> Visitor<'de> for AnyParameter {
    type Value = Option<Parameter>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a parameter")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Self::Value, E> {
        Ok(Some(Parameter::Bool(value)))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Self::Value, E> {
        Ok(Some(Parameter::Integer(value.into())))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Self::Value, E> {
        Ok(Some(Parameter::Integer(value.into())))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Self::Value, E> {
        Ok(Some(Parameter::Float(value)))
    }

    fn visit_str<E>(self, value: &str) -> Result<Self::Value, E> {
        Ok(Some(Parameter::Text(value.to_owned())))
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut all: A) -> Result<Self::Value, A::Error> {
        while all.next_element::<IgnoredAny>()?.is_some() {}
        Ok(None)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut all: A) -> Result<Self::Value, A::Error> {
        while all.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(None)
    }
}

#[derive(Deserialize)]
struct WireInput<'a> {
    name: String,
    shape: Vec<i64>,
    datatype: String,
    #[serde(default)]
    parameters: Option<WireParameters>,
    #[serde(default, borrow)]
    data: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct WireOutput {
    name: String,
    #[serde(default)]
    parameters: Option<WireParameters>,
}

fn parameters(wire: Option<WireParameters>) -> Parameters {
    let value = |(name, WireParameter(value))| value.map(|value| (name, value));
    wire.unwrap_or_default().into_iter().filter_map(value).collect()
}

fn malformed(text: &[u8], error: &serde_json::Error) -> Error {
    // Python's own writer writes these, which no other reader of JSON takes.
    let not_finite = ["-Infinity", "Infinity", "NaN"];
    let line = text.split(|byte| *byte == b'\n').nth(error.line().saturating_sub(1));
    let is_here = |value: &str, back: usize| {
        let here = line.and_then(|line| line.get(error.column().checked_sub(back)?..));
        here.is_some_and(|here| here.starts_with(value.as_bytes()))
    };
    // The reader ends at the first character, or behind the sign.
    let is_near = |value: &&&str| is_here(value, 1) || is_here(value, 2);
    match not_finite.iter().find(is_near).filter(|_| error.is_syntax()) {
        Some(value) => Error::invalid(format!(
            "the request is no valid JSON: {value} is no number there (line {} column {}); send such values as bytes",
            error.line(),
            error.column()
        )),
        None => Error::invalid(format!("the request is no valid JSON of this protocol: {error}")),
    }
}

/// An error without the line and column of a part of the request, which say nothing to whoever sent the whole.
fn without_place(error: &serde_json::Error) -> String {
    let place = format!(" at line {} column {}", error.line(), error.column());
    let text = error.to_string();
    text.strip_suffix(&place).unwrap_or(&text).to_owned()
}

/// The body of a request.
pub(crate) struct Received {
    /// All of it, or its JSON if the rest is in `memory`.
    pub(crate) front: Pieces,
    /// The length of the JSON, if bytes follow it.
    pub(crate) header: Option<usize>,
    /// The bytes that follow.
    pub(crate) memory: Option<InputMemory>,
}

impl Received {
    pub(crate) fn into_data(self) -> Data {
        self.memory.map_or(Data::Bytes(self.front), Data::Memory)
    }
}

/// Bytes that follow the JSON, and have not been taken by an input.
struct Rest {
    pieces: Pieces,
    memory: Option<InputMemory>,
}

impl Rest {
    fn len(&self) -> usize {
        self.memory.as_ref().map_or(self.pieces.len(), InputMemory::length)
    }

    /// The next `size` bytes.
    fn take(&mut self, size: usize) -> Result<Data> {
        if let Some(memory) = self.memory.take() {
            let length = memory.length();
            if size == length {
                return Ok(Data::Memory(memory));
            }
            // A request that does not fit the model; it will be refused for that.
            let mut bytes = vec![0; length];
            memory.read(0, &mut bytes)?;
            self.pieces = bytes.into();
        }
        Ok(Data::Bytes(self.pieces.split_to(size)))
    }
}

/// Reads the body of a request. Also gives whether outputs that no request names are wanted as bytes.
///
/// # Errors
/// [`Error::Invalid`], [`Error::NotFound`]: no such shared memory; [`Error::Unsupported`].
pub(crate) fn read(
    model: &str,
    version: Option<u64>,
    body: Received,
    memory: &SharedMemory,
) -> Result<(InferRequest, bool)> {
    let Received { front: mut pieces, header, memory: rest } = body;
    let length = header.unwrap_or(pieces.len());
    let text = pieces.front(length).ok_or_else(|| {
        let found = pieces.len();
        Error::invalid(format!("Inference-Header-Content-Length is {length}, the body has {found}"))
    })?;
    let Object(wire): Object<WireRequest<'_>> =
        serde_json::from_slice(&text).map_err(|error| malformed(&text, &error))?;
    let of_request = parameters(wire.parameters);
    let mut request = InferRequest { model: model.to_owned(), version, ..InferRequest::default() };
    request.id = wire.id.unwrap_or_default();
    request.apply(&of_request)?;
    check_count("inputs", wire.inputs.len(), MOST_TENSORS)?;
    pieces.split_to(length);
    let mut rest = Rest { pieces, memory: rest };
    for Object(input) in wire.inputs {
        request.inputs.push(read_input(input, &mut rest, memory)?);
    }
    let left = rest.len();
    if left > 0 {
        return Err(Error::invalid(format!("{left} bytes follow those of the last input")));
    }
    let outputs = wire.outputs.unwrap_or_default();
    check_count("outputs", outputs.len(), MOST_TENSORS)?;
    for Object(output) in outputs {
        request.outputs.push(read_output(output, memory)?);
    }
    // An output that does not say it is as the request says.
    let all_binary = truth(&of_request, "binary_data_output")?;
    for output in &mut request.outputs {
        output.binary = output.binary.or(all_binary);
    }
    Ok((request, all_binary == Some(true)))
}

fn read_input(
    mut input: WireInput<'_>,
    rest: &mut Rest,
    memory: &SharedMemory,
) -> Result<InputTensor> {
    let parameters = parameters(input.parameters.take());
    let WireInput { name, shape, datatype, data, .. } = &input;
    check_name("an input's name", name)?;
    let refuse = |why: String| Error::invalid(format!("input {name:?}: {why}"));
    let binary = whole(&parameters, "binary_data_size")?;
    let shared = memory.slice(&parameters)?;
    let data = match (data, binary, shared) {
        (Some(data), None, None) => {
            let (data_type, _, length) = InputTensor::size(name, datatype, shape)?;
            let elements = read_elements(data.get(), data_type, length);
            Data::Bytes(elements.map_err(|error| refuse(without_place(&error)))?.into())
        }
        (None, Some(size), None) => {
            let left = rest.len();
            let Some(size) = usize::try_from(size).ok().filter(|size| *size <= left) else {
                let why = format!("binary_data_size is {size}, and {left} bytes are left");
                return Err(refuse(why));
            };
            rest.take(size)?
        }
        (None, None, Some(slice)) => Data::Shared(slice),
        (None, None, None) => return Err(refuse("it has no data".into())),
        _ => return Err(refuse("its data is in several places".into())),
    };
    InputTensor::new(name, datatype, shape, data)
}

fn read_output(output: WireOutput, memory: &SharedMemory) -> Result<WantedOutput> {
    check_name("an output's name", &output.name)?;
    let parameters = parameters(output.parameters);
    let classes = whole(&parameters, "classification")?.filter(|classes| *classes > 0);
    let (shared, binary) = (memory.slice(&parameters)?, truth(&parameters, "binary_data")?);
    if shared.is_some() && binary == Some(true) {
        let name = &output.name;
        return Err(Error::invalid(format!("output {name:?}: it is wanted in several places")));
    }
    Ok(WantedOutput {
        name: output.name,
        classes: classes.map(|it| usize::try_from(it).unwrap_or(usize::MAX)),
        shared,
        binary,
    })
}

/// The one input of a request that is nothing but its bytes.
///
/// # Errors
/// [`Error::Invalid`]: the model has not exactly one input, or the bytes fit no shape of it.
pub(crate) fn read_raw(
    model: &str,
    version: Option<u64>,
    inputs: &[crate::model::TensorMeta],
    is_batched: bool,
    data: Data,
) -> Result<InferRequest> {
    let [meta] = inputs else {
        let why = "a request of bytes alone is for a model with one input";
        return Err(Error::invalid(why));
    };
    let mut shape: Vec<Option<usize>> = meta.shape.clone();
    if let (true, Some(length)) = (is_batched, shape.first_mut()) {
        *length = Some(1);
    }
    let open: Vec<usize> = (0..shape.len()).filter(|at| shape[*at].is_none()).collect();
    if let [at] = *open {
        let rest: Vec<usize> = shape.iter().copied().map(|length| length.unwrap_or(1)).collect();
        let each = meta.data_type.byte_length(&rest).filter(|each| *each > 0);
        shape[at] = each.and_then(|each| data.length().checked_div(each));
    }
    let known: Option<Vec<i64>> =
        shape.iter().map(|length| length.and_then(|it| i64::try_from(it).ok())).collect();
    let why = "a request of bytes alone is for an input of which at most one length is open";
    let known = known.ok_or_else(|| Error::invalid(why))?;
    let datatype = crate::data_type::name(meta.data_type).unwrap_or_default();
    let input = InputTensor::new(&meta.name, datatype, &known, data)?;
    let model = model.to_owned();
    Ok(InferRequest { model, version, inputs: vec![input], ..InferRequest::default() })
}

// A name that is longer is refused before anything is made of it.
const _: () = assert!(MOST_NAME <= 1 << 16);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::TensorMeta;
    use nnhal::DataType;

    fn read_one(body: &[u8], header: Option<usize>) -> Result<InferRequest> {
        let memory = SharedMemory::new(false);
        let body = Received { front: body.to_vec().into(), header, memory: None };
        read("m", None, body, &memory).map(|(request, _)| request)
    }

    fn bytes(data: &Data) -> Vec<u8> {
        match data {
            Data::Bytes(bytes) => bytes.to_bytes().to_vec(),
            Data::Memory(_) | Data::Shared(_) => Vec::new(),
        }
    }

    fn elements_of(datatype: &str, count: usize, data: &str) -> Result<Vec<u8>> {
        let body = format!(
            r#"{{"inputs":[{{"data":{data},"name":"x","shape":[{count}],"datatype":"{datatype}"}}]}}"#
        );
        read_one(body.as_bytes(), None).map(|request| bytes(&request.inputs[0].data))
    }

    #[test]
    fn elements_are_nested_or_flat_and_of_their_type() {
        assert_eq!(
            elements_of("INT16", 4, "[[1,-2],[3,4]]").unwrap(),
            [1, 0, 254, 255, 3, 0, 4, 0]
        );
        assert_eq!(elements_of("BOOL", 3, "[true,0,1]").unwrap(), [1, 0, 1]);
        assert_eq!(elements_of("FP16", 1, "[1.0]").unwrap(), [0, 0x3C]);
        assert_eq!(elements_of("UINT64", 1, "[18446744073709551615]").unwrap(), [255; 8]);
        assert_eq!(elements_of("FP32", 1, "[1]").unwrap(), 1.0_f32.to_le_bytes());
        assert_eq!(elements_of("INT8", 1, "[3.0]").unwrap(), [3]);
        for (datatype, data) in [
            ("UINT8", "[256]"),
            ("UINT8", "[-1]"),
            ("INT8", "[0.5]"),
            ("BOOL", "[2]"),
            ("INT32", "[true]"),
            ("FP32", "[null]"),
            ("FP32", "[\"1\"]"),
            ("FP32", "[1,2]"),
            ("FP32", "[]"),
            ("FP32", "{}"),
        ] {
            assert!(elements_of(datatype, 1, data).is_err(), "{datatype} {data}");
        }
    }

    #[test]
    fn what_is_no_number_is_named() {
        let message = |data: &str| elements_of("UINT8", 2, data).unwrap_err().to_string();
        assert_eq!(message("[1,300]"), "input \"x\": element 1: 300 is no value of UINT8");
        assert_eq!(message("[1,2,3]"), "input \"x\": more elements than the 2 of its shape");
        for value in ["NaN", "Infinity", "-Infinity"] {
            for data in [format!("[{value},1]"), format!("[1, {value}]"), format!("[1,\n{value}]")]
            {
                let message = message(&data);
                assert!(message.contains(&format!("JSON: {value} is no number")), "{message}");
            }
        }
        assert!(!message("[1,]").contains("NaN"));
    }

    #[test]
    fn a_parameter_of_another_kind_is_passed_over() {
        let body = r#"{"parameters":{"a":null,"b":[1,[2]],"c":{"d":{}},"priority":1},"inputs":[]}"#;
        assert_eq!(read_one(body.as_bytes(), None).unwrap().priority, 1);
        let body = r#"{"parameters":{"priority":1.5},"inputs":[]}"#;
        assert!(read_one(body.as_bytes(), None).is_err());
    }

    #[test]
    fn bytes_follow_in_the_order_of_inputs() {
        let json = r#"{"inputs":[
            {"name":"a","shape":[2],"datatype":"UINT8","parameters":{"binary_data_size":2}},
            {"name":"b","shape":[1],"datatype":"UINT8","data":[9]},
            {"name":"c","shape":[3],"datatype":"INT8","parameters":{"binary_data_size":3}}],
            "parameters":{"binary_data_output":true},
            "outputs":[{"name":"y"},{"name":"z","parameters":{"binary_data":false}}]}"#;
        let mut body = json.as_bytes().to_vec();
        body.extend([1, 2, 3, 4, 5]);
        let request = read_one(&body, Some(json.len())).unwrap();
        let all: Vec<_> = request.inputs.iter().map(|input| bytes(&input.data)).collect();
        assert_eq!(all, [vec![1, 2], vec![9], vec![3, 4, 5]]);
        assert_eq!(request.outputs[0].binary, Some(true));
        assert_eq!(request.outputs[1].binary, Some(false));
        body.push(6);
        assert!(read_one(&body, Some(json.len())).is_err(), "a byte too many");
        body.truncate(body.len() - 2);
        assert!(read_one(&body, Some(json.len())).is_err(), "a byte too few");
    }

    #[test]
    fn sec_any_changed_request_is_read_or_refused() {
        let json = r#"{"id":"1","parameters":{"priority":1,"timeout":5,"x":[1]},"inputs":[{"name":"a","shape":[1,2],
            "datatype":"FP32","data":[[1.5,2]]},{"name":"b","shape":[4],"datatype":"INT8","parameters":
            {"binary_data_size":4}}],"outputs":[{"name":"y","parameters":{"classification":2}}]}"#;
        let mut whole = json.as_bytes().to_vec();
        whole.extend([1, 2, 3, 4]);
        assert!(read_one(&whole, Some(json.len())).is_ok());
        // A sequence of its own, so that a failure comes again.
        let mut state = 0x9E37_79B9_u64;
        let mut next = |below: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            usize::try_from(state % below as u64).unwrap()
        };
        for _ in 0..20_000 {
            let mut body = whole.clone();
            for _ in 0..=next(4) {
                let at = next(body.len());
                match next(4) {
                    0 => body[at] = b"{}[]\",:0-9e."[next(12)],
                    1 => body[at] = u8::try_from(next(256)).unwrap(),
                    2 => drop(body.remove(at)),
                    _ => body.insert(at, b"09[{\"-"[next(6)]),
                }
            }
            let header = json.len() + next(9) - 4;
            if let Ok(request) = read_one(&body, Some(header)) {
                for input in &request.inputs {
                    let length = input.data_type.byte_length(&input.shape);
                    assert_eq!(length, Some(bytes(&input.data).len()));
                }
            }
        }
    }

    #[test]
    fn bytes_alone_are_the_one_input() {
        let meta = |shape: &[Option<usize>]| TensorMeta {
            name: "x".into(),
            data_type: DataType::Float32,
            shape: shape.to_vec(),
            format: String::new(),
            label_file: String::new(),
            labels: Vec::new(),
        };
        let read = |shape: &[Option<usize>], is_batched, bytes: usize| {
            let data = Data::Bytes(vec![0; bytes].into());
            read_raw("m", None, &[meta(shape)], is_batched, data)
                .map(|request| request.inputs[0].shape.clone())
        };
        assert_eq!(read(&[None, Some(4)], true, 16).unwrap(), [1, 4]);
        assert_eq!(read(&[None, Some(4)], false, 48).unwrap(), [3, 4]);
        assert_eq!(read(&[Some(2), Some(2)], false, 16).unwrap(), [2, 2]);
        assert!(read(&[Some(2), Some(2)], false, 15).is_err());
        assert!(read(&[None, None], false, 16).is_err());
        assert!(read(&[None, Some(4)], false, 50).is_err());
        assert!(read(&[None, Some(0)], false, 50).is_err());
    }
}
