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

use super::array::common_shape;
use super::builder::Builder;
use super::{GraphImporter, Imported};
use crate::error::{NO_OPERATION, Reason};
use crate::file::Operator;
use crate::flexbuffer::Map;
use nnhal_hal::{OperandId, OperandSpec, OperationType as O};
use nnhal_ops::extension::ExtensionOperation as E;

/// Elements of a window that is pooled. Each becomes some operations.
const MOST_TAPS: u32 = 64;

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

    /// Input: landmarks `[1, count, 3]`. The rectangle is as wide and high as the landmarks of its
    /// option `subset_idxs` once they are turned so that the line between two others has the wanted angle.
    fn landmarks_to_transform_matrix(&mut self, operator: &Operator<'_>) -> Imported {
        let options = options(operator)?;
        let landmarks = self.input_tensor(operator, 0)?;
        let [1, count, 3] = *self.shape(landmarks)? else {
            return Err(Reason::new(format!(
                "its landmarks are {:?}, expected [1, count, 3]",
                self.shape(landmarks)?
            )));
        };
        let positive = |name: &str| {
            let found = number(&options, name)?;
            let is_positive = found > 0.0 && found.is_finite();
            let wrong = || Reason::new(format!("its option {name:?} is {found}, expected above 0"));
            is_positive.then_some(found).ok_or_else(wrong)
        };
        let index = |name: &str, found: f64| landmark(name, found, count);
        let indexes = options.numbers("subset_idxs").ok_or_else(|| missing("subset_idxs"))?;
        let indexes = indexes.into_iter().map(|found| index("subset_idxs", found));
        let indexes = indexes.collect::<Imported<Vec<i32>>>()?;
        if indexes.is_empty() {
            return Err(Reason::new("its option \"subset_idxs\" names no landmark"));
        }
        let ends = ["left_rotation_idx", "right_rotation_idx"]
            .map(|name| number(&options, name).and_then(|found| index(name, found)));
        let [left, right] = ends;
        let (left, right) = (left?, right?);
        let target = number(&options, "target_rotation_radians")?;
        let (width, height) = (positive("output_width")?, positive("output_height")?);
        let (scale_x, scale_y) = (positive("scale_x")?, positive("scale_y")?);
        let output = self.output_tensor(operator, 0)?;

        let landmarks = self.as_float32(landmarks)?;
        let mut floats = Floats::new(&mut self.builder);
        let landmarks = floats.reshaped(landmarks, &[count, 3])?;
        let columns = |floats: &mut Floats<'_>, of: &[i32]| {
            let rows = floats.gathered(landmarks, of);
            [0, 1].map(|column| floats.part(rows, &[0, column], &[length(of), 1]))
        };
        let [left_x, left_y] = columns(&mut floats, &[left]);
        let [right_x, right_y] = columns(&mut floats, &[right]);
        let [x, y] = columns(&mut floats, &indexes);
        let (across, down) =
            (floats.binary(O::Sub, right_x, left_x)?, floats.binary(O::Sub, right_y, left_y)?);
        let angle = floats.angle(down, across);
        let target = floats.number(target);
        let rotation = floats.binary(O::Sub, target, angle)?;
        let (cos, sin) =
            (floats.unary(E::Cos.operation_type(), rotation), floats.unary(O::Sin, rotation));
        let x_cos = floats.binary(O::Mul, x, cos)?;
        let x_sin = floats.binary(O::Mul, x, sin)?;
        let y_cos = floats.binary(O::Mul, y, cos)?;
        let y_sin = floats.binary(O::Mul, y, sin)?;
        let turned = [floats.binary(O::Sub, x_cos, y_sin)?, floats.binary(O::Add, x_sin, y_cos)?];
        let mut sizes = Vec::new();
        let mut centres = Vec::new();
        for along in turned {
            let (least, greatest) =
                (floats.reduced(O::ReduceMin, along), floats.reduced(O::ReduceMax, along));
            sizes.push(floats.binary(O::Sub, greatest, least)?);
            let sum = floats.binary(O::Add, least, greatest)?;
            centres.push(floats.scaled(sum, 0.5)?);
        }
        // Turned back.
        let (cx, cy) = (centres[0], centres[1]);
        let cx_cos = floats.binary(O::Mul, cx, cos)?;
        let cx_sin = floats.binary(O::Mul, cx, sin)?;
        let cy_cos = floats.binary(O::Mul, cy, cos)?;
        let cy_sin = floats.binary(O::Mul, cy, sin)?;
        let centre =
            [floats.binary(O::Add, cx_cos, cy_sin)?, floats.binary(O::Sub, cy_cos, cx_sin)?];
        let scale_x = floats.scaled(sizes[0], scale_x / width)?;
        let scale_y = floats.scaled(sizes[1], scale_y / height)?;
        let minus_sin = floats.scaled(sin, -1.0)?;
        let rows = [[cos, sin], [minus_sin, cos]];
        let mut elements = Vec::new();
        for ([of_x, of_y], centre) in rows.into_iter().zip(centre) {
            let (a, b) =
                (floats.binary(O::Mul, of_x, scale_x)?, floats.binary(O::Mul, of_y, scale_y)?);
            // The rectangle's middle goes to the centre.
            let (half_a, half_b) =
                (floats.scaled(a, -0.5 * width)?, floats.scaled(b, -0.5 * height)?);
            let moved = floats.binary(O::Add, centre, half_a)?;
            let moved = floats.binary(O::Add, moved, half_b)?;
            elements.extend([a, b, floats.number(0.0), moved]);
        }
        elements.push(floats.constant(&[1, 8], &[0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0]));
        let all = floats.joined(&elements, 1, &[1, 16]);
        let matrix = floats.reshaped(all, &[1, 4, 4])?;
        self.emit_float32(matrix, output)
    }

    /// The first version. Input: landmarks `[1, 1, 1, 3 * count]` in units of which `landmarks_range` are an image's side. The
    /// line between two of them is made level; corners of pixels count, from -1 to 1 across both images.
    fn landmarks_to_first_matrix(&mut self, operator: &Operator<'_>) -> Imported {
        let options = options(operator)?;
        let landmarks = self.input_tensor(operator, 0)?;
        let [1, 1, 1, coordinates] = *self.shape(landmarks)? else {
            return Err(Reason::new(format!(
                "its landmarks are {:?}, expected [1, 1, 1, coordinates]",
                self.shape(landmarks)?
            )));
        };
        let count = coordinates / 3;
        if number(&options, "dimensions")? != 3.0 {
            return Err(Reason::new("its landmarks have not 3 coordinates each"));
        }
        let side = |name: &str, least: f64| -> Imported<[f64; 2]> {
            let found = options.numbers(name).ok_or_else(|| missing(name))?;
            let wrong = || Reason::new(format!("its option {name:?} is not two sizes"));
            let sides: [f64; 2] = found.try_into().map_err(|_| wrong())?;
            let is_side = |side: &f64| *side >= least && *side <= f64::from(MOST_PIXELS);
            if sides.iter().all(is_side) { Ok(sides) } else { Err(wrong()) }
        };
        let [input_height, input_width] = side("input_hw", 1.0)?;
        // From the first pixel to the last one: of a single one there is no such distance.
        let [height, width] = side("output_hw", 2.0)?;
        let range = number(&options, "landmarks_range")?;
        let multiplier = number(&options, "bbox_size_multiplier")?;
        if !(range > 0.0 && range.is_finite() && multiplier != 0.0 && multiplier.is_finite()) {
            return Err(Reason::new(format!(
                "its landmarks' range is {range} and its multiplier {multiplier}"
            )));
        }
        let indexes = options.numbers("subset").ok_or_else(|| missing("subset"))?;
        let indexes = indexes.into_iter().map(|found| landmark("subset", found, count));
        let indexes = indexes.collect::<Imported<Vec<i32>>>()?;
        if indexes.is_empty() {
            return Err(Reason::new("its option \"subset\" names no landmark"));
        }
        let ends = ["left_rotation_idx", "right_rotation_idx"]
            .map(|name| landmark(name, number(&options, name)?, count));
        let [left, right] = ends;
        let (left, right) = (left?, right?);
        let output = self.output_tensor(operator, 0)?;

        let landmarks = self.as_float32(landmarks)?;
        let mut floats = Floats::new(&mut self.builder);
        let landmarks = floats.reshaped(landmarks, &[coordinates, 1])?;
        let columns = |floats: &mut Floats<'_>, of: &[i32]| {
            [0, 1].map(|column| {
                let places: Vec<i32> = of.iter().map(|it| it * 3 + column).collect();
                floats.gathered(landmarks, &places)
            })
        };
        let [left_x, left_y] = columns(&mut floats, &[left]);
        let [right_x, right_y] = columns(&mut floats, &[right]);
        let [x, y] = columns(&mut floats, &indexes);
        let (across, down) =
            (floats.binary(O::Sub, right_x, left_x)?, floats.binary(O::Sub, right_y, left_y)?);
        // The angle of a line, not of a direction.
        let slope = floats.binary(O::Div, down, across)?;
        let one = floats.number(1.0);
        let angle = floats.angle(slope, one);
        let (cos, sin) =
            (floats.unary(E::Cos.operation_type(), angle), floats.unary(O::Sin, angle));
        let turned = |floats: &mut Floats<'_>, [x, y]: [OperandId; 2], sin: OperandId| {
            let (x_cos, x_sin) = (floats.binary(O::Mul, x, cos)?, floats.binary(O::Mul, x, sin)?);
            let (y_cos, y_sin) = (floats.binary(O::Mul, y, cos)?, floats.binary(O::Mul, y, sin)?);
            Ok::<_, Reason>([
                floats.binary(O::Sub, x_cos, y_sin)?,
                floats.binary(O::Add, x_sin, y_cos)?,
            ])
        };
        let minus_sin = floats.scaled(sin, -1.0)?;
        let level = turned(&mut floats, [x, y], minus_sin)?;
        let mut sizes = Vec::new();
        let mut middle = Vec::new();
        for along in level {
            let (least, greatest) =
                (floats.reduced(O::ReduceMin, along), floats.reduced(O::ReduceMax, along));
            let size = floats.binary(O::Sub, greatest, least)?;
            sizes.push(floats.scaled(size, multiplier / range)?);
            let sum = floats.binary(O::Add, least, greatest)?;
            middle.push(floats.scaled(sum, 0.5)?);
        }
        let centre = turned(&mut floats, [middle[0], middle[1]], sin)?;
        let rows = [[cos, minus_sin], [sin, cos]];
        let halves = [input_width, input_height].map(|side| (side - 1.0) / 2.0);
        let mut elements = Vec::new();
        for (([of_x, of_y], centre), half) in rows.into_iter().zip(centre).zip(halves) {
            let (a, b) =
                (floats.binary(O::Mul, of_x, sizes[0])?, floats.binary(O::Mul, of_y, sizes[1])?);
            let (a, b) = (floats.scaled(a, half)?, floats.scaled(b, half)?);
            let moved = floats.scaled(centre, 2.0 * half / range)?;
            let moved = floats.binary(O::Sub, moved, a)?;
            let moved = floats.binary(O::Sub, moved, b)?;
            let (a, b) =
                (floats.scaled(a, 2.0 / (width - 1.0))?, floats.scaled(b, 2.0 / (height - 1.0))?);
            elements.extend([a, b, floats.number(0.0), moved]);
        }
        elements.push(floats.constant(&[1, 8], &[0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0]));
        let all = floats.joined(&elements, 1, &[1, 16]);
        let matrix = floats.reshaped(all, &[1, 4, 4])?;
        self.emit_float32(matrix, output)
    }

    /// Inputs: an image `[1, height, width, channels]`, a matrix. What is outside of the image is 0.
    fn transform_tensor(&mut self, operator: &Operator<'_>, is_from_corners: bool) -> Imported {
        let options = options(operator)?;
        let (image, output) = (self.input_tensor(operator, 0)?, self.output_tensor(operator, 0)?);
        let [1, height, width, channels] = *self.shape(image)? else {
            return Err(Reason::new("its image is not a single one with four axes"));
        };
        let sides = ["output_height", "output_width"].map(|name| {
            let found = number(&options, name)?;
            let is_side = found.fract() == 0.0 && (1.0..=f64::from(MOST_PIXELS)).contains(&found);
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // It is one.
            let side = is_side.then_some(found as u32);
            side.ok_or_else(|| Reason::new(format!("its option {name:?} is {found}")))
        });
        let [rows, columns] = sides;
        let (rows, columns) = (rows?, columns?);
        let pixels =
            |a: u32, b: u32| a.checked_mul(b).filter(|count| (1..=MOST_PIXELS).contains(count));
        let (Some(seen), Some(count)) = (pixels(height, width), pixels(rows, columns)) else {
            return Err(Reason::new(format!(
                "its images of {height} by {width} and {rows} by {columns} pixels are empty or too large"
            )));
        };
        if count.checked_mul(channels).is_none() {
            return Err(Reason::new(format!(
                "its result of {rows} by {columns} pixels with {channels} channels is too large"
            )));
        }
        let matrix = self.input_tensor(operator, 1)?;
        let (image, matrix) = (self.as_float32(image)?, self.as_float32(matrix)?);
        let mut floats = Floats::new(&mut self.builder);
        let matrix = floats.matrix(matrix)?;
        let image = floats.reshaped(image, &[seen, channels])?;
        self.file.allow((rows as usize + columns as usize) * size_of::<f32>())?;
        let positions = |count: u32| (0..count).map(small).collect::<Vec<f32>>();
        let xs = floats.constant(&[1, columns], &positions(columns));
        let ys = floats.constant(&[rows, 1], &positions(rows));
        let mut positions = Vec::new();
        let mut inside = None;
        for ([a, b, c], length) in matrix.into_iter().zip([width, height]) {
            let c = if is_from_corners {
                let sum = floats.binary(O::Add, a, b)?;
                let half = floats.scaled(sum, 0.5)?;
                let moved = floats.binary(O::Add, c, half)?;
                let half = floats.number(-0.5);
                floats.binary(O::Add, moved, half)?
            } else {
                c
            };
            let (by_x, by_y) = (floats.binary(O::Mul, xs, a)?, floats.binary(O::Mul, ys, b)?);
            let sum = floats.binary(O::Add, by_x, by_y)?;
            let position = floats.binary(O::Add, sum, c)?;
            let position = floats.reshaped(position, &[count, 1])?;
            let (first, last) = (floats.number(0.0), floats.number(f64::from(length - 1)));
            for (operation, limit) in [(O::GreaterEqual, first), (O::LessEqual, last)] {
                let within = floats.compared(operation, position, limit);
                inside = Some(match inside {
                    Some(both) => floats.both(both, within),
                    None => within,
                });
            }
            positions.push((position, length));
        }
        let Some(inside) = inside else { return Err(Reason::new(NO_OPERATION)) };
        // Also NaN, which no comparison takes for inside, becomes 0.
        let nowhere = floats.filled(&[count, 1], 0.0);
        let mut corners = Vec::new();
        for (position, length) in positions {
            let position = floats.selected(inside, position, nowhere);
            let before = floats.unary(O::Floor, position);
            let share = floats.binary(O::Sub, position, before)?;
            let (one, last) = (floats.number(1.0), floats.number(f64::from(length - 1)));
            // Behind the last pixel its share is 0.
            let after = floats.binary(O::Add, before, one)?;
            let after = floats.pair(O::Minimum, after, last)?;
            let rest = floats.binary(O::Sub, one, share)?;
            corners.push([(before, rest), (after, share)]);
        }
        let row = floats.number(f64::from(width));
        let mut lines = Vec::new();
        for (y, of_line) in corners[1] {
            let mut values = Vec::new();
            let start = floats.binary(O::Mul, y, row)?;
            for (x, of_pixel) in corners[0] {
                let index = floats.binary(O::Add, start, x)?;
                let value = floats.taken(image, index, count, channels)?;
                values.push(floats.binary(O::Mul, value, of_pixel)?);
            }
            let line = floats.binary(O::Add, values[0], values[1])?;
            lines.push(floats.binary(O::Mul, line, of_line)?);
        }
        let result = floats.binary(O::Add, lines[0], lines[1])?;
        let outside = floats.filled(&[count, channels], 0.0);
        let inside = floats.widened(inside, channels);
        let result = floats.selected(inside, result, outside);
        let result = floats.reshaped(result, &[1, rows, columns, channels])?;
        self.emit_float32(result, output)
    }

    /// Inputs: landmarks with 2 or 3 coordinates each, a matrix. The third coordinate stays as it is.
    fn transform_landmarks(&mut self, operator: &Operator<'_>) -> Imported {
        let (landmarks, output) =
            (self.input_tensor(operator, 0)?, self.output_tensor(operator, 0)?);
        let shape = self.shape(landmarks)?;
        let (coordinates, scale) = match operator.code.version {
            1 => {
                let options = options(operator)?;
                (
                    options.number("dimensions").unwrap_or(3.0),
                    options.number("scale").unwrap_or(1.0),
                )
            }
            _ => (shape.last().copied().map_or(0.0, f64::from), 1.0),
        };
        let depth = match coordinates {
            2.0 => 2,
            3.0 => 3,
            _ => {
                return Err(Reason::new(format!(
                    "its landmarks have {coordinates} coordinates, expected 2 or 3"
                )));
            }
        };
        let rank = 5 - u32::try_from(operator.code.version).unwrap_or(5);
        let elements = shape.iter().try_fold(1_u32, |all, length| all.checked_mul(*length));
        let count =
            elements.filter(|all| shape.len() == rank as usize && all.is_multiple_of(depth));
        let Some(count) = count.map(|all| all / depth) else {
            return Err(Reason::new(format!("its landmarks are {shape:?}")));
        };
        if scale == 0.0 {
            return Err(Reason::new("its option \"scale\" is 0"));
        }
        let matrix = self.input_tensor(operator, 1)?;
        let (landmarks, matrix) = (self.as_float32(landmarks)?, self.as_float32(matrix)?);
        let mut floats = Floats::new(&mut self.builder);
        let matrix = floats.matrix(matrix)?;
        let landmarks = floats.reshaped(landmarks, &[count, depth])?;
        let [x, y] = [0, 1].map(|column| floats.part(landmarks, &[0, column], &[count, 1]));
        let mut columns = Vec::new();
        for [a, b, c] in matrix {
            let c = if scale == 1.0 { c } else { floats.scaled(c, scale)? };
            let (by_x, by_y) = (floats.binary(O::Mul, x, a)?, floats.binary(O::Mul, y, b)?);
            let sum = floats.binary(O::Add, by_x, by_y)?;
            columns.push(floats.binary(O::Add, sum, c)?);
        }
        if depth == 3 {
            columns.push(floats.part(landmarks, &[0, 2], &[count, 1]));
        }
        let joined = floats.joined(&columns, 1, &[count, depth]);
        let result = floats.reshaped(joined, &shape)?;
        self.emit_float32(result, output)
    }

    /// Input: image. Outputs: the greatest of each window, and its place in the window, row by row, as a float
    /// that is 0.1 too large.
    fn max_pooling_with_argmax(&mut self, operator: &Operator<'_>) -> Imported {
        let pool = Pool::of(operator)?;
        let image = self.input_tensor(operator, 0)?;
        let [batch, height, width, channels] = *self.shape(image)? else {
            return Err(Reason::new("its image has not four axes"));
        };
        let (rows, top, bottom) = pool.along(0, height)?;
        let (columns, left, right) = pool.along(1, width)?;
        let outputs = [self.output_tensor(operator, 0)?, self.output_tensor(operator, 1)?];
        let image = self.as_float32(image)?;
        let mut floats = Floats::new(&mut self.builder);
        let paddings = [0, 0, top, bottom, left, right, 0, 0];
        let padded = [batch, height + top + bottom, width + left + right, channels];
        let image = if paddings == [0; 8] {
            image
        } else {
            floats.padded(image, &paddings, f32::NEG_INFINITY, &padded)
        };
        let pooled = [batch, rows, columns, channels];
        bounded("output", &pooled)?;
        let mut greatest = floats.filled(&pooled, f32::MIN);
        let mut place = floats.filled(&pooled, 0.1);
        for tap in 0..pool.filter[0] * pool.filter[1] {
            let start = [tap / pool.filter[1], tap % pool.filter[1]];
            let seen = floats.strided(image, start, pool.stride, &pooled)?;
            let is_greater = floats.compared(O::Greater, seen, greatest);
            let this = floats.filled(&pooled, small(tap) + 0.1);
            greatest = floats.selected(is_greater, seen, greatest);
            place = floats.selected(is_greater, this, place);
        }
        self.emit_activated_floats(greatest, pool.activation, outputs[0])?;
        self.emit_float32(place, outputs[1])
    }

    /// Inputs: values, and their places in windows that are side by side.
    fn max_unpooling(&mut self, operator: &Operator<'_>) -> Imported {
        let pool = Pool::of(operator)?;
        if pool.filter != pool.stride || pool.filter[0] != pool.filter[1] {
            return Err(Reason::new(format!(
                "its windows of {:?} at strides of {:?} are not squares side by side",
                pool.filter, pool.stride
            )));
        }
        let values = self.input_tensor(operator, 0)?;
        let [batch, height, width, channels] = *self.shape(values)? else {
            return Err(Reason::new("its values have not four axes"));
        };
        let shape = [batch, height, width, channels];
        let side = pool.filter[0];
        let lengths = [height, width, channels].map(|it| it.checked_mul(side));
        let ([Some(rows), Some(columns), _], Some(depth)) =
            (lengths, channels.checked_mul(side * side))
        else {
            return Err(Reason::new(format!("its values are {shape:?}, too large")));
        };
        bounded("values", &shape)?;
        let places = self.input_tensor(operator, 1)?;
        if self.shape(places)? != shape {
            return Err(Reason::new("its values and places are of different shapes"));
        }
        let output = self.output_tensor(operator, 0)?;
        let (values, places) = (self.as_float32(values)?, self.as_float32(places)?);
        let mut floats = Floats::new(&mut self.builder);
        // Places are cut to whole numbers.
        let places = floats.builder.operation(O::Cast, [places], OperandSpec::tensor_int32(shape));
        let nothing = floats.filled(&shape, 0.0);
        let mut taps = Vec::new();
        for tap in 0..(side * side).cast_signed() {
            let tap = floats.builder.constant(OperandSpec::tensor_int32([1]), &[tap]);
            let is_here = floats.compared(O::Equal, places, tap);
            taps.push(floats.selected(is_here, values, nothing));
        }
        let all = floats.joined(&taps, 3, &[batch, height, width, depth]);
        let block = floats.builder.scalar_i32(side.cast_signed());
        let spec = OperandSpec::tensor_float32([batch, rows, columns, channels]);
        let result = floats.builder.operation(O::DepthToSpace, [all, block], spec);
        self.emit_float32(result, output)
    }

    /// A result with an activation of the C structures: none, RELU, RELU1 and RELU6 are 0 to 3.
    fn emit_activated_floats(
        &mut self,
        value: OperandId,
        activation: i32,
        output: usize,
    ) -> Imported {
        let operation = match activation {
            0 => return self.emit_float32(value, output),
            1 => O::Relu,
            2 => O::Relu1,
            3 => O::Relu6,
            other => {
                return Err(Reason::new(format!("its activation is {other}, expected 0 to 3")));
            }
        };
        let spec = self.builder.spec(value);
        let activated = self.builder.operation(operation, [value], spec);
        self.emit_float32(activated, output)
    }
}

fn options<'a>(operator: &Operator<'a>) -> Imported<Map<'a>> {
    let options = operator.table.custom_options()?.and_then(Map::root);
    options.ok_or_else(|| Reason::new("its options are no map of a FlexBuffer"))
}

/// The index of one of these landmarks.
fn landmark(name: &str, found: f64, count: u32) -> Imported<i32> {
    #[allow(clippy::cast_possible_truncation)] // It is one.
    let index =
        (found.fract() == 0.0 && (0.0..f64::from(count)).contains(&found)).then_some(found as i32);
    index.ok_or_else(|| {
        Reason::new(format!("its option {name:?} has {found}, expected one of {count} landmarks"))
    })
}

fn missing(name: &str) -> Reason {
    Reason::new(format!("its options have no {name:?}"))
}

fn number(options: &Map<'_>, name: &str) -> Imported<f64> {
    options.number(name).ok_or_else(|| missing(name))
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

fn length(indexes: &[i32]) -> u32 {
    u32::try_from(indexes.len()).unwrap_or(u32::MAX)
}

/// What C has for windows: padding, 1 for SAME and 2 for VALID, stride across and down, filter across and
/// down, activation, each of 32 bits.
#[derive(Debug, Clone, Copy)]
struct Pool {
    is_same: bool,
    /// Down and across.
    stride: [u32; 2],
    filter: [u32; 2],
    activation: i32,
}

impl Pool {
    fn of(operator: &Operator<'_>) -> Imported<Self> {
        let options = operator.table.custom_options()?.unwrap_or_default();
        let (numbers, _) = options.as_chunks();
        let [padding, stride_x, stride_y, filter_x, filter_y, activation, ..] = *numbers else {
            return Err(Reason::new(format!("its options have {} bytes, not 24", options.len())));
        };
        let is_same = match i32::from_le_bytes(padding) {
            1 => true,
            2 => false,
            other => return Err(Reason::new(format!("its padding is {other}, not 1 or 2"))),
        };
        let sides = [stride_y, stride_x, filter_y, filter_x].map(u32::from_le_bytes);
        let [stride_y, stride_x, filter_y, filter_x] = sides;
        let taps = filter_y.checked_mul(filter_x).filter(|taps| (1..=MOST_TAPS).contains(taps));
        let are_strides =
            [stride_y, stride_x].iter().all(|stride| (1..=MOST_PIXELS).contains(stride));
        if taps.is_none() || !are_strides {
            return Err(Reason::new(format!(
                "it has a filter of {filter_y} by {filter_x} with strides {stride_y} and {stride_x}, \
                 expected at most {MOST_TAPS} elements"
            )));
        }
        Ok(Self {
            is_same,
            stride: [stride_y, stride_x],
            filter: [filter_y, filter_x],
            activation: i32::from_le_bytes(activation),
        })
    }

    /// How many windows there are along an axis, and what is padded before and after it.
    fn along(&self, axis: usize, length: u32) -> Imported<(u32, u32, u32)> {
        let (filter, stride) = (self.filter[axis], self.stride[axis]);
        let none = || Reason::new(format!("no window of {filter} fits into {length}"));
        if length == 0 || length > MOST_PIXELS {
            return Err(none());
        }
        if !self.is_same {
            let windows = length.checked_sub(filter).ok_or_else(none)? / stride + 1;
            return Ok((windows, 0, 0));
        }
        let windows = length.div_ceil(stride);
        let all = ((windows - 1) * stride + filter).saturating_sub(length);
        Ok((windows, all / 2, all - all / 2))
    }
}

/// Expressions of floats.
struct Floats<'b> {
    builder: &'b mut Builder,
    /// No activation.
    none: OperandId,
}

impl<'b> Floats<'b> {
    fn new(builder: &'b mut Builder) -> Self {
        let none = builder.scalar_i32(0);
        Self { builder, none }
    }

    fn shape(&self, operand: OperandId) -> Vec<u32> {
        self.builder.spec(operand).dimensions
    }

    fn spec_of(&self, operand: OperandId) -> OperandSpec {
        OperandSpec::tensor_float32(self.shape(operand))
    }

    fn constant(&mut self, shape: &[u32], values: &[f32]) -> OperandId {
        self.builder.constant(OperandSpec::tensor_float32(shape), values)
    }

    /// One value everywhere. The model does not keep it: shapes come from strangers.
    fn filled(&mut self, shape: &[u32], value: f32) -> OperandId {
        let inputs = [self.integers(shape), self.builder.scalar_f32(value)];
        self.builder.operation(O::Fill, inputs, OperandSpec::tensor_float32(shape))
    }

    /// As `[1, 1]`.
    #[allow(clippy::cast_possible_truncation)] // As the definition computes.
    fn number(&mut self, value: f64) -> OperandId {
        self.constant(&[1, 1], &[value as f32])
    }

    fn unary(&mut self, operation: O, operand: OperandId) -> OperandId {
        let spec = self.spec_of(operand);
        self.builder.operation(operation, [operand], spec)
    }

    /// ADD, SUB or MUL.
    fn binary(&mut self, operation: O, a: OperandId, b: OperandId) -> Imported<OperandId> {
        let shape = common_shape(&self.shape(a), &self.shape(b))?;
        let inputs = [a, b, self.none];
        Ok(self.builder.operation(operation, inputs, OperandSpec::tensor_float32(shape)))
    }

    /// MINIMUM or MAXIMUM.
    fn pair(&mut self, operation: O, a: OperandId, b: OperandId) -> Imported<OperandId> {
        let shape = common_shape(&self.shape(a), &self.shape(b))?;
        Ok(self.builder.operation(operation, [a, b], OperandSpec::tensor_float32(shape)))
    }

    fn scaled(&mut self, operand: OperandId, factor: f64) -> Imported<OperandId> {
        let factor = self.number(factor);
        self.binary(O::Mul, operand, factor)
    }

    fn angle(&mut self, y: OperandId, x: OperandId) -> OperandId {
        let spec = self.spec_of(y);
        self.builder.extended(E::Atan2, [y, x], spec)
    }

    /// Of the shape of the first one.
    fn compared(&mut self, operation: O, a: OperandId, b: OperandId) -> OperandId {
        let spec = OperandSpec::tensor_bool8(self.shape(a));
        self.builder.operation(operation, [a, b], spec)
    }

    fn both(&mut self, a: OperandId, b: OperandId) -> OperandId {
        let spec = OperandSpec::tensor_bool8(self.shape(a));
        self.builder.operation(O::LogicalAnd, [a, b], spec)
    }

    /// All three are of one shape.
    fn selected(&mut self, choice: OperandId, yes: OperandId, no: OperandId) -> OperandId {
        let spec = self.spec_of(yes);
        self.builder.operation(O::Select, [choice, yes, no], spec)
    }

    /// `[count, 1]` of truth values, as `[count, channels]`.
    fn widened(&mut self, truths: OperandId, channels: u32) -> OperandId {
        let [count, ..] = self.shape(truths)[..] else { return truths };
        let repeats = self.builder.constant(
            OperandSpec::tensor_int32([2]),
            &[1, i32::try_from(channels).unwrap_or(i32::MAX)],
        );
        let spec = OperandSpec::tensor_bool8([count, channels]);
        self.builder.operation(O::Tile, [truths, repeats], spec)
    }

    /// As `[1, 1]`.
    fn reduced(&mut self, operation: O, operand: OperandId) -> OperandId {
        let axes = self.builder.constant(OperandSpec::tensor_int32([1]), &[0]);
        let keep = self.builder.scalar_bool(true);
        let spec = OperandSpec::tensor_float32([1, 1]);
        self.builder.operation(operation, [operand, axes, keep], spec)
    }

    fn integers(&mut self, values: &[u32]) -> OperandId {
        let values: Vec<i32> =
            values.iter().map(|it| i32::try_from(*it).unwrap_or(i32::MAX)).collect();
        let count = u32::try_from(values.len()).unwrap_or(u32::MAX);
        self.builder.constant(OperandSpec::tensor_int32([count]), &values)
    }

    fn reshaped(&mut self, operand: OperandId, shape: &[u32]) -> Imported<OperandId> {
        let elements = |shape: &[u32]| shape.iter().try_fold(1_u32, |all, it| all.checked_mul(*it));
        let (found, wanted) = (self.shape(operand), elements(shape));
        if found == shape {
            return Ok(operand);
        }
        if elements(&found) != wanted || wanted.is_none() {
            return Err(Reason::new(format!("{found:?} is not as many elements as {shape:?}")));
        }
        let lengths = self.integers(shape);
        let spec = OperandSpec::tensor_float32(shape);
        Ok(self.builder.operation(O::Reshape, [operand, lengths], spec))
    }

    /// Rows of a table.
    fn gathered(&mut self, table: OperandId, rows: &[i32]) -> OperandId {
        let count = length(rows);
        let indexes = self.builder.constant(OperandSpec::tensor_int32([count]), rows);
        let axis = self.builder.scalar_i32(0);
        let depth = self.shape(table).last().copied().unwrap_or(1);
        let spec = OperandSpec::tensor_float32([count, depth]);
        self.builder.operation(O::Gather, [table, axis, indexes], spec)
    }

    /// The rows that floats `[count, 1]` say.
    fn taken(
        &mut self,
        table: OperandId,
        rows: OperandId,
        count: u32,
        depth: u32,
    ) -> Imported<OperandId> {
        let rows = self.reshaped(rows, &[count])?;
        let rows = self.builder.operation(O::Cast, [rows], OperandSpec::tensor_int32([count]));
        let axis = self.builder.scalar_i32(0);
        let spec = OperandSpec::tensor_float32([count, depth]);
        Ok(self.builder.operation(O::Gather, [table, axis, rows], spec))
    }

    fn part(&mut self, operand: OperandId, begin: &[u32], size: &[u32]) -> OperandId {
        let inputs = [operand, self.integers(begin), self.integers(size)];
        self.builder.operation(O::Slice, inputs, OperandSpec::tensor_float32(size))
    }

    fn joined(&mut self, operands: &[OperandId], axis: i32, shape: &[u32]) -> OperandId {
        let mut inputs = operands.to_vec();
        inputs.push(self.builder.scalar_i32(axis));
        self.builder.operation(O::Concatenation, inputs, OperandSpec::tensor_float32(shape))
    }

    fn padded(
        &mut self,
        operand: OperandId,
        paddings: &[u32],
        value: f32,
        shape: &[u32],
    ) -> OperandId {
        let values: Vec<i32> =
            paddings.iter().map(|it| i32::try_from(*it).unwrap_or(i32::MAX)).collect();
        let axes = length(&values) / 2;
        let paddings = self.builder.constant(OperandSpec::tensor_int32([axes, 2]), &values);
        let value = self.builder.scalar_f32(value);
        self.builder.operation(
            O::PadV2,
            [operand, paddings, value],
            OperandSpec::tensor_float32(shape),
        )
    }

    /// Pixels of an image at strides, as many as `shape` says.
    fn strided(
        &mut self,
        image: OperandId,
        [top, left]: [u32; 2],
        [down, across]: [u32; 2],
        shape: &[u32; 4],
    ) -> Imported<OperandId> {
        let [batch, rows, columns, channels] = *shape;
        let end = |start: u32, count: u32, stride: u32| {
            count.checked_sub(1)?.checked_mul(stride)?.checked_add(start + 1)
        };
        let (Some(bottom), Some(right)) = (end(top, rows, down), end(left, columns, across)) else {
            return Err(Reason::new(format!("its output is {shape:?}, too large")));
        };
        let begin = self.integers(&[0, top, left, 0]);
        let end = self.integers(&[batch, bottom, right, channels]);
        let strides = self.integers(&[1, down, across, 1]);
        let masks = [0; 3].map(|mask| self.builder.scalar_i32(mask));
        let inputs = [image, begin, end, strides, masks[0], masks[1], masks[2]];
        Ok(self.builder.operation(O::StridedSlice, inputs, OperandSpec::tensor_float32(*shape)))
    }

    /// The first two rows of a matrix: what x, y and 1 are multiplied with, each as `[1, 1]`.
    fn matrix(&mut self, matrix: OperandId) -> Imported<[[OperandId; 3]; 2]> {
        let elements = self.reshaped(matrix, &[1, 16])?;
        Ok([0, 4].map(|row| [0, 1, 3].map(|at| self.part(elements, &[0, row + at], &[1, 1]))))
    }
}
