//! From a photograph to the network's input.

use image::RgbImage;

/// Height and width of the network's input.
pub const SIZE: u16 = 128;

/// The square that a photograph is centred on.
#[derive(Debug, Clone, Copy)]
pub struct Square {
    side: u32,
    left: u32,
    top: u32,
}

impl Square {
    /// The smallest square around a photograph.
    pub fn of(picture: &RgbImage) -> Self {
        let (width, height) = picture.dimensions();
        let side = width.max(height);
        Self { side, left: (side - width) / 2, top: (side - height) / 2 }
    }

    /// A point given in fractions of the square, in pixels of the photograph.
    #[allow(clippy::cast_precision_loss)] // Photographs have fewer than 2^24 rows.
    pub fn to_pixels(self, [x, y]: [f32; 2]) -> [f32; 2] {
        [x * self.side as f32 - self.left as f32, y * self.side as f32 - self.top as f32]
    }
}

/// The photograph on a black square, resized with bilinear interpolation between pixel centres, in
/// the range -1 to 1; rows, columns, channels.
pub fn to_input(picture: &RgbImage) -> Vec<f32> {
    let square = Square::of(picture);
    let pixel = |x: u32, y: u32, channel: usize| {
        let inside = |at: u32, margin: u32| at.checked_sub(margin);
        match (inside(x, square.left), inside(y, square.top)) {
            (Some(x), Some(y)) => {
                picture.get_pixel_checked(x, y).map_or(0.0, |pixel| f32::from(pixel[channel]))
            }
            _ => 0.0,
        }
    };
    let mut input = Vec::with_capacity(usize::from(SIZE) * usize::from(SIZE) * 3);
    for row in 0..SIZE {
        let (above, below, down) = neighbours(row, square.side);
        for column in 0..SIZE {
            let (before, after, right) = neighbours(column, square.side);
            for channel in 0..3 {
                let between = |from: f32, to: f32, part: f32| from + (to - from) * part;
                let at = |x| between(pixel(x, above, channel), pixel(x, below, channel), down);
                input.push(between(at(before), at(after), right) / 127.5 - 1.0);
            }
        }
    }
    input
}

/// The two pixels that an index of the input is between, and how far it is from the first.
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn neighbours(index: u16, side: u32) -> (u32, u32, f32) {
    let step = (f64::from(side) / f64::from(SIZE)) as f32;
    let position = ((f32::from(index) + 0.5) * step - 0.5).clamp(0.0, (side - 1) as f32);
    let low = position as u32;
    (low, (low + 1).min(side - 1), position - low as f32)
}
