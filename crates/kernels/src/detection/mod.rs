//! What comes behind a network that detects: boxes from deltas and anchors, and of boxes that overlap
//! the one with the highest score.

mod boxes;
mod postprocessing;
mod roi_align;
mod suppression;

pub use postprocessing::{DetectionPostprocessing, Detections, Rule};
pub use roi_align::RoiAlign;
