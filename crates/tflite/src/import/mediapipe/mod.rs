//! Custom operators of MediaPipe's published models, written as the operations that there are.
//!
//! | name | versions | what it computes |
//! |---|---|---|
//! | `Landmarks2TransformMatrix` | 1, 2 | the matrix from a rectangle of pixels to the turned rectangle around some landmarks |
//! | `TransformTensorBilinear` | 2 | an image's values where a matrix leads to, by bilinear interpolation |
//! | `TransformTensor` | 1 | the same, where positions count from the centres of pixels |
//! | `TransformLandmarks` | 1, 2 | where a matrix leads landmarks to |
//! | `MaxPoolingWithArgmax2D` | 1 | MAX_POOL_2D, and which element of each window it was |
//! | `MaxUnpooling2D` | 1 | puts values back to where they were taken from |
//!
//! Matrices are `[1, 4, 4]` and move points `(x, y, 0, 1)`. Definitions: `util/tflite/operations` of MediaPipe.

mod floats;
mod pooling;
mod transform;

use super::{GraphImporter, Imported};
use crate::error::{NO_OPERATION, Reason};
use crate::file::Operator;

/// Pixels that floats count one by one.
const MOST_PIXELS: u32 = 1 << 24;

impl GraphImporter<'_, '_> {
    pub(super) fn mediapipe(&mut self, operator: &Operator<'_>, name: &str) -> Imported {
        match (name, operator.code.version) {
            ("Landmarks2TransformMatrix", 1) => self.landmarks_to_first_matrix(operator),
            ("Landmarks2TransformMatrix", 2) => self.landmarks_to_transform_matrix(operator),
            ("TransformTensorBilinear", 2) => self.transform_tensor(operator, true),
            ("TransformTensor", 1) => self.transform_tensor(operator, false),
            ("TransformLandmarks", 1 | 2) => self.transform_landmarks(operator),
            ("MaxPoolingWithArgmax2D", 1) => self.max_pooling_with_argmax(operator),
            ("MaxUnpooling2D", 1) => self.max_unpooling(operator),
            _ => Err(Reason::new(NO_OPERATION)),
        }
    }
}

/// Numbers that are smaller than [`MOST_PIXELS`].
#[allow(clippy::cast_precision_loss)]
fn small(number: u32) -> f32 {
    number as f32
}

/// Refuses shapes whose number of elements a float cannot represent exactly.
fn bounded(what: &str, shape: &[u32]) -> Imported<()> {
    let elements = shape.iter().try_fold(1_u32, |all, it| all.checked_mul(*it));
    match elements {
        Some(..=MOST_PIXELS) => Ok(()),
        _ => Err(Reason::new(format!(
            "the shape of its {what} is {shape:?}, expected at most {MOST_PIXELS} elements"
        ))),
    }
}
