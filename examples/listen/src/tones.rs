//! The tones of a telephone's keys: two at a time, one of the row and one of the column.

/// Samples in a second.
pub const RATE: f32 = 8000.0;

/// By row and column.
pub const KEYS: [[char; 4]; 4] =
    [['1', '2', '3', 'A'], ['4', '5', '6', 'B'], ['7', '8', '9', 'C'], ['*', '0', '#', 'D']];

/// Of the rows, then of the columns, in hertz.
pub const FREQUENCIES: [f32; 8] = [697.0, 770.0, 852.0, 941.0, 1209.0, 1336.0, 1477.0, 1633.0];

/// Keys that are pressed for 0.3 s each, with as much silence behind, and noise of this amplitude.
#[allow(clippy::cast_precision_loss)] // Fewer samples than 2^24.
pub fn dial(keys: &str, noise: f32) -> Vec<f32> {
    const SAMPLES: usize = 2400;
    let mut random = 1_u32;
    let mut audio = Vec::new();
    for key in keys.chars() {
        let place = KEYS.iter().enumerate().find_map(|(row, columns)| {
            Some((row, columns.iter().position(|column| *column == key)?))
        });
        let Some((row, column)) = place else { continue };
        for sample in 0..2 * SAMPLES {
            let wave = |frequency: f32| {
                (sample as f32 * frequency / RATE * std::f32::consts::TAU).sin() / 2.0
            };
            let tone = wave(FREQUENCIES[row]) + wave(FREQUENCIES[4 + column]);
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let random = (random >> 8) as f32 / (1 << 24) as f32 - 0.5;
            audio.push(if sample < SAMPLES { tone } else { 0.0 } + noise * random);
        }
    }
    audio
}
