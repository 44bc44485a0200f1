//! MATRIX_DIAG, MATRIX_SET_DIAG: matrices with a given diagonal.
//!
//! | operation | operand | name | shape | types |
//! |---|---|---|---|---|
//! | MATRIX_DIAG | input 0 | diagonal | `[..., n]` | any |
//! | | output 0 | output | `[..., n, n]`, 0 elsewhere | as the diagonal |
//! | MATRIX_SET_DIAG | input 0 | input | `[..., rows, columns]` | any |
//! | | input 1 | diagonal | `[..., min(rows, columns)]` | as the input |
//! | | output 0 | output | as the input | as the input |
//!
//! Quantized zeros are stored as 0.

use crate::call::{Call, Output};
use crate::error::Fault;
use crate::extension::ExtensionOperation as E;
use crate::extension::element_size;
use crate::operation::Operation;
use crate::rules::movement::Elements;
use crate::shape::Shape;

/// MATRIX_DIAG or MATRIX_SET_DIAG.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MatrixDiagonal {
    /// MATRIX_DIAG
    New,
    /// MATRIX_SET_DIAG
    Set,
}

impl Operation for MatrixDiagonal {
    fn validate(call: &Call<'_>) -> Result<(), Fault> {
        let least = if call.inputs().len() > 1 { 2 } else { 1 };
        call.input(0).expect_rank_in(least..=usize::MAX)
    }

    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        Ok(if E::of(call.operation()) == Some(E::MatrixSetDiag) { Self::Set } else { Self::New })
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        let input = call.input(0);
        let Some(lengths) = input.shape.lengths() else { return Ok(vec![Shape::UNKNOWN]) };
        if *self == Self::New {
            let mut lengths = lengths.to_vec();
            lengths.extend(lengths.last().copied());
            return Ok(vec![Shape::new(lengths)]);
        }
        if let [outer @ .., rows, columns] = lengths {
            let length = rows.zip(*columns).map(|(rows, columns)| rows.min(columns));
            let expected = Shape::new([outer, &[length]].concat());
            let diagonal = call.input(1);
            if diagonal.shape.merge(&expected).is_none() {
                return Err(diagonal.wrong("shape", &diagonal.shape, expected));
            }
        }
        Ok(vec![input.shape.clone()])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let output = call.output(0);
        let dimensions = self.output_dimensions(call)?;
        let zero = vec![0; element_size(output.operand_type).unwrap_or(1) as usize];
        let (matrix, diagonal) = match self {
            Self::New => (None, call.input(0).bytes()?),
            Self::Set => (Some(call.input(0).bytes()?), call.input(1).bytes()?),
        };
        let mut elements = Elements::to(output, &dimensions)?;
        if let [outer @ .., rows, columns] = &dimensions[..]
            && !dimensions.contains(&0)
        {
            let (rows, columns) = (*rows as usize, *columns as usize);
            let matrices: usize = outer.iter().map(|length| *length as usize).product();
            for row in 0..matrices * rows {
                let (which, at) = (row / rows, row % rows);
                for column in 0..columns {
                    if column == at {
                        elements.append(diagonal, which * rows.min(columns) + at)?;
                    } else if let Some(matrix) = matrix {
                        elements.append(matrix, row * columns + column)?;
                    } else {
                        elements.append(&zero, 0)?;
                    }
                }
            }
        }
        Ok(vec![elements.finish(dimensions)])
    }
}
