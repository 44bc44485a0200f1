//! Tests on files that are written here, with the writers that the schema gives.

mod custom;
mod draft;
mod hostile;
mod large;
mod mapping;
