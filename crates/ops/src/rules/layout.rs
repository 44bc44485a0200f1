//! Layouts of image tensors: where height, width and channels are.

use crate::call::{Argument, Call};
use crate::error::Fault;

/// The order of axes of an image tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Layout {
    /// `[batch, height, width, channels]`
    #[default]
    Nhwc,
    /// `[batch, channels, height, width]`
    Nchw,
}

impl Layout {
    /// The layout that an operation's flag asks for.
    pub fn from_flag(is_nchw: bool) -> Self {
        if is_nchw { Self::Nchw } else { Self::Nhwc }
    }

    /// The axis of the channels.
    pub fn channel_axis(self) -> usize {
        match self {
            Self::Nhwc => 3,
            Self::Nchw => 1,
        }
    }

    /// The lengths of a tensor in this layout, in the order batch, height, width, channels.
    pub fn to_nhwc<T: Copy>(self, [a, b, c, d]: [T; 4]) -> [T; 4] {
        match self {
            Self::Nhwc => [a, b, c, d],
            Self::Nchw => [a, c, d, b],
        }
    }

    /// Lengths given in the order batch, height, width, channels, as this layout orders them.
    pub fn from_nhwc<T: Copy>(self, [batch, height, width, channels]: [T; 4]) -> [T; 4] {
        match self {
            Self::Nhwc => [batch, height, width, channels],
            Self::Nchw => [batch, channels, height, width],
        }
    }

    /// The lengths of an image tensor that is an input, in the order batch, height, width,
    /// channels, as far as they are known.
    ///
    /// # Errors
    /// The rank is not 4, or another length than the batch's is 0.
    pub fn image_lengths(self, image: &Argument<'_>) -> Result<[Option<u32>; 4], Fault> {
        let lengths = self.to_nhwc(image.known_lengths_of()?);
        if lengths[1..].contains(&Some(0)) {
            return Err(image.wrong("shape", &image.shape, "no length of 0 but the batch's"));
        }
        Ok(lengths)
    }

    /// Elements of a tensor in this layout, brought into NHWC order. `lengths` are in the order
    /// batch, height, width, channels.
    pub fn elements_to_nhwc<T: Copy>(
        self,
        call: &Call<'_>,
        elements: Vec<T>,
        lengths: [usize; 4],
    ) -> Result<Vec<T>, Fault> {
        let [batch, height, width, channels] = lengths;
        match self {
            Self::Nhwc => Ok(elements),
            Self::Nchw => exchange(call, &elements, [batch, channels, height * width]),
        }
    }

    /// Elements in NHWC order, brought into this layout. `lengths` as above.
    pub fn elements_from_nhwc<T: Copy>(
        self,
        call: &Call<'_>,
        elements: Vec<T>,
        lengths: [usize; 4],
    ) -> Result<Vec<T>, Fault> {
        let [batch, height, width, channels] = lengths;
        match self {
            Self::Nhwc => Ok(elements),
            Self::Nchw => exchange(call, &elements, [batch, height * width, channels]),
        }
    }
}

/// Each of `batch` matrices of `rows` by `columns`, transposed.
fn exchange<T: Copy>(
    call: &Call<'_>,
    elements: &[T],
    [batch, rows, columns]: [usize; 3],
) -> Result<Vec<T>, Fault> {
    if elements.is_empty() {
        return Ok(Vec::new());
    }
    let places = (0..batch).flat_map(|matrix| {
        let first = matrix * rows * columns;
        (0..columns)
            .flat_map(move |column| (0..rows).map(move |row| first + row * columns + column))
    });
    call.collect(elements.len(), places.map(|at| elements[at]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nnhal_hal::OperationType;

    #[test]
    fn there_and_back() {
        let lengths = [2, 1, 2, 3];
        let nhwc: Vec<u32> = (0..12).collect();
        let call = &Call::new(OperationType::Relu, [], []);
        let nchw = Layout::Nchw.elements_from_nhwc(call, nhwc.clone(), lengths).unwrap();
        assert_eq!(nchw[..6], [0, 3, 1, 4, 2, 5]);
        assert_eq!(Layout::Nchw.elements_to_nhwc(call, nchw, lengths), Ok(nhwc));
        assert_eq!(Layout::Nchw.to_nhwc(Layout::Nchw.from_nhwc(lengths)), lengths);
    }

    #[test]
    fn no_elements_take_no_time() {
        let longest = u32::MAX as usize;
        for lengths in [[1, longest, longest, 0], [longest, 0, longest, longest]] {
            let call = &Call::new(OperationType::Relu, [], []);
            let none = || Vec::<u8>::new();
            assert_eq!(Layout::Nchw.elements_to_nhwc(call, none(), lengths), Ok(none()));
            assert_eq!(Layout::Nchw.elements_from_nhwc(call, none(), lengths), Ok(none()));
        }
    }
}
