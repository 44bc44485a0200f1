//! GROUPED_CONV_2D: convolutions whose channels are cut into groups.

pub mod float;
