//! Products of two activations of float32 in the shapes of a small BERT; see `convolution`.

mod measure;

use measure::{Settings, values};
use nnhal_kernels::batch_matmul::float::{BatchMatmul, Layout};
use nnhal_kernels::{Epilogue, Lines, PreparedKernel, Team};

/// Name, products, M, N, K, whether the right operand is transposed.
type Row = (&'static str, usize, [usize; 3], bool);

const ROWS: &[Row] = &[
    ("bert scores", 8, [128, 128, 64], true),
    ("bert context", 8, [128, 64, 128], false),
    ("one large", 1, [512, 512, 512], false),
    ("one large transposed", 1, [512, 512, 512], true),
];

fn main() {
    let settings = Settings::from_arguments();
    for &(name, count, [rows, columns, depth], transposed) in ROWS {
        if !settings.wants(name) {
            continue;
        }
        let right = if transposed { [columns, depth] } else { [depth, columns] };
        let product = BatchMatmul::prepare(
            [rows, columns, depth],
            [
                Layout::contiguous(count, [rows, depth], false),
                Layout::contiguous(count, right, transposed),
                Layout::contiguous(count, [rows, columns], false),
            ],
            Epilogue::NONE,
            settings.set,
            settings.threads,
        );
        let left = values(count * rows * depth);
        let right = values(count * columns * depth);
        let mut output = vec![0.0; count * rows * columns];
        let mut scratch = Lines::with_bytes(product.scratch_bytes());
        let mut team = Team::new(settings.threads);
        settings.measure(name, &product.kernel(), product.arithmetic(), || {
            product.run(&mut team, &left, &right, &mut output, scratch.lines_mut());
        });
    }
}
