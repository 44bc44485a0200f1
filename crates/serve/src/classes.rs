//! [`classify`]: the classes with the greatest values, as texts.

use crate::charge::SharedCharge;
use crate::charge::take;
use crate::error::Result;
use nnhal::{DataType, bf16, f16};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Bytes of texts for which memory is taken at a time.
const PORTION: usize = 64 << 10;

/// A value and the position of its class. Of equal values the first one comes first.
type Ranked = Reverse<(i128, Reverse<usize>)>;

/// The classes with the greatest values, of each row: `value:index` or `value:index:name`. What the texts take is taken of
/// `charge` while they are made.
///
/// # Errors
/// [`Error::NoMemory`](crate::Error::NoMemory)
pub(crate) fn classify(
    data_type: DataType,
    bytes: &[u8],
    rows: usize,
    classes: usize,
    labels: &[String],
    charge: &SharedCharge,
) -> Result<Vec<String>> {
    let size = data_type.size().unwrap_or(1).max(1);
    let each = (bytes.len() / size).checked_div(rows).unwrap_or(0);
    let count = classes.min(each);
    if count == 0 {
        return Ok(Vec::new());
    }
    let slots = rows.saturating_mul(count).saturating_mul(size_of::<String>());
    take(charge, slots.saturating_add(count.saturating_mul(size_of::<Ranked>())))?;
    let mut texts = Vec::with_capacity(rows * count);
    let mut length = 0;
    for row in bytes.chunks_exact(each * size).take(rows) {
        for index in best(data_type, row, size, count) {
            let value = shown(data_type, &row[index * size..][..size]);
            let text = match labels.get(index) {
                Some(label) => format!("{value}:{index}:{label}"),
                None => format!("{value}:{index}"),
            };
            length += text.capacity();
            texts.push(text);
            if length >= PORTION {
                take(charge, length)?;
                length = 0;
            }
        }
    }
    take(charge, length)?;
    Ok(texts)
}

/// Positions of the greatest values of a row, the greatest first.
fn best(
    data_type: DataType,
    row: &[u8],
    size: usize,
    count: usize,
) -> impl Iterator<Item = usize> + use<> {
    // The least of the greatest so far is on top.
    let mut heap: BinaryHeap<Ranked> = BinaryHeap::with_capacity(count);
    for (index, element) in row.chunks_exact(size).enumerate() {
        let ranked = Reverse((rank(data_type, element), Reverse(index)));
        if heap.len() < count {
            heap.push(ranked);
        } else if let Some(mut least) = heap.peek_mut()
            && ranked < *least
        {
            *least = ranked;
        }
    }
    heap.into_sorted_vec().into_iter().map(|Reverse((_, Reverse(index)))| index)
}

/// A value, if it is a whole number, or one that is real.
enum Value {
    Whole(i128),
    Real(f64),
}

fn value(data_type: DataType, bytes: &[u8]) -> Value {
    macro_rules! read {
        ($Type:ty) => {
            bytes.first_chunk().map(|it| <$Type>::from_le_bytes(*it)).unwrap_or_default()
        };
    }
    match data_type {
        DataType::Bool => Value::Whole(i128::from(read!(u8) != 0)),
        DataType::Uint8 => Value::Whole(read!(u8).into()),
        DataType::Uint16 => Value::Whole(read!(u16).into()),
        DataType::Uint32 => Value::Whole(read!(u32).into()),
        DataType::Uint64 => Value::Whole(read!(u64).into()),
        DataType::Int8 => Value::Whole(read!(i8).into()),
        DataType::Int16 => Value::Whole(read!(i16).into()),
        DataType::Int32 => Value::Whole(read!(i32).into()),
        DataType::Int64 => Value::Whole(read!(i64).into()),
        DataType::Float16 => Value::Real(read!(f16).into()),
        DataType::Bfloat16 => Value::Real(read!(bf16).into()),
        DataType::Float32 => Value::Real(read!(f32).into()),
        DataType::Float64 => Value::Real(read!(f64)),
        // The protocol has no other types.
        _ => Value::Whole(0),
    }
}

/// A number of the same order as the value among those of its type.
fn rank(data_type: DataType, bytes: &[u8]) -> i128 {
    match value(data_type, bytes) {
        Value::Whole(value) => value,
        Value::Real(value) => {
            // As `f64::total_cmp` orders them: the bits of a negative value other than its sign, the other way around.
            let bits = value.to_bits().cast_signed();
            let flipped = if bits < 0 { bits ^ i64::MAX } else { bits };
            flipped.into()
        }
    }
}

fn shown(data_type: DataType, bytes: &[u8]) -> String {
    match value(data_type, bytes) {
        Value::Whole(value) => value.to_string(),
        Value::Real(value) => format!("{value:.6}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::charge::{Charge, Receiving};

    fn charge(limit: usize) -> SharedCharge {
        Charge::new(Receiving::new(limit)).shared()
    }

    fn of_floats(values: &[f32], rows: usize, classes: usize) -> Vec<String> {
        let bytes: Vec<u8> = values.iter().flat_map(|it| it.to_le_bytes()).collect();
        let labels = ["a", "b"].map(str::to_owned);
        classify(DataType::Float32, &bytes, rows, classes, &labels, &charge(1 << 20)).unwrap()
    }

    #[test]
    fn the_greatest_values_of_each_row_come_first_and_equal_ones_in_order() {
        let values = [0.5, -1.0, 0.5, 2.0, -0.0, 0.0, -3.0, f32::NEG_INFINITY];
        assert_eq!(
            of_floats(&values, 2, 2),
            ["2.000000:3", "0.500000:0:a", "0.000000:1:b", "-0.000000:0:a"]
        );
        let all = of_floats(&values, 1, 100);
        assert_eq!(all.len(), 8);
        assert_eq!(all[1..3], ["0.500000:0:a", "0.500000:2"]);
        assert_eq!(all[6..], ["-3.000000:6", "-inf:7"]);
        assert!(of_floats(&values, 2, 0).is_empty() && of_floats(&[], 1, 3).is_empty());
    }

    #[test]
    fn whole_numbers_of_64_bits_are_compared_and_written_as_they_are() {
        let values = [i64::MAX - 1, i64::MAX, i64::MIN, 9_007_199_254_740_993];
        let bytes: Vec<u8> = values.iter().flat_map(|it| it.to_le_bytes()).collect();
        let found = classify(DataType::Int64, &bytes, 1, 3, &[], &charge(1000)).unwrap();
        assert_eq!(found, ["9223372036854775807:1", "9223372036854775806:0", "9007199254740993:3"]);
        let found = classify(DataType::Uint64, &[255; 8], 1, 1, &[], &charge(1000)).unwrap();
        assert_eq!(found, ["18446744073709551615:0"]);
    }

    #[test]
    fn sec_texts_take_no_more_memory_than_there_is() {
        let values = vec![0; 1 << 20];
        for limit in [1000, 4 << 20, 30 << 20] {
            let charge = charge(limit);
            let refused = classify(DataType::Uint8, &values, 1, usize::MAX, &[], &charge);
            assert!(matches!(refused, Err(crate::Error::NoMemory { .. })), "{limit}");
        }
    }
}
