//! Windows that slide over height and width: padding, stride, dilation, and the length of the
//! result.

use crate::call::{Argument, Call};
use crate::error::Fault;

/// The two argument lists of an operation with windows since a version: what comes first, padding as four numbers or as a
/// scheme, and what comes behind it.
macro_rules! padded_forms {
    ($since:expr, [$($first:expr),+], [$($behind:expr),+ $(,)?]) => {{
        use $crate::signature::Form;
        &[
            Form::new(
                $since,
                &[
                    $($first,)+
                    Parameter::int32("padding left"),
                    Parameter::int32("padding right"),
                    Parameter::int32("padding top"),
                    Parameter::int32("padding bottom"),
                    $($behind),+
                ],
                &[Parameter::column("output", 0)],
            ),
            Form::new(
                $since,
                &[$($first,)+ Parameter::int32("padding scheme"), $($behind),+],
                &[Parameter::column("output", 0)],
            ),
        ]
    }};
}
pub(crate) use padded_forms;

/// How an axis is padded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Padding {
    /// This many elements before and behind.
    Explicit {
        /// Before the first element.
        before: u32,
        /// Behind the last one.
        after: u32,
    },
    /// As many as make the result `ceil(input / stride)` long; the odd one goes behind.
    Same,
    /// None.
    Valid,
}

impl Padding {
    /// Reads a padding scheme: 1 is SAME, 2 is VALID, and 0 (NONE in the interface's files) does
    /// not pad either.
    ///
    /// # Errors
    /// [`Fault::NotKnown`], or another number.
    pub fn decode_scheme(argument: &Argument<'_>) -> Result<Self, Fault> {
        match argument.i32()? {
            1 => Ok(Self::Same),
            0 | 2 => Ok(Self::Valid),
            other => Err(argument.wrong("value", other, "0 (NONE), 1 (SAME) or 2 (VALID)")),
        }
    }

    /// Reads a pair of explicit paddings.
    ///
    /// # Errors
    /// [`Fault::NotKnown`], or one is negative.
    pub fn decode_explicit(before: &Argument<'_>, after: &Argument<'_>) -> Result<Self, Fault> {
        Ok(Self::Explicit { before: before.non_negative()?, after: after.non_negative()? })
    }
}

/// A window that slides along one axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Window {
    /// How the axis is padded.
    pub padding: Padding,
    /// Elements from one place of the window to the next; above 0.
    pub stride: u32,
    /// Elements from one tap of the window to the next; above 0.
    pub dilation: u32,
}

impl Window {
    /// From the first tap to the last, for `taps` taps; 0 for none.
    pub fn extent(&self, taps: u32) -> u64 {
        match u64::from(taps).checked_sub(1) {
            Some(gaps) => gaps * u64::from(self.dilation) + 1,
            None => 0,
        }
    }

    /// Elements of padding before and behind an axis of `length` elements.
    pub fn padding(&self, length: u32, taps: u32) -> (u64, u64) {
        match self.padding {
            Padding::Explicit { before, after } => (before.into(), after.into()),
            Padding::Valid => (0, 0),
            Padding::Same => {
                let places = u64::from(length.div_ceil(self.stride));
                let covered = places.saturating_sub(1) * u64::from(self.stride) + self.extent(taps);
                let total = covered.saturating_sub(length.into());
                (total / 2, total - total / 2)
            }
        }
    }

    /// Number of places of the window: `(padded - extent) / stride + 1`. `None` where the window
    /// does not fit the padded axis, or the number exceeds 32 bits.
    pub fn places(&self, length: u32, taps: u32) -> Option<u32> {
        let (before, after) = self.padding(length, taps);
        let padded = u64::from(length) + before + after;
        let free = padded.checked_sub(self.extent(taps))?;
        u32::try_from(free / u64::from(self.stride) + 1).ok()
    }
}

/// How the elements of a result meet those of an input along one axis, through the taps of a
/// window.
pub trait Slide {
    /// The taps of the window at one place of the result, each with the element that it meets on
    /// an axis of `length` elements. Taps on the padding are left out.
    fn taps(
        &self,
        place: usize,
        length: usize,
        taps: usize,
    ) -> impl Iterator<Item = (usize, usize)> + Clone;
}

impl Slide for Window {
    fn taps(
        &self,
        place: usize,
        length: usize,
        taps: usize,
    ) -> impl Iterator<Item = (usize, usize)> + Clone {
        let (before, _) = self.padding(to_u32(length), to_u32(taps));
        let (stride, dilation) = (self.stride as usize, self.dilation as usize);
        let before = usize::try_from(before).unwrap_or(usize::MAX);
        // From the padding's beginning: where the window begins, the input, and what is behind it.
        let (window, behind) = (place * stride, before.saturating_add(length));
        let first = before.saturating_sub(window).div_ceil(dilation);
        let end = behind.saturating_sub(window).div_ceil(dilation);
        (first..end.min(taps)).map(move |tap| (tap, window + tap * dilation - before))
    }
}

/// Windows that slide over height and width.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Window2d {
    /// Along the height.
    pub height: Window,
    /// Along the width.
    pub width: Window,
}

/// Lengths come from dimensions, which have 32 bits.
fn to_u32(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

impl Window2d {
    /// Reads padding and strides as they follow each other in an argument list from `first` on,
    /// without dilation. Explicit: left, right, top, bottom, stride across the width, stride
    /// across the height. Implicit: scheme and the strides. Also gives the position behind.
    ///
    /// # Errors
    /// [`Fault::NotKnown`], a negative padding, an unknown scheme, a stride that is not above 0.
    pub fn decode(call: &Call<'_>, first: usize, explicit: bool) -> Result<(Self, usize), Fault> {
        let input = |offset| call.input(first + offset);
        let along = |padding, stride: &Argument<'_>| {
            Ok::<_, Fault>(Window { padding, stride: stride.positive()?, dilation: 1 })
        };
        if explicit {
            let width = along(Padding::decode_explicit(input(0), input(1))?, input(4))?;
            let height = along(Padding::decode_explicit(input(2), input(3))?, input(5))?;
            return Ok((Self { height, width }, first + 6));
        }
        let padding = Padding::decode_scheme(input(0))?;
        let (width, height) = (along(padding, input(1))?, along(padding, input(2))?);
        Ok((Self { height, width }, first + 3))
    }

    /// Reads the optional dilation factors, width first.
    ///
    /// # Errors
    /// [`Fault::NotKnown`], or one is not above 0.
    pub fn decode_dilation(&mut self, call: &Call<'_>, first: usize) -> Result<(), Fault> {
        if let Some(width) = call.optional(first) {
            self.width.dilation = width.positive()?;
        }
        if let Some(height) = call.optional(first + 1) {
            self.height.dilation = height.positive()?;
        }
        Ok(())
    }

    /// Height and width of the result, as far as they are known.
    ///
    /// # Errors
    /// An explicit padding is as wide as the window or wider, so that the window could be on
    /// nothing else; or the window does not fit the padded input.
    pub fn output_lengths(
        &self,
        call: &Call<'_>,
        input: [Option<u32>; 2],
        taps: [Option<u32>; 2],
    ) -> Result<[Option<u32>; 2], Fault> {
        let along = |window: &Window, length: Option<u32>, taps: Option<u32>| {
            let Some(taps) = taps else { return Ok(None) };
            let extent = window.extent(taps);
            if let Padding::Explicit { before, after } = window.padding
                && u64::from(before.max(after)) >= extent
            {
                return Err(call.wrong(
                    "padding",
                    format!("{before} and {after}"),
                    format!("less than the window, which is {extent} wide"),
                ));
            }
            let Some(length) = length else { return Ok(None) };
            let places = window.places(length, taps).ok_or_else(|| {
                call.wrong(
                    "window",
                    format!("{extent} wide"),
                    format!("at most the padded length of an axis of {length}"),
                )
            })?;
            Ok::<_, Fault>(Some(places))
        };
        Ok([along(&self.height, input[0], taps[0])?, along(&self.width, input[1], taps[1])?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(padding: Padding, stride: u32, dilation: u32) -> Window {
        Window { padding, stride, dilation }
    }

    #[test]
    fn same_keeps_the_length_divided_by_the_stride() {
        let same = window(Padding::Same, 2, 1);
        assert_eq!(same.padding(5, 3), (1, 1));
        assert_eq!(same.padding(4, 3), (0, 1));
        assert_eq!(same.places(5, 3), Some(3));
        assert_eq!(window(Padding::Same, 1, 2).places(7, 3), Some(7));
    }

    #[test]
    fn valid_counts_whole_windows() {
        assert_eq!(window(Padding::Valid, 2, 1).places(5, 3), Some(2));
        assert_eq!(window(Padding::Valid, 1, 2).places(5, 3), Some(1));
        assert_eq!(window(Padding::Valid, 1, 1).places(2, 3), None);
    }

    #[test]
    fn taps_on_the_padding_are_left_out() {
        let same = window(Padding::Same, 1, 1);
        assert_eq!(same.taps(0, 3, 3).collect::<Vec<_>>(), [(1, 0), (2, 1)]);
        assert_eq!(same.taps(2, 3, 3).collect::<Vec<_>>(), [(0, 1), (1, 2)]);
        let spread = window(Padding::Explicit { before: 3, after: 3 }, 2, 2);
        assert_eq!(spread.taps(0, 4, 4).collect::<Vec<_>>(), [(2, 1), (3, 3)]);
        assert_eq!(spread.taps(1, 4, 4).collect::<Vec<_>>(), [(1, 1), (2, 3)]);
        assert_eq!(spread.taps(0, 1, 2).count(), 0);
    }

    #[test]
    fn numbers_near_the_limit_do_not_overflow() {
        let huge = Padding::Explicit { before: u32::MAX, after: u32::MAX };
        assert_eq!(window(huge, 1, 1).places(u32::MAX, 1), None);
        assert_eq!(window(Padding::Same, u32::MAX, u32::MAX).places(5, u32::MAX), Some(1));
    }
}
