//! Where landmarks and images go by matrices.

use super::floats::{Floats, length};
use super::{MOST_PIXELS, small};
use crate::error::{NO_OPERATION, Reason};
use crate::file::Operator;
use crate::import::custom::{missing, number, options};
use crate::import::{GraphImporter, Imported};
use nnhal_hal::{OperandId, OperationType as O};
use nnhal_ops::extension::ExtensionOperation as E;

impl GraphImporter<'_, '_> {
    /// Input: landmarks `[1, count, 3]`. The rectangle is as wide and high as the landmarks of its
    /// option `subset_idxs` once they are turned so that the line between two others has the wanted angle.
    pub(super) fn landmarks_to_transform_matrix(&mut self, operator: &Operator<'_>) -> Imported {
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
    pub(super) fn landmarks_to_first_matrix(&mut self, operator: &Operator<'_>) -> Imported {
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
    pub(super) fn transform_tensor(
        &mut self,
        operator: &Operator<'_>,
        is_from_corners: bool,
    ) -> Imported {
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
    pub(super) fn transform_landmarks(&mut self, operator: &Operator<'_>) -> Imported {
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
