//! Tests on files that are written here, with the writers that the schema gives.

mod custom;
mod described;
mod draft;
mod external;
mod flex;
mod folding;
mod hostile;
mod inline;
mod large;
mod mapping;
mod mediapipe;
mod newer;
mod random;
mod sound;
mod split;
mod stablehlo;
mod values;
mod variables;
mod wide;
