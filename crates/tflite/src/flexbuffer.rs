//! [`Map`]: the numbers in a FlexBuffer whose root is a map, as options of custom operators are; [`texts`]: the texts in one
//! whose root is a vector, as those of Flex operators are.
//!
//! Every offset, size and type is checked where it is followed; what leads out of the buffer is not there.
//! Nothing is allocated but numbers that are. Source: "FlatBuffer Internals" of the FlatBuffers project, section FlexBuffers.

/// Types of elements, by their numbers in the format.
mod types {
    pub(super) const INT: u8 = 1;
    pub(super) const UINT: u8 = 2;
    pub(super) const FLOAT: u8 = 3;
    pub(super) const TEXT: u8 = 5;
    pub(super) const INDIRECT_INT: u8 = 6;
    pub(super) const INDIRECT_UINT: u8 = 7;
    pub(super) const INDIRECT_FLOAT: u8 = 8;
    pub(super) const MAP: u8 = 9;
    pub(super) const VECTOR: u8 = 10;
    pub(super) const VECTOR_INT: u8 = 11;
    pub(super) const VECTOR_UINT: u8 = 12;
    pub(super) const VECTOR_FLOAT: u8 = 13;
    pub(super) const BYTES: u8 = 25;
    pub(super) const BOOL: u8 = 26;
}

/// The bytes of the two texts that the root is a vector of.
pub(crate) fn texts(bytes: &[u8]) -> Option<[&[u8]; 2]> {
    let [.., packed, root_width] = *bytes else { return None };
    let root_width = usize::from(root_width);
    let root = bytes.len().checked_sub(2)?.checked_sub(root_width)?;
    let (kind, width) = unpacked(packed);
    if kind != types::VECTOR || !matches!(root_width, 1 | 2 | 4 | 8) {
        return None;
    }
    let values = before(bytes, root, root_width)?;
    if size(bytes, values.checked_sub(width)?, width)? != 2 {
        return None;
    }
    let text = |index: usize| {
        let place = values.checked_add(index * width)?;
        let of_type = values.checked_add(2 * width)?.checked_add(index)?;
        let (kind, of_length) = unpacked(*bytes.get(of_type)?);
        if !matches!(kind, types::TEXT | types::BYTES) {
            return None;
        }
        let start = before(bytes, place, width)?;
        let length = size(bytes, start.checked_sub(of_length)?, of_length)?;
        bytes.get(start..start.checked_add(length)?)
    };
    Some([text(0)?, text(1)?])
}

/// A map from names to values.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Map<'a> {
    bytes: &'a [u8],
    /// Where the values begin, which are sorted by their keys.
    values: usize,
    /// Bytes of a value.
    width: usize,
    /// Where the offsets of keys begin.
    keys: usize,
    /// Bytes of an offset of a key.
    key_width: usize,
    count: usize,
}

impl<'a> Map<'a> {
    /// The root, if it is a map.
    pub(crate) fn root(bytes: &'a [u8]) -> Option<Self> {
        let [.., packed, root_width] = *bytes else { return None };
        let root_width = usize::from(root_width);
        let root = bytes.len().checked_sub(2)?.checked_sub(root_width)?;
        let (kind, width) = unpacked(packed);
        if kind != types::MAP || !matches!(root_width, 1 | 2 | 4 | 8) {
            return None;
        }
        let values = before(bytes, root, root_width)?;
        // Before the values are: the offset of the keys, the width of their offsets, and how many there are.
        let at = |places: usize| values.checked_sub(places * width);
        let count = size(bytes, at(1)?, width)?;
        let key_width = size(bytes, at(2)?, width)?;
        let keys = before(bytes, at(3)?, width)?;
        // A byte for each type stands behind the values.
        let is_plausible = matches!(key_width, 1 | 2 | 4 | 8) && count <= bytes.len();
        is_plausible.then_some(Self { bytes, values, width, keys, key_width, count })
    }

    /// The number of this name; a truth value is 0 or 1. `None` if there is none, or it is no number.
    pub(crate) fn number(&self, name: &str) -> Option<f64> {
        let (place, (kind, width)) = self.value(name)?;
        let indirect = || Some((before(self.bytes, place, self.width)?, width));
        let (kind, (place, width)) = match kind {
            types::INDIRECT_INT => (types::INT, indirect()?),
            types::INDIRECT_UINT => (types::UINT, indirect()?),
            types::INDIRECT_FLOAT => (types::FLOAT, indirect()?),
            kind => (kind, (place, self.width)),
        };
        number(self.bytes.get(place..place.checked_add(width)?)?, kind)
    }

    /// The numbers of this name, all of one type. `None` if there are none, or they are of several types.
    pub(crate) fn numbers(&self, name: &str) -> Option<Vec<f64>> {
        let (place, (kind, width)) = self.value(name)?;
        let kind = match kind {
            types::VECTOR_INT => types::INT,
            types::VECTOR_UINT => types::UINT,
            types::VECTOR_FLOAT => types::FLOAT,
            _ => return None,
        };
        let start = before(self.bytes, place, self.width)?;
        let count = size(self.bytes, start.checked_sub(width)?, width)?;
        let values = self.bytes.get(start..start.checked_add(count.checked_mul(width)?)?)?;
        values.chunks_exact(width).map(|value| number(value, kind)).collect()
    }

    /// The text of this name. `None` if there is none, or it is something else.
    pub(crate) fn text(&self, name: &str) -> Option<&'a str> {
        let (place, (kind, of_length)) = self.value(name)?;
        if kind != types::TEXT {
            return None;
        }
        let start = before(self.bytes, place, self.width)?;
        let length = size(self.bytes, start.checked_sub(of_length)?, of_length)?;
        str::from_utf8(self.bytes.get(start..start.checked_add(length)?)?).ok()
    }

    /// Where the value of this name is, its type and width.
    fn value(&self, name: &str) -> Option<(usize, (u8, usize))> {
        let index = (0..self.count).find(|index| self.key(*index) == Some(name.as_bytes()))?;
        let place = self.values.checked_add(index * self.width)?;
        let of_type = self.values.checked_add(self.count * self.width)?.checked_add(index)?;
        Some((place, unpacked(*self.bytes.get(of_type)?)))
    }

    /// The bytes of a key.
    fn key(&self, index: usize) -> Option<&'a [u8]> {
        let place = self.keys.checked_add(index * self.key_width)?;
        let rest = self.bytes.get(before(self.bytes, place, self.key_width)?..)?;
        rest.iter().position(|byte| *byte == 0).map(|end| &rest[..end])
    }
}

/// The type, and how many bytes what it refers to has.
fn unpacked(packed: u8) -> (u8, usize) {
    (packed >> 2, 1 << (packed & 3))
}

/// Where an offset leads to, which counts backwards from itself.
fn before(bytes: &[u8], place: usize, width: usize) -> Option<usize> {
    place.checked_sub(size(bytes, place, width)?)
}

/// An unsigned number.
fn size(bytes: &[u8], place: usize, width: usize) -> Option<usize> {
    unsigned(bytes.get(place..place.checked_add(width)?)?).and_then(|it| it.try_into().ok())
}

fn unsigned(bytes: &[u8]) -> Option<u64> {
    let mut all = [0; 8];
    all.get_mut(..bytes.len())?.copy_from_slice(bytes);
    Some(u64::from_le_bytes(all))
}

/// A number of 1, 2, 4 or 8 bytes.
#[allow(clippy::cast_precision_loss)] // Options are small.
fn number(bytes: &[u8], kind: u8) -> Option<f64> {
    let raw = unsigned(bytes)?;
    let bits = u32::try_from(8 * bytes.len()).ok()?;
    match (kind, bits) {
        (types::UINT, _) => Some(raw as f64),
        (types::BOOL, _) => Some(f64::from(u8::from(raw != 0))),
        (types::INT, 1..=64) => Some((raw.cast_signed() << (64 - bits) >> (64 - bits)) as f64),
        (types::FLOAT, 16) => Some(half::f16::from_le_bytes(bytes.try_into().ok()?).to_f64()),
        (types::FLOAT, 32) => Some(f32::from_le_bytes(bytes.try_into().ok()?).into()),
        (types::FLOAT, 64) => Some(f64::from_bits(raw)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// `{"a": -3, "b": 2.5, "c": true, "d": 70000}` with values of 4 bytes and offsets of keys of 1.
    fn example() -> Vec<u8> {
        let mut bytes = b"a\0b\0c\0d\0".to_vec();
        bytes.push(4);
        // Each key's offset counts from its own place.
        bytes.extend((0..4_u8).map(|index| 9 + index - 2 * index));
        let keys = bytes.len() - 4;
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        let to_keys = u32::try_from(bytes.len() - keys).unwrap();
        for word in [to_keys, 1, 4] {
            bytes.extend(word.to_le_bytes());
        }
        let values = bytes.len();
        bytes.extend((-3_i32).to_le_bytes());
        bytes.extend(2.5_f32.to_le_bytes());
        bytes.extend(1_u32.to_le_bytes());
        bytes.extend(70_000_u32.to_le_bytes());
        bytes.extend([types::INT, types::FLOAT, types::BOOL, types::UINT].map(|it| it << 2));
        bytes.push(u8::try_from(bytes.len() - values).unwrap());
        bytes.extend([types::MAP << 2 | 2, 1]);
        bytes
    }

    #[test]
    fn numbers_of_all_kinds_are_found_by_name() {
        let bytes = example();
        let map = Map::root(&bytes).unwrap();
        let found = ["a", "b", "c", "d", "e", ""].map(|name| map.number(name));
        assert_eq!(found, [Some(-3.0), Some(2.5), Some(1.0), Some(70_000.0), None, None]);
    }

    /// `["ab", "cde"]`, everything a byte wide.
    const TEXTS: [u8; 17] =
        [2, b'a', b'b', 0, 3, b'c', b'd', b'e', 0, 2, 9, 6, 20, 20, 4, types::VECTOR << 2, 1];

    #[test]
    fn two_texts_are_found_in_a_vector() {
        assert_eq!(texts(&TEXTS), Some([&b"ab"[..], b"cde"]));
        for (place, byte) in [(9, 3), (10, 60), (12, 4), (15, 0), (16, 3), (4, 200)] {
            let mut bytes = TEXTS;
            bytes[place] = byte;
            assert_eq!(texts(&bytes), None, "{place}");
        }
        assert_eq!(texts(&[]), None);
    }

    #[test]
    fn what_is_no_map_is_none() {
        for bytes in [&[][..], &[1], &[4, 1], &[1, types::INT << 2, 1], &[0, types::MAP << 2, 1]] {
            assert!(Map::root(bytes).is_none(), "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn changed_bytes_are_read_or_refused(
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
            length in 0_usize..60,
        ) {
            let mut bytes = example();
            for (place, byte) in changes {
                let place = place.index(bytes.len());
                bytes[place] = byte;
            }
            bytes.truncate(bytes.len().min(length + 20));
            if let Some(map) = Map::root(&bytes) {
                for name in ["a", "d", "x"] {
                    map.number(name);
                }
            }
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
            texts(&bytes);
            if let Some(map) = Map::root(&bytes) {
                map.number("a");
            }
        }
    }
}
