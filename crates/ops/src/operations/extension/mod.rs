//! Operations that only [our extension](crate::extension) has, a file each or a file per tight family.

mod counter_based;
mod signatures;
#[cfg(test)]
mod tests;

pub mod batch_gather;
pub mod binary;
pub mod bitcast;
pub mod broadcast_args;
pub mod bucketize;
pub mod cast;
pub mod choice;
pub mod complex;
pub mod conv_3d;
pub mod cumulative_sum;
pub mod division;
pub mod dynamic_conv_2d;
pub mod dynamic_fully_connected;
pub mod dynamic_round;
pub mod dynamic_update_slice;
pub mod fourier;
pub mod gather_nd;
pub mod gather_slices;
pub mod matrix_diagonal;
pub mod non_max_suppression;
pub mod nonzero;
pub mod one_hot;
pub mod random;
pub mod range;
pub mod reduce_window;
pub mod resize_to;
pub mod reverse_sequence;
pub mod rng_bit_generator;
pub mod scatter_nd;
pub mod scatter_slices;
pub mod segments;
pub mod shape_of;
pub mod sparse_to_dense;
pub mod top_k;
pub mod unary;
pub mod unique;
