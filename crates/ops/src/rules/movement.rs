//! Moving elements: results that are made of an input's elements, whatever their type is.
//!
//! Everything here looks at bytes and at the size of an element, never at its value. Memory is
//! asked for by [`Argument::allocate`] alone, so a shape that is too large is refused before any
//! element is touched.

use crate::call::{Argument, Output};
use crate::error::Fault;
use crate::shape::MAX_RANK;

/// For each axis, the distance between neighbours, in elements; the last axis is most densely.
/// Meaningless, but harmless, for a tensor without elements.
pub fn strides(lengths: &[usize]) -> Vec<usize> {
    let mut strides = vec![1_usize; lengths.len()];
    for axis in (1..lengths.len()).rev() {
        strides[axis - 1] = strides[axis].saturating_mul(lengths[axis]);
    }
    strides
}

/// The elements of `source`, in their order, as a tensor of other dimensions.
///
/// # Errors
/// As [`Argument::allocate`]; `source` is too short.
pub fn copied(source: &[u8], output: &Argument<'_>, dimensions: Vec<u32>) -> Result<Output, Fault> {
    let mut copy = Copy::to(output, &dimensions)?;
    copy.append(part(source, output, 0, count(&dimensions))?)?;
    Ok(output.with_bytes(dimensions, copy.bytes))
}

/// A tensor in which each element is one of `source`: the position there is the sum of
/// `offset(axis, index)` over the axes of the result.
///
/// # Errors
/// As [`copied`].
pub fn moved(
    source: &[u8],
    output: &Argument<'_>,
    dimensions: Vec<u32>,
    offset: impl Fn(usize, usize) -> usize,
) -> Result<Output, Fault> {
    moved_or_filled(source, output, dimensions, &[], |axis, index| Some(offset(axis, index)))
}

/// As [`moved`]; where `offset` is `None` on any axis, the element is `filler`.
///
/// # Errors
/// As [`copied`].
pub fn moved_or_filled(
    source: &[u8],
    output: &Argument<'_>,
    dimensions: Vec<u32>,
    filler: &[u8],
    offset: impl Fn(usize, usize) -> Option<usize>,
) -> Result<Output, Fault> {
    let mut copy = Copy::to(output, &dimensions)?;
    if count(&dimensions) > 0 {
        let (outer, first, length) = contiguous(&dimensions, &offset, &mut copy)?;
        let mut walk = Walk { source, dimensions: outer, filler, offset, length, run: None, copy };
        walk.along(0, Some(first))?;
        walk.end_run()?;
        copy = walk.copy;
    }
    let bytes = copy.bytes;
    Ok(output.with_bytes(dimensions, bytes))
}

/// The outer axes, and of the others, along which elements follow each other in the source: the position of
/// the first element and how many there are.
fn contiguous<'a>(
    dimensions: &'a [u32],
    offset: &impl Fn(usize, usize) -> Option<usize>,
    copy: &mut Copy<'_>,
) -> Result<(&'a [u32], usize, usize), Fault> {
    let (mut outer, mut first, mut length) = (dimensions, 0_usize, 1);
    while let Some((axis, rest)) = outer.split_last() {
        let axis = *axis as usize;
        let Some(start) = offset(rest.len(), 0) else { break };
        for index in 1..axis {
            copy.count(0)?;
            if start.checked_add(index * length) != offset(rest.len(), index) {
                return Ok((outer, first, length));
            }
        }
        (outer, first, length) = (rest, first.saturating_add(start), length * axis);
    }
    Ok((outer, first, length))
}

/// Bytes that are copied in one go: far less than a millisecond.
const MOST_AT_ONCE: usize = 1 << 20;

/// The bytes of an output, part by part.
struct Copy<'a> {
    output: &'a Argument<'a>,
    bytes: Vec<u8>,
    /// Bytes, and something for each part, since the interrupt was asked last.
    work: usize,
}

impl<'a> Copy<'a> {
    fn to(output: &'a Argument<'a>, dimensions: &[u32]) -> Result<Self, Fault> {
        Ok(Self { output, bytes: room(output, dimensions)?, work: 0 })
    }

    fn append(&mut self, part: &[u8]) -> Result<(), Fault> {
        self.count(0)?;
        for piece in part.chunks(MOST_AT_ONCE) {
            self.count(piece.len())?;
            self.bytes.extend_from_slice(piece);
        }
        Ok(())
    }

    fn append_zeros(&mut self, count: usize) -> Result<(), Fault> {
        self.count(0)?;
        let end = self.bytes.len() + count;
        while self.bytes.len() < end {
            let piece = (end - self.bytes.len()).min(MOST_AT_ONCE);
            self.count(piece)?;
            self.bytes.resize(self.bytes.len() + piece, 0);
        }
        Ok(())
    }

    fn count(&mut self, bytes: usize) -> Result<(), Fault> {
        self.work += 16 + bytes;
        if self.work > MOST_AT_ONCE {
            self.work = 0;
            self.output.check_interrupt()?;
        }
        Ok(())
    }
}

/// The state of [`moved_or_filled`].
struct Walk<'a, F> {
    source: &'a [u8],
    /// Of the outer axes.
    dimensions: &'a [u32],
    filler: &'a [u8],
    offset: F,
    /// Elements at each index of the outer axes.
    length: usize,
    /// First element and number of those that are to be copied next.
    run: Option<(usize, usize)>,
    copy: Copy<'a>,
}

impl<F: Fn(usize, usize) -> Option<usize>> Walk<'_, F> {
    /// Appends all elements whose indexes on the axes before have led to `position`.
    fn along(&mut self, axis: usize, position: Option<usize>) -> Result<(), Fault> {
        let Some(length) = self.dimensions.get(axis) else {
            return self.append(position);
        };
        for index in 0..*length as usize {
            let offset =
                position.and_then(|sum| Some(sum.saturating_add((self.offset)(axis, index)?)));
            self.along(axis + 1, offset)?;
        }
        Ok(())
    }

    fn append(&mut self, position: Option<usize>) -> Result<(), Fault> {
        match (position, self.run) {
            (Some(position), Some((first, length)))
                if first.checked_add(length) == Some(position) =>
            {
                self.run = Some((first, length + self.length));
                self.copy.count(0)?;
            }
            (Some(position), _) => {
                self.end_run()?;
                self.run = Some((position, self.length));
            }
            (None, _) => {
                self.end_run()?;
                for _ in 0..self.length {
                    self.copy.append(self.filler)?;
                }
            }
        }
        Ok(())
    }

    fn end_run(&mut self) -> Result<(), Fault> {
        let Some((first, length)) = self.run.take() else { return Ok(()) };
        self.copy.append(part(self.source, self.copy.output, first, length)?)
    }
}

/// An output whose elements are copied one after the other, from wherever they are.
pub struct Elements<'a>(Copy<'a>);

impl<'a> Elements<'a> {
    /// Without any element so far.
    ///
    /// # Errors
    /// As [`Argument::allocate`].
    pub fn to(output: &'a Argument<'a>, dimensions: &[u32]) -> Result<Self, Fault> {
        Copy::to(output, dimensions).map(Self)
    }

    /// The next element: the one at this position of a tensor of the same type.
    ///
    /// # Errors
    /// There is none, or [`Fault::Interrupted`].
    pub fn append(&mut self, source: &[u8], position: usize) -> Result<(), Fault> {
        self.append_run(source, position, 1)
    }

    /// The next elements, which follow each other.
    ///
    /// # Errors
    /// There are fewer, or [`Fault::Interrupted`].
    pub fn append_run(&mut self, source: &[u8], first: usize, count: usize) -> Result<(), Fault> {
        self.0.append(part(source, self.0.output, first, count)?)
    }

    /// The output.
    ///
    /// # Panics
    /// If there are not as many elements as the dimensions say: a kernel is wrong.
    pub fn finish(self, dimensions: Vec<u32>) -> Output {
        self.0.output.with_bytes(dimensions, self.0.bytes)
    }
}

/// Tensors laid one behind the other along an axis. Each part comes with its length along the axis;
/// `dimensions` are those of the whole.
///
/// # Errors
/// As [`copied`].
pub fn joined(
    parts: &[(&[u8], usize)],
    axis: usize,
    output: &Argument<'_>,
    dimensions: Vec<u32>,
) -> Result<Output, Fault> {
    let mut copy = Copy::to(output, &dimensions)?;
    if count(&dimensions) > 0 {
        let (outer, inner) = (count(&dimensions[..axis]), count(&dimensions[axis + 1..]));
        for row in 0..outer {
            for (source, length) in parts {
                let run = length * inner;
                copy.append(part(source, output, row * run, run)?)?;
            }
        }
    }
    Ok(output.with_bytes(dimensions, copy.bytes))
}

/// Parts of length 1 along an axis of a tensor of the given lengths, laid one behind the other in any
/// order; zero bytes for `None`.
///
/// # Errors
/// As [`copied`].
pub fn picked(
    (source, lengths): (&[u8], &[usize]),
    axis: usize,
    picks: &[Option<usize>],
    output: &Argument<'_>,
    dimensions: Vec<u32>,
) -> Result<Output, Fault> {
    let mut copy = Copy::to(output, &dimensions)?;
    if count(&dimensions) > 0 {
        let outer: usize = lengths[..axis].iter().product();
        let inner: usize = lengths[axis + 1..].iter().product();
        for row in 0..outer {
            for pick in picks {
                match pick {
                    Some(index) => {
                        let first = (row * lengths[axis] + index) * inner;
                        copy.append(part(source, output, first, inner)?)?;
                    }
                    None => copy.append_zeros(inner * element_size(output))?,
                }
            }
        }
    }
    Ok(output.with_bytes(dimensions, copy.bytes))
}

/// A tensor of one element, again and again.
///
/// # Errors
/// As [`Argument::allocate`].
pub fn repeated(
    element: &[u8],
    output: &Argument<'_>,
    dimensions: Vec<u32>,
) -> Result<Output, Fault> {
    let mut bytes = room(output, &dimensions)?;
    let length = count(&dimensions) * element_size(output);
    if length > 0 {
        bytes.extend_from_slice(element);
    }
    // What is there is doubled: element by element, the largest tensors would take a minute.
    while (1..length).contains(&bytes.len()) {
        output.check_interrupt()?;
        bytes.extend_from_within(..bytes.len().min(length - bytes.len()).min(MOST_AT_ONCE));
    }
    Ok(output.with_bytes(dimensions, bytes))
}

/// The bytes of one element that stands for zero: the zero point, or plain 0.
///
/// # Errors
/// [`Fault::OutOfMemory`]
pub fn zero(argument: &Argument<'_>) -> Result<Vec<u8>, Fault> {
    if let Some(size) = crate::extension::types::type_row(argument.operand_type) {
        return Ok(vec![0; size.byte_size as usize]);
    }
    let zero = if argument.is_float() {
        argument.with_f32s(vec![1], &[0.0])?
    } else {
        argument.with_integers(vec![1], &[argument.zero_point])?
    };
    Ok(zero.bytes)
}

/// The bytes of a value that is one element of an output.
///
/// # Errors
/// [`Fault::NotKnown`], or it is not one element.
pub fn element(value: &Argument<'_>, output: &Argument<'_>) -> Result<Vec<u8>, Fault> {
    let bytes = value.bytes()?;
    let size = element_size(output);
    if bytes.len() != size {
        return Err(value.wrong("shape", &value.shape, "one element"));
    }
    Ok(bytes.to_vec())
}

fn element_size(argument: &Argument<'_>) -> usize {
    crate::extension::element_size(argument.operand_type).unwrap_or(0) as usize
}

/// Room for the bytes of an output. While a model runs, values can ask for any number of axes, so
/// the limit that models have is held here too.
fn room(output: &Argument<'_>, dimensions: &[u32]) -> Result<Vec<u8>, Fault> {
    if dimensions.len() > MAX_RANK {
        return Err(output.wrong("rank", dimensions.len(), format!("at most {MAX_RANK}")));
    }
    Ok(match element_size(output) {
        2 => output.allocate::<[u8; 2]>(dimensions)?.into_flattened(),
        4 => output.allocate::<[u8; 4]>(dimensions)?.into_flattened(),
        8 => output.allocate::<[u8; 8]>(dimensions)?.into_flattened(),
        _ => output.allocate::<u8>(dimensions)?,
    })
}

/// Number of elements, for dimensions that [`Argument::allocate`] has accepted.
fn count(dimensions: &[u32]) -> usize {
    if dimensions.contains(&0) {
        return 0;
    }
    dimensions.iter().map(|length| *length as usize).product()
}

/// This many elements from a position on.
fn part<'a>(
    source: &'a [u8],
    output: &Argument<'_>,
    first: usize,
    count: usize,
) -> Result<&'a [u8], Fault> {
    let size = element_size(output);
    let from = first.saturating_mul(size);
    let to = from.saturating_add(count.saturating_mul(size));
    // The checks before computing exclude it; a mistake in them must not reach further than this.
    source.get(from..to).ok_or_else(|| {
        output.wrong("source", format!("{} bytes", source.len()), format!("{to} bytes or more"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::{ArgumentSource, Call, Value};
    use crate::shape::Shape;
    use nnhal_hal::{OperandType, OperationType};

    /// What `make` does with an output of a type.
    fn with_output<R>(operand_type: OperandType, make: impl FnOnce(&Argument<'_>) -> R) -> R {
        let operand = nnhal_hal::Operand {
            operand_type,
            dimensions: vec![],
            number_of_consumers: 0,
            scale: 0.5,
            zero_point: 3,
            lifetime: nnhal_hal::OperandLifeTime::TemporaryVariable,
            location: nnhal_hal::DataLocation::default(),
            extra_params: nnhal_hal::ExtraParams::None,
        };
        let source =
            ArgumentSource { operand: &operand, shape: Shape::UNKNOWN, value: Value::NotKnown };
        make(Call::new(OperationType::Transpose, [], [source]).output(0))
    }

    #[test]
    fn strides_by_hand() {
        assert_eq!(strides(&[2, 3, 4]), [12, 4, 1]);
        assert_eq!(strides(&[7]), [1]);
        assert_eq!(strides(&[]), [0_usize; 0]);
        assert_eq!(strides(&[0, usize::MAX, 2]).len(), 3);
    }

    #[test]
    fn elements_of_every_size_move_whole() {
        for (operand_type, size) in [
            (OperandType::TensorBool8, 1),
            (OperandType::TensorFloat16, 2),
            (OperandType::TensorInt32, 4),
        ] {
            // Element `n` is made of bytes `n`.
            let elements = |which: &[u8]| -> Vec<u8> {
                which.iter().flat_map(|n| std::iter::repeat_n(*n, size)).collect()
            };
            let source = elements(&[0, 1, 2, 3, 4, 5]);
            with_output(operand_type, |output| {
                let transposed = moved(&source, output, vec![3, 2], |axis, i| i * [1, 3][axis]);
                assert_eq!(transposed.unwrap().bytes, elements(&[0, 3, 1, 4, 2, 5]));
                let bordered =
                    moved_or_filled(&source, output, vec![3], &elements(&[9]), |_, i| {
                        i.checked_sub(1)
                    });
                assert_eq!(bordered.unwrap().bytes, elements(&[9, 0, 1]));
                let parts = [(&source[..], 2), (&source[size..4 * size], 1)];
                let both = joined(&parts, 1, output, vec![3, 3]);
                assert_eq!(both.unwrap().bytes, elements(&[0, 1, 1, 2, 3, 2, 4, 5, 3]));
                let picks = [Some(2), None, Some(0)];
                let rows = picked((&source, &[3, 2]), 0, &picks, output, vec![3, 2]);
                assert_eq!(rows.unwrap().bytes, elements(&[4, 5, 0, 0, 0, 1]));
                let columns = picked((&source, &[2, 3]), 1, &picks[..1], output, vec![2, 1]);
                assert_eq!(columns.unwrap().bytes, elements(&[2, 5]));
                let same = repeated(&elements(&[7]), output, vec![1, 5]);
                assert_eq!(same.unwrap().bytes, elements(&[7; 5]));
                assert_eq!(copied(&source, output, vec![2]).unwrap().bytes, elements(&[0, 1]));
            });
        }
    }

    #[test]
    fn zero_is_the_zero_point() {
        let zero = |operand_type| with_output(operand_type, |it| zero(it).unwrap());
        assert_eq!(zero(OperandType::TensorFloat16), [0, 0]);
        assert_eq!(zero(OperandType::TensorQuant8Asymm), [3]);
        assert_eq!(zero(OperandType::TensorQuant8AsymmSigned), [3]);
    }

    #[test]
    fn runs_begin_and_end_where_offsets_say() {
        let source: Vec<u8> = (0..60).collect();
        with_output(OperandType::TensorBool8, |output| {
            // Of [3, 4, 5]: whole rows, parts of rows, every other row, axes exchanged, the same row again.
            let all: [(&[u32], [usize; 3], [usize; 3]); 5] = [
                (&[3, 2, 5], [0, 1, 0], [20, 5, 1]),
                (&[2, 4, 3], [1, 0, 2], [20, 5, 1]),
                (&[3, 2, 5], [0, 0, 0], [20, 10, 1]),
                (&[4, 3, 5], [0, 0, 0], [5, 20, 1]),
                (&[3, 2, 5], [0, 0, 0], [20, 0, 1]),
            ];
            for (lengths, begins, strides) in all {
                let offset = |axis: usize, index: usize| {
                    begins[axis] * [20, 5, 1][axis] + index * strides[axis]
                };
                let mut expected = Vec::new();
                for a in 0..lengths[0] as usize {
                    for b in 0..lengths[1] as usize {
                        for c in 0..lengths[2] as usize {
                            expected.push(source[offset(0, a) + offset(1, b) + offset(2, c)]);
                        }
                    }
                }
                let found = moved(&source, output, lengths.to_vec(), offset).unwrap();
                assert_eq!(found.bytes, expected, "{lengths:?} {begins:?} {strides:?}");
            }
            let bordered = |axis: usize, index: usize| match (axis, index) {
                (0, 0) => None,
                (0, index) => Some((index - 1) * 2),
                (_, index) => Some(index),
            };
            let found =
                moved_or_filled(&source, output, vec![3, 2], &[99], bordered).unwrap().bytes;
            assert_eq!(found, [99, 99, 0, 1, 2, 3]);
        });
    }

    #[test]
    fn nothing_is_touched_for_a_result_without_elements() {
        with_output(OperandType::TensorInt32, |output| {
            let never = |_, _| panic!("asked");
            assert_eq!(moved(&[], output, vec![7, 0], never).unwrap().bytes, []);
            let huge = [usize::MAX, 0, usize::MAX];
            let found = picked((&[], &huge), 1, &[], output, vec![9, 0, 9]);
            assert_eq!(found.unwrap().dimensions, [9, 0, 9]);
            assert_eq!(joined(&[(&[], 0)], 0, output, vec![0, 9]).unwrap().bytes, []);
        });
    }

    #[test]
    fn shapes_beyond_the_limits_are_refused_before_any_work() {
        with_output(OperandType::TensorInt32, |output| {
            let never = |_, _| panic!("asked");
            for dimensions in [vec![1 << 30], vec![u32::MAX; 3], vec![1; MAX_RANK + 1]] {
                assert!(moved(&[], output, dimensions.clone(), never).is_err());
                assert!(repeated(&[0; 4], output, dimensions).is_err());
            }
        });
    }

    #[test]
    fn positions_outside_the_source_are_refused() {
        with_output(OperandType::TensorInt32, |output| {
            assert_eq!(
                moved(&[0; 8], output, vec![3], |_, index| index).unwrap_err().to_string(),
                "TRANSPOSE: source of output 0 (output) is 8 bytes, expected 12 bytes or more"
            );
            assert!(moved(&[0; 8], output, vec![1], |_, _| usize::MAX).is_err());
            assert!(copied(&[0; 8], output, vec![3]).is_err());
        });
    }
}
