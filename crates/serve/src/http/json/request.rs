//! [`read`]: requests of JSON, with the bytes behind it; [`read_raw`]: of bytes alone.

use super::bounded::{List, Members, Name};
use super::elements::{most_bytes, read_elements};
use super::object::Object;
use crate::charge::{SharedCharge, take};
use crate::error::{Error, Result};
use crate::input_memory::InputMemory;
use crate::parameters::{MOST_NAME, Parameter, Parameters, truth, whole};
use crate::pieces::Pieces;
use crate::request::{
    Data, InferRequest, InputTensor, MOST_AXES, MOST_PARAMETERS, MOST_TENSORS, WantedOutput,
};
use crate::shared_memory::SharedMemory;
use bytes::Bytes;
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;
use std::sync::PoisonError;

#[derive(Deserialize)]
struct WireRequest<'a> {
    #[serde(default)]
    id: Option<Name>,
    #[serde(default)]
    parameters: Option<WireParameters>,
    #[serde(borrow)]
    inputs: List<Object<WireInput<'a>>, MOST_TENSORS>,
    #[serde(default, borrow)]
    outputs: Option<List<Object<WireOutput<'a>>, MOST_TENSORS>>,
}

type WireParameters = Members<WireParameter, MOST_PARAMETERS>;

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
        // No name is longer, so that one that is cut is none.
        let end = (0..=value.len().min(MOST_NAME + 4)).rev().find(|at| value.is_char_boundary(*at));
        Ok(Some(Parameter::Text(value[..end.unwrap_or(0)].to_owned())))
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
    name: Name,
    shape: List<i64, MOST_AXES>,
    datatype: Name,
    /// Those of one input are read at a time.
    #[serde(default, borrow)]
    parameters: Option<&'a RawValue>,
    #[serde(default, borrow)]
    data: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct WireOutput<'a> {
    name: Name,
    #[serde(default, borrow)]
    parameters: Option<&'a RawValue>,
}

fn parameters(wire: Option<WireParameters>) -> Parameters {
    let value = |(name, WireParameter(value))| value.map(|value| (name, value));
    wire.unwrap_or_default().0.into_iter().filter_map(value).collect()
}

/// The parameters of an input or output, which is called so.
fn parameters_of(what: &str, name: &str, wire: Option<&RawValue>) -> Result<Parameters> {
    let Some(wire) = wire else { return Ok(Parameters::new()) };
    let read = serde_json::from_str(wire.get()).map(|members| parameters(Some(members)));
    read.map_err(|error| {
        let why = without_place(&error);
        Error::invalid(format!("{what} {name:?}: its parameters: {why}"))
    })
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

/// Reads the body of a request. Also gives whether outputs that no request names are wanted as bytes. What the request takes beside
/// its body is taken of `charge`.
///
/// # Errors
/// [`Error::Invalid`], [`Error::NotFound`]: no such shared memory; [`Error::Unsupported`], [`Error::NoMemory`].
pub(crate) fn read(
    model: &str,
    version: Option<u64>,
    body: Received,
    memory: &SharedMemory,
    charge: &SharedCharge,
) -> Result<(InferRequest, bool)> {
    let Received { front: mut pieces, header, memory: rest } = body;
    let length = header.unwrap_or(pieces.len());
    let found = pieces.len();
    if length > found {
        let why = format!("Inference-Header-Content-Length is {length}, the body has {found}");
        return Err(Error::invalid(why));
    }
    let text = joined(&mut pieces, length, charge)?;
    let Object(wire): Object<WireRequest<'_>> =
        serde_json::from_slice(&text).map_err(|error| malformed(&text, &error))?;
    let of_request = parameters(wire.parameters);
    let mut request = InferRequest { model: model.to_owned(), version, ..InferRequest::default() };
    request.id = wire.id.map(|Name(id)| id).unwrap_or_default();
    request.apply(&of_request)?;
    let mut rest = Rest { pieces, memory: rest };
    for Object(input) in wire.inputs.0 {
        request.inputs.push(read_input(&input, &mut rest, memory, charge)?);
    }
    let left = rest.len();
    if left > 0 {
        return Err(Error::invalid(format!("{left} bytes follow those of the last input")));
    }
    for Object(output) in wire.outputs.unwrap_or_default().0 {
        request.outputs.push(read_output(output, memory)?);
    }
    // An output that does not say it is as the request says.
    let all_binary = truth(&of_request, "binary_data_output")?;
    for output in &mut request.outputs {
        output.binary = output.binary.or(all_binary);
    }
    Ok((request, all_binary == Some(true)))
}

/// Takes the first bytes away, in one piece.
///
/// # Errors
/// [`Error::NoMemory`]
pub(crate) fn joined(pieces: &mut Pieces, length: usize, charge: &SharedCharge) -> Result<Bytes> {
    // Until the pieces are gone, the bytes are there twice.
    let copied = if pieces.is_joined(length) { 0 } else { length };
    take(charge, copied)?;
    let text = pieces.front(length).unwrap_or_default();
    pieces.split_to(length);
    charge.lock().unwrap_or_else(PoisonError::into_inner).give_back(copied);
    Ok(text)
}

fn read_input(
    input: &WireInput<'_>,
    rest: &mut Rest,
    memory: &SharedMemory,
    charge: &SharedCharge,
) -> Result<InputTensor> {
    let WireInput { name: Name(name), shape: List(shape), datatype: Name(datatype), .. } = input;
    let parameters = parameters_of("input", name, input.parameters)?;
    let refuse = |why: String| Error::invalid(format!("input {name:?}: {why}"));
    let binary = whole(&parameters, "binary_data_size")?;
    let shared = memory.slice(&parameters)?;
    let data = match (input.data, binary, shared) {
        (Some(data), None, None) => {
            let (data_type, _, length) = InputTensor::size(name, datatype, shape)?;
            take(charge, most_bytes(data.get(), length))?;
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

fn read_output(output: WireOutput<'_>, memory: &SharedMemory) -> Result<WantedOutput> {
    let Name(name) = output.name;
    let parameters = parameters_of("output", &name, output.parameters)?;
    let classes = whole(&parameters, "classification")?.filter(|classes| *classes > 0);
    let (shared, binary) = (memory.slice(&parameters)?, truth(&parameters, "binary_data")?);
    if shared.is_some() && binary == Some(true) {
        return Err(Error::invalid(format!("output {name:?}: it is wanted in several places")));
    }
    Ok(WantedOutput {
        name,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::charge::{Charge, Receiving};
    use crate::model::TensorMeta;
    use crate::pieces::Joining;
    use nnhal::DataType;

    fn read_with(most: usize, front: Pieces, header: Option<usize>) -> Result<InferRequest> {
        let memory = SharedMemory::new(false);
        let body = Received { front, header, memory: None };
        let charge = Charge::new(Receiving::new(most)).shared();
        read("m", None, body, &memory, &charge).map(|(request, _)| request)
    }

    fn read_one(body: &[u8], header: Option<usize>) -> Result<InferRequest> {
        read_with(usize::MAX, body.to_vec().into(), header)
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
    fn sec_what_is_too_many_is_refused_before_the_rest_is_read() {
        let input = r#"{"name":"x","shape":[1],"datatype":"INT8","data":[1]}"#;
        let many = |one: &str, count: usize| vec![one; count].join(",");
        let refused = |body: String| read_one(body.as_bytes(), None).unwrap_err().to_string();
        // What follows is no JSON.
        let found = refused(format!(r#"{{"inputs":[{},?"#, many(input, 1025)));
        assert!(found.contains("more than 1024 elements"), "{found}");
        let found = refused(format!(r#"{{"outputs":[{},?"#, many(r#"{"name":""}"#, 1025)));
        assert!(found.contains("more than 1024 elements"), "{found}");
        let found = refused(format!(r#"{{"inputs":[{{"shape":[{},?"#, many("1", 33)));
        assert!(found.contains("more than 32 elements"), "{found}");
        let names: Vec<String> = (0..257).map(|at| format!(r#""{at}":1"#)).collect();
        let found = refused(format!(r#"{{"parameters":{{{},?"#, names.join(",")));
        assert!(found.contains("more than 256 members"), "{found}");
        let names = format!(r#","parameters":{{{}}}}}"#, names.join(","));
        let found = refused(format!(r#"{{"inputs":[{}]}}"#, input.replace('}', &names)));
        assert!(found.starts_with("input \"x\": its parameters: an object of more"), "{found}");
        let found = refused(format!(r#"{{"id":"{}",?"#, "x".repeat(5000)));
        assert!(found.contains("a name of 5000 bytes"), "{found}");
    }

    #[test]
    fn sec_what_a_request_takes_beside_its_body_is_taken_before() {
        let body = format!(
            r#"{{"inputs":[{{"name":"x","shape":[1000],"datatype":"INT64","data":[{}]}}]}}"#,
            vec!["1"; 1000].join(",")
        );
        let read = |most| read_with(most, body.clone().into_bytes().into(), None);
        assert_eq!(read(7999).unwrap_err(), Error::NoMemory { limit: 7999 });
        assert!(read(8000).is_ok());
        // In several pieces it is copied, and for a moment there twice.
        let pieces = || {
            let mut joining = Joining::default();
            joining.push(vec![b' '; 20_000].into());
            joining.push(body.clone().into_bytes().into());
            joining.end()
        };
        let length = 20_000 + body.len();
        assert!(matches!(read_with(length - 1, pieces(), None), Err(Error::NoMemory { .. })));
        assert!(read_with(length, pieces(), None).is_ok());
    }

    #[test]
    fn a_text_that_is_longer_than_any_name_is_passed_over() {
        let with = |name: &str| {
            let body =
                format!(r#"{{"parameters":{{"{name}":"{}"}},"inputs":[]}}"#, "ä".repeat(9000));
            read_one(body.as_bytes(), None)
        };
        assert!(with("of_mine").is_ok());
        assert!(matches!(with("sequence_id"), Err(Error::Unsupported(_))));
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
