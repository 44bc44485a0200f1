//! Drawing on a picture.

use image::{Rgb, RgbImage};

const COLOUR: Rgb<u8> = Rgb([255, 64, 64]);
const THICKNESS: i64 = 3;

/// Draws a frame; what is outside the picture is left out.
pub fn draw(picture: &mut RgbImage, corners: [[f32; 2]; 2]) {
    let [[left, top], [right, bottom]] = corners.map(|corner| corner.map(to_pixel));
    for inset in 0..THICKNESS {
        for x in left..=right {
            put(picture, x, top + inset);
            put(picture, x, bottom - inset);
        }
        for y in top..=bottom {
            put(picture, left + inset, y);
            put(picture, right - inset, y);
        }
    }
}

/// Marks a point.
pub fn mark(picture: &mut RgbImage, point: [f32; 2]) {
    let [x, y] = point.map(to_pixel);
    for dx in -1..=1 {
        for dy in -1..=1 {
            put(picture, x + dx, y + dy);
        }
    }
}

/// Casts saturate, and positions beyond any picture are cut so that no loop runs long.
#[allow(clippy::cast_possible_truncation)]
fn to_pixel(position: f32) -> i64 {
    (position.round() as i64).clamp(-100_000, 100_000)
}

fn put(picture: &mut RgbImage, x: i64, y: i64) {
    if let (Ok(x), Ok(y)) = (u32::try_from(x), u32::try_from(y))
        && let Some(pixel) = picture.get_pixel_mut_checked(x, y)
    {
        *pixel = COLOUR;
    }
}
