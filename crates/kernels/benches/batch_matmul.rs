//! Products of two activations of float32 in the shapes of a small BERT, and attentions as one step; see `convolution`.

mod measure;

use measure::{Settings, values};
use nnhal_kernels::attention::Attention;
use nnhal_kernels::batch_matmul::float::{BatchMatmul, Layout};
use nnhal_kernels::softmax::Adjustment;
use nnhal_kernels::{Epilogue, Lines, PreparedKernel, Team};

/// Name, products, M, N, K, whether the right operand is transposed.
type Row = (&'static str, usize, [usize; 3], bool);

const ROWS: &[Row] = &[
    ("bert scores", 8, [128, 128, 64], true),
    ("bert context", 8, [128, 64, 128], false),
    ("deit scores", 3, [197, 197, 64], true),
    ("deit context", 3, [197, 64, 197], false),
    ("tinyvit scores", 5, [196, 196, 32], true),
    ("one column, shallow", 1, [512, 1, 16], false),
    ("one column", 1, [512, 1, 64], false),
    ("one column, deep", 1, [512, 1, 512], false),
    ("one large", 1, [512, 512, 512], false),
    ("one large transposed", 1, [512, 512, 512], true),
];

/// Name, heads, how many of them have the same keys, queries, keys of each, and the depth of both, which is the width of a
/// value too.
type Heads = (&'static str, [usize; 2], [usize; 3]);

const ATTENTIONS: &[Heads] = &[
    ("attention whisper", [6, 1], [1500, 1500, 64]),
    ("attention text", [12, 1], [512, 512, 32]),
    ("attention segformer", [1, 1], [16384, 256, 32]),
    ("attention few queries", [9, 1], [8, 1280, 64]),
    ("attention token", [9, 3], [1, 1280, 64]),
    ("attention token, full", [12, 1], [1, 1024, 64]),
];

fn main() {
    let settings = Settings::from_arguments();
    products(&settings);
    for &(name, [heads, shared], [queries, keys, depth]) in ATTENTIONS {
        if !settings.wants(name) {
            continue;
        }
        // Heads are beside each other in a row.
        let layout = |shared, transposed| Layout {
            starts: (0..heads).map(|head| head / shared * depth).collect(),
            row_stride: heads / shared * depth,
            transposed,
        };
        let attention = Attention::prepare(
            [queries, keys, depth, depth],
            [layout(1, false), layout(shared, true), layout(shared, false), layout(1, false)],
            1.0,
            Adjustment { factor: 0.125, mask: None },
            settings.set,
            settings.threads,
        );
        let [of_queries, of_keys] = [queries, keys].map(|rows| values(rows * heads * depth));
        let mut output = vec![0.0; of_queries.len()];
        let mut scratch = Lines::with_bytes(attention.scratch_bytes());
        let mut team = Team::new(settings.threads);
        settings.measure(name, &attention.name(), attention.arithmetic(), || {
            let inputs = [&of_queries[..], &of_keys, &of_keys, &[]];
            attention.run(&mut team, inputs, &mut output, scratch.lines_mut());
        });
    }
}

fn products(settings: &Settings) {
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
