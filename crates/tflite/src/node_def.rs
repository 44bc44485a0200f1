//! [`Node`]: an operation of TensorFlow and its attributes, as Flex operators carry them.
//!
//! It is a message of Protocol Buffers, of which the fields are read that importers ask for. What leads out of the bytes, or
//! is cut off, is not there; nothing is allocated but lists of numbers that are.
//!
//! Source: `node_def.proto` and `attr_value.proto` of TensorFlow; "Encoding" of Protocol Buffers.

/// Numbers of fields.
mod fields {
    pub(super) const OF_NODE_OPERATION: u64 = 2;
    pub(super) const OF_NODE_ATTRIBUTE: u64 = 5;
    pub(super) const OF_ENTRY_KEY: u64 = 1;
    pub(super) const OF_ENTRY_VALUE: u64 = 2;
    pub(super) const LIST: u64 = 1;
    pub(super) const TEXT: u64 = 2;
    pub(super) const INTEGER: u64 = 3;
    pub(super) const FLOAT: u64 = 4;
    pub(super) const TRUTH: u64 = 5;
    pub(super) const TYPE: u64 = 6;
}

/// An operation of TensorFlow.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Node<'a> {
    /// Its name without a prefix.
    pub(crate) operation: &'a str,
    bytes: &'a [u8],
}

/// A field's value.
#[derive(Debug, Clone, Copy)]
enum Field<'a> {
    /// An integer, or the bits of a number of a fixed size.
    Number(u64),
    Bytes(&'a [u8]),
}

impl<'a> Node<'a> {
    /// The message in these bytes, if it names an operation.
    pub(crate) fn read(bytes: &'a [u8]) -> Option<Self> {
        let operation = text(bytes, fields::OF_NODE_OPERATION)?;
        Some(Self { operation, bytes })
    }

    pub(crate) fn integer(&self, name: &str) -> Option<i64> {
        number(self.attribute(name)?, fields::INTEGER).map(u64::cast_signed)
    }

    pub(crate) fn float(&self, name: &str) -> Option<f32> {
        number(self.attribute(name)?, fields::FLOAT).map(float)
    }

    /// False is left out of messages.
    pub(crate) fn truth(&self, name: &str) -> bool {
        let truth = self.attribute(name).and_then(|value| number(value, fields::TRUTH));
        truth.is_some_and(|truth| truth != 0)
    }

    pub(crate) fn text(&self, name: &str) -> Option<&'a str> {
        text(self.attribute(name)?, fields::TEXT)
    }

    /// The number of a type of elements.
    pub(crate) fn element_type(&self, name: &str) -> Option<u64> {
        number(self.attribute(name)?, fields::TYPE)
    }

    pub(crate) fn integers(&self, name: &str) -> Option<Vec<i64>> {
        let list = bytes(self.attribute(name)?, fields::LIST)?;
        let mut integers = Vec::new();
        for (field, value) in Fields(list) {
            match value {
                _ if field != fields::INTEGER => {}
                Field::Number(integer) => integers.push(integer.cast_signed()),
                Field::Bytes(mut packed) => {
                    while let Some(integer) = varint(&mut packed) {
                        integers.push(integer.cast_signed());
                    }
                }
            }
        }
        Some(integers)
    }

    pub(crate) fn floats(&self, name: &str) -> Option<Vec<f32>> {
        let list = bytes(self.attribute(name)?, fields::LIST)?;
        let mut floats = Vec::new();
        for (field, value) in Fields(list) {
            match value {
                _ if field != fields::FLOAT => {}
                Field::Number(bits) => floats.push(float(bits)),
                Field::Bytes(packed) => {
                    floats.extend(packed.as_chunks().0.iter().map(|it| f32::from_le_bytes(*it)));
                }
            }
        }
        Some(floats)
    }

    /// The message of an attribute's value.
    fn attribute(&self, name: &str) -> Option<&'a [u8]> {
        let entries = Fields(self.bytes).filter_map(|(field, value)| match value {
            Field::Bytes(entry) if field == fields::OF_NODE_ATTRIBUTE => Some(entry),
            _ => None,
        });
        let mut named = entries.filter(|entry| text(entry, fields::OF_ENTRY_KEY) == Some(name));
        // A message without fields is left out.
        named.next().map(|entry| bytes(entry, fields::OF_ENTRY_VALUE).unwrap_or_default())
    }
}

#[allow(clippy::cast_possible_truncation)] // It has 32 bits.
fn float(bits: u64) -> f32 {
    f32::from_bits(bits as u32)
}

fn number(message: &[u8], wanted: u64) -> Option<u64> {
    let found = Fields(message).filter_map(|(field, value)| match value {
        Field::Number(number) if field == wanted => Some(number),
        _ => None,
    });
    found.last()
}

fn bytes(message: &[u8], wanted: u64) -> Option<&[u8]> {
    let found = Fields(message).filter_map(|(field, value)| match value {
        Field::Bytes(bytes) if field == wanted => Some(bytes),
        _ => None,
    });
    found.last()
}

fn text(message: &[u8], wanted: u64) -> Option<&str> {
    bytes(message, wanted).and_then(|bytes| str::from_utf8(bytes).ok())
}

/// The fields of a message; it ends where they make no sense.
struct Fields<'a>(&'a [u8]);

impl<'a> Iterator for Fields<'a> {
    type Item = (u64, Field<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let key = varint(&mut self.0)?;
        let mut fixed = |size: usize| {
            let (bytes, rest) = self.0.split_at_checked(size)?;
            self.0 = rest;
            let mut all = [0; 8];
            all[..size].copy_from_slice(bytes);
            Some(Field::Number(u64::from_le_bytes(all)))
        };
        let value = match key & 7 {
            0 => Field::Number(varint(&mut self.0)?),
            1 => fixed(8)?,
            5 => fixed(4)?,
            2 => {
                let length = usize::try_from(varint(&mut self.0)?).ok()?;
                let (bytes, rest) = self.0.split_at_checked(length)?;
                self.0 = rest;
                Field::Bytes(bytes)
            }
            _ => return None,
        };
        Some((key >> 3, value))
    }
}

/// An integer of 7 bits a byte, the lowest first.
fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut all = 0;
    for at in 0..10 {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        all |= u64::from(byte & 127) << (7 * at);
        if byte & 128 == 0 {
            return Some(all);
        }
    }
    None
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    fn field(number: u64, value: &[u8]) -> Vec<u8> {
        let mut all = vec![u8::try_from(number << 3 | 2).unwrap()];
        all.push(u8::try_from(value.len()).unwrap());
        all.extend(value);
        all
    }

    fn integer(number: u64, mut value: u64) -> Vec<u8> {
        let mut all = vec![u8::try_from(number << 3).unwrap()];
        while value > 127 {
            all.push(u8::try_from(value & 127).unwrap() | 128);
            value >>= 7;
        }
        all.push(u8::try_from(value).unwrap());
        all
    }

    /// The value of an attribute.
    #[derive(Debug, Clone, Copy)]
    pub(crate) enum Value<'a> {
        Integer(i64),
        Float(f32),
        Truth(bool),
        Text(&'a str),
        Type(u64),
        Integers(&'a [i64]),
        Floats(&'a [f32]),
    }

    impl Value<'_> {
        fn message(self) -> Vec<u8> {
            let float = |it: f32| [&[37][..], &it.to_le_bytes()].concat();
            match self {
                Self::Integer(it) => integer(3, it.cast_unsigned()),
                Self::Float(it) => float(it),
                Self::Truth(it) => integer(5, it.into()),
                Self::Text(it) => field(2, it.as_bytes()),
                Self::Type(it) => integer(6, it),
                Self::Integers(all) => {
                    let packed =
                        all.iter().flat_map(|it| integer(3, it.cast_unsigned()).split_off(1));
                    field(1, &field(3, &packed.collect::<Vec<u8>>()))
                }
                Self::Floats(all) => {
                    field(1, &all.iter().flat_map(|it| float(*it)).collect::<Vec<u8>>())
                }
            }
        }
    }

    /// The message of an operation.
    pub(crate) fn written(operation: &str, attributes: &[(&str, Value<'_>)]) -> Vec<u8> {
        let mut all = [field(1, b"a name"), field(2, operation.as_bytes())].concat();
        for (name, value) in attributes {
            all.extend(field(5, &[field(1, name.as_bytes()), field(2, &value.message())].concat()));
        }
        all
    }

    #[test]
    fn attributes_of_all_kinds_are_found_by_name() {
        let bytes = written(
            "Roll",
            &[
                ("i", Value::Integer(-3)),
                ("f", Value::Float(2.5)),
                ("b", Value::Truth(true)),
                ("s", Value::Text("SAME")),
                ("t", Value::Type(300)),
                ("li", Value::Integers(&[1, -1, 200])),
                ("lf", Value::Floats(&[0.5, -0.5])),
            ],
        );
        let node = Node::read(&bytes).unwrap();
        assert_eq!(node.operation, "Roll");
        assert_eq!((node.integer("i"), node.float("f")), (Some(-3), Some(2.5)));
        assert_eq!((node.truth("b"), node.text("s")), (true, Some("SAME")));
        assert_eq!(node.element_type("t"), Some(300));
        assert_eq!(node.integers("li"), Some(vec![1, -1, 200]));
        assert_eq!(node.floats("lf"), Some(vec![0.5, -0.5]));
        assert_eq!((node.integer("x"), node.integer("f"), node.truth("x")), (None, None, false));
        assert!(Node::read(b"").is_none() && Node::read(&field(1, b"a name")).is_none());
    }

    proptest! {
        #[test]
        fn changed_bytes_are_read_or_refused(
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
            length in any::<prop::sample::Index>(),
        ) {
            let values = [("i", Value::Integer(-3)), ("l", Value::Integers(&[1, -1, 200]))];
            let mut bytes = written("Roll", &values);
            for (place, byte) in changes {
                let place = place.index(bytes.len());
                bytes[place] = byte;
            }
            bytes.truncate(length.index(bytes.len()) + 1);
            if let Some(node) = Node::read(&bytes) {
                node.integer("i");
                node.integers("l");
                node.floats("l");
                node.text("i");
            }
        }
    }
}
