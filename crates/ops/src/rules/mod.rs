//! Rules that several operations share, each in a file named after it.

pub mod activation_range;
pub mod bidirectional;
pub mod blocks;
pub mod border;
pub mod bounding_box;
pub mod broadcast;
pub mod convolution;
pub mod dynamic_range;
pub mod fingerprint;
pub mod fixed_point;
pub mod integer_lstm;
pub mod inverse_square_root;
pub mod layout;
pub mod lstm_arguments;
pub mod lstm_cell;
pub mod movement;
pub mod padding;
pub mod real;
pub mod recurrence;
pub mod regions;
pub mod requantize;
pub mod rnn_cell;
pub mod slices;
pub mod sorting;
pub mod suppression;
