//! `libneuralnetworks.so`: the C functions of Android's Neural Networks API, on any Linux machine.

mod handle;
mod last_error;
mod outcome;
mod pointer;
