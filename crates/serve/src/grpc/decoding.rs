//! [`Decoding`]: what a message takes when it is decoded, known while its bytes come. The library that decodes messages makes a
//! structure of every part of them, and two bytes can be one of a hundred.

use crate::error::{Error, Result};
use crate::parameters::check_count;
use crate::proto::{self, model_infer_request as of_infer};
use crate::request::{MOST_AXES, MOST_PARAMETERS, MOST_TENSORS};
use bytes::Bytes;

/// A list has room for up to twice its elements.
const ROOM: usize = 2;
/// The same of a map, with what it notes of each element.
const ROOM_OF_MAP: usize = 4;
/// Bytes that memory of its own takes beside what is in it.
const ALLOCATION: usize = 32;
/// Bits of a byte of a number, and the bit that says that another byte follows.
const BITS: u32 = 7;
const MORE: u8 = 0x80;

/// A message of the protocol: those of its fields whose values take memory. Others are numbers, or are passed over.
#[derive(Debug)]
struct Shape {
    fields: &'static [Field],
}

#[derive(Debug, Clone, Copy)]
struct Field {
    number: u64,
    /// What several of them are called.
    name: &'static str,
    kind: Kind,
    /// How many there may be.
    most: usize,
    /// Bytes of each beside its own, or of each element in it.
    size: usize,
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    /// A text, or bytes that are copied.
    Copied,
    /// Bytes that stay where they are.
    Shared,
    /// Numbers, each of a varying number of bytes.
    Numbers,
    /// Numbers that have as many bytes as in memory.
    Fixed,
    Message(&'static Shape),
}

const ANY: usize = usize::MAX;

const fn text(number: u64) -> Field {
    Field { number, name: "texts", kind: Kind::Copied, most: ANY, size: ALLOCATION }
}

/// Elements in a list of numbers, of which the bytes of an input are made too.
const fn numbers<T>(number: u64, name: &'static str, most: usize) -> Field {
    Field { number, name, kind: Kind::Numbers, most, size: (ROOM + 1) * size_of::<T>() }
}

const fn fixed(number: u64) -> Field {
    Field { number, name: "numbers", kind: Kind::Fixed, most: ANY, size: ROOM + 1 }
}

const fn messages<T>(number: u64, name: &'static str, most: usize, shape: &'static Shape) -> Field {
    Field { number, name, kind: Kind::Message(shape), most, size: ROOM * size_of::<T>() }
}

const fn parameters<T>(number: u64, shape: &'static Shape) -> Field {
    let size = ROOM_OF_MAP * size_of::<(String, T)>();
    let kind = Kind::Message(shape);
    Field { number, name: "parameters", kind, most: MOST_PARAMETERS, size }
}

/// The one `ModelInferRequest` of a call, or each of a stream.
static INFER: Shape = Shape {
    fields: &[
        text(1),
        text(2),
        text(3),
        parameters::<proto::InferParameter>(4, &PARAMETER),
        messages::<of_infer::InferInputTensor>(5, "inputs", MOST_TENSORS, &INPUT),
        messages::<of_infer::InferRequestedOutputTensor>(6, "outputs", MOST_TENSORS, &OUTPUT),
        Field {
            number: 7,
            name: "raw contents",
            kind: Kind::Shared,
            most: MOST_TENSORS,
            size: ROOM * size_of::<Bytes>(),
        },
    ],
};

static INPUT: Shape = Shape {
    fields: &[
        text(1),
        text(2),
        numbers::<i64>(3, "axes", MOST_AXES),
        parameters::<proto::InferParameter>(4, &PARAMETER),
        // What an input has room for.
        Field { number: 5, name: "contents", kind: Kind::Message(&CONTENTS), most: ANY, size: 0 },
    ],
};

static OUTPUT: Shape =
    Shape { fields: &[text(1), parameters::<proto::InferParameter>(2, &PARAMETER)] };

static CONTENTS: Shape = Shape {
    fields: &[
        numbers::<bool>(1, "numbers", ANY),
        numbers::<i32>(2, "numbers", ANY),
        numbers::<i64>(3, "numbers", ANY),
        numbers::<u32>(4, "numbers", ANY),
        numbers::<u64>(5, "numbers", ANY),
        fixed(6),
        fixed(7),
        Field {
            number: 8,
            name: "texts",
            kind: Kind::Copied,
            most: ANY,
            size: ROOM * size_of::<Vec<u8>>() + ALLOCATION,
        },
    ],
};

/// An entry of a map: a name, and a message that has one text at most.
static PARAMETER: Shape = Shape {
    fields: &[
        text(1),
        Field { number: 2, name: "values", kind: Kind::Message(&VALUE), most: ANY, size: 0 },
    ],
};

static VALUE: Shape = Shape { fields: &[text(3), text(4)] };

static LOAD: Shape = Shape {
    fields: &[text(1), text(2), parameters::<proto::ModelRepositoryParameter>(3, &PARAMETER)],
};

static SETTINGS: Shape = Shape {
    fields: &[parameters::<proto::trace_setting_request::SettingValue>(1, &SETTING), text(2)],
};

/// An entry of a map: a name, and a message of texts.
static SETTING: Shape = Shape {
    fields: &[
        text(1),
        Field { number: 2, name: "values", kind: Kind::Message(&TEXTS), most: ANY, size: 0 },
    ],
};

static TEXTS: Shape = Shape {
    fields: &[
        Field {
            number: 1,
            name: "texts",
            kind: Kind::Copied,
            most: MOST_PARAMETERS,
            size: ROOM * size_of::<String>() + ALLOCATION,
        },
        text(2),
        text(3),
    ],
};

/// Of all others: a few texts, and numbers.
static FEW: Shape =
    Shape { fields: &[text(1), text(2), text(3), text(4), text(5), text(6), text(7)] };

/// The messages of a method.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Messages(&'static Shape);

impl Messages {
    /// Those of the method of this path.
    pub(crate) fn of(path: &str) -> Self {
        Self(match path.rsplit('/').next() {
            Some("ModelInfer" | "ModelStreamInfer") => &INFER,
            Some("RepositoryModelLoad" | "RepositoryModelUnload") => &LOAD,
            Some("TraceSetting" | "LogSettings") => &SETTINGS,
            _ => &FEW,
        })
    }
}

/// Reads a message, of which only its parts and their lengths count.
#[derive(Debug)]
pub(crate) struct Decoding {
    /// The message, and those in it that have begun and not ended.
    levels: Vec<Level>,
    /// Bytes that were read.
    at: usize,
    next: Next,
    /// The part of a number that was read, and its bits.
    number: u64,
    bits: u32,
}

#[derive(Debug)]
struct Level {
    shape: &'static Shape,
    end: usize,
    /// How many there are of each of the shape's fields.
    counts: [usize; MOST_FIELDS],
}

/// Fields of a shape.
const MOST_FIELDS: usize = 8;
/// Messages in each other: a value of a parameter of an input of a request.
const DEEPEST: usize = 4;

/// What comes next. Fields are positions in their shape; `None`: one whose value takes no memory.
#[derive(Debug, Clone, Copy)]
enum Next {
    /// A number that says which field follows, and how its value is written.
    Key,
    /// The number of bytes of a value.
    Length(Option<usize>),
    /// A number that is a value.
    Value(Option<usize>),
    /// Bytes up to there that need not be looked at.
    Skip { end: usize },
    /// Numbers up to there.
    Numbers { end: usize, field: usize },
}

fn malformed(why: &str) -> Error {
    Error::invalid(format!("the request is no valid message of this protocol: {why}"))
}

impl Decoding {
    /// A message of this many bytes.
    pub(crate) fn new(messages: Messages, length: usize) -> Self {
        let whole = Level { shape: messages.0, end: length, counts: [0; MOST_FIELDS] };
        let mut levels = Vec::with_capacity(DEEPEST);
        levels.push(whole);
        Self { levels, at: 0, next: Next::Key, number: 0, bits: 0 }
    }

    /// Reads on. Gives how many bytes what was read takes when it is decoded, beside its own.
    ///
    /// # Errors
    /// [`Error::Invalid`]: there is more of something than there may be, or this is no message.
    pub(crate) fn receive(&mut self, mut bytes: &[u8]) -> Result<usize> {
        let mut taken = 0_usize;
        while !bytes.is_empty() {
            let count = match self.next {
                Next::Skip { end } | Next::Numbers { end, .. } => bytes.len().min(end - self.at),
                _ => 1,
            };
            let (part, rest) = bytes.split_at(count);
            self.at += count;
            let more = match self.next {
                Next::Skip { .. } => 0,
                Next::Numbers { field, .. } => {
                    // Each ends with the byte that no other follows.
                    self.elements(field, part.iter().filter(|byte| **byte < MORE).count())?
                }
                _ => self.digit(part[0])?,
            };
            taken = taken.saturating_add(more);
            self.end_parts();
            bytes = rest;
        }
        Ok(taken)
    }

    fn level(&mut self) -> Result<&mut Level> {
        self.levels.last_mut().ok_or_else(|| malformed("it has ended"))
    }

    /// The next byte of a number.
    fn digit(&mut self, byte: u8) -> Result<usize> {
        if self.at > self.level()?.end {
            return Err(malformed("a part of it ends within a number"));
        }
        let is_last = self.bits + BITS > u64::BITS;
        if is_last && byte > 1 {
            return Err(malformed("a number has more than 64 bits"));
        }
        self.number |= u64::from(byte & !MORE) << self.bits;
        if byte >= MORE {
            self.bits += BITS;
            return Ok(0);
        }
        self.bits = 0;
        let number = std::mem::take(&mut self.number);
        match self.next {
            Next::Length(field) => self.begin(field, number),
            Next::Value(field) => {
                self.next = Next::Key;
                field.map_or(Ok(0), |field| self.elements(field, 1))
            }
            _ => self.field(number),
        }
    }

    /// A field begins.
    fn field(&mut self, key: u64) -> Result<usize> {
        let fields = self.level()?.shape.fields;
        let position = fields.iter().position(|field| field.number == key >> 3);
        let of_kind = |is_it: fn(Kind) -> bool| position.filter(|at| is_it(fields[*at].kind));
        let length = match key & 7 {
            0 => {
                self.next = Next::Value(of_kind(|kind| matches!(kind, Kind::Numbers)));
                return Ok(0);
            }
            2 => {
                self.next = Next::Length(position);
                return Ok(0);
            }
            1 => 8,
            5 => 4,
            other => return Err(malformed(&format!("a field is of wire type {other}"))),
        };
        let end = self.end_of(length)?;
        self.next = Next::Skip { end };
        let fixed = of_kind(|kind| matches!(kind, Kind::Fixed));
        Ok(fixed.map_or(0, |at| fields[at].size.saturating_mul(end - self.at)))
    }

    /// Where a part of this many bytes ends.
    fn end_of(&mut self, length: u64) -> Result<usize> {
        let at = self.at;
        let end = usize::try_from(length).ok().and_then(|length| at.checked_add(length));
        let most = self.level()?.end;
        let too_long =
            || malformed(&format!("a part of {length} bytes is longer than what it is in"));
        end.filter(|end| *end <= most).ok_or_else(too_long)
    }

    /// A value of this many bytes begins.
    fn begin(&mut self, field: Option<usize>, length: u64) -> Result<usize> {
        let end = self.end_of(length)?;
        let length = end - self.at;
        let Some(position) = field else {
            self.next = Next::Skip { end };
            return Ok(0);
        };
        let Field { kind, size, .. } = self.level()?.shape.fields[position];
        self.next = Next::Skip { end };
        match kind {
            Kind::Numbers => {
                self.next = Next::Numbers { end, field: position };
                Ok(0)
            }
            Kind::Fixed => Ok(size.saturating_mul(length)),
            Kind::Shared => self.elements(position, 1),
            Kind::Copied => Ok(self.elements(position, 1)?.saturating_add(length)),
            Kind::Message(shape) => {
                let taken = self.elements(position, 1)?;
                self.levels.push(Level { shape, end, counts: [0; MOST_FIELDS] });
                self.next = Next::Key;
                Ok(taken)
            }
        }
    }

    /// There are this many more of a field. Gives what they take.
    fn elements(&mut self, field: usize, more: usize) -> Result<usize> {
        let level = self.level()?;
        let Field { name, most, size, .. } = level.shape.fields[field];
        if let Some(count) = level.counts.get_mut(field) {
            *count = count.saturating_add(more);
            check_count(name, *count, most)?;
        }
        Ok(size.saturating_mul(more))
    }

    /// Leaves what ends here.
    fn end_parts(&mut self) {
        if let Next::Skip { end } | Next::Numbers { end, .. } = self.next
            && end == self.at
        {
            self.next = Next::Key;
        }
        while matches!(self.next, Next::Key)
            && self.bits == 0
            && self.levels.len() > 1
            && self.levels.last().is_some_and(|level| level.end == self.at)
        {
            self.levels.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prost::Message as _;
    use prost_reflect::{FieldDescriptor, Kind as WireKind, MessageDescriptor};
    use proto::infer_parameter::ParameterChoice;

    /// What a message takes, read in pieces of this length.
    fn taken(messages: Messages, bytes: &[u8], piece: usize) -> Result<usize> {
        let mut decoding = Decoding::new(messages, bytes.len());
        bytes.chunks(piece).map(|piece| decoding.receive(piece)).sum()
    }

    fn infer(bytes: &[u8]) -> Result<usize> {
        let infer = Messages::of("/inference.GRPCInferenceService/ModelInfer");
        let whole = taken(infer, bytes, bytes.len().max(1));
        for piece in [1, 2, 7] {
            assert_eq!(taken(infer, bytes, piece), whole);
        }
        whole
    }

    fn parameter(text: &str) -> proto::InferParameter {
        let parameter_choice = Some(ParameterChoice::StringParam(text.into()));
        proto::InferParameter { parameter_choice }
    }

    fn request() -> proto::ModelInferRequest {
        let contents = proto::InferTensorContents {
            int64_contents: vec![1, -1, 300],
            fp32_contents: vec![1.0; 5],
            bytes_contents: vec![b"abc".to_vec(), Vec::new()],
            ..Default::default()
        };
        let input = of_infer::InferInputTensor {
            name: "image".into(),
            datatype: "FP32".into(),
            shape: vec![1, -1, 1 << 40],
            parameters: [("p".to_owned(), parameter("text"))].into(),
            contents: Some(contents),
        };
        proto::ModelInferRequest {
            model_name: "m".into(),
            id: "i".repeat(200),
            parameters: [("q".to_owned(), parameter("")), (String::new(), parameter("x"))].into(),
            inputs: vec![input.clone(), Default::default(), input],
            outputs: vec![of_infer::InferRequestedOutputTensor::default()],
            raw_input_contents: vec![vec![0xff; 1000].into(), Bytes::new()],
            ..Default::default()
        }
    }

    #[test]
    fn what_a_message_takes_is_known_however_its_bytes_come() {
        let parameter = ROOM_OF_MAP * size_of::<(String, proto::InferParameter)>();
        let text = |length: usize| ALLOCATION + length;
        let contents = 3 * 3 * 8 + 5 * 4 * 3 + 2 * (2 * 24 + ALLOCATION) + 3;
        let own = ROOM * size_of::<of_infer::InferInputTensor>();
        let input = text(5) + text(4) + 3 * 3 * 8 + parameter + text(1) + text(4) + contents;
        // Fields that have their default are not sent; those of entries of maps are.
        let expected = text(1)
            + text(200)
            + 2 * parameter
            + text(1)
            + text(0)
            + text(0)
            + text(1)
            + 3 * own
            + 2 * input
            + ROOM * size_of::<of_infer::InferRequestedOutputTensor>()
            + 2 * ROOM * size_of::<Bytes>();
        let found = infer(&request().encode_to_vec()).unwrap();
        // The library may leave the name out of an entry, or write it.
        let names = found.abs_diff(expected);
        assert!(names <= 2 * ALLOCATION, "{found} {expected}");
        assert_eq!(infer(b"").unwrap(), 0);
    }

    #[test]
    fn sec_what_is_short_and_becomes_long_takes_what_it_becomes() {
        for (unit, least) in [
            // An input of nothing, an output, contents that are bytes, numbers in a list and one by one.
            (&b"\x2a\x00"[..], 100),
            (b"\x32\x00", 70),
            (b"\x3a\x00", 32),
            (b"\x22\x00", 50),
        ] {
            let found = infer(&unit.repeat(200)).unwrap();
            assert!(found >= 200 * least, "{unit:?}: {found}");
        }
        let within = |field: u8, bytes: &[u8]| {
            let mut all = vec![field];
            let mut length = bytes.len();
            while length > 127 {
                all.push(u8::try_from(length & 127).unwrap() | MORE);
                length >>= 7;
            }
            all.push(u8::try_from(length).unwrap());
            all.extend_from_slice(bytes);
            all
        };
        for (field, unit, least) in
            [(0x1a, &b"\x01"[..], 8), (0x12, b"\x01", 4), (0x0a, b"\x01", 1), (0x32, b"1234", 4)]
        {
            let packed = within(0x2a, &within(0x2a, &within(field, &unit.repeat(10_000))));
            let found = infer(&packed).unwrap();
            assert!(found >= 20_000 * least, "{field}: {found}");
        }
        for unit in [&b"\x18\x01"[..], b"\x35\x01\x02\x03\x04", b"\x42\x00"] {
            let found = infer(&within(0x2a, &within(0x2a, &unit.repeat(10_000)))).unwrap();
            assert!(found >= 80_000, "{unit:?}: {found}");
        }
    }

    #[test]
    fn sec_more_than_there_may_be_is_refused_before_the_rest_is_there() {
        let messages = Messages::of("ModelInfer");
        for (unit, most, words) in [
            (&b"\x2a\x00"[..], MOST_TENSORS, "1025 inputs, at most 1024"),
            (b"\x32\x00", MOST_TENSORS, "1025 outputs, at most 1024"),
            (b"\x3a\x00", MOST_TENSORS, "1025 raw contents, at most 1024"),
            (b"\x22\x00", MOST_PARAMETERS, "257 parameters, at most 256"),
        ] {
            let mut decoding = Decoding::new(messages, 1 << 20);
            decoding.receive(&unit.repeat(most)).unwrap();
            let refused = decoding.receive(unit).unwrap_err();
            assert_eq!(refused, Error::Invalid(words.into()));
        }
        // Those of an input count for themselves.
        let mut decoding = Decoding::new(messages, 1 << 20);
        for _ in 0..3 {
            decoding.receive(b"\x2a\x80\x04").unwrap();
            decoding.receive(&b"\x22\x00".repeat(256)).unwrap();
        }
        decoding.receive(b"\x2a\x80\x40\x1a\x80\x01").unwrap();
        decoding.receive(&[1; 32]).unwrap();
        let refused = decoding.receive(&[1]).unwrap_err();
        assert_eq!(refused, Error::Invalid("33 axes, at most 32".into()));
        let load = Messages::of("/inference.GRPCInferenceService/RepositoryModelLoad");
        assert!(taken(load, &b"\x1a\x00".repeat(257), 9).is_err());
        assert!(taken(load, &b"\x1a\x00".repeat(256), 9).is_ok());
    }

    #[test]
    fn sec_what_is_no_message_is_refused() {
        for bytes in [
            &b"\x2a\x05\x0a\x04abcd"[..], // a part that is longer than what it is in
            b"\x0a\x7f",
            b"\x2a\x01\x80\x00", // a part that ends within a number
            b"\x0b",             // groups, and types that there are not
            b"\x0e",
            &[0xff; 11], // more than 64 bits
            b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        ] {
            let mut whole = bytes.to_vec();
            // The message itself is longer than what is there.
            let mut decoding = Decoding::new(Messages::of("ModelInfer"), bytes.len());
            assert!(decoding.receive(bytes).is_err(), "{bytes:?}");
            whole.push(0);
            let _ = infer(&whole);
        }
    }

    #[test]
    fn sec_any_changed_message_that_is_decoded_is_read() {
        let whole = request().encode_to_vec();
        for at in 0..whole.len() {
            for value in 0..=255 {
                let mut bytes = whole.clone();
                bytes[at] = value;
                let found = taken(INFER_MESSAGES, &bytes, bytes.len());
                // What the library decodes has been read to its end, and nothing is missing of what it takes.
                if let Ok(decoded) = proto::ModelInferRequest::decode(&*bytes)
                    && let Ok(found) = found
                {
                    let inputs = decoded.inputs.len() * size_of::<of_infer::InferInputTensor>();
                    let axes = decoded.inputs.iter().map(|it| it.shape.len() * 8).sum::<usize>();
                    assert!(found >= inputs + axes, "{at} {value}");
                }
            }
        }
    }

    const INFER_MESSAGES: Messages = Messages(&INFER);

    fn check(shape: &Shape, message: &MessageDescriptor) {
        assert!(shape.fields.len() <= MOST_FIELDS);
        for field in message.fields() {
            check_field(shape, &field);
        }
    }

    fn check_field(shape: &Shape, field: &FieldDescriptor) {
        let name = field.full_name();
        let known = shape.fields.iter().find(|it| it.number == u64::from(field.number()));
        match field.kind() {
            WireKind::String | WireKind::Bytes => {
                assert!(matches!(known.unwrap().kind, Kind::Copied | Kind::Shared), "{name}");
                assert!(!field.is_list() || known.unwrap().size > ALLOCATION, "{name}");
            }
            WireKind::Message(inner) => {
                let Kind::Message(shape) = known.expect(name).kind else { panic!("{name}") };
                assert!(!field.is_map() || known.unwrap().most == MOST_PARAMETERS, "{name}");
                check(shape, &inner);
            }
            _ if !field.is_list() => {}
            WireKind::Float | WireKind::Double => {
                assert!(matches!(known.unwrap().kind, Kind::Fixed), "{name}");
            }
            _ => assert!(matches!(known.expect(name).kind, Kind::Numbers), "{name}"),
        }
    }

    #[test]
    fn all_messages_are_known() {
        let service = proto::DESCRIPTORS.get_service_by_name("inference.GRPCInferenceService");
        let service = service.unwrap();
        assert!(service.methods().len() > 15);
        for method in service.methods() {
            let path = format!("/{}/{}", service.full_name(), method.name());
            check(Messages::of(&path).0, &method.input());
        }
    }
}
