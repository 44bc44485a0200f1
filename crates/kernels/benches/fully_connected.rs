//! Fully connected layers of float32 in the shapes of well-known networks; see `convolution`. Those of
//! one row take as long as reading the weights, so their share of the peak is small.

mod measure;

use measure::{Settings, values};
use nnhal_kernels::fully_connected::{FullyConnected, Sizes, Storage};
use nnhal_kernels::{Epilogue, Lines, Preparation, PreparedKernel, Team};

/// Name, rows, inputs, units, storage.
type Row = (&'static str, usize, usize, usize, Storage);

const ROWS: &[Row] = &[
    ("mobilenet last", 1, 1024, 1001, Storage::Full),
    ("mobilenet last of float16", 1, 1024, 1001, Storage::Half),
    ("resnet50 last", 1, 2048, 1000, Storage::Full),
    ("resnet50 last of float16", 1, 2048, 1000, Storage::Half),
    ("lstm input", 1, 128, 1024, Storage::Full),
    ("small", 1, 64, 12, Storage::Full),
    ("larger than caches", 1, 8192, 4096, Storage::Full),
    ("bert attention", 128, 512, 512, Storage::Full),
    ("bert intermediate", 128, 512, 2048, Storage::Full),
    ("bert output", 128, 2048, 512, Storage::Full),
];

fn main() {
    let settings = Settings::from_arguments();
    for &(name, rows, inputs, units, storage) in ROWS {
        if !settings.wants(name) {
            continue;
        }
        let sizes = Sizes { rows, inputs, units };
        let layer = FullyConnected::prepare(
            sizes,
            &values(units * inputs),
            &values(units),
            storage,
            Epilogue::NONE,
            &mut Preparation::new(settings.set, settings.threads),
        )
        .unwrap();
        let input = values(rows * inputs);
        let mut output = vec![0.0; rows * units];
        let mut scratch = Lines::with_bytes(layer.scratch_bytes());
        let mut team = Team::new(settings.threads);
        settings.measure(name, &layer.kernel(), layer.arithmetic(), || {
            layer.run(&mut team, &input, None, &mut output, scratch.lines_mut());
        });
    }
}
